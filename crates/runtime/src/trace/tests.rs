//! The spans of a real core's cycles, as a subscriber sees them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use steersman_api::decode::kind_row;
use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::object::ClusterObject;
use steersman_api::time::Time;
use steersman_core::{BindingCycle, Effect, Event, Scheduler, Setup};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::observer::{Call, Observer, Outcome, Phase, Unobserved};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::world::{ClusterWriter, WriteError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Instrument, Span, Subscriber, info_span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

use super::Spans;
use crate::listener::{Listener, Traced};

/// A span as it was told.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// The names from the root down.
    path: String,
    fields: BTreeMap<&'static str, String>,
    n_entered: i32,
    is_closed: bool,
}

/// A subscriber's layer that writes spans down.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<BTreeMap<u64, Seen>>>);

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// Ids are used again after a span is closed; the book keeps all spans.
#[derive(Clone, Copy)]
struct Page(u64);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Book {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let mut book = self.0.lock();
        let mut seen = Seen::default();
        attributes.record(&mut Fields(&mut seen.fields));
        let name = seen.fields.get("otel.name").map_or(span.name(), |name| name);
        seen.path = match span.parent() {
            Some(parent) => {
                let Page(parent) = *parent.extensions().get().unwrap();
                format!("{} > {name}", book[&parent].path)
            }
            None => name.to_owned(),
        };
        let page = book.len() as u64;
        book.insert(page, seen);
        span.extensions_mut().insert(Page(page));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        self.change(id, &context, |seen| values.record(&mut Fields(&mut seen.fields)));
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        self.change(id, &context, |seen| seen.n_entered += 1);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        self.change(id, &context, |seen| seen.n_entered -= 1);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        self.change(&id, &context, |seen| seen.is_closed = true);
    }
}

impl Book {
    fn change<S>(&self, id: &Id, context: &Context<'_, S>, change: impl FnOnce(&mut Seen))
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let Page(page) = *context.span(id).unwrap().extensions().get().unwrap();
        change(self.0.lock().get_mut(&page).unwrap());
    }

    fn all(&self) -> Vec<Seen> {
        self.0.lock().values().cloned().collect()
    }

    /// The one span of this path.
    #[track_caller]
    fn one(&self, path: &str) -> Seen {
        let found: Vec<_> = self.all().into_iter().filter(|seen| seen.path == path).collect();
        let [one] = &*found else {
            let paths: Vec<_> = self.all().into_iter().map(|seen| seen.path).collect();
            panic!("{} of {path:?} among {paths:#?}", found.len())
        };
        one.clone()
    }
}

impl Seen {
    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |value| value)
    }
}

/// Binds everything but the unlucky.
struct Paper;

impl ClusterWriter for Paper {
    fn bind<'a>(
        &'a self,
        pod: &'a ObjectKey,
        _: &'a PodUid,
        _: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        let is_unlucky = &*pod.name == "unlucky";
        info_span!("request");
        Box::pin(async move {
            match is_unlucky {
                true => Err(WriteError::Other("bad luck".to_owned())),
                false => Ok(()),
            }
        })
    }
}

fn now() -> Time {
    Time::from_start(Duration::from_secs(1))
}

fn tell(scheduler: &mut Scheduler, kind: &str, object: &Value) {
    let object = kind_row("v1", kind).unwrap().decode(object).unwrap().object;
    scheduler.handle(Event::Upsert(object), now());
}

/// A core with two nodes, of which the first has little room.
fn scheduler(pods: &[(&str, &str)]) -> Scheduler {
    let registry = steersman_plugins::table::in_tree();
    let config = steersman_config::Config::default_for(&registry).unwrap();
    let mut scheduler = Scheduler::new(Setup::new(&config, &registry)).unwrap().0;
    for (name, cpu) in [("small", "1"), ("big", "4"), ("great", "8")] {
        let allocatable = json!({"cpu": cpu, "memory": "1Gi", "pods": "10"});
        let node = json!({"metadata": {"name": name}, "status": {"allocatable": allocatable}});
        tell(&mut scheduler, "Node", &node);
    }
    for (name, cpu) in pods {
        tell(&mut scheduler, "Pod", &pod(name, cpu));
    }
    scheduler
}

fn pod(name: &str, cpu: &str) -> Value {
    let container = json!({"name": "c", "resources": {"requests": {"cpu": cpu}}});
    json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}")},
        "spec": {"containers": [container], "schedulerName": "default-scheduler"},
    })
}

/// What the driver does: an attempt, and the binding if there is one.
fn attempt(scheduler: &mut Scheduler, spans: &mut Traced) {
    let observer = spans.observer().unwrap();
    let (attempt, effects) = scheduler.schedule_next(now(), observer).expect("a pod");
    spans.attempted(&attempt, scheduler.cluster());
    for effect in effects {
        match effect {
            Effect::StartBinding(cycle) => bind(cycle, spans),
            Effect::FailedScheduling { pod, reason, message, .. } => {
                spans.failed(&pod, reason, &message)
            }
            _ => {}
        }
    }
}

fn bind(cycle: BindingCycle, spans: &mut Traced) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let observer = spans.binding_observer(cycle.pod(), cycle.node());
    let span = spans.binding_span();
    let mut observer = observer.unwrap_or_else(|| Box::new(Unobserved));
    runtime.block_on(cycle.run(&Paper, &mut *observer).instrument(span));
}

