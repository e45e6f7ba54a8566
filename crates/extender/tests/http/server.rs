//! An HTTP server that does what a test says, byte by byte.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    /// Answers 200 with this body, and keeps the connection.
    Says(String),
    /// Sends these bytes and closes.
    Sends(Vec<u8>),
    /// Sends these bytes, then these again and again.
    Floods(&'static str, &'static str),
    /// Sends these bytes, then a byte now and then.
    Drips(&'static str),
    /// Says nothing.
    Waits,
    /// Closes the connection at once.
    Leaves,
}

/// A request as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// A server; it ends when it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(tls: Option<TlsAcceptor>, does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let connections = Arc::<AtomicUsize>::default();
        let (log, count) = (Arc::clone(&asked), connections.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (log, does, tls) = (log.clone(), does.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &log, &does).await,
                        Some(tls) => serve(tls.accept(stream).await?, &log, &does).await,
                    }
                });
            }
        });
        Self { port, asked, connections, task }
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    log: &Mutex<Vec<Asked>>,
    does: &Does,
) -> io::Result<()> {
    while let Some(asked) = read_request(&mut stream).await? {
        log.lock().push(asked);
        match does {
            Does::Says(body) => {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(body.as_bytes()).await?;
                stream.flush().await?;
            }
            Does::Sends(bytes) => {
                stream.write_all(bytes).await?;
                stream.flush().await?;
                return stream.shutdown().await;
            }
            Does::Floods(first, again) => {
                stream.write_all(first.as_bytes()).await?;
                let flood = again.repeat(1 + 65536 / again.len());
                loop {
                    stream.write_all(flood.as_bytes()).await?;
                }
            }
            Does::Drips(first) => {
                stream.write_all(first.as_bytes()).await?;
                loop {
                    stream.write_all(b" ").await?;
                    stream.flush().await?;
                    // Real time: the client's timeout is what is tested.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            Does::Waits => std::future::pending::<()>().await,
            Does::Leaves => return Ok(()),
        }
    }
    Ok(())
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Asked>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    let body = String::from_utf8_lossy(&bytes[end..end + length]).into_owned();
    Ok(Some(Asked { head, body }))
}
