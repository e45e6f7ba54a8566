//! A world on paper: every write succeeds at once and is remembered, and what
//! is waited for (a volume that somebody makes) has come.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_framework::condition::{Condition, WaitError};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::world::{ClusterWriter, WriteError};

/// See the module documentation.
#[derive(Default)]
pub(super) struct Paper(Mutex<Vec<Write>>);

/// What was written to an object.
pub(super) struct Write {
    pub(super) resource: &'static str,
    pub(super) key: ObjectKey,
    pub(super) patch: Value,
}

impl Paper {
    pub(super) fn into_writes(self) -> Vec<Write> {
        self.0.into_inner()
    }
}

impl ClusterWriter for Paper {
    fn bind<'a>(
        &'a self,
        _: &'a ObjectKey,
        _: &'a PodUid,
        _: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn patch<'a>(
        &'a self,
        resource: &'static str,
        key: &'a ObjectKey,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        self.0.lock().push(Write { resource, key: key.clone(), patch: patch.clone() });
        Box::pin(std::future::ready(Ok(())))
    }

    fn wait<'a>(
        &'a self,
        _: &'a dyn Condition,
        _: Duration,
    ) -> BoxFuture<'a, Result<(), WaitError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Runs a future to its end on this thread. Plugins that wait for something
/// outside of the simulation would wait forever; they get a bounded number of
/// chances, which plugins that only use the world on paper never need.
pub(super) fn run_to_end<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            return output;
        }
        std::thread::yield_now();
    }
}
