//! Names, labels, buckets and stability against the reference's.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use steersman_framework::extender::{Extender, ExtenderError, Filtered, Roles};
use steersman_metrics::{Definition, Options, Reload, SchedulerMetrics, Stability};
use steersman_testing::{node, pod};
use tower::{Layer, Service, service_fn};

use crate::scene::Scene;

#[derive(Deserialize)]
struct Reference {
    metrics: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    kind: String,
    stability: String,
    labels: Vec<String>,
    #[serde(default)]
    buckets: Option<Buckets>,
    #[serde(default)]
    absent: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Buckets {
    List(Vec<f64>),
    Exponential { start: f64, factor: f64, count: i32 },
}

impl Buckets {
    fn bounds(&self) -> Vec<f64> {
        match self {
            Self::List(bounds) => bounds.clone(),
            Self::Exponential { start, factor, count } => {
                (0..*count).map(|n| start * factor.powi(n)).collect()
            }
        }
    }
}

fn reference() -> Reference {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/reference-v1.36.json");
    let text = fs::read_to_string(path).expect("the recorded table");
    serde_json::from_str(&text).expect("the recorded table is good")
}

fn level(stability: Stability) -> &'static str {
    match stability {
        Stability::Alpha => "ALPHA",
        Stability::Beta => "BETA",
        Stability::Stable => "STABLE",
        Stability::Own => "own",
        Stability::Raw => "raw",
    }
}

fn are_alike(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-9 * b.abs())
}

#[test]
fn families_are_the_references_or_absent_for_a_reason() {
    let metrics = SchedulerMetrics::new(Options::default());
    let ours: BTreeMap<&str, &Definition> =
        metrics.definitions().iter().map(|definition| (definition.name, definition)).collect();
    let reference = reference();
    for entry in &reference.metrics {
        let name = entry.name.as_str();
        let Some(definition) = ours.get(name) else {
            assert!(entry.absent.as_ref().is_some_and(|why| !why.is_empty()), "{name} is missing");
            continue;
        };
        assert!(entry.absent.is_none(), "{name} is said to be absent");
        assert_eq!(definition.kind, entry.kind, "{name}");
        assert_eq!(level(definition.stability), entry.stability, "{name}");
        assert_eq!(definition.labels, entry.labels, "{name}");
        let bounds = entry.buckets.as_ref().map(Buckets::bounds).unwrap_or_default();
        let found = &definition.buckets;
        assert!(are_alike(found, &bounds), "{name}: {found:?}, expected {bounds:?}");
    }
    let known: BTreeSet<&str> = reference.metrics.iter().map(|entry| entry.name.as_str()).collect();
    for definition in metrics.definitions() {
        let name = definition.name;
        let is_ours = name.starts_with("steersman_");
        assert_eq!(is_ours, definition.stability == Stability::Own, "{name}");
        let is_raw = definition.stability == Stability::Raw;
        assert!(is_ours || is_raw || known.contains(name), "{name} is in no table");
    }
}

#[test]
fn every_family_stands_in_the_guides() {
    let guide = |file: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(file);
        fs::read_to_string(path).expect("a guide")
    };
    let (parity, guide) = (guide("parity.md"), guide("metrics.md"));
    // In backticks: a name, or the begin of names with a star behind.
    let table: Vec<&str> = parity.split('`').skip(1).step_by(2).collect();
    let is_told = |name: &str| {
        let begins =
            |entry: &&str| entry.strip_suffix('*').is_some_and(|part| name.starts_with(part));
        table.iter().any(|entry| *entry == name || begins(entry))
    };
    let reference = reference();
    let missing: Vec<&str> =
        reference.metrics.iter().map(|entry| entry.name.as_str()).filter(|n| !is_told(n)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "in docs/parity.md");

    let metrics = SchedulerMetrics::new(Options::default());
    let ours = metrics.definitions().iter().map(|definition| definition.name);
    let ours = ours.filter(|name| name.starts_with("steersman_"));
    let has =
        |name: &str| [format!("`{name}`"), format!("`{name}{{")].iter().any(|n| guide.contains(n));
    let missing: Vec<&str> = ours.filter(|name| !has(name)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "in docs/metrics.md");
}

