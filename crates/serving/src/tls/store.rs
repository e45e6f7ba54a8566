//! The certificates in force. They follow their files.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificate::PairText;
use super::{Certificate, SniPair, TlsError, TlsOptions, self_signed, sni};

/// Where the certificates come from, and those in force.
pub(crate) struct Store {
    provider: Arc<CryptoProvider>,
    bind: IpAddr,
    default: Source,
    sni: Vec<SniPair>,
    current: RwLock<Arc<Current>>,
}

enum Source {
    Files { certificate: PathBuf, key: PathBuf },
    Generated,
}

/// Certificates and what they were made of.
struct Current {
    default: Pair,
    sni: Vec<Pair>,
    /// Which of `sni` serves a name.
    by_name: BTreeMap<String, Arc<CertifiedKey>>,
}

#[derive(Clone)]
struct Pair {
    digest: Vec<u8>,
    made: Timestamp,
    key: Arc<CertifiedKey>,
}

impl Store {
    pub(super) fn load(
        options: &TlsOptions,
        bind: IpAddr,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TlsError> {
        let now = Timestamp::now();
        let default = match &options.certificate {
            Certificate::Files { certificate, key } => {
                Source::Files { certificate: certificate.clone(), key: key.clone() }
            }
            Certificate::Directory { directory, name } => in_directory(directory, name, bind, now)?,
            Certificate::InMemory => Source::Generated,
        };
        let first = match &default {
            Source::Files { certificate, key } => read(certificate, key, None, &provider, now)?,
            Source::Generated => generate(bind, &provider, now)?,
        };
        let mut pairs = Vec::new();
        for pair in &options.sni {
            pairs.push(read(&pair.certificate, &pair.key, None, &provider, now)?);
        }
        let current = Current::new(first, pairs, &options.sni);
        let sni = options.sni.clone();
        Ok(Self { provider, bind, default, sni, current: RwLock::new(Arc::new(current)) })
    }

    /// Looks at the files, and takes what has changed. What cannot be read
    /// leaves all as it was. Blocks.
    ///
    /// # Errors
    /// When something cannot be read.
    pub(crate) fn reload(&self, now: Timestamp) -> Result<bool, TlsError> {
        let old = self.current.read().clone();
        let mut changed = false;
        let default = match &self.default {
            Source::Files { certificate, key } => {
                read(certificate, key, Some(&old.default), &self.provider, now)?
            }
            Source::Generated
                if now.duration_since(old.default.made) > self_signed::RENEW_AFTER =>
            {
                generate(self.bind, &self.provider, now)?
            }
            Source::Generated => old.default.clone(),
        };
        changed |= default.digest != old.default.digest;
        let mut pairs = Vec::new();
        for (source, before) in self.sni.iter().zip(&old.sni) {
            let pair = read(&source.certificate, &source.key, Some(before), &self.provider, now)?;
            changed |= pair.digest != before.digest;
            pairs.push(pair);
        }
        if changed {
            *self.current.write() = Arc::new(Current::new(default, pairs, &self.sni));
        }
        Ok(changed)
    }

    fn choose(&self, name: Option<&str>, local: Option<IpAddr>) -> Arc<CertifiedKey> {
        let current = self.current.read().clone();
        let asked =
            name.map(str::to_owned).or_else(|| local.map(|ip| ip.to_canonical().to_string()));
        let found = asked.and_then(|name| current.named(&name.to_ascii_lowercase()));
        found.unwrap_or_else(|| current.default.key.clone())
    }
}

impl Current {
    /// Names that were given win over those of the certificates, and earlier
    /// pairs over later ones.
    fn new(default: Pair, pairs: Vec<Pair>, sources: &[SniPair]) -> Self {
        let mut by_name = BTreeMap::new();
        for (pair, source) in pairs.iter().zip(sources) {
            for name in &source.names {
                by_name.entry(name.clone()).or_insert_with(|| pair.key.clone());
            }
        }
        for (pair, source) in pairs.iter().zip(sources) {
            let Some(leaf) = pair.key.cert.first().filter(|_| source.names.is_empty()) else {
                continue;
            };
            for name in sni::names_of(leaf) {
                by_name.entry(name).or_insert_with(|| pair.key.clone());
            }
        }
        Self { default, sni: pairs, by_name }
    }

    /// The certificate of this very name, else of all names beside it.
    fn named(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let beside = || {
            let (_, rest) = name.split_once('.')?;
            self.by_name.get(&format!("*.{rest}"))
        };
        self.by_name.get(name).or_else(beside).cloned()
    }
}

/// Chooses for a connection that came to some address.
pub(super) struct ForAddress {
    store: Arc<Store>,
    local: Option<IpAddr>,
}

impl ForAddress {
    pub(super) fn new(store: Arc<Store>, local: Option<IpAddr>) -> Self {
        Self { store, local }
    }
}

impl std::fmt::Debug for ForAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForAddress").field("local", &self.local).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for ForAddress {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.store.choose(hello.server_name(), self.local))
    }
}

/// Reads a pair of files; the one before when nothing changed.
fn read(
    certificate: &Path,
    key: &Path,
    before: Option<&Pair>,
    provider: &CryptoProvider,
    now: Timestamp,
) -> Result<Pair, TlsError> {
    let text = PairText::read(certificate, key)?;
    let digest = text.digest();
    if let Some(before) = before.filter(|before| before.digest == digest) {
        return Ok(before.clone());
    }
    let key = text.pair(certificate, key, provider)?;
    Ok(Pair { digest, made: now, key: Arc::new(key) })
}

fn generate(bind: IpAddr, provider: &CryptoProvider, now: Timestamp) -> Result<Pair, TlsError> {
    let text = self_signed::generate(bind, now)?;
    let nowhere = Path::new("");
    let key = text.pair(nowhere, nowhere, provider).map_err(|error| match error {
        TlsError::Pair { source, .. } => TlsError::SelfSigned(source),
        other => other,
    })?;
    tracing::info!("serving with a self-signed certificate made in memory");
    Ok(Pair { digest: text.digest(), made: now, key: Arc::new(key) })
}

/// The files of that name; made when there are none.
fn in_directory(
    directory: &Path,
    name: &str,
    bind: IpAddr,
    now: Timestamp,
) -> Result<Source, TlsError> {
    let certificate = directory.join(format!("{name}.crt"));
    let key = directory.join(format!("{name}.key"));
    match (certificate.exists(), key.exists()) {
        (true, true) => {}
        (false, false) => {
            let text = self_signed::generate(bind, now)?;
            self_signed::write(&text, &certificate, &key)?;
            tracing::info!(certificate = %certificate.display(), "made a self-signed certificate");
        }
        (true, false) => return Err(TlsError::Half { present: certificate, missing: key }),
        (false, true) => return Err(TlsError::Half { present: key, missing: certificate }),
    }
    Ok(Source::Files { certificate, key })
}
