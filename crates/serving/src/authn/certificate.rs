//! Users from client certificates.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::tls::default_provider;
use crate::user::User;

/// The attribute of a subject that holds the user's UID.
const UID: &str = "1.3.6.1.4.1.57683.2";
/// The key of the fact which certificate it was.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Who vouches for client certificates.
#[derive(Clone, Debug)]
pub(super) struct Authority(Arc<dyn ClientCertVerifier>);

impl Authority {
    /// Of these certificates those that can vouch; none when that is none.
    pub(super) fn new(certificates: Vec<CertificateDer<'static>>) -> Option<Self> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates);
        let provider = Arc::new(default_provider());
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .ok()
            .map(Self)
    }

    /// Whether it vouches for the first of these, with the help of the others.
    pub(super) fn vouches(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> bool {
        let Some((leaf, others)) = chain.split_first() else {
            return false;
        };
        match self.0.verify_client_cert(leaf, others, now) {
            Ok(_) => true,
            Err(error) => {
                tracing::debug!(%error, "a client certificate is not accepted");
                false
            }
        }
    }
}

/// The common name of a certificate.
pub(super) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let name = parsed.subject().iter_common_name().next()?.as_str().ok()?;
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

/// The user: name is the common name, groups are the organisations.
pub(super) fn user(certificate: &CertificateDer<'_>) -> Option<User> {
    let name = common_name(certificate)?;
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok());
    let groups = groups.map(str::to_owned).collect();
    let mut uids = subject.iter_attributes().filter(|a| a.attr_type().to_id_string() == UID);
    let uid = match (uids.next(), uids.next()) {
        (None, _) => String::new(),
        (Some(uid), None) => uid.as_str().ok().filter(|uid| !uid.is_empty())?.to_owned(),
        // Which of them is meant nobody knows.
        (Some(_), Some(_)) => return None,
    };
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let digest: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let id = format!("X509SHA256={digest}");
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]);
    Some(User { name, uid, groups, extra })
}
