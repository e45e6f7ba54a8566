//! The rules of the election, without time or IO of its own.

use std::time::Duration;

use jiff::Timestamp;

use crate::record::{Record, Sighting};
use crate::timing::{JITTER_FACTOR, Timing};

/// One competitor: told what happened and when, it says what to do next.
///
/// ```text
///             lock is free, expired or ours: write ─► Leader ─► Ended (expired, taken)
///  Candidate ─┤                                        │
///             others hold it: wait                     └─ resign ─► Resigning ─► Ended
/// ```
///
/// The owner asks [`next`](Self::next), does it, and reports with
/// [`read`](Self::read), [`wrote`](Self::wrote) or [`failed`](Self::failed). To
/// ask for the next action instead of reporting means that the outcome of the
/// request is not known, which is a kind of failure.
///
/// An `Update` must be a compare and swap: it may only succeed on the version
/// that the same elector's last `Read`, `Create` or `Update` returned.
#[derive(Clone, Debug)]
pub struct Elector {
    identity: String,
    timing: Timing,
    chance: u64,
    role: Role,
    step: Step,
    seen: Option<Seen>,
    /// Whether an update without reading first may succeed.
    knows_version: bool,
    slowpath: u64,
}

/// The time of a call.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// By [`Clock::elapsed`](crate::Clock::elapsed).
    pub elapsed: Duration,
    /// The time of day.
    pub wall: Timestamp,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing until then, by [`Now::elapsed`].
    Wait(Duration),
    /// Read the lock.
    Read,
    /// Create the lock, which must fail if it exists.
    Create(Record),
    /// Replace what stands in the lock, if nobody else has meanwhile.
    Update(Record),
    /// Nothing any more.
    Stop(Ended),
}

/// How a term, or a candidacy, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No renewal succeeded within the renew deadline.
    Expired,
    /// The lock does not name us any more.
    Taken {
        /// Whom it names; empty for nobody.
        by: String,
    },
    /// As was asked for.
    Resigned,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Role {
    Candidate,
    Leader { until: Duration },
    Resigning,
    Ended(Ended),
}

#[derive(Clone, Debug)]
enum Step {
    /// Between two tries.
    Rest {
        until: Duration,
    },
    Read,
    Write {
        how: How,
    },
    /// A request is out.
    Reading,
    Writing {
        record: Record,
        how: How,
        sent: Duration,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Create,
    /// After a read in the same try.
    Careful,
    /// On the version that we wrote last: mostly nobody else did.
    Optimistic,
}

/// What the lock looked like when it last changed.
#[derive(Clone, Debug)]
struct Seen {
    record: Record,
    /// What to compare the next sighting with; `None` after a write of our own.
    sighting: Option<Sighting>,
    at: Duration,
}

impl Elector {
    /// A candidate. The seed spreads candidates in time.
    pub fn new(identity: impl Into<String>, timing: Timing, seed: u64) -> Self {
        Self {
            identity: identity.into(),
            timing,
            chance: seed,
            role: Role::Candidate,
            step: Step::Rest { until: Duration::ZERO },
            seen: None,
            knows_version: false,
            slowpath: 0,
        }
    }

    /// Until when nobody else can lead; `None` when this one does not lead.
    pub fn leads_until(&self) -> Option<Duration> {
        match self.role {
            Role::Leader { until } => Some(until),
            _ => None,
        }
    }

    /// The record that was last seen or written, and when.
    pub fn observed(&self) -> Option<(&Record, Duration)> {
        self.seen.as_ref().map(|seen| (&seen.record, seen.at))
    }

    /// How often the leader had to read the lock before it could renew.
    pub fn slowpath(&self) -> u64 {
        self.slowpath
    }

    /// How long the request that is out may take.
    pub fn patience(&self, now: Now) -> Duration {
        let left = self.leads_until().map(|until| until.saturating_sub(now.elapsed));
        left.unwrap_or(Duration::MAX).min(self.timing.patience())
    }

    /// Gives the lock back, if it is held. The work must have ended before.
    pub fn resign(&mut self) {
        match self.role {
            Role::Leader { .. } => {
                self.role = Role::Resigning;
                self.abandon();
                self.step = Step::Rest { until: Duration::ZERO };
            }
            Role::Candidate => self.role = Role::Ended(Ended::Resigned),
            Role::Resigning | Role::Ended(_) => {}
        }
    }

    /// What to do now.
    pub fn next(&mut self, now: Now) -> Action {
        if self.leads_until().is_some_and(|until| until <= now.elapsed) {
            self.role = Role::Ended(Ended::Expired);
        }
        if matches!(self.step, Step::Reading | Step::Writing { .. }) {
            self.failed(now);
        }
        if let Role::Ended(ended) = &self.role {
            return Action::Stop(ended.clone());
        }
        if let Step::Rest { until } = self.step {
            if now.elapsed < until {
                return Action::Wait(self.leads_until().map_or(until, |end| end.min(until)));
            }
            let leads = !matches!(self.role, Role::Candidate);
            let optimistic = Step::Write { how: How::Optimistic };
            self.step = if leads && self.knows_version { optimistic } else { Step::Read };
        }
        let Step::Write { how } = self.step else {
            self.step = Step::Reading;
            return Action::Read;
        };
        let record = self.record(now);
        self.step = Step::Writing { record: record.clone(), how, sent: now.elapsed };
        match how {
            How::Create => Action::Create(record),
            How::Careful | How::Optimistic => Action::Update(record),
        }
    }

