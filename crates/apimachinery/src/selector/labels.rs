//! Label selectors: `app=web,tier in (a, b),!canary` and the object form with
//! `matchLabels` and `matchExpressions`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::lexer::{Lexer, Token};

/// Requirements that all have to hold. Without any, everything matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    Absent,
    GreaterThan(i64),
    LessThan(i64),
}

impl LabelSelector {
    /// Reads the text form of query parameters.
    ///
    /// # Errors
    /// Says what was found and what is expected, in the words of the API.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut lexer = Lexer::new(text);
        let mut requirements = Vec::new();
        if *lexer.peek() == Token::End {
            return Ok(Self::default());
        }
        loop {
            if !matches!(lexer.peek(), Token::Word(_) | Token::Not) {
                let found = lexer.peek().text();
                return Err(if requirements.is_empty() {
                    format!("found '{found}', expected: !, identifier, or 'end of string'")
                } else {
                    format!("found '{found}', expected: identifier after ','")
                });
            }
            let requirement = requirement(&mut lexer)
                .map_err(|error| format!("unable to parse requirement: {error}"))?;
            requirements.push(requirement);
            match lexer.take() {
                Token::End => return Ok(Self { requirements, nothing: false }),
                Token::Comma => {}
                other => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: ',' or 'end of string'"));
                }
            }
        }
    }

    /// A selector that nothing matches.
    pub fn nothing() -> Self {
        Self { requirements: Vec::new(), nothing: true }
    }

    /// Whether everything matches.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Whether the labels (`metadata.labels`, if any) match.
    pub fn matches(&self, labels: Option<&Value>) -> bool {
        !self.nothing
            && self.requirements.iter().all(|requirement| {
                let found = labels.and_then(|labels| labels.get(&requirement.key));
                requirement.test.holds(found.and_then(Value::as_str))
            })
    }
}

/// Reads a `metav1.LabelSelector`. A null selects nothing, an empty object
/// everything.
///
/// # Errors
/// When an expression has an unknown operator, or values where none belong.
pub fn from_value(selector: &Value) -> Result<LabelSelector, String> {
    if selector.is_null() {
        return Ok(LabelSelector::nothing());
    }
    let mut requirements = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten()
    {
        let value = value.as_str().unwrap_or_default().to_owned();
        let test = Test::In(BTreeSet::from([value]));
        requirements.push(Requirement { key: key.clone(), test });
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        requirements.push(from_expression(expression)?);
    }
    Ok(LabelSelector { requirements, nothing: false })
}

fn from_expression(expression: &Value) -> Result<Requirement, String> {
    let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
    let values: BTreeSet<String> = expression
        .get("values")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect();
    let operator = text("operator");
    let test = match operator {
        "In" | "NotIn" if values.is_empty() => {
            return Err("for 'in', 'notin' operators, values set can't be empty".to_owned());
        }
        "In" => Test::In(values),
        "NotIn" => Test::NotIn(values),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            return Err("values set must be empty for exists and does not exist".to_owned());
        }
        "Exists" => Test::Exists,
        "DoesNotExist" => Test::Absent,
        _ => return Err(format!("{operator:?} is not a valid label selector operator")),
    };
    Ok(Requirement { key: text("key").to_owned(), test })
}

impl Test {
    fn holds(&self, found: Option<&str>) -> bool {
        let number = || found.and_then(|text| text.parse::<i64>().ok());
        match self {
            Self::In(values) => found.is_some_and(|found| values.contains(found)),
            Self::NotIn(values) => found.is_none_or(|found| !values.contains(found)),
            Self::Exists => found.is_some(),
            Self::Absent => found.is_none(),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Self::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

fn requirement(lexer: &mut Lexer<'_>) -> Result<Requirement, String> {
    let absent = *lexer.peek() == Token::Not;
    if absent {
        lexer.take();
    }
    let key = match lexer.take() {
        Token::Word(word) => word,
        other => return Err(format!("found '{}', expected: identifier", other.text())),
    };
    check_key(&key)?;
    if absent {
        return Ok(Requirement { key, test: Test::Absent });
    }
    if matches!(lexer.peek(), Token::End | Token::Comma) {
        return Ok(Requirement { key, test: Test::Exists });
    }
    let test = match lexer.take() {
        Token::Operator("=" | "==") => Test::In(BTreeSet::from([one_value(lexer, &key)?])),
        Token::Operator("!=") => Test::NotIn(BTreeSet::from([one_value(lexer, &key)?])),
        Token::Operator(">") => Test::GreaterThan(bound(lexer, &key)?),
        Token::Operator(_) => Test::LessThan(bound(lexer, &key)?),
        Token::Word(word) if word == "in" => Test::In(several_values(lexer, &key)?),
        Token::Word(word) if word == "notin" => Test::NotIn(several_values(lexer, &key)?),
        other => {
            let found = other.text();
            return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt"));
        }
    };
    Ok(Requirement { key, test })
}

fn one_value(lexer: &mut Lexer<'_>, key: &str) -> Result<String, String> {
    if matches!(lexer.peek(), Token::End | Token::Comma) {
        return Ok(String::new());
    }
    match lexer.take() {
        Token::Word(word) => {
            check_value(key, &word)?;
            Ok(word)
        }
        other => Err(format!("found '{}', expected: identifier", other.text())),
    }
}

fn bound(lexer: &mut Lexer<'_>, key: &str) -> Result<i64, String> {
    let value = one_value(lexer, key)?;
    value.parse().map_err(|_| {
        format!(
            "values[0][{key}]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must \
             be an integer"
        )
    })
}

fn several_values(lexer: &mut Lexer<'_>, key: &str) -> Result<BTreeSet<String>, String> {
    match lexer.take() {
        Token::Open => {}
        other => return Err(format!("found: '{}' expected: '('", other.text())),
    }
    let mut values = BTreeSet::new();
    loop {
        // Nothing between two separators is the empty value.
        let value = match lexer.peek() {
            Token::Word(_) => lexer.take().text().to_owned(),
            _ => String::new(),
        };
        check_value(key, &value)?;
        values.insert(value);
        match lexer.take() {
            Token::Comma => {}
            Token::Close => return Ok(values),
            other => {
                return Err(format!("found '{}', expected: ',', ')' or identifier", other.text()));
            }
        }
    }
}

fn check_key(key: &str) -> Result<(), String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let prefix_is_fine = prefix.is_none_or(|prefix| {
        (1..=253).contains(&prefix.len())
            && prefix.split('.').all(|part| {
                is_framed(part, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), |c| c == '-')
            })
    });
    if prefix_is_fine && name.len() <= 63 && !name.is_empty() && is_label_text(name) {
        return Ok(());
    }
    Err(format!(
        "key: Invalid value: {key:?}: name part must consist of alphanumeric characters, '-', '_' \
         or '.', and must start and end with an alphanumeric character"
    ))
}

fn check_value(key: &str, value: &str) -> Result<(), String> {
    if value.len() <= 63 && (value.is_empty() || is_label_text(value)) {
        return Ok(());
    }
    Err(format!(
        "values[0][{key}]: Invalid value: {value:?}: a valid label must be an empty string or \
         consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character"
    ))
}

fn is_label_text(text: &str) -> bool {
    is_framed(text, |c| c.is_ascii_alphanumeric(), |c| matches!(c, '-' | '_' | '.'))
}

/// Whether the text is made of `outer` and `inner` and has `outer` at its ends.
fn is_framed(text: &str, outer: fn(char) -> bool, inner: fn(char) -> bool) -> bool {
    text.starts_with(outer) && text.ends_with(outer) && text.chars().all(|c| outer(c) || inner(c))
}
