//! Strings and values as klog's text format writes them.

use std::fmt::Write;

/// Appends `text` in quotes, with Go's escapes: what cannot be printed becomes
/// `\n`, `\x00`, `\u200b` or `\U0001f600`-like.
pub(super) fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c => escaped(out, u32::from(c)),
        }
    }
    out.push('"');
}

/// Whether Go would print the character, too. Marks that combine with the
/// character before are printed by Go; Rust's escapes differ there.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // A mark that follows another character is not escaped.
    let text: String = [' ', c].into_iter().collect();
    !text.escape_debug().any(|c| c == '\\')
}

fn escaped(out: &mut String, code: u32) {
    // Writing to a string does not fail.
    let _ = match code {
        0..=0x7f => write!(out, "\\x{code:02x}"),
        0x80..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Appends `=` and a text value. Several lines are not quoted but indented by a
/// tab, between `<` and `>`; unless other control characters are among them,
/// with which somebody's name could write anywhere on a terminal.
pub(super) fn value(out: &mut String, text: &str) {
    out.push('=');
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains('\n') || text.contains(is_odd) {
        return quoted(out, text);
    }
    out.push_str("<\n");
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\t');
        out.push_str(line);
        out.push('\n');
    }
    out.push_str(" >");
}

#[cfg(test)]
mod tests {
    use super::{quoted, value};

    #[test]
    fn strings_are_quoted_as_go_does() {
        let cases = [
            ("plain", r#""plain""#),
            ("say \"hi\" \\o/", r#""say \"hi\" \\o/""#),
            ("tab\tbell\x07\x0b", r#""tab\tbell\a\v""#),
            ("nul\0 del\x7f", r#""nul\x00 del\x7f""#),
            ("grüße 世界 😀", "\"grüße 世界 😀\""),
            ("e\u{301}", "\"e\u{301}\""),
            ("zero\u{200b}width", r#""zero\u200bwidth""#),
            ("no\u{a0}break", r#""no\u00a0break""#),
            ("tag\u{e0001}", r#""tag\U000e0001""#),
        ];
        for (text, expected) in cases {
            let mut out = String::new();
            quoted(&mut out, text);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn several_lines_are_indented() {
        let cases = [
            ("a\nb", "=<\n\ta\n\tb\n >"),
            ("a\n", "=<\n\ta\n >"),
            ("a", "=\"a\""),
            ("a\n\x1b[2Jb\r", r#"="a\n\x1b[2Jb\r""#),
        ];
        for (text, expected) in cases {
            let mut out = String::new();
            value(&mut out, text);
            assert_eq!(out, expected);
        }
    }
}
