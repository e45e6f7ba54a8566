//! Checks a defaulted document, apart from which plugins run where.
//!
//! Source: the validation of `KubeSchedulerConfiguration` and of the types of
//! `component-base` that it embeds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use steersman_api::duration::GoDuration;
use steersman_api::problem::{FieldPath, Problem};
use steersman_api::qualified::check_qualified_name;
use steersman_api::resources::is_extended;

use crate::{moved, wire};

/// Reports everything that is not allowed.
pub(crate) fn check(config: &wire::Configuration, problems: &mut Vec<Problem>) {
    let root = FieldPath::root();
    leader_election(&config.leader_election, &root.field("leaderElection"), problems);
    if config.client_connection.burst < 0 {
        let at = root.field("clientConnection").field("burst");
        problems.push(Problem::invalid(&at, config.client_connection.burst, "0 or more"));
    }
    numbers(config, problems);
    profiles(&config.profiles, &root.field("profiles"), problems);
    extenders(&config.extenders, &root.field("extenders"), problems);
}

fn leader_election(election: &wire::LeaderElection, at: &FieldPath, problems: &mut Vec<Problem>) {
    // Whoever does not take part may write what he likes.
    if election.leader_elect == Some(false) {
        return;
    }
    let durations = [
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ];
    for (field, duration) in durations {
        if duration <= GoDuration::ZERO {
            problems.push(Problem::invalid(&at.field(field), duration, "more than 0s"));
        }
    }
    if election.lease_duration < election.renew_deadline {
        let allowed = format_args!("at least the renewDeadline, {}", election.renew_deadline);
        problems.push(Problem::invalid(
            &at.field("leaseDuration"),
            election.lease_duration,
            allowed,
        ));
    }
    if election.resource_lock != "leases" {
        let found = format_args!("{:?}", election.resource_lock);
        problems.push(Problem::invalid(&at.field("resourceLock"), found, "\"leases\""));
    }
}

fn numbers(config: &wire::Configuration, problems: &mut Vec<Problem>) {
    let mut require = |is_right: bool, field: &str, found: &dyn Display, allowed: &str| {
        if !is_right {
            problems.push(Problem::invalid(&field.into(), found, allowed));
        }
    };
    let parallelism = config.parallelism.unwrap_or_default();
    require(parallelism > 0, "parallelism", &parallelism, "1 or more");
    let percentage = config.percentage_of_nodes_to_score.unwrap_or_default();
    let allowed = "0 to 100, where 0 means a share that depends on the number of nodes";
    require((0..=100).contains(&percentage), "percentageOfNodesToScore", &percentage, allowed);
    let initial = config.pod_initial_backoff_seconds.unwrap_or_default();
    require(initial > 0, "podInitialBackoffSeconds", &initial, "1 or more");
    let max = config.pod_max_backoff_seconds.unwrap_or_default();
    let allowed = format!("at least podInitialBackoffSeconds, {initial}");
    require(max >= initial, "podMaxBackoffSeconds", &max, &allowed);
}

fn profiles(profiles: &[wire::Profile], at: &FieldPath, problems: &mut Vec<Problem>) {
    let mut names = BTreeMap::new();
    for (i, profile) in profiles.iter().enumerate() {
        let at = at.index(i);
        let name_at = at.field("schedulerName");
        let name = profile.scheduler_name.as_deref().unwrap_or_default();
        if name.is_empty() {
            problems.push(Problem::required(&name_at, "the spec.schedulerName of its pods"));
        }
        if let Some(first) = names.get(name) {
            let found = format_args!("{name:?} at profiles[{first}].schedulerName");
            problems.push(Problem::duplicate(&name_at, found));
        } else {
            names.insert(name, i);
        }
        let percentage = profile.percentage_of_nodes_to_score.unwrap_or_default();
        if !(0..=100).contains(&percentage) {
            let at = at.field("percentageOfNodesToScore");
            problems.push(Problem::invalid(&at, percentage, "0 to 100"));
        }
        plugin_config(&profile.plugin_config, &at.field("pluginConfig"), problems);
    }
}

fn plugin_config(entries: &[wire::PluginConfig], at: &FieldPath, problems: &mut Vec<Problem>) {
    let mut names = BTreeSet::new();
    for entry in entries {
        let at = entry.at(at);
        if !names.insert(&entry.name) {
            problems.push(Problem::duplicate(&at, format_args!("{:?}", entry.name)));
        }
        if moved::is_refused(&entry.name) {
            problems.push(moved::does_not_exist(&entry.name, &at));
        }
    }
}

fn extenders(extenders: &[wire::Extender], at: &FieldPath, problems: &mut Vec<Problem>) {
    let mut managed = BTreeSet::new();
    for (i, extender) in extenders.iter().enumerate() {
        let at = at.index(i);
        if let Err(found) = check_url(&extender.url_prefix) {
            let allowed = "http:// or https://, a host, and a path if need be; no user or password";
            problems.push(Problem::invalid(&at.field("urlPrefix"), found, allowed));
        }
        if !extender.prioritize_verb.is_empty() && extender.weight <= 0 {
            let allowed = "1 or more, as there is a prioritizeVerb";
            problems.push(Problem::invalid(&at.field("weight"), extender.weight, allowed));
        }
        if extender.http_timeout < GoDuration::ZERO {
            let at = at.field("httpTimeout");
            problems.push(Problem::invalid(&at, extender.http_timeout, "0s or more"));
        }
        if let Some(tls) = &extender.tls_config {
            tls_config(tls, &at.field("tlsConfig"), problems);
        }
        for (j, resource) in extender.managed_resources.iter().enumerate() {
            let at = at.field("managedResources").index(j).field("name");
            let found = format!("{:?}", resource.name);
            match check_qualified_name(&resource.name) {
                Err(allowed) => problems.push(Problem::invalid(&at, &found, allowed)),
                Ok(()) if !is_extended(&resource.name) => {
                    let allowed = "an extended resource such as \"example.com/gpu\"";
                    problems.push(Problem::invalid(&at, &found, allowed));
                }
                Ok(()) => {}
            }
            if !managed.insert(&resource.name) {
                problems.push(Problem::duplicate(&at, found));
            }
        }
    }
    let binders = extenders.iter().filter(|extender| !extender.bind_verb.is_empty()).count();
    if binders > 1 {
        let found = format_args!("{binders} extenders with a bindVerb");
        problems.push(Problem::invalid(at, found, "one at the most"));
    }
}

/// Whether it has the form of an extender's address; if not, what was found. The
/// client looks closer.
fn check_url(text: &str) -> Result<(), String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    // What stands before the @ is a secret.
    if host.contains('@') {
        return Err("a URL with a user or a password".to_owned());
    }
    let is_plain = text.chars().all(|c| c.is_ascii_graphic());
    if is_plain && !host.is_empty() { Ok(()) } else { Err(format!("{text:?}")) }
}

fn tls_config(tls: &wire::TlsConfig, at: &FieldPath, problems: &mut Vec<Problem>) {
    let has_authorities = !tls.ca_file.is_empty() || !tls.ca_data.0.is_empty();
    if tls.insecure && has_authorities {
        let allowed = "false, as caFile or caData says whom to trust";
        problems.push(Problem::invalid(&at.field("insecure"), true, allowed));
    }
}
