//! Pages: what is served at a path.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::StatusCode;
use thiserror::Error;

/// Plain text as this crate sends it.
pub const TEXT: &str = "text/plain; charset=utf-8";
/// The text format of metrics that every scraper reads.
pub const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// JSON.
pub const JSON: &str = "application/json";

/// What is served at a path, to those who may read it.
pub trait Page: Send + Sync {
    /// The page now. It is given up after [`crate::Limits::request`].
    fn render<'a>(&'a self, request: &'a PageRequest) -> BoxFuture<'a, Result<Reply, PageError>>;
}

/// What of a request a page may look at.
#[derive(Clone, Debug, Default)]
pub struct PageRequest {
    query: Vec<(String, String)>,
    accept: Option<String>,
    paths: Arc<[String]>,
}

/// What a page shows.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status; 200 as a rule.
    pub status: StatusCode,
    /// The `Content-Type`.
    pub content_type: String,
    /// A text for a `Warning` header, code 299.
    pub warning: Option<String>,
    /// The content.
    pub body: Bytes,
}

/// Why a page cannot be shown. The text goes to the reader.
#[derive(Debug, Error)]
pub enum PageError {
    /// The query makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// There is nothing of that name.
    #[error("{0}")]
    NotFound(String),
    /// None of the formats that the reader accepts is served.
    #[error("only the following media types are accepted: {0}")]
    NotAcceptable(String),
    /// Not now.
    #[error("{0}")]
    Unavailable(String),
    /// Something went wrong; the log says what.
    #[error("the page cannot be shown")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl PageRequest {
    /// A request with a query (`a=1&b`, without the `?`) and an `Accept` header.
    #[must_use]
    pub fn new(query: &str, accept: Option<&str>) -> Self {
        let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Self { query, accept: accept.map(str::to_owned), paths: Arc::default() }
    }

    pub(crate) fn with_paths(mut self, paths: Arc<[String]>) -> Self {
        self.paths = paths;
        self
    }

    /// The first value of a parameter.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether the parameter is there, whatever its value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The names of the parameters, in order, each as often as it is there.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.query.iter().map(|(name, _)| name.as_str())
    }

    /// The `Accept` header, its lines joined.
    #[must_use]
    pub fn accept(&self) -> Option<&str> {
        self.accept.as_deref()
    }

    /// All paths of the site, in order.
    #[must_use]
    pub fn site_paths(&self) -> &[String] {
        &self.paths
    }
}

impl Reply {
    /// Content of some type.
    pub fn new(content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self {
            status: StatusCode::OK,
            content_type: content_type.into(),
            warning: None,
            body: body.into(),
        }
    }

    /// Plain text.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::new(TEXT, body)
    }

    /// A value as JSON.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn json(value: &impl serde::Serialize) -> Result<Self, PageError> {
        let body = serde_json::to_vec(value).map_err(|error| PageError::Failed(error.into()))?;
        Ok(Self::new(JSON, body))
    }
}

/// A page from a function that is quick (well below a millisecond).
pub fn page(
    function: impl Fn(&PageRequest) -> Result<Reply, PageError> + Send + Sync + 'static,
) -> Arc<dyn Page> {
    Arc::new(FromFn(function))
}

struct FromFn<F>(F);

impl<F> Page for FromFn<F>
where
    F: Fn(&PageRequest) -> Result<Reply, PageError> + Send + Sync,
{
    fn render<'a>(&'a self, request: &'a PageRequest) -> BoxFuture<'a, Result<Reply, PageError>> {
        Box::pin(async { (self.0)(request) })
    }
}

/// Something that can be read and set at a path, as kube-scheduler's
/// `/debug/flags/v`. `PUT` with the new value as the body sets it.
pub trait Setting: Send + Sync {
    /// The value now.
    fn show(&self) -> String;

    /// Sets it and says so.
    ///
    /// # Errors
    /// When the value is none; the text says what is allowed.
    fn set(&self, value: &str) -> Result<String, String>;
}
