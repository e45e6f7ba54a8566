//! Every family there is. Names, labels, buckets and stability of `scheduler_*`
//! and of the component metrics are kube-scheduler v1.36's
//! (`testdata/reference-v1.36.json` says from where); what begins with
//! `steersman_` is this project's own.

use prometheus::{
    Counter, Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
};

use crate::define::{Definer, Head, Stability, exponential};

use Stability::{Alpha, Beta, Own, Raw, Stable};

/// The reference's `scheduler_*`, without what is about plugins.
pub(crate) struct Scheduler {
    pub(crate) attempts: IntCounterVec,
    pub(crate) attempt_duration: HistogramVec,
    pub(crate) algorithm_duration: Histogram,
    pub(crate) event_handling: HistogramVec,
    pub(crate) preemption_victims: Histogram,
    pub(crate) preemption_attempts: IntCounter,
    pub(crate) pending_pods: IntGaugeVec,
    pub(crate) inflight_events: IntGaugeVec,
    pub(crate) goroutines: IntGaugeVec,
    pub(crate) sli_duration: HistogramVec,
    pub(crate) pod_attempts: Histogram,
    pub(crate) after_flush: IntCounter,
    pub(crate) incoming: IntCounterVec,
    pub(crate) permit_wait: HistogramVec,
    pub(crate) cache_size: IntGaugeVec,
    pub(crate) unschedulable_pods: IntGaugeVec,
    pub(crate) evictions_duration: HistogramVec,
    pub(crate) evictions: IntCounterVec,
}

impl Scheduler {
    pub(crate) fn new(d: &mut Definer<'_>) -> Self {
        Self {
            attempts: d.counters(
                Head(Stable, "scheduler_schedule_attempts_total", "Attempts to schedule a pod, by how they ended: 'scheduled', 'unschedulable' (no node fits, or a plugin said no) or 'error' (something failed)."),
                &["result", "profile"],
            ),
            attempt_duration: d.histograms(
                Head(Stable, "scheduler_scheduling_attempt_duration_seconds", "How long an attempt took from its begin until the pod was bound, or until it failed."),
                &["result", "profile"],
                exponential(0.001, 2.0, 15),
            ),
            algorithm_duration: d.histogram(
                Head(Alpha, "scheduler_scheduling_algorithm_duration_seconds", "How long it took to find a node, or that none fits and what can be done about it."),
                exponential(0.001, 2.0, 15),
            ),
            event_handling: d.histograms(
                Head(Alpha, "scheduler_event_handling_duration_seconds", "How long it took to take in a change of the cluster, waking of pods included."),
                &["event"],
                exponential(0.0001, 2.0, 12),
            ),
            preemption_victims: d.histogram(
                Head(Stable, "scheduler_preemption_victims", "How many pods a preemption evicts."),
                exponential(1.0, 2.0, 7),
            ),
            preemption_attempts: d.counter(Head(Stable, "scheduler_preemption_attempts_total", "How often it was asked whether evicting others makes room for a pod.")),
            pending_pods: d.gauges(
                Head(Stable, "scheduler_pending_pods", "Pods without a node, by where they wait: 'active' (tried next), 'backoff' (tried after a while), 'unschedulable' (tried, until something changes) or 'gated' (kept out by a PreEnqueue plugin)."),
                &["queue"],
            ),
            inflight_events: d.gauges(
                Head(Alpha, "scheduler_inflight_events", "Changes of the cluster that are remembered for pods being scheduled; 'PodPopped' counts those pods."),
                &["event"],
            ),
            goroutines: d.gauges(
                Head(Beta, "scheduler_goroutines", "Work under way beside the scheduling thread: 'binding' counts pods that are being bound or wait at Permit."),
                &["operation"],
            ),
            sli_duration: d.histograms(
                Head(Beta, "scheduler_pod_scheduling_sli_duration_seconds", "How long it took from a pod's entry into the queue, the time it was gated left out, until it was bound, by how many attempts it needed."),
                &["attempts"],
                exponential(0.01, 2.0, 20),
            ),
            pod_attempts: d.histogram(
                Head(Stable, "scheduler_pod_scheduling_attempts", "How many attempts a pod needed until it was bound."),
                exponential(1.0, 2.0, 5),
            ),
            after_flush: d.counter(Head(Alpha, "scheduler_pod_scheduled_after_flush_total", "Pods that were bound after only the five-minute flush had brought them back: a queueing hint or an event is missing.")),
            incoming: d.counters(
                Head(Stable, "scheduler_queue_incoming_pods_total", "Pods that came into a part of the queue, by what brought them."),
                &["queue", "event"],
            ),
            permit_wait: d.histograms(
                Head(Beta, "scheduler_permit_wait_duration_seconds", "How long pods waited at Permit."),
                &["result"],
                exponential(0.001, 2.0, 15),
            ),
            cache_size: d.gauges(
                Head(Alpha, "scheduler_cache_size", "Known nodes, pods on nodes, and those of them that the API server has not confirmed."),
                &["type"],
            ),
            unschedulable_pods: d.gauges(
                Head(Beta, "scheduler_unschedulable_pods", "Pods without a node by the plugin that rejected them. A pod counts once for each of its plugins: do not add them up."),
                &["plugin", "profile"],
            ),
            evictions_duration: d.histograms(
                Head(Alpha, "scheduler_preemption_goroutines_duration_seconds", "How long it took to request the evictions of one preemption."),
                &["result"],
                exponential(0.01, 2.0, 20),
            ),
            evictions: d.counters(
                Head(Alpha, "scheduler_preemption_goroutines_execution_total", "Preemptions whose evictions were requested."),
                &["result"],
            ),
        }
    }
}

