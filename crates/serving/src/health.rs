//! Health checks and what the endpoints say of them.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use crate::page::{PageRequest, Reply};

/// Something that can be well or not.
pub trait Check: Send + Sync {
    /// The name, unique within an endpoint, as it stands in
    /// `/readyz?exclude=NAME` and `/readyz/NAME`.
    fn name(&self) -> &str;

    /// Whether it is well. Must not block: it is called for every probe.
    ///
    /// # Errors
    /// When it is not; the text says why. Only those who may read
    /// `/readyz/NAME` see it, and the log.
    fn check(&self) -> Result<(), String>;
}

/// A check from a function.
pub fn check(
    name: impl Into<String>,
    function: impl Fn() -> Result<(), String> + Send + Sync + 'static,
) -> Arc<dyn Check> {
    Arc::new(Named { name: name.into(), function })
}

/// The check that always passes: the process answers at all.
#[must_use]
pub fn ping() -> Arc<dyn Check> {
    check("ping", || Ok(()))
}

/// The check `shutdown`: fails from when `stop` is cancelled, so that nobody
/// sends more work.
#[must_use]
pub fn shutdown(stop: tokio_util::sync::CancellationToken) -> Arc<dyn Check> {
    check("shutdown", move || match stop.is_cancelled() {
        true => Err("process is shutting down".to_owned()),
        false => Ok(()),
    })
}

struct Named<F> {
    name: String,
    function: F,
}

impl<F: Fn() -> Result<(), String> + Send + Sync> Check for Named<F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn check(&self) -> Result<(), String> {
        (self.function)()
    }
}

/// The checks of one endpoint.
pub(crate) struct Health {
    /// The endpoint without its slash: `healthz`.
    name: String,
    checks: Vec<Arc<dyn Check>>,
}

impl Health {
    /// Without any check, `ping` is one.
    pub(crate) fn new(path: &str, mut checks: Vec<Arc<dyn Check>>) -> Self {
        if checks.is_empty() {
            checks.push(ping());
        }
        Self { name: path.trim_start_matches('/').to_owned(), checks }
    }

    /// The paths of the single checks.
    pub(crate) fn paths(&self) -> impl Iterator<Item = String> {
        self.checks.iter().map(|check| format!("/{}/{}", self.name, check.name()))
    }

    /// All checks that are not excluded. Reasons are withheld: everybody may
    /// read this.
    pub(crate) fn all(&self, request: &PageRequest) -> Reply {
        let excluded: Vec<&str> = request.values("exclude").collect();
        let mut lines = String::new();
        let mut failed = Vec::new();
        for check in &self.checks {
            let name = check.name();
            if excluded.contains(&name) {
                lines.push_str(&format!("[+]{name} excluded: ok\n"));
                continue;
            }
            match check.check() {
                Ok(()) => lines.push_str(&format!("[+]{name} ok\n")),
                Err(reason) => {
                    lines.push_str(&format!("[-]{name} failed: reason withheld\n"));
                    failed.push(format!("{name}: {reason}"));
                }
            }
        }
        lines.push_str(&self.not_excludable(&excluded));
        if !failed.is_empty() {
            tracing::debug!(endpoint = self.name, failed = failed.join("; "), "not healthy");
            let body = format!("{lines}{} check failed\n", self.name);
            return plain(StatusCode::INTERNAL_SERVER_ERROR, body);
        }
        if !request.has("verbose") {
            return plain(StatusCode::OK, "ok".to_owned());
        }
        plain(StatusCode::OK, format!("{lines}{} check passed\n", self.name))
    }

    /// One check, with its reason.
    pub(crate) fn one(&self, name: &str) -> Option<Reply> {
        let check = self.checks.iter().find(|check| check.name() == name)?;
        Some(match check.check() {
            Ok(()) => plain(StatusCode::OK, "ok".to_owned()),
            Err(reason) => plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("internal server error: {reason}\n"),
            ),
        })
    }

    fn not_excludable(&self, excluded: &[&str]) -> String {
        let known = |name: &&&str| self.checks.iter().any(|check| check.name() == **name);
        let mut unknown: Vec<String> =
            excluded.iter().filter(|name| !known(name)).map(|name| format!("{name:?}")).collect();
        if unknown.is_empty() {
            return String::new();
        }
        unknown.sort();
        unknown.dedup();
        let unknown = unknown.join(",");
        format!("warn: some health checks cannot be excluded: no matches for {unknown}\n")
    }
}

fn plain(status: StatusCode, body: String) -> Reply {
    Reply { status, ..Reply::text(Bytes::from(body)) }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check_all(checks: &[(&str, bool)], query: &str, status: u16, expected: &Expect) {
        let checks = checks
            .iter()
            .map(|(name, well)| {
                let well = *well;
                check(*name, move || if well { Ok(()) } else { Err("secret".to_owned()) })
            })
            .collect();
        let reply = Health::new("/readyz", checks).all(&PageRequest::new(query, None));
        assert_eq!(reply.status.as_u16(), status);
        expected.assert_eq(std::str::from_utf8(&reply.body).unwrap());
    }

    #[test]
    fn a_healthy_endpoint_says_ok() {
        check_all(&[], "", 200, &expect!["ok"]);
        check_all(&[("a", true)], "exclude=a", 200, &expect!["ok"]);
    }

    #[test]
    fn verbose_names_the_checks() {
        check_all(
            &[],
            "verbose",
            200,
            &expect![[r#"
                [+]ping ok
                readyz check passed
            "#]],
        );
        check_all(
            &[("a", true), ("b", false)],
            "verbose=1&exclude=b&exclude=z&exclude=y",
            200,
            &expect![[r#"
                [+]a ok
                [+]b excluded: ok
                warn: some health checks cannot be excluded: no matches for "y","z"
                readyz check passed
            "#]],
        );
    }

    #[test]
    fn a_failure_is_told_without_its_reason() {
        check_all(
            &[("ping", true), ("leaderElection", false)],
            "",
            500,
            &expect![[r#"
                [+]ping ok
                [-]leaderElection failed: reason withheld
                readyz check failed
            "#]],
        );
    }

    #[test]
    fn a_single_check_tells_its_reason() {
        let late = check("sync", || Err("handlers are not fully synchronized".to_owned()));
        let health = Health::new("/readyz", vec![ping(), late]);
        assert_eq!(health.one("ping").unwrap().body, "ok");
        let sync = health.one("sync").unwrap();
        assert_eq!(sync.status.as_u16(), 500);
        assert_eq!(sync.body, "internal server error: handlers are not fully synchronized\n");
        assert!(health.one("other").is_none());
    }

    #[test]
    fn shutdown_fails_once_the_process_stops() {
        let stop = tokio_util::sync::CancellationToken::new();
        let check = shutdown(stop.clone());
        assert_eq!(check.check(), Ok(()));
        stop.cancel();
        assert_eq!(check.check(), Err("process is shutting down".to_owned()));
    }
}
