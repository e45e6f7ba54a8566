//! The syntax of names that Kubernetes qualifies by a domain: label keys,
//! resource names. Source: the documentation of labels ("syntax and character
//! set").

const MAX_NAME: usize = 63;
const MAX_DOMAIN: usize = 253;

/// Checks `[domain/]name`, the syntax of label keys and resource names.
///
/// # Errors
/// What is allowed instead.
pub fn check_qualified_name(text: &str) -> Result<(), &'static str> {
    let name = match text.split_once('/') {
        Some((domain, name)) => {
            check_domain(domain)?;
            name
        }
        None => text,
    };
    if is_name(name) {
        return Ok(());
    }
    Err("an optional DNS domain and '/', then 1 to 63 letters, digits, '-', '_' or '.', with a \
         letter or digit at both ends")
}

/// Checks the value of a label.
///
/// # Errors
/// What is allowed instead.
pub fn check_label_value(text: &str) -> Result<(), &'static str> {
    if text.is_empty() || is_name(text) {
        return Ok(());
    }
    Err("nothing, or 1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends")
}

/// Checks a DNS subdomain.
fn check_domain(domain: &str) -> Result<(), &'static str> {
    let is_label = |label: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = label.as_bytes();
        bytes.iter().all(|b| inner(*b) || *b == b'-')
            && bytes.first().is_some_and(|b| inner(*b))
            && bytes.last().is_some_and(|b| inner(*b))
    };
    if domain.len() <= MAX_DOMAIN && domain.split('.').all(is_label) {
        return Ok(());
    }
    Err("before the '/' a DNS domain: up to 253 lower case letters, digits, '-' and '.', with a \
         letter or digit at both ends of each part")
}

fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.len() <= MAX_NAME
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names() {
        let (long, too_long) = ("a".repeat(63), "a".repeat(64));
        for good in ["cpu", "a", "A.b_c-9", "example.com/gpu", "x-1.y/Z", &long] {
            assert_eq!(check_qualified_name(good), Ok(()), "{good}");
        }
        let long_domain = format!("{}/x", "a.".repeat(127) + "aa");
        for bad in [
            "",
            "/",
            "a/",
            "/a",
            "a/b/c",
            "-a",
            "a-",
            "bad name",
            "A.com/x",
            "a..b/x",
            ".a/x",
            "é",
            &too_long,
            &long_domain,
        ] {
            assert!(check_qualified_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn label_values() {
        for good in ["", "a", "A.b_c-9"] {
            assert_eq!(check_label_value(good), Ok(()), "{good}");
        }
        for bad in ["a/b", "-", "a b", "_a"] {
            assert!(check_label_value(bad).is_err(), "{bad}");
        }
    }
}
