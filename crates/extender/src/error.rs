//! Why extenders cannot be set up, and why a call failed.

use std::error::Error as StdError;
use std::time::Duration;

use steersman_api::problem::{FieldPath, Problem};
use thiserror::Error;

/// Why an extender cannot be set up: where in the configuration, and what.
#[derive(Debug, Error)]
pub enum Error {
    /// A value cannot be used.
    #[error("{at}: found {found}, allowed: {allowed}")]
    Invalid {
        /// Where.
        at: FieldPath,
        /// What stands there.
        found: String,
        /// What may stand there.
        allowed: &'static str,
    },
    /// A file cannot be read.
    #[error("{at}: cannot read {path:?}")]
    Read {
        /// Where.
        at: FieldPath,
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Certificates or keys are not what they should be.
    #[error("{at}: {what}")]
    Tls {
        /// Where.
        at: FieldPath,
        /// What is wrong.
        what: String,
    },
    /// The system's certificate authorities cannot be loaded.
    #[error("{at}: the certificate authorities of the system cannot be loaded")]
    SystemAuthorities {
        /// Where.
        at: FieldPath,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Where and what, with what caused it.
    pub fn to_problem(&self) -> Problem {
        let at = match self {
            Self::Invalid { at, .. }
            | Self::Read { at, .. }
            | Self::Tls { at, .. }
            | Self::SystemAuthorities { at, .. } => at,
        };
        let text = chain(self);
        Problem::new(at, text.strip_prefix(&format!("{at}: ")).unwrap_or(&text))
    }

    /// Whether a file is not there, or not to be read by whoever asks: on another
    /// machine, or for another user, the same configuration may be right.
    pub fn is_missing_file(&self) -> bool {
        use std::io::ErrorKind::{NotFound, PermissionDenied};
        matches!(self, Self::Read { source, .. } if matches!(source.kind(), NotFound | PermissionDenied))
    }
}

/// Why a call failed. The texts are seen in the events of pods; they read as
/// the reference's where it has its own.
#[derive(Debug, Error)]
pub(crate) enum CallError {
    #[error("failed {verb} with extender at URL {url}, code {code}{hint}")]
    Status { verb: String, url: String, code: u16, hint: &'static str },
    #[error("Post {url:?}: no complete answer within {limit:?}")]
    TimedOut { url: String, limit: Duration },
    #[error("Post {url:?}: the answer is longer than {limit} bytes")]
    TooLong { url: String, limit: usize },
    #[error("Post {url:?}: {why}")]
    Transport { url: String, why: String },
    #[error("Post {url:?}: not sent: this process must not write any more")]
    Forbidden { url: String },
    #[error("Post {url:?}: given up before an answer: this process must not write any more")]
    Abandoned { url: String },
    #[error("Post {url:?}: nobody is there to send it any more")]
    Stopped { url: String },
}

/// An error and what caused it, in one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some libraries repeat the cause in their own text.
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
