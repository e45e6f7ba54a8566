//! A profile at work: its plugins, made and sorted by extension point.

use std::sync::Arc;

use serde_json::Value;
use steersman_api::name::Name;
use steersman_api::pod::PodInfo;
use steersman_config::Profile as ProfileConfig;
use steersman_framework::events::{ClusterEvent, EnqueueExtensions};
use steersman_framework::extender::{EXTENDERS, Roles};
use steersman_framework::extensions::{
    Bind, Extensions, Filter, Permit, PostBind, PostFilter, PreBind, PreEnqueue, PreFilter,
    PreScore, QueueSort, Reserve, ScorePlugin,
};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::registry::{Build, InitCtx, Registry};
use steersman_framework::shared::Shared;
use steersman_framework::signature::{Sign, Signable, Signature, SignatureBuilder};
use thiserror::Error;

use crate::runner::Extenders;

/// A plugin's place in its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PluginIdx(u8);

/// A set of a profile's plugins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PluginSet(u128);

impl PluginSet {
    pub(crate) fn insert(&mut self, plugin: PluginIdx) {
        self.0 |= 1 << plugin.0;
    }

    pub(crate) fn insert_all(&mut self, plugins: Self) {
        self.0 |= plugins.0;
    }

    pub(crate) fn contains(self, plugin: PluginIdx) -> bool {
        self.0 & (1 << plugin.0) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// How many plugins a profile may have: as many as a [`PluginSet`] holds, less
/// one place for the extenders.
const MAX_PLUGINS: usize = 127;
/// The place of the extenders, which no plugin has.
const LAST_PLUGIN: u8 = 127;

/// One plugin at one extension point.
pub(crate) struct Slot<T: ?Sized> {
    pub(crate) idx: PluginIdx,
    pub(crate) name: &'static str,
    pub(crate) plugin: Arc<T>,
}

/// A plugin that scores, and its weight.
pub(crate) struct ScoreSlot {
    pub(crate) slot: Slot<dyn ScorePlugin>,
    pub(crate) weight: i64,
}

/// What wakes pods that a plugin rejected.
pub(crate) struct WakeSlot {
    pub(crate) idx: PluginIdx,
    pub(crate) name: &'static str,
    /// `None`: the plugin did not say, so everything does.
    pub(crate) hints: Option<(Vec<ClusterEvent>, Arc<dyn EnqueueExtensions>)>,
}

/// The plugins of one profile. See the module documentation.
pub(crate) struct Profile {
    pub(crate) scheduler_name: Name,
    /// 0: adaptive.
    pub(crate) percentage_of_nodes_to_score: u8,
    pub(crate) pre_enqueue: Vec<Slot<dyn PreEnqueue>>,
    pub(crate) queue_sort: Arc<dyn QueueSort>,
    pub(crate) pre_filter: Vec<Slot<dyn PreFilter>>,
    pub(crate) filter: Vec<Slot<dyn Filter>>,
    pub(crate) post_filter: Vec<Slot<dyn PostFilter>>,
    pub(crate) pre_score: Vec<Slot<dyn PreScore>>,
    pub(crate) score: Vec<ScoreSlot>,
    pub(crate) reserve: Vec<Slot<dyn Reserve>>,
    pub(crate) permit: Vec<Slot<dyn Permit>>,
    pub(crate) pre_bind: Vec<Slot<dyn PreBind>>,
    pub(crate) bind: Vec<Slot<dyn Bind>>,
    pub(crate) post_bind: Vec<Slot<dyn PostBind>>,
    /// One per plugin, by [`PluginIdx`].
    pub(crate) wake: Vec<WakeSlot>,
    /// What of a pod the plugins with Filter or Score read; `None` when one of
    /// them does not say.
    pub(crate) sign: Option<Vec<Arc<dyn Sign>>>,
    /// The extenders, the same in all profiles.
    pub(crate) extenders: Extenders,
}

/// Why a profile cannot be set up.
#[derive(Debug, Error)]
pub enum ProfileError {
    /// A plugin refused to be made.
    #[error("profile {profile}: plugin {plugin}: {reason}")]
    Plugin {
        /// The profile.
        profile: String,
        /// The plugin.
        plugin: &'static str,
        /// What it said.
        reason: String,
    },
    /// Too many plugins.
    #[error("profile {profile}: {found} plugins, allowed: up to {MAX_PLUGINS}")]
    TooManyPlugins {
        /// The profile.
        profile: String,
        /// How many.
        found: usize,
    },
    /// No plugin serves a point that needs one.
    #[error("profile {profile}: no plugin serves {point}")]
    NoPlugin {
        /// The profile.
        profile: String,
        /// The point.
        point: ExtensionPoint,
    },
}

impl Profile {
    /// Makes the plugins of `config`. Plugins that are planned and do not exist
    /// yet are left out; their names come back.
    pub(crate) fn build(
        config: &ProfileConfig,
        default_percentage: u8,
        registry: &Registry,
        shared: &Shared,
    ) -> Result<(Self, Vec<&'static str>), ProfileError> {
        let profile = || config.scheduler_name.clone();
        let names = config.plugins.names();
        if names.len() > MAX_PLUGINS {
            return Err(ProfileError::TooManyPlugins { profile: profile(), found: names.len() });
        }
        let mut made: Vec<Made> = Vec::with_capacity(names.len());
        let mut planned = Vec::new();
        for name in names {
            match make(config, name, registry, shared) {
                Ok(Some(extensions)) => {
                    let idx = PluginIdx(u8::try_from(made.len()).expect("up to 127 plugins"));
                    made.push(Made { idx, name, extensions });
                }
                Ok(None) => planned.push(name),
                Err(reason) => {
                    return Err(ProfileError::Plugin { profile: profile(), plugin: name, reason });
                }
            }
        }
        let missing = |point| ProfileError::NoPlugin { profile: profile(), point };
        let points = Points { config, made: &made };
        let queue_sort = points.at(ExtensionPoint::QueueSort, |e| &e.queue_sort).into_iter().next();
        let queue_sort = queue_sort.ok_or_else(|| missing(ExtensionPoint::QueueSort))?.plugin;
        let bind = points.at(ExtensionPoint::Bind, |e| &e.bind);
        if bind.is_empty() {
            return Err(missing(ExtensionPoint::Bind));
        }
        let built = Self {
            scheduler_name: config.scheduler_name.as_str().into(),
            percentage_of_nodes_to_score: config
                .percentage_of_nodes_to_score
                .unwrap_or(default_percentage),
            pre_enqueue: points.at(ExtensionPoint::PreEnqueue, |e| &e.pre_enqueue),
            queue_sort,
            pre_filter: points.at(ExtensionPoint::PreFilter, |e| &e.pre_filter),
            filter: points.at(ExtensionPoint::Filter, |e| &e.filter),
            post_filter: points.at(ExtensionPoint::PostFilter, |e| &e.post_filter),
            pre_score: points.at(ExtensionPoint::PreScore, |e| &e.pre_score),
            score: points.scoring(),
            reserve: points.at(ExtensionPoint::Reserve, |e| &e.reserve),
            permit: points.at(ExtensionPoint::Permit, |e| &e.permit),
            pre_bind: points.at(ExtensionPoint::PreBind, |e| &e.pre_bind),
            bind,
            post_bind: points.at(ExtensionPoint::PostBind, |e| &e.post_bind),
            wake: made.iter().map(Made::wake).collect(),
            sign: points.sign(),
            extenders: Extenders::default(),
        };
        Ok((built, planned))
    }

    /// The same profile, in which extenders have a say.
    #[must_use]
    pub(crate) fn with_extenders(mut self, extenders: &Extenders) -> Self {
        self.extenders = extenders.clone();
        if let Some(slot) = self.extender_slot() {
            self.wake.push(WakeSlot { idx: slot, name: EXTENDERS, hints: None });
        }
        self
    }

    /// Whether several feasible nodes are of any use: they are compared, or
    /// extenders choose from them. Otherwise the first one will do.
    pub(crate) fn compares_nodes(&self) -> bool {
        !self.score.is_empty() || self.extenders.any_has(Roles::FILTER | Roles::PRIORITIZE)
    }

    /// What stands for the extenders among the plugins that rejected a pod;
    /// `None` without extenders.
    pub(crate) fn extender_slot(&self) -> Option<PluginIdx> {
        (!self.extenders.is_empty()).then_some(PluginIdx(LAST_PLUGIN))
    }

    /// The names of the plugins in `set`, sorted.
    pub(crate) fn names(&self, set: PluginSet) -> std::collections::BTreeSet<&'static str> {
        self.wake.iter().filter(|w| set.contains(w.idx)).map(|w| w.name).collect()
    }

    /// The plugins that can say no to a node.
    pub(crate) fn judges(&self) -> PluginSet {
        let judges = self.pre_filter.iter().map(|s| s.idx).chain(self.filter.iter().map(|s| s.idx));
        judges.fold(PluginSet::default(), |mut set, idx| {
            set.insert(idx);
            set
        })
    }

    /// The plugins that can keep a pod from being scheduled.
    pub(crate) fn rejecting(&self) -> PluginSet {
        let gates = self.pre_enqueue.iter().map(|s| s.idx);
        let takers = self.reserve.iter().map(|s| s.idx).chain(self.permit.iter().map(|s| s.idx));
        let takers = takers.chain(self.extender_slot().filter(|_| self.extenders.may_reject()));
        gates.chain(takers).fold(self.judges(), |mut set, idx| {
            set.insert(idx);
            set
        })
    }

    /// What of `pod` this profile's plugins read; `None` when a plugin does not
    /// say, or cannot for this pod, or extenders have a say.
    pub(crate) fn signature(&self, pod: &PodInfo) -> Option<Signature> {
        if !self.extenders.is_empty() {
            // They may look at anything.
            return None;
        }
        let mut builder = SignatureBuilder::new();
        builder.part("schedulerName", &self.scheduler_name);
        for sign in self.sign.as_ref()? {
            if sign.sign(pod, &mut builder) == Signable::No {
                return None;
            }
        }
        Some(builder.finish())
    }

    /// The name of a plugin.
    pub(crate) fn name(&self, plugin: PluginIdx) -> Option<&'static str> {
        self.wake.iter().find(|w| w.idx == plugin).map(|w| w.name)
    }

