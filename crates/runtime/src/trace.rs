//! Spans of what the scheduler does, for whoever subscribes to `tracing`.
//!
//! ```text
//! scheduling_cycle                 one attempt, on the scheduling thread
//! ├─ PreFilter                     all plugins of an extension point
//! │  └─ PreFilter/NodeAffinity     one call of one plugin
//! ├─ Filter                        all nodes that are looked at
//! │  └─ Filter/NodeResourcesFit    all its calls: `calls`, `rejected`, `busy_us`
//! ├─ PreScore, Score, Reserve, Permit
//! └─ binding_cycle                 elsewhere, later
//!    └─ PreBind, Bind, PostBind
//! ```
//!
//! [`Traced`](crate::Traced) makes a listener of [`Spans`]: that is all it takes.
//! Whoever drives the core otherwise has [`Spans`] observe each attempt, calls
//! [`Spans::finish`] after it on the same thread, asks for [`Spans::binding`] when
//! the binding starts and runs it within [`BindingSpans::span`], and calls
//! [`Spans::forget`] when an attempt or its binding failed.
//!
//! Spans of the scheduling cycle are current while the plugins run, so what these
//! ask of others can carry the trace along. In a binding cycle, which runs on any
//! thread, only the span of the whole is.
//!
//! An attempt that is not sampled costs one span, which is thrown away.

use std::collections::HashMap;
use std::time::Duration;

use steersman_api::key::PodUid;
use steersman_api::pod::PodInfo;
use steersman_core::{Attempt, Outcome as Ended};
use steersman_framework::observer::{Call, Observer, Outcome, Phase};
use steersman_framework::point::ExtensionPoint;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, info_span};

/// Whether anybody will see the span. `steersman_telemetry` has one.
pub type IsSampled = fn(&Span) -> bool;

/// Opens spans for attempts and binding cycles.
#[derive(Debug, Default)]
pub struct Spans {
    /// `None` opens none.
    is_sampled: Option<IsSampled>,
    cycle: Option<Cycle>,
    /// Attempts that found a node, until their bindings start.
    parents: HashMap<PodUid, Span>,
}

/// The attempt at hand.
#[derive(Debug)]
struct Cycle {
    pod: PodUid,
    /// Disabled when nobody will see it; then nothing below is opened.
    span: Span,
    is_over: bool,
    /// Extension points, one within the other.
    phases: Vec<PhaseSpans>,
    /// The call under way, at points that look at no node.
    call: Option<Span>,
}

#[derive(Debug)]
struct PhaseSpans {
    point: ExtensionPoint,
    span: Span,
    /// Since when a call about a node is under way.
    since: Option<Instant>,
    /// Calls about nodes, in the order of the plugins.
    sums: Vec<Sum>,
}

/// All calls of one plugin about nodes.
#[derive(Debug)]
struct Sum {
    plugin: &'static str,
    n_calls: u64,
    n_rejected: u64,
    busy: Duration,
}

impl Spans {
    /// Opens a span for each attempt, and more for those of which `is_sampled`
    /// says yes.
    pub fn new(is_sampled: IsSampled) -> Self {
        Self { is_sampled: Some(is_sampled), ..Self::default() }
    }

    /// Opens none.
    pub fn off() -> Self {
        Self::default()
    }

    /// Whether there is any use in observing.
    pub fn enabled(&self) -> bool {
        self.is_sampled.is_some()
    }

    /// How the attempt went. To be called on the thread that made it, before
    /// another is made.
    pub fn finish(&mut self, attempt: &Attempt) {
        self.close();
        let Some(Cycle { pod, span, .. }) = self.cycle.take() else { return };
        if pod != attempt.pod.uid || span.is_disabled() {
            return;
        }
        span.record("nodes.evaluated", attempt.n_evaluated);
        span.record("nodes.feasible", attempt.n_feasible);
        span.record("result", result(&attempt.outcome));
        match &attempt.outcome {
            Ended::Assumed(node) | Ended::Waiting(node) => {
                span.record("node", node.as_str());
                // Its binding cycle belongs to the same trace.
                self.parents.insert(pod, span);
            }
            Ended::Rejected { node, plugin, .. } => {
                span.record("node", node.as_str());
                span.record("rejected_by", plugin);
            }
            Ended::Error(error) => failed(&span, error),
            Ended::Unschedulable(_) => {}
        }
    }

