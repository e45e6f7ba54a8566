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
async fn a_file_that_is_away_or_a_directory_leaves_things_as_they_are() {
    let mut bench = Bench::new("away", "parallelism: 1");
    std::fs::remove_file(&bench.file).unwrap();
    bench.reloader.ask();
    bench.check(expect!["refused"]);
    std::fs::create_dir(&bench.file).unwrap();
    for _ in 0..3 {
        bench.reloader.look();
    }
    // Said once, as the reason is another one.
    bench.check(expect!["refused"]);
    std::fs::remove_dir(&bench.file).unwrap();
    // What was there before is nothing new.
    bench.write("parallelism: 1");
    for _ in 0..3 {
        bench.reloader.look();
    }
    bench.check(expect![""]);
}

#[tokio::test]
async fn a_link_that_is_swapped_above_the_file_is_followed() {
    let mut bench = Bench::new("link", "parallelism: 1");
    // As a ConfigMap is mounted: the file is a link into a link to a directory.
    let dir = bench.file.with_extension("d");
    let _ = std::fs::remove_dir_all(&dir);
    for (version, parallelism) in [("v1", 1), ("v2", 2)] {
        std::fs::create_dir_all(dir.join(version)).unwrap();
        let text = format!("{HEAD}parallelism: {parallelism}");
        std::fs::write(dir.join(version).join("config.yaml"), text).unwrap();
    }
    let data = dir.join("data");
    std::os::unix::fs::symlink("v1", &data).unwrap();
    std::fs::remove_file(&bench.file).unwrap();
    std::os::unix::fs::symlink(data.join("config.yaml"), &bench.file).unwrap();
    bench.reloader.look();
    bench.check(expect![""]);
    let next = dir.join("next");
    std::os::unix::fs::symlink("v2", &next).unwrap();
    std::fs::rename(&next, &data).unwrap();
    bench.reloader.look();
    bench.reloader.look();
    bench.check(expect![[r#"
        taken over
        to take over: parallelism 2"#]]);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn of_changes_that_come_while_nobody_takes_over_the_last_one_counts() {
    let mut bench = Bench::new("several", "parallelism: 1");
    for parallelism in 2..5 {
        bench.write(&format!("parallelism: {parallelism}"));
        bench.reloader.ask();
    }
    bench.check(expect![[r#"
        taken over
        taken over
        taken over
        to take over: parallelism 4"#]]);
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

#[test]
fn profiles_that_a_reload_takes_away_are_named() {
    #[track_caller]
    fn check(old: &[&str], new: &[&str], expected: &[&str]) {
        let config = |names: &[&str]| {
            let profiles: String =
                names.iter().map(|name| format!("- schedulerName: {name}\n")).collect();
            let text = format!("{HEAD}profiles:\n{profiles}");
            steersman_config::load(&text, &steersman_plugins::table::in_tree()).unwrap().config
        };
        assert_eq!(gone(&config(old), &config(new)), expected);
    }
    check(&["a", "b", "c"], &["b"], &["a", "c"]);
    check(&["a"], &["b", "a"], &[]);
}
