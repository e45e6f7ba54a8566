//! Who may read what.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use steersman_serving::{
    AuthenticationError, AuthenticationOptions, Authenticator, RequestHeaderOptions,
};
use tracing_subscriber::fmt::MakeWriter;

use crate::bench::{Bench, PATIENCE};
use crate::client::request;
use crate::fake_api::FakeApi;
use crate::pki::{Authority, Directory};

const TOKEN: &str = "eyJhbGciOi.s3cret-token";

async fn api() -> FakeApi {
    let api = FakeApi::start().await;
    let mut state = api.state.lock();
    state.tokens.insert(TOKEN.to_owned(), "prometheus");
    state.tokens.insert("other".to_owned(), "eve");
    for path in ["/metrics", "/nowhere", "/"] {
        state.allowed.insert(("prometheus", "get", path));
    }
    state.allowed.insert(("ada", "get", "/metrics"));
    state.allowed.insert(("proxied", "get", "/metrics"));
    drop(state);
    api
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[tokio::test]
async fn a_token_opens_what_its_owner_may_read() {
    let api = api().await;
    let bench = Bench::delegated(&api, AuthenticationOptions::default()).await;
    let client = bench.client();
    let with = bearer(TOKEN);
    let metrics = client.get_with("/metrics", &[("authorization", &with)]).await;
    assert_eq!((metrics.status, metrics.text()), (200, "# TYPE a counter\na 1\n"));
    let spec = api.state.lock().access_reviews[0].clone();
    assert_eq!(spec["user"], "prometheus");
    assert_eq!(spec["uid"], "u1");
    assert_eq!(spec["groups"], serde_json::json!(["g1", "system:authenticated"]));
    assert_eq!(spec["nonResourceAttributes"]["verb"], "get");
}

#[tokio::test]
async fn refusals() {
    let api = api().await;
    let bench = Bench::delegated(&api, AuthenticationOptions::default()).await;
    let client = bench.client();
    let check = async |path: &str, authorization: &str, status: u16, message: &str| {
        let headers = [("authorization", authorization)];
        let answer = client.get_with(path, &headers).await;
        assert_eq!(answer.status, status, "{path} {authorization}");
        let text = if status == 404 { answer.text().to_owned() } else { answer.message() };
        assert_eq!(text, message);
    };
    check("/metrics", "", 401, "Unauthorized").await;
    check("/metrics", "Bearer wrong", 401, "Unauthorized").await;
    check("/metrics", "Basic YTpi", 401, "Unauthorized").await;
    let eve = r#"forbidden: User "eve" cannot get path "/metrics""#;
    check("/metrics", "Bearer other", 403, eve).await;
    let hidden = r#"forbidden: User "eve" cannot get path "/nowhere""#;
    check("/nowhere", "Bearer other", 403, hidden).await;
    check("/nowhere", &bearer(TOKEN), 404, "404 page not found\n").await;
    let single = r#"forbidden: User "eve" cannot get path "/readyz/late""#;
    check("/readyz/late", "Bearer other", 403, single).await;
    check("/nowhere", "", 401, "Unauthorized").await;
    let put = client.send(request("PUT", "/metrics", &[("authorization", &bearer(TOKEN))])).await;
    let message = r#"forbidden: User "prometheus" cannot put path "/metrics""#;
    assert_eq!((put.status, put.message().as_str()), (403, message));
}

#[tokio::test]
async fn probes_need_neither_credentials_nor_the_api_server() {
    let api = api().await;
    let bench = Bench::delegated(&api, AuthenticationOptions::default()).await;
    api.state.lock().forbidden = true;
    let client = bench.client();
    assert_eq!(client.get("/healthz").await.status, 200);
    let stale = client.get_with("/healthz", &[("authorization", "Bearer stale")]).await;
    assert_eq!(stale.status, 200);
    let ready = client.get("/readyz").await;
    assert_eq!(ready.status, 500);
    assert!(ready.text().contains("[-]late failed: reason withheld\n"));
    assert_eq!(api.state.lock().token_reviews, 0);
}

#[tokio::test]
async fn no_spelling_of_a_path_opens_it() {
    let api = api().await;
    let always = ["/healthz*", "/public/*"].map(str::to_owned).to_vec();
    let bench = Bench::delegated_but(&api, always).await;
    let client = bench.client();
    for (path, status) in [
        ("/healthz", 200),
        ("/metrics", 401),
        ("//metrics", 401),
        ("/metrics/", 401),
        ("/%6detrics", 401),
        ("/METRICS", 401),
        ("https://localhost/metrics", 401),
        // Nothing is there: what may be asked for is looked up as it stands.
        ("/healthz/../metrics", 404),
        ("/healthz/%2e%2e/metrics", 404),
        ("/healthz%2f..%2fmetrics", 404),
        ("/public/../metrics", 404),
        ("/public//metrics", 404),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = client.send(request(method, path, &[])).await;
            assert_eq!(answer.status, status, "{method} {path}");
        }
        if path.starts_with('/') {
            let answers = client.send_http2(&[path]).await;
            assert_eq!(answers[0].status, status, "HTTP/2 {path}");
        }
    }
    assert_eq!(client.send(request("OPTIONS", "*", &[])).await.status, 401);
    assert_eq!(client.send(request("POST", "/healthz", &[])).await.status, 405);
}

