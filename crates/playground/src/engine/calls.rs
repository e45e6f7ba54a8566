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
}

impl Caller {
    pub(super) fn new(client: Client, notes: mpsc::Sender<Note>) -> Self {
        Self { client, notes, permits: Arc::new(Semaphore::new(CALLS)) }
    }

    /// Carries out a plan; returns what is known now and how it went.
    pub(super) async fn carry_out(&self, plan: Plan) -> (Vec<News>, Ended) {
        let mut news = Vec::new();
        let mut worst = Ended::Well;
        if plan.ordered {
            for action in plan.actions {
                let (told, ended) = self.act(action).await;
                news.extend(told);
                if ended != Ended::Well {
                    return (news, ended);
                }
            }
            return (news, worst);
        }
        let calls = plan.actions.into_iter().map(|action| self.act(action));
        let mut calls = futures::stream::iter(calls).buffer_unordered(AT_ONCE);
        while let Some((told, ended)) = calls.next().await {
            news.extend(told);
            worst = match (worst, ended) {
                (Ended::Failed, _) | (_, Ended::Failed) => Ended::Failed,
                (Ended::Conflict, _) | (_, Ended::Conflict) => Ended::Conflict,
                (Ended::Well, Ended::Well) => Ended::Well,
            };
        }
        (news, worst)
    }

    async fn act(&self, action: Action) -> (Option<News>, Ended) {
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
                (news, Ended::Well)
            }
            Err(error) => {
                let ended = ended(&error);
                if ended == Ended::Failed {
                    tracing::debug!(%error, "a controller's call failed");
                    // That nothing new comes into a namespace that goes is no
                    // news.
                    let expected = words(&error).contains("because it is being terminated");
                    if let Some(mut note) = on_failure.filter(|_| !expected) {
                        note.message.push_str(&words(&error));
                        self.tell(note);
                    }
                }
                (None, ended)
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
                let made: Value = self.client.request(request).await?;
                Ok(Some(News::Written(kind, made)))
            }
            Call::Replace { kind, key, part, object } => {
                let path = format!("{}{}", kind.object(&key), suffix(part));
                let made: Value = self.client.request(json_request("PUT", &path, &object)?).await?;
                Ok(Some(News::Written(kind, made)))
            }
            Call::Patch { kind, key, part, patch } => {
                let path = format!("{}{}", kind.object(&key), suffix(part));
                let request = patch_request(&path, &patch)?;
                let made: Value = self.client.request(request).await?;
                Ok(Some(News::Written(kind, made)))
            }
            Call::Delete { kind, key, uid, grace } => {
                let options = delete_options(&uid, grace);
                let request = json_request("DELETE", &kind.object(&key), &options)?;
                match self.client.request::<Value>(request).await {
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
