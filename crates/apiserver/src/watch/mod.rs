//! Watches.
//!
//! A watch reads its table's log with a cursor of its own; nothing is queued
//! for it. One that does not keep up finds that the log has moved on, is told
//! that its version is too old, and ends: the client lists again.

mod encode;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use steersman_apimachinery::error::ApiError;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::encode::Encoder;
use crate::rest::{Body, Call, Selection, parse_revision, too_large, too_old};
use crate::server::ApiServer;
use crate::store::{Change, ChangeKind, Objects, Snapshot, TableId, Unavailable, range};

/// How often a bookmark says how far the client knows everything.
const BOOKMARKS_EVERY: Duration = Duration::from_secs(60);
/// How long a watch goes on at least if the client does not say; the reference
/// ends it between this and twice this.
const SHORTEST_SECONDS: u64 = 1_800;
/// How many changes are read at once.
const BATCH: usize = 256;
/// How much is sent at once, in bytes.
const PIECE: usize = 64 * 1024;

/// Begins a watch.
pub(crate) fn start(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let selection = Selection::of(call)?;
    let options = Options::of(call)?;
    let table = call.table()?;
    let store = &call.server.store;
    let (initial, cursor) = match options.from {
        From::Revision(revision) => {
            let cursor = store.cursor(table, revision).map_err(|why| match why {
                Unavailable::TooOld { oldest } => too_old(revision, oldest),
                Unavailable::TooLarge { current } => too_large(revision, current),
            })?;
            (None, cursor)
        }
        From::Present { not_older_than } => {
            let (Snapshot { objects, revision }, cursor) = store.snapshot_and_cursor(table);
            if not_older_than > revision {
                return Err(too_large(not_older_than, revision));
            }
            (Some(Initial { objects, revision, after: None }), cursor)
        }
    };
    let now = now();
    let watcher = Watcher {
        server: call.request.server.clone(),
        table,
        encoder: Encoder::of(call)?,
        selection,
        initial,
        cursor,
        changed: store.subscribe(table),
        bookmarks: options.bookmarks,
        marks_initial: options.marks_initial,
        next_bookmark: now + BOOKMARKS_EVERY,
        end: now + options.timeout,
        closing: call.request.closing.clone(),
        phase: Phase::Going,
    };
    let frames = futures::stream::unfold(watcher, |mut watcher| async move {
        let piece = watcher.next().await?;
        Some((Ok(Frame::data(piece)), watcher))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    Ok(response)
}

/// Where a watch begins.
enum From {
    /// After this version.
    Revision(u64),
    /// With all objects there are, in a state that is not older than this.
    Present { not_older_than: u64 },
}

struct Options {
    from: From,
    bookmarks: bool,
    /// Whether a bookmark says where the initial objects end.
    marks_initial: bool,
    timeout: Duration,
}

impl Options {
    fn of(call: &Call<'_>) -> Result<Self, ApiError> {
        let query = call.query;
        let revision = parse_revision(query.text("resourceVersion"))?;
        let bookmarks = query.flag("allowWatchBookmarks");
        let matching = query.text("resourceVersionMatch");
        let initial = query.maybe_flag("sendInitialEvents");
        let forbidden = |field: &str, why: &str| {
            let message =
                format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: Forbidden: {why}");
            Err(ApiError::new(422, "Invalid", message))
        };
        match (initial, matching) {
            (None, "") | (Some(_), "NotOlderThan") => {}
            (None, _) => {
                let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                return forbidden("resourceVersionMatch", why);
            }
            (Some(_), _) => {
                let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                return forbidden("resourceVersionMatch", why);
            }
        }
        let from = match initial {
            Some(true) => From::Present { not_older_than: revision },
            // Without initial events there is no version to begin at but the
            // newest.
            Some(false) if revision == 0 => From::Revision(call.server.store.revision()),
            None if revision == 0 => From::Present { not_older_than: 0 },
            _ => From::Revision(revision),
        };
        let asked = query.number("timeoutSeconds")?.and_then(|asked| u64::try_from(asked).ok());
        let seconds = asked
            .filter(|asked| *asked > 0)
            .unwrap_or_else(|| SHORTEST_SECONDS + call.server.random() % SHORTEST_SECONDS);
        Ok(Self {
            from,
            bookmarks,
            marks_initial: bookmarks && initial == Some(true),
            timeout: Duration::from_secs(seconds),
        })
    }
}

/// The objects that are there when the watch begins.
struct Initial {
    objects: Objects,
    revision: u64,
    after: Option<Arc<str>>,
}

#[derive(PartialEq, Eq)]
enum Phase {
    Going,
    Over,
}

struct Watcher {
    server: ApiServer,
    table: TableId,
    encoder: Encoder,
    selection: Selection,
    initial: Option<Initial>,
    cursor: u64,
    changed: watch::Receiver<u64>,
    bookmarks: bool,
    marks_initial: bool,
    next_bookmark: Instant,
    end: Instant,
    closing: CancellationToken,
    phase: Phase,
}

impl Watcher {
    /// The next piece, as soon as there is one; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let mut piece = BytesMut::new();
        while self.phase == Phase::Going {
            if self.initial.is_some() {
                self.send_initial(&mut piece);
            } else {
                self.changed.mark_unchanged();
                self.send_changes(&mut piece);
            }
            if !piece.is_empty() {
                return Some(piece.freeze());
            }
            if self.phase == Phase::Going && self.initial.is_none() && self.is_up_to_date() {
                self.wait(&mut piece).await;
            }
        }
        (!piece.is_empty()).then(|| piece.freeze())
    }

    fn send_initial(&mut self, piece: &mut BytesMut) {
        let Some(initial) = &mut self.initial else { return };
        let all = range(&initial.objects, self.selection.namespace(), initial.after.as_deref());
        let mut last = None;
        for (key, object) in all {
            if self.selection.matches(object) {
                self.encoder.object(piece, "ADDED", object);
            }
            last = Some(key.clone());
            if piece.len() >= PIECE {
                break;
            }
        }
        if piece.len() >= PIECE {
            initial.after = last;
            return;
        }
        let revision = initial.revision;
        self.initial = None;
        if self.marks_initial {
            self.encoder.bookmark(piece, revision, true);
        }
    }

    fn send_changes(&mut self, piece: &mut BytesMut) {
        let read = self.server.inner.store.read(self.table, self.cursor, BATCH);
        let changes = match read {
            Ok((changes, _)) => changes,
            Err(behind) => {
                self.encoder.error(piece, &too_old(behind.oldest.saturating_sub(1), behind.oldest));
                self.phase = Phase::Over;
                return;
            }
        };
        self.cursor += changes.len() as u64;
        for change in &changes {
            self.send_change(piece, change);
        }
    }

    /// What a change means to somebody who sees only selected objects.
    fn send_change(&mut self, piece: &mut BytesMut, change: &Change) {
        let before = change.previous.as_ref().filter(|object| self.selection.matches(object));
        let is_gone = change.kind == ChangeKind::Deleted;
        let is_after = !is_gone && self.selection.matches(&change.object);
        match (before, is_after) {
            (None, false) => {}
            (None, true) => self.encoder.object(piece, "ADDED", &change.object),
            (Some(_), true) => self.encoder.object(piece, "MODIFIED", &change.object),
            (Some(_), false) if is_gone => self.encoder.object(piece, "DELETED", &change.object),
            // It is not gone but no longer selected: the client is shown what it
            // knew, with the version at which it stopped being so.
            (Some(before), false) => self.encoder.left(piece, before, change.revision),
        }
    }

    fn is_up_to_date(&self) -> bool {
        self.cursor >= *self.changed.borrow()
    }

    /// Waits for a change, or for the time of a bookmark or of the end.
    async fn wait(&mut self, piece: &mut BytesMut) {
        let bookmark = if self.bookmarks { self.next_bookmark } else { self.end };
        tokio::select! {
            biased;
            () = self.closing.cancelled() => self.phase = Phase::Over,
            changed = self.changed.changed() => {
                if changed.is_err() {
                    self.phase = Phase::Over;
                }
            }
            () = sleep_until(bookmark.min(self.end)) => {
                if now() >= self.end {
                    self.phase = Phase::Over;
                }
                if self.bookmarks {
                    self.send_bookmark(piece);
                }
                self.next_bookmark = now() + BOOKMARKS_EVERY;
            }
        }
    }

    /// Tells how far the client knows everything, if it does.
    fn send_bookmark(&mut self, piece: &mut BytesMut) {
        if let Ok((changes, known)) = self.server.inner.store.read(self.table, self.cursor, 1)
            && changes.is_empty()
        {
            self.encoder.bookmark(piece, known, false);
        }
    }
}

/// Watches end by the runtime's time, which tests can move.
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
