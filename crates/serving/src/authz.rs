//! Who may read what: asked of the API server, remembered for a while.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::cache::ReviewCache;
use crate::review::{Deed, KubeReviews, ReviewError, Reviews, Verdict};
use crate::user::User;

/// Members may do everything, without a question: the API server says the same
/// of them.
const MASTERS: &str = "system:masters";
/// How many verdicts are remembered.
const CAPACITY: usize = 4096;
/// A question longer than this, in bytes, is asked afresh each time, so that
/// nobody fills the memory with long paths.
const MAX_REMEMBERED: usize = 10_000;

/// How access is authorised. The defaults are kube-scheduler's.
#[derive(Clone, Debug)]
pub struct AuthorizationOptions {
    /// Paths that everybody may read, without any credentials; with a `*` at
    /// the end, everything that begins so. (`--authorization-always-allow-paths`)
    pub always_allow_paths: Vec<String>,
    /// How long a yes is good. (`--authorization-webhook-cache-authorized-ttl`)
    pub authorized_ttl: Duration,
    /// How long a no is good. (`--authorization-webhook-cache-unauthorized-ttl`)
    pub unauthorized_ttl: Duration,
}

impl Default for AuthorizationOptions {
    fn default() -> Self {
        let always = ["/healthz", "/readyz", "/livez"];
        Self {
            always_allow_paths: always.map(str::to_owned).to_vec(),
            authorized_ttl: Duration::from_secs(10),
            unauthorized_ttl: Duration::from_secs(10),
        }
    }
}

/// Why the options do not serve.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum AuthorizationError {
    /// A star stands elsewhere than at the end.
    #[error("always allowed path {0:?}: only a * at the end is allowed")]
    InnerStar(String),
}

/// Authorises requests.
pub struct Authorizer {
    always: AlwaysAllowed,
    reviews: Option<Arc<dyn Reviews>>,
    verdicts: ReviewCache<(User, Deed), Verdict>,
    authorized_ttl: Duration,
    unauthorized_ttl: Duration,
}

impl Authorizer {
    /// Asks through `client`; without one, all that is not always allowed is
    /// refused.
    ///
    /// # Errors
    /// When a path has a star within.
    pub fn new(
        options: AuthorizationOptions,
        client: Option<kube::Client>,
    ) -> Result<Self, AuthorizationError> {
        let reviews = client.map(|client| Arc::new(KubeReviews::new(client)) as Arc<dyn Reviews>);
        Self::with_reviews(options, reviews)
    }

    pub(crate) fn with_reviews(
        options: AuthorizationOptions,
        reviews: Option<Arc<dyn Reviews>>,
    ) -> Result<Self, AuthorizationError> {
        Ok(Self {
            always: AlwaysAllowed::new(&options.always_allow_paths)?,
            reviews,
            verdicts: ReviewCache::new(CAPACITY),
            authorized_ttl: options.authorized_ttl,
            unauthorized_ttl: options.unauthorized_ttl,
        })
    }

    /// Whether everybody may read this path.
    pub(crate) fn is_always_allowed(&self, path: &str) -> bool {
        self.always.holds(path)
    }

    /// Whether the user may do this.
    ///
    /// # Errors
    /// When the API server does not say.
    pub(crate) async fn verdict(&self, user: &User, deed: Deed) -> Result<Verdict, ReviewError> {
        if self.always.holds(&deed.path) || user.groups.iter().any(|group| group == MASTERS) {
            return Ok(Verdict::Allowed);
        }
        let Some(reviews) = &self.reviews else {
            return Ok(Verdict::Refused("no API server to ask".to_owned()));
        };
        if user.size() + deed.path.len() > MAX_REMEMBERED {
            return reviews.access(user.clone(), deed).await;
        }
        let (yes, no) = (self.authorized_ttl, self.unauthorized_ttl);
        let asking = reviews.clone();
        let key = (user.clone(), deed);
        let ask = || {
            let (user, deed) = key.clone();
            async move {
                let verdict = asking.access(user, deed).await?;
                let ttl = if verdict == Verdict::Allowed { yes } else { no };
                Ok((verdict, ttl))
            }
        };
        self.verdicts.get(&key, ask).await
    }
}

/// Paths and beginnings of paths. A leading slash makes no difference.
struct AlwaysAllowed {
    paths: Vec<String>,
    prefixes: Vec<String>,
}

impl AlwaysAllowed {
    fn new(patterns: &[String]) -> Result<Self, AuthorizationError> {
        let mut allowed = Self { paths: Vec::new(), prefixes: Vec::new() };
        for pattern in patterns {
            let bare = pattern.strip_prefix('/').unwrap_or(pattern);
            let (bare, list) = match bare.strip_suffix('*') {
                Some(prefix) => (prefix, &mut allowed.prefixes),
                None => (bare, &mut allowed.paths),
            };
            if bare.contains('*') {
                return Err(AuthorizationError::InnerStar(pattern.clone()));
            }
            list.push(bare.to_owned());
        }
        Ok(allowed)
    }

