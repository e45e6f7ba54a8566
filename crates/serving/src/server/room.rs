//! Room for connections, and who has to go when there is none.
//!
//! Whoever holds many connections must not keep a probe out. So a new
//! connection always gets a place as long as any other one does nothing that a
//! client must be let to finish: the one goes that has been quiet for longest. A
//! handshake that is not done, a request whose head is not complete and a
//! request whose client is not known yet count as quiet, since anybody can hold
//! a connection in these states.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::activity::Activity;

/// How long a connection may be quiet in any case: an answer is on its way, or
/// a handshake has only begun.
const QUIET: Duration = Duration::from_millis(250);

/// The places.
pub(super) struct Room {
    limit: usize,
    table: Mutex<Table>,
    /// Told when a place may have become free, or a connection quiet.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Table {
    next: u64,
    taken: BTreeMap<u64, Taken>,
    /// Whom was last told to go.
    leaving: Option<u64>,
}

struct Taken {
    activity: Arc<Activity>,
    leave: CancellationToken,
}

/// A connection's place, until it is dropped.
pub(super) struct Place {
    room: Arc<Room>,
    number: u64,
    /// What the connection does.
    pub(super) activity: Arc<Activity>,
    /// Cancelled when it is to go for another one.
    pub(super) leave: CancellationToken,
}

impl Room {
    /// Room for so many, 1 at the least.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit: limit.max(1), table: Mutex::default(), changed: Arc::default() })
    }

    /// A place for one more connection. Not for several callers at once.
    pub(super) async fn place(self: &Arc<Self>) -> Place {
        loop {
            let again = match self.look(Instant::now()) {
                Ok(place) => return place,
                Err(again) => again,
            };
            let pause = async {
                match again {
                    Some(again) => tokio::time::sleep_until(again).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = pause => {}
            }
        }
    }

    /// A place, or when to look again even if nothing changes. Tells a connection
    /// to go if that helps.
    fn look(self: &Arc<Self>, now: Instant) -> Result<Place, Option<Instant>> {
        let table = &mut *self.table.lock();
        if table.taken.len() < self.limit {
            return Ok(self.take(table));
        }
        if table.leaving.is_some() {
            return Err(None);
        }
        let quiet = table.taken.iter().filter_map(|(number, taken)| {
            taken.activity.quiet_since().map(|since| (since, *number))
        });
        let Some((since, number)) = quiet.min() else { return Err(None) };
        let until = since + QUIET;
        if until > now {
            return Err(Some(until));
        }
        table.leaving = Some(number);
        table.taken[&number].leave.cancel();
        Err(None)
    }

    fn take(self: &Arc<Self>, table: &mut Table) -> Place {
        let number = table.next;
        table.next += 1;
        let activity = Arc::new(Activity::new(self.changed.clone()));
        let leave = CancellationToken::new();
        table.taken.insert(number, Taken { activity: activity.clone(), leave: leave.clone() });
        Place { room: self.clone(), number, activity, leave }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let table = &mut *self.room.table.lock();
        table.taken.remove(&self.number);
        if table.leaving == Some(self.number) {
            table.leaving = None;
        }
        self.room.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    /// Looks for a place; whoever is told to go does so at once.
    async fn enter(room: &Arc<Room>, inside: &mut Vec<(&'static str, Place)>, name: &'static str) {
        let mut entering = pin!(room.place());
        let place = loop {
            if let Poll::Ready(place) = futures::poll!(&mut entering) {
                break place;
            }
            inside.retain(|(_, place)| !place.leave.is_cancelled());
            tokio::time::advance(Duration::from_millis(1)).await;
        };
        inside.push((name, place));
    }

    fn names(inside: &[(&'static str, Place)]) -> String {
        inside.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_been_quiet_for_longest_goes_for_a_new_one() {
        let (room, mut inside) = (Room::new(3), Vec::new());
        for name in ["a", "b", "c"] {
            enter(&room, &mut inside, name).await;
        }
        tokio::time::advance(QUIET).await;
        // It has asked later than the others came.
        drop(inside[0].1.activity.start());
        for (name, expected) in [("d", "a c d"), ("e", "a d e"), ("f", "d e f")] {
            enter(&room, &mut inside, name).await;
            assert_eq!(names(&inside), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_has_time_for_its_handshake_however_many_come() {
        let (room, mut inside) = (Room::new(2), Vec::new());
        for name in ["a", "b", "c", "d"] {
            enter(&room, &mut inside, name).await;
        }
        assert_eq!(names(&inside), "c d");
        let start = Instant::now();
        enter(&room, &mut inside, "e").await;
        assert!(start.elapsed() >= QUIET / 2, "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_may_be_made_are_waited_for_and_others_are_not() {
        let room = Room::new(2);
        let (asking, unknown) = (room.place().await, room.place().await);
        let mut request = asking.activity.start();
        request.admit();
        tokio::time::advance(QUIET).await;
        let unknown_request = unknown.activity.start();
        let mut third = pin!(room.place());
        assert!(futures::poll!(&mut third).is_pending());
        assert!(!asking.leave.is_cancelled() && !unknown.leave.is_cancelled());
        tokio::time::advance(QUIET).await;
        assert!(futures::poll!(&mut third).is_pending());
        assert!(!asking.leave.is_cancelled() && unknown.leave.is_cancelled());
        drop(unknown_request);
        drop(unknown);
        let third = third.await;

        let mut other = third.activity.start();
        other.admit();
        let mut fourth = pin!(room.place());
        let waited = tokio::time::timeout(Duration::from_secs(3600), &mut fourth).await;
        assert!(waited.is_err(), "both places are in use");
        drop(request);
        let waited = tokio::time::timeout(QUIET * 2, &mut fourth);
        assert!(waited.await.is_err() && asking.leave.is_cancelled());
    }
}
