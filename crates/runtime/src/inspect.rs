//! Questions about the scheduler's state, answered by its own thread between
//! two attempts.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use steersman_api::time::Time;
use steersman_core::Scheduler;
use tokio::sync::{mpsc, oneshot};

use crate::status::StatusBoard;

/// The scheduler at one moment.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// The scheduler.
    pub scheduler: &'a Scheduler,
    /// The time on its driver's clock.
    pub now: Time,
}

/// Answers one question.
pub(crate) type Question = Box<dyn FnOnce(Moment<'_>) + Send>;

/// The kinds that are not known completely yet; `None` before it is known
/// which are watched.
type Missing = Arc<Mutex<Option<BTreeSet<&'static str>>>>;

/// The status of pending pods; dangles when no scheduler runs.
type Board = Arc<Mutex<Weak<StatusBoard>>>;

/// How many questions may wait.
const QUESTIONS: usize = 16;

/// Asks a running scheduler. Clones ask the same one, also after it was set up
/// anew (see [`Inspector::desk`]).
#[derive(Clone, Debug)]
pub struct Inspector {
    sender: Arc<Mutex<mpsc::Sender<Question>>>,
    missing: Missing,
    board: Board,
}

/// Where questions come in. Belongs to the scheduler that answers.
#[derive(Debug)]
pub struct Desk {
    questions: mpsc::Receiver<Question>,
    missing: Missing,
    board: Board,
}

impl Default for Inspector {
    fn default() -> Self {
        let (sender, _) = mpsc::channel(QUESTIONS);
        let sender = Arc::new(Mutex::new(sender));
        Self { sender, missing: Missing::default(), board: Board::default() }
    }
}

impl Inspector {
    /// The desk of the scheduler that answers from now on.
    pub fn desk(&self) -> Desk {
        let (sender, questions) = mpsc::channel(QUESTIONS);
        *self.sender.lock() = sender;
        *self.missing.lock() = None;
        Desk { questions, missing: self.missing.clone(), board: self.board.clone() }
    }

    /// The kinds of objects that are not known completely yet, in plural;
    /// `None` when no scheduler has begun to watch.
    pub fn unsynced(&self) -> Option<Vec<&'static str>> {
        self.missing.lock().as_ref().map(|missing| missing.iter().copied().collect())
    }

    /// The status of pending pods, which can be looked at without the scheduling
    /// thread. `None` when no scheduler runs.
    pub(crate) fn board(&self) -> Option<Arc<StatusBoard>> {
        self.board.lock().upgrade()
    }

    /// Has the scheduler answer. `None` when none runs, or it ended before it
    /// came to answer. The answer is computed on the scheduling thread: it must
    /// not take long.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        answer: impl FnOnce(Moment<'_>) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answered) = oneshot::channel();
        let question = move |moment: Moment<'_>| {
            // Whoever asked may have given up: then the work is spared.
            if !reply.is_closed() {
                let _ = reply.send(answer(moment));
            }
        };
        let sender = self.sender.lock().clone();
        sender.send(Box::new(question)).await.ok()?;
        answered.await.ok()
    }
}

impl Desk {
    /// A desk at which nobody asks.
    pub fn closed() -> Self {
        let questions = mpsc::channel(1).1;
        Self { questions, missing: Missing::default(), board: Board::default() }
    }

    /// These kinds are going to be watched, and this is where pods' status is
    /// kept.
    pub(crate) fn begin(&self, kinds: BTreeSet<&'static str>, board: &Arc<StatusBoard>) {
        *self.board.lock() = Arc::downgrade(board);
        *self.missing.lock() = Some(kinds);
    }

    /// A kind is known completely; how many are not.
    pub(crate) fn synced(&self, kind: &'static str) -> usize {
        let mut missing = self.missing.lock();
        let Some(missing) = missing.as_mut() else { return 0 };
        missing.remove(kind);
        missing.len()
    }

    /// Answers what has been asked by now. For drivers.
    pub fn answer(&mut self, moment: Moment<'_>) {
        while let Ok(question) = self.questions.try_recv() {
            question(moment);
        }
    }

    /// Waits for a question; for ever, when nobody can ask.
    pub(crate) async fn next(&mut self) -> Question {
        match self.questions.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Nothing is known by a scheduler that does not run.
        *self.missing.lock() = None;
    }
}
