//! Why a request failed, and what that says about trying again.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::HeaderMap;
use serde_json::Value;
use thiserror::Error;

/// Why a request failed.
#[derive(Clone, Debug, Error)]
pub(crate) enum CallError {
    /// The API server said no.
    #[error("{0}")]
    Refused(Refusal),
    /// It said nothing in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The connection could not be made, or broke.
    #[error("{0}")]
    Unreachable(String),
    /// Its answer makes no sense, for instance because it was cut off.
    #[error("unreadable answer: {0}")]
    Garbled(String),
}

/// An answer of the API server that is an error, mostly a `Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status code.
    pub(crate) code: u16,
    /// The machine-readable reason: `NotFound`, `Conflict`; empty if unknown.
    pub(crate) reason: String,
    /// What to tell people.
    pub(crate) message: String,
    /// How long the server wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
}

/// No server is obeyed that wants to be left alone for longer.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(5 * 60);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.message.as_str(), self.reason.as_str()) {
            ("", "") => write!(f, "status {}", self.code),
            ("", reason) => write!(f, "{reason} (status {})", self.code),
            (message, _) => f.write_str(message),
        }
    }
}

impl Refusal {
    /// Reads a `Status`; anything else gives what the code alone says.
    pub(crate) fn from_status(code: u16, status: &Value) -> Self {
        let text = |field: &str| status[field].as_str().unwrap_or_default().to_owned();
        let own_code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        Self {
            code: own_code.filter(|code| *code >= 400).unwrap_or(code),
            reason: text("reason"),
            message: text("message"),
            retry_after: status["details"]["retryAfterSeconds"].as_u64().and_then(asked_wait),
        }
    }

    /// Reads an answer with an error code.
    pub(crate) fn from_answer(code: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let status = serde_json::from_slice(body).unwrap_or(Value::Null);
        let mut refusal = Self::from_status(code, &status);
        if !status.is_object() {
            let text = String::from_utf8_lossy(body);
            let line = text.lines().next().unwrap_or_default().trim();
            refusal.message = line.chars().take(200).collect();
        }
        // Only seconds: API servers send no dates here.
        let header = headers.get(http::header::RETRY_AFTER).and_then(|v| v.to_str().ok());
        let seconds = header.and_then(|text| text.trim().parse().ok());
        refusal.retry_after = seconds.and_then(asked_wait).or(refusal.retry_after);
        refusal
    }

    /// The version or the continuation that was asked for is no longer known,
    /// or not yet: a server that was set back to an earlier state will not know
    /// it for long.
    pub(crate) fn is_expired(&self) -> bool {
        self.code == 410
            || matches!(self.reason.as_str(), "Expired" | "Gone")
            || (self.code == 504 && self.message.contains("Too large resource version"))
    }
}

impl CallError {
    /// The server's refusal, if it is one.
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The refusal's code; 0 when the server did not answer.
    pub(crate) fn code(&self) -> u16 {
        self.refusal().map_or(0, |refusal| refusal.code)
    }

    /// The same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Refused(refusal) => matches!(refusal.code, 408 | 429 | 500..=599),
            Self::Timeout(_) | Self::Unreachable(_) | Self::Garbled(_) => true,
        }
    }

    /// The server may have done what it was asked to do.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.may_pass() && self.code() != 429
    }

    /// How long the server wants to be left alone.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.refusal().and_then(|refusal| refusal.retry_after)
    }
}

/// How long a server wants to be left alone. No time at all is no answer:
/// whoever takes it at its word asks again and again without a pause.
fn asked_wait(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds).min(LONGEST_RETRY_AFTER))
}

/// What the client says, without its name for the place where it happened.
pub(crate) fn of_client(error: &kube::Error) -> String {
    match error {
        kube::Error::Service(error) => chain(&**error),
        other => chain(other),
    }
}

/// An error with all its causes on one line; causes that the text shows
/// already are left out.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(code: u16, retry_after: Option<&str>, body: &str) -> Refusal {
        let mut headers = HeaderMap::new();
        if let Some(value) = retry_after {
            headers.insert(http::header::RETRY_AFTER, value.parse().unwrap());
        }
        Refusal::from_answer(code, &headers, body.as_bytes())
    }

    #[test]
    fn reads_status_objects_and_plain_text() {
        let status = json!({"kind": "Status", "code": 409, "reason": "Conflict", "message": "no"});
        let refusal = answer(409, None, &status.to_string());
        assert_eq!((refusal.code, refusal.reason.as_str()), (409, "Conflict"));
        assert_eq!(refusal.to_string(), "no");
        assert_eq!(answer(502, None, "Bad Gateway\nmore").to_string(), "Bad Gateway");
        assert_eq!(answer(500, None, "").to_string(), "status 500");
    }

    #[test]
    fn retry_after_comes_from_the_header_or_the_status_and_is_bounded() {
        let status = json!({"details": {"retryAfterSeconds": 3}}).to_string();
        assert_eq!(answer(429, None, &status).retry_after, Some(Duration::from_secs(3)));
        assert_eq!(answer(429, Some("7"), &status).retry_after, Some(Duration::from_secs(7)));
        assert_eq!(answer(429, Some("soon"), "").retry_after, None);
        assert_eq!(answer(429, Some("0"), "").retry_after, None, "a pause of nothing is none");
        assert_eq!(answer(429, Some("0"), &status).retry_after, Some(Duration::from_secs(3)));
        let forever = json!({"details": {"retryAfterSeconds": u64::MAX}});
        assert_eq!(Refusal::from_status(429, &forever).retry_after, Some(LONGEST_RETRY_AFTER));
        assert_eq!(answer(429, Some("999999"), "").retry_after, Some(LONGEST_RETRY_AFTER));
    }

    #[test]
    fn versions_of_the_past_and_of_the_future_are_unknown() {
        let refusal =
            |code, message: &str| Refusal::from_status(code, &json!({"message": message}));
        assert!(refusal(410, "").is_expired());
        assert!(refusal(504, "Timeout: Too large resource version: 9, current: 3").is_expired());
        assert!(!refusal(504, "gateway timeout").is_expired());
    }

    #[test]
    fn only_what_the_server_surely_did_not_do_is_unambiguous() {
        let refused = |code| CallError::Refused(answer(code, None, ""));
        let cases = [(429, true, false), (500, true, true), (504, true, true), (409, false, false)];
        for (code, may_pass, ambiguous) in cases {
            let error = refused(code);
            assert_eq!((error.may_pass(), error.is_ambiguous()), (may_pass, ambiguous), "{code}");
        }
        assert!(CallError::Timeout(Duration::ZERO).is_ambiguous());
        assert!(CallError::Unreachable(String::new()).is_ambiguous());
    }
}
