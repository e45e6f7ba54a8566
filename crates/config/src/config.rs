//! The configuration as the rest of the program takes it: defaulted, checked,
//! in its own types.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::gates::FeatureGates;
use crate::resolve::ResolvedPlugins;
use crate::{args, wire};

/// How this scheduler runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How many nodes are evaluated at once; 1 or more.
    pub parallelism: u32,
    /// The share of nodes that are looked at before scoring, 0 to 100 percent;
    /// 0 means a share that shrinks with the number of nodes.
    pub percentage_of_nodes_to_score: u8,
    /// How long a pod waits after its first failed attempt; whole seconds,
    /// more than none. The wait doubles with each attempt.
    pub pod_initial_backoff: Duration,
    /// The longest such wait; whole seconds, at least the first.
    pub pod_max_backoff: Duration,
    /// Whether and how replicas choose who schedules.
    pub leader_election: LeaderElection,
    /// How to talk to the API server.
    pub client_connection: ClientConnection,
    /// Whether profiles of the process are served.
    pub enable_profiling: bool,
    /// Whether those include waiting for locks; needs `enable_profiling`.
    pub enable_contention_profiling: bool,
    /// Whether caches are filled only after leadership was won.
    pub delay_cache_until_active: bool,
    /// One or more, with different scheduler names.
    pub profiles: Vec<Profile>,
    /// In the order in which they are called.
    pub extenders: Vec<ExtenderConfig>,
    /// Which features are on.
    pub gates: FeatureGates,
}

/// One set of plugins, for the pods that ask for its scheduler name.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The `spec.schedulerName` of its pods.
    pub scheduler_name: String,
    /// Replaces [`Config::percentage_of_nodes_to_score`].
    pub percentage_of_nodes_to_score: Option<u8>,
    /// Which plugins run where.
    pub plugins: ResolvedPlugins,
    /// The complete arguments of every enabled plugin, as its factory takes
    /// them: without `apiVersion` and `kind`, an empty object for plugins that
    /// have none.
    pub args: BTreeMap<String, Value>,
}

/// Whether and how replicas choose who schedules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    /// Whether they do. The other fields are checked only if so.
    pub leader_elect: bool,
    /// How long a lease lasts that is not renewed.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it gives up; at most
    /// `lease_duration`.
    pub renew_deadline: Duration,
    /// How long to wait between two tries.
    pub retry_period: Duration,
    /// The kind of the lock: `leases`.
    pub resource_lock: String,
    /// The name of the lock.
    pub resource_name: String,
    /// The namespace of the lock.
    pub resource_namespace: String,
}

/// How to talk to the API server.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConnection {
    /// The path of a kubeconfig file; empty for none.
    pub kubeconfig: String,
    /// The `Accept` header, instead of one from `content_type`; empty for none.
    pub accept_content_types: String,
    /// The type of what is sent and received.
    pub content_type: String,
    /// Requests a second; negative means any number.
    pub qps: f32,
    /// How many requests may go out at once before `qps` counts; 0 or more.
    pub burst: u32,
}

/// A process outside that takes part through HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtenderConfig {
    /// What verbs are appended to.
    pub url_prefix: String,
    /// The path of the filter call; `None` when it does not filter.
    pub filter_verb: Option<String>,
    /// The path of the preempt call; `None` when it has no say.
    pub preempt_verb: Option<String>,
    /// The path of the prioritize call; `None` when it does not score.
    pub prioritize_verb: Option<String>,
    /// What its scores are multiplied by; 1 or more if it scores.
    pub weight: i64,
    /// The path of the bind call; `None` when it does not bind. One extender
    /// at the most has it.
    pub bind_verb: Option<String>,
    /// Whether to use HTTPS.
    pub enable_https: bool,
    /// Certificates and names for HTTPS.
    pub tls: Option<ExtenderTls>,
    /// How long a call may take.
    pub http_timeout: Duration,
    /// Whether it knows the nodes, so that names are enough.
    pub node_cache_capable: bool,
    /// Pods that ask for none of these are not sent to it; when empty, all are.
    pub managed_resources: Vec<ManagedResource>,
    /// Whether scheduling goes on without it when it fails.
    pub ignorable: bool,
}

/// A resource that an extender looks after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedResource {
    /// The extended resource.
    pub name: String,
    /// Whether this scheduler leaves checking it to the extender.
    pub ignored_by_scheduler: bool,
}

/// Certificates and names for HTTPS to an extender. Data counts more than the
/// file of the same kind; files and data are PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ExtenderTls {
    /// Whether the server's certificate is not checked.
    pub insecure: bool,
    /// The name to expect in it, instead of the URL's.
    pub server_name: Option<String>,
    /// The path of the client's certificate.
    pub cert_file: Option<String>,
    /// The path of its key.
    pub key_file: Option<String>,
    /// The path of the authorities to trust.
    pub ca_file: Option<String>,
    /// The client's certificate.
    pub cert_data: Vec<u8>,
    /// Its key.
    pub key_data: Vec<u8>,
    /// The authorities to trust.
    pub ca_data: Vec<u8>,
}

impl fmt::Debug for ExtenderTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is a secret, and certificates are long.
        f.debug_struct("ExtenderTls")
            .field("insecure", &self.insecure)
            .field("server_name", &self.server_name)
            .field("cert_file", &self.cert_file)
            .field("key_file", &self.key_file)
            .field("ca_file", &self.ca_file)
            .finish_non_exhaustive()
    }
}