    /// The observer of the binding cycle of a pod whose last attempt succeeded.
    pub fn binding(&mut self, pod: &PodUid) -> BindingSpans {
        let span = match self.parents.remove(pod) {
            Some(parent) => info_span!(
                parent: &parent,
                "binding_cycle",
                otel.status_code = Empty,
                otel.status_description = Empty,
            ),
            None => Span::none(),
        };
        BindingSpans { span, phase: Span::none(), call: Span::none() }
    }

    /// There is no binding, or no more, after the pod's last attempt.
    pub fn forget(&mut self, pod: &PodUid) {
        self.parents.remove(pod);
    }

    /// The cycle at hand; `None` when nobody will see its spans.
    fn visible(&mut self) -> Option<&mut Cycle> {
        self.cycle.as_mut().filter(|cycle| !cycle.span.is_disabled() && !cycle.is_over)
    }

    /// Ends what is still open of the attempt at hand.
    fn close(&mut self) {
        let Some(cycle) = self.visible() else { return };
        cycle.is_over = true;
        if let Some(call) = cycle.call.take() {
            exit(&call);
        }
        while let Some(phase) = cycle.phases.pop() {
            phase.close();
        }
        exit(&cycle.span);
    }
}

/// The word that the reference's metrics have for it, and one for pods that wait
/// at Permit.
fn result(outcome: &Ended) -> &'static str {
    match outcome {
        Ended::Assumed(_) => "scheduled",
        Ended::Waiting(_) => "waiting",
        Ended::Unschedulable(_) | Ended::Rejected { .. } => "unschedulable",
        Ended::Error(_) => "error",
    }
}

impl Observer for Spans {
    fn cycle_begins(&mut self, pod: &PodInfo, attempt: u32) {
        self.close();
        let Some(is_sampled) = self.is_sampled else { return };
        let span = cycle_span(pod, attempt);
        let span = if is_sampled(&span) { span } else { Span::none() };
        enter(&span);
        let (pod, phases) = (pod.uid.clone(), Vec::new());
        self.cycle = Some(Cycle { pod, span, is_over: false, phases, call: None });
    }

    fn cycle_ends(&mut self, _: &PodInfo) {
        self.close();
    }

    fn phase_begins(&mut self, phase: Phase<'_>) {
        let Some(cycle) = self.visible() else { return };
        let span = phase_span(cycle.innermost(), phase.point);
        enter(&span);
        cycle.phases.push(PhaseSpans { point: phase.point, span, since: None, sums: Vec::new() });
    }

    fn phase_ends(&mut self, phase: Phase<'_>, outcome: Outcome<'_>) {
        let Some(cycle) = self.visible() else { return };
        if let Some(ends) = cycle.phases.pop_if(|open| open.point == phase.point) {
            ended(&ends.span, outcome);
            ends.close();
        }
    }

    fn before(&mut self, call: Call<'_>) {
        let Some(cycle) = self.visible() else { return };
        if let Some(phase) = cycle.summing(call.point) {
            phase.since = Some(Instant::now());
            return;
        }
        let span = call_span(cycle.innermost(), call);
        enter(&span);
        cycle.call = Some(span);
    }

    fn after(&mut self, call: Call<'_>, outcome: Outcome<'_>) {
        let Some(cycle) = self.visible() else { return };
        if let Some(phase) = cycle.summing(call.point) {
            phase.add(call.plugin, outcome);
        } else if let Some(span) = cycle.call.take() {
            ended(&span, outcome);
            exit(&span);
        }
    }

    fn wants_nodes(&self) -> bool {
        self.cycle.as_ref().is_some_and(|cycle| !cycle.span.is_disabled() && !cycle.is_over)
    }
}

impl Cycle {
    fn innermost(&self) -> &Span {
        self.phases.last().map_or(&self.span, |phase| &phase.span)
    }

    /// The phase at hand, if calls at this point are about nodes: so many that
    /// they are added up.
    fn summing(&mut self, point: ExtensionPoint) -> Option<&mut PhaseSpans> {
        let is_about_nodes = matches!(point, ExtensionPoint::Filter | ExtensionPoint::Score);
        self.phases.last_mut().filter(|phase| is_about_nodes && phase.point == point)
    }
}

