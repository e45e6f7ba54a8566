//! What flags do that need no API server.

use std::collections::BTreeSet;
use std::path::Path;

use expect_test::expect_file;

use crate::process::{Scratch, steersman};
use crate::program::output;

/// An address at which nobody answers, so that nothing is scheduled by mistake.
const NOBODY: &str = "--master=http://127.0.0.1:1";

#[track_caller]
fn check(program: &Path, args: &[&str], code: i32, said: &str) {
    let output = output(program, args);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.contains(said), "{said:?} is not in {text}");
}

#[track_caller]
fn refused(args: &[&str], said: &str) {
    let all = [&["run", NOBODY, "--secure-port=0"], args].concat();
    check(steersman(), &all, 1, said);
}

#[test]
fn unknown_flags_are_refused_with_the_nearest_name() {
    refused(&["--leader-elekt"], "'--leader-elect'");
    refused(&["--kube-config=x"], "--kubeconfig");
    refused(&["--nothing-like-that"], "unexpected argument '--nothing-like-that'");
    refused(&["word"], "unexpected argument 'word'");
}

#[test]
fn flags_of_old_releases_say_what_came_after_them() {
    refused(&["--policy-config-file=x"], "predicates and priorities became plugins");
    refused(&["--algorithm_provider", "x"], "choose plugins in profiles");
    refused(&["--port=0"], "use --secure-port");
    refused(&["--logtostderr"], "logs go to stderr");
}

#[test]
fn values_are_checked_and_the_flag_is_named() {
    let cases = [
        ("--secure-port=70000", "--secure-port", "0 to 65535"),
        ("--secure-port=-1", "--secure-port", "0 to 65535"),
        ("--bind-address=localhost", "--bind-address", "an IP address"),
        ("--leader-elect=yes", "--leader-elect", "true, false"),
        ("--leader-elect-lease-duration=15", "--leader-elect-lease-duration", "1m30s"),
        ("--leader-elect-lease-duration=5s", "leaderElection", "renewDeadline"),
        ("--leader-elect-retry-period=10s", "--leader-elect-renew-deadline", "more than 12s"),
        ("--leader-elect-resource-lock=pods", "--leader-elect-resource-lock", "leases"),
        ("--kube-api-qps=fast", "--kube-api-qps", "a finite number"),
        ("--pod-max-in-unschedulable-pods-duration=0", "--pod-max-in-unschedulable", "more than 0"),
        ("--feature-gates=NoSuchFeature=true", "--feature-gates", "NoSuchFeature"),
        ("--emulated-version=1.35", "--emulated-version", "allowed: 1.36"),
        ("--emulated-version=wardle=1.36", "--emulated-version", "allowed: kube"),
        ("--min-compatibility-version=1.30", "--min-compatibility-version", "1.33 to 1.36"),
        ("--disabled-metrics=a-b", "--disabled-metrics", "name of a metric"),
        ("--allow-metric-labels=a=b", "--allow-metric-labels", "metric,label"),
        ("--allow-metric-labels-manifest=/nowhere", "--allow-metric-labels-manifest", "/nowhere"),
        ("--show-hidden-metrics-for-version=1.34", "--show-hidden-metrics-for-version", "1.35"),
        ("--logging-format=xml", "--logging-format", "xml"),
        ("--log-text-split-stream", "--log-text-split-stream", "LoggingAlphaOptions"),
        ("--log-flush-frequency=0s", "--log-flush-frequency", "more than 0s"),
        ("-v=-1", "-v", "2147483647"),
        ("--vmodule=x", "--vmodule", "pattern"),
        ("--tls-min-version=VersionTLS11", "--tls-min-version", "VersionTLS13"),
        ("--tls-sni-cert-key=c", "--tls-sni-cert-key", "CERT,KEY"),
        ("--tls-curve-preferences=0", "--tls-curve-preferences", "1 to 65535"),
        ("--requestheader-uid-headers=x-uid", "--requestheader-uid-headers", "X-Remote-Uid"),
        ("--requestheader-group-headers=a,,b", "--requestheader-group-headers", "empty"),
        ("--version=latest", "--version", "true, false, raw"),
        ("--tracing-endpoint=ftp://x", "--tracing-endpoint", "OTLP"),
    ];
    for (flag, name, allowed) in cases {
        refused(&[flag], name);
        refused(&[flag], allowed);
    }
}

