//! What tests need to have an extender asked.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use steersman_api::decode::kind_row;
use steersman_api::node::Node;
use steersman_api::node_info::{NodeIdx, NodeInfo};
use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;
use steersman_config::config::{ExtenderConfig, ExtenderTls, ManagedResource};
use steersman_extender::{Error, Options, Proxies, connect};
use steersman_framework::extender::Extender;
use steersman_testing::{node, pod};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use crate::server::{Does, Server};

/// A runtime for servers and clients; the test's thread is the scheduler's.
pub(crate) struct Lab(Runtime);

impl Lab {
    pub(crate) fn new() -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        Self(builder.worker_threads(2).enable_all().build().expect("a runtime"))
    }

    pub(crate) fn server(&self, does: Does) -> Server {
        self.0.block_on(Server::start(None, does))
    }

    pub(crate) fn tls_server(&self, tls: TlsAcceptor, does: Does) -> Server {
        self.0.block_on(Server::start(Some(tls), does))
    }

    pub(crate) fn connect(&self, config: &ExtenderConfig) -> Result<Arc<dyn Extender>, Error> {
        let options = Options { proxies: Proxies::None, ..Options::default() };
        self.connect_with(config, &options)
    }

    pub(crate) fn connect_with(
        &self,
        config: &ExtenderConfig,
        options: &Options,
    ) -> Result<Arc<dyn Extender>, Error> {
        let extenders = connect(std::slice::from_ref(config), self.0.handle(), options)?;
        Ok(extenders.into_iter().next().expect("as many as there are configurations"))
    }

    /// The extender behind a server that does this, and the server.
    pub(crate) fn facing(&self, does: Does) -> (Arc<dyn Extender>, Server) {
        let server = self.server(does);
        (self.connect(&config(server.port)).expect("a good configuration"), server)
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.0.block_on(future)
    }
}

/// All verbs, whole nodes, and little patience.
pub(crate) fn config(port: u16) -> ExtenderConfig {
    ExtenderConfig {
        url_prefix: format!("http://127.0.0.1:{port}/sample/"),
        filter_verb: Some("filter".to_owned()),
        preempt_verb: Some("preempt".to_owned()),
        prioritize_verb: Some("prioritize".to_owned()),
        weight: 2,
        bind_verb: Some("bind".to_owned()),
        enable_https: false,
        tls: None,
        http_timeout: Duration::from_secs(30),
        node_cache_capable: false,
        managed_resources: Vec::<ManagedResource>::new(),
        ignorable: false,
    }
}

pub(crate) fn secure(port: u16, tls: ExtenderTls) -> ExtenderConfig {
    ExtenderConfig {
        url_prefix: format!("https://localhost:{port}/"),
        enable_https: true,
        tls: Some(tls),
        ..config(port)
    }
}

/// A pod, kept whole.
pub(crate) fn whole_pod(json: &Value) -> Arc<PodInfo> {
    match kind_row("v1", "Pod").expect("a kind").decode(json).expect("a pod").with_whole(json) {
        read if read.problems.is_empty() => match read.object {
            ClusterObject::Pod(pod) => pod,
            other => panic!("{other:?} is no pod"),
        },
        read => panic!("{:?}", read.problems),
    }
}

pub(crate) fn a_pod() -> Arc<PodInfo> {
    whole_pod(&pod("p").json())
}

/// Nodes of these names, kept whole.
pub(crate) fn nodes(names: &[&str]) -> Vec<NodeInfo> {
    let whole = |name: &str| -> Arc<Node> {
        let json = node(name).json();
        let read = kind_row("v1", "Node").expect("a kind").decode(&json).expect("a node");
        match read.with_whole(&json).object {
            ClusterObject::Node(node) => node,
            other => panic!("{other:?} is no node"),
        }
    };
    let infos = (0..).zip(names).map(|(i, name)| NodeInfo::new(NodeIdx(i), whole(name)));
    infos.collect()
}
