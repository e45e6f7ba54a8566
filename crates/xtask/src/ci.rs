//! The steps of CI, which are the same on every machine.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::{e2e, graph, readme, shell, tidy};

/// One step: the xtask command that runs it alone, and what it does.
struct Step {
    name: &'static str,
    run: fn(&Path) -> Result<()>,
}

/// In the order in which they run: those that fail fastest and most often
/// come first.
const STEPS: &[Step] = &[
    Step { name: "fmt-check", run: fmt_check },
    Step { name: "clippy", run: clippy },
    Step { name: "test", run: readme::run_test },
    Step { name: "demo", run: readme::run_demo },
    Step { name: "e2e", run: |root| e2e::run(root, e2e::RELEASE, None) },
    Step { name: "doc", run: doc },
    Step { name: "tidy", run: tidy::run },
    Step { name: "graph", run: graph::run },
];

/// Runs all steps, up to the first that fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    let start = now();
    run_steps(STEPS, root)?;
    println!("==> all {} steps passed in {}", STEPS.len(), since(start));
    Ok(())
}

fn run_steps(steps: &[Step], root: &Path) -> Result<()> {
    for (index, Step { name, run }) in steps.iter().enumerate() {
        println!("==> [{}/{}] {name}", index + 1, steps.len());
        let start = now();
        run(root).with_context(|| {
            format!("step {name} failed after {}; `cargo xtask {name}` runs it alone", since(start))
        })?;
        println!("    {name} passed in {}", since(start));
    }
    Ok(())
}

/// Checks that rustfmt would change nothing.
pub(crate) fn fmt_check(root: &Path) -> Result<()> {
    shell::run(&mut shell::cargo(root, &["fmt", "--all", "--check"]))
}

/// Runs clippy over everything, warnings being errors.
pub(crate) fn clippy(root: &Path) -> Result<()> {
    let args = ["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
    shell::run(&mut shell::cargo(root, &args))
}

/// Builds the documentation of the workspace, warnings being errors.
pub(crate) fn doc(root: &Path) -> Result<()> {
    let mut command = shell::cargo(root, &["doc", "--workspace", "--no-deps", "--locked"]);
    shell::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

#[expect(clippy::disallowed_methods, reason = "measures how long a step took for a person")]
fn now() -> Instant {
    Instant::now()
}

fn since(start: Instant) -> String {
    format!("{:.1} s", start.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use anyhow::bail;

    use super::*;

    thread_local!(static RUNS: Cell<u32> = const { Cell::new(0) });

    fn passes(_: &Path) -> Result<()> {
        RUNS.set(RUNS.get() + 1);
        Ok(())
    }

    fn fails(_: &Path) -> Result<()> {
        bail!("the reason")
    }

    #[test]
    fn stops_at_the_first_failing_step_and_names_it() {
        let steps = [
            Step { name: "good", run: passes },
            Step { name: "bad", run: fails },
            Step { name: "unreached", run: passes },
        ];
        let error = format!("{:#}", run_steps(&steps, Path::new(".")).unwrap_err());
        assert!(error.starts_with("step bad failed after "), "{error}");
        assert!(error.ends_with("`cargo xtask bad` runs it alone: the reason"), "{error}");
        assert_eq!(RUNS.get(), 1);
    }
}
