//! Extenders that are slow, broken or hostile: always an error that names them,
//! in bounded time.

use std::time::Duration;

use serde_json::json;
use steersman_config::config::ExtenderConfig;
use tokio::time::Instant;

use crate::lab::{Lab, a_pod, config, nodes};
use crate::server::Does;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";

/// What comes of a filter call, where `PORT` stands for the port.
#[track_caller]
fn failure(lab: &Lab, does: Does, patience: Duration) -> String {
    let server = lab.server(does);
    let config = ExtenderConfig { http_timeout: patience, ..config(server.port) };
    let extender = lab.connect(&config).expect("a good configuration");
    let one = nodes(&["n1"]);
    let started = Instant::now();
    let answer = extender.filter(&a_pod(), &one.iter().collect::<Vec<_>>());
    let error = answer.expect_err("the server misbehaves");
    let took = started.elapsed();
    assert!(took < patience + SLACK, "{took:?}");
    error.to_string().replace(&server.port.to_string(), "PORT")
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);
/// By how much a busy machine may exceed a limit: less than waiting without one.
const SLACK: Duration = Duration::from_secs(30);

#[track_caller]
fn check_answer(body: &str, expected: &str) {
    let found = failure(&Lab::new(), Does::Says(body.to_owned()), LONG);
    let found = found.split(" at line").next().unwrap_or_default();
    assert_eq!(found, format!("extender \"http://127.0.0.1:PORT/sample/\": {expected}"));
}

#[test]
fn answers_that_cannot_be_read_say_where() {
    for (body, expected) in [
        ("", "the answer to filter cannot be read: EOF while parsing a value"),
        ("<html>no such page</html>", "the answer to filter cannot be read: expected value"),
        ("[1]", "the answer to filter cannot be read: invalid type: sequence, expected an object"),
        (
            r#"{"Nodes": {"items": [{"metadata": {"name": 7}}]}}"#,
            "the answer to filter cannot be read: Nodes.items[0].metadata.name: invalid type: \
             integer `7`, expected a string",
        ),
        (
            r#"{"FailedNodes": ["n1"]}"#,
            "the answer to filter cannot be read: FailedNodes: invalid type: sequence, expected a \
             map",
        ),
        (
            r#"{"NodeNames": "n1"}"#,
            "the answer to filter cannot be read: NodeNames: invalid type: string \"n1\", expected \
             a sequence",
        ),
        (
            r#"{"NodeNames": ["n1""#,
            "the answer to filter cannot be read: NodeNames: EOF while parsing a list",
        ),
    ] {
        check_answer(body, expected);
    }
}

#[test]
fn deep_and_odd_answers_are_errors_too() {
    let deep = format!("{{\"Nodes\": {}", "[".repeat(100_000));
    let strange = r#"{"NodeNames":["\ud800"]}"#.to_owned();
    for body in [deep, strange] {
        let found = failure(&Lab::new(), Does::Says(body), LONG);
        assert!(found.contains("the answer to filter cannot be read"), "{found}");
        assert!(found.len() < 2000, "{}", found.len());
    }
    let long = json!({"NodeNames": "x".repeat(1 << 20)}).to_string();
    assert!(failure(&Lab::new(), Does::Says(long), LONG).len() < 2000);
    let long = json!({"Error": "x".repeat(1 << 20)}).to_string();
    assert!(failure(&Lab::new(), Does::Says(long), LONG).len() < 2000);
}

#[test]
fn other_codes_than_200_are_failures_and_redirects_are_not_followed() {
    for (line, expected) in [
        ("500 Internal Server Error", "code 500"),
        ("404 Not Found", "code 404"),
        ("204 No Content", "code 204"),
        ("307 Temporary Redirect\r\nlocation: /other", "code 307, redirects are not followed"),
    ] {
        let answer = format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n");
        let found = failure(&Lab::new(), Does::Sends(answer.into_bytes()), LONG);
        let start = "failed filter with extender at URL http://127.0.0.1:PORT/sample/filter, ";
        assert_eq!(found, format!("{start}{expected}"));
    }
}

