//! What is on screen.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use steersman_playground::Decision;
use steersman_runtime::{Placement, Summary};
use steersman_sim::report::printable;

/// Names up to this length stand in columns.
const POD_WIDTH: usize = 34;
/// Plugins shown for a placement: those that gave most.
const SHOWN: usize = 3;

/// Writes to stdout, in colour if it is a terminal.
pub(super) struct Screen {
    coloured: bool,
    without_scheduler: bool,
}

impl Screen {
    pub(super) fn new(without_scheduler: bool) -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { coloured: wanted && io::stdout().is_terminal(), without_scheduler }
    }

    pub(super) fn started(
        &self,
        url: &str,
        n_nodes: usize,
        kubeconfig: &Path,
    ) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", self.bold("steersman playground"))?;
        writeln!(out, "  API server  {url}")?;
        if n_nodes > 0 {
            writeln!(out, "  nodes       {n_nodes}, simulated")?;
        }
        let scheduler = if self.without_scheduler { "none" } else { "runs" };
        writeln!(out, "  scheduler   {scheduler}")?;
        writeln!(out, "  kubeconfig  {}", kubeconfig.display())?;
        Ok(out.flush()?)
    }

    /// The title of the demo; `n_known` of its objects were there before.
    pub(super) fn demo(&self, n_known: usize) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "\n{}", self.bold("Demo: two Deployments, a DaemonSet, a Job and a Pod"))?;
        if n_known > 0 {
            writeln!(out, "  {n_known} of these are there already and stay as they are")?;
        }
        Ok(out.flush()?)
    }

    /// The headings of what [`Screen::tell`] writes.
    pub(super) fn headings(&self) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "  {:POD_WIDTH$} {:12} SCORE", "POD", "NODE")?;
        Ok(out.flush()?)
    }

    pub(super) fn saved(&self, path: &Path) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "The cluster is saved: steersman playground -f {}", path.display())?;
        Ok(out.flush()?)
    }

    pub(super) fn tell(&self, decision: &Decision) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        match decision {
            Decision::Placed(placement) => {
                let (pod, node) = (&placement.pod, placement.node.as_str());
                writeln!(out, "  {pod:POD_WIDTH$} {node:12} {}", reasons(placement))?;
            }
            Decision::Waits { pod, message } => {
                let message = printable(message);
                writeln!(out, "  {pod:POD_WIDTH$} {}", self.yellow("waits"))?;
                writeln!(out, "    {message}")?;
            }
            Decision::Evicts { pod, node, victims } => {
                let evicts = self.yellow("evicts");
                writeln!(out, "  {pod:POD_WIDTH$} {evicts} {} on {node}", victims.join(", "))?;
            }
        }
        Ok(out.flush()?)
    }

    pub(super) fn summary(&self, summary: &Summary) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        let Summary { bound, attempts, .. } = summary;
        let text = format!("{bound} pods bound in {attempts} attempts");
        writeln!(out, "  {}", self.green(&text))?;
        Ok(out.flush()?)
    }

    pub(super) fn commands(&self, kubeconfig: &Path, demo: bool) -> anyhow::Result<()> {
        let file = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
        let file = quoted(&file.display().to_string());
        let mut out = io::stdout().lock();
        writeln!(out, "\n{}", self.bold("Next, in another terminal:"))?;
        writeln!(out, "  export KUBECONFIG={file}")?;
        if self.without_scheduler {
            writeln!(out, "  steersman run --kubeconfig {file}")?;
        }
        if demo {
            writeln!(out, "  kubectl get pods -o wide")?;
            writeln!(out, "  kubectl describe pod too-big")?;
            writeln!(out, "  kubectl scale deployment web --replicas=20")?;
            writeln!(out, "  kubectl rollout status deployment web")?;
            writeln!(out, "  kubectl drain node-1 --ignore-daemonsets --force")?;
            writeln!(out, "  kubectl uncordon node-1")?;
        } else {
            writeln!(out, "  kubectl get nodes")?;
            writeln!(out, "  kubectl create deployment web --image=nginx --replicas=10")?;
            writeln!(out, "  kubectl get pods -o wide --watch")?;
        }
        writeln!(out, "Ctrl-C ends the playground.")?;
        Ok(out.flush()?)
    }

    fn bold(&self, text: &str) -> String {
        self.styled("1", text)
    }

    fn green(&self, text: &str) -> String {
        self.styled("32", text)
    }

    fn yellow(&self, text: &str) -> String {
        self.styled("33", text)
    }

    fn styled(&self, code: &str, text: &str) -> String {
        if self.coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// The winning score and what it is made of.
fn reasons(placement: &Placement) -> String {
    if placement.scores.is_empty() {
        return "only node that fits".to_owned();
    }
    let mut scores: Vec<_> = placement.scores.iter().filter(|(_, score)| *score > 0).collect();
    scores.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    let shown: Vec<String> =
        scores.iter().take(SHOWN).map(|(plugin, score)| format!("{plugin} {score}")).collect();
    let rest = if scores.len() > SHOWN { ", …" } else { "" };
    let feasible = placement.n_feasible;
    format!("{} ({}{rest}), best of {feasible}", placement.total(), shown.join(", "))
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_shell_are_quoted_where_they_must_be() {
        let cases = [("/a/b.c", "/a/b.c"), ("/a b", "'/a b'"), ("it's", r"'it'\''s'")];
        for (text, expected) in cases {
            assert_eq!(quoted(text), expected);
        }
    }
}
