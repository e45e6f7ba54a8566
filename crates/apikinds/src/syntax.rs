//! The syntax of names and values, with the reference's words for what is
//! wrong.

use steersman_apimachinery::error::FieldError;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  \
    or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
    'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
    '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with a text as a DNS label; nothing when empty.
pub(crate) fn dns_label(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, 63);
    if !is_dns_label(text) {
        wrong.push(LABEL.to_owned());
    }
    wrong
}

/// The same for DNS subdomains.
pub(crate) fn dns_subdomain(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, 253);
    if !text.split('.').all(is_dns_label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// The same for `[domain/]name`: label keys, resource names.
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [domain, name] => {
            if domain.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                let domain = dns_subdomain(domain);
                wrong.extend(domain.into_iter().map(|why| format!("prefix part {why}")));
            }
            name
        }
        _ => {
            return vec![
                "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and \
                 must start and end with an alphanumeric character with an optional DNS subdomain \
                 prefix and '/' (e.g. 'example.com/MyName')"
                    .to_owned(),
            ];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    }
    wrong.extend(too_long(name, 63).into_iter().map(|why| format!("name part {why}")));
    if !is_word(name) {
        wrong.push(QUALIFIED.to_owned());
    }
    wrong
}

/// The same for the values of labels.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, 63);
    if !text.is_empty() && !is_word(text) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

/// The names of ports: up to 15 lower case letters, digits and single dashes.
pub(crate) fn port_name(text: &str) -> Vec<String> {
    let mut wrong = too_long(text, 15);
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !text.bytes().all(allowed) {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// Whether a number is a port.
pub(crate) fn port_number(port: i64) -> Option<&'static str> {
    (!(1..=65_535).contains(&port)).then_some("must be between 1 and 65535, inclusive")
}

/// Makes errors about `field` of what is wrong with its text.
pub(crate) fn report(errors: &mut Vec<FieldError>, field: &str, found: &str, wrong: Vec<String>) {
    errors.extend(wrong.iter().map(|why| FieldError::invalid(field, found, why)));
}

fn too_long(text: &str, most: usize) -> Vec<String> {
    if text.len() > most { vec![format!("must be no more than {most} bytes")] } else { Vec::new() }
}

fn is_dns_label(text: &str) -> bool {
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.iter().all(|b| inner(b) || *b == b'-')
        && bytes.first().is_some_and(inner)
        && bytes.last().is_some_and(inner)
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::{dns_label, dns_subdomain, label_value, port_name, qualified_name};

    #[test]
    fn tells_good_names_from_bad_ones() {
        type Check = fn(&str) -> Vec<String>;
        let (long, too_long) = ("a".repeat(63), "a".repeat(64));
        let cases: [(Check, &[&str], &[&str]); 5] = [
            (dns_label, &["a", "a-1", "1", &long], &["", "A", "-a", "a.b", "a_b", &too_long]),
            (dns_subdomain, &["a", "a.b-c", "1.2"], &["", "a..b", ".a", "A.b", "a_b"]),
            (
                qualified_name,
                &["a", "A_b", "example.com/gpu", &long],
                &["", "/a", "a/", "a/b/c", "-a", "x_y/z", &too_long],
            ),
            (label_value, &["", "a", "A.b"], &["-a", "a b", &too_long]),
            (port_name, &["http", "a-1"], &["", "1", "a--b", "-a", "A", "sixteen-letters1"]),
        ];
        for (n, (check, good, bad)) in cases.into_iter().enumerate() {
            for text in good {
                assert_eq!(check(text), Vec::<String>::new(), "{n}: {text}");
            }
            for text in bad {
                assert!(!check(text).is_empty(), "{n}: {text}");
            }
        }
    }
}