#[test]
fn broken_connections_are_failures() {
    let cut =
        format!("{}{{\"NodeNames\": [", OK.replace("\r\n\r\n", "\r\ncontent-length: 99\r\n\r\n"));
    for does in [
        Does::Leaves,
        Does::Sends(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
        Does::Sends(cut.into_bytes()),
    ] {
        let found = failure(&Lab::new(), does, LONG);
        assert!(found.starts_with("Post \"http://127.0.0.1:PORT/sample/filter\": "), "{found}");
    }
    let lab = Lab::new();
    let port = lab.server(Does::Leaves).port;
    let nobody = lab.connect(&ExtenderConfig { http_timeout: LONG, ..config(port) });
    let one = nodes(&["n1"]);
    let answer = nobody.expect("fine so far").filter(&a_pod(), &one.iter().collect::<Vec<_>>());
    assert!(answer.unwrap_err().to_string().starts_with("Post "));
}

#[test]
fn slow_answers_end_with_the_time() {
    for does in [Does::Waits, Does::Drips("HTTP/1.1 200 OK\r\nx-slow:"), Does::Drips(OK)] {
        let found = failure(&Lab::new(), does, SHORT);
        assert_eq!(
            found,
            "Post \"http://127.0.0.1:PORT/sample/filter\": no complete answer within 200ms"
        );
    }
}

#[test]
fn endless_answers_are_cut_off() {
    let found = failure(&Lab::new(), Does::Floods(OK, "{\"NodeNames\": [\"n1\"]} "), LONG);
    assert_eq!(
        found,
        "Post \"http://127.0.0.1:PORT/sample/filter\": the answer is longer than 67108864 bytes"
    );
    // So are endless headers.
    let found = failure(&Lab::new(), Does::Floods("HTTP/1.1 200 OK\r\n", "x-more: y\r\n"), LONG);
    assert!(found.starts_with("Post "), "{found}");
}

#[test]
fn every_verb_is_bounded() {
    let lab = Lab::new();
    let server = lab.server(Does::Waits);
    let config = ExtenderConfig { http_timeout: SHORT, ..config(server.port) };
    let extender = lab.connect(&config).expect("a good configuration");
    let one = nodes(&["n1"]);
    let (pod, one, node): (_, Vec<_>, _) = (a_pod(), one.iter().collect(), "n1".into());
    let started = Instant::now();
    let errors = [
        extender.prioritize(&pod, &one).wait().unwrap_err(),
        extender.preempt(&pod, &[]).unwrap_err(),
        lab.block_on(extender.bind(&pod, &node)).unwrap_err(),
    ];
    assert!(started.elapsed() < SLACK);
    for (error, verb) in errors.iter().zip(["prioritize", "preempt", "bind"]) {
        let url = format!("/sample/{verb}\": no complete answer within 200ms");
        assert!(error.to_string().ends_with(&url), "{error}");
    }
}

#[test]
fn names_that_do_not_resolve_are_failures() {
    let lab = Lab::new();
    let prefix = "http://no-such-host.invalid/x".to_owned();
    let config = ExtenderConfig { url_prefix: prefix, http_timeout: SHORT, ..config(1) };
    let extender = lab.connect(&config).expect("a good configuration");
    let one = nodes(&["n1"]);
    let started = Instant::now();
    let answer = extender.filter(&a_pod(), &one.iter().collect::<Vec<_>>());
    assert!(answer.unwrap_err().to_string().starts_with("Post \"http://no-such-host.invalid/x/"));
    assert!(started.elapsed() < SLACK);
}

#[test]
fn control_characters_in_answers_are_made_harmless() {
    const EVIL: &str = "boom\nE1130 forged\u{1b}[2J\u{9b}31m";
    const TAME: &str = "boom E1130 forged\u{fffd}[2J\u{fffd}31m";
    let lab = Lab::new();
    let one = nodes(&["n1"]);
    let (pod, one, node): (_, Vec<_>, _) = (a_pod(), one.iter().collect(), "n1".into());
    let facing = |answer: serde_json::Value| lab.facing(Does::Says(answer.to_string()));

    let (extender, _server) = facing(json!({
        "FailedNodes": {"n1": EVIL}, "FailedAndUnresolvableNodes": {EVIL: EVIL}, "NodeNames": [EVIL],
    }));
    let answer = extender.filter(&pod, &one).expect("an answer");
    assert_eq!(answer.failed, [("n1".into(), TAME.to_owned())].into());
    assert_eq!(answer.failed_for_good, [(TAME.into(), TAME.to_owned())].into());

    let (extender, _server) = facing(json!({"Error": EVIL}));
    assert_eq!(extender.filter(&pod, &one).unwrap_err().to_string(), TAME);
    assert_eq!(lab.block_on(extender.bind(&pod, &node)).unwrap_err().to_string(), TAME);

    let (extender, _server) = facing(json!([{"Host": EVIL, "Score": 1}]));
    assert_eq!(extender.prioritize(&pod, &one).wait().expect("an answer")[0].node, TAME);

    // Keys of maps stand in the path of what cannot be read.
    for answer in [
        json!({"FailedNodes": {EVIL: 7}}),
        json!({"NodeNameToMetaVictims": {EVIL: {"NumPDBViolations": -1}}}),
        json!({"NodeNameToMetaVictims": {EVIL: 7}}),
    ] {
        let (extender, _server) = facing(answer.clone());
        let error = match answer.get("FailedNodes") {
            Some(_) => extender.filter(&pod, &one).unwrap_err(),
            None => extender.preempt(&pod, &[]).unwrap_err(),
        };
        assert!(error.0.contains(TAME) && !error.0.contains(char::is_control), "{error:?}");
    }
}

#[test]
fn an_extender_is_named_once() {
    // `{}` is no list of priorities, and `[]` no answer to the others.
    let lab = Lab::new();
    let one = nodes(&["n1"]);
    let (pod, one, node): (_, Vec<_>, _) = (a_pod(), one.iter().collect(), "n1".into());
    for ignorable in [false, true] {
        for body in ["{}", "[]"] {
            let server = lab.server(Does::Says(body.to_owned()));
            let config = ExtenderConfig { ignorable, ..config(server.port) };
            let extender = lab.connect(&config).expect("a good configuration");
            let errors = match body {
                "{}" => vec![("prioritize", extender.prioritize(&pod, &one).wait().unwrap_err())],
                _ => vec![
                    ("filter", extender.filter(&pod, &one).unwrap_err()),
                    ("preempt", extender.preempt(&pod, &[]).unwrap_err()),
                    ("bind", lab.block_on(extender.bind(&pod, &node)).unwrap_err()),
                ],
            };
            for (verb, error) in errors {
                // Whoever leaves an extender out begins with its name.
                let is_left_out = ignorable || verb == "prioritize";
                let n_named = error.0.matches(extender.name()).count();
                assert_eq!(n_named, usize::from(!is_left_out), "{verb}, {ignorable}: {error}");
            }
        }
    }
}

#[test]
fn odd_victims_are_errors() {
    for (answer, expected) in [
        (
            json!({"NodeNameToMetaVictims": {"n1": {"Pods": [], "NumPDBViolations": -1}}}),
            "NodeNameToMetaVictims.n1.NumPDBViolations: found -1, allowed: 0 or more",
        ),
        (
            json!({"NodeNameToMetaVictims": {"n1": {"Pods": ["uid"]}}}),
            "the answer to preempt cannot be read: NodeNameToMetaVictims.n1.Pods[0]: invalid type: \
             string \"uid\", expected an object",
        ),
    ] {
        let lab = Lab::new();
        let (extender, _server) = lab.facing(Does::Says(answer.to_string()));
        let error = extender.preempt(&a_pod(), &[]).unwrap_err().to_string();
        let error = error.split(" at line").next().unwrap_or_default();
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn odd_scores_are_errors() {
    for body in [r#"[{"Host": "n1", "Score": "7"}]"#, r#"[{"Host": "n1", "Score": 1.5}]"#, "{}"] {
        let lab = Lab::new();
        let (extender, _server) = lab.facing(Does::Says(body.to_owned()));
        let one = nodes(&["n1"]);
        let (pod, one): (_, Vec<_>) = (a_pod(), one.iter().collect());
        let error = extender.prioritize(&pod, &one).wait().unwrap_err().to_string();
        assert!(error.contains("the answer to prioritize cannot be read"), "{error}");
    }
}