#[test]
fn the_program_is_kube_scheduler_when_it_is_called_so() {
    let scratch = Scratch::new("name");
    let link = scratch.0.join("kube-scheduler");
    std::os::unix::fs::symlink(steersman(), &link).expect("a link");
    check(&link, &["--help"], 0, "--authentication_kubeconfig".replace('_', "-").as_str());
    check(&link, &["-h"], 0, "Schedule the pods of a cluster");
    check(&link, &["--version"], 0, "(kube-scheduler v1.36)");
    check(&link, &["--version=raw"], 0, "\"kubeScheduler\":\"v1.36\"");
    check(&link, &["--lock-object-name=x"], 1, "use --leader-elect-resource-name");
    let file = scratch.path("written.yaml");
    let written = format!("--write_config_to={file}");
    check(&link, &[&written, "--leader_elect=false"], 0, "");
    let text = std::fs::read_to_string(file).expect("the file is written");
    assert!(text.contains("leaderElect: false"), "{text}");
}

#[test]
fn help_shows_the_groups_and_the_features() {
    let help = output(steersman(), &["run", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let groups = [
        "Misc flags",
        "Secure serving flags",
        "Authentication flags",
        "Authorization flags",
        "Deprecated flags",
        "Leader election flags",
        "Feature gate flags",
        "Metrics flags",
        "Logs flags",
        "Tracing flags",
        "Global flags",
        "Examples:",
        "Features for --feature-gates",
    ];
    let at = groups.map(|group| help.find(group).unwrap_or_else(|| panic!("{group}: {help}")));
    assert!(at.is_sorted(), "{at:?}");
    // The flags of kube-scheduler v1.36, from its documentation.
    for flag in include_str!("flags.txt").lines() {
        assert!(help.contains(flag), "{flag} is not in the help");
    }
    let level = help.lines().skip_while(|line| !line.contains("-v, --v ")).nth(1);
    assert!(level.is_some_and(|text| text.contains("from 2 on the pods")), "{level:?}");
}

#[test]
fn every_flag_stands_in_the_table_of_parity() {
    let page = include_str!("../../../../docs/parity.md");
    let flags = page.split("\n## ").find(|section| section.starts_with("Flags\n"));
    let flags = flags.expect("a section about flags");
    let help = output(steersman(), &["run", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout);
    let shown = help.lines().map(str::trim).filter(|line| line.starts_with('-'));
    let names = shown.chain(include_str!("flags.txt").lines()).flat_map(str::split_whitespace);
    let names = names.filter_map(|word| word.strip_prefix("--"));
    let ends = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    let names: BTreeSet<&str> = names.filter_map(|name| name.split(ends).next()).collect();
    assert!(names.len() > 60, "{names:?}");
    let has = |name: &&&str| flags.contains(&format!("`--{name}`"));
    let missing: Vec<&&str> = names.iter().filter(|name| !has(name)).collect();
    assert!(missing.is_empty(), "docs/parity.md does not tell of {missing:?}");
}

#[test]
fn the_configuration_is_written_with_all_defaults_and_the_flags() {
    let scratch = Scratch::new("write");
    let config = scratch.file(
        "config.yaml",
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         parallelism: 3\nprofiles:\n- schedulerName: second\n  plugins: {multiPoint: {disabled: \
         [{name: NodePorts}]}}\n",
    );
    let written = scratch.path("written.yaml");
    let args = [
        "run",
        "--config",
        &config,
        "--write-config-to",
        &written,
        "--leader-elect-resource-name=second",
        "--kube-api-qps=1",
    ];
    check(steersman(), &args, 0, "--kube-api-qps has no effect with --config");
    let text = std::fs::read_to_string(&written).expect("the file is written");
    expect_file!["written.yaml"].assert_eq(&text);
    // What was written says the same again.
    let again = scratch.path("again.yaml");
    check(steersman(), &["run", "--config", &written, "--write-config-to", &again], 0, "");
    assert_eq!(std::fs::read_to_string(again).expect("the file is written"), text);
    let nowhere = ["run", "--write-config-to", "/nowhere/x"];
    check(steersman(), &nowhere, 1, "cannot write /nowhere/x");
}

#[test]
fn without_an_api_server_the_error_says_what_was_tried() {
    refused(&["--kubeconfig=/nowhere"], "cannot read kubeconfig /nowhere");
    refused(&["--config=/nowhere"], "cannot read /nowhere");
}