struct Refuses;

impl Extender for Refuses {
    fn name(&self) -> &str {
        "http://gpus"
    }

    fn roles(&self) -> Roles {
        Roles::FILTER | Roles::PRIORITIZE
    }

    fn filter(
        &self,
        _: &steersman_api::pod::PodInfo,
        _: &[&steersman_api::node_info::NodeInfo],
    ) -> Result<Filtered, ExtenderError> {
        Err(ExtenderError("no".to_owned()))
    }
}

/// Everything that can be measured happens.
async fn eventful() -> Scene {
    let mut scene = Scene::new(Options::default());
    for n in 0..3 {
        scene.see(node(&format!("n{n}")));
    }
    let names: Vec<String> = (0..40).map(|n| format!("p{n}")).collect();
    for name in &names {
        scene.see(pod(name).cpu("100m"));
    }
    scene.see(pod("held").cpu("1").label("hold", "yes"));
    scene.see(pod("giant").cpu("64"));
    scene.schedule();
    scene.bind_all();
    scene.handle(steersman_core::Event::PermitAllowed {
        pod: "uid-default-held".into(),
        plugin: "Holds",
    });
    // One is shown where it is; a node that does not help changes; a more
    // important pod needs room.
    scene.see(pod("p0").cpu("100m").on("n0"));
    for n in 0..30 {
        scene.see(node("n0").label("round", &n.to_string()));
        scene.see(node("n0").allocatable("cpu", &format!("{}m", 4000 + n)));
    }
    scene.see(pod("important").cpu("3500m").priority(1000));
    scene.schedule();
    scene.pass(Duration::from_secs(301));
    scene.schedule();
    let metrics = scene.metrics.clone();
    measure_calls(&metrics).await;
    scene
}

async fn measure_calls(metrics: &Arc<SchedulerMetrics>) {
    let extenders = metrics.extenders(vec![Arc::new(Refuses)]);
    let pod = pod("a").build();
    assert!(extenders[0].filter(&pod, &[]).is_err());
    assert!(extenders[0].prioritize(&pod, &[]).wait().is_err());
    metrics.leader_election("kube-scheduler", true, 2);
    metrics.feature("SchedulerQueueingHints", "", true);
    metrics.health_checked("ping", "livez", true);
    for result in [Reload::Success, Reload::Unchanged, Reload::Error] {
        metrics.config_reloaded(result);
    }
    let answer = service_fn(|_: http::Request<String>| async {
        Ok::<_, Infallible>(http::Response::new("{}".to_owned()))
    });
    let mut client = metrics.rest_client("localhost:6443").layer(answer);
    let request = http::Request::post("/api/v1/pods").body("{\"kind\":\"Pod\"}".to_owned());
    client.call(request.expect("a good request")).await.expect("it cannot fail");
}

#[tokio::test(start_paused = true)]
async fn every_family_is_on_the_page_once_it_has_happened() {
    let mut scene = eventful().await;
    let mut page = scene.page().await;
    page.push_str(&scene.resources().await);
    page.push_str(&scene.metrics.render_slis());
    // For `promtool check metrics`.
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("metrics.prom");
    fs::write(path, &page).expect("a file for other tools");

    let types: BTreeMap<&str, &str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let mut missing = Vec::new();
    for definition in scene.metrics.definitions() {
        match types.get(definition.name) {
            Some(kind) => assert_eq!(*kind, definition.kind, "{}", definition.name),
            None => missing.push(definition.name),
        }
    }
    assert_eq!(missing, Vec::<&str>::new());
    assert_eq!(types.get("kube_pod_resource_request"), Some(&"gauge"));
}
