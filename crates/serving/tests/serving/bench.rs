//! A server under test, with pages and a certificate of the test's authority.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use steersman_serving::{
    Access, AuthenticationOptions, Authenticator, AuthorizationOptions, Authorizer, Certificate,
    METRICS_TEXT, Page, PageError, PageRequest, Reply, Server, ServerOptions, Site, TlsOptions,
    Transport, check, page, ping,
};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::fake_api::FakeApi;
use crate::pki::{Authority, Directory, Pair};

/// It stops with the test.
pub(crate) struct Bench {
    pub(crate) address: SocketAddr,
    pub(crate) authority: Authority,
    pub(crate) directory: Directory,
    pub(crate) stop: CancellationToken,
    pub(crate) serving: JoinHandle<()>,
}

/// Everything that may take time in real time is given up after this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

impl Bench {
    /// Serves `site` to everybody.
    pub(crate) async fn open(site: Site, change: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::start(site, Access::Everyone, change).await
    }

    /// Serves the usual site to those whom the API server lets.
    pub(crate) async fn delegated(api: &FakeApi, authentication: AuthenticationOptions) -> Self {
        Self::asking(api, authentication, AuthorizationOptions::default()).await
    }

    /// The same, but for the paths that everybody may read.
    pub(crate) async fn delegated_but(api: &FakeApi, always_allow_paths: Vec<String>) -> Self {
        let options = AuthorizationOptions { always_allow_paths, ..Default::default() };
        Self::asking(api, AuthenticationOptions::default(), options).await
    }

    async fn asking(
        api: &FakeApi,
        authentication: AuthenticationOptions,
        authorization: AuthorizationOptions,
    ) -> Self {
        let authenticator = Authenticator::start(authentication, Some(api.client.clone()));
        let access = Access::Delegated {
            authenticator: authenticator.await.unwrap(),
            authorizer: Authorizer::new(authorization, Some(api.client.clone())).unwrap(),
        };
        Self::start(site(), access, |_| {}).await
    }

    async fn start(site: Site, access: Access, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let authority = Authority::new("server-ca");
        let directory = Directory::new();
        let pair = authority.server(&["localhost", "127.0.0.1"]);
        let certificate = write_pair(&directory, "server", &pair);
        let mut options = ServerOptions::new("127.0.0.1:0".parse().unwrap());
        options.transport = Transport::Tls(TlsOptions { certificate, ..TlsOptions::default() });
        change(&mut options);
        let server = Server::bind(options).await.unwrap();
        let address = server.local_addr();
        let stop = CancellationToken::new();
        let serving = tokio::spawn(server.serve(site, access, stop.clone()));
        Self { address, authority, directory, stop, serving }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address, &self.authority.pem)
    }

    pub(crate) fn client_of(&self, identity: &Pair) -> Client {
        let versions = rustls::ALL_VERSIONS;
        Client::with_versions(self.address, &self.authority.pem, Some(identity), versions)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Is shown once it is let.
pub(crate) struct Gate {
    pub(crate) reached: Semaphore,
    pub(crate) open: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self { reached: Semaphore::new(0), open: Semaphore::new(0) }
    }
}

/// The page behind a gate.
pub(crate) struct Gated(pub(crate) Arc<Gate>);

impl Page for Gated {
    fn render<'a>(&'a self, _: &'a PageRequest) -> BoxFuture<'a, Result<Reply, PageError>> {
        Box::pin(async {
            self.0.reached.add_permits(1);
            let _open = self.0.open.acquire().await;
            Ok(Reply::text("at last"))
        })
    }
}

/// The site of most tests.
pub(crate) fn site() -> Site {
    let metrics = "# TYPE a counter\na 1\n".to_owned();
    Site::new()
        .page("/metrics", page(move |_| Ok(Reply::new(METRICS_TEXT, metrics.clone()))))
        .and_then(|site| site.health("/healthz", vec![]))
        .and_then(|site| site.health("/readyz", vec![ping(), check("late", || Err("why".into()))]))
        .unwrap()
}

pub(crate) fn write_pair(directory: &Directory, name: &str, pair: &Pair) -> Certificate {
    Certificate::Files {
        certificate: directory.write(&format!("{name}.crt"), &pair.certificate),
        key: directory.write(&format!("{name}.key"), &pair.key),
    }
}
