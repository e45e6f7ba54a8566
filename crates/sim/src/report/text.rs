//! The report for people: tables, and a paragraph per pod that has no node.

use std::collections::BTreeMap;
use std::io::{self, Write};

use steersman_api::name::Name;
use steersman_api::resources::Resources;

use super::table::Table;
use super::usage::{NodeUsage, percent};
use crate::run::{Decision, Evicted, Fate, NoFit, PodResult, RejectedNodes, Simulated, Victims};

/// How much to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Further columns.
    pub wide: bool,
    /// The scores of the best nodes for every pod.
    pub explain: bool,
}

/// How many node names a line of reasons shows.
const NODES_SHOWN: usize = 4;

/// Writes the report.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_text(out: &mut dyn Write, simulated: &Simulated, detail: Detail) -> io::Result<()> {
    if !simulated.pods.is_empty() {
        writeln!(out, "{}", placements(simulated, detail.wide))?;
    }
    if detail.explain {
        // Why a pod has no node is told below, as of the end of the run.
        for result in simulated.pods.iter().filter(|p| matches!(p.fate, Fate::Placed(_))) {
            explain(out, result, simulated.nodes.len())?;
        }
    }
    writeln!(out, "{}", utilisation(simulated))?;
    write_evicted(out, simulated)?;
    write_unplaced(out, simulated)?;
    writeln!(out, "{}", summary(simulated))
}

fn placements(simulated: &Simulated, wide: bool) -> Table {
    let zones: BTreeMap<&Name, &Name> =
        simulated.nodes.iter().map(|usage| (&usage.node, &usage.zone)).collect();
    let mut header = vec!["NAMESPACE", "POD", "NODE", "ZONE"];
    if wide {
        header.extend(["PRIORITY", "CPU", "MEMORY", "OTHER", "OWNER"]);
    }
    let mut table = Table::new(header).right([4, 5, 6]);
    for PodResult { pod, fate, .. } in &simulated.pods {
        let node = match fate {
            Fate::Placed(node) => node.to_string(),
            Fate::Evicted { .. } => "<evicted>".to_owned(),
            Fate::Unschedulable(_) => "<unschedulable>".to_owned(),
            Fate::Gated(_) => "<gated>".to_owned(),
            Fate::OtherScheduler => format!("<left to {}>", pod.spec.scheduler_name),
            Fate::Terminating => "<terminating>".to_owned(),
            Fate::Error(_) => "<failed>".to_owned(),
        };
        let zone = match fate {
            Fate::Placed(node) => zones.get(node).map(|z| z.to_string()).unwrap_or_default(),
            _ => String::new(),
        };
        let mut row = vec![pod.key.namespace.to_string(), pod.key.name.to_string(), node, zone];
        if wide {
            let requests = &pod.resources.requests;
            row.extend([
                pod.spec.priority.to_string(),
                cpu(requests.milli_cpu),
                memory(requests.memory),
                others(requests),
                pod.controller
                    .as_ref()
                    .map(|o| format!("{}/{}", o.kind, o.name))
                    .unwrap_or_default(),
            ]);
        }
        table.row(row);
    }
    table
}

fn explain(out: &mut dyn Write, result: &PodResult, n_nodes: usize) -> io::Result<()> {
    let Some(decision) = &result.decision else { return Ok(()) };
    let Decision { n_evaluated, n_feasible, best, rejections } = decision;
    let evaluated = match n_nodes - n_evaluated.min(&n_nodes) {
        0 => plural(*n_evaluated, "node", "nodes").to_owned(),
        others => {
            format!("evaluated {}, {others} not looked at,", plural(*n_evaluated, "node", "nodes"))
        }
    };
    writeln!(out, "{}: {n_feasible} of {n_evaluated} {evaluated} can run it", result.pod.key)?;
    if let Some(first) = best.first() {
        let plugins = first.scores.iter().map(|(plugin, _)| *plugin);
        let header: Vec<&str> = ["NODE", "TOTAL"].into_iter().chain(plugins).collect();
        let n_columns = header.len();
        let mut table = Table::new(header).right(1..n_columns).indent(2);
        for scored in best {
            let name = format!("{}{}", scored.node, if scored.chosen { " *" } else { "" });
            let scores = scored.scores.iter().map(|(_, score)| score.to_string());
            table.row([name, scored.total.to_string()].into_iter().chain(scores));
        }
        write!(out, "{table}")?;
    } else if let Fate::Placed(node) = &result.fate {
        writeln!(out, "  {node} *   the only one, so none was scored")?;
    }
    if !rejections.is_empty() {
        let mut table = Table::default().right([1]).indent(2);
        for ((plugin, reason), count) in rejections {
            let nodes = plural(*count, "node", "nodes");
            table.row([
                "rejected".to_owned(),
                format!("{count} {nodes}"),
                (*plugin).to_owned(),
                reason.clone(),
            ]);
        }
        write!(out, "{table}")?;
    }
    writeln!(out)
}

fn utilisation(simulated: &Simulated) -> Table {
    let header = ["NODE", "ZONE", "PODS", "CPU", "MEMORY", "OTHER"];
    let mut table = Table::new(header).right([2, 3, 4]);
    for usage in &simulated.nodes {
        let NodeUsage { node, zone, allocatable, allowed_pods, before, after } = usage;
        let share = |of: fn(&Resources) -> i64| {
            let show = |used: &Resources| match percent(of(used), of(allocatable)) {
                Some(0) if of(used) > 0 => "<1%".to_owned(),
                Some(percent) => format!("{percent}%"),
                None => "-".to_owned(),
            };
            change(&show(&before.requested), &show(&after.requested))
        };
        let mut other: Vec<String> = allocatable
            .scalars()
            .map(|(name, offered)| {
                let (before, after) = (before.requested.scalar(name), after.requested.scalar(name));
                format!("{name} {}/{offered}", change(&before.to_string(), &after.to_string()))
            })
            .collect();
        if after.requested.ephemeral_storage > 0 {
            other.push(format!("ephemeral-storage {}", share(|r| r.ephemeral_storage)));
        }
        table.row([
            node.to_string(),
            zone.to_string(),
            format!("{}/{allowed_pods}", change(&before.pods.to_string(), &after.pods.to_string())),
            share(|r| r.milli_cpu),
            share(|r| r.memory),
            other.join(", "),
        ]);
    }
    table
}

