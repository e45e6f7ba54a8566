//! What tokens of service accounts say, and whether it still holds.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::rules::View;
use thiserror::Error;

use super::ISSUER;
use super::jwt::SignError;
use crate::auth::{User, service_account_name};
use crate::meta;
use crate::server::{ApiServer, Inner};

/// How long a token is good unless somebody says otherwise, in seconds.
pub(crate) const LIFETIME: i64 = 60 * 60;
/// How long what is being deleted is still believed to be there.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// What a token is to say.
pub(crate) struct Claims<'a> {
    /// The service account.
    pub(crate) account: &'a Value,
    /// The object without which it is void: its kind in small letters, and it.
    pub(crate) bound: Option<(&'static str, &'a Value)>,
    pub(crate) audiences: &'a [String],
    /// How long it is good, in seconds.
    pub(crate) lifetime: i64,
}

/// Why a token is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum TokenError {
    /// It was not signed here.
    #[error("invalid bearer token")]
    Foreign,
    /// It is for others.
    #[error("token audiences {0:?} is invalid for the target audiences {1:?}")]
    Audience(Vec<String>, Vec<String>),
    /// Its time is over.
    #[error("service account token has expired")]
    Expired,
    /// Its time has not come.
    #[error("service account token is not valid yet")]
    NotYet,
    /// The account or what it was bound to is gone, or is another one by now.
    #[error("service account token has been invalidated")]
    Invalidated,
}

impl Inner {
    /// A token, and until when it is good.
    pub(crate) fn issue_token(
        &self,
        claims: &Claims<'_>,
    ) -> Result<(String, Timestamp), SignError> {
        let (namespace, name) = (meta::namespace(claims.account), meta::name(claims.account));
        let now = self.now().as_second();
        let expiry = now.saturating_add(claims.lifetime);
        let identity =
            |object: &Value| json!({ "name": meta::name(object), "uid": meta::uid(object) });
        let mut about = json!({
            "namespace": namespace,
            "serviceaccount": identity(claims.account),
        });
        if let Some((kind, object)) = claims.bound {
            about[kind] = identity(object);
        }
        let token = self.signer.sign(&json!({
            "iss": ISSUER,
            "sub": service_account_name(namespace, name),
            "aud": claims.audiences,
            "iat": now,
            "nbf": now,
            "exp": expiry,
            "jti": self.uid(),
            "kubernetes.io": about,
        }))?;
        Ok((token, Timestamp::from_second(expiry).unwrap_or(Timestamp::MAX)))
    }

    /// Whose token this is, and for which of the audiences it is good.
    pub(crate) fn user_of_token(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<(User, Vec<String>), TokenError> {
        let claims = self.signer.verify(token).ok_or(TokenError::Foreign)?;
        let number = |field: &str| claims[field].as_i64().unwrap_or(0);
        let now = self.now();
        if claims["iss"] != ISSUER {
            return Err(TokenError::Foreign);
        }
        if number("exp") <= now.as_second() {
            return Err(TokenError::Expired);
        }
        if number("nbf") > now.as_second() {
            return Err(TokenError::NotYet);
        }
        let given = claims["aud"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let given: Vec<String> = given.map(str::to_owned).collect();
        let common: Vec<String> =
            audiences.iter().filter(|wanted| given.contains(wanted)).cloned().collect();
        if common.is_empty() {
            return Err(TokenError::Audience(given, audiences.to_vec()));
        }
        Ok((self.user_of_claims(&claims, now)?, common))
    }

    /// The user, if all that the token names is still there.
    fn user_of_claims(&self, claims: &Value, now: Timestamp) -> Result<User, TokenError> {
        let about = &claims["kubernetes.io"];
        let text = |kind: &str, field: &str| about[kind][field].as_str().unwrap_or("");
        let namespace = about["namespace"].as_str().unwrap_or("");
        let name = text("serviceaccount", "name");
        let stands = |kind: &str, plural: &str, namespace: &str| {
            let found = self.get("", plural, namespace, text(kind, "name"));
            found.is_some_and(|object| {
                meta::uid(&object) == text(kind, "uid") && !has_gone(&object, now)
            })
        };
        let kept = [
            ("serviceaccount", "serviceaccounts", namespace),
            ("pod", "pods", namespace),
            ("secret", "secrets", namespace),
            ("node", "nodes", ""),
        ];
        let is_valid = kept.into_iter().all(|(kind, plural, namespace)| {
            (kind != "serviceaccount" && about.get(kind).is_none())
                || stands(kind, plural, namespace)
        });
        if !is_valid {
            return Err(TokenError::Invalidated);
        }
        let mut user = User::service_account(namespace, name);
        text("serviceaccount", "uid").clone_into(&mut user.uid);
        let id = format!("JTI={}", claims["jti"].as_str().unwrap_or(""));
        let mut extra = vec![("credential-id", id)];
        for (kind, field, key) in [
            ("pod", "name", "pod-name"),
            ("pod", "uid", "pod-uid"),
            ("node", "name", "node-name"),
            ("node", "uid", "node-uid"),
        ] {
            if about.get(kind).is_some() {
                extra.push((key, text(kind, field).to_owned()));
            }
        }
        let extra = extra.into_iter();
        user.extra = extra
            .map(|(key, value)| (format!("authentication.kubernetes.io/{key}"), vec![value]))
            .collect();
        Ok(user)
    }
}

/// Whether the object has been going for so long that it counts as gone.
fn has_gone(object: &Value, now: Timestamp) -> bool {
    let deleted = meta::text(object, "deletionTimestamp").parse::<Timestamp>();
    deleted.is_ok_and(|deleted| deleted.saturating_add(LEEWAY).is_ok_and(|end| end < now))
}

impl ApiServer {
    /// A token of a service account for this server, good for `seconds`.
    ///
    /// # Errors
    /// When there is no such account, or the system gives no random numbers.
    pub fn service_account_token(
        &self,
        namespace: &str,
        name: &str,
        seconds: i64,
    ) -> Result<String, ApiError> {
        let inner = &self.inner;
        let account = inner.get("", "serviceaccounts", namespace, name).ok_or_else(|| {
            ApiError::new(404, "NotFound", format!("serviceaccounts {name:?} not found"))
        })?;
        let audiences = [ISSUER.to_owned()];
        let claims =
            Claims { account: &account, bound: None, audiences: &audiences, lifetime: seconds };
        let issued = inner.issue_token(&claims);
        issued.map(|(token, _)| token).map_err(|error| ApiError::internal(error.to_string()))
    }
}
