//! From paths to the bytes of files.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::source::{InputProblem, Source};

/// The path that means standard input.
pub const STDIN: &str = "-";
/// How standard input is called in messages.
const STDIN_NAME: &str = "standard input";
/// The files that are taken from a directory.
const EXTENSIONS: &[&str] = &["yaml", "yml", "json"];
/// Directories nest far less; a deeper one is a mistake.
const MAX_DEPTH: usize = 64;

/// A file that was read.
#[derive(Clone, Debug)]
pub struct InputFile {
    /// Its name in messages.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

impl InputFile {
    /// A file of that name and content.
    pub fn new(name: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: content.into() }
    }
}

/// Reads each path and hands what it holds to `take`: a file, every manifest
/// below a directory (sorted by path, hidden directories and links to
/// directories left out), or `stdin` for [`STDIN`]. A path named twice is read
/// once. What cannot be read is reported, and the rest is still read.
pub fn read_paths(
    paths: &[PathBuf],
    stdin: &mut dyn io::Read,
    problems: &mut Vec<InputProblem>,
    mut take: impl FnMut(InputFile, &mut Vec<InputProblem>),
) {
    let mut seen = BTreeSet::new();
    for path in paths.iter().filter(|path| seen.insert(path.as_path())) {
        if path.as_os_str() == STDIN {
            let mut bytes = Vec::new();
            match stdin.read_to_end(&mut bytes) {
                Ok(_) => take(InputFile::new(STDIN_NAME, bytes), problems),
                Err(error) => problems.push(unreadable(Path::new(STDIN_NAME), &error)),
            }
        } else if path.is_dir() {
            let found = Vec::new();
            let mut walk = Walk { found, problems };
            walk.directory(path, MAX_DEPTH);
            let found = walk.found;
            if found.is_empty() {
                let allowed = EXTENSIONS.join(", ");
                let message =
                    format!("the directory holds no manifest, allowed: files ending in {allowed}");
                problems.push(InputProblem::at(Source::file(name(path)), message));
            }
            for file in found {
                read_file(&file, problems, &mut take);
            }
        } else {
            read_file(path, problems, &mut take);
        }
    }
}

fn read_file(
    path: &Path,
    problems: &mut Vec<InputProblem>,
    take: &mut impl FnMut(InputFile, &mut Vec<InputProblem>),
) {
    match fs::read(path) {
        Ok(bytes) => take(InputFile::new(name(path), bytes), problems),
        Err(error) => problems.push(unreadable(path, &error)),
    }
}

/// Collects the manifests below a directory.
struct Walk<'a> {
    found: Vec<PathBuf>,
    problems: &'a mut Vec<InputProblem>,
}

impl Walk<'_> {
    fn directory(&mut self, path: &Path, depth: usize) {
        let entries = match fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
            Ok(entries) => entries,
            Err(error) => return self.problems.push(unreadable(path, &error)),
        };
        let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                let hidden =
                    path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
                if depth > 0 && !hidden && !path.is_symlink() {
                    self.directory(&path, depth - 1);
                }
            } else if path.extension().is_some_and(|e| EXTENSIONS.iter().any(|known| e == *known)) {
                self.found.push(path);
            }
        }
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn unreadable(path: &Path, error: &io::Error) -> InputProblem {
    InputProblem::at(Source::file(name(path)), format!("cannot be read: {error}"))
}
