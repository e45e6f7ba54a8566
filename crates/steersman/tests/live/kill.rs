//! The scheduler's process is killed again and again while pods arrive.

use std::path::Path;
use std::time::Duration;

use kube::Client;

use crate::cluster::{Audit, create_misfits, create_nodes, create_pods, within};
use crate::process::{self, Process, Scratch};
use crate::replica::RUN;

const N_PODS: usize = 600;
const N_MISFITS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduler_that_is_killed_again_and_again_goes_on() {
    let scratch = Scratch::new("kill");
    let path = &*scratch.path("kubeconfig");
    let log = scratch.0.join("log");
    let _playground = Process::playground(path, &log);
    let client = connect(path, &log).await;

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
pub(crate) async fn connect(kubeconfig: &str, log: &Path) -> Client {
    let mut client = None;
    let what = format!("the playground (log: {})", log.display());
    within(Duration::from_secs(30), &what, async || {
        client = process::connect(Path::new(kubeconfig)).await;
        client.is_some()
    })
    .await;
    client.expect("it is connected")
}

pub(crate) fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
