//! Corpus files: JSON lines, gzip or not.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use thiserror::Error;

/// One line of a corpus.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) source: Arc<Source>,
    /// Counted from 1.
    pub(crate) number: usize,
    pub(crate) text: Vec<u8>,
}

/// Where lines come from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// The file's name without its endings.
    pub(crate) family: String,
}

/// Why a corpus cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file cannot be opened, read or decompressed.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file has no line.
    #[error("{}: holds no line", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// The bytes every gzip file starts with.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads the lines of a file that are not blank.
pub(crate) fn read(path: &Path) -> Result<Vec<Line>, ReadError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let mut bytes = std::fs::read(path).map_err(failed)?;
    if bytes.starts_with(&GZIP_MAGIC) {
        let mut text = Vec::new();
        MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut text).map_err(failed)?;
        bytes = text;
    }
    let source = Arc::new(Source { path: path.to_owned(), family: family(path) });
    let lines: Vec<Line> = bytes
        .split(|byte| *byte == b'\n')
        .enumerate()
        .filter(|(_, text)| !text.trim_ascii().is_empty())
        .map(|(i, text)| Line { source: source.clone(), number: i + 1, text: text.to_vec() })
        .collect();
    if lines.is_empty() {
        return Err(ReadError::Empty { path: path.to_owned() });
    }
    Ok(lines)
}

/// `taints` for `dir/taints.jsonl.gz`.
fn family(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    if stem.is_empty() { name.to_owned() } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_is_the_files_name_without_endings() {
        for (path, expected) in [
            ("a.b/taints.jsonl.gz", "taints"),
            ("config.jsonl", "config"),
            ("plain", "plain"),
            ("plain.gz", "plain"),
            (".jsonl", ".jsonl"),
        ] {
            assert_eq!(family(Path::new(path)), expected, "{path}");
        }
    }
}
