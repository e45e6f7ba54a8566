//! What differs between two configurations, in what they mean and not in how
//! they are written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug, Display};

use serde_json::Value;
use steersman_framework::point::ExtensionPoint;

use crate::config::{ClientConnection, Config, ExtenderConfig, LeaderElection, Profile};

/// One difference. Displays as `path: old -> new`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The field, in the words of the document: `profiles["a"].plugins.score`.
    pub path: String,
    /// What it was; `None` when it was not there.
    pub old: Option<String>,
    /// What it is; `None` when it is not there any more.
    pub new: Option<String>,
}

impl Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => write!(f, "{}: {old} -> {new}", self.path),
            (Some(old), None) => write!(f, "{}: {old} removed", self.path),
            (None, Some(new)) => write!(f, "{}: {new} added", self.path),
            (None, None) => write!(f, "{}: differs", self.path),
        }
    }
}

/// What differs, a line each; nothing when both mean the same. Certificates and
/// keys are not shown.
pub fn changes(old: &Config, new: &Config) -> Vec<String> {
    differences(old, new).iter().map(ToString::to_string).collect()
}

/// As [`changes`], in parts.
pub fn differences(old: &Config, new: &Config) -> Vec<Change> {
    let mut found = Changes::default();
    top_level(old, new, &mut found);
    leader_election(&old.leader_election, &new.leader_election, &mut found);
    client_connection(&old.client_connection, &new.client_connection, &mut found);
    let by_name = |config: &'_ Config| -> Vec<String> {
        config.profiles.iter().map(|profile| profile.scheduler_name.clone()).collect()
    };
    let profile = |config: &'_ Config, name: &str| {
        config.profiles.iter().position(|p| p.scheduler_name == name)
    };
    for name in by_name(old).iter().chain(by_name(new).iter().filter(|n| profile(old, n).is_none()))
    {
        let at = format!("profiles[{name:?}]");
        let pair = (profile(old, name), profile(new, name));
        match pair {
            (Some(i), Some(j)) => profiles(&old.profiles[i], &new.profiles[j], &at, &mut found),
            (Some(_), None) => found.push(&at, Some("profile".to_owned()), None),
            (None, _) => found.push(&at, None, Some("profile".to_owned())),
        }
    }
    extenders(&old.extenders, &new.extenders, &mut found);
    for (one, other) in old.gates.iter().zip(new.gates.iter()) {
        found.compare(&format!("featureGates.{}", one.name), &one.enabled, &other.enabled);
    }
    found.found
}

#[derive(Default)]
struct Changes {
    found: Vec<Change>,
}

impl Changes {
    fn push(&mut self, path: &str, old: Option<String>, new: Option<String>) {
        self.found.push(Change { path: path.to_owned(), old, new });
    }

    fn compare<T: PartialEq + Debug>(&mut self, path: &str, old: &T, new: &T) {
        if old != new {
            self.push(path, Some(format!("{old:?}")), Some(format!("{new:?}")));
        }
    }

    /// For values that may be absent.
    fn compare_set<T: PartialEq + Debug>(&mut self, path: &str, old: &Option<T>, new: &Option<T>) {
        if old != new {
            let show = |value: &Option<T>| value.as_ref().map(|value| format!("{value:?}"));
            self.push(path, show(old), show(new));
        }
    }

    /// For what nobody should read in a log.
    fn compare_hidden<T: PartialEq>(&mut self, path: &str, old: &T, new: &T) {
        if old != new {
            self.push(path, None, None);
        }
    }
}

fn top_level(old: &Config, new: &Config, found: &mut Changes) {
    found.compare("parallelism", &old.parallelism, &new.parallelism);
    let percentages = (old.percentage_of_nodes_to_score, new.percentage_of_nodes_to_score);
    found.compare("percentageOfNodesToScore", &percentages.0, &percentages.1);
    let initial = (old.pod_initial_backoff.as_secs(), new.pod_initial_backoff.as_secs());
    found.compare("podInitialBackoffSeconds", &initial.0, &initial.1);
    let max = (old.pod_max_backoff.as_secs(), new.pod_max_backoff.as_secs());
    found.compare("podMaxBackoffSeconds", &max.0, &max.1);
    found.compare("enableProfiling", &old.enable_profiling, &new.enable_profiling);
    let contention = (old.enable_contention_profiling, new.enable_contention_profiling);
    found.compare("enableContentionProfiling", &contention.0, &contention.1);
    let delay = (old.delay_cache_until_active, new.delay_cache_until_active);
    found.compare("delayCacheUntilActive", &delay.0, &delay.1);
}

fn leader_election(old: &LeaderElection, new: &LeaderElection, found: &mut Changes) {
    let at = |field: &str| format!("leaderElection.{field}");
    found.compare(&at("leaderElect"), &old.leader_elect, &new.leader_elect);
    found.compare(&at("leaseDuration"), &old.lease_duration, &new.lease_duration);
    found.compare(&at("renewDeadline"), &old.renew_deadline, &new.renew_deadline);
    found.compare(&at("retryPeriod"), &old.retry_period, &new.retry_period);
    found.compare(&at("resourceLock"), &old.resource_lock, &new.resource_lock);
    found.compare(&at("resourceName"), &old.resource_name, &new.resource_name);
    found.compare(&at("resourceNamespace"), &old.resource_namespace, &new.resource_namespace);
}

