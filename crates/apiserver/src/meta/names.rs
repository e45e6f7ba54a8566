//! What objects may be called.

use steersman_apimachinery::resource::Resource;

/// The letters of generated names: no vowels, so that they spell nothing.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
const LONGEST_BASE: usize = 63 - SUFFIX;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// The form that a resource's names have.
#[derive(Clone, Copy)]
enum Form {
    Subdomain,
    Label,
    Label1035,
    /// Anything that can stand in a path (RBAC's).
    PathSegment,
}

/// `base` with five letters behind it.
pub(crate) fn generated_name(base: &str, mut random: u64) -> String {
    let mut cut = base.len().min(LONGEST_BASE);
    while !base.is_char_boundary(cut) {
        cut -= 1;
    }
    let mut name = base[..cut].to_owned();
    for _ in 0..SUFFIX {
        let letters = ALPHABET.len() as u64;
        let letter = usize::try_from(random % letters).expect("there are few letters");
        name.push(char::from(ALPHABET[letter]));
        random /= letters;
    }
    name
}

/// What is wrong with a name; nothing if nothing is.
pub(crate) fn name_errors(resource: &Resource, name: &str) -> Vec<String> {
    match form(resource) {
        Form::Subdomain => limited(name, 253, is_subdomain(name), SUBDOMAIN),
        Form::Label => limited(name, 63, is_label(name), LABEL),
        Form::Label1035 => {
            let good = is_label(name) && !name.starts_with(|c: char| c.is_ascii_digit());
            limited(name, 63, good, LABEL_1035)
        }
        Form::PathSegment => path_segment_errors(name),
    }
}

/// Whether this is a DNS subdomain.
pub(super) fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

/// What is wrong with a subdomain.
pub(super) fn subdomain_errors(name: &str) -> Vec<String> {
    limited(name, 253, is_subdomain(name), SUBDOMAIN)
}

fn form(resource: &Resource) -> Form {
    match (resource.group, resource.plural) {
        ("", "namespaces") => Form::Label,
        ("", "services") => Form::Label1035,
        ("rbac.authorization.k8s.io", _) => Form::PathSegment,
        _ => Form::Subdomain,
    }
}

fn is_label(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
        && text.chars().all(|c| alphanumeric(c) || c == '-')
}

fn limited(text: &str, longest: usize, good: bool, rule: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > longest {
        errors.push(format!("must be no more than {longest} bytes"));
    }
    if !good {
        errors.push(rule.to_owned());
    }
    errors
}

fn path_segment_errors(name: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if name == "." || name == ".." {
        errors.push(format!("may not be '{name}'"));
    }
    for forbidden in ['/', '%'] {
        if name.contains(forbidden) {
            errors.push(format!("may not contain '{forbidden}'"));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::{generated_name, is_subdomain};

    #[test]
    fn generated_names_are_short_enough_and_speak_no_words() {
        let name = generated_name(&"x".repeat(100), 12_345_678);
        assert_eq!(name.len(), 63);
        assert_eq!(generated_name("web-", 0), "web-bbbbb");
        assert_ne!(generated_name("web-", 1), generated_name("web-", 2));
    }

    #[test]
    fn subdomains_are_labels_with_dots_between() {
        for good in ["a", "a-b", "a.b-c.d", "0", "9.a"] {
            assert!(is_subdomain(good), "{good}");
        }
        for bad in ["", ".", "a.", ".a", "a..b", "-a", "a-", "A", "a_b", "a b", "ä"] {
            assert!(!is_subdomain(bad), "{bad}");
        }
    }
}
