//! Which of several replicas schedules: flags, and what comes of them.

use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::{Map, Value, json};
use steersman_api::duration::GoDuration;
use steersman_config::LeaderElection;
use steersman_leader_election::{
    Config, Election, JITTER_FACTOR, LockKind, Timing, TimingError, unique_identity,
};

use super::value::truth;

/// Each one that is given replaces the configuration's value.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Leader election flags")]
pub(in crate::command::run) struct ElectionFlags {
    /// Schedule only while this replica holds the lock; for running several of
    /// which one works. [default: true]
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = truth
    )]
    leader_elect: Option<bool>,
    /// How long the others wait after the last renewal that they saw.
    /// [default: 15s]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    leader_elect_lease_duration: Option<GoDuration>,
    /// How long the leader goes on after its last renewal; less than the lease
    /// duration. [default: 10s]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    leader_elect_renew_deadline: Option<GoDuration>,
    /// What the lock is: leases, and for old clusters endpoints, configmaps,
    /// endpointsleases or configmapsleases. [default: leases]
    #[arg(long, value_name = "KIND")]
    leader_elect_resource_lock: Option<LockKind>,
    /// The name of the lock. [default: kube-scheduler]
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<String>,
    /// The namespace of the lock. [default: kube-system]
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_namespace: Option<String>,
    /// How long to wait between two tries. [default: 2s]
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    leader_elect_retry_period: Option<GoDuration>,
}

impl ElectionFlags {
    /// Puts what is given into a configuration, and says what it replaces
    /// there. The kind of the lock is left out, as configurations know only one.
    pub(in crate::command::run) fn apply(&self, document: &mut Map<String, Value>) -> Vec<String> {
        let duration = |given: Option<GoDuration>| given.map(|given| json!(given.to_string()));
        let text = |given: &Option<String>| given.as_ref().map(|given| json!(given));
        let fields = [
            ("leader-elect", "leaderElect", self.leader_elect.map(Value::from)),
            (
                "leader-elect-lease-duration",
                "leaseDuration",
                duration(self.leader_elect_lease_duration),
            ),
            (
                "leader-elect-renew-deadline",
                "renewDeadline",
                duration(self.leader_elect_renew_deadline),
            ),
            ("leader-elect-retry-period", "retryPeriod", duration(self.leader_elect_retry_period)),
            ("leader-elect-resource-name", "resourceName", text(&self.leader_elect_resource_name)),
            (
                "leader-elect-resource-namespace",
                "resourceNamespace",
                text(&self.leader_elect_resource_namespace),
            ),
        ];
        let given = fields.into_iter().filter_map(|(flag, field, v)| Some((flag, field, v?)));
        let mut given = given.peekable();
        if given.peek().is_none() {
            return Vec::new();
        }
        let section = document.entry("leaderElection").or_insert_with(|| json!({}));
        // What is no map is reported when the configuration is read.
        let Some(section) = section.as_object_mut() else { return Vec::new() };
        let mut warnings = Vec::new();
        for (flag, field, value) in given {
            let old = section.insert(field.to_owned(), value.clone());
            if let Some(old) = old.filter(|old| *old != value) {
                warnings
                    .push(format!("--{flag} replaces {old} of leaderElection.{field} by {value}"));
            }
        }
        warnings
    }

    /// The election to take part in, with the flags in the configuration
    /// already.
    pub(in crate::command::run) fn election(
        &self,
        config: &LeaderElection,
        client: kube::Client,
        host: &str,
        component: &str,
    ) -> anyhow::Result<Election> {
        let config = self.config(config, unique_identity(host), component)?;
        Election::new(client, config).context("cannot take part in the leader election")
    }

    fn config(
        &self,
        config: &LeaderElection,
        identity: String,
        component: &str,
    ) -> anyhow::Result<Config> {
        let timing = Timing::new(config.lease_duration, config.renew_deadline, config.retry_period)
            .map_err(|error| anyhow!(unfit(error, config)))?;
        let kind = match self.leader_elect_resource_lock {
            Some(kind) => kind,
            None => config.resource_lock.parse()?,
        };
        Ok(Config {
            namespace: config.resource_namespace.clone(),
            name: config.resource_name.clone(),
            kind,
            identity,
            timing,
            component: component.to_owned(),
        })
    }
}

