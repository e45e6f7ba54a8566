//! Speaking for others: the `Impersonate-*` headers.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use steersman_apimachinery::error::ApiError;

use super::{Attributes, Target};
use crate::auth::{
    AUTHENTICATED, UNAUTHENTICATED, User, service_account_groups, split_service_account,
};
use crate::rest::decode;
use crate::server::Inner;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Who the request is to be taken for: the user, or who the headers name, if
/// the user may impersonate each of the things that they name.
pub(crate) fn apply(inner: &Inner, user: User, headers: &HeaderMap) -> Result<User, ApiError> {
    let Some(name) = headers.get(USER).map(text).filter(|name| !name.is_empty()) else {
        // Whoever asks to be less than they are must not be taken for more.
        let is_half = |name: &&HeaderName| {
            matches!(name.as_str(), GROUP | UID) || name.as_str().starts_with(EXTRA)
        };
        return match headers.keys().find(is_half) {
            _ if headers.contains_key(USER) => {
                Err(ApiError::bad_request(format!("{USER} is given without a name")))
            }
            Some(half) => {
                Err(ApiError::bad_request(format!("{half} is given without impersonate-user")))
            }
            None => Ok(user),
        };
    };
    let may = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        let target = Target::Resource { group, resource, subresource, namespace, name };
        inner.access.check(&inner.store, &user, &Attributes { verb: "impersonate", target })
    };
    let mut other = User { name, ..User::default() };
    other.groups = headers.get_all(GROUP).iter().map(text).collect();
    match split_service_account(&other.name) {
        Some((namespace, account)) => {
            may("", "serviceaccounts", "", namespace, account)?;
            if other.groups.is_empty() {
                other.groups = service_account_groups(namespace).to_vec();
            }
        }
        None => may("", "users", "", "", &other.name)?,
    }
    for group in headers.get_all(GROUP).iter().map(text) {
        may("", "groups", "", "", &group)?;
    }
    for (header, value) in headers {
        let Some(key) = header.as_str().strip_prefix(EXTRA) else { continue };
        let key = decode(key).unwrap_or_else(|| key.to_owned());
        let value = text(value);
        may(AUTHENTICATION, "userextras", &key, "", &value)?;
        other.extra.entry(key).or_default().push(value);
    }
    if let Some(uid) = headers.get(UID).map(text).filter(|uid| !uid.is_empty()) {
        may(AUTHENTICATION, "uids", "", "", &uid)?;
        other.uid = uid;
    }
    let has = |wanted: &str| other.groups.iter().any(|group| group == wanted);
    if other.is_anonymous() {
        if !has(UNAUTHENTICATED) {
            other.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) {
        other.groups.push(AUTHENTICATED.to_owned());
    }
    Ok(other)
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}