impl PhaseSpans {
    fn add(&mut self, plugin: &'static str, outcome: Outcome<'_>) {
        let busy = self.since.take().map(|since| since.elapsed()).unwrap_or_default();
        let at = self.sums.iter().position(|sum| sum.plugin == plugin).unwrap_or_else(|| {
            self.sums.push(Sum { plugin, n_calls: 0, n_rejected: 0, busy: Duration::ZERO });
            self.sums.len() - 1
        });
        let sum = &mut self.sums[at];
        sum.n_calls += 1;
        sum.n_rejected += u64::from(matches!(outcome, Outcome::Rejected(_)));
        sum.busy += busy;
    }

    fn close(self) {
        let Self { point, span, sums, .. } = self;
        for Sum { plugin, n_calls, n_rejected, busy } in sums {
            // Without a length of its own: calls about nodes alternate.
            info_span!(
                parent: &span,
                "plugin",
                otel.name = %format_args!("{point}/{plugin}"),
                extension_point = point.name(),
                plugin,
                calls = n_calls,
                rejected = n_rejected,
                busy_us = u64::try_from(busy.as_micros()).unwrap_or(u64::MAX),
            );
        }
        exit(&span);
    }
}

/// Observes a binding cycle. Plugins there wait for the world, on whatever
/// thread: their spans are never current.
#[derive(Debug)]
pub struct BindingSpans {
    span: Span,
    phase: Span,
    call: Span,
}

impl BindingSpans {
    /// The span of the binding cycle, to run it within; disabled when nobody
    /// will see it.
    pub fn span(&self) -> &Span {
        &self.span
    }
}

impl Observer for BindingSpans {
    fn phase_begins(&mut self, phase: Phase<'_>) {
        if !self.span.is_disabled() {
            self.phase = phase_span(&self.span, phase.point);
        }
    }

    fn phase_ends(&mut self, _: Phase<'_>, outcome: Outcome<'_>) {
        ended(&self.phase, outcome);
        self.phase = Span::none();
        if let Outcome::Error(error) = outcome {
            failed(&self.span, error);
        }
    }

    fn before(&mut self, call: Call<'_>) {
        if !self.span.is_disabled() {
            self.call = call_span(&self.phase, call);
        }
    }

    fn after(&mut self, _: Call<'_>, outcome: Outcome<'_>) {
        ended(&self.call, outcome);
        self.call = Span::none();
    }
}

fn cycle_span(pod: &PodInfo, attempt: u32) -> Span {
    info_span!(
        parent: None,
        "scheduling_cycle",
        k8s.namespace.name = &*pod.key.namespace,
        k8s.pod.name = &*pod.key.name,
        k8s.pod.uid = &*pod.uid.0,
        profile = pod.spec.scheduler_name.as_str(),
        attempt,
        nodes.evaluated = Empty,
        nodes.feasible = Empty,
        node = Empty,
        result = Empty,
        rejected_by = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    )
}

fn phase_span(parent: &Span, point: ExtensionPoint) -> Span {
    info_span!(
        parent: parent,
        "extension_point",
        otel.name = point.name(),
        status = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    )
}

fn call_span(parent: &Span, call: Call<'_>) -> Span {
    let Call { point, plugin, node, .. } = call;
    let span = info_span!(
        parent: parent,
        "plugin",
        otel.name = %format_args!("{point}/{plugin}"),
        extension_point = point.name(),
        plugin,
        node = Empty,
        status = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    );
    if let Some(node) = node {
        span.record("node", node.as_str());
    }
    span
}

fn ended(span: &Span, outcome: Outcome<'_>) {
    span.record("status", outcome.status());
    if let Outcome::Error(error) = outcome {
        failed(span, error);
    }
}

fn failed(span: &Span, error: &str) {
    span.record("otel.status_code", "ERROR");
    span.record("otel.status_description", error);
}

// By hand: a guard would borrow the span and tie the listener to its thread.

fn enter(span: &Span) {
    span.with_subscriber(|(id, subscriber)| subscriber.enter(id));
}

fn exit(span: &Span) {
    span.with_subscriber(|(id, subscriber)| subscriber.exit(id));
}

#[cfg(test)]
mod tests;
