use std::path::PathBuf;

use clap::Parser;
use expect_test::{Expect, expect};
use parking_lot::Mutex;
use steersman_config::FeatureGates;

use super::*;
use crate::command::run::flags::Flags;

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    flags: Flags,
}

#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Told for Diary {
    fn taken_over(&self) {
        self.0.lock().push("taken over".to_owned());
    }

    fn unchanged(&self) {
        self.0.lock().push("unchanged".to_owned());
    }

    fn refused(&self) {
        self.0.lock().push("refused".to_owned());
    }
}

struct Bench {
    file: PathBuf,
    reloader: Reloader,
    follower: watch::Receiver<Arc<Settled>>,
    diary: Arc<Diary>,
}

impl Bench {
    fn new(name: &str, fields: &str) -> Self {
        let name = format!("steersman-reload-{name}-{}.yaml", std::process::id());
        let file = std::env::temp_dir().join(name);
        let text = format!("{HEAD}{fields}");
        std::fs::write(&file, &text).unwrap();
        let path = file.to_str().unwrap();
        let source = Source {
            flags: Cli::try_parse_from(["x", "--config", path]).unwrap().flags,
            registry: steersman_plugins::table::in_tree(),
            gates: FeatureGates::default(),
        };
        let first = source.settle(Some(&text)).unwrap();
        let diary = Arc::new(Diary::default());
        let (reloader, follower) =
            Reloader::new(Arc::new(source), Some(text), first, diary.clone());
        Self { file, reloader, follower, diary }
    }

    fn write(&self, fields: &str) {
        std::fs::write(&self.file, format!("{HEAD}{fields}")).unwrap();
    }

    /// What was told since the last time, and whether there is a configuration
    /// to take over.
    #[track_caller]
    fn check(&mut self, expected: Expect) {
        let mut told = std::mem::take(&mut *self.diary.0.lock());
        if self.follower.has_changed().unwrap() {
            let parallelism = self.follower.borrow_and_update().config.parallelism;
            told.push(format!("to take over: parallelism {parallelism}"));
        }
        expected.assert_eq(&told.join("\n"));
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

#[tokio::test]
async fn a_change_counts_when_it_was_seen_twice() {
    let mut bench = Bench::new("change", "parallelism: 1");
    bench.reloader.look();
    bench.write("parallelism: 2");
    bench.reloader.look();
    bench.check(expect![""]);
    bench.write("parallelism: 3");
    bench.reloader.look();
    bench.check(expect![""]);
    bench.reloader.look();
    bench.check(expect![[r#"
        taken over
        to take over: parallelism 3"#]]);
    bench.reloader.look();
    bench.reloader.look();
    bench.check(expect![""]);
}

#[tokio::test]
async fn who_asks_gets_it_at_once() {
    let mut bench = Bench::new("ask", "parallelism: 1");
    bench.reloader.ask();
    bench.check(expect!["unchanged"]);
    bench.write("parallelism: 2");
    bench.reloader.ask();
    bench.check(expect![[r#"
        taken over
        to take over: parallelism 2"#]]);
}

#[tokio::test]
async fn what_cannot_be_used_changes_nothing_and_is_said_once() {
    let mut bench = Bench::new("bad", "parallelism: 1");
    bench.write("parallelism: 0");
    for _ in 0..4 {
        bench.reloader.look();
    }
    bench.check(expect!["refused"]);
    bench.write("extenders: [{urlPrefix: 'https://e', filterVerb: f, enableHTTPS: true, tlsConfig: {caFile: /nowhere}}]");
    bench.reloader.ask();
    bench.check(expect!["refused"]);
    std::fs::remove_file(&bench.file).unwrap();
    for _ in 0..4 {
        bench.reloader.look();
    }
    bench.check(expect!["refused"]);
    bench.write("parallelism: 5");
    bench.reloader.look();
    bench.reloader.look();
    bench.check(expect![[r#"
        taken over
        to take over: parallelism 5"#]]);
}

#[tokio::test]
async fn what_cannot_change_while_it_runs_stays_as_it_was() {
    let mut bench = Bench::new("fixed", "leaderElection: {resourceName: a}");
    bench.write("leaderElection: {resourceName: b}\nenableProfiling: false");
    bench.reloader.ask();
    bench.check(expect!["unchanged"]);
    bench.write("leaderElection: {resourceName: b}\nparallelism: 2");
    bench.reloader.ask();
    bench.check(expect![[r#"
        taken over
        to take over: parallelism 2"#]]);
    assert_eq!(bench.follower.borrow().config.leader_election.resource_name, "a");
}

#[test]
fn every_section_is_kept_or_taken_over() {
    let registry = steersman_plugins::table::in_tree();
    let old = Config::default_for(&registry).unwrap();
    let outcome = |edit: fn(&mut Config)| {
        let mut new = old.clone();
        edit(&mut new);
        match change(&old, &new) {
            Change::None => "nothing".to_owned(),
            Change::Restart(fields) => format!("later: {}", fields.join(",")),
            Change::Take(_, fields) => format!("now, later: {}", fields.join(",")),
        }
    };
    assert_eq!(outcome(|_| ()), "nothing");
    assert_eq!(outcome(|c| c.pod_max_backoff = Duration::from_secs(99)), "now, later: ");
    assert_eq!(outcome(|c| c.client_connection.burst = 1), "later: clientConnection");
    assert_eq!(outcome(|c| c.delay_cache_until_active = true), "later: delayCacheUntilActive");
    assert_eq!(
        outcome(|c| {
            c.parallelism = 1;
            c.enable_profiling = false;
            c.enable_contention_profiling = false;
        }),
        "now, later: enableProfiling,enableContentionProfiling"
    );
}