/// The part of `scheduler_*` that says what plugins do.
pub(crate) struct Plugins {
    pub(crate) point_duration: HistogramVec,
    pub(crate) plugin_duration: HistogramVec,
    pub(crate) hint_duration: HistogramVec,
    pub(crate) evaluations: IntCounterVec,
}

impl Plugins {
    pub(crate) fn new(d: &mut Definer<'_>) -> Self {
        Self {
            point_duration: d.histograms(
                Head(Stable, "scheduler_framework_extension_point_duration_seconds", "How long all plugins of an extension point took for one pod."),
                &["extension_point", "status", "profile"],
                exponential(0.0001, 2.0, 12),
            ),
            plugin_duration: d.histograms(
                Head(Alpha, "scheduler_plugin_execution_duration_seconds", "How long one call of a plugin took, in one of ten attempts."),
                &["plugin", "extension_point", "status"],
                exponential(0.000_01, 1.5, 20),
            ),
            hint_duration: d.histograms(
                Head(Alpha, "scheduler_queueing_hint_execution_duration_seconds", "How long one call of a plugin's queueing hint took, for one of ten calls."),
                &["plugin", "event", "hint"],
                exponential(0.000_01, 1.5, 20),
            ),
            evaluations: d.counters(
                Head(Beta, "scheduler_plugin_evaluation_total", "How often plugins were asked at PreFilter, Filter, PreScore and Score; Filter and Score once for each node."),
                &["plugin", "extension_point", "profile"],
            ),
        }
    }
}

/// What every Kubernetes component has.
pub(crate) struct Component {
    pub(crate) requests: IntCounterVec,
    pub(crate) request_duration: HistogramVec,
    pub(crate) request_size: HistogramVec,
    pub(crate) response_size: HistogramVec,
    pub(crate) leader: IntGaugeVec,
    pub(crate) slowpath: IntCounterVec,
    pub(crate) build: IntGaugeVec,
    pub(crate) feature: IntGaugeVec,
    pub(crate) registered: IntCounterVec,
    pub(crate) disabled: IntCounter,
    pub(crate) hidden: IntCounter,
}

/// The bounds of sizes, in bytes.
const SIZES: [f64; 11] = [
    64.0,
    256.0,
    512.0,
    1024.0,
    4096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
];

/// The bounds of how long requests take, in seconds.
const LATENCIES: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];

