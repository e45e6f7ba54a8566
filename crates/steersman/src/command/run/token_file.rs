//! Bearer tokens in files, which somebody replaces from time to time.
//!
//! The client library reads such files as they are. Files that people write
//! end in a line break, which no header may contain; the reference's client
//! takes the token without it, and so does this.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request};
use parking_lot::Mutex;
use tokio::time::Instant;

/// A token that is read anew once in a while.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    latest: Mutex<Latest>,
}

#[derive(Debug)]
struct Latest {
    header: HeaderValue,
    read: Instant,
}

/// How long a token is taken to be the one in the file: those of pods are
/// replaced long before they expire.
const FRESH: Duration = Duration::from_secs(10);

impl TokenFile {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let latest = Mutex::new(Latest { header: header(path)?, read: Instant::now() });
        Ok(Self { path: path.to_owned(), latest })
    }

    /// Says who we are.
    pub(super) fn sign<B>(&self, mut request: Request<B>) -> Request<B> {
        request.headers_mut().insert(AUTHORIZATION, self.header());
        request
    }

    fn header(&self) -> HeaderValue {
        let mut latest = self.latest.lock();
        if latest.read.elapsed() >= FRESH {
            latest.read = Instant::now();
            // A token that was there once may be good for a while yet.
            if let Ok(header) = header(&self.path) {
                latest.header = header;
            }
        }
        latest.header.clone()
    }
}

fn header(path: &Path) -> anyhow::Result<HeaderValue> {
    let name = path.display();
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read token file {name}"))?;
    let token = text.trim();
    if token.is_empty() {
        bail!("token file {name} is empty");
    }
    // The text is a secret: an error must not show it.
    let Ok(mut header) = HeaderValue::try_from(format!("Bearer {token}")) else {
        bail!("token file {name} holds no token");
    };
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(file: &TokenFile) -> String {
        let request = file.sign(Request::new(()));
        request.headers()[AUTHORIZATION].to_str().unwrap().to_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_read_without_the_line_break_and_anew_once_in_a_while() {
        let name = format!("steersman-token-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, "one\n").unwrap();
        let file = TokenFile::open(&path).unwrap();
        assert_eq!(sent(&file), "Bearer one");
        assert!(!format!("{file:?}").contains("one"), "a secret in a log");
        fs::write(&path, "two").unwrap();
        assert_eq!(sent(&file), "Bearer one");
        tokio::time::advance(FRESH).await;
        assert_eq!(sent(&file), "Bearer two");
        for bad in ["", " \n", "a\nb"] {
            fs::write(&path, bad).unwrap();
            let error = TokenFile::open(&path).unwrap_err().to_string();
            assert!(error.starts_with("token file ") && !error.contains("a\n"), "{error}");
            tokio::time::advance(FRESH).await;
            assert_eq!(sent(&file), "Bearer two", "the last good one");
        }
        fs::remove_file(&path).unwrap();
        assert!(TokenFile::open(&path).is_err());
        tokio::time::advance(FRESH).await;
        assert_eq!(sent(&file), "Bearer two");
    }
}
