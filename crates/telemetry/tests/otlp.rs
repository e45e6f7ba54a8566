//! Spans arrive at a collector, in OTLP over HTTP.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as SpanStatus;
use prost::Message;
use steersman_telemetry::traces::{self, Options, SamplingRate, current_traceparent, is_sampled};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tracing::field::Empty;
use tracing::info_span;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::Registry;

/// Receives spans, as an OpenTelemetry collector would.
struct Collector {
    runtime: Runtime,
    address: SocketAddr,
    requests: mpsc::UnboundedReceiver<ExportTraceServiceRequest>,
}

impl Collector {
    fn start(status: StatusCode) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let (sender, requests) = mpsc::unbounded_channel();
        let take = move |headers: HeaderMap, body: Bytes| async move {
            assert_eq!(headers["content-type"], "application/x-protobuf");
            let request = ExportTraceServiceRequest::decode(body).expect("protobuf");
            sender.send(request).expect("the test receives");
            status
        };
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("bound");
        let router = Router::new().route("/v1/traces", post(take));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { runtime, address, requests }
    }

    /// The next request.
    fn request(&mut self) -> ExportTraceServiceRequest {
        let next = async { timeout(Duration::from_secs(20), self.requests.recv()).await };
        self.runtime.block_on(next).expect("no spans in time").expect("it serves")
    }
}

