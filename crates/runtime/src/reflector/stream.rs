//! Watches, which may begin with everything there is.

use std::io;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt, TryStreamExt};
use http_body_util::BodyExt;
use serde::Deserialize;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tokio_util::io::StreamReader;

use super::lean::Lean;
use super::list::escaped;
use super::{Reflector, Start, Trouble};
use crate::api::{Call, CallError, Refusal};

/// An event is an object and a few words: no server sends longer lines.
const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// So many events are handed on together.
const BATCH: usize = 256;
/// The API server is asked to end a watch after a time between these, so that
/// watches move to replicas that came later; the reference's client does too.
const LIFETIME: (Duration, Duration) = (Duration::from_secs(300), Duration::from_secs(600));
/// Initial events that broke off so often will do so again.
const CUTS: u32 = 3;
/// The annotation of the bookmark after the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// One line of a watch.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    object: Lean,
}

/// How far a watch has come.
struct Progress {
    /// Initial events are still to come.
    initial: bool,
    /// When they should have come. A server that knows nothing of them sends
    /// all kinds of events, and never their end.
    initial_until: Instant,
}

impl Reflector {
    /// Watches until the stream ends. Ending in time is no trouble.
    pub(super) async fn stream(&mut self, start: Start<'_>) -> Result<(), Trouble> {
        let initial = matches!(start, Start::Everything);
        let lifetime = self.chance.between(LIFETIME.0, LIFETIME.1);
        let path = self.watch_path(start, lifetime);
        let opened = self.api.open(Call::get(path).within(self.limits.answer)).await;
        let response = match opened {
            Ok(response) => response,
            Err(CallError::Refused(refusal)) if initial && is_unserved(&refusal) => {
                return Err(Trouble::NotStreaming(refusal.to_string()));
            }
            Err(error) => return Err(error.into()),
        };
        self.counters.watches.up();
        if initial {
            self.store.begin_list();
        }
        let body = response.into_body().into_data_stream().map_err(io::Error::other);
        let codec = LinesCodec::new_with_max_length(LONGEST_LINE);
        let lines = FramedRead::new(StreamReader::new(body), codec);
        let now = Instant::now();
        let mut progress = Progress { initial, initial_until: now + self.limits.list };
        // A server that never ends the watch is not trusted much longer.
        let deadline = now + lifetime + self.limits.idle;
        let ended = self.follow(lines, &mut progress, deadline).await;
        match ended {
            Ok(()) if progress.initial => {
                self.cut_short();
                Err(CallError::Unreachable("the watch ended early".into()).into())
            }
            Err(Trouble::Call(error)) if progress.initial && error.refusal().is_none() => {
                self.cut_short();
                Err(error.into())
            }
            other => other,
        }
    }

    async fn follow(
        &mut self,
        mut lines: impl Stream<Item = Result<String, LinesCodecError>> + Unpin,
        progress: &mut Progress,
        deadline: Instant,
    ) -> Result<(), Trouble> {
        loop {
            // What is there already is taken together.
            let ready = if self.events.is_empty() { None } else { lines.next().now_or_never() };
            let line = match ready {
                Some(line) => line,
                None => {
                    self.flush().await?;
                    let idle = match progress.initial {
                        true => self.limits.idle.min(self.limits.answer),
                        false => self.limits.idle,
                    };
                    match timeout(idle, lines.next()).await {
                        Ok(line) => line,
                        Err(_) if progress.initial => {
                            return Err(Trouble::NotStreaming("no end of initial events".into()));
                        }
                        Err(_) => return Err(Trouble::Silent),
                    }
                }
            };
            let Some(line) = line else { break };
            self.take_line(&line.map_err(broken)?, progress).await?;
            if self.events.len() >= BATCH {
                self.flush().await?;
                yield_now().await;
            }
            let now = Instant::now();
            if progress.initial && now >= progress.initial_until {
                return Err(Trouble::NotStreaming("no end of initial events".into()));
            }
            if now >= deadline {
                return Err(Trouble::Silent);
            }
        }
        self.flush().await?;
        Ok(())
    }

