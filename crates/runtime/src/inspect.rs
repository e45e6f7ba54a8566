//! Questions about the scheduler's state, answered by its own thread between
//! two attempts.

use steersman_core::Scheduler;
use tokio::sync::{mpsc, oneshot};

/// Answers one question.
type Question = Box<dyn FnOnce(&Scheduler) + Send>;

/// How many questions may wait.
const QUESTIONS: usize = 16;

/// Asks a running scheduler. Clones ask the same one, also after it was set up
/// anew (see [`Inspector::desk`]).
#[derive(Clone, Debug)]
pub struct Inspector {
    sender: std::sync::Arc<parking_lot::Mutex<mpsc::Sender<Question>>>,
}

/// Where questions come in. Belongs to the scheduler that answers.
#[derive(Debug)]
pub struct Desk(mpsc::Receiver<Question>);

impl Default for Inspector {
    fn default() -> Self {
        let (sender, _) = mpsc::channel(QUESTIONS);
        Self { sender: std::sync::Arc::new(parking_lot::Mutex::new(sender)) }
    }
}

impl Inspector {
    /// The desk of the scheduler that answers from now on.
    pub fn desk(&self) -> Desk {
        let (sender, receiver) = mpsc::channel(QUESTIONS);
        *self.sender.lock() = sender;
        Desk(receiver)
    }

    /// Has the scheduler answer. `None` when none runs, or it ended before it
    /// came to answer. The answer is computed on the scheduling thread: it must
    /// not take long.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        answer: impl FnOnce(&Scheduler) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answered) = oneshot::channel();
        let question = move |scheduler: &Scheduler| {
            // Whoever asked may have given up.
            let _ = reply.send(answer(scheduler));
        };
        let sender = self.sender.lock().clone();
        sender.send(Box::new(question)).await.ok()?;
        answered.await.ok()
    }
}

impl Desk {
    /// A desk at which nobody asks.
    pub fn closed() -> Self {
        Self(mpsc::channel(1).1)
    }

    /// Answers what has been asked by now.
    pub(crate) fn answer(&mut self, scheduler: &Scheduler) {
        while let Ok(question) = self.0.try_recv() {
            question(scheduler);
        }
    }

    /// Waits for a question and answers it; for ever, when nobody can ask.
    pub(crate) async fn next(&mut self) -> Box<dyn FnOnce(&Scheduler) + Send> {
        match self.0.recv().await {
            Some(question) => question,
            None => std::future::pending().await,
        }
    }
}
