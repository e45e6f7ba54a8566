//! Finding out who asks: by certificate, by token, or not at all.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::access::Authorization;
use crate::auth::{Auth, User, bearer};
use crate::server::Inner;
use crate::tokens::ISSUER;
use crate::tokens::service_account::TokenError;

impl Inner {
    /// Who sent these headers over a connection whose certificate names
    /// `peer`; `None` if what they bring is not known.
    ///
    /// As in the reference, somebody who brings nothing is anonymous where
    /// roles are asked, and nobody where everything is allowed.
    pub(crate) fn identify(
        &self,
        auth: &Auth,
        headers: &HeaderMap,
        peer: Option<&User>,
    ) -> Option<User> {
        if auth.trusts_all() {
            return Some(User::admin());
        }
        if let Some(peer) = peer {
            return Some(peer.clone());
        }
        let Some(token) = bearer(headers) else {
            let is_nobody = !headers.contains_key(AUTHORIZATION);
            let has_anonymous = self.access.mode != Authorization::AlwaysAllow;
            return (is_nobody && has_anonymous).then(User::anonymous);
        };
        auth.user_of(token).or_else(|| {
            let token = std::str::from_utf8(token).ok()?;
            match self.user_of_token(token, &[ISSUER.to_owned()]) {
                Ok((user, _)) => Some(user),
                Err(error) => {
                    tracing::debug!(%error, "a token was refused");
                    None
                }
            }
        })
    }

    /// Whose token this is, of all that the server would take, and for which of
    /// the audiences it is good.
    pub(crate) fn user_of_bearer(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<(User, Vec<String>), TokenError> {
        let known = self.auths.read().iter().find_map(|auth| auth.user_of(token.as_bytes()));
        match known {
            // Such a token says nothing of audiences: it is for this server.
            Some(user) if audiences.iter().any(|wanted| wanted == ISSUER) => {
                Ok((user, vec![ISSUER.to_owned()]))
            }
            Some(_) => Err(TokenError::Foreign),
            None => self.user_of_token(token, audiences),
        }
    }

    /// Takes the tokens of a socket into account in reviews, too, for as long
    /// as the guard lives.
    pub(crate) fn remember(self: &Arc<Self>, auth: &Arc<Auth>) -> Remembered {
        self.auths.write().push(auth.clone());
        Remembered { inner: self.clone(), auth: auth.clone() }
    }
}

/// Forgets tokens when it is dropped.
pub(crate) struct Remembered {
    inner: Arc<Inner>,
    auth: Arc<Auth>,
}

impl Drop for Remembered {
    fn drop(&mut self) {
        self.inner.auths.write().retain(|auth| !Arc::ptr_eq(auth, &self.auth));
    }
}
