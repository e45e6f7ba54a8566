//! Who asks: by client certificate, by what a front proxy says, or by token.

mod certificate;
mod lookup;
mod proxy;
mod trust;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use ring::hmac;
use rustls::pki_types::{CertificateDer, UnixTime};
use thiserror::Error;

use crate::cache::ReviewCache;
use crate::review::{KubeReviews, ReviewError, Reviews};
use crate::tls::TlsError;
use crate::user::User;

pub use lookup::LookupError;
use trust::Trusts;

/// How many tokens are remembered.
const CAPACITY: usize = 4096;

/// How requests are authenticated. The defaults are kube-scheduler's.
#[derive(Clone, Debug)]
pub struct AuthenticationOptions {
    /// How long the answer about a token is good, whatever it is.
    /// (`--authentication-token-webhook-cache-ttl`)
    pub token_ttl: Duration,
    /// Authorities of client certificates, in PEM. Read again when it changes.
    /// Without it, those that the cluster names count. (`--client-ca-file`)
    pub client_ca_file: Option<PathBuf>,
    /// Whose word about users is taken. (`--requestheader-*`)
    pub request_header: RequestHeaderOptions,
    /// Whether the cluster is not asked for authorities that are not given.
    /// (`--authentication-skip-lookup`)
    pub skip_lookup: bool,
    /// Whether it is borne when the cluster does not name them. They are then
    /// looked for again and again.
    /// (`--authentication-tolerate-lookup-failure`)
    pub tolerate_lookup_failure: bool,
    /// How often files and the cluster are looked at again.
    pub refresh_every: Duration,
}

/// A front proxy that says in headers who asks.
#[derive(Clone, Debug)]
pub struct RequestHeaderOptions {
    /// Authorities of its certificate, in PEM. Without it, all of this comes
    /// from the cluster. (`--requestheader-client-ca-file`)
    pub client_ca_file: Option<PathBuf>,
    /// Common names of its certificate; none means any.
    /// (`--requestheader-allowed-names`)
    pub allowed_names: Vec<String>,
    /// Headers that hold the name; the first that is there counts.
    /// (`--requestheader-username-headers`)
    pub username_headers: Vec<String>,
    /// Headers that hold the UID. (`--requestheader-uid-headers`)
    pub uid_headers: Vec<String>,
    /// Headers that hold groups; all count.
    /// (`--requestheader-group-headers`)
    pub group_headers: Vec<String>,
    /// What headers with further facts begin with.
    /// (`--requestheader-extra-headers-prefix`)
    pub extra_header_prefixes: Vec<String>,
}

impl Default for AuthenticationOptions {
    fn default() -> Self {
        Self {
            token_ttl: Duration::from_secs(10),
            client_ca_file: None,
            request_header: RequestHeaderOptions::default(),
            skip_lookup: false,
            tolerate_lookup_failure: true,
            refresh_every: Duration::from_secs(60),
        }
    }
}

impl Default for RequestHeaderOptions {
    fn default() -> Self {
        let one = |name: &str| vec![name.to_owned()];
        Self {
            client_ca_file: None,
            allowed_names: Vec::new(),
            username_headers: one("x-remote-user"),
            uid_headers: Vec::new(),
            group_headers: one("x-remote-group"),
            extra_header_prefixes: one("x-remote-extra-"),
        }
    }
}

/// Why authentication cannot be set up.
#[derive(Debug, Error)]
pub enum AuthenticationError {
    /// A file of authorities does not serve.
    #[error("cannot read the authorities of client certificates")]
    File(#[source] TlsError),
    /// None of the certificates of a file can be an authority.
    #[error("{} holds no certificate that can be an authority", .0.display())]
    NoAuthority(PathBuf),
    /// The cluster does not name them.
    #[error("cannot find out whom the cluster trusts; to go on without, tolerate lookup failures")]
    Lookup(#[source] LookupError),
}

/// Authenticates requests.
pub struct Authenticator {
    trusts: Trusts,
    reviews: Option<Arc<dyn Reviews>>,
    tokens: ReviewCache<TokenKey, Option<User>>,
    token_ttl: Duration,
    /// Tokens are remembered by a digest under this key, which nobody knows.
    digest_key: hmac::Key,
}

/// Stands for a token.
type TokenKey = [u8; 32];

/// Why it is not known who asks.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// There are no credentials, or they do not hold.
    Refused,
    /// The API server does not say whose token it is.
    CannotTell(ReviewError),
}

impl Authenticator {
    /// Reads the authorities, from files and through the client. Without a
    /// client, no token holds and nothing is looked up.
    ///
    /// # Errors
    /// When a file does not serve, or the cluster does not answer and that is
    /// not tolerated.
    pub async fn start(
        options: AuthenticationOptions,
        client: Option<kube::Client>,
    ) -> Result<Self, AuthenticationError> {
        let reviews = client.clone().map(|client| Arc::new(KubeReviews::new(client)) as _);
        let token_ttl = options.token_ttl;
        let trusts = Trusts::start(options, client).await?;
        Ok(Self::with_parts(trusts, reviews, token_ttl))
    }

    fn with_parts(trusts: Trusts, reviews: Option<Arc<dyn Reviews>>, token_ttl: Duration) -> Self {
        let random = ring::rand::SystemRandom::new();
        let digest_key = hmac::Key::generate(hmac::HMAC_SHA256, &random)
            .expect("the system has randomness: TLS needs it too");
        let tokens = ReviewCache::new(CAPACITY);
        Self { trusts, reviews, tokens, token_ttl, digest_key }
    }

