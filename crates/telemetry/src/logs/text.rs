//! klog's text format: a header, the message in quotes, and `key="value"`.

use std::fmt::Write;

use jiff::Zoned;

use super::line::{Line, Severity, Value};
use super::quote::{quoted, value};

/// The line, with its end.
pub(super) fn text(line: &Line, now: &Zoned, pid: u32) -> String {
    let mut out = String::with_capacity(160);
    header(&mut out, line, now, pid);
    quoted(&mut out, &line.message);
    if let Some(err) = &line.err {
        out.push_str(" err");
        value(&mut out, err);
    }
    for (name, field) in &line.fields {
        out.push(' ');
        out.push_str(name);
        match field {
            Value::Bare(text) => {
                out.push('=');
                out.push_str(text);
            }
            Value::Text(text) => value(&mut out, text),
        }
    }
    out.push('\n');
    out
}

/// `Lmmdd hh:mm:ss.uuuuuu pid file:line] `, the process padded to seven.
fn header(out: &mut String, line: &Line, now: &Zoned, pid: u32) {
    let letter = match line.severity {
        Severity::Info => 'I',
        Severity::Warning => 'W',
        Severity::Error => 'E',
    };
    let micros = now.subsec_nanosecond() / 1000;
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "{letter}{:02}{:02} {:02}:{:02}:{:02}.{micros:06} {pid:>7} {}:{}] ",
        now.month(),
        now.day(),
        now.hour(),
        now.minute(),
        now.second(),
        line.base_name(),
        line.number,
    );
}
