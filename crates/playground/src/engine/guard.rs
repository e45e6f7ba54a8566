//! A bug in one controller, or an object that nobody thought of, must not end
//! the others.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt;

use super::plan::Plan;
use super::queue::{Ended, Task};
use crate::cluster::News;

/// The plan; `None` if making it panicked. The task is not wanted again before
/// something about its object changes: it would most likely only panic again.
pub(super) fn planned(task: &Task, plan: impl FnOnce() -> Plan) -> Option<Plan> {
    // A plan is made from what it may only read, so nothing is left half done.
    let planned = catch_unwind(AssertUnwindSafe(plan));
    if planned.is_err() {
        let Task { controller, key } = task;
        tracing::error!(?controller, %key, "a controller panicked over an object");
    }
    planned.ok()
}

/// How a plan went. One that panics has failed: it is tried again later.
pub(super) async fn carried_out(
    task: &Task,
    calls: impl Future<Output = (Vec<News>, Ended)>,
) -> (Vec<News>, Ended) {
    let carried_out = Box::pin(AssertUnwindSafe(calls).catch_unwind()).await;
    carried_out.unwrap_or_else(|_| {
        let Task { controller, key } = task;
        tracing::error!(?controller, %key, "the calls for an object caused a panic");
        (Vec::new(), Ended::Failed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Key;
    use crate::controller::Controller;

    fn task() -> Task {
        Task { controller: Controller::Kubelet, key: Key::new("default", "a") }
    }

    #[test]
    fn plan_that_panics_is_no_plan() {
        assert!(planned(&task(), || panic!("a bug")).is_none());
        assert!(planned(&task(), Plan::default).is_some());
    }

    #[tokio::test]
    async fn calls_that_panic_have_failed() {
        let (news, how) = carried_out(&task(), async { panic!("a bug") }).await;
        assert_eq!((news.len(), how), (0, Ended::Failed));
        let (_, how) = carried_out(&task(), async { (Vec::new(), Ended::Well) }).await;
        assert_eq!(how, Ended::Well);
    }
}
