//! DefaultBinder binds pods through the API server.
//!
//! # What it does
//! Writes the pod's `binding` with the chosen node.
//!
//! # Rejects or scores when
//! Never. A write that fails fails the binding cycle, with the reason that the
//! API server gave; the pod is tried again after its backoff.
//!
//! # Args
//! None.
//!
//! # Requeue events
//! None: it rejects no pod.
//!
//! # Parity
//! As kube-scheduler v1.36.

use std::sync::Arc;

use steersman_framework::extensions::{Bind, BindCtx, BoxFuture, Extensions};
use steersman_framework::point::PointSet;
use steersman_framework::registry::Descriptor;
use steersman_framework::verdict::{BindVerdict, PluginError};

/// The plugin's name.
pub const NAME: &str = "DefaultBinder";

/// The plugin's entry in the registry.
pub fn descriptor() -> Descriptor {
    Descriptor::plain(NAME, PointSet::BIND, |_| {
        Ok(Extensions { bind: Some(Arc::new(DefaultBinder)), ..Extensions::default() })
    })
}

struct DefaultBinder;

impl Bind for DefaultBinder {
    fn bind<'a>(&'a self, ctx: BindCtx<'a>) -> BoxFuture<'a, Result<BindVerdict, PluginError>> {
        Box::pin(async move {
            let written = ctx.world.bind(&ctx.pod.key, &ctx.pod.uid, ctx.node).await;
            written.map(|()| BindVerdict::Bound).map_err(|error| PluginError(error.to_string()))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::{Context, Poll, Waker};

    use steersman_api::key::{ObjectKey, PodUid};
    use steersman_api::name::Name;
    use steersman_framework::state::CycleState;
    use steersman_framework::world::{ClusterWriter, WriteError};
    use steersman_testing::bench::Bench;
    use steersman_testing::pod;

    use super::*;

    /// Answers each binding alike, and sees that it is the one that is meant.
    struct World {
        answer: Result<(), WriteError>,
        asked: AtomicBool,
    }

    impl ClusterWriter for World {
        fn bind<'a>(
            &'a self,
            pod: &'a ObjectKey,
            uid: &'a PodUid,
            node: &'a Name,
        ) -> BoxFuture<'a, Result<(), WriteError>> {
            let binding = (pod.to_string(), uid.to_string(), node.to_string());
            assert_eq!(binding, ("ns/a".into(), "uid-ns-a".into(), "n1".into()));
            assert!(!self.asked.swap(true, Ordering::Relaxed), "bound twice");
            Box::pin(ready(self.answer.clone()))
        }
    }

    #[track_caller]
    fn check(answer: Result<(), WriteError>, expected: Result<BindVerdict, &str>) {
        let plugin = Bench::new(&descriptor()).plugin.bind.expect("Bind");
        let world = World { answer, asked: AtomicBool::new(false) };
        let (pod, node, state) = (pod("ns/a").build(), "n1".into(), CycleState::new());
        let ctx = BindCtx { pod: &pod, node: &node, state: &state, world: &world };
        let polled = plugin.bind(ctx).as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(expected.map_err(|text| PluginError(text.to_owned()))));
        assert!(world.asked.load(Ordering::Relaxed), "nothing was written");
    }

    #[test]
    fn binds_the_pod_to_the_chosen_node() {
        check(Ok(()), Ok(BindVerdict::Bound));
    }

    #[test]
    fn fails_as_the_write_failed() {
        let conflict = WriteError::Conflict("pod a is assigned already".into());
        check(Err(conflict), Err("pod a is assigned already"));
        check(Err(WriteError::NotFound("no pod a".into())), Err("no pod a"));
        check(Err(WriteError::Other("timeout".into())), Err("timeout"));
    }
}