/// The spans of an attempt at each pod, in order. With the listener, which must
/// not keep spans open.
fn traced(pods: &[(&str, &str)], is_sampled: fn(&Span) -> bool) -> (Book, Traced) {
    let book = Book::default();
    let mut spans = Traced::new(Spans::new(is_sampled));
    tracing::subscriber::with_default(Registry::default().with(book.clone()), || {
        let mut scheduler = scheduler(pods);
        for _ in pods {
            attempt(&mut scheduler, &mut spans);
        }
    });
    (book, spans)
}

fn always(span: &Span) -> bool {
    !span.is_disabled()
}

#[test]
fn a_pod_that_is_bound_has_one_trace() {
    let (book, _listener) = traced(&[("p", "2")], always);
    let root = book.one("scheduling_cycle");
    for (field, value) in [
        ("k8s.namespace.name", "ns"),
        ("k8s.pod.name", "p"),
        ("k8s.pod.uid", "uid-p"),
        ("profile", "default-scheduler"),
        ("attempt", "1"),
        ("nodes.evaluated", "3"),
        ("nodes.feasible", "2"),
        ("result", "scheduled"),
    ] {
        assert_eq!(root.field(field), value, "{field}");
    }
    let fit = "NodeResourcesFit";
    let prepared = book.one(&format!("scheduling_cycle > PreFilter > PreFilter/{fit}"));
    assert_eq!((prepared.field("plugin"), prepared.field("status")), (fit, "Success"));
    let filtered = book.one(&format!("scheduling_cycle > Filter > Filter/{fit}"));
    assert_eq!((filtered.field("calls"), filtered.field("rejected")), ("3", "1"));
    let scored = book.one(&format!("scheduling_cycle > Score > Score/{fit}"));
    assert_eq!((scored.field("calls"), scored.field("rejected")), ("2", "0"));
    let bound = book.one("scheduling_cycle > binding_cycle > Bind > Bind/DefaultBinder");
    assert_eq!(bound.field("status"), "Success");
    // What the world is asked for is part of the trace as well.
    book.one("scheduling_cycle > binding_cycle > request");

    for seen in book.all() {
        assert!(seen.is_closed && seen.n_entered == 0, "{seen:?}");
        assert!(!seen.fields.contains_key("otel.status_code"), "{seen:?}");
    }
}

#[test]
fn a_pod_that_fits_nowhere_has_no_binding() {
    let (book, _listener) = traced(&[("p", "9")], always);
    let root = book.one("scheduling_cycle");
    assert_eq!(root.field("result"), "unschedulable");
    let filtered = book.one("scheduling_cycle > Filter > Filter/NodeResourcesFit");
    assert_eq!((filtered.field("calls"), filtered.field("rejected")), ("3", "3"));
    book.one("scheduling_cycle > PostFilter > PostFilter/DefaultPreemption");
    let all = book.all();
    assert!(all.iter().all(|seen| seen.is_closed && seen.n_entered == 0));
    assert!(!all.iter().any(|seen| seen.path.contains("binding_cycle")));
}

#[test]
fn what_plugins_ask_others_for_is_part_of_the_trace() {
    let object = pod("p", "1");
    let ClusterObject::Pod(pod) = kind_row("v1", "Pod").unwrap().decode(&object).unwrap().object
    else {
        panic!("a pod")
    };
    let book = Book::default();
    tracing::subscriber::with_default(Registry::default().with(book.clone()), || {
        let mut spans = Spans::new(always);
        let phase = Phase { point: ExtensionPoint::PreFilter, pod: &pod };
        let (point, plugin) = (ExtensionPoint::PreFilter, "A");
        let call = Call { point, plugin, pod: &pod, node: None };
        spans.cycle_begins(&pod, 1);
        spans.phase_begins(phase);
        info_span!("first");
        spans.before(call);
        info_span!("second");
        spans.after(call, Outcome::Success);
        spans.phase_ends(phase, Outcome::Success);
        info_span!("third");
        spans.cycle_ends(&pod);
        info_span!("fourth");
    });
    for path in [
        "scheduling_cycle > PreFilter > first",
        "scheduling_cycle > PreFilter > PreFilter/A > second",
        "scheduling_cycle > third",
        "fourth",
    ] {
        book.one(path);
    }
}

#[test]
fn a_binding_that_fails_is_marked() {
    let (book, _listener) = traced(&[("unlucky", "1")], always);
    let bind = "scheduling_cycle > binding_cycle > Bind > Bind/DefaultBinder";
    for path in ["scheduling_cycle > binding_cycle", bind] {
        let seen = book.one(path);
        assert_eq!(seen.field("otel.status_code"), "ERROR", "{path}");
        assert!(seen.field("otel.status_description").contains("bad luck"), "{seen:?}");
    }
}

#[test]
fn attempts_have_traces_of_their_own() {
    let (book, _listener) = traced(&[("a", "1"), ("b", "1")], always);
    let roots = book.all().into_iter().filter(|seen| seen.path == "scheduling_cycle");
    let pods: Vec<_> = roots.map(|seen| seen.field("k8s.pod.name").to_owned()).collect();
    assert_eq!(pods, ["a", "b"]);
}

#[test]
fn an_attempt_that_is_not_sampled_costs_one_span() {
    let (book, _listener) = traced(&[("a", "1"), ("b", "9")], |_| false);
    let paths: Vec<_> = book.all().into_iter().map(|seen| seen.path).collect();
    // The request is the test's own.
    assert_eq!(paths, ["scheduling_cycle", "request", "scheduling_cycle"]);
    assert!(book.all().iter().all(|seen| seen.is_closed && seen.n_entered == 0));
}