impl Component {
    pub(crate) fn new(d: &mut Definer<'_>) -> Self {
        Self {
            requests: d.counters(
                Head(Alpha, "rest_client_requests_total", "Requests to API servers, by status code ('<error>' without an answer), method and host."),
                &["code", "method", "host"],
            ),
            request_duration: d.histograms(
                Head(Alpha, "rest_client_request_duration_seconds", "How long it took until the head of an answer came, by method and host."),
                &["verb", "host"],
                LATENCIES.to_vec(),
            ),
            request_size: d.histograms(
                Head(Alpha, "rest_client_request_size_bytes", "How large requests' bodies were, by method and host."),
                &["verb", "host"],
                SIZES.to_vec(),
            ),
            response_size: d.histograms(
                Head(Alpha, "rest_client_response_size_bytes", "How large answers' bodies were whose size their head says, by method and host."),
                &["verb", "host"],
                SIZES.to_vec(),
            ),
            leader: d.gauges(
                Head(Alpha, "leader_election_master_status", "Whether this process holds the lock: 1 if so, 0 if it stands by. 'name' is the lock's name: group by it."),
                &["name"],
            ),
            slowpath: d.counters(
                Head(Alpha, "leader_election_slowpath_total", "How often renewing the lock took more than one request. 'name' is the lock's name: group by it."),
                &["name"],
            ),
            build: d.gauges(
                Head(Beta, "kubernetes_build_info", "Always 1; the labels say which build runs, and which release of Kubernetes it follows."),
                &["major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler", "platform"],
            ),
            feature: d.gauges(
                Head(Beta, "kubernetes_feature_enabled", "Whether a feature gate is on, by its stage."),
                &["name", "stage"],
            ),
            registered: d.counters(
                Head(Beta, "registered_metrics_total", "How many families of metrics there are, by stability."),
                &["stability_level", "deprecated_version"],
            ),
            disabled: d.counter(Head(Beta, "disabled_metrics_total", "Families that were switched off with --disabled-metrics.")),
            hidden: d.counter(Head(Beta, "hidden_metrics_total", "Families that are hidden since they are deprecated.")),
        }
    }
}

/// Results of health checks: a page of their own.
pub(crate) struct Checks {
    pub(crate) latest: IntGaugeVec,
    pub(crate) all: IntCounterVec,
}

impl Checks {
    pub(crate) fn new(d: &mut Definer<'_>) -> Self {
        Self {
            latest: d.gauges(
                Head(Stable, "kubernetes_healthcheck", "Whether a health check was passed the last time it was made: 1 if so. 'type' is healthz, livez or readyz."),
                &["name", "type"],
            ),
            all: d.counters(
                Head(Stable, "kubernetes_healthchecks_total", "Health checks that were made, by result: 'success' or 'error'."),
                &["name", "type", "status"],
            ),
        }
    }
}

/// What the process says of itself; filled in on Linux.
pub(crate) struct Process {
    pub(crate) cpu_seconds: Counter,
    pub(crate) open_fds: IntGauge,
    pub(crate) max_fds: IntGauge,
    pub(crate) virtual_memory: IntGauge,
    pub(crate) resident_memory: IntGauge,
    pub(crate) start_time: Gauge,
    pub(crate) threads: IntGauge,
}

impl Process {
    pub(crate) fn new(d: &mut Definer<'_>) -> Self {
        Self {
            cpu_seconds: d.float_counter(Head(
                Raw,
                "process_cpu_seconds_total",
                "CPU time of the process, in user and system mode, in seconds.",
            )),
            open_fds: d.gauge(Head(Raw, "process_open_fds", "Open file descriptors.")),
            max_fds: d.gauge(Head(
                Raw,
                "process_max_fds",
                "How many file descriptors may be open.",
            )),
            virtual_memory: d.gauge(Head(Raw, "process_virtual_memory_bytes", "Virtual memory.")),
            resident_memory: d.gauge(Head(
                Raw,
                "process_resident_memory_bytes",
                "Memory that is really in use.",
            )),
            start_time: d.float_gauge(Head(
                Alpha,
                "process_start_time_seconds",
                "When the process started, in seconds since 1970.",
            )),
            threads: d.gauge(Head(Own, "steersman_process_threads", "Threads of the process.")),
        }
    }
}

