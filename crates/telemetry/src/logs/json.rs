//! component-base's JSON format: one object a line, with `ts` (milliseconds
//! since 1970), `caller`, `msg`, `v` except for errors, the fields, and `err`.

use jiff::Zoned;

use super::line::{Line, Severity, Value};

/// Fields that hold objects, written `namespace/name`.
const REFERENCES: [&str; 3] = ["pod", "preemptor", "victim"];

/// The line, with its end.
pub(super) fn json(line: &Line, now: &Zoned) -> String {
    let mut out = String::with_capacity(200);
    out.push_str("{\"ts\":");
    out.push_str(&millis(now));
    out.push_str(",\"caller\":");
    string(&mut out, &format!("{}:{}", line.short_path(), line.number));
    out.push_str(",\"msg\":");
    string(&mut out, &line.message);
    if line.severity != Severity::Error {
        out.push_str(",\"v\":");
        out.push_str(&line.verbosity.to_string());
    }
    for (name, value) in &line.fields {
        out.push(',');
        string(&mut out, name);
        out.push(':');
        match value {
            Value::Bare(text) => out.push_str(text),
            Value::Text(text) => match reference(name, text) {
                Some((namespace, name)) => object(&mut out, namespace, name),
                None => string(&mut out, text),
            },
        }
    }
    if let Some(err) = &line.err {
        out.push_str(",\"err\":");
        string(&mut out, err);
    }
    out.push_str("}\n");
    out
}

/// Milliseconds as a floating-point number, as the reference computes them.
fn millis(now: &Zoned) -> String {
    let nanos = now.timestamp().as_nanosecond() as f64;
    (nanos / 1e6).to_string()
}

fn reference<'a>(field: &str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let (namespace, name) = text.split_once('/')?;
    let is_one = REFERENCES.contains(&field) && !namespace.is_empty() && !name.is_empty();
    (is_one && !name.contains('/')).then_some((namespace, name))
}

fn object(out: &mut String, namespace: &str, name: &str) {
    out.push_str("{\"name\":");
    string(out, name);
    out.push_str(",\"namespace\":");
    string(out, namespace);
    out.push('}');
}

/// Appends a JSON string.
fn string(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).expect("a string is always valid JSON"));
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::millis;

    #[test]
    fn times_are_milliseconds() {
        let cases = [
            (123, "0.000123"),
            (0, "0"),
            (1_000_000, "1"),
            (1_580_306_777_047_280_000, "1580306777047.28"),
        ];
        for (nanos, expected) in cases {
            let time = Timestamp::from_nanosecond(nanos).unwrap().to_zoned(TimeZone::UTC);
            assert_eq!(millis(&time), expected);
        }
    }
}
