//! Makes extenders from their configuration.

use std::sync::Arc;

use http::Uri;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::proxy::matcher::Matcher;
use steersman_api::problem::FieldPath;
use steersman_config::config::{ExtenderConfig, ExtenderTls};
use steersman_framework::extender::Extender;
use tokio::runtime::Handle;

use crate::client::Client;
use crate::error::Error;
use crate::http_extender::{HttpExtender, Verb, Verbs};
use crate::permission::Permission;
use crate::route::Route;
use crate::tls;

/// How to call extenders, beyond what the configuration says.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The W3C trace context to send along as `traceparent`. Asked before each
    /// call, on the thread that calls.
    pub traceparent: Option<fn() -> Option<String>>,
    /// The proxies to use.
    pub proxies: Proxies,
    /// Whether pods may be bound still; always, if nobody is to be asked. The other
    /// verbs write nothing and are not asked for.
    pub may_bind: Option<Permission>,
}

/// Where proxies are looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proxies {
    /// In `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, as the reference does.
    /// Extenders on this machine are reached without one.
    #[default]
    FromEnvironment,
    /// Nowhere.
    None,
}

/// Makes the extenders of a configuration, in its order. Reads certificates;
/// nobody is called yet.
///
/// Calls are carried out by the runtime of `io`, which needs time and IO. The
/// thread that schedules blocks while it waits: it must not be one that the
/// runtime depends on.
///
/// # Errors
/// When a URL, a certificate or a key cannot be used. The error says where in
/// the configuration it stands.
pub fn connect(
    extenders: &[ExtenderConfig],
    io: &Handle,
    options: &Options,
) -> Result<Vec<Arc<dyn Extender>>, Error> {
    let proxies = match options.proxies {
        Proxies::FromEnvironment => Some(Arc::new(Matcher::from_env())),
        Proxies::None => None,
    };
    let root = FieldPath::root().field("extenders");
    let mut connected: Vec<Arc<dyn Extender>> = Vec::with_capacity(extenders.len());
    for (i, config) in extenders.iter().enumerate() {
        let route = Route::new(proxies.clone());
        let extender = one(config, &root.index(i), route, io, options)?;
        connected.push(Arc::new(extender));
    }
    Ok(connected)
}

fn one(
    config: &ExtenderConfig,
    at: &FieldPath,
    route: Route,
    io: &Handle,
    options: &Options,
) -> Result<HttpExtender, Error> {
    let prefix = prefix(config, &at.field("urlPrefix"))?;
    let verb = |verb: Option<&String>, field: &str| {
        verb.map(|verb| verb_of(prefix, verb, &at.field(field))).transpose()
    };
    let verbs = Verbs {
        filter: verb(config.filter_verb.as_ref(), "filterVerb")?,
        prioritize: verb(config.prioritize_verb.as_ref(), "prioritizeVerb")?,
        preempt: verb(config.preempt_verb.as_ref(), "preemptVerb")?,
        bind: verb(config.bind_verb.as_ref(), "bindVerb")?,
    };
    let is_secure = prefix.starts_with("https:");
    let (none, tls_at) = (ExtenderTls::default(), at.field("tlsConfig"));
    let given = config.tls.as_ref().unwrap_or(&none);
    if is_secure && config.enable_https && !given.insecure && !names_authorities(given) {
        tracing::warn!(
            extender = prefix,
            "{tls_at} names no authorities: the certificate is checked against those of the \
             system (kube-scheduler would not check it; insecure: true says so)"
        );
    }
    // Without HTTPS nothing is trusted and nothing has to be loaded.
    let trusted = if is_secure { given } else { &ExtenderTls { insecure: true, ..given.clone() } };
    let builder =
        HttpsConnectorBuilder::new().with_tls_config(tls::client_config(trusted, &tls_at)?);
    let builder = builder.https_or_http();
    let builder = match tls::server_name(given, &tls_at)? {
        Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
        None => builder,
    };
    let connector = builder.enable_http1().wrap_connector(route.clone());
    let limit = config.http_timeout;
    Ok(HttpExtender {
        name: config.url_prefix.clone(),
        client: Client::new(connector, route, io.clone(), limit, options.traceparent),
        may_bind: options.may_bind.clone(),
        verbs,
        weight: config.weight,
        ignorable: config.ignorable,
        knows_nodes: config.node_cache_capable,
        managed: config.managed_resources.iter().map(|resource| resource.name.clone()).collect(),
    })
}

fn names_authorities(tls: &ExtenderTls) -> bool {
    tls.ca_file.is_some() || !tls.ca_data.is_empty()
}

/// The prefix without slashes at its end.
pub(crate) fn prefix<'a>(config: &'a ExtenderConfig, at: &FieldPath) -> Result<&'a str, Error> {
    const ALLOWED: &str = "http:// or https://, a host, and a path if need be; no user or password";
    let text = config.url_prefix.trim_end_matches('/');
    let invalid = |found: &str| Error::Invalid {
        at: at.clone(),
        found: format!("{found:?}"),
        allowed: ALLOWED,
    };
    let uri: Uri = text.parse().map_err(|_| invalid(&config.url_prefix))?;
    let has_scheme = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    if authority.contains('@') {
        // What stands before the @ is a secret.
        return Err(invalid("a URL with a user or a password"));
    }
    if !has_scheme || uri.host().is_none_or(str::is_empty) {
        return Err(invalid(&config.url_prefix));
    }
    Ok(text)
}

pub(crate) fn verb_of(prefix: &str, verb: &str, at: &FieldPath) -> Result<Verb, Error> {
    let url: Uri = format!("{prefix}/{verb}").parse().map_err(|_| Error::Invalid {
        at: at.clone(),
        found: format!("{verb:?}"),
        allowed: "a path, escaped as in URLs",
    })?;
    Ok(Verb { name: verb.to_owned(), url })
}
