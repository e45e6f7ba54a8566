//! Answers to requests that are not served, worded as Kubernetes words them.

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use crate::page::{PageError, Reply};
use crate::review::Deed;
use crate::site::MAX_SETTING;
use crate::user::User;

/// Why a request is not served.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// No credentials, or none that hold.
    Unauthorized,
    /// This user may not do this; the message says who and what.
    Forbidden(String),
    /// The API server did not say whether this may be done.
    CannotTell,
    /// There is nothing there.
    NotFound,
    /// Nothing of the kind can be done there.
    MethodNotAllowed { allow: &'static str },
    /// The body is larger than what is read.
    TooLarge,
    /// The body ended early.
    BrokenOff,
    /// The client sent its body too slowly.
    TooSlow,
    /// The page was not ready in time.
    TimedOut,
    /// The page's own reason.
    Page(PageError),
    /// The page panicked.
    Panicked,
}

impl Refusal {
    /// The user may not do this, for a reason that may be empty.
    pub(crate) fn forbidden(user: &User, deed: &Deed, reason: &str) -> Self {
        Self::Forbidden(forbidden(user, deed, reason))
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::CannotTell => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BrokenOff => StatusCode::BAD_REQUEST,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Page(error) => match error {
                PageError::BadRequest(_) => StatusCode::BAD_REQUEST,
                PageError::NotFound(_) => StatusCode::NOT_FOUND,
                PageError::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
                PageError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
                PageError::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
            },
        }
    }

    /// The `Allow` header, where one belongs.
    pub(crate) fn allow(&self) -> Option<&'static str> {
        match self {
            Self::MethodNotAllowed { allow } => Some(allow),
            _ => None,
        }
    }

    pub(crate) fn reply(&self) -> Reply {
        let reply = match self {
            Self::Unauthorized => status("Unauthorized".to_owned(), "Unauthorized", 401, false),
            Self::Forbidden(message) => status(message.clone(), "Forbidden", 403, true),
            Self::CannotTell => status(
                "the API server cannot be asked whether this is allowed".to_owned(),
                "ServiceUnavailable",
                503,
                false,
            ),
            Self::NotFound => Reply::text("404 page not found\n"),
            Self::MethodNotAllowed { .. } => Reply::text("Method Not Allowed\n"),
            Self::TooLarge => {
                Reply::text(format!("the value is too large, allowed: {MAX_SETTING} bytes\n"))
            }
            Self::BrokenOff => Reply::text("the value did not arrive whole\n"),
            Self::TooSlow => Reply::text("the value did not arrive in time\n"),
            Self::TimedOut => Reply::text("the page was not ready in time\n"),
            Self::Panicked => Reply::text("the page cannot be shown: it panicked\n"),
            Self::Page(error @ PageError::NotAcceptable(_)) => {
                status(error.to_string(), "NotAcceptable", 406, false)
            }
            Self::Page(error) => Reply::text(Bytes::from(format!("{error}\n"))),
        };
        Reply { status: self.status(), ..reply }
    }
}

fn forbidden(user: &User, deed: &Deed, reason: &str) -> String {
    let (name, Deed { verb, path }) = (escape(&user.name), deed);
    let mut text =
        format!("forbidden: User {name:?} cannot {} path {:?}", escape(verb), escape(path));
    if !reason.is_empty() {
        text.push_str(": ");
        text.push_str(&escape(reason));
    }
    text
}

/// Texts of the client come back to it; a browser must not take them for HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A `Status` object, as the API server answers.
fn status(message: String, reason: &str, code: u16, details: bool) -> Reply {
    let mut object = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    });
    if details {
        object["details"] = json!({});
    }
    Reply::new("application/json", object.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(reason: &str) -> String {
        let user = User { name: "a<b".to_owned(), ..User::default() };
        let deed = Deed { verb: "get".to_owned(), path: "/metrics".to_owned() };
        let reply = Refusal::forbidden(&user, &deed, reason).reply();
        let object: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(object["code"], 403);
        assert_eq!(object["reason"], "Forbidden");
        object["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn forbidden_is_worded_as_the_reference_does() {
        assert_eq!(message(""), r#"forbidden: User "a&lt;b" cannot get path "/metrics""#);
        assert_eq!(message("why"), r#"forbidden: User "a&lt;b" cannot get path "/metrics": why"#);
    }
}
