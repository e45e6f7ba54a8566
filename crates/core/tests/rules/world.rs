//! A scheduler with a clock that the test turns, and words for what it does.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steersman_api::key::{ObjectKey, PodUid};
use steersman_api::name::Name;
use steersman_api::object::ClusterObject;
use steersman_api::time::Time;
use steersman_config::{Config, FeatureGates};
use steersman_core::{
    Attempt, BindingCycle, BindingReport, Effect, Event, Eviction, Outcome, Place, Scheduler, Setup,
};
use steersman_framework::extender::Extender;
use steersman_framework::extensions::BoxFuture;
use steersman_framework::observer::{Observer, Unobserved};
use steersman_framework::registry::{Descriptor, Registry};
use steersman_framework::world::{ClusterWriter, WriteError};
use steersman_testing::{NodeBuilder, PodBuilder};

/// See the module documentation.
pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    now: Time,
    cycles: BTreeMap<String, BindingCycle>,
    /// Evictions that were asked for and not reported, by preemptor.
    evictions: BTreeMap<String, Eviction>,
    /// What the latest attempt wanted, in words.
    pub(crate) effects: String,
}

/// What a watch can show.
pub(crate) trait Shown {
    fn object(self) -> ClusterObject;
}

impl Shown for PodBuilder {
    fn object(self) -> ClusterObject {
        ClusterObject::Pod(self.build())
    }
}

impl Shown for NodeBuilder {
    fn object(self) -> ClusterObject {
        ClusterObject::Node(self.build())
    }
}

impl Shown for serde_json::Value {
    fn object(self) -> ClusterObject {
        steersman_testing::decoded(self)
    }
}

impl World {
    /// The default profile.
    pub(crate) fn new() -> Self {
        // Some tests make thousands of worlds.
        static DEFAULT: OnceLock<(Registry, Config)> = OnceLock::new();
        let (registry, config) = DEFAULT.get_or_init(|| loaded(&[], ""));
        Self::start(registry, config, None)
    }

    /// The plugins that preemption over room has to do with, and no others: for
    /// tests that go through thousands of cases.
    pub(crate) fn with_room_only() -> Self {
        static ROOM: OnceLock<(Registry, Config)> = OnceLock::new();
        let (registry, config) = ROOM.get_or_init(|| {
            let plugins = [
                "PrioritySort",
                "NodeUnschedulable",
                "NodeResourcesFit",
                "DefaultPreemption",
                "DefaultBinder",
            ];
            let enabled = plugins.map(|plugin| format!("{{name: {plugin}}}")).join(", ");
            loaded(
                &[],
                &format!(
                    "profiles: [{{plugins: {{multiPoint: {{disabled: [{{name: '*'}}], \
                     enabled: [{enabled}]}}}}}}]"
                ),
            )
        });
        Self::start(registry, config, None)
    }

    /// The default profile with more plugins.
    pub(crate) fn with_plugins(plugins: &[Descriptor]) -> Self {
        Self::of(plugins, &enabling(plugins), None)
    }

    /// Gives up on bindings that do not show for so long.
    pub(crate) fn with_ttl(ttl: Duration) -> Self {
        Self::of(&[], "", Some(ttl))
    }

    /// The plugins and, with a `--feature-gates`, the default configuration.
    pub(crate) fn with_gates(plugins: &[Descriptor], gates: &str) -> Self {
        let (registry, mut config) = loaded(plugins, &enabling(plugins));
        config.gates = FeatureGates::parse(gates).expect("good gates").0;
        Self::start(&registry, &config, None)
    }

    /// A configuration: what stands below its `kind`.
    pub(crate) fn configured(fields: &str) -> Self {
        Self::of(&[], fields, None)
    }

    /// A configuration, and more plugins that it can name.
    pub(crate) fn of(
        plugins: &[Descriptor],
        fields: &str,
        assumed_pod_ttl: Option<Duration>,
    ) -> Self {
        let (registry, config) = loaded(plugins, fields);
        Self::start(&registry, &config, assumed_pod_ttl)
    }

    /// A configuration, and extenders in their order.
    pub(crate) fn extended(fields: &str, extenders: &[Arc<dyn Extender>]) -> Self {
        let (registry, config) = loaded(&[], fields);
        let setup = Setup { seed: 1, extenders, ..Setup::new(&config, &registry) };
        Self::new_of(setup)
    }

    /// Pods that found no node wait for so long at the most.
    pub(crate) fn flushing_after(max_unschedulable: Duration) -> Self {
        let (registry, config) = loaded(&[], "");
        Self::new_of(Setup { seed: 1, max_unschedulable, ..Setup::new(&config, &registry) })
    }