    /// Initial events broke off before their end. They start all over each
    /// time; pages of a list do not.
    fn cut_short(&mut self) {
        self.cuts += 1;
        if self.cuts >= CUTS {
            tracing::debug!(
                resource = self.row.plural,
                "initial events break off, listing instead"
            );
            self.streaming = false;
        }
    }

    fn watch_path(&self, start: Start<'_>, lifetime: Duration) -> String {
        let mut path = format!("{}?watch=true&allowWatchBookmarks=true", self.row.path());
        match start {
            Start::Everything => {
                path.push_str("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
            }
            Start::After(version) => {
                path.push_str("&resourceVersion=");
                path.push_str(&escaped(version));
            }
        }
        if let Some(selector) = self.selector {
            path.push_str("&fieldSelector=");
            path.push_str(selector);
        }
        path.push_str(&format!("&timeoutSeconds={}", lifetime.as_secs()));
        path
    }

    async fn take_line(&mut self, line: &str, progress: &mut Progress) -> Result<(), Trouble> {
        if line.trim().is_empty() {
            return Ok(());
        }
        // Not even JSON: somebody else answers in the API server's place.
        if !line.trim_start().starts_with('{') {
            let start: String = line.chars().take(40).collect();
            return Err(CallError::Garbled(format!("{start:?} in a watch")).into());
        }
        let Line { kind, object: Lean(object) } = match serde_json::from_str(line) {
            Ok(line) => line,
            // The connection broke in the middle.
            Err(error) if error.is_eof() => {
                return Err(CallError::Garbled(error.to_string()).into());
            }
            Err(error) => {
                self.counters.bad_objects.up();
                tracing::error!(kind = self.row.kind, %error, "an event cannot be read and is left out");
                return Ok(());
            }
        };
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        if !progress.initial && is_before(version, &self.position) {
            return Err(Trouble::Expired);
        }
        match kind.as_str() {
            "ADDED" | "MODIFIED" => self.store.upsert(&object, &mut self.events),
            "DELETED" => self.store.delete(&object, &mut self.events),
            "BOOKMARK" => {
                let annotations = &object["metadata"]["annotations"];
                if progress.initial && annotations[INITIAL_EVENTS_END] == "true" {
                    progress.initial = false;
                    self.store.end_list(&mut self.events);
                    self.listed(version.to_owned()).await?;
                }
            }
            "ERROR" => {
                let code = object["code"].as_u64().and_then(|code| u16::try_from(code).ok());
                let refusal = Refusal::from_status(code.unwrap_or(500), &object);
                return Err(CallError::Refused(refusal).into());
            }
            other => {
                tracing::debug!(kind = self.row.kind, what = other, "unknown kind of watch event");
            }
        }
        // Initial events come in any order: none of their versions is a place
        // to go on from.
        if !progress.initial && !version.is_empty() && version != self.position {
            version.clone_into(&mut self.position);
            match kind.as_str() {
                "BOOKMARK" => self.bookmarked = true,
                _ => self.advanced = true,
            }
        }
        Ok(())
    }
}

/// The server knows no initial events, or does not serve them for this kind.
fn is_unserved(refusal: &Refusal) -> bool {
    matches!(refusal.code, 400 | 405 | 406 | 422 | 501)
}

/// Whether a version is older than the place where the watch is. Versions of
/// built-in kinds are numbers that grow; going back means that the API server
/// was set back to an earlier state, of which our picture shows too much.
fn is_before(version: &str, position: &str) -> bool {
    match (version.parse::<u64>(), position.parse::<u64>()) {
        (Ok(version), Ok(position)) => version < position,
        _ => false,
    }
}

fn broken(error: LinesCodecError) -> Trouble {
    let text = match error {
        LinesCodecError::MaxLineLengthExceeded => "an event is too long".to_owned(),
        LinesCodecError::Io(error) => error.to_string(),
    };
    Trouble::Call(CallError::Unreachable(format!("the watch broke: {text}")))
}
