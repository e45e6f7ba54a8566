//! Reading a KubeSchedulerConfiguration from a file, with every problem on
//! stderr.

use std::fmt::Display;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use steersman_config::{Config, ConfigErrors, FeatureGates, Loaded, Options};
use steersman_framework::registry::Registry;
use steersman_sim::report::printable;

/// The configuration and the text it was read from; the default one, and no
/// text, without a file.
pub(super) fn load(
    file: Option<&Path>,
    registry: &Registry,
) -> anyhow::Result<(Config, Option<String>)> {
    let Some(file) = file else { return Ok((Config::default_for(registry)?, None)) };
    let text = read_text(file)?;
    let loaded = load_text(file, &text, registry, &FeatureGates::default())?;
    Ok((loaded.config, Some(text)))
}

/// Reads a configuration that stood in `file`; says its notices.
pub(super) fn load_text(
    file: &Path,
    text: &str,
    registry: &Registry,
    gates: &FeatureGates,
) -> anyhow::Result<Loaded> {
    let options = Options { gates: gates.clone(), ..Options::default() };
    let loaded = steersman_config::load_with(text, registry, &options);
    let loaded = loaded.or_else(|errors| refuse(file, &errors))?;
    for notice in &loaded.notices {
        say("note", &format_args!("{}: {notice}", file.display()));
    }
    Ok(loaded)
}

/// Says what is wrong with a file, and that it cannot be used.
pub(super) fn refuse<T>(file: &Path, errors: &ConfigErrors) -> anyhow::Result<T> {
    let name = file.display();
    for problem in errors.problems() {
        say("error", &format_args!("{name}: {problem}"));
    }
    bail!("{name} is not a usable configuration")
}

/// The text of a file, or of stdin for `-`.
pub(super) fn read_text(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        return read_all(&mut io::stdin().lock(), "stdin");
    }
    read_file(file)
}

/// The text of a file.
pub(super) fn read_file(file: &Path) -> anyhow::Result<String> {
    let name = file.display().to_string();
    let mut opened = fs::File::open(file).with_context(|| format!("cannot read {name}"))?;
    read_all(&mut opened, &name)
}

/// The largest sensible configuration is far below. Devices have no end.
const MAX_BYTES: u64 = 16 << 20;

fn read_all(from: &mut dyn Read, name: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let read = from.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("{name} has more than {} MiB, which no configuration needs", MAX_BYTES >> 20);
    }
    String::from_utf8(bytes).map_err(|_| anyhow!("{name} is not UTF-8 text"))
}

/// Says something on stderr. Where that cannot be written to, the work is no
/// less worth doing.
pub(super) fn say(what: &str, text: &dyn Display) {
    let _ = writeln!(io::stderr(), "{what}: {}", printable(&text.to_string()));
}
