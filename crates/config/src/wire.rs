//! `kubescheduler.config.k8s.io/v1` as it is written.
//!
//! One type per type of the API, with its field names. `Option` where "absent"
//! and "zero" mean different things. Serializing gives the document that the
//! reference shows after defaulting, so what is left out there is left out here.
//!
//! Source: `KubeSchedulerConfiguration` of the kube-scheduler configuration API
//! and the types of `component-base` that it embeds.

use std::fmt;

use k8s_openapi::ByteString;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use steersman_api::duration::GoDuration;
use steersman_api::problem::FieldPath;
use steersman_framework::point::ExtensionPoint;

/// The group of the API.
pub(crate) const GROUP: &str = "kubescheduler.config.k8s.io";
/// The version that is read.
pub(crate) const API_VERSION: &str = "kubescheduler.config.k8s.io/v1";
/// The only kind that is a configuration.
pub(crate) const KIND: &str = "KubeSchedulerConfiguration";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Configuration {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) parallelism: Option<i32>,
    pub(crate) leader_election: LeaderElection,
    pub(crate) client_connection: ClientConnection,
    pub(crate) enable_profiling: Option<bool>,
    pub(crate) enable_contention_profiling: Option<bool>,
    pub(crate) percentage_of_nodes_to_score: Option<i32>,
    pub(crate) pod_initial_backoff_seconds: Option<i64>,
    pub(crate) pod_max_backoff_seconds: Option<i64>,
    pub(crate) profiles: Vec<Profile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) extenders: Vec<Extender>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) delay_cache_until_active: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct LeaderElection {
    pub(crate) leader_elect: Option<bool>,
    pub(crate) lease_duration: GoDuration,
    pub(crate) renew_deadline: GoDuration,
    pub(crate) retry_period: GoDuration,
    pub(crate) resource_lock: String,
    pub(crate) resource_name: String,
    pub(crate) resource_namespace: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ClientConnection {
    pub(crate) kubeconfig: String,
    pub(crate) accept_content_types: String,
    pub(crate) content_type: String,
    #[serde(serialize_with = "go_float")]
    pub(crate) qps: f32,
    pub(crate) burst: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Profile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scheduler_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) percentage_of_nodes_to_score: Option<i32>,
    pub(crate) plugins: Plugins,
    pub(crate) plugin_config: Vec<PluginConfig>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Plugins {
    pub(crate) pre_enqueue: PluginSet,
    pub(crate) queue_sort: PluginSet,
    pub(crate) pre_filter: PluginSet,
    pub(crate) filter: PluginSet,
    pub(crate) post_filter: PluginSet,
    pub(crate) pre_score: PluginSet,
    pub(crate) score: PluginSet,
    pub(crate) reserve: PluginSet,
    pub(crate) permit: PluginSet,
    pub(crate) pre_bind: PluginSet,
    pub(crate) bind: PluginSet,
    pub(crate) post_bind: PluginSet,
    pub(crate) multi_point: PluginSet,
    pub(crate) placement_generate: PluginSet,
    pub(crate) placement_score: PluginSet,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PluginSet {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) enabled: Vec<Plugin>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) disabled: Vec<Plugin>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Plugin {
    pub(crate) name: String,
    /// 0 stands for the weight 1 where the plugin scores.
    pub(crate) weight: i32,
    /// The index in the list that the user wrote; `None` for what defaulting
    /// or converting added.
    #[serde(skip)]
    pub(crate) written_at: Option<usize>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PluginConfig {
    pub(crate) name: String,
    pub(crate) args: Option<Value>,
    /// As [`Plugin::written_at`].
    #[serde(skip)]
    pub(crate) written_at: Option<usize>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Extender {
    pub(crate) url_prefix: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) filter_verb: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) preempt_verb: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) prioritize_verb: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) weight: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) bind_verb: String,
    #[serde(rename = "enableHTTPS", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) enable_https: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls_config: Option<TlsConfig>,
    pub(crate) http_timeout: GoDuration,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) node_cache_capable: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) managed_resources: Vec<ManagedResource>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ignorable: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ManagedResource {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) ignored_by_scheduler: bool,
}

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TlsConfig {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) insecure: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) server_name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) cert_file: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) key_file: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) ca_file: String,
    #[serde(deserialize_with = "base64", skip_serializing_if = "no_bytes")]
    pub(crate) cert_data: ByteString,
    #[serde(deserialize_with = "base64", skip_serializing_if = "no_bytes")]
    pub(crate) key_data: ByteString,
    #[serde(deserialize_with = "base64", skip_serializing_if = "no_bytes")]
    pub(crate) ca_data: ByteString,
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is a secret, and certificates are long.
        f.debug_struct("TlsConfig")
            .field("insecure", &self.insecure)
            .field("server_name", &self.server_name)
            .field("cert_file", &self.cert_file)
            .field("key_file", &self.key_file)
            .field("ca_file", &self.ca_file)
            .finish_non_exhaustive()
    }
}