/// Which durations do not go together, where each is set, and what they are.
fn unfit(error: TimingError, config: &LeaderElection) -> String {
    let lease = GoDuration::from(config.lease_duration);
    let renew = GoDuration::from(config.renew_deadline);
    let retry = GoDuration::from(config.retry_period);
    match error {
        TimingError::LeaseDuration => format!(
            "leaderElection.leaseDuration (--leader-elect-lease-duration): found {lease}, allowed: \
             more than leaderElection.renewDeadline (--leader-elect-renew-deadline), which is {renew}"
        ),
        TimingError::RenewDeadline => format!(
            "leaderElection.renewDeadline (--leader-elect-renew-deadline): found {renew}, allowed: \
             more than {JITTER_FACTOR} times leaderElection.retryPeriod \
             (--leader-elect-retry-period), which is {retry}: more than {}",
            GoDuration::from(config.retry_period.mul_f64(JITTER_FACTOR))
        ),
        TimingError::RetryPeriod => format!(
            "leaderElection.retryPeriod (--leader-elect-retry-period): found {retry}, allowed: more \
             than 0s"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;
    use expect_test::{Expect, expect};

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        election: ElectionFlags,
    }

    #[track_caller]
    fn check(flags: &[&str], document: Value, expected: Expect) {
        let said = match Cli::try_parse_from([&["x"], flags].concat()) {
            Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
            Ok(Cli { election }) => {
                let mut document = document.as_object().cloned().unwrap_or_default();
                let mut said = election.apply(&mut document);
                said.push(Value::from(document).to_string());
                said.join("\n")
            }
        };
        expected.assert_eq(&said);
    }

    #[test]
    fn flags_replace_what_is_configured_and_say_so_if_it_was_something_else() {
        check(&[], json!({"parallelism": 1}), expect![[r#"{"parallelism":1}"#]]);
        check(
            &["--leader-elect"],
            json!({}),
            expect![[r#"{"leaderElection":{"leaderElect":true}}"#]],
        );
        let configured = json!({"leaderElection": {"resourceName": "a", "leaseDuration": "15s"}});
        let flags = [
            "--leader-elect=F",
            "--leader-elect-lease-duration=15s",
            "--leader-elect-renew-deadline",
            "1m",
            "--leader-elect-retry-period=500ms",
            "--leader-elect-resource-name=second",
            "--leader-elect-resource-namespace=default",
        ];
        check(
            &flags,
            configured,
            expect![[r#"
            --leader-elect-resource-name replaces "a" of leaderElection.resourceName by "second"
            {"leaderElection":{"leaderElect":false,"leaseDuration":"15s","renewDeadline":"1m0s","resourceName":"second","resourceNamespace":"default","retryPeriod":"500ms"}}"#]],
        );
        check(
            &["--leader-elect"],
            json!({"leaderElection": []}),
            expect![[r#"{"leaderElection":[]}"#]],
        );
    }

    #[test]
    fn wrong_flags_are_refused() {
        check(
            &["--leader-elect-lease-duration=15"],
            json!({}),
            expect![[
                r#"error: invalid value '15' for '--leader-elect-lease-duration <DURATION>': found "15", allowed: a duration such as "1m30s""#
            ]],
        );
        check(
            &["--leader-elect", "false"],
            json!({}),
            expect!["error: unexpected argument 'false' found"],
        );
        check(
            &["--leader-elect-resource-lock=pods"],
            json!({}),
            expect![[
                r#"error: invalid value 'pods' for '--leader-elect-resource-lock <KIND>': invalid lock type "pods", allowed: leases, endpoints, configmaps, endpointsleases, configmapsleases"#
            ]],
        );
    }

    fn configured(seconds: [u64; 3]) -> LeaderElection {
        let [lease_duration, renew_deadline, retry_period] = seconds.map(Duration::from_secs);
        LeaderElection {
            leader_elect: true,
            lease_duration,
            renew_deadline,
            retry_period,
            resource_lock: "leases".to_owned(),
            resource_name: "kube-scheduler".to_owned(),
            resource_namespace: "kube-system".to_owned(),
        }
    }

    #[test]
    fn durations_that_do_not_go_together_are_named_with_their_flags_and_values() {
        #[track_caller]
        fn check(seconds: [u64; 3], expected: Expect) {
            let config = configured(seconds);
            let refused = ElectionFlags::default().config(&config, "me".to_owned(), "s");
            expected
                .assert_eq(&refused.err().map(|error| format!("{error:#}")).unwrap_or_default());
        }
        check(
            [15, 10, 10],
            expect![
                "leaderElection.renewDeadline (--leader-elect-renew-deadline): found 10s, allowed: more than 1.2 times leaderElection.retryPeriod (--leader-elect-retry-period), which is 10s: more than 12s"
            ],
        );
        check(
            [10, 10, 2],
            expect![
                "leaderElection.leaseDuration (--leader-elect-lease-duration): found 10s, allowed: more than leaderElection.renewDeadline (--leader-elect-renew-deadline), which is 10s"
            ],
        );
        check(
            [15, 10, 0],
            expect![
                "leaderElection.retryPeriod (--leader-elect-retry-period): found 0s, allowed: more than 0s"
            ],
        );
        check([15, 10, 8], expect![[""]]);
    }

    #[test]
    fn the_kind_of_the_lock_is_the_flag_or_the_configuration() {
        let configured = configured([15, 10, 2]);
        for (flags, kind) in [
            (&["x"][..], "leases"),
            (&["x", "--leader-elect-resource-lock=endpointsleases"], "endpointsleases"),
        ] {
            let Cli { election } = Cli::try_parse_from(flags).unwrap();
            let config = election.config(&configured, "me".to_owned(), "s").unwrap();
            assert_eq!(config.kind.to_string(), kind);
        }
    }
}
