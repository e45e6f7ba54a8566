//! The scripts: commands and what they print.
//!
//! ```text
//! # A comment.
//! ! --nodes 3                 (arguments of the playground)
//! ? kubectl-1.20              (a program without which the script is skipped)
//! $ kubectl get nodes
//!     NAME  STATUS  …         (the expected output, indented)
//!     => exit 1               (the exit code, unless it is 0)
//! ~ kubectl get pods          (repeated for up to 60 s until it prints this)
//! ```
//!
//! Controllers and nodes work while the commands run, so what a `kubectl get`
//! or `kubectl describe` prints may be a moment behind: these are repeated for
//! up to 20 s even without the `~`. A machine that is busy takes long: no bound
//! of a step is meant to be near to what it needs.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::e2e::normal;
use crate::e2e::playground::Playground;
use crate::e2e::tools::Tools;
use crate::group::now;

const INDENT: &str = "    ";
const PATIENCE: Duration = Duration::from_secs(60);
/// How long looking at objects may take to show what is expected.
const READING: Duration = Duration::from_secs(20);

/// A script, and later what its commands really printed.
pub(crate) struct Script {
    /// Arguments of `steersman playground`.
    pub(crate) playground: Vec<String>,
    /// Programs without which it is skipped.
    pub(crate) needs: Vec<String>,
    lines: Vec<Line>,
}

enum Line {
    Verbatim(String),
    Step(Step),
}

struct Step {
    /// The line of the command, counted from 1.
    at: usize,
    command: String,
    /// Whether it is repeated until it prints what is expected.
    patient: bool,
    expected: Vec<String>,
}

impl Script {
    /// Reads a script.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut script = Self { playground: Vec::new(), needs: Vec::new(), lines: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            let at = index + 1;
            if let Some(output) = line.strip_prefix(INDENT) {
                let Some(Line::Step(step)) = script.lines.last_mut() else {
                    bail!("line {at}: output without a command before it");
                };
                step.expected.push(output.to_owned());
                continue;
            }
            let step = |command: &str, patient| {
                let command = command.to_owned();
                Line::Step(Step { at, command, patient, expected: Vec::new() })
            };
            script.lines.push(match line.split_at_checked(2) {
                Some(("$ ", command)) => step(command, false),
                Some(("~ ", command)) => step(command, true),
                Some(("! ", arguments)) => {
                    script.playground = arguments.split_whitespace().map(str::to_owned).collect();
                    Line::Verbatim(line.to_owned())
                }
                Some(("? ", program)) => {
                    script.needs.push(program.trim().to_owned());
                    Line::Verbatim(line.to_owned())
                }
                Some(("# ", _)) | None => Line::Verbatim(line.to_owned()),
                Some(_) => bail!(
                    "line {at}: {line:?} begins with none of \"$ \", \"~ \", \"! \", \"? \", \
                     \"# \" or four blanks"
                ),
            });
        }
        Ok(script)
    }

    /// How many commands there are.
    pub(crate) fn n_steps(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line, Line::Step(_))).count()
    }

    /// Runs all commands. Returns the differences, up to the first command
    /// whose output differs; when `update` is given, takes over the output.
    pub(crate) fn run(
        &mut self,
        playground: &Playground,
        tools: &Tools,
        update: bool,
    ) -> Result<Vec<String>> {
        for line in &mut self.lines {
            let Line::Step(step) = line else { continue };
            let printed = step.run(playground, tools)?;
            if printed == step.expected {
                continue;
            }
            if !update {
                return Ok(vec![difference(step, &printed, &playground.log())]);
            }
            step.expected = printed;
        }
        Ok(Vec::new())
    }

    /// The script as text.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            match line {
                Line::Verbatim(line) => text.push_str(&format!("{line}\n")),
                Line::Step(step) => {
                    let sign = if step.patient { '~' } else { '$' };
                    text.push_str(&format!("{sign} {}\n", step.command));
                    for output in &step.expected {
                        text.push_str(&format!("{INDENT}{output}\n"));
                    }
                }
            }
        }
        text
    }
}

