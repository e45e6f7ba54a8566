//! Reading a KubeSchedulerConfiguration from a file, with every problem on
//! stderr.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};
use steersman_config::Config;
use steersman_framework::registry::Registry;
use steersman_sim::report::printable;

/// The configuration and the text it was read from; the default one, and no
/// text, without a file.
pub(super) fn load(
    file: Option<&Path>,
    registry: &Registry,
) -> anyhow::Result<(Config, Option<String>)> {
    let Some(file) = file else { return Ok((Config::default_for(registry)?, None)) };
    let name = file.display();
    let bytes = fs::read(file).with_context(|| format!("cannot read {name}"))?;
    let Ok(text) = String::from_utf8(bytes) else { bail!("{name} is not UTF-8 text") };
    let loaded = match steersman_config::load(&text, registry) {
        Ok(loaded) => loaded,
        Err(errors) => {
            for problem in errors.problems() {
                say("error", &format_args!("{name}: {problem}"));
            }
            bail!("{name} is not a usable configuration");
        }
    };
    for notice in &loaded.notices {
        say("note", &format_args!("{name}: {notice}"));
    }
    Ok((loaded.config, Some(text)))
}

/// Says something on stderr. Where that cannot be written to, the work is no
/// less worth doing.
pub(super) fn say(what: &str, text: &dyn Display) {
    let _ = writeln!(io::stderr(), "{what}: {}", printable(&text.to_string()));
}
