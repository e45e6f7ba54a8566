//! A time of leading.

use std::pin::pin;

use thiserror::Error;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::elector::Ended;
use crate::leadership::Leadership;
use crate::runner::Runner;

/// This process leads, and a task renews the lease. When this is dropped the
/// lease is neither renewed nor given back: it runs out.
#[derive(Debug)]
#[must_use = "the lease is not renewed any more when the term is dropped"]
pub struct Term {
    leadership: Leadership,
    ended: watch::Receiver<Option<Ended>>,
    resign: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// The lease was lost.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Lost {
    /// It could not be renewed in time.
    #[error("the leader lease could not be renewed in time")]
    Expired,
    /// Somebody took it, or emptied it.
    #[error("the leader lease was taken by {0:?}")]
    Taken(String),
    /// The task that renews it is gone, which only happens when the runtime ends
    /// or an observer panicked.
    #[error("the leader lease is not renewed any more")]
    Abandoned,
}

impl Term {
    pub(crate) fn start(leadership: Leadership, runner: Runner) -> Self {
        let (resign, asked) = oneshot::channel();
        let (sender, ended) = watch::channel(None);
        // A task of its own: work that keeps its thread busy must not keep the
        // lease from being renewed.
        let task = tokio::spawn(Box::pin(runner.lead(asked, sender)));
        Self { leadership, ended, resign: Some(resign), task }
    }

    /// The token to ask before each act that only the leader may do.
    pub fn leadership(&self) -> Leadership {
        self.leadership.clone()
    }

    /// Waits until the lease is lost.
    pub async fn lost(&mut self) -> Lost {
        let ended = match self.ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone(),
            Err(_) => None,
        };
        self.leadership.end();
        match ended {
            Some(Ended::Expired) => Lost::Expired,
            Some(Ended::Taken { by }) => Lost::Taken(by),
            Some(Ended::Resigned) | None => Lost::Abandoned,
        }
    }

    /// Works until the work ends or the lease is lost; then the work is dropped.
    ///
    /// # Errors
    /// When the lease was lost before the work was done.
    pub async fn hold<F: Future>(&mut self, work: F) -> Result<F::Output, Lost> {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            lost = self.lost() => Err(lost),
            output = &mut work => Ok(output),
        }
    }

    /// Ends the term and gives the lease back, so that another need not wait.
    /// All work must have ended before. Takes a few seconds at the most.
    pub async fn release(mut self) {
        self.leadership.end();
        if let Some(resign) = self.resign.take() {
            // Without a task to ask, the lease is lost already.
            let _ = resign.send(());
        }
        let _ = (&mut self.task).await;
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.leadership.end();
        self.task.abort();
    }
}
