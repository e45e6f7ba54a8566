//! Carries out plans.

use std::sync::Arc;

use futures::StreamExt;
use http::Request;
use kube::Client;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};

use super::plan::{Action, Call, Note, Part, Plan, delete_options};
use super::queue::Ended;
use crate::cluster::{Kind, News};

/// Calls of one plan that are under way at once.
const AT_ONCE: usize = 32;
/// Calls of all plans that are under way at once.
const CALLS: usize = 64;

/// Makes calls, and tells the recorder about them.
#[derive(Clone)]
pub(super) struct Caller {
    client: Client,
    notes: mpsc::Sender<Note>,
    permits: Arc<Semaphore>,
    agent: &'static str,
}

impl Caller {
    pub(super) fn new(client: Client, notes: mpsc::Sender<Note>) -> Self {
        let permits = Arc::new(Semaphore::new(CALLS));
        Self { client, notes, permits, agent: "kube-controller-manager" }
    }

    /// The same for another program of a real cluster: `managedFields` name who
    /// wrote what.
    pub(super) fn named(&self, agent: &'static str) -> Self {
        Self { agent, ..self.clone() }
    }

    /// Carries out a plan; returns what is known now and how it went.
    pub(super) async fn carry_out(&self, plan: Plan) -> (Vec<News>, Ended) {
        let mut outcome = Outcome::default();
        if plan.ordered {
            for action in plan.actions {
                outcome.add(self.act(action).await);
                if outcome.how != Ended::Well {
                    break;
                }
            }
            return (outcome.news, outcome.how);
        }
        let is_new = |action: &Action| matches!(action.call, Call::Create { .. });
        let (new, others): (Vec<_>, Vec<_>) = plan.actions.into_iter().partition(is_new);
        outcome.merge(self.at_once(others).await);
        // What is refused once would be refused a hundred times: one object is
        // made, then two, then four, as long as all goes well.
        let mut new = new.into_iter();
        let mut made = Outcome::default();
        let mut n = 1;
        while made.how == Ended::Well && new.len() > 0 {
            made.merge(self.at_once(new.by_ref().take(n)).await);
            n *= 2;
        }
        if let Some((complaint, why)) = plan.complaint.zip(made.failure.as_ref()) {
            let call = complaint.with(why);
            made.add(self.act(Action { call, on_success: None, on_failure: None }).await);
        }
        outcome.merge(made);
        (outcome.news, outcome.how)
    }

    /// Acts without an order.
    async fn at_once(&self, actions: impl IntoIterator<Item = Action>) -> Outcome {
        let calls = actions.into_iter().map(|action| self.act(action));
        let mut calls = futures::stream::iter(calls).buffer_unordered(AT_ONCE);
        let mut outcome = Outcome::default();
        while let Some(done) = calls.next().await {
            outcome.add(done);
        }
        outcome
    }

    async fn act(&self, action: Action) -> Done {
        let Action { call, on_success, on_failure } = action;
        let result = match call {
            Call::Nothing => Ok(None),
            call => self.call(call).await,
        };
        match result {
            Ok(news) => {
                if let Some(mut note) = on_success {
                    if note.with_name {
                        note.message.push_str(name_in(news.as_ref()));
                    }
                    self.tell(note);
                }
                Done { news, how: Ended::Well, failure: None }
            }
            Err(error) => {
                let how = ended(&error);
                let words = words(&error);
                // That nothing new comes into a namespace that goes is no news.
                let expected = words.contains("because it is being terminated");
                if how == Ended::Failed {
                    tracing::debug!(%error, "a controller's call failed");
                    if let Some(mut note) = on_failure.filter(|_| !expected) {
                        note.message.push_str(&words);
                        self.tell(note);
                    }
                }
                let failure = (how == Ended::Failed && !expected).then_some(words);
                Done { news: None, how, failure }
            }
        }
    }

    /// Events are told as far as there is room; nobody waits for them.
    fn tell(&self, note: Note) {
        if self.notes.try_send(note).is_err() {
            tracing::debug!("an event was dropped");
        }
    }

