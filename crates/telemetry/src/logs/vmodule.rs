//! `--vmodule`.

use std::fmt;
use std::str::FromStr;

use globset::{Glob, GlobMatcher};
use tracing::Metadata;

use super::parse::{ParseError, level};

/// Verbosities of single files and modules: `pattern=N,...`.
///
/// A pattern is a glob (`*`, `?`, `[a-z]`). It is compared with the name of the
/// source file without directory and `.rs` (klog's rule), with the last part of
/// the module path (since many files are called `mod.rs`), and with the whole
/// module path (`steersman_core::queue*`); `*` stands for any characters. The
/// first pattern that matches counts. It can only raise what `-v` says.
#[derive(Clone, Debug, Default)]
pub struct Vmodule(Vec<Entry>);

#[derive(Clone, Debug)]
struct Entry {
    pattern: GlobMatcher,
    level: u32,
}

impl Vmodule {
    /// The verbosity for an event; `None` where no pattern matches.
    pub(crate) fn level(&self, meta: &Metadata<'_>) -> Option<u32> {
        if self.0.is_empty() {
            return None;
        }
        self.level_of(meta.file().unwrap_or(""), meta.module_path().unwrap_or(meta.target()))
    }

    fn level_of(&self, file: &str, module: &str) -> Option<u32> {
        let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let file = file.strip_suffix(".rs").unwrap_or(file);
        let last = module.rsplit("::").next().unwrap_or(module);
        let matches = |entry: &&Entry| {
            [file, last, module].into_iter().any(|name| entry.pattern.is_match(name))
        };
        self.0.iter().find(matches).map(|entry| entry.level)
    }

    /// The highest verbosity that any pattern gives.
    pub(crate) fn max(&self) -> u32 {
        self.0.iter().map(|entry| entry.level).max().unwrap_or(0)
    }
}

impl FromStr for Vmodule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let failed = |item: &str| {
            let allowed = "a pattern=N with a glob and a number from 0 to 2147483647";
            ParseError::new("--vmodule", item, allowed)
        };
        text.split(',')
            .filter(|item| !item.is_empty())
            .map(|item| {
                let (pattern, number) = item.split_once('=').ok_or_else(|| failed(item))?;
                let level = level(number).ok_or_else(|| failed(item))?;
                let glob = Glob::new(pattern).map_err(|_| failed(item))?;
                match pattern {
                    "" => Err(failed(item)),
                    _ => Ok(Entry { pattern: glob.compile_matcher(), level }),
                }
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for Vmodule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Entry { pattern, level }) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{}={level}", pattern.glob().glob())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Vmodule;

    #[test]
    fn patterns_match_files_and_modules() {
        let driver = ("crates/runtime/src/driver.rs", "steersman_runtime::driver");
        let queue = ("crates/core/src/queue/mod.rs", "steersman_core::queue");
        let cases = [
            ("driver=4", driver, Some(4)),
            ("driver=4,driver=9", driver, Some(4)),
            ("driv*=5", driver, Some(5)),
            ("drive?=6", driver, Some(6)),
            ("[a-d]river=3", driver, Some(3)),
            ("[!a-d]river=3", driver, None),
            ("driver.rs=4", driver, None),
            ("runtime=4", driver, None),
            ("steersman_runtime*=2", driver, Some(2)),
            ("steersman_runtime::driver=2", driver, Some(2)),
            ("steersman_runtime=2", driver, None),
            ("queue=1", queue, Some(1)),
            ("mod=8", queue, Some(8)),
            ("foo=1,,queue=2,", queue, Some(2)),
            ("queue=0", queue, Some(0)),
            ("", queue, None),
        ];
        for (flag, (file, module), expected) in cases {
            let vmodule: Vmodule = flag.parse().unwrap();
            assert_eq!(vmodule.level_of(file, module), expected, "{flag} for {module}");
        }
    }

    #[test]
    fn what_is_not_pattern_and_number_is_refused() {
        let max = "m=2147483647";
        assert_eq!(max.parse::<Vmodule>().unwrap().to_string(), max);
        assert_eq!("a*=1,b=2,".parse::<Vmodule>().unwrap().to_string(), "a*=1,b=2");
        for flag in ["x", "=1", "x=", "x=-1", "x=+1", "x=2147483648", "x=1=2", "[x=1", "a=1,b"] {
            let error = flag.parse::<Vmodule>().unwrap_err().to_string();
            assert!(error.starts_with("--vmodule: "), "{flag}: {error}");
        }
        let error = "a=1,b".parse::<Vmodule>().unwrap_err().to_string();
        assert_eq!(
            error,
            "--vmodule: \"b\" is not a pattern=N with a glob and a number from 0 to 2147483647"
        );
    }
}