    /// The place of a plugin.
    pub(crate) fn plugin(&self, name: &str) -> Option<PluginIdx> {
        self.wake.iter().find(|w| w.name == name).map(|w| w.idx)
    }
}

/// `None` for a planned plugin.
fn make(
    config: &ProfileConfig,
    name: &str,
    registry: &Registry,
    shared: &Shared,
) -> Result<Option<Extensions>, String> {
    let descriptor = registry.get(name).ok_or("is in no registry")?;
    let Build::Ready(factory) = &descriptor.build else { return Ok(None) };
    let no_args = Value::Object(serde_json::Map::new());
    let args = config.args.get(name).unwrap_or(&no_args);
    let ctx = InitCtx { scheduler_name: &config.scheduler_name, shared };
    let extensions = factory(&ctx, args).map_err(|error| error.to_string())?;
    if extensions.points() != descriptor.points {
        return Err(format!(
            "serves {:?} and announced {:?}",
            extensions.points(),
            descriptor.points
        ));
    }
    Ok(Some(extensions))
}

struct Made {
    idx: PluginIdx,
    name: &'static str,
    extensions: Extensions,
}

impl Made {
    fn wake(&self) -> WakeSlot {
        let hints = self.extensions.events.as_ref().map(|e| (e.events(), e.clone()));
        WakeSlot { idx: self.idx, name: self.name, hints }
    }
}

