//! One connection: the handshake, then requests until it ends.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::respond::{self, Peer};
use super::room::Place;
use super::{Limits, Shared};
use crate::tls::Tls;

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;
/// What a client hears that speaks HTTP without TLS.
const NOT_TLS: &[u8] = b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\n\r\n\
                         Client sent an HTTP request to an HTTPS server.\n";
/// How much of what such a client says is listened to, and for how long, so
/// that it gets its answer.
const DRAIN: u64 = 64 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(1);
/// How often an HTTP/2 client is asked whether it is still there, and how long
/// it may take to say so.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIME: Duration = Duration::from_secs(15);
/// The smallest buffer that hyper takes.
const MIN_BUFFER: usize = 8192;

/// Serves one connection, which keeps its place until it ends.
pub(super) async fn serve(stream: TcpStream, place: Place, shared: Arc<Shared>) {
    // Answers are small; without delay or not at all.
    let _ = stream.set_nodelay(true);
    let Some(tls) = &shared.tls else {
        return drive_http1(stream, Peer::default(), &place, &shared).await;
    };
    let handshake = tokio::time::timeout(shared.limits.handshake, shake_hands(stream, tls));
    let stream = tokio::select! {
        stream = handshake => stream,
        () = place.leave.cancelled() => return,
        () = shared.stop.cancelled() => return,
    };
    let Ok(Some(stream)) = stream else { return };
    let (_, session) = stream.get_ref();
    let certificates = session.peer_certificates().unwrap_or_default();
    let certificates = certificates.iter().cloned().map(CertificateDer::into_owned).collect();
    let peer = Peer { certificates };
    if session.alpn_protocol() == Some(b"h2") {
        drive_http2(*stream, peer, &place, &shared).await;
    } else {
        drive_http1(*stream, peer, &place, &shared).await;
    }
}

async fn shake_hands(mut stream: TcpStream, tls: &Tls) -> Option<Box<TlsStream<TcpStream>>> {
    let mut first = [0];
    if stream.peek(&mut first).await.ok()? == 0 {
        return None;
    }
    if first[0] != HANDSHAKE {
        if first[0].is_ascii_uppercase() {
            say_not_tls(&mut stream).await;
        }
        return None;
    }
    let local = stream.local_addr().ok().map(|address| address.ip());
    match TlsAcceptor::from(tls.for_connection(local)).accept(stream).await {
        Ok(stream) => Some(Box::new(stream)),
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
    }
}

async fn say_not_tls(stream: &mut TcpStream) {
    if stream.write_all(NOT_TLS).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    let mut rest = Vec::new();
    let mut heard = stream.take(DRAIN);
    let _ = tokio::time::timeout(DRAIN_TIME, heard.read_to_end(&mut rest)).await;
}

async fn drive_http1<S>(stream: S, peer: Peer, place: &Place, shared: &Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(|request: Request<Incoming>| {
        let (peer, shared, activity) = (&peer, &**shared, &place.activity);
        async move {
            let mut under_way = activity.start();
            Ok::<_, Infallible>(respond::respond(request, peer, &mut under_way, shared).await)
        }
    });
    let bytes = usize::try_from(shared.limits.header_bytes).unwrap_or(usize::MAX);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.header_read)
        .max_buf_size(bytes.max(MIN_BUFFER))
        .serve_connection(TokioIo::new(stream), service);
    drive(connection, place, shared).await;
}

async fn drive_http2<S>(stream: S, peer: Peer, place: &Place, shared: &Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let peer = Arc::new(peer);
    let service = service_fn(|request: Request<Incoming>| {
        let (peer, shared, activity) = (peer.clone(), shared.clone(), place.activity.clone());
        async move {
            let mut under_way = activity.start();
            Ok::<_, Infallible>(respond::respond(request, &peer, &mut under_way, &shared).await)
        }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(shared.http2_max_streams)
        .max_header_list_size(shared.limits.header_bytes)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIME)
        .serve_connection(TokioIo::new(stream), service);
    drive(connection, place, shared).await;
}

/// A connection that can be asked to end.
trait Graceful: Future<Output = hyper::Result<()>> {
    fn end(self: Pin<&mut Self>);
}

impl<I, S> Graceful for http1::Connection<I, S>
where
    Self: Future<Output = hyper::Result<()>>,
    S: hyper::service::HttpService<Incoming>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    S::ResBody: hyper::body::Body + 'static,
    <S::ResBody as hyper::body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S, E> Graceful for http2::Connection<I, S, E>
where
    Self: Future<Output = hyper::Result<()>>,
    S: hyper::service::HttpService<Incoming>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    S::ResBody: hyper::body::Body + 'static,
    <S::ResBody as hyper::body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    E: hyper::rt::bounds::Http2ServerConnExec<S::Future, S::ResBody>,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Serves until the client goes, is silent for too long, has to make room for
/// another one, or the server stops.
async fn drive(connection: impl Graceful, place: &Place, shared: &Shared) {
    let Limits { first_request, idle, shutdown, .. } = shared.limits;
    let mut connection = pin!(connection);
    let patience = tokio::select! {
        ended = connection.as_mut() => return note(ended),
        () = place.activity.silent(first_request) => Duration::ZERO,
        // What can be said at once is said; others wait for the place.
        () = place.leave.cancelled() => Duration::ZERO,
        () = place.activity.idle(idle) => shutdown,
        () = shared.stop.cancelled() => shutdown,
    };
    connection.as_mut().end();
    tokio::select! {
        biased;
        ended = connection => note(ended),
        () = tokio::time::sleep(patience) => {}
        () = place.leave.cancelled() => {}
    }
}

fn note(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(error = crate::chain(&error), "a connection failed");
    }
}
