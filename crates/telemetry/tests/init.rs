//! The program's subscriber. One test: there is one a process.

use steersman_telemetry::{Options, init, logs, traces};

#[test]
fn a_subscriber_that_is_set_already_stays() {
    let verbosity = "4".parse().unwrap();
    let logs = logs::Options { verbosity, ..logs::Options::default() };
    let first = init(Options { logs, traces: None }).unwrap();
    assert!(first.is_installed());
    assert!(tracing::enabled!(target: "steersman_x", tracing::Level::DEBUG));
    assert!(!tracing::enabled!(target: "other", tracing::Level::INFO));

    // Would export spans if it were installed. Nobody listens on that port.
    let traces = traces::Options::new("http://127.0.0.1:9".parse().unwrap(), "test");
    let second = init(Options { logs: logs::Options::default(), traces: Some(traces) }).unwrap();
    assert!(!second.is_installed());
    assert!(tracing::info_span!(target: "steersman_x", "span").is_disabled());

    first.logs().set_verbosity("0".parse().unwrap());
    assert!(!tracing::enabled!(target: "steersman_x", tracing::Level::DEBUG));
    tracing::info!(target: "steersman_x", "written before the guard is gone");
    drop(second);
    drop(first);
    tracing::info!(target: "steersman_x", "and after");
}
