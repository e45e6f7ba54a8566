//! In which form an answer is wanted.

use steersman_apimachinery::error::ApiError;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// How it is written down.
    pub(crate) syntax: Syntax,
    /// What is shown of an object.
    pub(crate) shape: Shape,
}

/// How an answer is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    Json,
    Yaml,
}

/// What is shown of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// All of it.
    Whole,
    /// A row of a table, in this version of `meta.k8s.io`.
    Table(&'static str),
    /// Its metadata, in this version of `meta.k8s.io`.
    Metadata(&'static str),
    /// All resources of all groups in one document, in this version of
    /// `apidiscovery.k8s.io`.
    Discovery(&'static str),
}

/// Which shapes can be had at an address beside the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Objects,
    Discovery,
}

/// Picks the first form that the client accepts and that is offered.
pub(crate) fn negotiate(accept: Option<&str>, offer: Offer) -> Result<Form, ApiError> {
    let accept = accept.map(str::trim).filter(|accept| !accept.is_empty());
    let Some(accept) = accept else {
        return Ok(Form { syntax: Syntax::Json, shape: Shape::Whole });
    };
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses.iter().find_map(|clause| clause.form(offer)).ok_or_else(not_acceptable)
}

fn not_acceptable() -> ApiError {
    let message = "only the following media types are accepted: application/json, application/yaml";
    ApiError::new(406, "NotAcceptable", message)
}

struct Clause<'a> {
    media_type: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or("");
        let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let quality = parameters.iter().find(|(name, _)| *name == "q");
        let quality = quality.and_then(|(_, value)| value.parse().ok()).unwrap_or(1.0);
        Self { media_type, parameters, quality }
    }

    fn parameter(&self, name: &str) -> &'a str {
        let found = self.parameters.iter().find(|(have, _)| *have == name);
        found.map_or("", |(_, value)| value)
    }

    fn form(&self, offer: Offer) -> Option<Form> {
        let syntax = match self.media_type {
            "application/json" | "application/*" | "*/*" => Syntax::Json,
            "application/yaml" => Syntax::Yaml,
            _ => return None,
        };
        let shape = match (offer, self.parameter("as"), self.parameter("g"), self.parameter("v")) {
            (_, "", _, _) => Shape::Whole,
            (Offer::Objects, shape, "meta.k8s.io", version) => {
                let version = match version {
                    "v1" => "v1",
                    "v1beta1" => "v1beta1",
                    _ => return None,
                };
                match shape {
                    "Table" => Shape::Table(version),
                    "PartialObjectMetadata" | "PartialObjectMetadataList" => {
                        Shape::Metadata(version)
                    }
                    _ => return None,
                }
            }
            (Offer::Discovery, "APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => {
                Shape::Discovery("v2")
            }
            (Offer::Discovery, "APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2beta1") => {
                Shape::Discovery("v2beta1")
            }
            _ => return None,
        };
        Some(Form { syntax, shape })
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Offer, Shape, Syntax, negotiate};

    #[test]
    fn the_first_acceptable_form_is_picked() {
        let json = Form { syntax: Syntax::Json, shape: Shape::Whole };
        let table = |version| Form { syntax: Syntax::Json, shape: Shape::Table(version) };
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let informer = "application/vnd.kubernetes.protobuf,application/json";
        let cases = [
            (None, Offer::Objects, Some(json)),
            (Some(""), Offer::Objects, Some(json)),
            (Some("*/*"), Offer::Objects, Some(json)),
            (Some("application/json, */*"), Offer::Objects, Some(json)),
            (Some(kubectl), Offer::Objects, Some(table("v1"))),
            (Some(kubectl), Offer::Discovery, Some(json)),
            (
                Some("application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json"),
                Offer::Objects,
                Some(table("v1beta1")),
            ),
            (Some("application/json;as=Table;v=v2;g=meta.k8s.io"), Offer::Objects, None),
            (Some(informer), Offer::Objects, Some(json)),
            (Some("application/vnd.kubernetes.protobuf"), Offer::Objects, None),
            (Some("text/html"), Offer::Objects, None),
            (
                Some("application/json;q=0.1, application/yaml;q=0.9"),
                Offer::Objects,
                Some(Form { syntax: Syntax::Yaml, shape: Shape::Whole }),
            ),
            (
                Some(
                    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
                ),
                Offer::Discovery,
                Some(Form { syntax: Syntax::Json, shape: Shape::Discovery("v2") }),
            ),
        ];
        for (accept, offer, expected) in cases {
            assert_eq!(negotiate(accept, offer).ok(), expected, "{accept:?}");
        }
    }
}