    async fn call(&self, call: Call) -> kube::Result<Option<News>> {
        // The semaphore is never closed; without it the call would go on.
        let _permit = self.permits.acquire().await.ok();
        match call {
            Call::Create { kind, namespace, object } => {
                let request = json_request("POST", &kind.collection(&namespace), &object)?;
                let made: Value = self.send(request).await?;
                Ok(Some(News::Written(kind, made)))
            }
            Call::Replace { kind, key, part, object } => {
                let path = format!("{}{}", kind.object(&key), suffix(part));
                let made: Value = self.send(json_request("PUT", &path, &object)?).await?;
                Ok(Some(News::Written(kind, made)))
            }
            Call::Patch { kind, key, part, patch } => {
                let path = format!("{}{}", kind.object(&key), suffix(part));
                let request = patch_request(&path, &patch)?;
                let made: Value = self.send(request).await?;
                Ok(Some(News::Written(kind, made)))
            }
            Call::Delete { kind, key, uid, grace } => {
                let options = delete_options(&uid, grace);
                let request = json_request("DELETE", &kind.object(&key), &options)?;
                match self.send(request).await {
                    Ok(left) => {
                        let removed = News::Removed(kind, key, uid);
                        Ok(Some(after_delete(kind, left, removed)))
                    }
                    // Somebody was faster.
                    Err(kube::Error::Api(status)) if status.code == 404 => {
                        Ok(Some(News::Removed(kind, key, uid)))
                    }
                    Err(error) => Err(error),
                }
            }
            Call::Nothing => Ok(None),
        }
    }

    async fn send(&self, request: Request<Vec<u8>>) -> kube::Result<Value> {
        self.client.request(signed(request, self.agent)).await
    }
}

/// How one action went.
struct Done {
    news: Option<News>,
    how: Ended,
    /// The words of a failure that is worth telling.
    failure: Option<String>,
}

/// How actions went so far.
struct Outcome {
    news: Vec<News>,
    how: Ended,
    failure: Option<String>,
}

impl Default for Outcome {
    fn default() -> Self {
        Self { news: Vec::new(), how: Ended::Well, failure: None }
    }
}

impl Outcome {
    fn add(&mut self, done: Done) {
        let Done { news, how, failure } = done;
        self.merge(Self { news: news.into_iter().collect(), how, failure });
    }

    fn merge(&mut self, other: Self) {
        self.news.extend(other.news);
        self.how = match (self.how, other.how) {
            (Ended::Failed, _) | (_, Ended::Failed) => Ended::Failed,
            (Ended::Conflict, _) | (_, Ended::Conflict) => Ended::Conflict,
            (Ended::Well, Ended::Well) => Ended::Well,
        };
        self.failure = self.failure.take().or(other.failure);
    }
}

/// A deletion is answered with a `Status`, with the object as it was, or with
/// the object that stays for a while because of its grace or finalizers.
fn after_delete(kind: Kind, left: Value, removed: News) -> News {
    let stays = |at: &str| left.pointer(at).is_some_and(|v| !v.is_null());
    let waits = stays("/metadata/deletionTimestamp")
        && (left.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64) > Some(0)
            || stays("/metadata/finalizers/0"));
    if waits { News::Written(kind, left) } else { removed }
}

pub(super) fn json_request(
    method: &str,
    path: &str,
    body: &Value,
) -> kube::Result<Request<Vec<u8>>> {
    let bytes = serde_json::to_vec(body).map_err(kube::Error::SerdeError)?;
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(bytes)
        .map_err(kube::Error::HttpError)
}

pub(super) fn patch_request(path: &str, patch: &Value) -> kube::Result<Request<Vec<u8>>> {
    let mut request = json_request("PATCH", path, patch)?;
    let merge = http::HeaderValue::from_static("application/merge-patch+json");
    request.headers_mut().insert(http::header::CONTENT_TYPE, merge);
    Ok(request)
}

/// The request in the name of a program.
pub(super) fn signed(mut request: Request<Vec<u8>>, agent: &'static str) -> Request<Vec<u8>> {
    request.headers_mut().insert(http::header::USER_AGENT, http::HeaderValue::from_static(agent));
    request
}

fn suffix(part: Part) -> &'static str {
    match part {
        Part::Main => "",
        Part::Status => "/status",
    }
}

fn ended(error: &kube::Error) -> Ended {
    match error {
        // The object that was to be changed is gone: the watch tells before
        // long. That the namespace is gone is another matter.
        kube::Error::Api(status) if status.code == 404 => {
            let namespace = status.message.starts_with("namespaces ");
            if namespace { Ended::Failed } else { Ended::Conflict }
        }
        // A name that is taken may stay taken.
        kube::Error::Api(status) if status.code == 409 && status.reason != "AlreadyExists" => {
            Ended::Conflict
        }
        _ => Ended::Failed,
    }
}

fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

fn name_in(news: Option<&News>) -> &str {
    match news {
        Some(News::Written(_, object)) => {
            object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default()
        }
        _ => "",
    }
}