    /// The lock was read; `None`: it does not exist.
    pub fn read(&mut self, found: Option<Sighting>, now: Now) {
        self.knows_version = found.is_some();
        let Some(found) = found else { return self.missing(now) };
        if self.seen.as_ref().is_none_or(|seen| seen.sighting.as_ref() != Some(&found)) {
            let record = found.record.clone();
            self.seen = Some(Seen { record, sighting: Some(found.clone()), at: now.elapsed });
        }
        let holder = found.record.holder;
        let is_ours = holder == self.identity;
        match &self.role {
            Role::Candidate if is_ours || holder.is_empty() || self.expiry() <= now.elapsed => {
                self.step = Step::Write { how: How::Careful };
            }
            Role::Candidate => self.rest(now),
            Role::Leader { .. } | Role::Resigning if is_ours => {
                self.slowpath += u64::from(self.leads_until().is_some());
                self.step = Step::Write { how: How::Careful };
            }
            Role::Leader { .. } => self.role = Role::Ended(Ended::Taken { by: holder }),
            Role::Resigning => self.role = Role::Ended(Ended::Resigned),
            Role::Ended(_) => {}
        }
    }

    /// The lock was created or updated as asked.
    pub fn wrote(&mut self, now: Now) {
        let rest = Step::Rest { until: now.elapsed + self.timing.retry_period };
        let Step::Writing { record, sent, .. } = std::mem::replace(&mut self.step, rest) else {
            return;
        };
        self.seen = Some(Seen { record, sighting: None, at: now.elapsed });
        self.knows_version = true;
        // Counted from when it was sent: others cannot have seen it earlier.
        let until = sent + self.timing.renew_deadline;
        match self.role {
            Role::Leader { .. } => self.role = Role::Leader { until },
            // It came too late to begin a term with, but the lock is ours, which
            // the next read will show.
            Role::Candidate if until <= now.elapsed => {}
            Role::Candidate => self.role = Role::Leader { until },
            Role::Resigning => self.role = Role::Ended(Ended::Resigned),
            Role::Ended(_) => {}
        }
    }

    /// The request failed, or nobody knows whether it did.
    pub fn failed(&mut self, now: Now) {
        let was_optimistic = self.abandon();
        match self.role {
            Role::Leader { .. } | Role::Resigning if was_optimistic => self.step = Step::Read,
            Role::Resigning => self.role = Role::Ended(Ended::Resigned),
            _ => self.rest(now),
        }
    }

    /// Forgets the request that is out; whether it was an optimistic update.
    fn abandon(&mut self) -> bool {
        if matches!(self.step, Step::Reading | Step::Writing { .. }) {
            self.knows_version = false;
        }
        matches!(self.step, Step::Writing { how: How::Optimistic, .. })
    }

    /// The lock is not there.
    fn missing(&mut self, now: Now) {
        let others = self
            .seen
            .as_ref()
            .is_some_and(|s| !s.record.holder.is_empty() && s.record.holder != self.identity);
        match self.role {
            Role::Resigning => self.role = Role::Ended(Ended::Resigned),
            // Whoever held the lock when it was deleted does not know that yet.
            Role::Candidate if others && now.elapsed < self.expiry() => self.rest(now),
            _ => self.step = Step::Write { how: How::Create },
        }
    }

    /// Plans the next try.
    fn rest(&mut self, now: Now) {
        let retry = self.timing.retry_period;
        if self.leads_until().is_some() {
            self.step = Step::Rest { until: now.elapsed + retry };
            return;
        }
        let jittered = now.elapsed + retry + retry.mul_f64(JITTER_FACTOR * self.draw());
        // Nothing is gained by being late when the lease of another runs out.
        let expiry = self.expiry();
        let until = if expiry > now.elapsed { jittered.min(expiry) } else { jittered };
        self.step = Step::Rest { until };
    }

    /// When the lock that was seen may be taken.
    fn expiry(&self) -> Duration {
        self.seen.as_ref().map_or(Duration::ZERO, |seen| {
            let said = u64::try_from(seen.record.lease_duration_seconds).unwrap_or(0);
            let lasts =
                if said == 0 { self.timing.lease_duration } else { Duration::from_secs(said) };
            seen.at.saturating_add(lasts)
        })
    }

    /// What to write now.
    fn record(&self, now: Now) -> Record {
        let old = self.seen.as_ref().map(|seen| &seen.record);
        let transitions = old.map_or(0, |old| old.transitions);
        if self.role == Role::Resigning {
            return Record {
                holder: String::new(),
                lease_duration_seconds: 1,
                acquire_time: Some(now.wall),
                renew_time: Some(now.wall),
                transitions,
            };
        }
        let ours = old.filter(|old| old.holder == self.identity);
        Record {
            holder: self.identity.clone(),
            lease_duration_seconds: self.timing.lease_seconds(),
            acquire_time: ours.and_then(|old| old.acquire_time).or(Some(now.wall)),
            renew_time: Some(now.wall),
            transitions: match (old, ours) {
                (Some(_), None) => transitions.saturating_add(1),
                _ => transitions,
            },
        }
    }

    /// A number from 0 up to and without 1 (SplitMix64).
    fn draw(&mut self) -> f64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.chance;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let top = u32::try_from((z ^ (z >> 31)) >> 32).unwrap_or(u32::MAX);
        f64::from(top) / (f64::from(u32::MAX) + 1.0)
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
