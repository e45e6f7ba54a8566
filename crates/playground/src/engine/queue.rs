//! Which objects are to be looked at, and when.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::cluster::Key;
use crate::controller::Controller;

/// One object that one controller looks at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task {
    /// The controller.
    pub controller: Controller,
    /// The object.
    pub key: Key,
}

/// How the calls of a plan went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// All of them succeeded.
    Well,
    /// Somebody else had changed the object.
    Conflict,
    /// Something failed.
    Failed,
}

const CONFLICT_DELAY: SignedDuration = SignedDuration::from_millis(20);
const LONGEST_CONFLICT_DELAY: SignedDuration = SignedDuration::from_secs(5);
const FIRST_DELAY: SignedDuration = SignedDuration::from_millis(100);
const LONGEST_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// A task is idle, due at a time, or running; a running one is not started
/// again before it has ended, so two plans for one object never overlap.
#[derive(Debug, Default)]
pub(super) struct Queue {
    due: BTreeSet<(Timestamp, Task)>,
    at: BTreeMap<Task, Timestamp>,
    running: BTreeMap<Task, Option<Timestamp>>,
    trouble: BTreeMap<Task, Trouble>,
    /// How often in a row somebody else was faster.
    conflicts: BTreeMap<Task, u32>,
    /// When tasks of controllers that wait between plans may be looked at.
    rest: BTreeMap<Task, Timestamp>,
}

#[derive(Debug)]
struct Trouble {
    n_failures: u32,
    not_before: Timestamp,
}

impl Queue {
    /// Wants the task at that time, or earlier if it is wanted earlier already.
    pub(super) fn wake(&mut self, task: Task, at: Timestamp) {
        if let Some(after) = self.running.get_mut(&task) {
            *after = Some(after.map_or(at, |other| other.min(at)));
            return;
        }
        let trouble = self.trouble.get(&task).map(|trouble| trouble.not_before);
        let rest = self.rest.get(&task).copied();
        let at = [trouble, rest].into_iter().flatten().fold(at, Timestamp::max);
        if let Some(known) = self.at.get(&task).copied() {
            if known <= at {
                return;
            }
            self.due.remove(&(known, task.clone()));
        }
        self.at.insert(task.clone(), at);
        self.due.insert((at, task));
    }

    /// When the next task is due.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A task that is due.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<Task> {
        if self.next()? > now {
            return None;
        }
        let (_, task) = self.due.pop_first()?;
        self.at.remove(&task);
        self.rest.remove(&task);
        if let Some(pause) = task.controller.pause() {
            self.rest.insert(task.clone(), now + pause);
        }
        Some(task)
    }

    /// The task's plan is being carried out.
    pub(super) fn started(&mut self, task: Task) {
        self.running.insert(task, None);
    }

    /// The task's plan has been carried out.
    pub(super) fn ended(&mut self, task: Task, how: Ended, now: Timestamp) {
        let wanted = self.running.remove(&task).flatten();
        match how {
            Ended::Well => {
                self.trouble.remove(&task);
                self.conflicts.remove(&task);
                // What the calls changed has woken the task if it concerns it;
                // waking it in any case could go on for ever.
                if let Some(at) = wanted {
                    self.wake(task, at);
                }
            }
            // News of the object may wake the task earlier. Without any, as
            // when the watch is behind, it would only fail again.
            Ended::Conflict => {
                let n_conflicts = self.conflicts.entry(task.clone()).or_default();
                let delay = CONFLICT_DELAY.saturating_mul(1_i32 << (*n_conflicts).min(16));
                *n_conflicts += 1;
                if let Some(at) = wanted {
                    self.wake(task.clone(), at);
                }
                self.wake(task, now + delay.min(LONGEST_CONFLICT_DELAY));
            }
            Ended::Failed => {
                let n_failures = self.trouble.get(&task).map_or(0, |t| t.n_failures);
                let factor = 1_i32 << n_failures.min(16);
                let delay = FIRST_DELAY.saturating_mul(factor).min(LONGEST_DELAY);
                let not_before = now + delay;
                self.trouble
                    .insert(task.clone(), Trouble { n_failures: n_failures + 1, not_before });
                self.wake(task, not_before);
            }
        }
    }

    /// Forgets the rests and troubles of tasks that are over, so that objects
    /// that come and go leave nothing behind.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        self.rest.retain(|_, until| *until > now);
        let at = &self.at;
        let running = &self.running;
        let lives = |task: &Task| at.contains_key(task) || running.contains_key(task);
        self.trouble.retain(|task, _| lives(task));
        self.conflicts.retain(|task, _| lives(task));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millisecond(millis).expect("a small number")
    }

    fn task() -> Task {
        Task { controller: Controller::Kubelet, key: Key::new("default", "a") }
    }

    #[test]
    fn task_is_due_at_the_earliest_time_it_was_wanted() {
        let mut queue = Queue::default();
        queue.wake(task(), at(50));
        queue.wake(task(), at(20));
        queue.wake(task(), at(30));
        assert_eq!(queue.next(), Some(at(20)));
        assert_eq!(queue.pop(at(19)), None);
        assert_eq!(queue.pop(at(20)), Some(task()));
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn running_task_waits_until_it_has_ended() {
        let mut queue = Queue::default();
        queue.wake(task(), at(0));
        queue.pop(at(0));
        queue.started(task());
        queue.wake(task(), at(1));
        assert_eq!(queue.next(), None);
        queue.ended(task(), Ended::Well, at(9));
        assert_eq!(queue.next(), Some(at(1)));
    }

    /// How long after each of `n` ends like this the task is due.
    fn delays(how: Ended, n: usize) -> Vec<f64> {
        let mut queue = Queue::default();
        let mut now = at(0);
        let mut delays = Vec::new();
        queue.wake(task(), now);
        for _ in 0..n {
            let due = queue.next().expect("it is queued");
            delays.push((due - now).total(jiff::Unit::Millisecond).expect("a span of time"));
            queue.pop(due);
            queue.started(task());
            queue.ended(task(), how, due);
            now = due;
        }
        delays
    }

    #[test]
    fn failures_are_retried_later_and_later() {
        let expected =
            [0., 100., 200., 400., 800., 1600., 3200., 6400., 12800., 25600., 30000., 30000.];
        assert_eq!(delays(Ended::Failed, 12), expected);
    }

    #[test]
    fn conflicts_without_news_do_not_go_round_and_round() {
        let expected = [0., 20., 40., 80., 160., 320., 640., 1280., 2560., 5000., 5000.];
        assert_eq!(delays(Ended::Conflict, 11), expected);
    }

    #[test]
    fn news_of_an_object_wake_after_a_conflict_but_not_after_a_failure() {
        for (how, expected) in [(Ended::Conflict, 1), (Ended::Failed, 100)] {
            let mut queue = Queue::default();
            queue.wake(task(), at(0));
            queue.pop(at(0));
            queue.started(task());
            queue.ended(task(), how, at(0));
            queue.wake(task(), at(1));
            assert_eq!(queue.next(), Some(at(expected)), "{how:?}");
        }
    }
}
