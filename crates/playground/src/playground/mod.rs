//! Starts and stops everything.

mod parts;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apiserver::tls::{Identity, TlsError};
use steersman_apiserver::{ApiServer, Audit, Auth, Authorization, User};
use steersman_framework::extender::Extender;
use steersman_framework::registry::Registry;
use steersman_runtime::{Counters, Listener, Options, Scheduling};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::controller::storage;
use crate::engine::plan::Settings;
use crate::engine::{self, Clock};
use crate::kubeconfig::{self, Credentials};
use crate::manifests::{Manifest, ManifestError};
use crate::node::{file, shape};
use parts::Parts;

pub use parts::Failed;

/// What a playground is made of.
pub struct Config {
    /// Where to listen; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Further names and addresses that the certificate is good for.
    pub names: Vec<String>,
    /// How many nodes to make, beside those among the manifests.
    pub n_nodes: usize,
    /// Nodes of another cluster: like ones are made, in good health.
    pub nodes_from: Vec<Manifest>,
    /// What is there from the start.
    pub manifests: Vec<Manifest>,
    /// How nodes and pods behave.
    pub settings: Settings,
    /// The scheduler; pods wait for another one without it.
    pub scheduler: Option<SchedulerConfig>,
    /// For uids and names, and for drawing among equally good nodes.
    pub seed: u64,
    /// What decides whether a request is allowed. With RBAC there are the roles
    /// that every such cluster has, and the scheduler is
    /// `system:kube-scheduler` with no more rights than that user has.
    pub authorization: Authorization,
    /// Who is told of each decision about a request.
    pub audit: Option<Arc<dyn Audit>>,
}

impl Default for Config {
    /// An empty cluster without a scheduler at any free port of this machine.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            names: Vec::new(),
            n_nodes: 0,
            nodes_from: Vec::new(),
            manifests: Vec::new(),
            settings: Settings::default(),
            scheduler: None,
            seed: 0,
            authorization: Authorization::default(),
            audit: None,
        }
    }
}

/// The scheduler of a playground.
pub struct SchedulerConfig {
    /// Its configuration.
    pub config: steersman_config::Config,
    /// The plugins that exist.
    pub registry: Registry,
    /// The extenders, in the order of the configuration.
    pub extenders: Vec<Arc<dyn Extender>>,
    /// Who is told what it does.
    pub listener: Box<dyn Listener>,
}

