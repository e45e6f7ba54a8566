//! Where and how health, metrics and debug pages are served.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use steersman_serving::{Certificate, MinVersion, ServerOptions, SniPair, TlsOptions, Transport};

use super::value::{CommaList, address, file, given, port, truth};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Secure serving flags")]
pub(in crate::command::run) struct ServingFlags {
    /// The address to listen at; 0.0.0.0 and :: stand for all.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0", value_parser = address)]
    bind_address: IpAddr,
    /// Where to keep the certificate that is made when none is given, as
    /// kube-scheduler.crt and .key; without it, in memory.
    #[arg(long, value_name = "DIRECTORY", value_parser = file)]
    cert_dir: Option<PathBuf>,
    /// Serve HTTP/1.1 only.
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "false", value_parser = truth,
        action = clap::ArgAction::Set
    )]
    disable_http2_serving: bool,
    /// How many streams a client may open in an HTTP/2 connection; 0 for as
    /// many as is usual.
    #[arg(long, value_name = "N", default_value_t = 0)]
    http2_max_streams_per_connection: u32,
    /// Share the port with listeners at other addresses, and take it over from
    /// connections that are about to end.
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "false", value_parser = truth,
        action = clap::ArgAction::Set
    )]
    permit_address_sharing: bool,
    /// Share address and port with other processes that permit it too.
    #[arg(
        long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", default_value = "false", value_parser = truth,
        action = clap::ArgAction::Set
    )]
    permit_port_sharing: bool,
    /// The port to serve HTTPS at; 0 to serve nothing.
    #[arg(long, value_name = "PORT", default_value = "10259", value_parser = port,
        allow_negative_numbers = true)]
    secure_port: u16,
    /// The certificate to show, PEM, followed by those of its authorities.
    #[arg(long, value_name = "FILE", value_parser = file)]
    tls_cert_file: Option<PathBuf>,
    /// Cipher suites for TLS 1.2 by their standard names; those that are safe
    /// if not given.
    #[arg(long, value_name = "NAMES")]
    tls_cipher_suites: Vec<CommaList>,
    /// Key exchanges by their numbers in the TLS registry, in no order; those
    /// that are safe if not given.
    #[arg(long, value_name = "NUMBERS")]
    tls_curve_preferences: Vec<CommaList>,
    /// The oldest version of TLS to speak: VersionTLS12 or VersionTLS13.
    #[arg(long, value_name = "VERSION", default_value = "VersionTLS12")]
    tls_min_version: MinVersion,
    /// The key of --tls-cert-file, PEM.
    #[arg(long, value_name = "FILE", value_parser = file)]
    tls_private_key_file: Option<PathBuf>,
    /// A certificate to show to clients that ask for one of its names, or of
    /// the names after the colon, a star standing for the first part; may be
    /// repeated.
    #[arg(long, value_name = "CERT,KEY[:NAMES]")]
    tls_sni_cert_key: Vec<SniPair>,
}

/// What the files are called that --cert-dir keeps.
const CERTIFICATE: &str = "kube-scheduler";

impl ServingFlags {
    /// How to serve; `None` not to.
    ///
    /// # Errors
    /// When flags do not go together, also if nothing is to be served.
    pub(in crate::command::run) fn options(&self) -> anyhow::Result<Option<ServerOptions>> {
        let tls = TlsOptions {
            certificate: self.certificate()?,
            sni: self.tls_sni_cert_key.clone(),
            min_version: self.tls_min_version,
            cipher_suites: CommaList::all(&self.tls_cipher_suites),
            curves: self.curves()?,
            http2: !self.disable_http2_serving,
            ..TlsOptions::default()
        };
        let options = ServerOptions {
            transport: Transport::Tls(tls),
            http2_max_streams: self.http2_max_streams_per_connection,
            // `permit_address_sharing` stays on: the listeners of the reference
            // share addresses also without being asked to.
            permit_port_sharing: self.permit_port_sharing,
            ..ServerOptions::new(SocketAddr::new(self.bind_address, self.secure_port))
        };
        Ok((self.secure_port != 0).then_some(options))
    }

    fn certificate(&self) -> anyhow::Result<Certificate> {
        let owned = |path: &Path| path.to_owned();
        let files = [&self.tls_cert_file, &self.tls_private_key_file];
        match files.map(|file| given(file.as_ref()).map(owned)) {
            [Some(certificate), Some(key)] => Ok(Certificate::Files { certificate, key }),
            [None, None] => Ok(match given(self.cert_dir.as_ref()) {
                Some(directory) => Certificate::Directory {
                    directory: directory.to_owned(),
                    name: CERTIFICATE.to_owned(),
                },
                None => Certificate::InMemory,
            }),
            _ => bail!("--tls-cert-file and --tls-private-key-file must be given together"),
        }
    }

    /// The numbers of the key exchanges; none for the usual ones.
    fn curves(&self) -> anyhow::Result<Vec<u16>> {
        let number = |text: String| {
            let number: Option<u16> = text.trim().parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| {
                anyhow::anyhow!("--tls-curve-preferences: found {text:?}, allowed: 1 to 65535")
            })
        };
        CommaList::all(&self.tls_curve_preferences).into_iter().map(number).collect()
    }
}
