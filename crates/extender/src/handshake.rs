//! Why TLS with an extender fails, in words: what is wrong with whose
//! certificate, and which field of the configuration has to do with it.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};

/// What TLS says among an error and its causes; nothing if it is not to blame.
pub(crate) fn in_words(error: &(dyn StdError + 'static)) -> Option<String> {
    tls_error(error).map(words)
}

fn tls_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<Error>() {
            return Some(found);
        }
        // The source of an IO error is the source of what it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(found) = wrapped.and_then(|wrapped| tls_error(wrapped)) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => {
            format!("the extender's certificate {}", certificate(error))
        }
        Error::AlertReceived(alert) => refusal(*alert),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the extender does not answer in TLS: if it speaks plain HTTP, urlPrefix begins with \
             http://"
                .to_owned()
        }
        Error::PeerIncompatible(_) => NOTHING_IN_COMMON.to_owned(),
        other => format!("TLS with the extender failed: {other}"),
    }
}

const NOTHING_IN_COMMON: &str = "the extender has no version of TLS or no ciphers in common with \
                                 this scheduler, which speaks TLS 1.2 and 1.3";

/// What is wrong with the certificate that the extender shows.
fn certificate(error: &CertificateError) -> String {
    use CertificateError as Is;
    match error {
        Is::UnknownIssuer => {
            "is issued by an authority that is not trusted: tlsConfig.caFile or caData has to hold \
             that authority"
                .to_owned()
        }
        Is::BadSignature => {
            "is not signed by the authority that it names: tlsConfig.caFile or caData may hold an \
             older authority of the same name"
                .to_owned()
        }
        Is::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            let presented = match presented.as_slice() {
                [] => "no name".to_owned(),
                names => names.iter().map(|name| plain(name)).collect::<Vec<_>>().join(", "),
            };
            format!(
                "is for {presented}, not for {expected}: if that is right, tlsConfig.serverName has \
                 to say which name it is for"
            )
        }
        Is::NotValidForName => {
            "is for another name: if that is right, tlsConfig.serverName has to \
                                say which name it is for"
                .to_owned()
        }
        Is::ExpiredContext { time, not_after } => {
            let ago = span(time.as_secs().saturating_sub(not_after.as_secs()));
            format!("has expired {ago} ago: it has to be renewed, unless a clock is wrong")
        }
        Is::Expired => "has expired: it has to be renewed, unless a clock is wrong".to_owned(),
        Is::NotValidYetContext { time, not_before } => {
            let still = span(not_before.as_secs().saturating_sub(time.as_secs()));
            format!("is not valid yet, only in {still}: a clock may be wrong")
        }
        Is::NotValidYet => "is not valid yet: a clock may be wrong".to_owned(),
        Is::InvalidPurpose | Is::InvalidPurposeContext { .. } => {
            "is not one for servers: it has to be issued for server authentication".to_owned()
        }
        Is::BadEncoding => "cannot be decoded".to_owned(),
        Is::Revoked => "is revoked".to_owned(),
        // The library tells this one by its name only.
        Is::Other(other) if other.to_string() == "CaUsedAsEndEntity" => {
            "is the one of an authority: the extender needs one that was issued to it, and \
             tlsConfig.caFile or caData the authority (insecure: true takes any, unchecked)"
                .to_owned()
        }
        other => format!("is not accepted: {other}"),
    }
}

/// A part of a name in a certificate, as the library writes it, without the
/// notation around it: `DnsName("a.example")` is `a.example`.
fn plain(name: &str) -> String {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.unwrap_or(name).trim_matches('"').to_owned()
}

