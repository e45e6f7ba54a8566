//! Field selectors: `spec.nodeName=n1,status.phase!=Running`.

/// Terms that all have to hold. Which fields exist is for the kind to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// In the order of the text.
    pub terms: Vec<FieldTerm>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// The field: `metadata.name`.
    pub path: String,
    /// Whether the field must have the value, or must not have it.
    pub equal: bool,
    /// The value, without escapes.
    pub value: String,
}

impl FieldSelector {
    /// Reads the text form of query parameters. A backslash takes the meaning
    /// from a comma, an equals sign or a backslash in a value.
    ///
    /// # Errors
    /// When a term has no operator, or an escape is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let Some((path, equal, value)) = split_operator(part) else {
                return Err(format!("invalid selector: '{text}'; can't understand '{part}'"));
            };
            terms.push(FieldTerm { path: path.to_owned(), equal, value: unescape(value)? });
        }
        Ok(Self { terms })
    }

    /// Whether there is nothing to check.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether all terms hold for a function that gives a field's value (the
    /// empty text for an unset one).
    pub fn matches(&self, mut field: impl FnMut(&str) -> String) -> bool {
        self.terms.iter().all(|term| (field(&term.path) == term.value) == term.equal)
    }

    /// The value that the field must have, if a term says so: lets a list of
    /// one name be a look-up.
    pub fn required_value(&self, path: &str) -> Option<&str> {
        let mut terms = self.terms.iter();
        terms.find(|term| term.equal && term.path == path).map(|term| term.value.as_str())
    }
}

/// Splits at commas that no backslash precedes.
fn split_terms(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn split_operator(term: &str) -> Option<(&str, bool, &str)> {
    let mut escaped = false;
    for (at, c) in term.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        if c == '\\' {
            escaped = true;
            continue;
        }
        let rest = &term[at..];
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&term[..at], equal, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, String> {
    let mut text = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => text.push(c),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    ));
                }
            },
            ',' | '=' => {
                return Err(format!("invalid field selector: unescaped character in value: {c}"));
            }
            c => text.push(c),
        }
    }
    Ok(text)
}
