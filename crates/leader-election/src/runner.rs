//! Does what the elector says.

use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Status;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::clock::Clock;
use crate::election::Observer;
use crate::elector::{Action, Elector, Ended, Now};
use crate::events::Events;
use crate::leadership::Leadership;
use crate::lock::{Lock, LockError};
use crate::monitor::{Metrics, Monitor, State};
use crate::record::Record;
use crate::term::Term;

/// An elector with its surroundings.
pub(crate) struct Runner {
    pub(crate) elector: Elector,
    pub(crate) lock: Lock,
    pub(crate) events: Events,
    pub(crate) identity: String,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) monitor: Monitor,
    pub(crate) lead: Option<Lead>,
    /// The lock, for people.
    pub(crate) described: String,
    /// What was said last about a failure, to say it once.
    pub(crate) complaint: String,
}

/// While it exists, this process leads. Dropped however the runner ends.
pub(crate) struct Lead {
    leadership: Leadership,
    observer: Arc<dyn Observer>,
    monitor: Monitor,
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.leadership.end();
        self.monitor.stop_leading();
        self.observer.stopped_leading();
    }
}

/// Two programs that share a lock by mistake look like one that does nothing.
const STANDING_BY: &str = "standing by for as long as another holds the lock; programs that are to \
    work at the same time need locks of different names (a Kubernetes component's flag: \
    --leader-elect-resource-name)";

impl Runner {
    /// Competes until it leads.
    pub(crate) async fn acquire(mut self) -> Term {
        let until = loop {
            if let Some(until) = self.elector.leads_until() {
                break until;
            }
            // A candidate that nobody asks to stop does not.
            self.advance().await;
        };
        tracing::info!(identity = self.identity, "successfully acquired the leader lease");
        let leadership = Leadership::new(self.clock.clone(), until);
        let (observer, monitor) = (self.observer.clone(), self.monitor.clone());
        self.lead = Some(Lead { leadership: leadership.clone(), observer, monitor });
        self.publish();
        self.observer.started_leading();
        let event = self.event("became leader");
        tokio::spawn(event);
        Term::start(leadership, self)
    }

    /// Renews until the term ends, or until it is asked to resign.
    pub(crate) async fn lead(
        mut self,
        mut asked: oneshot::Receiver<()>,
        sender: watch::Sender<Option<Ended>>,
    ) {
        let mut is_asked = false;
        let ended = loop {
            tokio::select! {
                biased;
                answer = &mut asked, if !is_asked => {
                    is_asked = true;
                    // A term that is only dropped sends nothing.
                    if answer.is_ok() {
                        self.lead = None;
                        self.elector.resign();
                    }
                }
                ended = self.advance() => if let Some(ended) = ended { break ended },
            }
        };
        self.lead = None;
        match &ended {
            Ended::Resigned => tracing::info!(identity = self.identity, "stopped leading"),
            Ended::Expired => tracing::error!(
                identity = self.identity,
                "failed to renew the leader lease in time"
            ),
            Ended::Taken { by } => {
                tracing::error!(identity = self.identity, by, "the leader lease was taken")
            }
        }
        let event = self.event("stopped leading");
        sender.send_replace(Some(ended));
        event.await;
    }

    /// One action. Dropped in the middle, it leaves a request whose outcome the
    /// elector does not know.
    async fn advance(&mut self) -> Option<Ended> {
        let now = self.now();
        let action = self.elector.next(now);
        let patience = self.elector.patience(now);
        match action {
            Action::Wait(until) => sleep(until.saturating_sub(now.elapsed)).await,
            Action::Read => {
                let found = within(patience, self.lock.read()).await;
                let now = self.now();
                match found {
                    Ok(found) => self.elector.read(found, now),
                    Err(error) => self.failed("read", &error),
                }
            }
            Action::Create(record) => {
                let done = within(patience, self.lock.create(&record)).await;
                self.wrote(&record, done);
            }
            Action::Update(record) => {
                let done = within(patience, self.lock.update(&record)).await;
                self.wrote(&record, done);
            }
            Action::Stop(ended) => return Some(ended),
        }
        self.publish();
        None
    }

