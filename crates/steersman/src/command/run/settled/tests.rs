use clap::Parser;
use expect_test::{Expect, expect};

use super::*;

#[derive(Parser)]
#[command(args_override_self = true)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
}

fn source(flags: &[&str]) -> Source {
    let flags = Cli::try_parse_from([&["x"], flags].concat()).unwrap_or_else(|e| panic!("{e}"));
    Source {
        flags: flags.flags,
        registry: steersman_plugins::table::in_tree(),
        gates: FeatureGates::default(),
    }
}

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

/// What of a configuration flags can set, and what is said about it.
#[track_caller]
fn check(flags: &[&str], file: Option<&str>, expected: Expect) {
    let text = file.map(|fields| format!("{HEAD}{fields}"));
    let said = match source(flags).settle(text.as_deref()) {
        Err(unusable) => unusable.problems.join("\n"),
        Ok(Settled { config, qps, warnings, .. }) => {
            let Config { leader_election: l, client_connection: c, .. } = &config;
            let mut lines = vec![
                format!(
                    "{} {}/{} {:?} {:?} {:?}",
                    if l.leader_elect { "elects" } else { "alone" },
                    l.resource_namespace,
                    l.resource_name,
                    l.lease_duration,
                    l.renew_deadline,
                    l.retry_period
                ),
                format!("kubeconfig {:?} qps {qps:?} burst {}", c.kubeconfig, c.burst),
                format!(
                    "profiling {} {}",
                    config.enable_profiling, config.enable_contention_profiling
                ),
            ];
            lines.extend(warnings);
            lines.join("\n")
        }
    };
    expected.assert_eq(&said);
}

#[test]
fn without_a_file_flags_count_and_say_where_they_belong() {
    check(
        &[],
        None,
        expect![[r#"
        elects kube-system/kube-scheduler 15s 10s 2s
        kubeconfig "" qps None burst 100
        profiling true true"#]],
    );
    let flags = [
        "--kubeconfig=a",
        "--kube-api-qps=7.5",
        "--kube-api-burst",
        "9",
        "--kube-api-content-type=application/json",
        "--profiling=false",
        "--contention-profiling=f",
        "--leader-elect=false",
    ];
    check(
        &flags,
        None,
        expect![[r#"
        alone kube-system/kube-scheduler 15s 10s 2s
        kubeconfig "a" qps Some(7.5) burst 9
        profiling false false
        --contention-profiling is deprecated: set enableContentionProfiling in a file given with --config
        --kube-api-burst is deprecated: set clientConnection.burst in a file given with --config
        --kube-api-content-type is deprecated: set clientConnection.contentType in a file given with --config
        --kube-api-qps is deprecated: set clientConnection.qps in a file given with --config
        --profiling is deprecated: set enableProfiling in a file given with --config"#]],
    );
    check(
        &["--kube-api-qps=0"],
        None,
        expect![[r#"
        elects kube-system/kube-scheduler 15s 10s 2s
        kubeconfig "" qps None burst 100
        profiling true true
        --kube-api-qps is deprecated: set clientConnection.qps in a file given with --config"#]],
    );
    check(
        &["--pod-max-in-unschedulable-pods-duration=1m"],
        None,
        expect![[r#"
        elects kube-system/kube-scheduler 15s 10s 2s
        kubeconfig "" qps None burst 100
        profiling true true
        --pod-max-in-unschedulable-pods-duration is deprecated and will go away"#]],
    );
}

#[test]
fn with_a_file_flags_of_the_election_count_and_deprecated_ones_do_not() {
    let file = "leaderElection: {resourceName: a, leaseDuration: 15s}\n\
                clientConnection: {qps: 3, burst: 4}\n";
    check(
        &[],
        Some(file),
        expect![[r#"
        elects kube-system/a 15s 10s 2s
        kubeconfig "" qps Some(3.0) burst 4
        profiling true true"#]],
    );
    let flags = [
        "--leader-elect-resource-name=b",
        "--leader-elect-lease-duration=15s",
        "--leader-elect-retry-period=1s",
        "--kube-api-qps=7.5",
        "--profiling",
        "--kubeconfig=k",
    ];
    check(
        &flags,
        Some(file),
        expect![[r#"
        elects kube-system/b 15s 10s 1s
        kubeconfig "k" qps Some(3.0) burst 4
        profiling true true
        --kube-api-qps has no effect with --config: set clientConnection.qps in the file
        --profiling has no effect with --config: set enableProfiling in the file
        --leader-elect-resource-name replaces "a" of leaderElection.resourceName by "b""#]],
    );
    check(
        &["--kubeconfig=k"],
        Some("clientConnection: {kubeconfig: f}"),
        expect![[r#"
        elects kube-system/kube-scheduler 15s 10s 2s
        kubeconfig "f" qps None burst 100
        profiling true true
        --kubeconfig has no effect: the file sets clientConnection.kubeconfig"#]],
    );
}

#[test]
fn what_flags_and_file_come_to_is_checked_as_a_whole() {
    check(
        &["--leader-elect-lease-duration=10s"],
        None,
        expect![[r#"
        elects kube-system/kube-scheduler 10s 10s 2s
        kubeconfig "" qps None burst 100
        profiling true true"#]],
    );
    check(
        &["--leader-elect-retry-period=-1s"],
        None,
        expect!["leaderElection.retryPeriod: found -1s, allowed: more than 0s"],
    );
    let file = "leaderElection: {leaseDuration: 1s}";
    check(
        &["--leader-elect-lease-duration=1m"],
        Some(file),
        expect![[r#"
        elects kube-system/kube-scheduler 60s 10s 2s
        kubeconfig "" qps None burst 100
        profiling true true
        --leader-elect-lease-duration replaces "1s" of leaderElection.leaseDuration by "1m0s""#]],
    );
    check(
        &["--leader-elect=false"],
        Some("leaderElection: [1]"),
        expect!["leaderElection: found [1], allowed: an object"],
    );
    check(
        &["--leader-elect=false"],
        Some("a: ["),
        expect!["line 3, column 4: unclosed bracket '['"],
    );
}

#[test]
fn only_a_rate_that_is_written_down_limits() {
    assert!(sets_qps("clientConnection: {qps: 20}"));
    assert!(sets_qps("{\"clientConnection\": {\"qps\": -1.5}}"));
    assert!(!sets_qps("clientConnection: {burst: 20}"));
    assert!(!sets_qps("clientConnection: {qps: 0}"));
    assert!(!sets_qps("parallelism: 3"));
}
