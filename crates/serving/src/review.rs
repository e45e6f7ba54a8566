//! The two questions that the API server answers: whose token is this, and may
//! somebody do something.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, ObjectMeta, PostParams};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::user::User;

/// Why the API server gave no answer. Nobody is let in then.
#[derive(Clone, Debug, Error)]
pub(crate) enum ReviewError {
    /// It refused, or could not be reached.
    #[error("cannot ask the API server")]
    Ask(#[source] Arc<kube::Error>),
    /// It answered without a status.
    #[error("the API server's answer has no status")]
    NoStatus,
    /// The answer took too long.
    #[error("the API server did not answer within {} s", .0.as_secs())]
    TimedOut(Duration),
    /// Too many questions are under way.
    #[error("too many reviews are under way")]
    Busy,
    /// The task that asked ended early.
    #[error("the review was broken off")]
    Broken,
}

/// What somebody wants to do, named as in a SubjectAccessReview.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Deed {
    /// The HTTP method in lower case.
    pub(crate) verb: String,
    /// The path, without the query.
    pub(crate) path: String,
}

/// What the API server thinks of a deed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may be done.
    Allowed,
    /// It may not. The reason may be empty.
    Refused(String),
}

/// Answers both questions.
pub(crate) trait Reviews: Send + Sync {
    /// Whose token this is; nobody's is `None`.
    fn token(&self, token: Arc<str>) -> BoxFuture<'static, Result<Option<User>, ReviewError>>;
    /// Whether the user may do this.
    fn access(&self, user: User, deed: Deed) -> BoxFuture<'static, Result<Verdict, ReviewError>>;
}

/// Asks through a client.
pub(crate) struct KubeReviews {
    client: kube::Client,
    turns: Turns,
}

/// Limits how many questions are asked at once, and how many wait for that.
#[derive(Clone)]
struct Turns {
    under_way: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

/// How many questions are under way at most: tokens that nobody has seen yet
/// must not drown the API server.
const MAX_UNDER_WAY: usize = 32;
/// How many there are at most, those that wait included. A question outlives
/// the request that it is for, so limits on connections do not bound them.
const MAX_PLACES: usize = 1024;
/// How long an answer may take, repetitions included.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before the first repetition, growth of the pause, and attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const PAUSE_GROWTH: f64 = 1.5;
const ATTEMPTS: u32 = 5;

impl KubeReviews {
    pub(crate) fn new(client: kube::Client) -> Self {
        Self { client, turns: Turns::new() }
    }
}

impl Turns {
    fn new() -> Self {
        let semaphore = |places| Arc::new(Semaphore::new(places));
        Self { under_way: semaphore(MAX_UNDER_WAY), places: semaphore(MAX_PLACES) }
    }

    /// What `asking` brings, when its turn comes. Takes [`TIMEOUT`] at the most.
    async fn take<T>(
        &self,
        asking: impl Future<Output = Result<T, ReviewError>>,
    ) -> Result<T, ReviewError> {
        let _place = self.places.try_acquire().map_err(|_| ReviewError::Busy)?;
        let in_turn = async {
            let _turn = self.under_way.acquire().await.map_err(|_| ReviewError::Busy)?;
            asking.await
        };
        let timed = tokio::time::timeout(TIMEOUT, in_turn).await;
        timed.map_err(|_| ReviewError::TimedOut(TIMEOUT))?
    }
}

impl Reviews for KubeReviews {
    fn token(&self, token: Arc<str>) -> BoxFuture<'static, Result<Option<User>, ReviewError>> {
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let review = TokenReview {
            metadata: ObjectMeta::default(),
            spec: TokenReviewSpec { token: token.as_ref().to_owned(), audiences: None },
            status: None,
        };
        let turns = self.turns.clone();
        Box::pin(async move { whose(turns.take(ask(api, review)).await?) })
    }

    fn access(&self, user: User, deed: Deed) -> BoxFuture<'static, Result<Verdict, ReviewError>> {
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let extra: BTreeMap<_, _> = user.extra;
        let review = SubjectAccessReview {
            metadata: ObjectMeta::default(),
            spec: SubjectAccessReviewSpec {
                user: Some(user.name),
                uid: Some(user.uid).filter(|uid| !uid.is_empty()),
                groups: Some(user.groups),
                extra: Some(extra).filter(|extra| !extra.is_empty()),
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(deed.path),
                    verb: Some(deed.verb),
                }),
                resource_attributes: None,
            },
            status: None,
        };
        let turns = self.turns.clone();
        Box::pin(async move { verdict(turns.take(ask(api, review)).await?) })
    }
}

fn whose(review: TokenReview) -> Result<Option<User>, ReviewError> {
    let status = review.status.ok_or(ReviewError::NoStatus)?;
    if status.authenticated != Some(true) {
        if let Some(error) = status.error.filter(|error| !error.is_empty()) {
            tracing::debug!(error, "the API server does not accept a token");
        }
        return Ok(None);
    }
    let info = status.user.unwrap_or_default();
    let name = info.username.filter(|name| !name.is_empty()).ok_or(ReviewError::NoStatus)?;
    Ok(Some(User {
        name,
        uid: info.uid.unwrap_or_default(),
        groups: info.groups.unwrap_or_default(),
        extra: info.extra.unwrap_or_default(),
    }))
}

fn verdict(review: SubjectAccessReview) -> Result<Verdict, ReviewError> {
    let status = review.status.ok_or(ReviewError::NoStatus)?;
    let denied = status.denied == Some(true);
    if status.allowed && !denied {
        return Ok(Verdict::Allowed);
    }
    Ok(Verdict::Refused(status.reason.unwrap_or_default()))
}

/// Sends the question, again when that may help.
async fn ask<K>(api: Api<K>, review: K) -> Result<K, ReviewError>
where
    K: Clone + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let mut pause = FIRST_PAUSE;
    let mut attempt = 1;
    loop {
        match api.create(&PostParams::default(), &review).await {
            Ok(answer) => return Ok(answer),
            Err(error) if attempt < ATTEMPTS && is_passing(&error) => {
                attempt += 1;
                tokio::time::sleep(pause).await;
                pause = pause.mul_f64(PAUSE_GROWTH);
            }
            Err(error) => return Err(ReviewError::Ask(Arc::new(error))),
        }
    }
}

/// Whether the same question may be answered a moment later.
fn is_passing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::HyperError(_) | kube::Error::Service(_) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn questions_that_nobody_can_wait_for_any_more_are_bounded() {
        let turns = Turns::new();
        let never = || turns.take(std::future::pending::<Result<(), ReviewError>>());
        let answers = join_all((0..MAX_PLACES + 5).map(|_| never())).await;
        let count = |wanted: fn(&ReviewError) -> bool| {
            answers.iter().filter(|answer| answer.as_ref().is_err_and(wanted)).count()
        };
        assert_eq!(count(|error| matches!(error, ReviewError::Busy)), 5);
        assert_eq!(count(|error| matches!(error, ReviewError::TimedOut(_))), MAX_PLACES);
        turns.take(async { Ok(()) }).await.expect("the places are free again");
    }
}