struct Points<'a> {
    config: &'a ProfileConfig,
    made: &'a [Made],
}

impl Points<'_> {
    /// The plugins that are enabled at `point`, in order.
    fn at<T: ?Sized>(
        &self,
        point: ExtensionPoint,
        of: impl Fn(&Extensions) -> &Option<Arc<T>>,
    ) -> Vec<Slot<T>> {
        let enabled = self.config.plugins.at(point).iter();
        enabled
            .filter_map(|name| self.made.iter().find(|m| m.name == *name))
            .filter_map(|m| {
                let plugin = of(&m.extensions).clone()?;
                Some(Slot { idx: m.idx, name: m.name, plugin })
            })
            .collect()
    }

    fn scoring(&self) -> Vec<ScoreSlot> {
        let slots = self.at(ExtensionPoint::Score, |e| &e.score);
        let weight = |name| {
            self.config.plugins.scoring().find(|(n, _)| *n == name).map_or(1, |(_, weight)| weight)
        };
        slots.into_iter().map(|slot| ScoreSlot { weight: weight(slot.name), slot }).collect()
    }

    fn sign(&self) -> Option<Vec<Arc<dyn Sign>>> {
        let judges = |m: &&Made| {
            let points = self.config.plugins.points_of(m.name);
            let judging = ExtensionPoint::PreFilter.set()
                | ExtensionPoint::Filter.set()
                | ExtensionPoint::PreScore.set()
                | ExtensionPoint::Score.set();
            points.intersects(judging)
        };
        self.made.iter().filter(judges).map(|m| m.extensions.sign.clone()).collect()
    }
}
