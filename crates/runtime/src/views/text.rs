//! The views as tables for reading.

use std::fmt::Write;

use super::{BindingsView, ClusterView, NodeDetail, NominationsView, Page, QueueView, Requests};

/// So many characters of a message are shown, about as many as an event has room
/// for. What is cut off is in the JSON.
const MESSAGE: usize = 1000;

/// Rows of cells, aligned in columns.
struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(ToString::to_string).collect()] }
    }

    fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn write(&self, text: &mut String) {
        let n_columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        };
        let widths: Vec<usize> = (0..n_columns).map(|c| width(c).unwrap_or_default()).collect();
        for row in &self.rows {
            let mut line = String::from("  ");
            for (cell, width) in row.iter().zip(&widths) {
                // Writing to a string cannot fail.
                let _ = write!(line, "{cell:<width$}  ");
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
}

fn section<T>(
    text: &mut String,
    title: &str,
    page: &Page<T>,
    head: &[&str],
    row: impl Fn(&T) -> Vec<String>,
) {
    let _ = write!(text, "{title}: {}", page.total);
    if page.truncated {
        let _ = write!(text, " (the first {})", page.items.len());
    }
    text.push('\n');
    if page.items.is_empty() {
        return;
    }
    let mut table = Table::new(head);
    page.items.iter().for_each(|item| table.row(row(item)));
    table.write(text);
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.1}s")
}

fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned()
}

/// A message as a cell: in one line, lest it looks like more rows, and cut.
fn in_one_line(message: &str) -> String {
    let mut line: String = message
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .take(MESSAGE)
        .collect();
    if message.chars().nth(MESSAGE).is_some() {
        line.push('\u{2026}');
    }
    line
}

impl QueueView {
    /// As tables, one line a pod. Messages are cut after 1,000 characters.
    pub fn text(&self) -> String {
        let head = [
            "POD",
            "UID",
            "PRIORITY",
            "ATTEMPTS",
            "KNOWN",
            "BACKOFF",
            "NOMINATED",
            "WOKEN",
            "WHY",
            "LAST FAILURE",
        ];
        let mut text = String::new();
        for (title, page) in self.parts() {
            section(&mut text, title, page, &head, |pod| {
                let why = pod.gate.clone().unwrap_or_else(|| pod.rejected_by.join(","));
                let woken = pod.woken_by_event.as_ref().map(|event| match pod.woken_by_plugin {
                    Some(plugin) => format!("{event}/{plugin}"),
                    None => event.clone(),
                });
                vec![
                    pod.pod.clone(),
                    pod.uid.clone(),
                    pod.priority.to_string(),
                    pod.attempts.to_string(),
                    seconds(pod.known_for_seconds),
                    or_dash(pod.backoff_seconds.map(seconds).as_deref()),
                    or_dash(pod.nominated_node.as_deref()),
                    or_dash(woken.as_deref()),
                    or_dash(Some(&why)),
                    or_dash(pod.last_failure.as_deref().map(in_one_line).as_deref()),
                ]
            });
        }
        text
    }
}

impl NominationsView {
    /// As a table.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let head = ["NODE", "POD", "UID", "PRIORITY"];
        section(&mut text, "nominated", &self.nominated, &head, |pod| {
            vec![pod.node.clone(), pod.pod.clone(), pod.uid.clone(), pod.priority.to_string()]
        });
        text
    }
}

impl BindingsView {
    /// As a table.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let head = ["POD", "UID", "NODE", "WAITS FOR"];
        section(&mut text, "bindings", &self.bindings, &head, |pod| {
            let wait = |w: &super::Wait| format!("{} ({})", w.plugin, seconds(w.seconds_left));
            let waits: Vec<String> = pod.waits.iter().map(wait).collect();
            vec![
                pod.pod.clone(),
                pod.uid.clone(),
                pod.node.clone(),
                or_dash(Some(&waits.join(", "))),
            ]
        });
        text
    }
}

fn amounts(requests: &Requests) -> String {
    let amount = |(name, amount): (&String, &i64)| match name.as_str() {
        "cpu" => format!("cpu={amount}m"),
        _ => format!("{name}={amount}"),
    };
    or_dash(Some(&requests.0.iter().map(amount).collect::<Vec<_>>().join(",")))
}

impl ClusterView {
    /// As tables.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let head = ["NODE", "PODS", "REQUESTED", "ALLOCATABLE", "TAINTS", "UNSCHEDULABLE"];
        section(&mut text, "nodes", &self.nodes, &head, |node| {
            vec![
                node.node.clone(),
                node.pods.to_string(),
                amounts(&node.requested),
                amounts(&node.allocatable),
                node.taints.to_string(),
                node.unschedulable.to_string(),
            ]
        });
        let _ = writeln!(text, "pods on nodes: {}", self.pods);
        if self.pods_on_unknown_nodes > 0 {
            let _ = writeln!(text, "pods on unknown nodes: {}", self.pods_on_unknown_nodes);
        }
        section(&mut text, "assumed", &self.assumed, &["POD", "UID", "NODE"], |pod| {
            vec![pod.pod.clone(), pod.uid.clone(), pod.node.clone()]
        });
        text
    }
}

impl NodeDetail {
    /// As tables.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let summary = &self.summary;
        let _ = writeln!(text, "node: {}", summary.node);
        let _ = writeln!(text, "requested: {}", amounts(&summary.requested));
        let _ = writeln!(text, "allocatable: {}", amounts(&summary.allocatable));
        let _ = writeln!(text, "unschedulable: {}", summary.unschedulable);
        let _ = writeln!(text, "taints: {}", or_dash(Some(&self.taint_list.join(", "))));
        let label = |(key, value): (&String, &String)| format!("{key}={value}");
        let labels: Vec<String> = self.labels.iter().map(label).collect();
        let _ = writeln!(text, "labels: {}", or_dash(Some(&labels.join(", "))));
        let head = ["POD", "UID", "PRIORITY", "REQUESTS", "TERMINATING"];
        section(&mut text, "pods", &self.pod_list, &head, |pod| {
            vec![
                pod.pod.clone(),
                pod.uid.clone(),
                pod.priority.to_string(),
                amounts(&pod.requests),
                pod.terminating.to_string(),
            ]
        });
        text
    }
}
