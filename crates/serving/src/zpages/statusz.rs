//! `/statusz`: what runs here, and since when.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::accept::{Format, negotiate};
use super::{Metadata, WARNING, structured};
use crate::page::{Page, PageError, PageRequest, Reply, page};

/// What `/statusz` tells.
#[derive(Clone, Debug)]
pub struct Statusz {
    /// The component, as `kube-scheduler`.
    pub component: String,
    /// When the process started.
    pub started: Timestamp,
    /// The version of the binary.
    pub binary_version: String,
    /// The Kubernetes version that is emulated, as `1.36`.
    pub emulation_version: Option<String>,
    /// The compiler, in the text form; the structured form has a field for Go's
    /// version only, which stays empty.
    pub rust_version: Option<String>,
}

/// The page of it. It lists the site's paths itself.
#[must_use]
pub fn statusz(status: Statusz) -> Arc<dyn Page> {
    page(move |request| status.render(request, Timestamp::now()))
}

impl Statusz {
    fn render(&self, request: &PageRequest, now: Timestamp) -> Result<Reply, PageError> {
        let paths = top_paths(request.site_paths());
        let up = now.duration_since(self.started).as_secs().max(0);
        match negotiate(request.accept(), "Statusz")? {
            Format::Text => Ok(Reply::text(self.text(up, &paths))),
            Format::Structured { encoding, version } => {
                let form = Form {
                    kind: "Statusz",
                    api_version: version.api_version(),
                    metadata: Metadata { name: &self.component },
                    start_time: self.started.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
                    uptime_seconds: up,
                    go_version: "",
                    binary_version: &self.binary_version,
                    emulation_version: self.emulation_version.as_deref(),
                    paths: &paths,
                };
                structured(&form, encoding, version, "statusz")
            }
        }
    }

    fn text(&self, up: i64, paths: &[String]) -> String {
        let started = self.started.to_zoned(TimeZone::UTC).strftime("%a %b %e %H:%M:%S UTC %Y");
        let mut text = format!("\n{} statusz\n{WARNING}\n\nStarted: {started}\n", self.component);
        let (hours, minutes, seconds) = (up / 3600, up / 60 % 60, up % 60);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Up: {hours} hr {minutes:02} min {seconds:02} sec");
        if let Some(version) = &self.rust_version {
            let _ = writeln!(text, "Rust version: {version}");
        }
        let _ = writeln!(text, "Binary version: {}", self.binary_version);
        if let Some(version) = &self.emulation_version {
            let _ = writeln!(text, "Emulation version: {version}");
        }
        if !paths.is_empty() {
            let _ = writeln!(text, "Paths: {}", paths.join(" "));
        }
        text
    }
}

/// The first parts of the paths, each once, in order, without this page's own.
fn top_paths(paths: &[String]) -> Vec<String> {
    let tops: BTreeSet<&str> = paths
        .iter()
        .filter_map(|path| path.split('/').nth(1))
        .filter(|top| !top.is_empty() && *top != "statusz")
        .collect();
    tops.into_iter().map(|top| format!("/{top}")).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Form<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    start_time: String,
    uptime_seconds: i64,
    go_version: &'static str,
    binary_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    emulation_version: Option<&'a str>,
    paths: &'a [String],
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(accept: Option<&str>, expected: &Expect) -> Reply {
        let status = Statusz {
            component: "kube-scheduler".to_owned(),
            started: "2026-03-05T08:00:00Z".parse().unwrap(),
            binary_version: "0.1.0".to_owned(),
            emulation_version: Some("1.36".to_owned()),
            rust_version: Some("1.95.0".to_owned()),
        };
        let paths = ["/", "/configz", "/metrics", "/metrics/resources", "/statusz"];
        let paths: Vec<String> = paths.map(str::to_owned).to_vec();
        let request = PageRequest::new("", accept).with_paths(paths.into());
        let reply = status.render(&request, "2026-03-05T09:02:03Z".parse().unwrap()).unwrap();
        expected.assert_eq(std::str::from_utf8(&reply.body).unwrap());
        reply
    }

    #[test]
    fn text() {
        let reply = check(
            None,
            &expect![[r#"

                kube-scheduler statusz
                Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.

                Started: Thu Mar  5 08:00:00 UTC 2026
                Up: 1 hr 02 min 03 sec
                Rust version: 1.95.0
                Binary version: 0.1.0
                Emulation version: 1.36
                Paths: /configz /metrics
            "#]],
        );
        assert_eq!(reply.content_type, "text/plain; charset=utf-8");
    }

    #[test]
    fn structured_forms() {
        let json = check(
            Some("application/json;v=v1beta1;g=config.k8s.io;as=Statusz"),
            &expect![[
                r#"{"kind":"Statusz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kube-scheduler"},"startTime":"2026-03-05T08:00:00Z","uptimeSeconds":3723,"goVersion":"","binaryVersion":"0.1.0","emulationVersion":"1.36","paths":["/configz","/metrics"]}"#
            ]],
        );
        assert_eq!((json.content_type.as_str(), json.warning), ("application/json", None));
        let yaml = check(
            Some("application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz"),
            &expect![[r#"
                kind: Statusz
                apiVersion: config.k8s.io/v1alpha1
                metadata:
                  name: kube-scheduler
                startTime: "2026-03-05T08:00:00Z"
                uptimeSeconds: 3723
                goVersion: ""
                binaryVersion: "0.1.0"
                emulationVersion: "1.36"
                paths:
                - /configz
                - /metrics
            "#]],
        );
        assert!(yaml.warning.unwrap().contains("deprecated"));
    }
}