/// This project's own.
pub(crate) struct Ours {
    pub(crate) build: IntGaugeVec,
    pub(crate) wakes: IntCounterVec,
    pub(crate) flushed: IntCounter,
    pub(crate) evaluated: Histogram,
    pub(crate) feasible: Histogram,
    pub(crate) waiting: IntGauge,
    pub(crate) binding: IntGauge,
    pub(crate) answers: IntGauge,
    pub(crate) unsynced: IntGauge,
    pub(crate) lists: IntCounter,
    pub(crate) watches: IntCounter,
    pub(crate) bad_objects: IntCounter,
    pub(crate) binding_retries: IntCounter,
    pub(crate) events: IntCounterVec,
    pub(crate) status_writes: IntCounter,
    pub(crate) generation: IntGauge,
    pub(crate) reloads: IntCounterVec,
    pub(crate) last_reload: IntGauge,
    pub(crate) extender_duration: HistogramVec,
    pub(crate) extender_calls: IntCounterVec,
}

impl Ours {
    pub(crate) fn new(d: &mut Definer<'_>) -> Self {
        Self {
            build: d.gauges(
                Head(Own, "steersman_build_info", "Always 1; the labels say which build runs."),
                &["version", "commit", "rust_version"],
            ),
            wakes: d.counters(
                Head(Own, "steersman_wakes_total", "Pods that an event brought back from the unschedulable ones, by the plugin whose hint said so and by whether the pod found a node ('useful') or not ('vain')."),
                &["event", "plugin", "result"],
            ),
            flushed: d.counter(Head(Own, "steersman_flushed_pods_total", "Pods that only the five-minute flush brought back.")),
            evaluated: d.histogram(
                Head(Own, "steersman_evaluated_nodes", "How many nodes an attempt looked at."),
                exponential(1.0, 4.0, 9),
            ),
            feasible: d.histogram(
                Head(Own, "steersman_feasible_nodes", "How many nodes an attempt found that can run the pod."),
                exponential(1.0, 4.0, 9),
            ),
            waiting: d.gauge(Head(Own, "steersman_waiting_pods", "Pods that wait at Permit.")),
            binding: d.gauge(Head(Own, "steersman_binding_pods", "Pods whose binding runs.")),
            answers: d.gauge(Head(Own, "steersman_scheduling_thread_answers", "Whether the scheduling thread answered this scrape: 1 if so. Where it is 0, what is counted from the scheduler's state is as old as the last 1.")),
            unsynced: d.gauge(Head(Own, "steersman_unsynced_kinds", "Kinds of objects that are not known completely yet: nothing is scheduled before all are. 0 where nothing is watched.")),
            lists: d.counter(Head(Own, "steersman_lists_total", "Complete lists of a kind that were read.")),
            watches: d.counter(Head(Own, "steersman_watches_total", "Watches that were opened. Many mean that the connection breaks.")),
            bad_objects: d.counter(Head(Own, "steersman_bad_objects_total", "Versions of objects that could not be read; the version before it stays in force.")),
            binding_retries: d.counter(Head(Own, "steersman_binding_retries_total", "Requests for a binding that were sent again.")),
            events: d.counters(
                Head(Own, "steersman_events_total", "Events about pods, by what became of them: 'written' or 'dropped'."),
                &["result"],
            ),
            status_writes: d.counter(Head(Own, "steersman_status_writes_total", "Writes of a pod's status.")),
            generation: d.gauge(Head(Own, "steersman_config_generation", "Which configuration is in force: 1 is that of the start, and each reload adds 1.")),
            reloads: d.counters(
                Head(Own, "steersman_config_reloads_total", "Times that the configuration was read again, by result: 'success', 'unchanged' or 'error'."),
                &["result"],
            ),
            last_reload: d.gauge(Head(Own, "steersman_config_last_reload_successful", "Whether the configuration could be read the last time: 1 if so. Where it is 0, an older one is in force.")),
            extender_duration: d.histograms(
                Head(Own, "steersman_extender_duration_seconds", "How long calls of an extender took, by verb."),
                &["extender", "verb"],
                exponential(0.001, 2.0, 15),
            ),
            extender_calls: d.counters(
                Head(Own, "steersman_extender_calls_total", "Calls of an extender, by verb and result: 'success' or 'error'."),
                &["extender", "verb", "result"],
            ),
        }
    }
}
