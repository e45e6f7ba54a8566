//! Which paths there are and what is behind them.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Method, StatusCode};
use thiserror::Error;

use crate::health::{Check, Health};
use crate::page::{Page, PageError, PageRequest, Reply, Setting};
use crate::refusal::Refusal;

/// All that is served. Built once, then given to the server.
#[derive(Default)]
pub struct Site {
    routes: BTreeMap<String, Route>,
    paths: Arc<[String]>,
}

enum Route {
    Page(Arc<dyn Page>),
    Health(Arc<Health>),
    OneCheck(Arc<Health>, String),
    Setting(Arc<dyn Setting>),
}

/// Why a path cannot be added.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum SiteError {
    /// Something is there already.
    #[error("{0:?} is served already")]
    Taken(String),
    /// Paths begin with a slash and hold no query.
    #[error("{0:?} is no path: it must begin with / and hold none of ?, #, * and blanks")]
    NoPath(String),
}

/// The largest value of a setting, in bytes.
pub(crate) const MAX_SETTING: usize = 4096;

impl Site {
    /// A site with nothing but its index at `/`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves a page at a path.
    ///
    /// # Errors
    /// When the path is taken or none.
    pub fn page(self, path: &str, page: Arc<dyn Page>) -> Result<Self, SiteError> {
        self.route(path, Route::Page(page))
    }

    /// Serves checks at a path, as `/readyz`, and each of them below it. Without
    /// checks, `ping` is the only one.
    ///
    /// # Errors
    /// When a path is taken or none: two checks of one name, for instance.
    pub fn health(mut self, path: &str, checks: Vec<Arc<dyn Check>>) -> Result<Self, SiteError> {
        let health = Arc::new(Health::new(path, checks));
        for single in health.paths() {
            let name = single.rsplit('/').next().unwrap_or_default().to_owned();
            self = self.route(&single, Route::OneCheck(health.clone(), name))?;
        }
        self.route(path, Route::Health(health))
    }

    /// Serves a value that can be read and, with `PUT`, set.
    ///
    /// # Errors
    /// When the path is taken or none.
    pub fn setting(self, path: &str, setting: Arc<dyn Setting>) -> Result<Self, SiteError> {
        self.route(path, Route::Setting(setting))
    }

    /// All paths, in order; `/` is not among them.
    #[must_use]
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    fn route(mut self, path: &str, route: Route) -> Result<Self, SiteError> {
        let odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#' | '*');
        if !path.starts_with('/') || path == "/" || path.contains(odd) {
            return Err(SiteError::NoPath(path.to_owned()));
        }
        if self.routes.contains_key(path) {
            return Err(SiteError::Taken(path.to_owned()));
        }
        self.routes.insert(path.to_owned(), route);
        self.paths = self.routes.keys().cloned().collect();
        Ok(self)
    }

    /// Whether a request of this method to this path carries a value to read.
    pub(crate) fn takes_body(&self, method: &Method, path: &str) -> bool {
        *method == Method::PUT && matches!(self.routes.get(path), Some(Route::Setting(_)))
    }

    /// The answer to a request that may be made.
    pub(crate) async fn answer(
        &self,
        method: &Method,
        path: &str,
        request: PageRequest,
        body: &[u8],
    ) -> Result<Reply, Refusal> {
        let request = request.with_paths(self.paths.clone());
        let reads = matches!(*method, Method::GET | Method::HEAD);
        let Some(route) = self.routes.get(path) else {
            return match (path, reads) {
                ("/", true) => self.index(),
                ("/", false) => Err(Refusal::MethodNotAllowed { allow: "GET, HEAD" }),
                _ => Err(Refusal::NotFound),
            };
        };
        match route {
            Route::Setting(setting) if *method == Method::PUT => set(setting.as_ref(), body),
            Route::Setting(_) if !reads => {
                Err(Refusal::MethodNotAllowed { allow: "GET, HEAD, PUT" })
            }
            _ if !reads => Err(Refusal::MethodNotAllowed { allow: "GET, HEAD" }),
            Route::Setting(setting) => Ok(Reply::text(setting.show() + "\n")),
            Route::Health(health) => Ok(health.all(&request)),
            Route::OneCheck(health, name) => health.one(name).ok_or(Refusal::NotFound),
            Route::Page(page) => page.render(&request).await.map_err(Refusal::Page),
        }
    }

    /// The paths, as an API server lists its own.
    fn index(&self) -> Result<Reply, Refusal> {
        let index = serde_json::json!({ "paths": self.paths.as_ref() });
        Reply::json(&index).map_err(Refusal::Page)
    }
}

fn set(setting: &dyn Setting, body: &[u8]) -> Result<Reply, Refusal> {
    let value = std::str::from_utf8(body).map_err(|_| {
        Refusal::Page(PageError::BadRequest("the value is not valid UTF-8".to_owned()))
    })?;
    match setting.set(value.trim()) {
        Ok(done) => Ok(Reply::text(done + "\n")),
        Err(reason) => Ok(Reply { status: StatusCode::BAD_REQUEST, ..Reply::text(reason + "\n") }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::ping;
    use crate::page::page;

    #[test]
    fn paths_are_checked_and_listed() {
        let text = || page(|_| Ok(Reply::text("x")));
        let site = Site::new()
            .page("/metrics", text())
            .and_then(|site| site.health("/healthz", vec![]))
            .unwrap();
        assert_eq!(site.paths(), ["/healthz", "/healthz/ping", "/metrics"]);
        assert_eq!(site.page("/metrics", text()).err(), Some(SiteError::Taken("/metrics".into())));
        for path in ["", "/", "metrics", "/a b", "/a?b", "/a*"] {
            let error = Site::new().page(path, text()).err();
            assert_eq!(error, Some(SiteError::NoPath(path.to_owned())));
        }
        let twice = Site::new().health("/readyz", vec![ping(), ping()]).err();
        assert_eq!(twice, Some(SiteError::Taken("/readyz/ping".into())));
    }
}
