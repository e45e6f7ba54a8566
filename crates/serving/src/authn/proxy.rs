//! Users as a front proxy names them in headers.

use std::collections::BTreeMap;

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::RequestHeaderOptions;
use crate::user::User;

/// The headers that name users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProxyHeaders {
    pub(super) username: Vec<String>,
    pub(super) uid: Vec<String>,
    pub(super) group: Vec<String>,
    pub(super) extra_prefixes: Vec<String>,
}

impl From<&RequestHeaderOptions> for ProxyHeaders {
    fn from(options: &RequestHeaderOptions) -> Self {
        Self {
            username: options.username_headers.clone(),
            uid: options.uid_headers.clone(),
            group: options.group_headers.clone(),
            extra_prefixes: options.extra_header_prefixes.clone(),
        }
    }
}

impl ProxyHeaders {
    /// The user, when a name is there.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let first = |names: &[String]| names.iter().find_map(|name| values(headers, name).next());
        let name = first(&self.username)?;
        let uid = first(&self.uid).unwrap_or_default();
        let groups = self.group.iter().flat_map(|name| values(headers, name)).collect();
        Some(User { name, uid, groups, extra: self.extra(headers) })
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        // Every header begins with nothing.
        for prefix in self.extra_prefixes.iter().filter(|prefix| !prefix.is_empty()) {
            let prefix = prefix.to_ascii_lowercase();
            for name in headers.keys() {
                let Some(key) = name.as_str().strip_prefix(prefix.as_str()) else { continue };
                let decoded = percent_decode_str(key).decode_utf8();
                let key = decoded.map_or_else(|_| key.to_owned(), |key| key.into_owned());
                let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
                extra.entry(key).or_default().extend(values.map(str::to_owned));
            }
        }
        extra
    }
}

/// The values of a header that hold something.
fn values(headers: &HeaderMap, name: &str) -> impl Iterator<Item = String> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    /// Name, groups, and facts by key.
    type Expected<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a [&'a str])]);

    #[track_caller]
    fn check(headers: &[(&str, &str)], expected: Option<Expected<'_>>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        let owned = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let expected = expected.map(|(name, groups, extra)| User {
            name: name.to_owned(),
            uid: String::new(),
            groups: owned(groups),
            extra: extra.iter().map(|(key, list)| ((*key).to_owned(), owned(list))).collect(),
        });
        let mut options = RequestHeaderOptions::default();
        options.extra_header_prefixes.push(String::new());
        assert_eq!(ProxyHeaders::from(&options).user(&map), expected);
    }

    #[test]
    fn users_from_headers() {
        check(&[("X-Remote-Group", "dev")], None);
        check(&[("X-Remote-User", "")], None);
        check(
            &[
                ("X-Remote-User", "ada"),
                ("X-Remote-Group", "dev"),
                ("X-Remote-Group", "ops"),
                ("X-Remote-Extra-Scopes", "a"),
                ("X-Remote-Extra-Scopes", "b"),
                ("X-Remote-Extra-acme.com%2fproject", "p"),
            ],
            Some((
                "ada",
                &["dev", "ops"],
                &[("acme.com/project", &["p"]), ("scopes", &["a", "b"])],
            )),
        );
    }
}