fn client_connection(old: &ClientConnection, new: &ClientConnection, found: &mut Changes) {
    let at = |field: &str| format!("clientConnection.{field}");
    found.compare(&at("kubeconfig"), &old.kubeconfig, &new.kubeconfig);
    found.compare(&at("acceptContentTypes"), &old.accept_content_types, &new.accept_content_types);
    found.compare(&at("contentType"), &old.content_type, &new.content_type);
    found.compare(&at("qps"), &old.qps, &new.qps);
    found.compare(&at("burst"), &old.burst, &new.burst);
}

fn profiles(old: &Profile, new: &Profile, at: &str, found: &mut Changes) {
    let percentages = (old.percentage_of_nodes_to_score, new.percentage_of_nodes_to_score);
    found.compare_set(&format!("{at}.percentageOfNodesToScore"), &percentages.0, &percentages.1);
    for point in ExtensionPoint::ALL {
        let at = format!("{at}.plugins.{}", point.config_field());
        let (one, other) = (old.plugins.at(point), new.plugins.at(point));
        names(one, other, &at, found);
        // Scores are summed up.
        if point != ExtensionPoint::Score {
            order(one, other, &at, found);
        }
    }
    let weights = |profile: &Profile| profile.plugins.scoring().collect::<BTreeMap<_, _>>();
    let (old_weights, new_weights) = (weights(old), weights(new));
    for (name, weight) in &old_weights {
        if let Some(other) = new_weights.get(name) {
            found.compare(&format!("{at}.plugins.score[{name:?}].weight"), weight, other);
        }
    }
    // Arguments of plugins that only one of both runs say nothing more.
    for (name, args) in &old.args {
        if let Some(other) = new.args.get(name) {
            values(Some(args), Some(other), &format!("{at}.pluginConfig[{name:?}]"), found);
        }
    }
}

/// What runs at a point.
fn names(old: &[&str], new: &[&str], at: &str, found: &mut Changes) {
    let missing = |from: &[&str], of: &[&str]| -> Vec<String> {
        of.iter().filter(|name| !from.contains(name)).map(|name| (*name).to_owned()).collect()
    };
    let (removed, added) = (missing(new, old), missing(old, new));
    for name in removed {
        found.push(at, Some(name), None);
    }
    for name in added {
        found.push(at, None, Some(name));
    }
}

/// In which order that runs which runs in both.
fn order(old: &[&str], new: &[&str], at: &str, found: &mut Changes) {
    let common = |list: &[&str], other: &[&str]| -> Vec<String> {
        list.iter().filter(|name| other.contains(name)).map(|name| (*name).to_owned()).collect()
    };
    let (before, after) = (common(old, new), common(new, old));
    if before != after {
        let show = |names: Vec<String>| Some(names.join(", "));
        found.push(&format!("{at} in order"), show(before), show(after));
    }
}

fn values(old: Option<&Value>, new: Option<&Value>, at: &str, found: &mut Changes) {
    if old == new {
        return;
    }
    if let (Some(Value::Object(one)), Some(Value::Object(other))) = (old, new) {
        let fields: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for field in fields {
            values(one.get(field), other.get(field), &format!("{at}.{field}"), found);
        }
        return;
    }
    found.push(at, old.map(Value::to_string), new.map(Value::to_string));
}

fn extenders(old: &[ExtenderConfig], new: &[ExtenderConfig], found: &mut Changes) {
    for i in 0..old.len().max(new.len()) {
        let at = format!("extenders[{i}]");
        match (old.get(i), new.get(i)) {
            (Some(old), Some(new)) => extender(old, new, &at, found),
            (Some(_), None) => found.push(&at, Some("extender".to_owned()), None),
            (None, _) => found.push(&at, None, Some("extender".to_owned())),
        }
    }
}

fn extender(old: &ExtenderConfig, new: &ExtenderConfig, at: &str, found: &mut Changes) {
    let at = |field: &str| format!("{at}.{field}");
    // Addresses may hold passwords.
    found.compare_hidden(&at("urlPrefix"), &old.url_prefix, &new.url_prefix);
    found.compare_set(&at("filterVerb"), &old.filter_verb, &new.filter_verb);
    found.compare_set(&at("preemptVerb"), &old.preempt_verb, &new.preempt_verb);
    found.compare_set(&at("prioritizeVerb"), &old.prioritize_verb, &new.prioritize_verb);
    found.compare(&at("weight"), &old.weight, &new.weight);
    found.compare_set(&at("bindVerb"), &old.bind_verb, &new.bind_verb);
    found.compare(&at("enableHTTPS"), &old.enable_https, &new.enable_https);
    found.compare_hidden(&at("tlsConfig"), &old.tls, &new.tls);
    found.compare(&at("httpTimeout"), &old.http_timeout, &new.http_timeout);
    found.compare(&at("nodeCacheCapable"), &old.node_cache_capable, &new.node_cache_capable);
    let managed = |extender: &ExtenderConfig| -> Vec<String> {
        let resources = extender.managed_resources.iter().map(|resource| {
            let ignored = if resource.ignored_by_scheduler { " (ignoredByScheduler)" } else { "" };
            format!("{}{ignored}", resource.name)
        });
        resources.collect()
    };
    found.compare(&at("managedResources"), &managed(old), &managed(new));
    found.compare(&at("ignorable"), &old.ignorable, &new.ignorable);
}
