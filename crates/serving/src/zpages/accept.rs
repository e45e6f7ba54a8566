//! Which format of a z-page the reader wants.

use crate::page::PageError;

/// The group of the structured forms.
const GROUP: &str = "config.k8s.io";

/// A format in which a z-page is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Structured { encoding: Encoding, version: Version },
}

/// How a structured form is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
}

/// Versions of the structured form; their fields are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1Alpha1,
    V1Beta1,
}

impl Version {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1Alpha1 => "config.k8s.io/v1alpha1",
            Self::V1Beta1 => "config.k8s.io/v1beta1",
        }
    }
}

/// The best of what is accepted; text when nothing is said.
///
/// # Errors
/// When none of it is served.
pub(crate) fn negotiate(accept: Option<&str>, kind: &str) -> Result<Format, PageError> {
    let accept = accept.unwrap_or_default();
    if accept.trim().is_empty() {
        return Ok(Format::Text);
    }
    let mut clauses: Vec<Clause> = accept.split(',').filter_map(Clause::parse).collect();
    // A stable sort: among equally welcome ones the first counts.
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
        .iter()
        .filter(|clause| clause.quality > 0.0)
        .find_map(|clause| clause.format(kind))
        .ok_or_else(|| PageError::NotAcceptable(allowed(kind)))
}

fn allowed(kind: &str) -> String {
    let structured = |media| format!("{media};g={GROUP};v=v1beta1;as={kind}");
    format!("text/plain, {}, {}", structured("application/json"), structured("application/yaml"))
}

/// One alternative of an `Accept` header.
#[derive(Debug, Default)]
struct Clause<'a> {
    main: &'a str,
    sub: &'a str,
    quality: f32,
    group: Option<&'a str>,
    version: Option<&'a str>,
    kind: Option<&'a str>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (main, sub) = parts.next()?.split_once('/')?;
        let mut clause = Self { main, sub, quality: 1.0, ..Self::default() };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key.trim() {
                "q" => {
                    clause.quality = value.trim().parse().ok().filter(|q: &f32| q.is_finite())?
                }
                "g" => clause.group = Some(value.trim()),
                "v" => clause.version = Some(value.trim()),
                "as" => clause.kind = Some(value.trim()),
                _ => {}
            }
        }
        Some(clause)
    }

    fn format(&self, kind: &str) -> Option<Format> {
        match (self.group, self.version, self.kind) {
            (None, None, None) => {
                matches!((self.main, self.sub), ("text", "plain" | "*") | ("*", "*"))
                    .then_some(Format::Text)
            }
            (Some(GROUP), Some(version), Some(asked)) if asked == kind => {
                let version = match version {
                    "v1alpha1" => Version::V1Alpha1,
                    "v1beta1" => Version::V1Beta1,
                    _ => return None,
                };
                let encoding = match (self.main, self.sub) {
                    ("application", "json" | "*") | ("*", "*") => Encoding::Json,
                    ("application", "yaml") => Encoding::Yaml,
                    _ => return None,
                };
                Some(Format::Structured { encoding, version })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &str, expected: Option<Format>) {
        assert_eq!(negotiate(Some(accept), "Statusz").ok(), expected, "{accept}");
    }

    fn structured(encoding: Encoding, version: Version) -> Option<Format> {
        Some(Format::Structured { encoding, version })
    }

    #[test]
    fn text_is_what_anybody_gets() {
        assert_eq!(negotiate(None, "Statusz").ok(), Some(Format::Text));
        for accept in ["", " ", "text/plain", "text/*", "*/*", "text/plain;charset=utf-8"] {
            check(accept, Some(Format::Text));
        }
        check("application/json;v=foo;g=config.k8s.io;as=Statusz,*/*", Some(Format::Text));
    }

    #[test]
    fn the_structured_form_must_be_named_in_full() {
        let beta = structured(Encoding::Json, Version::V1Beta1);
        check("application/json;v=v1beta1;g=config.k8s.io;as=Statusz", beta);
        check("application/json", None);
        check("application/json;v=v1beta1;g=config.k8s.io", None);
        check("application/json;v=v1beta1;g=config.k8s.io;as=Flagz", None);
        check("application/json;v=v1;g=config.k8s.io;as=Statusz", None);
        check("application/xml", None);
        check("nonsense", None);
        check(
            "application/yaml;v=v1alpha1;g=config.k8s.io;as=Statusz",
            structured(Encoding::Yaml, Version::V1Alpha1),
        );
    }

    #[test]
    fn the_most_welcome_wins_then_the_first() {
        check(
            "application/json;g=config.k8s.io;v=v1alpha1;as=Statusz,\
             application/json;g=config.k8s.io;v=v1beta1;as=Statusz",
            structured(Encoding::Json, Version::V1Alpha1),
        );
        check(
            "application/json;v=v1beta1;g=config.k8s.io;as=Statusz;q=0.5, */*",
            Some(Format::Text),
        );
        check("text/plain;q=0", None);
        check("text/plain;q=NaN", None);
    }
}
