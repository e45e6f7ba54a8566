//! An event taken apart, before it becomes a line.

use std::error::Error;
use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata};

/// klog's severities, as far as we have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    pub(super) fn of(level: Level) -> Self {
        match level {
            Level::ERROR => Self::Error,
            Level::WARN => Self::Warning,
            _ => Self::Info,
        }
    }
}

/// A field's value.
#[derive(Debug)]
pub(super) enum Value {
    /// A number or a truth value, in a form that JSON knows as well.
    Bare(String),
    /// Anything else.
    Text(String),
}

/// What a line says, besides when.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) severity: Severity,
    /// The source file, as the compiler was given it.
    pub(super) file: &'static str,
    pub(super) number: u32,
    pub(super) verbosity: u32,
    pub(super) message: String,
    pub(super) err: Option<String>,
    pub(super) fields: Vec<(&'static str, Value)>,
}

impl Line {
    pub(super) fn of(event: &Event<'_>) -> Self {
        let meta = event.metadata();
        let mut line = Self {
            severity: Severity::of(*meta.level()),
            file: meta.file().unwrap_or("???"),
            number: meta.line().unwrap_or(1),
            verbosity: verbosity_of(*meta.level()),
            message: String::new(),
            err: None,
            fields: Vec::new(),
        };
        event.record(&mut line);
        line
    }

    /// The last part of the file's path.
    pub(super) fn base_name(&self) -> &'static str {
        self.file.rsplit(['/', '\\']).next().unwrap_or(self.file)
    }

    /// The last two parts of the file's path.
    pub(super) fn short_path(&self) -> &'static str {
        let mut slashes = self.file.rmatch_indices(['/', '\\']);
        match slashes.nth(1) {
            Some((at, _)) => &self.file[at + 1..],
            None => self.file,
        }
    }

    fn set(&mut self, field: &Field, value: Value) {
        // Raw identifiers keep their mark in field names.
        let name = field.name();
        let name = name.strip_prefix("r#").unwrap_or(name);
        match (name, value) {
            ("message", Value::Text(text) | Value::Bare(text)) => self.message = text,
            ("err" | "error", Value::Text(text) | Value::Bare(text)) => self.err = Some(text),
            (name, value) => self.fields.push((name, value)),
        }
    }
}

/// The verbosity of a level, without a field that says more.
pub(super) fn verbosity_of(level: Level) -> u32 {
    match level {
        Level::ERROR | Level::WARN | Level::INFO => 0,
        Level::DEBUG => 4,
        Level::TRACE => 7,
    }
}

/// The name of the field that holds a klog verbosity.
pub(super) const VERBOSITY: &str = "v";

/// The verbosity of an event, its field included.
pub(super) fn verbosity_with_field(event: &Event<'_>) -> u32 {
    struct Find(u32);
    impl Visit for Find {
        fn record_u64(&mut self, field: &Field, value: u64) {
            if field.name() == VERBOSITY {
                self.0 = self.0.max(u32::try_from(value).unwrap_or(u32::MAX));
            }
        }
        fn record_i64(&mut self, field: &Field, value: i64) {
            self.record_u64(field, u64::try_from(value).unwrap_or(0));
        }
        fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
    }
    let mut find = Find(verbosity_of(*event.metadata().level()));
    event.record(&mut find);
    find.0
}

/// Whether events of this kind can have a verbosity of their own.
pub(super) fn has_verbosity(meta: &Metadata<'_>) -> bool {
    meta.fields().field(VERBOSITY).is_some()
}

impl Visit for Line {
    fn record_f64(&mut self, field: &Field, value: f64) {
        let text = value.to_string();
        self.set(field, if value.is_finite() { Value::Bare(text) } else { Value::Text(text) });
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.record_u64(field, value),
            Err(_) => self.set(field, Value::Bare(value.to_string())),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == VERBOSITY {
            let value = u32::try_from(value).unwrap_or(u32::MAX);
            self.verbosity = self.verbosity.max(value);
        } else {
            self.set(field, Value::Bare(value.to_string()));
        }
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.set(field, Value::Bare(value.to_string()));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.set(field, Value::Bare(value.to_string()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Value::Bare(value.to_string()));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, Value::Text(value.to_owned()));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(cause) = source {
            // Writing to a string does not fail.
            let _ = write!(text, ": {cause}");
            source = cause.source();
        }
        self.set(field, Value::Text(text));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, Value::Text(format!("{value:?}")));
    }
}
