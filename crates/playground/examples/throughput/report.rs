//! What was measured, as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_runtime::Summary;

use crate::meter::{Calls, Kind};
use crate::process::Cpu;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Table,
    Json,
}

/// What was measured.
pub(crate) struct Measured {
    pub(crate) n_nodes: usize,
    pub(crate) n_pods: usize,
    pub(crate) http: bool,
    pub(crate) drain: bool,
    pub(crate) metrics: bool,
    pub(crate) output: Output,
    pub(crate) created_in: Duration,
    /// From the first creation, or the start of the scheduler if pods were
    /// there before it, to the last binding.
    pub(crate) took: Duration,
    /// Sorted.
    pub(crate) latencies: Vec<Duration>,
    /// Of the time `took`.
    pub(crate) cpu: Cpu,
    /// Of the time `took`.
    pub(crate) calls: BTreeMap<Kind, Calls>,
    pub(crate) peak_mib: u64,
    pub(crate) summary: Summary,
    pub(crate) problems: Vec<String>,
}

const PERCENTILES: [usize; 4] = [50, 90, 99, 100];

impl Measured {
    pub(crate) fn text(&self) -> String {
        match self.output {
            Output::Table => self.table(),
            Output::Json => format!("{:#}", self.json()),
        }
    }

    fn rate(&self, time: Duration) -> f64 {
        let n = u32::try_from(self.n_pods).unwrap_or(u32::MAX);
        f64::from(n) / time.as_secs_f64().max(1e-9)
    }

    fn percentiles(&self) -> Vec<(usize, f64)> {
        let at = |percent: usize| {
            let index = (self.latencies.len() * percent).div_ceil(100).max(1) - 1;
            let latency = self.latencies.get(index).copied().unwrap_or_default();
            (percent, latency.as_secs_f64() * 1e3)
        };
        PERCENTILES.map(at).to_vec()
    }

    fn table(&self) -> String {
        let way = if self.http { "TLS on loopback" } else { "in-process" };
        let order = if self.drain { "pods before the scheduler" } else { "scheduler running" };
        let metrics = if self.metrics { "with metrics" } else { "without metrics" };
        let mut text = format!(
            "{} nodes, {} pods, {way}, {order}, {metrics}\n\n\
             created      {:>9.0} pods/s  ({:.2?})\n\
             bound        {:>9.0} pods/s  ({:.2?})\n",
            self.n_nodes,
            self.n_pods,
            self.rate(self.created_in),
            self.created_in,
            self.rate(self.took),
            self.took,
        );
        text.push_str("create→bound");
        for (percent, millis) in self.percentiles() {
            let _ = write!(text, "  p{percent} {millis:.1} ms");
        }
        let _ = write!(text, "\npeak memory  {:>9} MiB\n", self.peak_mib);
        let Summary { attempts, errors, binding_retries, events_written, events_dropped, .. } =
            self.summary;
        let _ = writeln!(
            text,
            "attempts     {attempts:>9}  errors {errors}, bindings sent again {binding_retries}, \
             events written {events_written}, dropped {events_dropped}"
        );
        let wall = self.took.as_secs_f64().max(1e-9);
        let total = self.cpu.total().as_secs_f64();
        let _ = write!(text, "\nprocessor    {total:>9.2} s\n");
        for (thread, time) in &self.cpu.0 {
            let time = time.as_secs_f64();
            let share = 100. * time / wall;
            let _ = writeln!(text, "  {thread:<14} {time:>6.2} s  {share:>4.0}% of a processor");
        }
        let what = if self.http { "client's work" } else { "API server's work" };
        let _ =
            writeln!(text, "\nrequests                                        n   refused  {what}");
        let all: Duration = self.calls.values().map(|calls| calls.busy).sum();
        for ((who, what), Calls { n, n_refused, busy }) in &self.calls {
            let busy = busy.as_secs_f64();
            let share = 100. * busy / all.as_secs_f64().max(1e-9);
            let _ = writeln!(
                text,
                "  {who:<9} {what:<30} {n:>6} {n_refused:>9}  {busy:>6.2} s  {share:>4.1}%"
            );
        }
        for problem in &self.problems {
            let _ = writeln!(text, "PROBLEM: {problem}");
        }
        text
    }

    fn json(&self) -> Value {
        let seconds = |time: Duration| time.as_secs_f64();
        let percentiles = self.percentiles().into_iter();
        let percentiles: BTreeMap<_, _> =
            percentiles.map(|(p, ms)| (format!("p{p}"), ms)).collect();
        let threads = self.cpu.0.iter().map(|(name, time)| (name.clone(), seconds(*time)));
        let calls = self.calls.iter().map(|((who, what), calls)| {
            json!({"client": who, "request": what, "count": calls.n, "refused": calls.n_refused,
                   "busySeconds": seconds(calls.busy)})
        });
        json!({
            "nodes": self.n_nodes,
            "pods": self.n_pods,
            "http": self.http,
            "drain": self.drain,
            "metrics": self.metrics,
            "createdPerSecond": self.rate(self.created_in),
            "boundPerSecond": self.rate(self.took),
            "seconds": seconds(self.took),
            "latencyMilliseconds": percentiles,
            "processorSeconds": seconds(self.cpu.total()),
            "processorSecondsByThread": threads.collect::<BTreeMap<_, _>>(),
            "peakMebibytes": self.peak_mib,
            "attempts": self.summary.attempts,
            "errors": self.summary.errors,
            "bindingRetries": self.summary.binding_retries,
            "eventsWritten": self.summary.events_written,
            "eventsDropped": self.summary.events_dropped,
            "requests": calls.collect::<Vec<_>>(),
            "problems": self.problems,
        })
    }
}
