//! A certificate that vouches for itself, for when none is given.

use std::io::Write;
use std::net::IpAddr;
use std::path::Path;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

use super::TlsError;
use super::certificate::PairText;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How long it is good, as the reference's is.
const GOOD_FOR: SignedDuration = SignedDuration::from_hours(365 * 24);
/// The age at which one in memory is replaced.
pub(super) const RENEW_AFTER: SignedDuration = SignedDuration::from_hours(180 * 24);

/// Makes a certificate for this machine, and the address unless that is any.
/// The authority's certificate is below it; its key is forgotten.
pub(super) fn generate(bind: IpAddr, now: Timestamp) -> Result<PairText, TlsError> {
    try_generate(bind, now).map_err(TlsError::Generate)
}

/// Writes both files; only the owner may read the key.
pub(super) fn write(text: &PairText, certificate: &Path, key: &Path) -> Result<(), TlsError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::Write { path, source }
    };
    if let Some(directory) = certificate.parent() {
        std::fs::create_dir_all(directory).map_err(fail(directory))?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    let mut file = options.open(certificate).map_err(fail(certificate))?;
    file.write_all(&text.certificate).map_err(fail(certificate))?;
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(key).map_err(fail(key))?;
    file.write_all(&text.key).map_err(fail(key))
}

fn try_generate(bind: IpAddr, now: Timestamp) -> Result<PairText, rcgen::Error> {
    let stamp = now.as_second();
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.distinguished_name = named(&format!("localhost-ca@{stamp}"));
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    set_validity(&mut authority, now);
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();

    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let bind = bind.to_canonical();
    if !bind.is_unspecified() && !names.contains(&bind.to_string()) {
        names.push(bind.to_string());
    }
    let mut server = CertificateParams::new(names)?;
    server.distinguished_name = named(&format!("localhost@{stamp}"));
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    set_validity(&mut server, now);
    let key = KeyPair::generate()?;
    let pem = server.signed_by(&key, &Issuer::new(authority, authority_key))?.pem();
    Ok(PairText {
        certificate: format!("{pem}{authority_pem}").into_bytes(),
        key: key.serialize_pem().into_bytes(),
    })
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// Sets from when and until when it is good, to the day.
fn set_validity(params: &mut CertificateParams, now: Timestamp) {
    let ymd = |time: Timestamp| {
        let date = time.to_zoned(TimeZone::UTC).date();
        let part = |number: i8| u8::try_from(number).expect("months and days are positive");
        rcgen::date_time_ymd(i32::from(date.year()), part(date.month()), part(date.day()))
    };
    params.not_before = ymd(now - DAY);
    params.not_after = ymd(now + GOOD_FOR);
}
