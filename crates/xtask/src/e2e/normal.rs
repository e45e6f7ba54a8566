//! Makes outputs comparable: ages, identifiers and times differ every time.

use std::sync::LazyLock;

use regex::Regex;

/// What is replaced, in this order.
static RULES: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    const ID: &str = "[bcdfghjklmnpqrstvwxz2456789]";
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}".to_owned(), "<uid>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z".to_owned(), "<time>"),
        (
            r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"
                .to_owned(),
            "<time>",
        ),
        (format!(r"-{ID}{{8,10}}-{ID}{{5}}\b"), "-<hash>-<id>"),
        (format!(r"-{ID}{{8,10}}\b"), "-<hash>"),
        (format!(r"\b(pod-template-hash[=:] ?){ID}{{8,10}}\b"), "$1<hash>"),
        (format!(r"-{ID}{{5}}\b"), "-<id>"),
        (r"\b10\.\d+\.\d+\.\d+\b".to_owned(), "<ip>"),
        (r"127\.0\.0\.1:\d+".to_owned(), "<server>"),
        (r#"(resourceVersion"?: ?"?)\d+"#.to_owned(), "$1<version>"),
        (r"(Resource Version: +)\d+".to_owned(), "$1<version>"),
        (r"\b((\d{1,2}m)?\d+m?s|\d{1,2}m)( ago)?\b".to_owned(), "<age>"),
        (r"\(x\d+ over <age>\)".to_owned(), "(xN over <age>)"),
        (r"/tmp/[\w./-]+".to_owned(), "<file>"),
        (r"[ \t]{2,}".to_owned(), "  "),
        (r"-{2,}".to_owned(), "--"),
    ]
    .into_iter()
    .map(|(pattern, with)| (Regex::new(&pattern).expect("the pattern is valid"), with))
    .collect()
});

/// The lines of an output without what differs between two runs.
pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines().filter(|line| !is_progress(line)).map(line).collect()
}

/// Whether this is what `kubectl rollout status` prints until the rollout is
/// done: how often depends on how far it is when kubectl first looks.
fn is_progress(line: &str) -> bool {
    line.starts_with("Waiting for ") || line.starts_with("waiting for ")
}

fn line(text: &str) -> String {
    let indent = text.len() - text.trim_start_matches(' ').len();
    let (indent, rest) = text.split_at(indent);
    let mut rest = rest.trim_end().to_owned();
    for (pattern, with) in RULES.iter() {
        if let std::borrow::Cow::Owned(replaced) = pattern.replace_all(&rest, *with) {
            rest = replaced;
        }
    }
    if rest.is_empty() { String::new() } else { format!("{indent}{rest}") }
}

#[cfg(test)]
mod tests {
    use super::{line, lines};

    #[test]
    fn what_differs_between_runs_is_replaced() {
        let cases = [
            (
                "web-7d4b9c6f5-x2x4q   1/1   Running   0   3m12s",
                "web-<hash>-<id>  1/1  Running  0  <age>",
            ),
            ("  uid: 0a0a0a0a-1b1b-4c4c-8d8d-0123456789ab", "  uid: <uid>"),
            ("agent-b2c4d on 10.0.3.17", "agent-<id> on <ip>"),
            ("created 2026-01-02T03:04:05Z", "created <time>"),
            ("node-small stays", "node-small stays"),
            ("   ", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(line(text), expected);
        }
    }

    #[test]
    fn the_progress_of_a_rollout_is_left_out() {
        let text = "Waiting for deployment \"web\" rollout to finish: 0 of 3 updated replicas are \
                    available...\nwaiting for statefulset rolling update to complete 0 pods at \
                    revision db-1...\ndeployment \"web\" successfully rolled out\n";
        assert_eq!(lines(text), ["deployment \"web\" successfully rolled out"]);
    }
}
