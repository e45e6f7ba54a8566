//! The program as processes, files for them, and the way to a playground that one
//! of them runs: for all tests that look at the program from outside.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// A directory of its own for a test.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("{}-{name}-{}", env!("CARGO_CRATE_NAME"), std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// Writes a file and gives its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).expect("a file");
        self.path(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program under its own name.
pub(crate) fn steersman() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_steersman"))
}

/// A program at work that does not survive the test.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// Starts the program; what it says is added to a file.
    pub(crate) fn start(arguments: &[&str], log: &Path) -> Self {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        let child = Command::new(steersman())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("the program starts");
        Self(child)
    }

    /// Starts a playground without nodes and without a scheduler.
    pub(crate) fn playground(kubeconfig: &str, log: &Path) -> Self {
        let arguments =
            ["playground", "--no-scheduler", "--nodes=0", "--port=0", "--kubeconfig", kubeconfig];
        Self::start(&arguments, log)
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.0.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status().expect("kill is run");
        assert!(status.success(), "kill {signal} failed");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client for a playground that has written its kubeconfig and answers.
pub(crate) async fn connect(kubeconfig: &Path) -> Option<Client> {
    let config = Kubeconfig::read_from(kubeconfig).ok()?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(config, &options).await.ok()?;
    let client = Client::try_from(config).ok()?;
    client.apiserver_version().await.ok()?;
    Some(client)
}
