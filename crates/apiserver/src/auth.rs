//! Who asks.

use std::collections::BTreeMap;
use std::fmt;

use http::HeaderMap;
use http::header::AUTHORIZATION;

/// The group that may do everything.
const MASTERS: &str = "system:masters";
/// The group of everybody who is known.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who is not.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of who is not known.
pub(crate) const ANONYMOUS: &str = "system:anonymous";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Somebody who is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// `system:admin`.
    pub name: String,
    /// `system:masters`.
    pub groups: Vec<String>,
    /// What tells the user from others who had the name before; may be empty.
    pub uid: String,
    /// What else authentication knows of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// How those who connect are known.
#[derive(Clone)]
pub struct Auth {
    tokens: Vec<(String, User)>,
    trusts_all: bool,
}

impl User {
    /// A user who belongs to these groups and to that of all who are known.
    pub fn new<G: Into<String>>(
        name: impl Into<String>,
        groups: impl IntoIterator<Item = G>,
    ) -> Self {
        let groups = groups.into_iter().map(Into::into).collect();
        Self { name: name.into(), groups, ..Self::default() }.authenticated()
    }

    /// Whoever runs the server.
    pub fn admin() -> Self {
        Self::new("system:admin", [MASTERS])
    }

    /// A service account of a namespace.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(service_account_name(namespace, name), service_account_groups(namespace))
    }

    /// Somebody of whom nothing is known.
    pub fn anonymous() -> Self {
        let groups = vec![UNAUTHENTICATED.to_owned()];
        Self { name: ANONYMOUS.to_owned(), groups, ..Self::default() }
    }

    /// Whether nothing is denied to the user.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    /// Adds the group of all who are known.
    pub(crate) fn authenticated(mut self) -> Self {
        if !self.groups.iter().any(|group| group == AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
        self
    }
}

/// The user name of a service account.
pub(crate) fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT}{namespace}:{name}")
}

/// The groups of the service accounts of a namespace.
pub(crate) fn service_account_groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Namespace and name of the service account that has this user name, if it is
/// one's.
pub(crate) fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

impl Auth {
    /// By bearer tokens, beside those of service accounts and certificates of
    /// the server's own authority. Who brings none of them may ask for health
    /// and version; with RBAC they are `system:anonymous`.
    pub fn tokens(tokens: impl IntoIterator<Item = (String, User)>) -> Self {
        let tokens = tokens.into_iter().map(|(token, user)| (token, user.authenticated()));
        Self { tokens: tokens.collect(), trusts_all: false }
    }

    /// Everybody is taken for the administrator. For tests, and for sockets that
    /// nobody else reaches.
    pub fn trusting() -> Self {
        Self { tokens: Vec::new(), trusts_all: true }
    }

    pub(crate) fn trusts_all(&self) -> bool {
        self.trusts_all
    }

    /// Whose token this is, if it is one of those that were given.
    pub(crate) fn user_of(&self, token: &[u8]) -> Option<User> {
        let mut found = None;
        for (known, user) in &self.tokens {
            if is_equal(known.as_bytes(), token) {
                found = Some(user.clone());
            }
        }
        found
    }
}

/// The bearer token in these headers; `None` if there is none.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let header = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = header.split_at_checked("Bearer ".len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty()).then_some(token)
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

    use super::{Auth, User, bearer, split_service_account};

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
            let user = bearer(&headers).and_then(|token| auth.user_of(token));
            assert_eq!(user.is_some(), is_known, "{header}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn tokens_do_not_show() {
        let auth = Auth::tokens([("s3cret".to_owned(), User::admin())]);
        assert!(!format!("{auth:?}").contains("s3cret"));
    }

    #[test]
    fn service_accounts_are_known_by_their_name() {
        assert_eq!(split_service_account("system:serviceaccount:ns:sa"), Some(("ns", "sa")));
        for other in ["system:serviceaccount:ns", "system:serviceaccount::a", "jane", "a:b:c:d"] {
            assert_eq!(split_service_account(other), None, "{other}");
        }
        let groups = User::service_account("ns", "sa").groups;
        let expected =
            ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"];
        assert_eq!(groups, expected);
    }
}
