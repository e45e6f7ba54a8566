//! JSON web tokens, of the one kind that is used here.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use thiserror::Error;

const ALGORITHM: &str = "ES256";

/// Signs tokens, and tells its own from others.
#[derive(Default)]
pub(crate) struct Signer {
    key: OnceLock<Option<Key>>,
}

struct Key {
    pair: EcdsaKeyPair,
    id: String,
    random: SystemRandom,
}

/// The system gives no random numbers.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("cannot sign a token: the system gives no random numbers")]
pub(crate) struct SignError;

impl Signer {
    /// A token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> Result<String, SignError> {
        let key = self.key.get_or_init(Key::generate).as_ref().ok_or(SignError)?;
        let header = json!({ "alg": ALGORITHM, "kid": key.id });
        let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let mut token = format!("{}.{}", encode(&header), encode(claims));
        let signature = key.pair.sign(&key.random, token.as_bytes()).map_err(|_| SignError)?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature.as_ref(), &mut token);
        Ok(token)
    }

    /// What a token claims, if it was signed here.
    pub(crate) fn verify(&self, token: &str) -> Option<Value> {
        let key = self.key.get()?.as_ref()?;
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header = decode(header)?;
        if header["alg"] != ALGORITHM || header["kid"] != key.id {
            return None;
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.pair.public_key());
        public.verify(signed.as_bytes(), &signature).ok()?;
        decode(claims)
    }
}

impl Key {
    fn generate() -> Option<Self> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok()?;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).ok()?;
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, pair.public_key().as_ref()));
        Some(Self { pair, id, random })
    }
}

fn decode(part: &str) -> Option<Value> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_signed_here_is_believed() {
        let (signer, other) = (Signer::default(), Signer::default());
        assert_eq!(signer.verify("a.b.c"), None);
        let claims = json!({"sub": "me"});
        let token = signer.sign(&claims).unwrap();
        assert_eq!(signer.verify(&token), Some(claims));
        other.sign(&json!({})).unwrap();
        assert_eq!(other.verify(&token), None);

        let parts: Vec<&str> = token.split('.').collect();
        let forged = URL_SAFE_NO_PAD.encode(json!({"sub": "you"}).to_string());
        let plain = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
        for bad in [
            format!("{}.{forged}.{}", parts[0], parts[2]),
            format!("{plain}.{}.", parts[1]),
            format!("{plain}.{}.{}", parts[1], parts[2]),
            format!("{}.{}.", parts[0], parts[1]),
            format!("{token}.x"),
            "..".to_owned(),
            String::new(),
        ] {
            assert_eq!(signer.verify(&bad), None, "{bad}");
        }
    }
}