impl Step {
    fn run(&self, playground: &Playground, tools: &Tools) -> Result<Vec<String>> {
        let start = now();
        loop {
            let printed = self.run_once(playground, tools)?;
            if printed == self.expected || start.elapsed() >= self.patience() {
                return Ok(printed);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn patience(&self) -> Duration {
        if self.patient {
            return PATIENCE;
        }
        let program = self.command.split(' ').next().unwrap_or_default();
        let is_alone = self.command.matches("kubectl").count() == 1;
        let verb = self.command.split(' ').nth(1);
        let reads = program.starts_with("kubectl") && matches!(verb, Some("get" | "describe"));
        if reads && is_alone { READING } else { Duration::ZERO }
    }

    fn run_once(&self, playground: &Playground, tools: &Tools) -> Result<Vec<String>> {
        let mut sh = Command::new("sh");
        sh.args(["-c", &format!("{{ {}\n}} 2>&1", self.command)])
            .current_dir(playground.directory());
        tools.prepare(&mut sh)?;
        sh.env("KUBECONFIG", playground.kubeconfig());
        let output = sh.output().context("cannot start a shell")?;
        let text = String::from_utf8(output.stdout)
            .with_context(|| format!("line {}: the output is not UTF-8", self.at))?;
        let mut printed = normal::lines(&text);
        let code = output.status.code().context("a command was killed by a signal")?;
        ensure!(code != 127, "line {}: {}: command not found", self.at, self.command);
        if code != 0 {
            printed.push(format!("=> exit {code}"));
        }
        Ok(printed)
    }
}

fn difference(step: &Step, printed: &[String], log: &str) -> String {
    let indented = |lines: &[String]| {
        let lines: Vec<String> = lines.iter().map(|line| format!("{INDENT}{line}\n")).collect();
        lines.concat()
    };
    let from = step.expected.iter().zip(printed).position(|(a, b)| a != b);
    let from = from.unwrap_or(step.expected.len().min(printed.len()));
    format!(
        "line {}: {}\n  expected:\n{}  printed:\n{}  first difference in line {} of the output\n  \
         end of the playground's log:\n{log}",
        step.at,
        step.command,
        indented(&step.expected),
        indented(printed),
        from + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_written_back_as_it_was_read() {
        let text =
            "# Nodes.\n! --nodes 3\n\n$ kubectl get nodes\n    NAME\n\n    => exit 1\n~ true\n";
        let text = text.replace("\n\n    =>", "\n    =>");
        let script = Script::parse(&text).unwrap();
        assert_eq!(script.to_text(), text);
        assert_eq!(script.playground, ["--nodes", "3"]);
        assert_eq!(script.n_steps(), 2);
    }

    #[test]
    fn commands_that_only_look_are_repeated() {
        let patience = |line: &str| {
            let script = Script::parse(line).unwrap();
            let Line::Step(step) = &script.lines[0] else { panic!("a step") };
            step.patience()
        };
        assert_eq!(patience("~ true"), PATIENCE);
        assert_eq!(patience("$ kubectl get pods | sort"), READING);
        assert_eq!(patience("$ kubectl-1.20 describe pod x"), READING);
        assert_eq!(patience("$ kubectl get pod x -o json | kubectl replace -f -"), Duration::ZERO);
        assert_eq!(patience("$ kubectl delete pod x"), Duration::ZERO);
        assert_eq!(patience("$ (timeout 3 kubectl get pods -w & wait)"), Duration::ZERO);
    }

    #[test]
    fn a_line_of_no_kind_is_an_error() {
        let error = Script::parse("# a\nkubectl get pods\n").err().unwrap().to_string();
        assert!(error.starts_with("line 2: \"kubectl get pods\" begins with none of"), "{error}");
        let error = Script::parse("    output\n").err().unwrap().to_string();
        assert_eq!(error, "line 1: output without a command before it");
    }
}
