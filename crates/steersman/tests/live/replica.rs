//! A scheduler's process behind a connection of its own.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use steersman_apiserver::ApiServer;

use crate::cluster::within;
use crate::kill::tail;
use crate::process::{Process, Scratch};
use crate::proxy::Proxy;

/// The command, and what keeps several of them on one machine out of each other's
/// way: none serves on the port that all would serve on.
pub(crate) const RUN: [&str; 2] = ["run", "--secure-port=0"];
/// Flags of an election that is quick and still safe: a second lies between the
/// end of a term and the first moment at which another can begin.
pub(crate) const TIMING: [&str; 3] = [
    "--leader-elect-lease-duration=4s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
];
/// How long a process may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process, what it connects through and what it says. A process that is
/// started anew keeps the rest.
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) proxy: Proxy,
    process: Process,
    arguments: Vec<String>,
    log: PathBuf,
}

impl Replica {
    /// Starts `steersman run` with a proxy between it and the server.
    pub(crate) async fn start(
        server: &ApiServer,
        scratch: &Scratch,
        name: &str,
        (seed, percent): (u64, u64),
        flags: &[&str],
    ) -> Self {
        let proxy = Proxy::start(server.clone(), seed, percent).await.expect("a port is free");
        let cluster = json!({ "server": format!("http://{}", proxy.address) });
        let context = json!({ "cluster": "c", "user": "u" });
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "clusters": [{ "name": "c", "cluster": cluster }],
            "contexts": [{ "name": "c", "context": context }],
            "users": [{ "name": "u", "user": {} }],
        });
        let kubeconfig = scratch.file(&format!("{name}.kubeconfig"), &text.to_string());
        let arguments = [&RUN[..], &["--kubeconfig", &kubeconfig], flags].concat();
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let log = scratch.0.join(name);
        let process = start(&arguments, &log);
        Self { name: name.to_owned(), proxy, process, arguments, log }
    }

    /// Ends the process, if it still runs, without a warning, and starts another.
    pub(crate) fn replace(&mut self) {
        // At once, so that no two of them live at a time.
        let _ = self.process.0.kill();
        let _ = self.process.0.wait();
        self.process = start(&self.arguments, &self.log);
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// How the process ended, if it did; `true`: with success.
    pub(crate) fn ended(&mut self) -> Option<bool> {
        self.process.0.try_wait().expect("it is a child").map(|status| status.success())
    }

    /// Waits for the process to find out that it leads no more: it must say so and
    /// fail.
    pub(crate) async fn gives_up(&mut self) {
        let what = format!("{} to give up", self.name);
        let mut with_success = None;
        within(PATIENCE, &what, async || {
            with_success = self.ended();
            with_success.is_some()
        })
        .await;
        assert_eq!(with_success, Some(false), "{} lost its lease and exits with 0", self.name);
        let said = self.tail();
        assert!(said.contains("error: leader election lost: "), "it does not say why:\n{said}");
    }

    /// The end of what it said.
    pub(crate) fn tail(&self) -> String {
        tail(&self.log)
    }
}

fn start(arguments: &[String], log: &std::path::Path) -> Process {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Process::start(&arguments, log)
}

impl Drop for Replica {
    /// A test that fails shows what its processes said.
    #[expect(clippy::print_stderr, reason = "the test's harness shows it")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {} said at last:\n{}\n", self.name, self.tail());
        }
    }
}
