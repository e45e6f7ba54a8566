//! Pages, methods, formats.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use jiff::Timestamp;
use parking_lot::Mutex;
use steersman_serving::{PageError, Reply, Setting, Site, Statusz, page, statusz};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};

use crate::bench::{Bench, PATIENCE, site};
use crate::client::request;

#[tokio::test]
async fn methods_and_the_index() {
    let bench = Bench::open(site(), |_| {}).await;
    let client = bench.client();
    let index = client.get("/").await;
    let paths = r#"{"paths":["/healthz","/healthz/ping","/metrics","/readyz","/readyz/late","/readyz/ping"]}"#;
    assert_eq!((index.status, index.text()), (200, paths));
    let head = client.send(request("HEAD", "/metrics", &[])).await;
    assert_eq!((head.status, head.header("content-length"), head.text()), (200, "21", ""));
    let post = client.send(request("POST", "/metrics", &[])).await;
    assert_eq!((post.status, post.header("allow")), (405, "GET, HEAD"));
    assert_eq!(client.get("/metrics/").await.status, 404);
    assert_eq!(client.get("/%6detrics").await.status, 404);
    let metrics = client.get("/metrics?x=1").await;
    assert_eq!(metrics.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(metrics.header("cache-control"), "no-cache, private");
    assert_eq!(metrics.header("x-content-type-options"), "nosniff");
    let single = client.get("/readyz/late").await;
    assert_eq!((single.status, single.text()), (500, "internal server error: why\n"));
    let verbose = client.get("/healthz?verbose").await;
    assert_eq!(verbose.text(), "[+]ping ok\nhealthz check passed\n");
}

#[tokio::test]
async fn large_pages_are_packed_when_asked_for() {
    // One that is packed at once, and one that is packed on another thread.
    for lines in [200, 20_000] {
        let text = "metric_name{label=\"value\"} 1\n".repeat(lines);
        let body = text.clone();
        let site = Site::new().page("/metrics", page(move |_| Ok(Reply::text(body.clone()))));
        let bench = Bench::open(site.unwrap(), |_| {}).await;
        let client = bench.client();
        let plain = client.get("/metrics").await;
        assert_eq!((plain.header("content-encoding"), plain.text()), ("", text.as_str()));
        let packed = client.get_with("/metrics", &[("accept-encoding", "gzip")]).await;
        assert_eq!(packed.header("content-encoding"), "gzip");
        assert!(packed.body.len() * 5 < text.len());
        let mut unpacked = String::new();
        flate2::read::GzDecoder::new(&*packed.body).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, text);
    }
}

#[tokio::test]
async fn http2_answers_many_requests_at_once() {
    let bench = Bench::open(site(), |_| {}).await;
    let answers = bench.client().send_http2(&["/metrics"; 50]).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body.len() == 21));
}

#[tokio::test]
async fn pages_that_fail_do_not_harm_others() {
    let failing = |error: fn() -> PageError| page(move |_| Err(error()));
    let site = Site::new()
        .page("/bad", failing(|| PageError::BadRequest("n must be a number".into())))
        .and_then(|site| site.page("/later", failing(|| PageError::Unavailable("soon".into()))))
        .and_then(|site| site.page("/broken", failing(|| PageError::Failed("disk 7".into()))))
        .and_then(|site| site.page("/panics", page(|_| panic!("a test's panic"))))
        .and_then(|site| site.page("/never", Arc::new(Never)));
    let bench = Bench::open(site.unwrap(), |options| {
        options.limits.request = Duration::from_millis(100);
    });
    let bench = bench.await;
    for (path, status, text) in [
        ("/bad", 400, "n must be a number\n"),
        ("/later", 503, "soon\n"),
        ("/broken", 500, "the page cannot be shown\n"),
        ("/panics", 500, "the page cannot be shown: it panicked\n"),
        ("/never", 504, "the page was not ready in time\n"),
    ] {
        let answer = bench.client().get(path).await;
        assert_eq!((answer.status, answer.text()), (status, text), "{path}");
    }
}

struct Never;