    fn holds(&self, path: &str) -> bool {
        let bare = path.strip_prefix('/').unwrap_or(path);
        self.paths.iter().any(|allowed| allowed == bare)
            || self.prefixes.iter().any(|prefix| bare.starts_with(prefix.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::BoxFuture;

    use super::*;

    /// Allows what ends in `ok`; counts questions; says nothing when told so.
    #[derive(Default)]
    struct Judge {
        asked: AtomicUsize,
        silent: bool,
    }

    impl Reviews for Judge {
        fn token(&self, _: Arc<str>) -> BoxFuture<'static, Result<Option<User>, ReviewError>> {
            Box::pin(async { Ok(None) })
        }

        fn access(&self, _: User, deed: Deed) -> BoxFuture<'static, Result<Verdict, ReviewError>> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            let answer = match (self.silent, deed.path.ends_with("ok")) {
                (true, _) => Err(ReviewError::Busy),
                (false, true) => Ok(Verdict::Allowed),
                (false, false) => Ok(Verdict::Refused("no rule".to_owned())),
            };
            Box::pin(async { answer })
        }
    }

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        User { name: name.to_owned(), groups, ..User::default() }
    }

    fn get(path: &str) -> Deed {
        Deed { verb: "get".to_owned(), path: path.to_owned() }
    }

    fn authorizer(judge: &Arc<Judge>) -> Authorizer {
        let options = AuthorizationOptions {
            unauthorized_ttl: Duration::from_secs(3),
            ..AuthorizationOptions::default()
        };
        Authorizer::with_reviews(options, Some(judge.clone())).unwrap()
    }

    #[test]
    fn always_allowed_paths() {
        let check = |patterns: &[&str], path: &str, expected: bool| {
            let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
            let allowed = AlwaysAllowed::new(&patterns).unwrap();
            assert_eq!(allowed.holds(path), expected, "{patterns:?} {path}");
        };
        check(&["/healthz"], "/healthz", true);
        check(&["healthz"], "/healthz", true);
        check(&["/healthz"], "/healthz/ping", false);
        check(&["/healthz"], "/healthzz", false);
        check(&["/healthz/*"], "/healthz/ping", true);
        check(&["/healthz/*"], "/healthz", false);
        check(&["*"], "/metrics", true);
        check(&["/"], "/", true);
        check(&["/"], "/metrics", false);
        check(&[], "/", false);
        let inner = AlwaysAllowed::new(&["/a/*/b".to_owned()]).err();
        assert_eq!(inner, Some(AuthorizationError::InnerStar("/a/*/b".to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn verdicts_are_remembered_as_long_as_the_options_say() {
        let judge = Arc::new(Judge::default());
        let authorizer = authorizer(&judge);
        let ada = user("ada", &[]);
        for (path, ttl) in [("/ok", 10), ("/no", 3)] {
            let before = judge.asked.load(Ordering::SeqCst);
            let first = authorizer.verdict(&ada, get(path)).await.unwrap();
            tokio::time::advance(Duration::from_millis(ttl * 1000 - 1)).await;
            assert_eq!(authorizer.verdict(&ada, get(path)).await.unwrap(), first);
            assert_eq!(judge.asked.load(Ordering::SeqCst), before + 1, "{path}");
            tokio::time::advance(Duration::from_millis(1)).await;
            authorizer.verdict(&ada, get(path)).await.unwrap();
            assert_eq!(judge.asked.load(Ordering::SeqCst), before + 2, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_part_of_the_question_counts() {
        let judge = Arc::new(Judge::default());
        let authorizer = authorizer(&judge);
        let put = Deed { verb: "put".to_owned(), path: "/ok".to_owned() };
        for (who, what) in [
            (user("ada", &[]), get("/ok")),
            (user("bob", &[]), get("/ok")),
            (user("ada", &["dev"]), get("/ok")),
            (user("ada", &[]), get("/other/ok")),
            (user("ada", &[]), put),
        ] {
            authorizer.verdict(&who, what).await.unwrap();
        }
        assert_eq!(judge.asked.load(Ordering::SeqCst), 5);
    }

    #[tokio::test]
    async fn masters_are_not_asked_about() {
        let judge = Arc::new(Judge { silent: true, ..Judge::default() });
        let authorizer = authorizer(&judge);
        let master = user("root", &["x", MASTERS]);
        assert_eq!(authorizer.verdict(&master, get("/no")).await.unwrap(), Verdict::Allowed);
        assert!(authorizer.verdict(&user("ada", &[]), get("/no")).await.is_err());
    }

    #[tokio::test]
    async fn long_questions_are_not_remembered() {
        let judge = Arc::new(Judge::default());
        let authorizer = authorizer(&judge);
        let path = format!("/{}ok", "x".repeat(MAX_REMEMBERED));
        for _ in 0..2 {
            authorizer.verdict(&user("ada", &[]), get(&path)).await.unwrap();
        }
        assert_eq!(judge.asked.load(Ordering::SeqCst), 2);
        assert_eq!(authorizer.verdicts.len(), 0);
    }

    #[tokio::test]
    async fn nothing_is_allowed_when_nobody_can_be_asked() {
        let authorizer = Authorizer::new(AuthorizationOptions::default(), None).unwrap();
        let verdict = authorizer.verdict(&user("ada", &[]), get("/metrics")).await.unwrap();
        assert!(matches!(verdict, Verdict::Refused(_)));
    }
}