impl Configuration {
    /// Notes where each entry of a list stands, before entries are added and
    /// taken away.
    pub(crate) fn number_entries(&mut self) {
        for profile in &mut self.profiles {
            for set in profile.plugins.all_mut() {
                for (i, plugin) in set.enabled.iter_mut().enumerate() {
                    plugin.written_at = Some(i);
                }
                for (i, plugin) in set.disabled.iter_mut().enumerate() {
                    plugin.written_at = Some(i);
                }
            }
            for (i, entry) in profile.plugin_config.iter_mut().enumerate() {
                entry.written_at = Some(i);
            }
        }
    }
}

impl Plugin {
    /// Where the entry stands below `set`, whose `list` it is in; what nobody
    /// wrote stands in the list as a whole.
    pub(crate) fn at(&self, set: &FieldPath, list: &str) -> FieldPath {
        let list = set.field(list);
        self.written_at.map_or_else(|| list.clone(), |i| list.index(i))
    }
}

impl PluginConfig {
    /// Where the entry stands, for a `pluginConfig` at `list`.
    pub(crate) fn at(&self, list: &FieldPath) -> FieldPath {
        self.written_at.map_or_else(|| list.clone(), |i| list.index(i))
    }
}

impl Plugins {
    /// The sets that belong to an extension point each.
    pub(crate) fn at(&self, point: ExtensionPoint) -> &PluginSet {
        match point {
            ExtensionPoint::PreEnqueue => &self.pre_enqueue,
            ExtensionPoint::QueueSort => &self.queue_sort,
            ExtensionPoint::PreFilter => &self.pre_filter,
            ExtensionPoint::Filter => &self.filter,
            ExtensionPoint::PostFilter => &self.post_filter,
            ExtensionPoint::PreScore => &self.pre_score,
            ExtensionPoint::Score => &self.score,
            ExtensionPoint::Reserve => &self.reserve,
            ExtensionPoint::Permit => &self.permit,
            ExtensionPoint::PreBind => &self.pre_bind,
            ExtensionPoint::Bind => &self.bind,
            ExtensionPoint::PostBind => &self.post_bind,
        }
    }

    /// As [`Plugins::at`].
    pub(crate) fn at_mut(&mut self, point: ExtensionPoint) -> &mut PluginSet {
        match point {
            ExtensionPoint::PreEnqueue => &mut self.pre_enqueue,
            ExtensionPoint::QueueSort => &mut self.queue_sort,
            ExtensionPoint::PreFilter => &mut self.pre_filter,
            ExtensionPoint::Filter => &mut self.filter,
            ExtensionPoint::PostFilter => &mut self.post_filter,
            ExtensionPoint::PreScore => &mut self.pre_score,
            ExtensionPoint::Score => &mut self.score,
            ExtensionPoint::Reserve => &mut self.reserve,
            ExtensionPoint::Permit => &mut self.permit,
            ExtensionPoint::PreBind => &mut self.pre_bind,
            ExtensionPoint::Bind => &mut self.bind,
            ExtensionPoint::PostBind => &mut self.post_bind,
        }
    }

    /// Every set, including the one for all points and those for placements.
    pub(crate) fn all_mut(&mut self) -> [&mut PluginSet; 15] {
        self.named_mut().map(|(_, set)| set)
    }

    /// As [`Plugins::all_mut`], with the names of the fields.
    pub(crate) fn named_mut(&mut self) -> [(&'static str, &mut PluginSet); 15] {
        [
            ("preEnqueue", &mut self.pre_enqueue),
            ("queueSort", &mut self.queue_sort),
            ("preFilter", &mut self.pre_filter),
            ("filter", &mut self.filter),
            ("postFilter", &mut self.post_filter),
            ("preScore", &mut self.pre_score),
            ("score", &mut self.score),
            ("reserve", &mut self.reserve),
            ("permit", &mut self.permit),
            ("preBind", &mut self.pre_bind),
            ("bind", &mut self.bind),
            ("postBind", &mut self.post_bind),
            ("multiPoint", &mut self.multi_point),
            ("placementGenerate", &mut self.placement_generate),
            ("placementScore", &mut self.placement_score),
        ]
    }
}

impl PluginSet {
    /// Whether the set lists `name` among what it switches on.
    pub(crate) fn enables(&self, name: &str) -> bool {
        self.enabled.iter().any(|plugin| plugin.name == name)
    }

    /// Whether the set switches `name`, or everything, off.
    pub(crate) fn disables(&self, name: &str) -> bool {
        self.disabled.iter().any(|plugin| plugin.name == name || plugin.name == "*")
    }
}

/// Writes 50 as `50` and 0.1 as `0.1`, not as the double nearest to its single.
fn go_float<S: Serializer>(value: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    let exact: f64 = value.to_string().parse().unwrap_or_else(|_| f64::from(*value));
    if exact.fract() == 0.0 && exact.abs() < 1e15 {
        return serializer.serialize_i64(exact as i64);
    }
    serializer.serialize_f64(exact)
}

/// Reads base64. The message does not show the text, which may be a key.
fn base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteString, D::Error> {
    let refuse = |_| de::Error::custom("found other text, allowed: base64 of a PEM file");
    ByteString::deserialize(deserializer).map_err(refuse)
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn no_bytes(bytes: &ByteString) -> bool {
    bytes.0.is_empty()
}
