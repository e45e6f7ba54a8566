//! Measures requests to API servers: a layer around the HTTP client.

use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::SchedulerMetrics;

/// Wraps a client's service, for instance with `kube::client::ClientBuilder`'s
/// `with_layer`. Of a watch the time until its answer begins counts.
#[derive(Clone)]
pub struct RestClientLayer {
    pub(crate) metrics: Arc<SchedulerMetrics>,
    pub(crate) host: Arc<str>,
}

/// A measured service.
#[derive(Clone)]
pub struct Measured<S> {
    layer: RestClientLayer,
    inner: S,
}

impl<S> Layer<S> for RestClientLayer {
    type Service = Measured<S>;

    fn layer(&self, inner: S) -> Measured<S> {
        Measured { layer: self.clone(), inner }
    }
}

impl<S, B, R> Service<Request<B>> for Measured<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body,
    R: Body + Send + 'static,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<R>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let RestClientLayer { metrics, host } = self.layer.clone();
        let method = request.method().as_str().to_owned();
        let host = request.uri().authority().map_or(host, |authority| authority.as_str().into());
        let component = &metrics.component;
        if let Some(size) = request.body().size_hint().exact().filter(|size| *size > 0) {
            component.request_size.with_label_values(&[&*method, &*host]).observe(size as f64);
        }
        let began = Instant::now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let component = &metrics.component;
            let labels = [&*method, &*host];
            let took = began.elapsed().as_secs_f64();
            component.request_duration.with_label_values(&labels).observe(took);
            let code = match &answer {
                Ok(response) => response.status().as_str().to_owned(),
                Err(_) => "<error>".to_owned(),
            };
            component.requests.with_label_values(&[&*code, &*method, &*host]).inc();
            if let Ok(response) = &answer
                && let Some(size) = response.body().size_hint().exact()
            {
                component.response_size.with_label_values(&labels).observe(size as f64);
            }
            answer
        })
    }
}