/// Why a playground cannot be started.
#[derive(Debug, Error)]
pub enum StartError {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}")]
    Listen {
        /// Which one.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// There is no certificate.
    #[error("cannot make a certificate")]
    Tls(#[source] TlsError),
    /// There is no randomness for the token.
    #[error("the system gives no random numbers")]
    Random,
    /// The nodes of another cluster cannot be read.
    #[error("cannot make nodes")]
    Nodes(#[source] ManifestError),
    /// Objects were refused.
    #[error("{}", .0.join("\n"))]
    Refused(Vec<String>),
}

/// A playground that runs. Dropping it stops it at once.
pub struct Running {
    /// A client of it, in this process.
    pub client: Client,
    /// Its address.
    pub url: String,
    /// The content of a kubeconfig for it. It holds a secret.
    pub kubeconfig: String,
    /// What the scheduler has done so far.
    pub counters: Arc<Counters>,
    identity: Identity,
    server: ApiServer,
    parts: Parts,
}

/// Starts a playground.
///
/// # Errors
/// When it cannot listen, or some of the objects are refused.
pub async fn start(config: Config) -> Result<Running, StartError> {
    let now = Timestamp::now();
    let server = ApiServer::new(steersman_apiserver::Config {
        resources: steersman_apikinds::resources(),
        seed: config.seed,
        authorization: config.authorization,
        audit: config.audit,
        ..Default::default()
    });
    // Namespaces may be there already, which is as good.
    drop(server.load(steersman_apikinds::bootstrap(now)));
    if config.authorization == Authorization::Rbac {
        drop(server.load(steersman_apikinds::rbac_policy(now)));
    }
    let mut nodes = file::nodes(config.nodes_from, now).map_err(StartError::Nodes)?;
    nodes.extend(shape::nodes(config.n_nodes, now).into_iter().map(|node| {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        (format!("node {name}"), node)
    }));
    load_classes(&server, &config.manifests)?;
    load(&server, config.manifests, nodes)?;

    let address = config.listen;
    let unable = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(unable)?;
    let address = listener.local_addr().map_err(unable)?;
    let identity = Identity::generate(&config.names, now).map_err(StartError::Tls)?;
    let tls = identity.tls().map_err(StartError::Tls)?;
    drop(server.load(vec![authentication(&identity.ca_pem)]));
    let token = random_token()?;
    let url = url(address);
    let kubeconfig = kubeconfig::text(&url, &identity.ca_pem, &Credentials::Token(&token));
    let auth = Auth::tokens([(token, User::admin())]);

    let stop = CancellationToken::new();
    let mut parts = Parts::new(stop.clone());
    let (serving, stopped) = (server.clone(), stop.clone());
    parts.spawn("the API server", async move {
        let served = Box::pin(serving.serve(listener, tls, auth, stopped.cancelled_owned())).await;
        if let Err(error) = served {
            tracing::error!(%error, "the API server stopped");
        }
    });
    let (collecting, stopped) = (server.clone(), stop.clone());
    parts.spawn("the garbage collector", async move {
        tokio::select! {
            () = collecting.run_garbage_collector() => {}
            () = stopped.cancelled() => {}
        }
    });
    let client = Client::new(server.service(), "default");
    let clock = Clock::starting_at(now);
    let engine = engine::run(client.clone(), clock, config.settings, stop.clone());
    parts.spawn("the engine of the controllers", Box::pin(engine));
    let counters = Arc::new(Counters::default());
    if let Some(scheduler) = config.scheduler {
        let service = server.service().named("kube-scheduler");
        let user = User::new("system:kube-scheduler", [""; 0]);
        let client = Client::new(service.acting_as(user), "default");
        let options = Options { seed: config.seed, ..Options::default() };
        let scheduling = schedule(client, scheduler, options, Arc::clone(&counters), stop);
        parts.spawn("the scheduler", scheduling);
    }
    Ok(Running { client, url, kubeconfig, counters, identity, server, parts })
}

impl Running {
    /// The API server.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// The content of a kubeconfig with which somebody is a service account,
    /// for `seconds`. It holds a secret.
    ///
    /// # Errors
    /// When there is no such account.
    pub fn service_account_kubeconfig(
        &self,
        namespace: &str,
        name: &str,
        seconds: i64,
    ) -> Result<String, ApiError> {
        let token = self.server.service_account_token(namespace, name, seconds)?;
        Ok(kubeconfig::text(&self.url, &self.identity.ca_pem, &Credentials::Token(&token)))
    }

    /// The content of a kubeconfig with a certificate, with which somebody is
    /// this user of this group for a year. It holds a secret.
    ///
    /// # Errors
    /// When there can be no such certificate.
    pub fn user_kubeconfig(&self, user: &str, group: Option<&str>) -> Result<String, TlsError> {
        let client = self.identity.client(user, group, Timestamp::now())?;
        let credentials = Credentials::Certificate(&client);
        Ok(kubeconfig::text(&self.url, &self.identity.ca_pem, &credentials))
    }

    /// Everything in the cluster, as manifests that can be loaded again.
    pub fn dump(&self) -> Vec<Value> {
        self.server.dump()
    }

    /// Takes objects in as if somebody had created them.
    ///
    /// # Errors
    /// When some are refused; the others are there then.
    pub fn add(&self, manifests: Vec<Manifest>) -> Result<(), StartError> {
        load(&self.server, manifests, Vec::new())
    }

    /// Takes in those of the objects whose like is not there yet; how many
    /// there were already.
    ///
    /// # Errors
    /// When some are refused; the others are there then.
    pub fn add_missing(&self, manifests: Vec<Manifest>) -> Result<usize, StartError> {
        let known = self.dump();
        let place = |object: &Value| {
            let at = |path: &str| object.pointer(path).and_then(Value::as_str).map(str::to_owned);
            let namespace = at("/metadata/namespace").unwrap_or_else(|| "default".to_owned());
            (at("/apiVersion"), at("/kind"), namespace, at("/metadata/name"))
        };
        let taken: BTreeSet<_> = known.iter().map(place).collect();
        let n = manifests.len();
        let missing: Vec<Manifest> =
            manifests.into_iter().filter(|m| !taken.contains(&place(&m.object))).collect();
        let n_known = n - missing.len();
        load(&self.server, missing, Vec::new())?;
        Ok(n_known)
    }

    /// Stops everything; bindings under way are finished.
    pub async fn shutdown(self) {
        self.parts.shutdown().await;
    }

    /// Waits until a part of the playground ends without having been told to.
    /// While all is well, this takes for ever.
    pub async fn failed(&self) -> Failed {
        self.parts.failed().await
    }
}

async fn schedule(
    client: Client,
    scheduler: SchedulerConfig,
    options: Options,
    counters: Arc<Counters>,
    stop: CancellationToken,
) {
    let SchedulerConfig { config, registry, extenders, listener } = scheduler;
    let scheduling = Scheduling {
        options,
        extenders,
        listener,
        counters,
        ..Scheduling::new(client, &config, &registry)
    };
    if let Err(error) = Box::pin(steersman_runtime::run(scheduling, stop)).await {
        tracing::error!(error = &error as &dyn std::error::Error, "the scheduler stopped");
    }
}

/// Puts the playground's own storage classes into the cluster, but for those
/// that are among the manifests. They come first: claims get the default class
/// when they are made.
fn load_classes(server: &ApiServer, manifests: &[Manifest]) -> Result<(), StartError> {
    let given: Vec<&Value> = manifests
        .iter()
        .map(|manifest| &manifest.object)
        .filter(|object| object["kind"] == "StorageClass")
        .collect();
    let default = "storageclass.kubernetes.io/is-default-class";
    let has_default = given.iter().any(|class| class["metadata"]["annotations"][default] == "true");
    let own = storage::classes::classes(has_default).into_iter().map(|class| {
        let origin =
            format!("storage class {}", class.metadata.name.as_deref().unwrap_or_default());
        Manifest { origin, object: engine::plan::to_value(&class) }
    });
    let is_given = |class: &Manifest| {
        given.iter().any(|given| given["metadata"]["name"] == class.object["metadata"]["name"])
    };
    load(server, own.filter(|class| !is_given(class)).collect(), Vec::new())
}

/// The name of the config map that tells other servers whom to trust.
const AUTHENTICATION: &str = "extension-apiserver-authentication";

/// What other servers need to know to find out who asks them: the authority of
/// clients' certificates.
fn authentication(ca_pem: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": AUTHENTICATION, "namespace": "kube-system" },
        "data": { "client-ca-file": ca_pem },
    })
}

