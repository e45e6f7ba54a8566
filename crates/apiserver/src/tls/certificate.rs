//! Whom a client's certificate names.

use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

use crate::auth::User;

/// The user that a certificate names, which TLS has found to be of the server's
/// own authority: the common name, and the organisations as groups. `None` if
/// it has no name.
pub(crate) fn user(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let subject = parsed.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?;
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok());
    (!name.is_empty()).then(|| User::new(name, groups))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rustls::pki_types::pem::PemObject;

    use super::*;
    use crate::tls::Identity;

    #[test]
    fn certificates_name_users_and_groups() {
        let now = Timestamp::now();
        let identity = Identity::generate(&[], now).unwrap();
        for (name, group) in [("jane", Some("dev")), ("system:kube-scheduler", None)] {
            let client = identity.client(name, group, now).unwrap();
            let certificate = CertificateDer::from_pem_slice(client.cert_pem.as_bytes()).unwrap();
            assert_eq!(user(&certificate), Some(User::new(name, group)));
        }
        let nameless = identity.client("", None, now).unwrap();
        let certificate = CertificateDer::from_pem_slice(nameless.cert_pem.as_bytes()).unwrap();
        assert_eq!(user(&certificate), None);
    }
}
