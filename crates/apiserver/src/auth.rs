//! Who asks.

use std::fmt;

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// Somebody who is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// `system:admin`.
    pub name: String,
    /// `system:masters`.
    pub groups: Vec<String>,
}

/// How those who connect are known.
#[derive(Clone)]
pub struct Auth {
    tokens: Vec<(String, User)>,
    trusts_all: bool,
}

impl User {
    /// Whoever runs the server.
    pub fn admin() -> Self {
        let groups = ["system:masters", "system:authenticated"];
        Self { name: "system:admin".to_owned(), groups: groups.map(str::to_owned).to_vec() }
    }

    /// Whether nothing is denied to the user.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == "system:masters")
    }
}

impl Auth {
    /// By bearer tokens. Who brings none of them may ask for health and version.
    pub fn tokens(tokens: impl IntoIterator<Item = (String, User)>) -> Self {
        Self { tokens: tokens.into_iter().collect(), trusts_all: false }
    }

    /// Everybody is taken for the administrator. For tests, and for sockets that
    /// nobody else reaches.
    pub fn trusting() -> Self {
        Self { tokens: Vec::new(), trusts_all: true }
    }

    /// Who sent these headers, if that is known.
    pub(crate) fn identify(&self, headers: &HeaderMap) -> Option<User> {
        if self.trusts_all {
            return Some(User::admin());
        }
        let header = headers.get(AUTHORIZATION)?.as_bytes();
        let (scheme, token) = header.split_at_checked("Bearer ".len())?;
        if !scheme.eq_ignore_ascii_case(b"Bearer ") {
            return None;
        }
        let mut found = None;
        for (known, user) in &self.tokens {
            if is_equal(known.as_bytes(), token) {
                found = Some(user.clone());
            }
        }
        found
    }
}

/// Tokens are secrets: they do not show.
impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let users: Vec<&User> = self.tokens.iter().map(|(_, user)| user).collect();
        f.debug_struct("Auth").field("users", &users).field("trusts_all", &self.trusts_all).finish()
    }
}

/// Compares without telling by its time how much was right.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b));
    !a.is_empty() && a.len() == b.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::{Auth, User};

    #[test]
    fn only_whole_tokens_are_accepted() {
        let auth =
            Auth::tokens([("s3cret".to_owned(), User::admin()), (String::new(), User::admin())]);
        for (header, is_known) in [
            ("Bearer s3cret", true),
            ("bearer s3cret", true),
            ("Bearer s3cre", false),
            ("Bearer s3crets", false),
            ("Bearer ", false),
            ("Basic s3cret", false),
            ("s3cret", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("authorization", HeaderValue::from_str(header).unwrap());
            assert_eq!(auth.identify(&headers).is_some(), is_known, "{header}");
        }
        assert_eq!(auth.identify(&HeaderMap::new()), None);
        assert!(Auth::trusting().identify(&HeaderMap::new()).is_some());
    }

    #[test]
    fn tokens_do_not_show() {
        let auth = Auth::tokens([("s3cret".to_owned(), User::admin())]);
        assert!(!format!("{auth:?}").contains("s3cret"));
    }
}
