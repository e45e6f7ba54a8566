//! The example, twice, against the embedded API server: the one that works is
//! frozen until the other one works, and goes on; then the other one is killed, and
//! those that come after it are asked to end.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use steersman_apiserver::{ApiServer, Auth, Config, Tls};
use tokio::net::TcpListener;
use tokio::time::{interval, timeout};

/// Of the lease.
const SECONDS: &str = "3";
const PATIENCE: Duration = Duration::from_secs(30);

/// A process that does not survive the test, and what it says.
struct Replica {
    process: Child,
    output: PathBuf,
}

impl Replica {
    fn start(scratch: &Path, name: &str) -> Self {
        // Cargo builds examples with the tests, into a directory next to theirs.
        let test = std::env::current_exe().expect("a test has a path");
        let target = test.parent().and_then(Path::parent).expect("tests are in target/*/deps");
        let program = target.join("examples").join("singleton");
        // But not when only this test is asked for.
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/singleton.rs");
        let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
        let is_new = changed(&program).is_some_and(|built| Some(built) >= changed(&source));
        assert!(is_new, "build it first: cargo build --example singleton");
        let output = scratch.join(name);
        let file = File::create(&output).expect("a file is made");
        let process = Command::new(program)
            .arg(SECONDS)
            .env("KUBECONFIG", scratch.join("kubeconfig"))
            .stdin(Stdio::null())
            .stderr(file.try_clone().expect("a file"))
            .stdout(file)
            .spawn()
            .expect("the example starts");
        Self { process, output }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// The numbers that it counted to.
    fn numbers(&self) -> Vec<u64> {
        let said = self.said();
        said.lines()
            .filter_map(|line| line.split_once(" counted to "))
            .map(|(_, number)| number.parse().expect("a number"))
            .collect()
    }

    fn signal(&self, signal: &str) {
        let id = self.process.id().to_string();
        let status = Command::new("kill").args([signal, &id]).status().expect("kill is run");
        assert!(status.success(), "kill {signal} failed");
    }

    async fn ends(&mut self) -> ExitStatus {
        let mut status = None;
        within("a process to end", || {
            status = self.process.try_wait().expect("it is a child");
            status.is_some()
        })
        .await;
        status.expect("it ended")
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn within(what: &str, mut is_true: impl FnMut() -> bool) {
    let wait = async {
        let mut ticks = interval(Duration::from_millis(50));
        while !is_true() {
            ticks.tick().await;
        }
    };
    assert!(timeout(PATIENCE, wait).await.is_ok(), "waited in vain for {what}");
}

/// Asks the only one that runs to end, which gives the lease back then.
async fn ends_in_order(replica: &mut Replica, signal: &str, client: &Client) {
    within("it to count", || replica.numbers().len() >= 2).await;
    replica.signal(signal);
    let status = replica.ends().await;
    assert!(status.success(), "after {signal} {status}: {}", replica.said());
    let leases = Api::<Lease>::namespaced(client.clone(), "default");
    let lease = leases.get("singleton").await.expect("the lease exists");
    let holder = lease.spec.and_then(|spec| spec.holder_identity);
    assert_eq!(holder.as_deref(), Some(""), "the lease is free after {signal}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_examples_one_works_at_a_time() {
    let resources = steersman_apikinds::resources();
    let server = ApiServer::new(Config { resources, ..Config::default() });
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let client = Client::new(server.service(), "default");
    tokio::spawn(async move {
        server.serve(listener, Tls::Off, Auth::trusting(), std::future::pending()).await
    });
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let scratch = scratch.join(format!("singleton-{}", std::process::id()));
    fs::create_dir_all(&scratch).expect("a directory is made");
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, \
         clusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}], \
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}], users: [{{name: u, user: {{}}}}]}}"
    );
    fs::write(scratch.join("kubeconfig"), kubeconfig).expect("a file is written");

    let mut first = Replica::start(&scratch, "first");
    within("the first to count", || first.numbers().len() >= 2).await;
    let mut second = Replica::start(&scratch, "second");
    within("the second to stand by", || second.said().contains(" stands by: process-")).await;
    assert_eq!(second.numbers(), [0; 0]);

    first.signal("-STOP");
    within("the second to count", || second.numbers().len() >= 2).await;
    let before = first.numbers();
    first.signal("-CONT");
    assert!(!first.ends().await.success(), "who lost the lease fails");
    assert_eq!(first.numbers(), before, "it does not count any more");
    // Which of the two ends it depends on what wakes first: the write that was
    // frozen with it, or the clock.
    let endings = ["the leader lease could not be renewed in time", "not the leader any more"];
    let said = first.said();
    assert!(said.contains(" works no more"), "{said}");
    assert!(endings.iter().any(|words| said.contains(words)), "{said}");

    let mut third = Replica::start(&scratch, "third");
    second.process.kill().expect("it runs");
    second.ends().await;
    within("the third to count", || third.numbers().len() >= 2).await;
    // As Kubernetes ends a container, and as a terminal does.
    ends_in_order(&mut third, "-TERM", &client).await;
    let mut fourth = Replica::start(&scratch, "fourth");
    ends_in_order(&mut fourth, "-INT", &client).await;

    let replicas = [&first, &second, &third, &fourth];
    let numbers = replicas.map(Replica::numbers).concat();
    let ascends = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(ascends, "two counted at the same time: {numbers:?}");
    let _ = fs::remove_dir_all(&scratch);
}
