//! Plugins that make trouble, and a configuration that enables them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use steersman_api::key::PodUid;
use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_config::Config;
use steersman_framework::events::{ActionType, ClusterEvent, EnqueueExtensions, EventResource};
use steersman_framework::extensions::{
    BindCtx, BoxFuture, CycleCtx, Extensions, Filter, Permit, PreBind, PrepareCtx, Reserve,
};
use steersman_framework::point::PointSet;
use steersman_framework::registry::{Descriptor, Registry};
use steersman_framework::signature::{Sign, Signable, SignatureBuilder};
use steersman_framework::verdict::{
    FilterVerdict, PermitVerdict, PluginError, PreBindVerdict, Rejection, ReserveVerdict,
};

pub(crate) const PANICS: &str = "StressPanics";
pub(crate) const RESERVES: [&str; 2] = ["StressReserve", "StressReserveAgain"];
pub(crate) const WAITS: &str = "StressWaits";
pub(crate) const PRE_BINDS: &str = "StressPreBinds";
/// What the panicking plugin says, so that its panics can be told from others.
pub(crate) const PANIC_MESSAGE: &str = "stress: a plugin panics on purpose";

/// Something happened to a reservation.
#[derive(Clone, Debug)]
pub(crate) struct Reservation {
    pub(crate) plugin: &'static str,
    pub(crate) pod: PodUid,
    pub(crate) node: Name,
    pub(crate) undone: bool,
}

/// The in-tree plugins and those of this file.
pub(crate) fn registry(reservations: &Sender<Reservation>) -> Registry {
    let mut registry = steersman_plugins::table::in_tree();
    let mut add = |descriptor| registry.register(descriptor).expect("a new name");
    add(Descriptor::plain(PANICS, PointSet::FILTER, |_| {
        Ok(Extensions {
            filter: Some(Arc::new(Panics)),
            sign: Some(Arc::new(Panics)),
            ..Extensions::default()
        })
    }));
    for plugin in RESERVES {
        let reservations = reservations.clone();
        add(Descriptor::plain(plugin, PointSet::RESERVE, move |_| {
            let asked = AtomicU32::new(0);
            let reserves = Reserves { plugin, reservations: reservations.clone(), asked };
            Ok(Extensions {
                reserve: Some(Arc::new(reserves)),
                events: Some(Arc::new(OnLabels)),
                ..Extensions::default()
            })
        }));
    }
    add(Descriptor::plain(WAITS, PointSet::PERMIT, |_| {
        Ok(Extensions { permit: Some(Arc::new(Waits)), ..Extensions::default() })
    }));
    add(Descriptor::plain(PRE_BINDS, PointSet::PRE_BIND, |_| {
        let pre_binds = PreBinds { asked: AtomicU32::new(0) };
        Ok(Extensions {
            pre_bind: Some(Arc::new(pre_binds)),
            events: Some(Arc::new(OnLabels)),
            ..Extensions::default()
        })
    }));
    registry
}

/// Two profiles; the second one packs nodes instead of spreading over them.
pub(crate) fn config(registry: &Registry) -> Config {
    let plugins = [PANICS, RESERVES[0], RESERVES[1], WAITS, PRE_BINDS];
    let enabled: Vec<String> = plugins.iter().map(|name| format!("{{name: {name}}}")).collect();
    let enabled = enabled.join(", ");
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {{enabled: [{enabled}]}}
- schedulerName: second
  plugins:
    multiPoint: {{enabled: [{enabled}]}}
    score: {{disabled: [{{name: PodTopologySpread}}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {{type: MostAllocated, resources: [{{name: cpu, weight: 1}}]}}
"
    );
    steersman_config::load(&text, registry).expect("a good configuration").config
}

fn has(pod: &PodInfo, label: &str, value: &str) -> bool {
    pod.labels.get(&label.into()).is_some_and(|found| **found == *value)
}

struct Panics;

impl Filter for Panics {
    fn filter(&self, ctx: &CycleCtx<'_>, node: &NodeInfo) -> Result<FilterVerdict, PluginError> {
        // On the third node only, so that the cycle is well under way.
        if has(ctx.pod, "filter", "panic") && node.idx().get() >= 2 {
            panic!("{PANIC_MESSAGE}");
        }
        Ok(FilterVerdict::Fit)
    }
}

impl Sign for Panics {
    fn sign(&self, pod: &PodInfo, signature: &mut SignatureBuilder) -> Signable {
        signature.part("panics", &has(pod, "filter", "panic"));
        Signable::Yes
    }
}

struct Reserves {
    plugin: &'static str,
    reservations: Sender<Reservation>,
    asked: AtomicU32,
}

impl Reserves {
    fn tell(&self, pod: &PodInfo, node: &Name, undone: bool) {
        let (plugin, pod, node) = (self.plugin, pod.uid.clone(), node.clone());
        // Nobody listens while a run is torn down.
        let _ = self.reservations.send(Reservation { plugin, pod, node, undone });
    }
}

impl Reserve for Reserves {
    fn reserve(
        &self,
        ctx: &mut PrepareCtx<'_>,
        node: &Name,
    ) -> Result<ReserveVerdict, PluginError> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if has(ctx.pod, "reserve", "reject") {
            match asked % 4 {
                0 => return Ok(ReserveVerdict::Reject(Rejection::unschedulable("taken"))),
                1 => return Err(PluginError("the store is away".to_owned())),
                _ => {}
            }
        }
        self.tell(ctx.pod, node, false);
        Ok(ReserveVerdict::Reserved)
    }

    fn unreserve(&self, ctx: &CycleCtx<'_>, node: &Name) {
        self.tell(ctx.pod, node, true);
    }
}

/// Waits for nothing but a change of the pod's labels.
struct OnLabels;

impl EnqueueExtensions for OnLabels {
    fn events(&self) -> Vec<ClusterEvent> {
        vec![ClusterEvent::new(EventResource::TARGET_POD, ActionType::UPDATE_POD_LABEL)]
    }
}

/// Says no events: everything brings its pods back.
struct Waits;

impl Permit for Waits {
    fn permit(&self, ctx: &mut PrepareCtx<'_>, node: &Name) -> Result<PermitVerdict, PluginError> {
        if !has(ctx.pod, "permit", "wait") {
            return Ok(PermitVerdict::Allow);
        }
        // Some wait for seconds, some for minutes.
        let long = node.len() > 2;
        Ok(PermitVerdict::Wait(Duration::from_secs(if long { 120 } else { 5 })))
    }
}

struct PreBinds {
    asked: AtomicU32,
}

impl PreBind for PreBinds {
    fn has_work(&self, ctx: &CycleCtx<'_>, _: &Name) -> bool {
        ctx.pod.labels.contains_key(&"prebind".into())
    }

    fn pre_bind<'a>(
        &'a self,
        ctx: BindCtx<'a>,
    ) -> BoxFuture<'a, Result<PreBindVerdict, PluginError>> {
        Box::pin(async move {
            let odd = !self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
            if odd && has(ctx.pod, "prebind", "reject") {
                return Ok(PreBindVerdict::Reject(Rejection::unschedulable("not ready")));
            }
            if odd && has(ctx.pod, "prebind", "fail") {
                return Err(PluginError("the volume is away".to_owned()));
            }
            Ok(PreBindVerdict::Done)
        })
    }
}
