//! The listener and its connections.

mod activity;
mod connection;
mod listen;
mod respond;
mod room;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use room::Room;

use crate::authn::Authenticator;
use crate::authz::Authorizer;
use crate::site::Site;
use crate::tls::{Tls, TlsError, TlsOptions};

/// What and how to serve. The defaults are kube-scheduler's.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The address and port; port 0 leaves the choice to the system. The
    /// unspecified address means all addresses, of IPv4 and IPv6.
    /// (`--bind-address`, `--secure-port`)
    pub bind: SocketAddr,
    /// How connections are protected.
    pub transport: Transport,
    /// How many requests of one HTTP/2 connection are under way at most; 0 means
    /// 100. (`--http2-max-streams-per-connection`)
    pub http2_max_streams: u32,
    /// Whether others may bind specific addresses beside an unspecified one
    /// (`SO_REUSEADDR`). On by default where the system's listeners always set
    /// it, as Go's do. (`--permit-address-sharing`)
    pub permit_address_sharing: bool,
    /// Whether others may bind the very same address and port
    /// (`SO_REUSEPORT`). (`--permit-port-sharing`)
    pub permit_port_sharing: bool,
    /// What clients may use up.
    pub limits: Limits,
}

/// How connections are protected.
#[derive(Clone, Debug)]
pub enum Transport {
    /// TLS.
    Tls(TlsOptions),
    /// Nothing: tokens and answers can be read on the way.
    Plain,
}

/// What clients may use up.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once. For a further one the one ends that has been quiet
    /// for longest, a quarter of a second at the least: that is idle, still
    /// shakes hands, or has sent nothing yet but parts of a request or one whose
    /// sender is not known yet. Where there is none, the new one waits.
    pub connections: usize,
    /// Time for the TLS handshake.
    pub handshake: Duration,
    /// Time from the handshake until the first request's line and headers are
    /// there.
    pub first_request: Duration,
    /// Time for a later request's line and headers, from the answer before them.
    pub header_read: Duration,
    /// Bytes of a request's line and headers.
    pub header_bytes: u32,
    /// Time for an answer, with all that the API server is asked for it.
    pub request: Duration,
    /// Time that a connection may be idle.
    pub idle: Duration,
    /// Time for requests under way to end when the server stops.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1000,
            handshake: Duration::from_secs(5),
            first_request: Duration::from_secs(10),
            header_read: Duration::from_secs(32),
            header_bytes: 64 * 1024,
            request: Duration::from_secs(30),
            idle: Duration::from_secs(90),
            shutdown: Duration::from_secs(5),
        }
    }
}

impl ServerOptions {
    /// Over TLS, with a self-signed certificate.
    #[must_use]
    pub fn new(bind: SocketAddr) -> Self {
        Self {
            bind,
            transport: Transport::Tls(TlsOptions::default()),
            http2_max_streams: 0,
            permit_address_sharing: true,
            permit_port_sharing: false,
            limits: Limits::default(),
        }
    }
}

/// Why nothing is served.
#[derive(Debug, Error)]
pub enum ServerError {
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Connections cannot be protected.
    #[error("cannot set up TLS")]
    Tls(#[source] TlsError),
}

/// Who may read what.
#[expect(clippy::large_enum_variant, reason = "a server has one")]
pub enum Access {
    /// Those whom the API server knows and lets.
    Delegated {
        /// Finds out who asks.
        authenticator: Authenticator,
        /// Finds out whether they may.
        authorizer: Authorizer,
    },
    /// Everybody everything. Only for addresses that nobody else reaches.
    Everyone,
}

/// A server that has its address and serves nobody yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    options: ServerOptions,
}

/// What connections share.
struct Shared {
    site: Site,
    access: Access,
    tls: Option<Tls>,
    limits: Limits,
    http2_max_streams: u32,
    /// Cancelled when connections are to end.
    stop: CancellationToken,
}

/// A pause after a failure to accept: the process may be out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What requests may be under way on one HTTP/2 connection by default.
const DEFAULT_STREAMS: u32 = 100;

impl Server {
    /// Reads the certificates and takes the address.
    ///
    /// # Errors
    /// When either fails.
    pub async fn bind(options: ServerOptions) -> Result<Self, ServerError> {
        let tls = match &options.transport {
            Transport::Tls(tls) => {
                Some(Tls::new(tls, options.bind.ip()).map_err(ServerError::Tls)?)
            }
            Transport::Plain => None,
        };
        let failed = |source| ServerError::Listen { address: options.bind, source };
        let listener = listen::listen(&options).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, tls, options })
    }

    /// The address, with the port that was chosen.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`; then lets requests under way end, for a while.
    pub async fn serve(self, site: Site, access: Access, stop: CancellationToken) {
        let streams = match self.options.http2_max_streams {
            0 => DEFAULT_STREAMS,
            streams => streams,
        };
        let shared = Arc::new(Shared {
            site,
            access,
            tls: self.tls,
            limits: self.options.limits,
            http2_max_streams: streams,
            stop: stop.child_token(),
        });
        tracing::debug!(address = %self.address, tls = shared.tls.is_some(), "serving");
        let mut connections = JoinSet::new();
        tokio::select! {
            () = stop.cancelled() => {}
            () = accept(&self.listener, &shared, &mut connections) => {}
            () = shared.keep_fresh() => {}
        }
        drop(self.listener);
        let ended = async { while connections.join_next().await.is_some() {} };
        let grace = shared.limits.shutdown + Duration::from_secs(1);
        if tokio::time::timeout(grace, ended).await.is_err() {
            tracing::debug!("some connections did not end in time");
        }
        tracing::debug!(address = %self.address, "no longer serving");
    }
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>, connections: &mut JoinSet<()>) {
    let room = Room::new(shared.limits.connections);
    let mut is_failing = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let stream: TcpStream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Once per trouble: it is tried again and again.
                match std::mem::replace(&mut is_failing, true) {
                    false => tracing::warn!(%error, "cannot accept a connection"),
                    true => tracing::debug!(%error, "cannot accept a connection"),
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        is_failing = false;
        let place = room.place().await;
        connections.spawn(connection::serve(stream, place, shared.clone()));
    }
}

impl Shared {
    /// Follows files and the cluster, for ever.
    async fn keep_fresh(&self) {
        let authorities = async {
            match &self.access {
                Access::Delegated { authenticator, .. } => authenticator.keep_fresh().await,
                Access::Everyone => std::future::pending().await,
            }
        };
        tokio::join!(authorities, self.follow_certificates());
    }

    async fn follow_certificates(&self) {
        let Some(tls) = &self.tls else { return };
        let mut last_error = String::new();
        loop {
            tokio::time::sleep(tls.reload_every).await;
            let store = tls.store.clone();
            let looked = tokio::task::spawn_blocking(move || store.reload(Timestamp::now())).await;
            let error = match looked {
                Ok(Ok(changed)) => {
                    if changed {
                        tracing::info!("serving with new certificates");
                    }
                    String::new()
                }
                Ok(Err(error)) => crate::chain(&error),
                Err(error) => crate::chain(&error),
            };
            // Once per trouble: a file that stays broken is looked at often.
            if error != last_error && !error.is_empty() {
                tracing::warn!(error, "still serving with the same certificates");
            }
            last_error = error;
        }
    }
}
