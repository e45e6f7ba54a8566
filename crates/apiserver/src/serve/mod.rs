//! Serving on a socket.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{Auth, User};
use crate::rest;
use crate::server::ApiServer;
use crate::tls::{Tls, certificate};

/// How long a client may take to prove that it speaks TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long it may take to send a request's headers.
const HEADERS: Duration = Duration::from_secs(30);
/// How often a silent HTTP/2 connection is tried.
const PING: Duration = Duration::from_secs(30);
/// How many requests a connection may have under way: watches are requests.
const STREAMS: u32 = 1_000;
/// How long connections may take to end after the server was told to.
const DRAIN: Duration = Duration::from_secs(5);
/// How long to wait when no connection can be accepted (no file descriptors).
const PAUSE: Duration = Duration::from_millis(50);

impl ApiServer {
    /// Serves on a socket until `shutdown` is ready. Watches end then, and
    /// requests under way are answered.
    ///
    /// # Errors
    /// None at present: a connection that fails ends alone, and a socket that
    /// accepts nothing for a while is tried again.
    pub async fn serve(
        &self,
        listener: TcpListener,
        tls: Tls,
        auth: Auth,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let closing = CancellationToken::new();
        let connections = TaskTracker::new();
        let over = CancellationToken::new();
        let auth = Arc::new(auth);
        let _remembered = self.inner.remember(&auth);
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let connection = Connection {
                        server: self.clone(),
                        auth: auth.clone(),
                        closing: closing.clone(),
                    };
                    let served = Box::pin(connection.accept(stream, tls.clone()));
                    connections.spawn(over.clone().run_until_cancelled_owned(served));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(PAUSE).await;
                }
            }
        }
        drop(listener);
        closing.cancel();
        connections.close();
        if timeout(DRAIN, connections.wait()).await.is_err() {
            tracing::warn!(left = connections.len(), "connections did not end in time");
            over.cancel();
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Connection {
    server: ApiServer,
    auth: Arc<Auth>,
    closing: CancellationToken,
}

impl Connection {
    async fn accept(self, stream: TcpStream, tls: Tls) {
        // Watch events are small and should not wait for each other.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set a socket's options");
        }
        match tls {
            Tls::Off => self.serve(stream, None).await,
            Tls::On(config) => {
                match timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let certificates = stream.get_ref().1.peer_certificates();
                        let peer = certificates.and_then(|chain| certificate::user(chain.first()?));
                        self.serve(stream, peer).await;
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                    Err(_) => tracing::debug!("a TLS handshake took too long"),
                }
            }
        }
    }

    /// Serves the requests of a connection; `peer` is whom its certificate
    /// names.
    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Option<User>,
    ) {
        let peer = peer.map(Arc::new);
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADERS);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .max_concurrent_streams(STREAMS);
        let service = service_fn(|request: Request<Incoming>| {
            let (connection, peer) = (self.clone(), peer.clone());
            async move {
                let Self { server, auth, closing } = &connection;
                let user = server.inner.identify(auth, request.headers(), peer.as_deref());
                Ok::<_, Infallible>(rest::answer(server, user.as_ref(), request, closing).await)
            }
        });
        let mut connection =
            std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.as_mut().await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = %error, "a connection ended");
        }
    }
}

#[cfg(test)]
mod tests;
