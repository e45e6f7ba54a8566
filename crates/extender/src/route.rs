//! The way to an extender: straight, or through the proxy that the environment
//! names.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Uri;
use http::header::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Route {
    tcp: HttpConnector,
    proxies: Option<Arc<Matcher>>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Route {
    pub(crate) fn new(proxies: Option<Arc<Matcher>>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        Self { tcp, proxies }
    }

    /// The proxy on the way to `target`. This machine is reached without one,
    /// as with Go.
    fn proxy(&self, target: &Uri) -> Option<Intercept> {
        let proxies = self.proxies.as_ref()?;
        (!is_here(target.host()?)).then(|| proxies.intercept(target))?
    }

    /// What to say to a proxy that is asked for plain HTTP.
    pub(crate) fn proxy_authorization(&self, target: &Uri) -> Option<HeaderValue> {
        let is_plain = target.scheme_str() == Some("http");
        is_plain.then(|| self.proxy(target))?.and_then(|proxy| proxy.basic_auth().cloned())
    }
}

fn is_here(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Service<Uri> for Route {
    type Response = Wire;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Wire, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let Some(proxy) = self.proxy(&target) else {
            let connecting = self.tcp.call(target);
            return Box::pin(async { Ok(Wire { io: connecting.await?, proxied: false }) });
        };
        let at = proxy.uri().clone();
        if at.scheme_str() != Some("http") {
            let why = "the proxy of the environment is no HTTP proxy: others are not supported";
            return Box::pin(async move { Err(why.into()) });
        }
        if target.scheme_str() == Some("https") {
            let mut tunnel = Tunnel::new(at, self.tcp.clone());
            if let Some(authorization) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(authorization.clone());
            }
            let connecting = tunnel.call(target);
            return Box::pin(async { Ok(Wire { io: connecting.await?, proxied: false }) });
        }
        let connecting = self.tcp.call(at);
        Box::pin(async { Ok(Wire { io: connecting.await?, proxied: true }) })
    }
}

/// A connection, which knows whether whole URLs have to be asked for on it.
pub(crate) struct Wire {
    io: TokioIo<TcpStream>,
    proxied: bool,
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.proxied)
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_for_others_than_this_machine() {
        let matcher = Matcher::builder().all("http://u:p@proxy:3128").no("direct.example").build();
        let route = Route::new(Some(Arc::new(matcher)));
        let by_proxy = |url: &str| route.proxy(&url.parse().unwrap()).is_some();
        assert!(by_proxy("http://extender.example/filter"));
        assert!(by_proxy("https://10.0.0.1:8443/filter"));
        for direct in ["http://localhost:1/", "http://127.0.0.1/", "http://[::1]:9/"] {
            assert!(!by_proxy(direct), "{direct}");
        }
        assert!(!by_proxy("http://direct.example/"));
        let said = |url: &str| route.proxy_authorization(&url.parse().unwrap()).is_some();
        assert!(said("http://extender.example/") && !said("https://extender.example/"));
        assert!(!by_proxy("http://127.0.0.1/") && !said("http://127.0.0.1/"));
    }
}
