//! Traces over OTLP (HTTP, protobuf).
//!
//! Spans of [`Options::own`] crates at level `info!` and above are exported
//! when [`crate::Options::traces`] is set; other crates' spans and all log lines
//! stay out. A span's field `otel.name` is its name where it is not known at
//! compile time; `otel.status_code = "ERROR"` and `otel.status_description` say
//! how it ended.
//!
//! Spans are gathered and sent by a thread of their own. When the collector is
//! slow or away, they are dropped, and a line in the log says so now and then.
//!
//! Sampling is as component-base's `TracingConfiguration` has it: so many traces
//! of a million, decided where a trace begins; everything below follows.

mod client;
mod parse;

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanContext, TraceContextExt, TracerProvider};
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider,
};
use tokio::runtime::Runtime;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::logs::is_in;
use client::Client;
pub use parse::{Endpoint, SamplingRate};

/// How long a collector has to take one batch.
const SEND: Duration = Duration::from_secs(10);
/// How long the end of the program waits for the last spans.
const SHUTDOWN: Duration = Duration::from_secs(3);

/// So many spans wait for the collector; more are dropped.
const MAX_WAITING: usize = 1 << 14;
/// So many spans are sent at once.
const MAX_BATCH: usize = 1 << 10;

/// Where spans go, and how many.
#[derive(Clone, Debug)]
pub struct Options {
    /// The collector.
    pub endpoint: Endpoint,
    /// How many traces of a million are kept. None by default, as in the
    /// reference.
    pub sampling: SamplingRate,
    /// The resource's `service.name`.
    pub service_name: String,
    /// The resource's `service.instance.id`: who of several replicas. Left out
    /// when empty.
    pub instance_id: String,
    /// The resource's `service.version`. Left out when empty.
    pub version: String,
    /// Crates whose spans are exported, as beginnings of module paths.
    /// `steersman` by default.
    pub own: Vec<String>,
}

impl Options {
    /// Options with defaults for all that is not given.
    pub fn new(endpoint: Endpoint, service_name: impl Into<String>) -> Self {
        Self {
            endpoint,
            sampling: SamplingRate::default(),
            service_name: service_name.into(),
            instance_id: String::new(),
            version: String::new(),
            own: vec!["steersman".to_owned()],
        }
    }
}

/// Why spans cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The threads that send spans cannot be started.
    #[error("cannot start the thread that sends spans")]
    Thread(#[source] std::io::Error),
    /// The system's certificates cannot be read.
    #[error("cannot read the system's root certificates, which an https endpoint needs")]
    Certificates(#[source] std::io::Error),
    /// The exporter refuses the settings.
    #[error("the exporter refuses its settings")]
    Exporter(#[source] ExporterBuildError),
}

/// The export of spans; sends what is left when it is dropped, for three
/// seconds at the most.
#[derive(Debug)]
pub struct Export {
    provider: SdkTracerProvider,
    // Ends after the provider has sent what is left.
    _requests: Background,
}

/// A runtime that may be dropped anywhere, in other runtimes as well.
#[derive(Debug)]
struct Background(Option<Runtime>);

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Export {
    /// Sends the spans that have ended. Waits for the collector.
    ///
    /// # Errors
    ///
    /// The exporter's message, when they cannot be sent.
    pub fn flush(&self) -> Result<(), String> {
        self.provider.force_flush().map_err(|error| error.to_string())
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        // The client has told already what went wrong.
        let _ = self.provider.shutdown_with_timeout(SHUTDOWN);
    }
}

/// A layer that exports spans, for a subscriber of one's own; [`crate::init`]
/// does it for the whole program.
///
/// # Errors
///
/// See [`Error`]. That the collector cannot be reached is none.
pub fn layer<S>(options: Options) -> Result<(Box<dyn Layer<S> + Send + Sync>, Export), Error>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("traces")
        .enable_all()
        .build()
        .map_err(Error::Thread)?;
    let handle = runtime.handle().clone();
    let requests = Background(Some(runtime));
    let client = Client::new(&options.endpoint, handle, SEND)?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .with_endpoint(options.endpoint.to_string())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(SEND)
        .build()
        .map_err(Error::Exporter)?;
    // An attempt has some dozens of spans, and attempts come in bursts.
    let config = BatchConfigBuilder::default()
        .with_max_queue_size(MAX_WAITING)
        .with_max_export_batch_size(MAX_BATCH)
        .build();
    let batches = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
    let provider = SdkTracerProvider::builder()
        .with_span_processor(batches)
        .with_sampler(Sampler::parent_based(Sampler::TraceIdRatioBased(options.sampling.ratio())))
        .with_resource(resource(&options))
        .build();
    let own = options.own;
    let is_exported = FilterFn::new(move |meta| {
        let is_own = || own.iter().any(|own| is_in(meta.target(), own));
        meta.is_span() && *meta.level() <= Level::INFO && is_own()
    })
    .with_max_level_hint(LevelFilter::INFO);
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("steersman"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(is_exported)
        .boxed();
    Ok((layer, Export { provider, _requests: requests }))
}

fn resource(options: &Options) -> Resource {
    let Options { service_name, instance_id, version, .. } = options;
    let optional = [("service.instance.id", instance_id), ("service.version", version)];
    let given = optional.into_iter().filter(|(_, value)| !value.is_empty());
    Resource::builder_empty()
        .with_service_name(service_name.clone())
        .with_attributes(given.map(|(key, value)| KeyValue::new(key, value.clone())))
        .build()
}

/// The W3C `traceparent` header of the current span, for requests to others.
/// `None` where spans are not exported or there is no span.
pub fn current_traceparent() -> Option<String> {
    let context = context_of(&Span::current())?;
    let (trace, span) = (context.trace_id(), context.span_id());
    Some(format!("00-{trace}-{span}-{:02x}", context.trace_flags().to_u8()))
}

/// Whether the span is exported: it is not filtered out, and its trace is among
/// the sampled ones. Lets callers spare themselves details that nobody will see.
pub fn is_sampled(span: &Span) -> bool {
    context_of(span).is_some_and(|context| context.is_sampled())
}

fn context_of(span: &Span) -> Option<SpanContext> {
    if span.is_disabled() {
        return None;
    }
    let context = span.context();
    let context = context.span().span_context().clone();
    context.is_valid().then_some(context)
}
