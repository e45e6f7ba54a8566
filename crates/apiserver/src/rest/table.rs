//! Objects as rows of a table, for `kubectl get`.

use jiff::Timestamp;
use serde_json::{Value, json};
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::Resource;

/// What a row shows of its object beside the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Include {
    /// Reads `includeObject`.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        match text {
            "None" => Ok(Self::Nothing),
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            other => {
                Err(ApiError::bad_request(format!("unrecognized includeObject value: {other:?}")))
            }
        }
    }
}

/// How rows are made.
#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) resource: &'static Resource,
    /// The version of `meta.k8s.io`.
    pub(crate) version: &'static str,
    pub(crate) include: Include,
    pub(crate) now: Timestamp,
}

impl Table {
    /// A table of rows. `metadata` is that of the list.
    pub(crate) fn document(&self, rows: Vec<Value>, metadata: Value, with_header: bool) -> Value {
        let columns = self.resource.rules.columns();
        let columns: Vec<Value> = columns
            .iter()
            .filter(|_| with_header)
            .map(|column| {
                json!({
                    "name": column.name,
                    "type": column.kind,
                    "format": column.format,
                    "description": column.description,
                    "priority": column.priority,
                })
            })
            .collect();
        json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{}", self.version),
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": rows,
        })
    }

    /// The row of an object in the resource's version.
    pub(crate) fn row(&self, object: &Value) -> Value {
        let cells = self.resource.rules.cells(object, self.now);
        let shown = match self.include {
            Include::Nothing => return json!({ "cells": cells }),
            Include::Metadata => partial(object, self.version),
            Include::Object => object.clone(),
        };
        json!({ "cells": cells, "object": shown })
    }
}

/// An object's metadata alone.
pub(crate) fn partial(object: &Value, version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}
