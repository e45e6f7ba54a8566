//! Clients that mean harm, or know no better.

use std::sync::Arc;
use std::time::Duration;

use steersman_serving::Site;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bench::{Bench, Gate, Gated, PATIENCE, site};

/// All that comes until the server hangs up.
async fn rest(mut stream: impl AsyncRead + Unpin) -> String {
    let mut bytes = Vec::new();
    // A reset is an end too.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether the server answers one more request before it hangs up.
async fn is_answered(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> bool {
    // That it hung up shows in what is read.
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let mut answer = Vec::new();
    while !answer.ends_with(b"ok") {
        match tokio::time::timeout(PATIENCE, stream.read_u8()).await.unwrap() {
            Ok(byte) => answer.push(byte),
            Err(_) => return false,
        }
    }
    true
}

#[tokio::test]
async fn http_without_tls_is_told_so() {
    let bench = Bench::open(site(), |_| {}).await;
    let mut stream = TcpStream::connect(bench.address).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let text = rest(stream).await;
    assert!(text.starts_with("HTTP/1.0 400 Bad Request\r\n"), "{text}");
    assert!(text.ends_with("Client sent an HTTP request to an HTTPS server.\n"), "{text}");
}

#[tokio::test]
async fn noise_is_hung_up_on() {
    let bench = Bench::open(site(), |_| {}).await;
    for noise in [&b"\x00\xff\x17\x03"[..], b"\x16\x03\x01\x00\x05hello", b"lower case"] {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        stream.write_all(noise).await.unwrap();
        assert!(!rest(stream).await.contains("HTTP"));
    }
    assert_eq!(bench.client().get("/healthz").await.status, 200);
}

#[tokio::test]
async fn a_handshake_must_not_take_long() {
    let bench =
        Bench::open(site(), |options| options.limits.handshake = Duration::from_millis(100)).await;
    let silent = TcpStream::connect(bench.address).await.unwrap();
    assert_eq!(rest(silent).await, "");
    let mut slow = TcpStream::connect(bench.address).await.unwrap();
    slow.write_all(b"\x16\x03\x01").await.unwrap();
    assert_eq!(rest(slow).await, "");
}

#[tokio::test]
async fn headers_must_not_take_long() {
    let bench =
        Bench::open(site(), |options| options.limits.header_read = Duration::from_millis(100))
            .await;
    let mut stream = bench.client().connect().await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost:").await.unwrap();
    assert!(!rest(stream).await.contains("200"));
}

#[tokio::test]
async fn a_first_request_must_not_take_long() {
    let limit = Duration::from_millis(100);
    let bench = Bench::open(site(), |options| options.limits.first_request = limit).await;
    let mut slow = bench.client().connect().await.unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHost:").await.unwrap();
    assert!(!rest(slow).await.contains("200"));
    let silent = bench.client().connect().await.unwrap();
    assert_eq!(rest(silent).await, "");
    // Later ones are not bound by it. On a busy machine the first one may miss
    // it; then another connection is tried.
    let first_in_time = async {
        loop {
            let mut stream = bench.client().connect().await.unwrap();
            if is_answered(&mut stream).await {
                return stream;
            }
        }
    };
    let mut stream = tokio::time::timeout(PATIENCE, first_in_time).await.unwrap();
    // Real time: longer than the limit.
    tokio::time::sleep(limit * 2).await;
    assert!(is_answered(&mut stream).await);
}

#[tokio::test]
async fn headers_must_not_be_large() {
    let bench = Bench::open(site(), |options| options.limits.header_bytes = 16 * 1024).await;
    let mut stream = bench.client().connect().await.unwrap();
    let large = format!("GET /metrics HTTP/1.1\r\nHost: x\r\nX: {}\r\n", "x".repeat(64 * 1024));
    // The server may hang up before all of it is sent.
    let _ = stream.write_all(large.as_bytes()).await;
    let text = rest(stream).await;
    assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    assert_eq!(bench.client().get("/healthz").await.status, 200);
}

#[tokio::test]
async fn idle_connections_end() {
    let bench =
        Bench::open(site(), |options| options.limits.idle = Duration::from_millis(100)).await;
    // On a busy machine the request may come when the connection has been idle
    // for too long already; then another one is tried.
    let answered = async {
        loop {
            let mut stream = bench.client().connect().await.unwrap();
            let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
            let text = rest(stream).await;
            if !text.is_empty() {
                return text;
            }
        }
    };
    let text = tokio::time::timeout(PATIENCE, answered).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
}

#[tokio::test]
async fn a_client_that_does_not_read_is_left() {
    let body = "x".repeat(32 * 1024 * 1024);
    let large = steersman_serving::page(move |_| Ok(steersman_serving::Reply::text(body.clone())));
    let site = Site::new().page("/large", large).unwrap();
    let bench = Bench::open(site, |options| {
        options.limits.idle = Duration::from_millis(100);
        options.limits.shutdown = Duration::from_millis(100);
        options.limits.connections = 1;
    });
    let bench = bench.await;
    let mut stream = bench.client().connect().await.unwrap();
    stream.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    // There is room for one connection only: the next is served once the first
    // has been left.
    let next = tokio::time::timeout(PATIENCE, bench.client().connect()).await.unwrap();
    assert!(next.is_ok());
    drop(stream);
}

#[tokio::test]
async fn idle_connections_make_room_for_others() {
    let bench = Bench::open(site(), |options| options.limits.connections = 3).await;
    let _silent = TcpStream::connect(bench.address).await.unwrap();
    let _idle = bench.client().connect().await.unwrap();
    let mut slow = bench.client().connect().await.unwrap();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHost:").await.unwrap();
    let client = bench.client();
    let next = async { client.get("/healthz").await.status };
    assert_eq!(tokio::time::timeout(PATIENCE, next).await.unwrap(), 200);
}

#[tokio::test]
async fn slow_clients_do_not_keep_probes_out() {
    const SLOW: usize = 40;
    let bench = Bench::open(site(), |options| {
        options.limits.connections = SLOW;
        // Nothing but the need for room ends them within the test.
        options.limits.handshake = PATIENCE * 10;
        options.limits.first_request = PATIENCE * 10;
        options.limits.header_read = PATIENCE * 10;
        options.limits.shutdown = PATIENCE * 10;
    });
    let bench = bench.await;
    let (mut silent, mut slow) = (Vec::new(), Vec::new());
    for _ in 0..SLOW / 2 {
        let mut stream = TcpStream::connect(bench.address).await.unwrap();
        stream.write_all(b"\x16\x03\x01").await.unwrap();
        silent.push(stream);
        let mut stream = bench.client().connect().await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nX: ").await.unwrap();
        slow.push(stream);
    }
    // Probes that keep their connections take the places of all of them.
    let mut probes = Vec::new();
    for _ in 0..SLOW {
        let probe = async {
            let mut stream = bench.client().connect().await.unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
            let mut head = [0; 15];
            stream.read_exact(&mut head).await.unwrap();
            (stream, String::from_utf8_lossy(&head).into_owned())
        };
        let (stream, head) = tokio::time::timeout(PATIENCE, probe).await.unwrap();
        assert_eq!(head, "HTTP/1.1 200 OK");
        probes.push(stream);
    }
    for stream in silent {
        assert_eq!(rest(stream).await, "");
    }
}

#[tokio::test]
async fn connections_at_work_keep_their_place() {
    let gate = Arc::new(Gate::default());
    let gated = Site::new().page("/slow", Arc::new(Gated(gate.clone()))).unwrap();
    let bench = Bench::open(gated, |options| options.limits.connections = 1).await;
    let client = bench.client();
    let first = tokio::spawn(async move { client.get("/slow").await.status });
    let _ = gate.reached.acquire().await;
    let client = bench.client();
    let second = tokio::spawn(async move { client.get("/slow").await.status });
    // Real time: longer than idle connections are left alone when others wait.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(!first.is_finished() && !second.is_finished());
    gate.open.add_permits(2);
    for asking in [first, second] {
        assert_eq!(tokio::time::timeout(PATIENCE, asking).await.unwrap().unwrap(), 200);
    }
}