/// What the extender does not like.
fn refusal(alert: AlertDescription) -> String {
    use AlertDescription as Says;
    let ours = "tlsConfig.certFile and keyFile, or certData and keyData, have to hold one that it \
                accepts";
    let why = match alert {
        Says::CertificateRequired | Says::NoCertificate => {
            return format!("the extender wants a certificate of this scheduler: {ours}");
        }
        Says::UnrecognisedName => {
            return "the extender does not know the name by which it is called: tlsConfig.serverName \
                    has to say one that it knows"
                .to_owned();
        }
        Says::ProtocolVersion | Says::InsufficientSecurity => return NOTHING_IN_COMMON.to_owned(),
        Says::HandshakeFailure => {
            return format!(
                "the extender refuses TLS: it has no ciphers in common with this scheduler, or \
                 wants a certificate of it: {ours}"
            );
        }
        Says::DecryptError => "a signature does not match",
        Says::UnknownCA => "it does not know who issued it",
        Says::CertificateExpired => "it has expired",
        Says::CertificateRevoked => "it is revoked",
        Says::UnsupportedCertificate => "it is of a kind that it does not take",
        Says::BadCertificate | Says::CertificateUnknown | Says::AccessDenied => {
            "it does not say why"
        }
        other => return format!("the extender ends TLS with the alert {other:?}"),
    };
    format!("the extender refuses the certificate of this scheduler, {why}: {ours}")
}

/// A span of time, roughly.
fn span(seconds: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("days", 86_400), ("hours", 3_600), ("minutes", 60)];
    match UNITS.iter().find(|(_, unit)| seconds >= 2 * unit) {
        Some((name, unit)) => format!("{} {name}", seconds / unit),
        None => format!("{seconds} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::{OtherError, PeerIncompatible};

    use super::*;

    fn at(seconds: u64) -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(seconds))
    }

    #[test]
    fn failures_of_tls_are_told_in_words_and_with_the_field_that_helps() {
        use CertificateError as Is;
        #[derive(Debug, thiserror::Error)]
        #[error("CaUsedAsEndEntity")]
        struct Authority;
        let named = |presented: &[&str]| Is::NotValidForNameContext {
            expected: ServerName::try_from("gpus.example").unwrap(),
            presented: presented.iter().map(|name| (*name).to_owned()).collect(),
        };
        let expired = Is::ExpiredContext { time: at(1_000_000), not_after: at(1_000_000 - 90_000) };
        let early = Is::NotValidYetContext { time: at(0), not_before: at(90 * 86_400) };
        for (error, expected) in [
            (
                Is::UnknownIssuer.into(),
                "an authority that is not trusted: tlsConfig.caFile or caData",
            ),
            (
                Is::BadSignature.into(),
                "not signed by the authority that it names: tlsConfig.caFile",
            ),
            (named(&["DnsName(\"a.example\")"]).into(), "is for a.example, not for gpus.example: "),
            (
                named(&[]).into(),
                "is for no name, not for gpus.example: if that is right, tlsConfig.serverName",
            ),
            (Is::NotValidForName.into(), "tlsConfig.serverName"),
            (expired.into(), "has expired 25 hours ago"),
            (Is::Expired.into(), "has expired: "),
            (early.into(), "is not valid yet, only in 90 days"),
            (Is::InvalidPurpose.into(), "server authentication"),
            (
                Is::Other(OtherError(Arc::new(Authority))).into(),
                "(insecure: true takes any, unchecked)",
            ),
            (
                Error::AlertReceived(AlertDescription::UnknownCA),
                "refuses the certificate of this scheduler, it does not know who issued it: tlsConfig.certFile and keyFile",
            ),
            (
                Error::AlertReceived(AlertDescription::CertificateRequired),
                "wants a certificate of this scheduler: tlsConfig.certFile",
            ),
            (Error::AlertReceived(AlertDescription::UnrecognisedName), "tlsConfig.serverName"),
            (Error::AlertReceived(AlertDescription::ProtocolVersion), "TLS 1.2 and 1.3"),
            (
                Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13),
                "TLS 1.2 and 1.3",
            ),
            (
                Error::InvalidMessage(InvalidMessage::InvalidContentType),
                "urlPrefix begins with http://",
            ),
        ] {
            // As the client wraps it.
            let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, error));
            let found = in_words(&wrapped).expect("it is TLS's");
            assert!(found.starts_with("the extender") && found.contains(expected), "{found}");
        }
        assert_eq!(in_words(&io::Error::other("no route to host")), None);
    }

    #[test]
    fn spans_have_one_unit() {
        for (seconds, expected) in
            [(5, "5 seconds"), (119, "119 seconds"), (120, "2 minutes"), (172_800, "2 days")]
        {
            assert_eq!(span(seconds), expected);
        }
    }
}
