//! Which plugins exist: one [`Descriptor`] each, collected in a [`Registry`].
//! In-tree plugins, plugins compiled in from outside and loaded ones all come
//! in through it; nothing else has to know a plugin.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::args::ArgsKind;
use crate::extensions::Extensions;
use crate::point::PointSet;
use crate::shared::Shared;

/// Everything known about a plugin before one is made.
#[derive(Clone)]
pub struct Descriptor {
    /// The name used in configurations, metrics, logs and events.
    pub name: &'static str,
    /// The extension points it serves.
    pub points: PointSet,
    /// `Some` when it belongs to the default profile: its weight there, 0 for
    /// plugins that do not score. The default profile runs plugins in the
    /// registry's order.
    pub default_weight: Option<u32>,
    /// The arguments it takes, if it takes any.
    pub args: Option<ArgsKind>,
    /// How to make it.
    pub build: Build,
}

/// How a plugin is made.
#[derive(Clone)]
pub enum Build {
    /// Called once a profile.
    Ready(Factory),
    /// The name, points and arguments are known, the plugin does not exist
    /// yet: profiles that enable it run without it, and say so.
    Planned,
}

/// Makes one instance of a plugin for one profile. Gets the defaulted and
/// validated arguments (an empty object for plugins without any).
pub type Factory = Arc<dyn Fn(&InitCtx<'_>, &Value) -> Result<Extensions, InitError> + Send + Sync>;

/// What a plugin may know when it is made.
#[derive(Clone, Copy, Debug)]
pub struct InitCtx<'a> {
    /// The profile's `schedulerName`.
    pub scheduler_name: &'a str,
    /// What it shares with its instances in the scheduler's other profiles.
    pub shared: &'a Shared,
}

/// Why a plugin could not be made.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct InitError(pub String);

/// The plugins that exist, in the default profile's order.
#[derive(Clone, Default)]
pub struct Registry {
    descriptors: Vec<Descriptor>,
}

/// Two plugins claim one name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a plugin named {0:?} is registered already")]
pub struct DuplicatePlugin(pub String);

impl Registry {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a plugin after those there are.
    ///
    /// # Errors
    /// When its name is taken.
    pub fn register(&mut self, descriptor: Descriptor) -> Result<(), DuplicatePlugin> {
        if self.get(descriptor.name).is_some() {
            return Err(DuplicatePlugin(descriptor.name.to_owned()));
        }
        self.descriptors.push(descriptor);
        Ok(())
    }

    /// The plugin of that name.
    pub fn get(&self, name: &str) -> Option<&Descriptor> {
        self.descriptors.iter().find(|d| d.name == name)
    }

    /// All plugins, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Descriptor> {
        self.descriptors.iter()
    }
}

impl Descriptor {
    /// A plugin that takes arguments of type `A`, outside of the default
    /// profile.
    pub fn with_args<A, F>(name: &'static str, points: PointSet, make: F) -> Self
    where
        A: crate::args::PluginArgs,
        F: Fn(&InitCtx<'_>, A) -> Result<Extensions, InitError> + Send + Sync + 'static,
    {
        let factory = move |ctx: &InitCtx<'_>, args: &Value| {
            let args = A::deserialize_value(args)?;
            make(ctx, args)
        };
        Self {
            name,
            points,
            default_weight: None,
            args: Some(ArgsKind::of::<A>()),
            build: Build::Ready(Arc::new(factory)),
        }
    }

    /// A plugin without arguments, outside of the default profile.
    pub fn plain<F>(name: &'static str, points: PointSet, make: F) -> Self
    where
        F: Fn(&InitCtx<'_>) -> Result<Extensions, InitError> + Send + Sync + 'static,
    {
        Self {
            name,
            points,
            default_weight: None,
            args: None,
            build: Build::Ready(Arc::new(move |ctx, _| make(ctx))),
        }
    }

    /// A plugin whose name and arguments are known and that does not exist
    /// yet.
    pub const fn planned(name: &'static str, points: PointSet, args: Option<ArgsKind>) -> Self {
        Self { name, points, default_weight: None, args, build: Build::Planned }
    }

    /// The same plugin as part of the default profile.
    #[must_use]
    pub fn by_default(mut self, weight: u32) -> Self {
        self.default_weight = Some(weight);
        self
    }
}

trait DeserializeArgs: Sized {
    fn deserialize_value(value: &Value) -> Result<Self, InitError>;
}

impl<A: crate::args::PluginArgs> DeserializeArgs for A {
    fn deserialize_value(value: &Value) -> Result<Self, InitError> {
        serde_json::from_value(value.clone())
            .map_err(|error| InitError(format!("arguments of kind {}: {error}", A::KIND)))
    }
}