/// The time for a call to an extender that says none.
const DEFAULT_EXTENDER_TIMEOUT: Duration = Duration::from_secs(5);

impl Config {
    /// Converts a document that was defaulted and found valid. Numbers out of
    /// range would have been problems; here they go to the nearest bound.
    pub(crate) fn from_wire(
        config: &wire::Configuration,
        plugins: Vec<ResolvedPlugins>,
        registry: &steersman_framework::registry::Registry,
    ) -> Self {
        let profiles = config.profiles.iter().zip(plugins);
        Self {
            parallelism: at_least_zero(config.parallelism),
            percentage_of_nodes_to_score: percentage(config.percentage_of_nodes_to_score)
                .unwrap_or(0),
            pod_initial_backoff: seconds(config.pod_initial_backoff_seconds),
            pod_max_backoff: seconds(config.pod_max_backoff_seconds),
            leader_election: LeaderElection::from_wire(&config.leader_election),
            client_connection: ClientConnection::from_wire(&config.client_connection),
            enable_profiling: config.enable_profiling.unwrap_or_default(),
            enable_contention_profiling: config.enable_contention_profiling.unwrap_or_default(),
            delay_cache_until_active: config.delay_cache_until_active,
            profiles: profiles
                .map(|(p, plugins)| Profile::from_wire(p, plugins, registry))
                .collect(),
            extenders: config.extenders.iter().map(ExtenderConfig::from_wire).collect(),
            gates: FeatureGates::default(),
        }
    }
}

impl Profile {
    fn from_wire(
        profile: &wire::Profile,
        plugins: ResolvedPlugins,
        registry: &steersman_framework::registry::Registry,
    ) -> Self {
        let args_of = |name: &str| {
            let entry = profile.plugin_config.iter().find(|entry| entry.name == name);
            let kind = registry.get(name).and_then(|plugin| plugin.args);
            args::for_factory(kind, entry.and_then(|entry| entry.args.as_ref()))
        };
        let args = plugins.names().into_iter().map(|name| (name.to_owned(), args_of(name)));
        Self {
            scheduler_name: profile.scheduler_name.clone().unwrap_or_default(),
            percentage_of_nodes_to_score: percentage(profile.percentage_of_nodes_to_score),
            args: args.collect(),
            plugins,
        }
    }
}

impl LeaderElection {
    fn from_wire(election: &wire::LeaderElection) -> Self {
        Self {
            leader_elect: election.leader_elect.unwrap_or_default(),
            lease_duration: election.lease_duration.to_std(),
            renew_deadline: election.renew_deadline.to_std(),
            retry_period: election.retry_period.to_std(),
            resource_lock: election.resource_lock.clone(),
            resource_name: election.resource_name.clone(),
            resource_namespace: election.resource_namespace.clone(),
        }
    }
}

impl ClientConnection {
    fn from_wire(connection: &wire::ClientConnection) -> Self {
        Self {
            kubeconfig: connection.kubeconfig.clone(),
            accept_content_types: connection.accept_content_types.clone(),
            content_type: connection.content_type.clone(),
            qps: connection.qps,
            burst: at_least_zero(Some(connection.burst)),
        }
    }
}

impl ExtenderConfig {
    fn from_wire(extender: &wire::Extender) -> Self {
        let timeout = extender.http_timeout.to_std();
        let managed = extender.managed_resources.iter().map(|resource| ManagedResource {
            name: resource.name.clone(),
            ignored_by_scheduler: resource.ignored_by_scheduler,
        });
        Self {
            url_prefix: extender.url_prefix.clone(),
            filter_verb: unless_empty(&extender.filter_verb),
            preempt_verb: unless_empty(&extender.preempt_verb),
            prioritize_verb: unless_empty(&extender.prioritize_verb),
            weight: extender.weight,
            bind_verb: unless_empty(&extender.bind_verb),
            enable_https: extender.enable_https,
            tls: extender.tls_config.as_ref().map(ExtenderTls::from_wire),
            http_timeout: if timeout.is_zero() { DEFAULT_EXTENDER_TIMEOUT } else { timeout },
            node_cache_capable: extender.node_cache_capable,
            managed_resources: managed.collect(),
            ignorable: extender.ignorable,
        }
    }
}

impl ExtenderTls {
    fn from_wire(tls: &wire::TlsConfig) -> Self {
        Self {
            insecure: tls.insecure,
            server_name: unless_empty(&tls.server_name),
            cert_file: unless_empty(&tls.cert_file),
            key_file: unless_empty(&tls.key_file),
            ca_file: unless_empty(&tls.ca_file),
            cert_data: tls.cert_data.0.clone(),
            key_data: tls.key_data.0.clone(),
            ca_data: tls.ca_data.0.clone(),
        }
    }
}

fn at_least_zero(number: Option<i32>) -> u32 {
    u32::try_from(number.unwrap_or_default()).unwrap_or(0)
}

fn percentage(number: Option<i32>) -> Option<u8> {
    number.map(|n| u8::try_from(n.clamp(0, 100)).unwrap_or(0))
}

fn seconds(number: Option<i64>) -> Duration {
    Duration::from_secs(u64::try_from(number.unwrap_or_default()).unwrap_or(0))
}

fn unless_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