    fn wrote(&mut self, record: &Record, done: Result<(), LockError>) {
        match done {
            Ok(()) => {
                tracing::trace!(holder = record.holder, "wrote the leader lease");
                self.complaint.clear();
                let now = self.now();
                self.elector.wrote(now);
            }
            Err(error) => self.failed("write", &error),
        }
    }

    fn failed(&mut self, what: &str, error: &LockError) {
        let complaint = format!("cannot {what} the lock: {}", chain(error));
        if error.is_conflict() || complaint == self.complaint {
            tracing::debug!("{complaint}");
        } else {
            tracing::warn!("{complaint}");
            self.complaint = complaint;
        }
        let now = self.now();
        self.elector.failed(now);
    }

    /// Tells everybody what is known now.
    fn publish(&self) {
        if let (Some(lead), Some(until)) = (&self.lead, self.elector.leads_until()) {
            lead.leadership.extend(until);
        }
        let Some((record, observed)) = self.elector.observed() else { return };
        let metrics = Metrics {
            is_leader: self.lead.is_some(),
            slowpath: self.elector.slowpath(),
            transitions: record.transitions,
        };
        let leader = record.holder.clone();
        if self.monitor.update(State { metrics, leader, observed }) {
            if self.lead.is_none() && record.holder != self.identity {
                tracing::info!(lock = self.described, leader = record.holder, "{STANDING_BY}");
            }
            self.observer.new_leader(&record.holder);
        }
    }

    fn event(&self, did: &str) -> impl Future<Output = ()> + Send + use<> {
        self.events.record(&self.lock, &self.identity, did, self.clock.wall())
    }

    fn now(&self) -> Now {
        Now { elapsed: self.clock.elapsed(), wall: self.clock.wall() }
    }
}

async fn within<T>(
    patience: Duration,
    request: impl Future<Output = Result<T, LockError>>,
) -> Result<T, LockError> {
    timeout(patience, request).await.unwrap_or(Err(LockError::Slow))
}

/// An error with its causes.
fn chain(error: &LockError) -> String {
    let mut text = error.to_string();
    if let Some(status) = error.refusal() {
        // The client's own text has all its fields as a program sees them.
        let _ = write!(text, ": {}", sentence(status));
        return text;
    }
    let mut source = error.source();
    while let Some(error) = source {
        let said = error.to_string();
        // Some errors repeat their cause.
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        source = error.source();
    }
    text
}

/// What the API server said, for people. A proxy's answer may lack all of it.
fn sentence(status: &Status) -> String {
    let reason = match status.reason.as_str() {
        "" => "no reason given",
        reason => reason,
    };
    let code = status.code;
    match status.message.trim() {
        "" => format!("the API server refused it: {reason} (code {code})"),
        message => format!("the API server refused it: {reason} (code {code}): {message}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(status: Value, expected: &str) {
        let status: Status = serde_json::from_value(status).expect("a status");
        let error = LockError::Request(Box::new(kube::Error::Api(status.boxed())));
        assert_eq!(chain(&error), expected);
    }

    #[test]
    fn a_refusal_is_told_in_a_sentence_and_not_as_a_dump_of_its_fields() {
        let message = "leases.coordination.k8s.io \"kube-scheduler\" is forbidden: User \"x\" \
                       cannot get resource \"leases\"";
        check(
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                   "message": message, "reason": "Forbidden", "code": 403,
                   "details": {"name": "kube-scheduler", "kind": "leases"}}),
            &format!(
                "the request failed: the API server refused it: Forbidden (code 403): {message}"
            ),
        );
        check(
            json!({"code": 502, "message": "  "}),
            "the request failed: the API server refused it: no reason given (code 502)",
        );
    }

    #[test]
    fn other_errors_are_told_with_their_causes_once_each() {
        let broken = std::io::Error::other("connection reset");
        let error = LockError::Request(Box::new(kube::Error::Service(Box::new(broken))));
        let text = chain(&error);
        assert!(text.starts_with("the request failed: "), "{text}");
        assert_eq!(text.matches("connection reset").count(), 1, "{text}");
        assert_eq!(chain(&LockError::Slow), "the request did not end in time");
    }
}