impl steersman_serving::Page for Never {
    fn render<'a>(
        &'a self,
        _: &'a steersman_serving::PageRequest,
    ) -> futures::future::BoxFuture<'a, Result<Reply, PageError>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_z_page_negotiates() {
    let status = Statusz {
        component: "kube-scheduler".to_owned(),
        started: Timestamp::now(),
        binary_version: "0.1.0".to_owned(),
        emulation_version: None,
        rust_version: None,
    };
    let bench = Bench::open(site().page("/statusz", statusz(status)).unwrap(), |_| {}).await;
    let client = bench.client();
    let text = client.get("/statusz").await;
    assert!(text.text().ends_with("Paths: /healthz /metrics /readyz\n"), "{}", text.text());
    let old = "application/json;g=config.k8s.io;v=v1alpha1;as=Statusz";
    let json = client.get_with("/statusz", &[("accept", old)]).await;
    let warning = r#"299 - "This version of the statusz endpoint is deprecated. Please use a newer version.""#;
    assert_eq!((json.status, json.header("warning")), (200, warning));
    let xml = client.get_with("/statusz", &[("accept", "application/xml")]).await;
    assert_eq!(xml.status, 406);
    assert!(xml.message().starts_with("only the following media types are accepted: text/plain"));
}

/// A number below 10.
#[derive(Default)]
struct Digit(Mutex<u8>);

impl Setting for Digit {
    fn show(&self) -> String {
        self.0.lock().to_string()
    }

    fn set(&self, value: &str) -> Result<String, String> {
        let digit = value.parse().ok().filter(|digit| *digit < 10);
        *self.0.lock() = digit.ok_or_else(|| format!("{value:?} is no digit"))?;
        Ok("done".to_owned())
    }
}

#[tokio::test]
async fn a_setting_can_be_set() {
    let site = Site::new().setting("/debug/flags/v", Arc::new(Digit::default())).unwrap();
    let bench = Bench::open(site, |_| {}).await;
    let client = bench.client();
    let put = async |value: &str| {
        let (parts, _) = request("PUT", "/debug/flags/v", &[]).into_parts();
        let body = Full::new(Bytes::from(value.to_owned()));
        let answer = client.send(http::Request::from_parts(parts, body)).await;
        (answer.status, answer.text().to_owned())
    };
    assert_eq!(put("5\n").await, (200, "done\n".to_owned()));
    assert_eq!(put("50").await, (400, "\"50\" is no digit\n".to_owned()));
    assert_eq!(client.get("/debug/flags/v").await.text(), "5\n");
    let too_large = (413, "the value is too large, allowed: 4096 bytes\n".to_owned());
    assert_eq!(put(&"9".repeat(5000)).await, too_large);
    let delete = client.send(request("DELETE", "/debug/flags/v", &[])).await;
    assert_eq!((delete.status, delete.header("allow")), (405, "GET, HEAD, PUT"));
}

/// One that is sent although nobody takes it, and one that waits for leave.
#[tokio::test]
async fn a_value_of_many_megabytes_is_answered_413_and_not_cut() {
    let site = Site::new().setting("/debug/flags/v", Arc::new(Digit::default())).unwrap();
    let bench = Bench::open(site, |_| {}).await;
    let body = vec![b'9'; 50 * 1024 * 1024];
    let head = format!("PUT /debug/flags/v HTTP/1.1\r\nHost: x\r\nContent-Length: {}", body.len());

    let mut stream = bench.client().connect().await.unwrap();
    stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
    // All of it before the answer is looked at, as simple clients do.
    stream.write_all(&body).await.unwrap();
    assert_eq!(first_line(stream).await, "HTTP/1.1 413 Payload Too Large");

    let mut stream = bench.client().connect().await.unwrap();
    stream.write_all(format!("{head}\r\nExpect: 100-continue\r\n\r\n").as_bytes()).await.unwrap();
    assert_eq!(first_line(stream).await, "HTTP/1.1 413 Payload Too Large");
}

async fn first_line(stream: impl AsyncRead + Unpin) -> String {
    let mut line = String::new();
    let mut reader = BufReader::new(stream);
    tokio::time::timeout(PATIENCE, reader.read_line(&mut line)).await.unwrap().unwrap();
    line.trim_end().to_owned()
}
