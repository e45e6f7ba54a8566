//! Tokens of service accounts: signed statements of the server about who brings
//! them.
//!
//! A token is a JWT signed with ES256 by a key that the server makes for itself
//! when it first needs one and never shows: tokens end with the server. What
//! they say is checked against the cluster each time one is brought
//! ([`service_account`]).

mod jwt;
pub(crate) mod service_account;

pub(crate) use self::jwt::Signer;

/// Who issues tokens, and whom they are for unless they say otherwise.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