#[tokio::test]
async fn without_an_answer_nobody_is_let_in() {
    let api = api().await;
    let bench = Bench::delegated(&api, AuthenticationOptions::default()).await;
    let client = bench.client();
    let with = bearer(TOKEN);
    let headers = [("authorization", with.as_str())];
    api.state.lock().forbidden = true;
    assert_eq!(client.get_with("/metrics", &headers).await.status, 503);
    api.state.lock().forbidden = false;
    assert_eq!(client.get_with("/metrics", &headers).await.status, 200, "not remembered");
    // Whose token it is is known by now; what they may do elsewhere is not.
    api.state.lock().forbidden = true;
    let answer = client.get_with("/", &headers).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), "1");
}

#[tokio::test]
async fn a_passing_failure_is_not_seen() {
    let api = api().await;
    let bench = Bench::delegated(&api, AuthenticationOptions::default()).await;
    api.state.lock().failures = vec![500];
    let with = bearer(TOKEN);
    let answer = bench.client().get_with("/metrics", &[("authorization", &with)]).await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn many_requests_with_one_token_are_one_question() {
    let api = api().await;
    let bench = Bench::delegated(&api, AuthenticationOptions::default()).await;
    let client = bench.client();
    let with = bearer(TOKEN);
    let headers = [("authorization", with.as_str())];
    let all = (0..20).map(|_| client.get_with("/metrics", &headers));
    let answers = futures::future::join_all(all).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    let state = api.state.lock();
    assert_eq!((state.token_reviews, state.access_reviews.len()), (1, 1));
}

#[tokio::test]
async fn client_certificates() {
    let api = api().await;
    let (ours, theirs) = (Authority::new("client-ca"), Authority::new("client-ca"));
    let directory = Directory::new();
    let options = AuthenticationOptions {
        client_ca_file: Some(directory.write("ca.crt", &ours.pem)),
        ..AuthenticationOptions::default()
    };
    let bench = Bench::delegated(&api, options).await;
    let ada = ours.client("ada", &["dev"]);
    for versions in [&[&rustls::version::TLS12], &[&rustls::version::TLS13]] {
        let (address, trusted) = (bench.address, &bench.authority.pem);
        let client = crate::client::Client::with_versions(address, trusted, Some(&ada), versions);
        assert_eq!(client.get("/metrics").await.status, 200);
    }
    let spec = api.state.lock().access_reviews[0].clone();
    assert_eq!(spec["groups"], serde_json::json!(["dev", "system:authenticated"]));
    let id = spec["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap();
    assert_eq!((&id[..11], id.len()), ("X509SHA256=", 11 + 64));

    let master = bench.client_of(&ours.client("root", &["system:masters"]));
    assert_eq!(master.get("/nowhere").await.status, 404, "masters may do everything");
    let stranger = bench.client_of(&theirs.client("ada", &["system:masters"]));
    assert_eq!(stranger.get("/metrics").await.status, 401);
    assert_eq!(stranger.get("/healthz").await.status, 200, "the handshake does not fail");
    let with = bearer(TOKEN);
    let token = stranger.get_with("/metrics", &[("authorization", &with)]).await;
    assert_eq!(token.status, 200, "a token still counts");
    let noisy = bench.client().with_noise(&ada);
    assert_eq!(noisy.get("/metrics").await.status, 401);
    let token = noisy.get_with("/metrics", &[("authorization", &with)]).await;
    assert_eq!(token.status, 200, "a token still counts");
    let nameless = bench.client_of(&ours.client("", &["system:masters"]));
    assert_eq!(nameless.get("/metrics").await.status, 401);
}

#[tokio::test]
async fn headers_count_from_the_front_proxy_only() {
    let api = api().await;
    let (proxy_ca, client_ca) = (Authority::new("proxy-ca"), Authority::new("client-ca"));
    let published = [
        ("client-ca-file", client_ca.pem.clone()),
        ("requestheader-client-ca-file", proxy_ca.pem.clone()),
        ("requestheader-allowed-names", r#"["front-proxy"]"#.to_owned()),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#.to_owned()),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#.to_owned()),
        ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#.to_owned()),
    ];
    let published: BTreeMap<_, _> = published.map(|(k, v)| (k.to_owned(), v)).into();
    api.state.lock().published = Some(published);
    let bench = Bench::delegated(&api, AuthenticationOptions::default()).await;
    let headers =
        [("x-remote-user", "proxied"), ("x-remote-group", "g"), ("x-remote-extra-k", "v")];

    let proxy = bench.client_of(&proxy_ca.client("front-proxy", &[]));
    assert_eq!(proxy.get_with("/metrics", &headers).await.status, 200);
    let spec = api.state.lock().access_reviews[0].clone();
    assert_eq!(spec["user"], "proxied");
    assert_eq!(spec["groups"], serde_json::json!(["g", "system:authenticated"]));
    assert_eq!(spec["extra"]["k"][0], "v");
    assert_eq!(proxy.get("/metrics").await.status, 401, "the proxy itself is nobody");

    let other_name = bench.client_of(&proxy_ca.client("other", &[]));
    assert_eq!(other_name.get_with("/metrics", &headers).await.status, 401);
    let nobody = bench.client();
    let master = [("x-remote-user", "proxied"), ("x-remote-group", "system:masters")];
    assert_eq!(nobody.get_with("/metrics", &master).await.status, 401);
    // A user with a certificate of their own cannot become somebody else.
    let ada = bench.client_of(&client_ca.client("front-proxy", &[]));
    let answer = ada.get_with("/metrics", &master).await;
    let message = r#"forbidden: User "front-proxy" cannot get path "/metrics""#;
    assert_eq!((answer.status, answer.message().as_str()), (403, message));
}

#[tokio::test]
async fn authorities_follow_their_file() {
    let api = api().await;
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let directory = Directory::new();
    let options = AuthenticationOptions {
        client_ca_file: Some(directory.write("ca.crt", &old.pem)),
        refresh_every: Duration::from_millis(20),
        ..AuthenticationOptions::default()
    };
    let bench = Bench::delegated(&api, options).await;
    let (before, after) = (old.client("ada", &[]), new.client("ada", &[]));
    assert_eq!(bench.client_of(&before).get("/metrics").await.status, 200);
    assert_eq!(bench.client_of(&after).get("/metrics").await.status, 401);
    directory.write("ca.crt", "broken");
    directory.write("ca.crt", &new.pem);
    let followed = async {
        while bench.client_of(&after).get("/metrics").await.status != 200 {
            // Real time: the server looks at real files.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, followed).await.unwrap();
    assert_eq!(bench.client_of(&before).get("/metrics").await.status, 401);
}

#[tokio::test]
async fn a_failed_lookup_is_borne_or_not() {
    let api = api().await;
    let start = async |options| Authenticator::start(options, Some(api.client.clone())).await;
    assert!(start(AuthenticationOptions::default()).await.is_ok());
    let strict = AuthenticationOptions {
        tolerate_lookup_failure: false,
        ..AuthenticationOptions::default()
    };
    let error = start(strict.clone()).await.err().unwrap();
    assert!(matches!(error, AuthenticationError::Lookup(_)), "{error}");
    let skipped = AuthenticationOptions { skip_lookup: true, ..strict.clone() };
    assert!(start(skipped).await.is_ok());
    let directory = Directory::new();
    let ca = Some(directory.write("ca.crt", &Authority::new("ca").pem));
    let all_given = AuthenticationOptions {
        client_ca_file: ca.clone(),
        request_header: RequestHeaderOptions { client_ca_file: ca, ..Default::default() },
        ..strict.clone()
    };
    assert!(start(all_given).await.is_ok(), "nothing is left to look up");
    let missing = AuthenticationOptions {
        client_ca_file: Some(directory.path("missing.crt")),
        ..AuthenticationOptions::default()
    };
    let error = start(missing).await.err().unwrap();
    assert!(matches!(error, AuthenticationError::File(_)), "{error}");
}

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_log_holds_a_token() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    // For this thread, on which all of this test's tasks run.
    let guard = tracing::subscriber::set_default(subscriber);
    let api = api().await;
    let bench = Bench::delegated(&api, AuthenticationOptions::default()).await;
    let client = bench.client();
    for token in [TOKEN, "an-unknown-s3cret"] {
        let with = bearer(token);
        client.get_with("/metrics", &[("authorization", &with)]).await;
    }
    api.state.lock().forbidden = true;
    let with = bearer("another-s3cret");
    assert_eq!(client.get_with("/metrics", &[("authorization", &with)]).await.status, 503);
    drop(guard);
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    assert!(text.contains("cannot find out who asks"), "the log works");
    let leak = text.lines().find(|line| line.contains("s3cret"));
    assert_eq!(leak, None);
}
