//! A scheduler whose clock the test turns, listened to by the metrics.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::object::ClusterObject;
use steersman_api::time::Time;
use steersman_config::Config;
use steersman_core::{Effect, Event, Scheduler, Setup};
use steersman_framework::extensions::{BoxFuture, Extensions, Permit, PrepareCtx};
use steersman_framework::observer::Observers;
use steersman_framework::registry::Descriptor;
use steersman_framework::verdict::{PermitVerdict, PluginError};
use steersman_framework::world::{ClusterWriter, WriteError};
use steersman_metrics::{Options, SchedulerMetrics};
use steersman_runtime::{Counters, Desk, Inspector, Listener, Moment};
use steersman_testing::{NodeBuilder, PodBuilder};

/// See the module documentation.
pub(crate) struct Scene {
    pub(crate) metrics: Arc<SchedulerMetrics>,
    scheduler: Scheduler,
    listener: Box<dyn Listener>,
    desk: Desk,
    now: Time,
    /// Bindings that are not finished, by pod.
    bindings: BTreeMap<String, steersman_core::BindingCycle>,
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

/// Lets pods through when the test says so.
struct Holds;

impl Permit for Holds {
    fn permit(&self, ctx: &mut PrepareCtx<'_>, _: &Name) -> Result<PermitVerdict, PluginError> {
        Ok(match ctx.pod.labels.contains_key(&"hold".into()) {
            true => PermitVerdict::Wait(Duration::from_secs(60)),
            false => PermitVerdict::Allow,
        })
    }
}

struct Accepts;

impl ClusterWriter for Accepts {
    fn bind<'a>(
        &'a self,
        _: &'a steersman_api::key::ObjectKey,
        _: &'a PodUid,
        _: &'a Name,
    ) -> BoxFuture<'a, Result<(), WriteError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Scene {
    pub(crate) fn new(options: Options) -> Self {
        let metrics = SchedulerMetrics::new(options);
        let inspector = Inspector::default();
        let desk = inspector.desk();
        metrics.attach(inspector, Arc::new(Counters::default()));
        let (scheduler, listener) = started(&metrics);
        let (now, bindings) = (Time::ZERO, BTreeMap::new());
        Self { metrics, scheduler, listener, desk, now, bindings }
    }

    /// The scheduler ends, and another one is set up.
    pub(crate) fn restart(&mut self) {
        self.listener.ended(&self.scheduler.stats());
        self.bindings.clear();
        (self.scheduler, self.listener) = started(&self.metrics);
    }

    pub(crate) fn see(&mut self, shown: impl Shown) {
        let event = Event::Upsert(shown.object());
        let label = self.scheduler.label(&event).expect("it is from a watch");
        self.listener.handled(label, Duration::from_millis(1));
        self.handle(event);
    }

    pub(crate) fn handle(&mut self, event: Event) {
        let effects = self.scheduler.handle(event, self.now);
        self.carry_out(effects);
    }

    pub(crate) fn pass(&mut self, duration: Duration) {
        self.now = self.now.after(duration);
        let effects = self.scheduler.advance(self.now);
        self.carry_out(effects);
    }

    /// Tries every pod that there is to try.
    pub(crate) fn schedule(&mut self) {
        loop {
            let mut observers = Observers(self.listener.observers());
            let Some((attempt, effects)) = self.scheduler.schedule_next(self.now, &mut observers)
            else {
                return;
            };
            self.listener.attempted(&attempt, self.scheduler.cluster());
            self.carry_out(effects);
        }
    }

    /// Ends every binding.
    pub(crate) fn bind_all(&mut self) {
        for (_, cycle) in std::mem::take(&mut self.bindings) {
            let mut observers =
                Observers(self.listener.binding_observers(cycle.pod(), cycle.node()));
            let mut running = Box::pin(cycle.run(&Accepts, &mut observers));
            let mut cx = Context::from_waker(Waker::noop());
            let Poll::Ready(report) = running.as_mut().poll(&mut cx) else {
                panic!("nothing waits here");
            };
            drop(running);
            self.handle(Event::BindingFinished(report));
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for record in self.scheduler.take_records() {
            self.listener.recorded(&record, self.now);
        }
        for effect in effects {
            match effect {
                Effect::StartBinding(cycle) => {
                    drop(self.bindings.insert(cycle.pod().uid.to_string(), cycle));
                }
                Effect::Evict(eviction) => {
                    self.listener.evicted(true, Duration::from_millis(20));
                    self.handle(eviction.finished(Ok(())));
                }
                _ => {}
            }
        }
    }

    /// The page now.
    pub(crate) async fn page(&mut self) -> String {
        let moment = Moment { scheduler: &self.scheduler, now: self.now };
        let desk = &mut self.desk;
        let answering = async {
            tokio::task::yield_now().await;
            desk.answer(moment);
        };
        tokio::join!(self.metrics.render(), answering).0
    }

    /// The page of resources now.
    pub(crate) async fn resources(&mut self) -> String {
        let moment = Moment { scheduler: &self.scheduler, now: self.now };
        let desk = &mut self.desk;
        let answering = async {
            tokio::task::yield_now().await;
            desk.answer(moment);
        };
        tokio::join!(self.metrics.render_resources(), answering).0.expect("it answers")
    }
}

/// A scheduler, and the listener that measures it.
fn started(metrics: &Arc<SchedulerMetrics>) -> (Scheduler, Box<dyn Listener>) {
    let mut registry = steersman_plugins::table::in_tree();
    let holds = Extensions { permit: Some(Arc::new(Holds)), ..Extensions::default() };
    let points = holds.points();
    let descriptor = Descriptor::plain("Holds", points, move |_| Ok(holds.clone()));
    registry.register(descriptor).expect("a new name");
    let fields = "profiles: [{plugins: {multiPoint: {enabled: [{name: Holds}]}}}]";
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    let loaded = steersman_config::load(&format!("{head}{fields}"), &registry);
    let config: Config = loaded.expect("a good configuration").config;
    let mut scheduler = Scheduler::new(Setup::new(&config, &registry)).expect("it is good").0;
    let mut listener = metrics.listener();
    assert!(listener.wants_records());
    scheduler.keep_records();
    for observer in listener.queue_observers() {
        scheduler.watch_queue(observer);
    }
    (scheduler, listener)
}

/// The value of one series, written as on the page; `None` when it is not there.
pub(crate) fn value(page: &str, series: &str) -> Option<f64> {
    let line =
        page.lines().find(|line| line.strip_prefix(series).is_some_and(|r| r.starts_with(' ')));
    line?.rsplit(' ').next()?.parse().ok()
}
