//! Whom to believe, now: from files and from the cluster, read again and again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use parking_lot::RwLock;
use rustls::pki_types::{CertificateDer, UnixTime};

use super::certificate::{self, Authority};
use super::lookup::{LookupError, Published, lookup};
use super::proxy::ProxyHeaders;
use super::{AuthenticationError, AuthenticationOptions};
use crate::chain;
use crate::tls::read_certificates;
use crate::user::User;

/// How long the cluster's answer may take.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest pause after a failure.
const RETRY: Duration = Duration::from_secs(10);

/// Whom to believe.
#[derive(Default)]
pub(super) struct Trust {
    clients: Option<Authority>,
    proxy: Option<Proxy>,
}

#[derive(Clone)]
struct Proxy {
    authority: Authority,
    allowed_names: Vec<String>,
    headers: ProxyHeaders,
}

impl Trust {
    /// The user that a front proxy names, if it is one.
    pub(super) fn user_of_proxy(
        &self,
        headers: &HeaderMap,
        certificates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Option<User> {
        let proxy = self.proxy.as_ref()?;
        // Cheapest first: most requests come without these headers.
        let user = proxy.headers.user(headers)?;
        let name = certificate::common_name(certificates.first()?).unwrap_or_default();
        let is_allowed = proxy.allowed_names.is_empty() || proxy.allowed_names.contains(&name);
        (is_allowed && proxy.authority.vouches(certificates, now)).then_some(user)
    }

    /// The user that a certificate names.
    pub(super) fn user_of_certificate(
        &self,
        certificates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Option<User> {
        let authority = self.clients.as_ref()?;
        let leaf = certificates.first()?;
        authority.vouches(certificates, now).then(|| certificate::user(leaf)).flatten()
    }
}

/// Where trust comes from, and the trust in force.
pub(super) struct Trusts {
    options: AuthenticationOptions,
    client: Option<kube::Client>,
    current: RwLock<Arc<Trust>>,
}

impl Trusts {
    pub(super) async fn start(
        options: AuthenticationOptions,
        client: Option<kube::Client>,
    ) -> Result<Self, AuthenticationError> {
        let trusts = Self { options, client, current: RwLock::default() };
        if let Some(error) = trusts.refresh().await? {
            if !trusts.options.tolerate_lookup_failure {
                return Err(AuthenticationError::Lookup(error));
            }
            tracing::warn!(error = chain(&error), "client certificates may not be accepted");
        }
        Ok(trusts)
    }

    pub(super) fn current(&self) -> Arc<Trust> {
        self.current.read().clone()
    }

    /// Reads everything again now and then. What cannot be read leaves all as it
    /// was.
    pub(super) async fn keep_fresh(&self) {
        let every = self.options.refresh_every;
        let mut pause = every;
        loop {
            tokio::time::sleep(pause).await;
            pause = every;
            match self.refresh().await {
                Ok(None) => {}
                Ok(Some(error)) => {
                    pause = every.min(RETRY);
                    tracing::debug!(
                        error = chain(&error),
                        "cannot look up whom the cluster trusts"
                    );
                }
                Err(error) => {
                    tracing::warn!(error = chain(&error), "still trusting the same authorities");
                }
            }
        }
    }

    /// Files must be readable; whether the cluster answers is for the caller to
    /// judge. What is in force changes with the files even when it does not.
    async fn refresh(&self) -> Result<Option<LookupError>, AuthenticationError> {
        let published = match &self.client {
            Some(client) if self.asks_cluster() => {
                match tokio::time::timeout(LOOKUP_TIMEOUT, lookup(client)).await {
                    Ok(answer) => answer.map(Some),
                    Err(_) => Err(LookupError::TimedOut),
                }
            }
            _ => Ok(None),
        };
        let old = self.current();
        let header = &self.options.request_header;
        let (published, failure) = match published {
            Ok(published) => (published, None),
            Err(error) => (None, Some(error)),
        };
        let clients = match (&self.options.client_ca_file, &published) {
            (Some(path), _) => Some(authority(path)?),
            (None, Some(published)) => Authority::new(published.client_ca.clone()),
            (None, None) => old.clients.clone(),
        };
        let proxy = match (&header.client_ca_file, published) {
            (Some(path), _) => Some(Proxy {
                authority: authority(path)?,
                allowed_names: header.allowed_names.clone(),
                headers: ProxyHeaders::from(header),
            }),
            (None, Some(published)) => published_proxy(published),
            (None, None) => old.proxy.clone(),
        };
        *self.current.write() = Arc::new(Trust { clients, proxy });
        Ok(failure)
    }

    /// Whether anything is left for the cluster to say.
    fn asks_cluster(&self) -> bool {
        let given = &self.options;
        let all = given.client_ca_file.is_some() && given.request_header.client_ca_file.is_some();
        !given.skip_lookup && !all
    }
}

fn published_proxy(published: Published) -> Option<Proxy> {
    Some(Proxy {
        authority: Authority::new(published.proxy_ca)?,
        allowed_names: published.proxy_names,
        headers: published.proxy_headers,
    })
}

fn authority(path: &Path) -> Result<Authority, AuthenticationError> {
    let certificates = read_certificates(path).map_err(AuthenticationError::File)?;
    Authority::new(certificates).ok_or_else(|| AuthenticationError::NoAuthority(path.to_owned()))
}
