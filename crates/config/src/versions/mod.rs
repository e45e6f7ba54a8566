//! Documents of v1beta1, v1beta2 and v1beta3, which kube-scheduler v1.36 reads
//! no more, converted to v1 so that they keep their meaning as far as the
//! plugins exist.
//!
//! - v1beta3 has the structure of v1. Entries of plugins that are gone go.
//! - v1beta2 and v1beta1 name the default plugins per extension point and give
//!   them other weights: [`weights`].
//! - v1beta1 scores used resources with plugins of their own: [`strategy`].
//!
//! Plugins that joined the default profile later stay in it: they concern only
//! pods and nodes that use what came with them (scheduling gates, resource
//! claims, declared features).
//!
//! Everything works on the decoded document, whose entries know where they
//! stood, so that later complaints name places of the file as it is.
//!
//! Source: the defaults and conversions of the versions in kube-scheduler v1.19
//! to v1.28, where the last one of each version counts.

mod fields;
mod node_label;
mod removed;
mod strategy;
mod weights;

use serde_json::Value;
use steersman_api::problem::{FieldPath, Problem};
use steersman_framework::registry::Registry;

use crate::wire::{API_VERSION, Configuration, GROUP, PluginConfig, PluginSet, Profile};

/// A version that is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OldVersion {
    V1Beta1,
    V1Beta2,
    V1Beta3,
}

impl OldVersion {
    const ALL: [Self; 3] = [Self::V1Beta1, Self::V1Beta2, Self::V1Beta3];

    /// The version that an `apiVersion` names, if it is a known old one.
    pub(crate) fn of(api_version: &str) -> Option<Self> {
        let version = api_version.strip_prefix(GROUP)?.strip_prefix('/')?;
        Self::ALL.into_iter().find(|old| old.name() == version)
    }

    fn name(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
            Self::V1Beta3 => "v1beta3",
        }
    }
}

/// What the types of v1 have no place for.
pub(crate) struct OldFields {
    version: OldVersion,
    /// By profile: `plugins.unreserve`.
    unreserve: Vec<PluginSet>,
}

/// Where notices and complaints about one profile go.
struct Scope<'a> {
    version: OldVersion,
    /// Where the profile stands.
    at: FieldPath,
    registry: &'a Registry,
    problems: &'a mut Vec<Problem>,
    notices: &'a mut Vec<Problem>,
}

impl Scope<'_> {
    fn tell(&mut self, at: &FieldPath, what: impl Into<String>) {
        self.notices.push(Problem::new(at, what));
    }

    /// Where `plugins.field` stands.
    fn set(&self, field: &str) -> FieldPath {
        self.at.field("plugins").field(field)
    }

    fn plugin_config(&self) -> FieldPath {
        self.at.field("pluginConfig")
    }
}

/// Takes the fields that only the old version has out of the document, and
/// complains about those that it does not have yet.
pub(crate) fn take_old_fields(
    version: OldVersion,
    document: &mut Value,
    problems: &mut Vec<Problem>,
    notices: &mut Vec<Problem>,
) -> OldFields {
    let found = format!("{GROUP}/{}", version.name());
    let what = format!(
        "found {found:?}, which is deprecated, read as {API_VERSION:?}; the command `config \
         migrate` writes it so"
    );
    notices.push(Problem::new(&FieldPath::root().field("apiVersion"), what));
    fields::refuse_newer(version, document, problems);
    fields::take_addresses(version, document, problems, notices);
    fields::take_ineffective_sets(version, document, notices);
    OldFields { version, unreserve: fields::take_unreserve(version, document, problems) }
}

/// Has complaints about unknown fields name those that the version of the
/// document has, where they name those of v1.
pub(crate) fn name_allowed_fields(old: &OldFields, problems: &mut [Problem]) {
    problems.iter_mut().for_each(|problem| fields::name_allowed(old.version, problem));
}

/// Makes a decoded document of an old version one of v1.
pub(crate) fn convert(
    old: OldFields,
    config: &mut Configuration,
    registry: &Registry,
    problems: &mut Vec<Problem>,
    notices: &mut Vec<Problem>,
) {
    API_VERSION.clone_into(&mut config.api_version);
    fields::lock(&mut config.leader_election, notices);
    if config.profiles.is_empty() {
        config.profiles.push(Profile::default());
    }
    let mut unreserve = old.unreserve.into_iter();
    for (i, profile) in config.profiles.iter_mut().enumerate() {
        let at = FieldPath::root().field("profiles").index(i);
        let version = old.version;
        let mut scope = Scope { version, at, registry, problems, notices };
        fields::merge_unreserve(unreserve.next().unwrap_or_default(), profile, &mut scope);
        args(profile, &mut scope);
        if version == OldVersion::V1Beta1 {
            strategy::convert(profile, &mut scope);
            node_label::convert(profile, &mut scope);
        }
        removed::leave_out(profile, &mut scope);
        if version <= OldVersion::V1Beta2 {
            weights::convert(profile, &mut scope);
        }
    }
}

/// Arguments in an old version are those of v1, but for a default of v1beta1.
fn args(profile: &mut Profile, scope: &mut Scope<'_>) {
    let list = scope.plugin_config();
    for entry in &mut profile.plugin_config {
        let at = entry.at(&list).field("args");
        let Some(Value::Object(args)) = &mut entry.args else { continue };
        if args.get("apiVersion").and_then(Value::as_str).and_then(OldVersion::of).is_some() {
            args.insert("apiVersion".to_owned(), API_VERSION.into());
        }
        // Constraints of one's own made the defaulting type List.
        if scope.version == OldVersion::V1Beta1 && entry.name == "PodTopologySpread" {
            let is_set = |field: &str| match args.get(field) {
                Some(Value::String(text)) => !text.is_empty(),
                Some(Value::Array(items)) => !items.is_empty(),
                _ => false,
            };
            if is_set("defaultConstraints") && !is_set("defaultingType") {
                args.insert("defaultingType".to_owned(), "List".into());
                let what = "not set beside defaultConstraints, read as \"List\", as v1beta1 does";
                scope.tell(&at.field("defaultingType"), what);
            }
        }
    }
}

/// The entry of a plugin's arguments; made when there is none.
fn args_entry<'a>(profile: &'a mut Profile, name: &str) -> &'a mut PluginConfig {
    let found = profile.plugin_config.iter().position(|entry| entry.name == name);
    let i = found.unwrap_or_else(|| {
        let name = name.to_owned();
        profile.plugin_config.push(PluginConfig { name, ..PluginConfig::default() });
        profile.plugin_config.len() - 1
    });
    &mut profile.plugin_config[i]
}
