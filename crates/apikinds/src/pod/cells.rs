//! Columns of `kubectl get pods`.

use jiff::Timestamp;
use serde_json::{Value, json};
use steersman_apimachinery::rules::{Column, human_duration};

use crate::fields::{field, flag, items, number, text};
use crate::simple::{age_cell, name_cell};

/// The columns.
pub(super) const COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Ready", "Containers that are ready, of all that should be"),
    Column::text("Status", "What the pod and its containers are doing"),
    Column::text("Restarts", "How often containers were restarted, and when last"),
    Column::text("Age", "Time since creation"),
    Column::text("IP", "Address of the pod").wide(),
    Column::text("Node", "Node that the pod is bound to").wide(),
    Column::text("Nominated Node", "Node that is being made free for the pod").wide(),
    Column::text("Readiness Gates", "Conditions that are met, of those the pod waits for").wide(),
];

/// The cells.
pub(super) fn cells(pod: &Value, now: Timestamp) -> Vec<Value> {
    let look = Look::at(pod);
    let or_none = |text: &str| json!(if text.is_empty() { "<none>" } else { text });
    let ip = match text(pod, "/status/podIPs/0/ip") {
        "" => text(pod, "/status/podIP"),
        ip => ip,
    };
    vec![
        name_cell(pod),
        json!(format!("{}/{}", look.ready, look.containers)),
        json!(look.status(pod)),
        json!(look.restarts(now)),
        age_cell(pod, now),
        or_none(ip),
        or_none(text(pod, "/spec/nodeName")),
        or_none(text(pod, "/status/nominatedNodeName")),
        or_none(&readiness_gates(pod)),
    ]
}

/// What the containers say, taken together.
struct Look<'a> {
    containers: usize,
    ready: usize,
    reason: String,
    restarts: i64,
    last_restart: Option<&'a str>,
}

impl<'a> Look<'a> {
    fn at(pod: &'a Value) -> Self {
        let sidecars: Vec<&str> = items(pod, "/spec/initContainers")
            .iter()
            .filter(|container| field(container, "restartPolicy") == "Always")
            .map(|container| field(container, "name"))
            .collect();
        let mut look = Self {
            containers: items(pod, "/spec/containers").len() + sidecars.len(),
            ready: 0,
            reason: pod_reason(pod),
            restarts: 0,
            last_restart: None,
        };
        let mut of_sidecars = (0, None);
        let mut initializing = false;
        for (i, status) in items(pod, "/status/initContainerStatuses").iter().enumerate() {
            look.count_restarts(status);
            let is_sidecar = sidecars.contains(&field(status, "name"));
            if is_sidecar {
                of_sidecars.0 += number(status, "/restartCount").unwrap_or(0);
                of_sidecars.1 = of_sidecars.1.max(finished(status));
            }
            if number(status, "/state/terminated/exitCode") == Some(0) {
                continue;
            }
            if is_sidecar && flag(status, "/started") {
                look.ready += usize::from(flag(status, "/ready"));
                continue;
            }
            let total = items(pod, "/spec/initContainers").len();
            look.reason = init_reason(status, i, total);
            initializing = true;
            break;
        }
        if !initializing || condition(pod, "Initialized") {
            (look.restarts, look.last_restart) = of_sidecars;
            look.read_main(pod);
        }
        look
    }

    fn read_main(&mut self, pod: &'a Value) {
        let mut running = false;
        for status in items(pod, "/status/containerStatuses").iter().rev() {
            self.count_restarts(status);
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                waiting.clone_into(&mut self.reason);
            } else if let Some(terminated) = status.pointer("/state/terminated") {
                self.reason = how_terminated(terminated);
            } else if flag(status, "/ready") && status.pointer("/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        // Some containers are done, others go on: so does the pod.
        if self.reason == "Completed" && running {
            let word = if condition(pod, "Ready") { "Running" } else { "NotReady" };
            word.clone_into(&mut self.reason);
        }
    }

    fn count_restarts(&mut self, status: &'a Value) {
        self.restarts += number(status, "/restartCount").unwrap_or(0);
        self.last_restart = self.last_restart.max(finished(status));
    }

    fn status(&self, pod: &Value) -> String {
        let deleted = pod.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null());
        let over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        if deleted && text(pod, "/status/reason") == "NodeLost" {
            "Unknown".to_owned()
        } else if deleted && !over {
            "Terminating".to_owned()
        } else {
            self.reason.clone()
        }
    }

    fn restarts(&self, now: Timestamp) -> String {
        let last = self.last_restart.and_then(|time| time.parse::<Timestamp>().ok());
        match last.filter(|_| self.restarts != 0) {
            None => self.restarts.to_string(),
            Some(last) => {
                let ago = human_duration(now.as_second() - last.as_second());
                format!("{} ({ago} ago)", self.restarts)
            }
        }
    }
}

/// When a container's former run ended. Times in RFC 3339 and UTC compare as
/// texts.
fn finished(status: &Value) -> Option<&str> {
    status.pointer("/lastState/terminated/finishedAt").and_then(Value::as_str)
}

/// What the pod's own status says.
fn pod_reason(pod: &Value) -> String {
    let gated = items(pod, "/status/conditions").iter().any(|condition| {
        field(condition, "type") == "PodScheduled"
            && field(condition, "reason") == "SchedulingGated"
    });
    match (gated, text(pod, "/status/reason")) {
        (true, _) => "SchedulingGated".to_owned(),
        (false, "") => text(pod, "/status/phase").to_owned(),
        (false, reason) => reason.to_owned(),
    }
}

fn init_reason(status: &Value, nth: usize, total: usize) -> String {
    if let Some(terminated) = status.pointer("/state/terminated") {
        return format!("Init:{}", how_terminated(terminated));
    }
    match text(status, "/state/waiting/reason") {
        "" | "PodInitializing" => format!("Init:{nth}/{total}"),
        reason => format!("Init:{reason}"),
    }
}

fn how_terminated(terminated: &Value) -> String {
    let number = |name: &str| terminated.get(name).and_then(Value::as_i64).unwrap_or(0);
    match (field(terminated, "reason"), number("signal")) {
        ("", 0) => format!("ExitCode:{}", number("exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn condition(pod: &Value, kind: &str) -> bool {
    let mut conditions = items(pod, "/status/conditions").iter();
    conditions.any(|c| field(c, "type") == kind && field(c, "status") == "True")
}

/// `1/2`; empty without gates.
fn readiness_gates(pod: &Value) -> String {
    let gates = items(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return String::new();
    }
    let met = gates.iter().filter(|gate| condition(pod, field(gate, "conditionType"))).count();
    format!("{met}/{}", gates.len())
}