    fn start(registry: &Registry, config: &Config, assumed_pod_ttl: Option<Duration>) -> Self {
        Self::new_of(Setup { seed: 1, assumed_pod_ttl, ..Setup::new(config, registry) })
    }

    fn new_of(setup: Setup<'_>) -> Self {
        let (scheduler, _) = Scheduler::new(setup).expect("a scheduler");
        Self {
            scheduler,
            now: Time::ZERO,
            cycles: BTreeMap::new(),
            evictions: BTreeMap::new(),
            effects: String::new(),
        }
    }

    /// The watch shows an object.
    pub(crate) fn see(&mut self, shown: impl Shown) -> String {
        self.handle(Event::Upsert(shown.object()))
    }

    pub(crate) fn delete_pod(&mut self, pod: &str) -> String {
        self.handle(Event::PodDeleted(uid(pod)))
    }

    pub(crate) fn delete_node(&mut self, node: &str) -> String {
        self.handle(Event::NodeDeleted(node.into()))
    }

    pub(crate) fn allow(&mut self, pod: &str, plugin: &'static str) -> String {
        self.handle(Event::PermitAllowed { pod: uid(pod), plugin })
    }

    /// Hands in an event; the effects in words.
    pub(crate) fn handle(&mut self, event: Event) -> String {
        let effects = self.scheduler.handle(event, self.now);
        self.words(effects)
    }

    /// Time passes; the effects in words.
    pub(crate) fn pass(&mut self, duration: Duration) -> String {
        self.now = self.now.after(duration);
        let effects = self.scheduler.advance(self.now);
        self.words(effects)
    }

    /// Tries the next pod: `a: n1`, `a: waits on n1`, `a: no`, or `nobody`.
    pub(crate) fn next(&mut self) -> String {
        self.next_watched(&mut Unobserved)
    }

    pub(crate) fn next_watched(&mut self, observer: &mut dyn Observer) -> String {
        let Some((attempt, effects)) = self.scheduler.schedule_next(self.now, observer) else {
            return "nobody".to_owned();
        };
        self.effects = self.words(effects);
        let pod = &attempt.pod.key.name;
        match attempt.outcome {
            Outcome::Assumed(node) => format!("{pod}: {node}"),
            Outcome::Waiting(node) => format!("{pod}: waits on {node}"),
            Outcome::Unschedulable(_) => format!("{pod}: no"),
            Outcome::Rejected { plugin, .. } => format!("{pod}: {plugin} says no"),
            Outcome::Error(error) => format!("{pod}: {error}"),
        }
    }

    /// Tries the next pod, which there must be.
    #[track_caller]
    pub(crate) fn try_next(&mut self) -> (Attempt, Vec<Effect>) {
        self.scheduler.schedule_next(self.now, &mut Unobserved).expect("a pod to try")
    }

    /// A pod's binding cycle, to be run by the test.
    #[track_caller]
    pub(crate) fn cycle(&mut self, pod: &str) -> BindingCycle {
        self.cycles.remove(pod).expect("a binding cycle was started")
    }

    /// The evictions that were asked for a pod, to be reported by the test.
    #[track_caller]
    pub(crate) fn eviction(&mut self, preemptor: &str) -> Eviction {
        self.evictions.remove(preemptor).expect("evictions were asked for")
    }

    /// The victims of a pod's evictions that were asked for and not reported.
    pub(crate) fn victims(&self, preemptor: &str) -> Option<Vec<String>> {
        let victims = &self.evictions.get(preemptor)?.victims;
        Some(victims.iter().map(|victim| victim.key.name.to_string()).collect())
    }

    /// Runs a pod's binding cycle; the API server answers as given.
    #[track_caller]
    pub(crate) fn bind(&mut self, pod: &str, answer: Result<(), WriteError>) -> BindingReport {
        self.bind_through(pod, &Writer(answer))
    }