/// `0% -> 40%`, or just `40%` when nothing changed.
fn change(before: &str, after: &str) -> String {
    if before == after { after.to_owned() } else { format!("{before} -> {after}") }
}

fn write_evicted(out: &mut dyn Write, simulated: &Simulated) -> io::Result<()> {
    for Evicted { pod, node, preemptor } in &simulated.evicted {
        writeln!(out, "{} is evicted from {node} for {}", pod.key, preemptor.key)?;
    }
    if simulated.evicted.is_empty() { Ok(()) } else { writeln!(out) }
}

fn write_unplaced(out: &mut dyn Write, simulated: &Simulated) -> io::Result<()> {
    for PodResult { pod, fate, .. } in &simulated.pods {
        match fate {
            Fate::Placed(_) | Fate::Evicted { .. } | Fate::OtherScheduler | Fate::Terminating => {
                continue;
            }
            Fate::Unschedulable(no_fit) => {
                writeln!(out, "{} fits on no node", pod.key)?;
                write_no_fit(out, no_fit)?;
            }
            Fate::Gated(reason) => writeln!(out, "{} is gated\n  {reason}", pod.key)?,
            Fate::Error(error) => writeln!(out, "{} failed\n  {error}", pod.key)?,
        }
        writeln!(out)?;
    }
    Ok(())
}

fn write_no_fit(out: &mut dyn Write, no_fit: &NoFit) -> io::Result<()> {
    writeln!(out, "  {}", no_fit.message)?;
    let mut table = Table::default().right([1]).indent(2);
    for RejectedNodes { by, count, nodes } in &no_fit.rejected {
        let n_nodes = format!("{count} {}", plural(*count, "node", "nodes"));
        let reasons = by.rejection.reasons.join(", ");
        table.row([by.plugin.to_owned(), n_nodes, reasons, some_names(nodes, *count)]);
    }
    if let Some(others) = &no_fit.others {
        let count = format!("{} {}", no_fit.n_others, plural(no_fit.n_others, "node", "nodes"));
        let plugin = others.plugin.unwrap_or("PreFilter");
        table.row([
            plugin,
            &count,
            &others.rejection.reasons.join(", "),
            "before any was looked at",
        ]);
    }
    write!(out, "{table}")?;
    if let Some(Victims { node, victims, budgets_violated }) = &no_fit.preemption {
        let names: Vec<String> = victims.iter().map(|victim| victim.key.to_string()).collect();
        write!(out, "  evicting {} from {node} would make room", names.join(", "))?;
        if *budgets_violated > 0 {
            let those = plural(*budgets_violated, "one is", "are");
            let n =
                if *budgets_violated == 1 { String::new() } else { format!("{budgets_violated} ") };
            write!(out, ", though {n}{those} protected by a disruption budget")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn some_names(nodes: &[Name], count: usize) -> String {
    let shown: Vec<&str> = nodes.iter().take(NODES_SHOWN).map(Name::as_str).collect();
    match count - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn summary(simulated: &Simulated) -> String {
    let count = |of: fn(&Fate) -> bool| simulated.pods.iter().filter(|p| of(&p.fate)).count();
    let n_nodes = simulated.nodes.len();
    let mut text = format!(
        "{} of {} {} placed on {n_nodes} {}",
        count(|f| matches!(f, Fate::Placed(_))),
        simulated.pods.len(),
        plural(simulated.pods.len(), "pod", "pods"),
        plural(n_nodes, "node", "nodes"),
    );
    for (n, what) in [
        (count(|f| matches!(f, Fate::Evicted { .. })), "evicted"),
        (count(|f| matches!(f, Fate::Unschedulable(_))), "unschedulable"),
        (count(|f| matches!(f, Fate::Gated(_))), "gated"),
        (count(|f| matches!(f, Fate::Error(_))), "failed"),
        (count(|f| matches!(f, Fate::OtherScheduler)), "left to other schedulers"),
        (count(|f| matches!(f, Fate::Terminating)), "being deleted"),
    ] {
        if n > 0 {
            text.push_str(&format!(", {n} {what}"));
        }
    }
    text
}

fn plural<'a>(n: usize, one: &'a str, many: &'a str) -> &'a str {
    if n == 1 { one } else { many }
}

/// `500m`, `2`.
fn cpu(milli: i64) -> String {
    if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") }
}

/// `512Mi`, `1.5Gi`; exact amounts below 1Mi in bytes.
fn memory(bytes: i64) -> String {
    const MI: i64 = 1 << 20;
    const GI: i64 = 1 << 30;
    match bytes {
        0 => "0".to_owned(),
        b if b % GI == 0 => format!("{}Gi", b / GI),
        b if b >= GI => {
            let tenths = i128::from(b) * 10 / i128::from(GI);
            format!("{}.{}Gi", tenths / 10, tenths % 10)
        }
        b if b >= MI => format!("{}Mi", b / MI),
        b => b.to_string(),
    }
}

fn others(requests: &Resources) -> String {
    let parts: Vec<String> =
        requests.scalars().map(|(name, amount)| format!("{name}={amount}")).collect();
    parts.join(",")
}
