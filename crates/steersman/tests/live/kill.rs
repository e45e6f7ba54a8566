//! The scheduler's process is killed again and again while pods arrive.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::cluster::{Audit, create_misfits, create_nodes, create_pods, within};
use crate::replica::RUN;

const N_PODS: usize = 600;
const N_MISFITS: usize = 3;

/// A child process that does not survive the test.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(arguments: &[&str], log: &Path) -> Self {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        let child = Command::new(env!("CARGO_BIN_EXE_steersman"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("the program starts");
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let path =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_that_is_killed_again_and_again_goes_on() {
    let scratch = Scratch::new("kill");
    let kubeconfig = scratch.0.join("kubeconfig");
    let path = kubeconfig.to_str().expect("a path in UTF-8");
    let log = scratch.0.join("log");
    let playground = ["playground", "--no-scheduler", "--nodes", "0", "--port", "0"];
    let playground = [&playground[..], &["--kubeconfig", path]].concat();
    let _playground = Process::start(&playground, &log);
    let client = connect(&kubeconfig, &log).await;

    create_nodes(&client, N_PODS).await;
    let audit = Audit::new(&client);
    // Whoever was killed gives no lease back, and the next one would wait for it.
    let scheduler = [&RUN[..], &["--leader-elect=false", "--kubeconfig", path]].concat();
    let kills = async {
        // Each life is a little longer than the one before, so that the first
        // die while they start and the last in the middle of their work.
        for life in 0..12_u64 {
            let process = Process::start(&scheduler, &log);
            // Real time: a process has to live for a while before it is killed.
            tokio::time::sleep(Duration::from_millis(60 * life)).await;
            drop(process);
        }
        Process::start(&scheduler, &log)
    };
    let arrivals = async {
        create_misfits(&client, N_MISFITS).await;
        for start in (0..N_PODS).step_by(50) {
            create_pods(&client, start..start + 50).await;
            // Real time: pods arrive over the lives of several processes.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let all = async { tokio::join!(kills, arrivals, audit.watch(N_PODS)) };
    let Ok((_scheduler, (), ())) = tokio::time::timeout(Duration::from_secs(120), all).await else {
        panic!("not all pods were bound in time; log:\n{}", tail(&log));
    };
    audit.check(N_PODS, N_MISFITS).await;
}

/// Connects as soon as the playground has written its kubeconfig and answers.
pub(crate) async fn connect(kubeconfig: &Path, log: &Path) -> Client {
    let mut client = None;
    let what = format!("the playground (log: {})", log.display());
    within(Duration::from_secs(30), &what, async || {
        let Ok(config) = Kubeconfig::read_from(kubeconfig) else { return false };
        let options = KubeConfigOptions::default();
        let Ok(config) = kube::Config::from_custom_kubeconfig(config, &options).await else {
            return false;
        };
        let Ok(connected) = Client::try_from(config) else { return false };
        let answers = connected.apiserver_version().await.is_ok();
        client = Some(connected);
        answers
    })
    .await;
    client.expect("it is connected")
}

pub(crate) fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
