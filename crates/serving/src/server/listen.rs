//! The listening socket.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use super::ServerOptions;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// Listens. For all addresses of IPv4, those of IPv6 too where there are any,
/// as Go's listeners do.
pub(super) fn listen(options: &ServerOptions) -> io::Result<TcpListener> {
    let bind = options.bind;
    if bind.is_ipv4() && bind.ip().is_unspecified() {
        let both = SocketAddr::from((Ipv6Addr::UNSPECIFIED, bind.port()));
        match listen_on(both, options) {
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
                tracing::debug!(%error, "no IPv6");
            }
            listening => return listening,
        }
    }
    listen_on(bind, options)
}

fn listen_on(address: SocketAddr, options: &ServerOptions) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Elsewhere than on Unix the option would let others take the port over.
    socket.set_reuseaddr(options.permit_address_sharing && cfg!(unix))?;
    if options.permit_port_sharing {
        #[cfg(unix)]
        socket.set_reuseport(true)?;
        #[cfg(not(unix))]
        return Err(io::Error::new(io::ErrorKind::Unsupported, "ports cannot be shared here"));
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
