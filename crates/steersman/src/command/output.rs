//! Writing for machines.

use std::io::Write;

use anyhow::Context;
use serde_json::Value;

/// Writes a value as JSON.
pub(super) fn write_json(out: &mut dyn Write, value: &Value) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value).context("cannot be written as JSON")?;
    writeln!(out, "{text}")?;
    Ok(())
}

/// Writes a value as YAML.
pub(super) fn write_yaml(out: &mut dyn Write, value: &Value) -> anyhow::Result<()> {
    let text = serde_saphyr::to_string(value).context("cannot be written as YAML")?;
    writeln!(out, "{}", text.trim_end())?;
    Ok(())
}
