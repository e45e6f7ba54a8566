//! Whether something may be written at all.

use std::fmt;
use std::sync::Arc;
use std::task::Poll;

use crate::error::CallError;

/// Says whether this process may still write; asked at the moment at which a
/// request goes out, and whenever it goes on. Cheap to clone, and to be cheap to
/// ask.
///
/// For programs of which only one of several may write: a process that was frozen
/// between a decision and its request must not act on it any more.
#[derive(Clone)]
pub struct Permission(Arc<dyn Fn() -> bool + Send + Sync>);

impl Permission {
    /// One that asks this function.
    pub fn new(is_granted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_granted))
    }

    /// Waits for the answer of a request to `url`, as long as it may go on.
    pub(crate) async fn guard<T>(
        &self,
        url: &str,
        answer: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        if !(self.0)() {
            return Err(CallError::Forbidden { url: url.to_owned() });
        }
        let mut answer = Box::pin(answer);
        std::future::poll_fn(|cx| match (self.0)() {
            true => answer.as_mut().poll(cx),
            false => Poll::Ready(Err(CallError::Abandoned { url: url.to_owned() })),
        })
        .await
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permission")
    }
}
