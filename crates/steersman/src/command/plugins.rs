//! `steersman plugins`.

use std::io::{self, Write};

use clap::ValueEnum;
use serde_json::{Value, json};
use steersman_framework::point::ExtensionPoint;
use steersman_framework::registry::{Build, Descriptor, Registry};

use super::SUCCESS;
use super::output::write_json;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Table,
    Json,
}

pub(super) fn run(registry: &Registry, args: &Args) -> anyhow::Result<u8> {
    let mut out = io::stdout().lock();
    match args.output {
        Output::Json => write_json(&mut out, &registry.iter().map(row).collect())?,
        Output::Table => {
            let widest = registry.iter().map(|d| d.name.len()).max().unwrap_or(0);
            writeln!(out, "{:widest$}   WEIGHT   EXTENSION POINTS", "NAME")?;
            for plugin in registry.iter() {
                let weight = match plugin.default_weight {
                    Some(0) => "-".to_owned(),
                    Some(weight) => weight.to_string(),
                    None => "off".to_owned(),
                };
                let points = points(plugin).join(", ");
                let planned = if available(plugin) { "" } else { " (not available yet)" };
                writeln!(out, "{:widest$}   {weight:>6}   {points}{planned}", plugin.name)?;
            }
        }
    }
    Ok(SUCCESS)
}

fn available(plugin: &Descriptor) -> bool {
    matches!(plugin.build, Build::Ready(_))
}

fn points(plugin: &Descriptor) -> Vec<&'static str> {
    let served = ExtensionPoint::ALL.into_iter().filter(|p| plugin.points.contains(p.set()));
    served.map(ExtensionPoint::name).collect()
}

fn row(plugin: &Descriptor) -> Value {
    json!({
        "name": plugin.name,
        "available": available(plugin),
        "defaultWeight": plugin.default_weight,
        "extensionPoints": points(plugin),
        "argsKind": plugin.args.map(|args| args.kind),
    })
}