/// Puts objects into the cluster. Leases of nodes are left out: those who held
/// them are gone, and the nodes here have not had the time to renew them. So is
/// what tells of the authority, which is another one each time.
fn load(
    server: &ApiServer,
    manifests: Vec<Manifest>,
    nodes: Vec<(String, Node)>,
) -> Result<(), StartError> {
    let nodes = nodes.into_iter().map(|(origin, node)| (origin, engine::plan::to_value(&node)));
    let (mut origins, mut objects): (Vec<String>, Vec<Value>) = nodes.unzip();
    for manifest in manifests {
        let namespace = manifest.object.pointer("/metadata/namespace").and_then(Value::as_str);
        let is_lease = manifest.object["kind"] == "Lease" && namespace == Some("kube-node-lease");
        let is_authentication = manifest.object["kind"] == "ConfigMap"
            && namespace == Some("kube-system")
            && manifest.object["metadata"]["name"] == AUTHENTICATION;
        if !is_lease && !is_authentication {
            origins.push(manifest.origin);
            objects.push(manifest.object);
        }
    }
    let answers = server.load(objects);
    let refused = origins
        .into_iter()
        .zip(answers)
        .filter_map(|(origin, answer)| answer.err().map(|error| format!("{origin}: {error}")));
    let refused: Vec<String> = refused.collect();
    if refused.is_empty() { Ok(()) } else { Err(StartError::Refused(refused)) }
}

fn url(address: SocketAddr) -> String {
    // Who listens everywhere is reached here, too.
    if address.ip().is_unspecified() {
        format!("https://127.0.0.1:{}", address.port())
    } else {
        format!("https://{address}")
    }
}

fn random_token() -> Result<String, StartError> {
    let mut bytes = [0; 24];
    let provider = rustls::crypto::ring::default_provider();
    provider.secure_random.fill(&mut bytes).map_err(|_| StartError::Random)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