fn options(address: SocketAddr) -> Options {
    let endpoint = format!("http://{address}").parse().expect("an endpoint");
    Options {
        sampling: SamplingRate::ALL,
        instance_id: "replica-1".to_owned(),
        own: vec!["otlp".to_owned()],
        ..Options::new(endpoint, "kube-scheduler")
    }
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match &found.value {
        Some(AnyValue { value: Some(Value::StringValue(text)) }) => Some(text.clone()),
        Some(AnyValue { value: Some(Value::IntValue(number)) }) => Some(number.to_string()),
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn spans_arrive_with_parents_and_names() {
    let mut collector = Collector::start(StatusCode::OK);
    let (layer, export) = traces::layer(options(collector.address)).unwrap();
    let mut header = None;
    tracing::subscriber::with_default(Registry::default().with(vec![layer]), || {
        assert_eq!(current_traceparent(), None);
        let outer = info_span!(
            "scheduling_cycle",
            k8s.pod.name = "web-0",
            attempt = 2,
            result = Empty,
            otel.status_code = Empty,
            otel.status_description = Empty,
        );
        assert!(is_sampled(&outer));
        outer.in_scope(|| {
            let inner = info_span!("plugin", otel.name = "PreFilter/A", otel.status_code = "ERROR");
            inner.in_scope(|| header = current_traceparent());
            info_span!(target: "other", "not_ours").in_scope(|| {});
            tracing::info!("lines are no part of traces");
        });
        let later = info_span!(parent: &outer, "binding_cycle");
        outer.record("result", "error");
        outer.record("otel.status_code", "ERROR");
        outer.record("otel.status_description", "bad luck");
        drop(outer);
        drop(later);
    });
    drop(export); // Sends what is there.

    let request = collector.request();
    let [resource] = &*request.resource_spans else { panic!("one resource: {request:?}") };
    let attributes = &resource.resource.as_ref().unwrap().attributes;
    assert_eq!(text(attributes, "service.name").as_deref(), Some("kube-scheduler"));
    assert_eq!(text(attributes, "service.instance.id").as_deref(), Some("replica-1"));
    assert_eq!(text(attributes, "service.version"), None);
    let spans: Vec<&Span> = resource.scope_spans.iter().flat_map(|scope| &scope.spans).collect();
    let [inner, later, outer] = &*spans else { panic!("three spans: {spans:?}") };
    assert_eq!((&*outer.name, &*inner.name), ("scheduling_cycle", "PreFilter/A"));
    assert_eq!(inner.parent_span_id, outer.span_id);
    assert_eq!(inner.trace_id, outer.trace_id);
    assert_eq!(outer.parent_span_id, Vec::<u8>::new());
    assert_eq!(text(&outer.attributes, "k8s.pod.name").as_deref(), Some("web-0"));
    assert_eq!(text(&outer.attributes, "attempt").as_deref(), Some("2"));
    assert_eq!(inner.status.as_ref().unwrap().code(), SpanStatus::Error);
    assert!(outer.events.is_empty());
    assert_eq!(text(&outer.attributes, "result").as_deref(), Some("error"));
    let status = outer.status.as_ref().unwrap();
    assert_eq!((status.code(), &*status.message), (SpanStatus::Error, "bad luck"));
    assert_eq!(later.parent_span_id, outer.span_id);
    // It ended when it was left, though a child came later.
    assert!(outer.end_time_unix_nano <= later.start_time_unix_nano, "{outer:?} {later:?}");
    let expected = format!("00-{}-{}-01", hex(&inner.trace_id), hex(&inner.span_id));
    assert_eq!(header, Some(expected));
}

#[test]
fn the_sampling_rate_counts_for_whole_traces() {
    let mut collector = Collector::start(StatusCode::OK);
    let sampling = SamplingRate::per_million(500_000).unwrap();
    let (layer, export) =
        traces::layer(Options { sampling, ..options(collector.address) }).unwrap();
    let mut n_sampled = 0;
    tracing::subscriber::with_default(Registry::default().with(vec![layer]), || {
        for _ in 0..400 {
            let outer = info_span!("outer");
            n_sampled += usize::from(is_sampled(&outer));
            outer.in_scope(|| assert_eq!(is_sampled(&info_span!("inner")), is_sampled(&outer)));
        }
    });
    drop(export);
    // Outside of this less than once in 10^20 runs.
    assert!((100..300).contains(&n_sampled), "{n_sampled} of 400");
    let spans = collector.request().resource_spans;
    let n: usize = spans.iter().flat_map(|r| &r.scope_spans).map(|scope| scope.spans.len()).sum();
    assert_eq!(n, 2 * n_sampled);
}

#[test]
fn without_a_rate_nothing_is_sampled() {
    let mut collector = Collector::start(StatusCode::OK);
    let none = SamplingRate::default();
    let (layer, export) =
        traces::layer(Options { sampling: none, ..options(collector.address) }).unwrap();
    tracing::subscriber::with_default(Registry::default().with(vec![layer]), || {
        let span = info_span!("unseen");
        assert!(!is_sampled(&span));
        // What others do with the trace is told: they need not sample it either.
        let header = span.in_scope(current_traceparent).unwrap();
        assert!(header.ends_with("-00"), "{header}");
    });
    drop(export);
    assert!(collector.requests.try_recv().is_err());
}

#[test]
fn without_an_export_there_is_no_trace() {
    tracing::subscriber::with_default(Registry::default(), || {
        let span = info_span!("plain");
        assert!(!is_sampled(&span));
        assert_eq!(span.in_scope(current_traceparent), None);
    });
    assert_eq!(current_traceparent(), None);
}

/// Makes more spans than can wait, and ends; how long it took.
fn flood(address: SocketAddr) -> Duration {
    let start = Instant::now();
    let (layer, export) = traces::layer(options(address)).expect("a layer");
    tracing::subscriber::with_default(Registry::default().with(vec![layer]), || {
        for n in 0..20_000 {
            info_span!("span", n).in_scope(|| {});
        }
    });
    drop(export);
    start.elapsed()
}

// Real time: what is tested is that nobody waits for a collector. Waiting once
// for every batch would take minutes, the end alone takes three seconds.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_dead_collector_stalls_nobody() {
    // The port was free a moment ago: the connection is refused.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let took = flood(closed);
    assert!(took < PATIENCE, "{took:?}");

    // Accepts connections, since the kernel does, and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let took = flood(silent.local_addr().unwrap());
    assert!(took < PATIENCE, "{took:?}");
}

#[test]
fn a_collector_that_refuses_stalls_nobody() {
    let mut collector = Collector::start(StatusCode::INTERNAL_SERVER_ERROR);
    let took = flood(collector.address);
    assert!(took < PATIENCE, "{took:?}");
    let n = collector.request().resource_spans.len();
    assert_eq!(n, 1);
}

#[tokio::test]
async fn an_export_may_end_in_another_runtime() {
    let unused = SocketAddr::from(([127, 0, 0, 1], 9));
    let (_, export) = traces::layer::<Registry>(options(unused)).unwrap();
    drop(export);
}
