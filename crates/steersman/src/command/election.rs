//! Which of several replicas schedules: flags, and what comes of them.

use anyhow::Context;
use clap::Args;
use steersman_api::duration::GoDuration;
use steersman_config::LeaderElection;
use steersman_leader_election::{Config, Election, LockKind, Timing, unique_identity};

/// The flags of kube-scheduler. Each one that is given replaces the
/// configuration's value.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Leader election")]
pub(super) struct ElectionArgs {
    /// Schedule only while this replica holds the lock; for running several of
    /// which one works. [default: true]
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    leader_elect: Option<bool>,
    /// How long the others wait after the last renewal that they saw.
    /// [default: 15s]
    #[arg(long, value_name = "DURATION")]
    leader_elect_lease_duration: Option<GoDuration>,
    /// How long the leader goes on after its last renewal; less than the lease
    /// duration. [default: 10s]
    #[arg(long, value_name = "DURATION")]
    leader_elect_renew_deadline: Option<GoDuration>,
    /// How long to wait between two tries. [default: 2s]
    #[arg(long, value_name = "DURATION")]
    leader_elect_retry_period: Option<GoDuration>,
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
}

impl ElectionArgs {
    /// Whether there is an election.
    pub(super) fn elects(&self, config: &LeaderElection) -> bool {
        self.leader_elect.unwrap_or(config.leader_elect)
    }

    /// The election to take part in.
    pub(super) fn election(
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
        let timing = Timing::new(
            self.leader_elect_lease_duration.map_or(config.lease_duration, GoDuration::to_std),
            self.leader_elect_renew_deadline.map_or(config.renew_deadline, GoDuration::to_std),
            self.leader_elect_retry_period.map_or(config.retry_period, GoDuration::to_std),
        )
        .context("the durations of the leader election do not go together")?;
        let kind = match self.leader_elect_resource_lock {
            Some(kind) => kind,
            None => config.resource_lock.parse()?,
        };
        let or = |flag: &Option<String>, config: &String| flag.as_ref().unwrap_or(config).clone();
        Ok(Config {
            namespace: or(&self.leader_elect_resource_namespace, &config.resource_namespace),
            name: or(&self.leader_elect_resource_name, &config.resource_name),
            kind,
            identity,
            timing,
            component: component.to_owned(),
        })
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
        election: ElectionArgs,
    }

    #[track_caller]
    fn check(flags: &[&str], expected: Expect) {
        let configured = LeaderElection {
            leader_elect: true,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            resource_lock: "leases".to_owned(),
            resource_name: "kube-scheduler".to_owned(),
            resource_namespace: "kube-system".to_owned(),
        };
        let said = match Cli::try_parse_from([&["x"], flags].concat()) {
            Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
            Ok(Cli { election }) if !election.elects(&configured) => "no election".to_owned(),
            Ok(Cli { election }) => match election.config(&configured, "me".to_owned(), "s") {
                Ok(Config { namespace, name, kind, timing, .. }) => {
                    format!("{kind} {namespace}/{name} {timing:?}")
                }
                Err(error) => format!("{error:#}"),
            },
        };
        expected.assert_eq(&said);
    }

    #[test]
    fn flags_replace_what_is_configured() {
        check(
            &[],
            expect![[
                r#"leases kube-system/kube-scheduler Timing { lease_duration: 15s, renew_deadline: 10s, retry_period: 2s }"#
            ]],
        );
        check(
            &["--leader-elect"],
            expect![[
                r#"leases kube-system/kube-scheduler Timing { lease_duration: 15s, renew_deadline: 10s, retry_period: 2s }"#
            ]],
        );
        check(&["--leader-elect=false"], expect!["no election"]);
        let flags = [
            "--leader-elect=true",
            "--leader-elect-lease-duration=1m30s",
            "--leader-elect-renew-deadline",
            "1m",
            "--leader-elect-retry-period=500ms",
            "--leader-elect-resource-lock=endpointsleases",
            "--leader-elect-resource-name=second",
            "--leader-elect-resource-namespace=default",
        ];
        check(
            &flags,
            expect![[
                r#"endpointsleases default/second Timing { lease_duration: 90s, renew_deadline: 60s, retry_period: 500ms }"#
            ]],
        );
    }

    #[test]
    fn wrong_flags_are_refused() {
        check(
            &["--leader-elect-lease-duration=10s"],
            expect![
                "the durations of the leader election do not go together: leaseDuration must be greater than renewDeadline"
            ],
        );
        check(
            &["--leader-elect-retry-period=-1s"],
            expect![
                "the durations of the leader election do not go together: retryPeriod must be greater than zero"
            ],
        );
        check(
            &["--leader-elect-resource-lock=pods"],
            expect![[
                r#"error: invalid value 'pods' for '--leader-elect-resource-lock <KIND>': invalid lock type "pods", allowed: leases, endpoints, configmaps, endpointsleases, configmapsleases"#
            ]],
        );
    }
}