    /// Who asks with these headers and certificates.
    pub(crate) async fn user(
        &self,
        headers: &HeaderMap,
        certificates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<User, Unknown> {
        let trust = self.trusts.current();
        if let Some(user) = trust.user_of_proxy(headers, certificates, now) {
            return Ok(user.authenticated());
        }
        if let Some(user) = trust.user_of_certificate(certificates, now) {
            return Ok(user.authenticated());
        }
        let token = bearer(headers).ok_or(Unknown::Refused)?;
        match self.owner(token).await {
            Ok(Some(user)) => Ok(user.authenticated()),
            Ok(None) => Err(Unknown::Refused),
            Err(error) => Err(Unknown::CannotTell(error)),
        }
    }

    /// Keeps files and what the cluster says in mind, for ever.
    pub(crate) async fn keep_fresh(&self) {
        self.trusts.keep_fresh().await;
    }

    async fn owner(&self, token: &str) -> Result<Option<User>, ReviewError> {
        let Some(reviews) = &self.reviews else {
            return Ok(None);
        };
        let mut key = TokenKey::default();
        key.copy_from_slice(hmac::sign(&self.digest_key, token.as_bytes()).as_ref());
        let (reviews, ttl) = (reviews.clone(), self.token_ttl);
        let ask = || {
            let token = Arc::from(token);
            async move { Ok((reviews.token(token).await?, ttl)) }
        };
        self.tokens.get(&key, ask).await
    }
}

/// The bearer token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && !token.contains(' '))
        .then_some(token)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::BoxFuture;
    use http::HeaderValue;

    use super::*;
    use crate::review::{Deed, Verdict};

    /// Knows the token `good`; counts questions; silent when told so.
    #[derive(Default)]
    struct Registry {
        asked: AtomicUsize,
        silent: bool,
    }

    impl Reviews for Registry {
        fn token(&self, token: Arc<str>) -> BoxFuture<'static, Result<Option<User>, ReviewError>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let answer = match (self.silent, &*token) {
                (true, _) => Err(ReviewError::Busy),
                (false, "good") => Ok(Some(User { name: "ada".to_owned(), ..User::default() })),
                (false, _) => Ok(None),
            };
            Box::pin(async { answer })
        }

        fn access(&self, _: User, _: Deed) -> BoxFuture<'static, Result<Verdict, ReviewError>> {
            Box::pin(async { Ok(Verdict::Allowed) })
        }
    }

    fn headers(authorization: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(authorization).unwrap())])
    }

    async fn authenticator(registry: &Arc<Registry>) -> Authenticator {
        let trusts = Trusts::start(AuthenticationOptions::default(), None).await.unwrap();
        Authenticator::with_parts(trusts, Some(registry.clone()), Duration::from_secs(10))
    }

    #[test]
    fn bearer_tokens() {
        let check = |value: &str, expected: Option<&str>| {
            assert_eq!(bearer(&headers(value)), expected, "{value:?}");
        };
        check("Bearer abc", Some("abc"));
        check("bearer  abc ", Some("abc"));
        check("Bearer", None);
        check("Bearer ", None);
        check("Bearer a b", None);
        check("Basic abc", None);
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_are_remembered_by_digest_and_for_a_while() {
        let registry = Arc::new(Registry::default());
        let authenticator = authenticator(&registry).await;
        let now = UnixTime::since_unix_epoch(Duration::ZERO);
        for (value, known) in [("Bearer good", true), ("Bearer bad", false)] {
            let before = registry.asked.load(Ordering::SeqCst);
            for _ in 0..3 {
                let user = authenticator.user(&headers(value), &[], now).await;
                assert_eq!(user.is_ok(), known, "{value}");
            }
            tokio::time::advance(Duration::from_millis(9_999)).await;
            let _ = authenticator.user(&headers(value), &[], now).await;
            assert_eq!(registry.asked.load(Ordering::SeqCst), before + 1, "{value}");
            tokio::time::advance(Duration::from_millis(1)).await;
            let _ = authenticator.user(&headers(value), &[], now).await;
            assert_eq!(registry.asked.load(Ordering::SeqCst), before + 2, "{value}");
        }
    }

    #[tokio::test]
    async fn whoever_is_let_in_is_authenticated() {
        let authenticator = authenticator(&Arc::default()).await;
        let now = UnixTime::since_unix_epoch(Duration::ZERO);
        let user = authenticator.user(&headers("Bearer good"), &[], now).await.unwrap();
        assert_eq!((user.name.as_str(), user.groups), ("ada", vec!["system:authenticated".into()]));
    }

    #[tokio::test]
    async fn silence_is_no_yes() {
        let registry = Arc::new(Registry { silent: true, ..Registry::default() });
        let authenticator = authenticator(&registry).await;
        let now = UnixTime::since_unix_epoch(Duration::ZERO);
        let user = authenticator.user(&headers("Bearer good"), &[], now).await;
        assert!(matches!(user, Err(Unknown::CannotTell(_))));
        let nobody = authenticator.user(&HeaderMap::new(), &[], now).await;
        assert!(matches!(nobody, Err(Unknown::Refused)));
    }
}
