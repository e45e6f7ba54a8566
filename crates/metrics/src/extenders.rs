//! Measures extenders from outside: an extender around each.

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_framework::extender::{
    Extender, ExtenderError, Filtered, NodeVictims, Pending, Priority, Roles, Wants,
};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::verdict::Preemption;
use tokio::time::Instant;

use crate::SchedulerMetrics;

/// An extender whose calls are measured.
pub(crate) struct MeasuredExtender {
    pub(crate) inner: Arc<dyn Extender>,
    pub(crate) metrics: Arc<SchedulerMetrics>,
}

impl MeasuredExtender {
    fn measure<T>(&self, verb: &str, began: Instant, answer: &Result<T, ExtenderError>) {
        let ours = &self.metrics.ours;
        let (name, took) = (self.inner.name(), began.elapsed().as_secs_f64());
        ours.extender_duration.with_label_values(&[name, verb]).observe(took);
        let result = if answer.is_ok() { "success" } else { "error" };
        ours.extender_calls.with_label_values(&[name, verb, result]).inc();
    }
}

/// How many calls of this kind are under way, while it lives.
struct UnderWay(prometheus::IntGauge);

impl UnderWay {
    fn begin(metrics: &SchedulerMetrics) -> Self {
        let goroutines = &metrics.scheduler.goroutines;
        let gauge = goroutines.with_label_values(&["prioritizing_extender"]);
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Extender for MeasuredExtender {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn roles(&self) -> Roles {
        self.inner.roles()
    }

    fn is_interested(&self, pod: &PodInfo) -> bool {
        self.inner.is_interested(pod)
    }

    fn is_ignorable(&self) -> bool {
        self.inner.is_ignorable()
    }

    fn wants(&self) -> Wants {
        self.inner.wants()
    }

    fn weight(&self) -> i64 {
        self.inner.weight()
    }

    fn filter(&self, pod: &PodInfo, nodes: &[&NodeInfo]) -> Result<Filtered, ExtenderError> {
        let began = Instant::now();
        let answer = self.inner.filter(pod, nodes);
        self.measure("filter", began, &answer);
        answer
    }

    fn prioritize<'a>(
        &'a self,
        pod: &'a PodInfo,
        nodes: &'a [&'a NodeInfo],
    ) -> Pending<'a, Vec<Priority>> {
        let began = Instant::now();
        let under_way = UnderWay::begin(&self.metrics);
        let pending = self.inner.prioritize(pod, nodes);
        Pending::new(move || {
            let answer = pending.wait();
            drop(under_way);
            self.measure("prioritize", began, &answer);
            answer
        })
    }

    fn preempt(
        &self,
        pod: &PodInfo,
        candidates: &[Preemption],
    ) -> Result<Vec<NodeVictims>, ExtenderError> {
        let began = Instant::now();
        let answer = self.inner.preempt(pod, candidates);
        self.measure("preempt", began, &answer);
        answer
    }

    fn bind<'a>(
        &'a self,
        pod: &'a PodInfo,
        node: &'a Name,
    ) -> BoxFuture<'a, Result<(), ExtenderError>> {
        let began = Instant::now();
        let bound = self.inner.bind(pod, node);
        Box::pin(async move {
            let answer = bound.await;
            self.measure("bind", began, &answer);
            answer
        })
    }
}