    /// Runs a pod's binding cycle with that API server.
    #[track_caller]
    pub(crate) fn bind_through(&mut self, pod: &str, server: &dyn ClusterWriter) -> BindingReport {
        let cycle = self.cycle(pod);
        let mut cycle = Box::pin(async move { cycle.run(server, &mut Unobserved).await });
        match cycle.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(report) => report,
            Poll::Pending => panic!("the plugins of these tests do not wait"),
        }
    }

    /// Runs a pod's binding cycle and reports its end; the effects in words.
    #[track_caller]
    pub(crate) fn finish(&mut self, pod: &str, answer: Result<(), WriteError>) -> String {
        let report = self.bind(pod, answer);
        self.handle(Event::BindingFinished(report))
    }

    /// The evictions for a pod were requested, or could not be.
    #[track_caller]
    pub(crate) fn evicted(&mut self, preemptor: &str, result: Result<(), String>) -> String {
        let eviction = self.eviction(preemptor);
        self.handle(eviction.finished(result))
    }

    pub(crate) fn place(&self, pod: &str) -> Option<Place> {
        self.scheduler.place_of(&uid(pod))
    }

    /// How long until something is to be done by itself.
    pub(crate) fn until_timer(&self) -> Option<Duration> {
        self.scheduler.next_timer().map(|timer| timer.since(self.now))
    }

    #[track_caller]
    fn words(&mut self, effects: Vec<Effect>) -> String {
        assert_eq!(self.scheduler.broken_invariants(), Vec::<String>::new());
        let words = |effect: Effect| match effect {
            Effect::StartBinding(cycle) => {
                let name = cycle.pod().key.name.to_string();
                let words = format!("bind {name} to {}", cycle.node());
                self.cycles.insert(name, cycle);
                words
            }
            Effect::Scheduled { pod, node } => format!("{} is on {node}", pod.key.name),
            Effect::FailedScheduling { pod, reason, message, bound_on } => {
                let bound = bound_on.map(|node| format!(" (another client bound it to {node})"));
                let (name, reason) = (&pod.key.name, reason.name());
                format!("{name}: {reason}: {message}{}", bound.unwrap_or_default())
            }
            Effect::Nominate { pod, node } => match node {
                Some(node) => format!("{} hopes for {node}", pod.key.name),
                None => format!("{} hopes for nothing", pod.key.name),
            },
            Effect::Waiting { pod, .. } => format!("{} waits", pod.key.name),
            Effect::Evict(eviction) => {
                let names = eviction.victims.iter().map(|victim| victim.key.name.to_string());
                let victims: Vec<String> = names.collect();
                let preemptor = eviction.preemptor.key.name.to_string();
                let words = format!("evict {} for {preemptor}", victims.join(" and "));
                self.evictions.insert(preemptor, eviction);
                words
            }
            Effect::Preempted { pod, preemptor, node } => {
                format!("{} gives {node} up for {}", pod.key.name, preemptor.key.name)
            }
            Effect::Note(note) => note,
        };
        let words: Vec<String> = effects.into_iter().map(words).collect();
        words.join("; ")
    }
}

/// The default profile with more plugins.
fn enabling(plugins: &[Descriptor]) -> String {
    let enabled: Vec<String> =
        plugins.iter().map(|plugin| format!("{{name: {}}}", plugin.name)).collect();
    let enabled = enabled.join(", ");
    format!("profiles: [{{plugins: {{multiPoint: {{enabled: [{enabled}]}}}}}}]")
}

/// The in-tree plugins and `plugins`, and a configuration.
fn loaded(plugins: &[Descriptor], fields: &str) -> (Registry, Config) {
    let mut registry: Registry = steersman_plugins::table::in_tree();
    for plugin in plugins {
        registry.register(plugin.clone()).expect("a new name");
    }
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{fields}"
    );
    let loaded = steersman_config::load(&text, &registry).expect("a good configuration");
    (registry, loaded.config)
}

/// The UID that [`steersman_testing::pod`] gives a pod.
pub(crate) fn uid(pod: &str) -> PodUid {
    format!("uid-default-{pod}").as_str().into()
}

pub(crate) fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// An API server that cannot be reached.
pub(crate) fn down() -> Result<(), WriteError> {
    Err(WriteError::Other("down".to_owned()))
}

/// An API server that refuses: the pod has a node.
pub(crate) fn taken() -> Result<(), WriteError> {
    Err(WriteError::Conflict("taken".to_owned()))
}

/// An API server that answers like this.
pub(crate) struct Writer(pub(crate) Result<(), WriteError>);

impl ClusterWriter for Writer {
    fn bind<'a>(
        &'a self,
        _: &'a ObjectKey,
        _: &'a PodUid,
        _: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        let answer = self.0.clone();
        Box::pin(async move { answer })
    }
}

/// A plugin made of one extension.
pub(crate) fn plugin(
    name: &'static str,
    extensions: steersman_framework::extensions::Extensions,
) -> Descriptor {
    let extensions = Arc::new(extensions);
    Descriptor::plain(name, extensions.points(), move |_| Ok((*extensions).clone()))
}
