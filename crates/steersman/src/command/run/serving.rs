//! What this process serves, from before it leads until its last binding.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use steersman_metrics::SchedulerMetrics;
use steersman_serving::{
    Access, AuthenticationOptions, Authenticator, AuthorizationOptions, Authorizer, Server,
    ServerOptions, Site,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::client;
use super::flags::Flags;

/// The server at work; ends when it is told to, or dropped.
pub(super) struct Serving {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// Takes the port.
///
/// # Errors
/// When it is taken, or certificates cannot be used.
pub(super) async fn bind(options: ServerOptions) -> anyhow::Result<Server> {
    Server::bind(options).await.context(
        "nothing can be served over HTTPS; see --secure-port and --bind-address, or turn it off \
         with --secure-port=0",
    )
}

impl Serving {
    /// Serves a site to those who have access.
    pub(super) fn start(server: Server, site: Site, access: Access) -> Self {
        let address = server.local_addr();
        let stop = CancellationToken::new();
        let task = tokio::spawn(server.serve(site, access, stop.clone()));
        tracing::info!(%address, "serving over HTTPS");
        Self { stop, task }
    }

    /// Lets requests under way end.
    pub(super) async fn end(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the server ended unexpectedly");
        }
    }
}

/// Access for those whom the API server knows and lets. `main` reaches the one
/// whose pods are scheduled, which answers unless flags name others.
pub(super) async fn access(
    flags: &Flags,
    authentication: AuthenticationOptions,
    authorization: AuthorizationOptions,
    main: kube::Client,
    metrics: &Arc<SchedulerMetrics>,
) -> anyhow::Result<Access> {
    let asked = ask(flags.authentication.kubeconfig(), &main, metrics).await?;
    let authenticator = Authenticator::start(authentication, Some(asked))
        .await
        .context("cannot set up who may ask for what is served")?;
    let asked = ask(flags.authorization.kubeconfig(), &main, metrics).await?;
    let authorizer = Authorizer::new(authorization, Some(asked))
        .context("--authorization-always-allow-paths")?;
    Ok(Access::Delegated { authenticator, authorizer })
}

/// A client for the API server that is asked.
async fn ask(
    kubeconfig: Option<&Path>,
    main: &kube::Client,
    metrics: &Arc<SchedulerMetrics>,
) -> anyhow::Result<kube::Client> {
    match kubeconfig {
        Some(file) => client::connect(client::from_kubeconfig(file).await?, None, metrics),
        None => Ok(main.clone()),
    }
}
