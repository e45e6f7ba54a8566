//! Columns of `kubectl get events`.

use jiff::Timestamp;
use serde_json::Value;
use steersman_apimachinery::rules::{Column, human_duration};

use crate::fields::{at, field, number, text};
use crate::simple::name_cell;

/// The columns.
pub(super) const COLUMNS: &[Column] = &[
    Column::text("Last Seen", "Time since it was seen last"),
    Column::text("Type", "Normal or Warning"),
    Column::text("Reason", "What happened, in a word"),
    Column::text("Object", "What it happened to"),
    Column::text("Subobject", "What part of it").wide(),
    Column::text("Source", "Who says so").wide(),
    Column::text("Message", "What happened"),
    Column::text("First Seen", "Time since it was seen first").wide(),
    Column::number("Count", "How often it was seen").wide(),
    Column { priority: 1, ..Column::name() },
];

/// The cells of an event of the core group.
pub(super) fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let since = |pointer: &str| {
        let time = text(event, pointer).parse::<Timestamp>().ok()?;
        Some(human_duration(now.as_second() - time.as_second()))
    };
    let first = since("/firstTimestamp").or_else(|| since("/eventTime"));
    let mut last = since("/lastTimestamp").or_else(|| first.clone());
    let mut count = number(event, "/count").filter(|count| *count != 0).unwrap_or(1);
    if at(event, "/series").is_some() {
        last = since("/series/lastObservedTime");
        count = number(event, "/series/count").unwrap_or(0);
    }
    let unknown = || "<unknown>".to_owned();
    let kind = text(event, "/involvedObject/kind").to_lowercase();
    let object = match text(event, "/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    vec![
        last.unwrap_or_else(unknown).into(),
        field(event, "type").into(),
        field(event, "reason").into(),
        object.into(),
        text(event, "/involvedObject/fieldPath").into(),
        source(event).into(),
        field(event, "message").trim().into(),
        first.unwrap_or_else(unknown).into(),
        count.into(),
        name_cell(event),
    ]
}

fn source(event: &Value) -> String {
    let or = |pointer: &str, other: &str| match text(event, pointer) {
        "" => field(event, other).to_owned(),
        text => text.to_owned(),
    };
    let component = or("/source/component", "reportingComponent");
    let host = or("/source/host", "reportingInstance");
    if host.is_empty() { component } else { format!("{component}, {host}") }
}
