//! Binding cycles that run beside everything else: they ask for writes at a
//! desk, and get their answers when the history comes to it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::object::{AnyObject, ClusterObject};
use steersman_core::{BindingCycle, BindingReport};
use steersman_framework::condition::{Condition, Objects, Progress, WaitError};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::observer::Unobserved;
use steersman_framework::world::{ClusterWriter, WriteError};
use steersman_testing::decoded;

use crate::told::Told;

/// A binding cycle that was started and has not ended.
pub(crate) struct Running {
    /// Tells it from other cycles of the same pod.
    pub(crate) serial: u64,
    pub(crate) uid: String,
    desk: Arc<Desk>,
    future: Pin<Box<dyn Future<Output = BindingReport>>>,
}

/// What a cycle wants to be done.
#[derive(Debug)]
pub(crate) enum Asked {
    Bind { uid: PodUid, node: Name },
    Patch { resource: &'static str, key: ObjectKey, patch: Value },
}

/// How far a cycle came.
pub(crate) enum Step {
    Asks(Asked),
    Waits,
    Ended(BindingReport),
}

impl Running {
    pub(crate) fn new(serial: u64, cycle: BindingCycle) -> Self {
        let uid = cycle.pod().uid.to_string();
        let desk = Arc::new(Desk::default());
        let world = desk.clone();
        let future = Box::pin(async move { cycle.run(&*world, &mut Unobserved).await });
        Self { serial, uid, desk, future }
    }

    /// Shows what a driver knows now, and whether its patience is at an end.
    pub(crate) fn show(&self, told: &Told, patience_ends: bool) {
        let mut tray = self.desk.0.lock();
        tray.seen = Some(Seen::of(told));
        tray.patience_ends = patience_ends;
    }

    pub(crate) fn answer(&self, answer: Result<(), WriteError>) {
        self.desk.0.lock().answer = Some(answer);
    }

    /// Runs until it asks for something, waits or ends.
    pub(crate) fn run(&mut self) -> Step {
        let mut context = Context::from_waker(Waker::noop());
        match self.future.as_mut().poll(&mut context) {
            Poll::Ready(report) => Step::Ended(report),
            Poll::Pending => self.desk.0.lock().asked.take().map_or(Step::Waits, Step::Asks),
        }
    }
}

/// See the module documentation.
#[derive(Default)]
struct Desk(Mutex<Tray>);

#[derive(Default)]
struct Tray {
    asked: Option<Asked>,
    answer: Option<Result<(), WriteError>>,
    seen: Option<Seen>,
    patience_ends: bool,
}

impl Desk {
    fn ask(&self, asked: Asked) -> BoxFuture<'_, Result<(), WriteError>> {
        self.0.lock().asked = Some(asked);
        Box::pin(poll_fn(|_| self.0.lock().answer.take().map_or(Poll::Pending, Poll::Ready)))
    }
}

impl ClusterWriter for Desk {
    fn bind<'a>(
        &'a self,
        _: &'a ObjectKey,
        uid: &'a PodUid,
        node: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        self.ask(Asked::Bind { uid: uid.clone(), node: node.clone() })
    }

    fn patch<'a>(
        &'a self,
        resource: &'static str,
        key: &'a ObjectKey,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        self.ask(Asked::Patch { resource, key: key.clone(), patch: patch.clone() })
    }

    fn wait<'a>(
        &'a self,
        condition: &'a dyn Condition,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), WaitError>> {
        Box::pin(poll_fn(|_| {
            let tray = self.0.lock();
            let progress = tray.seen.as_ref().map(|seen| condition.check(seen));
            match progress {
                Some(Progress::Done) => Poll::Ready(Ok(())),
                Some(Progress::Failed(why)) => Poll::Ready(Err(WaitError::Failed(why))),
                _ if tray.patience_ends => Poll::Ready(Err(WaitError::TimedOut)),
                _ => Poll::Pending,
            }
        }))
    }
}

/// The objects as the watches have shown them, which may lag behind.
struct Seen {
    pods: BTreeSet<String>,
    nodes: BTreeMap<String, Value>,
    others: BTreeMap<(String, String, String), Value>,
}

impl Seen {
    fn of(told: &Told) -> Self {
        let concerns_volumes = |kind: &str| kind.starts_with("Persistent") || kind.contains("CSI");
        let others = told.others.iter().filter(|((kind, ..), _)| concerns_volumes(kind));
        Self {
            pods: told.pods.keys().cloned().collect(),
            nodes: told.nodes.clone(),
            others: others.map(|(key, object)| (key.clone(), object.clone())).collect(),
        }
    }
}

impl Objects for Seen {
    fn object(&self, resource: &'static str, key: &ObjectKey) -> Option<AnyObject> {
        let key = (resource.to_owned(), key.namespace.to_string(), key.name.to_string());
        match decoded(self.others.get(&key)?.clone()) {
            ClusterObject::Other(object) => Some(object),
            _ => None,
        }
    }

    fn node(&self, name: &Name) -> Option<Arc<Node>> {
        match decoded(self.nodes.get(name.as_str())?.clone()) {
            ClusterObject::Node(node) => Some(node),
            _ => None,
        }
    }

    fn is_gone(&self, pod: &PodUid) -> bool {
        !self.pods.contains(&*pod.0)
    }
}
