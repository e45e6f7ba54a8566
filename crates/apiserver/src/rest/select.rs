//! Which objects a list or a watch is about.

use serde_json::Value;
use steersman_apimachinery::error::ApiError;
use steersman_apimachinery::resource::Resource;
use steersman_apimachinery::selector::{FieldSelector, LabelSelector};

use super::Call;
use crate::meta;
use crate::store::Stored;

/// Which objects a list or a watch is about.
pub(crate) struct Selection {
    resource: &'static Resource,
    is_own_form: bool,
    namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    /// What the path and the selectors of a request say.
    pub(crate) fn of(call: &Call<'_>) -> Result<Self, ApiError> {
        let labels = LabelSelector::parse(call.query.text("labelSelector"));
        let labels = labels.map_err(|why| {
            ApiError::bad_request(format!("unable to parse labelSelector: {why}"))
        })?;
        let fields = FieldSelector::parse(call.query.text("fieldSelector"));
        let mut fields = fields.map_err(ApiError::bad_request)?;
        let resource = call.resource;
        for term in &fields.terms {
            let path = term.path.as_str();
            let is_common = path == "metadata.name" || path == "metadata.namespace";
            if !is_common && !resource.rules.selectable_fields().contains(&path) {
                return Err(ApiError::bad_request(format!("field label not supported: {path}")));
            }
        }
        if !call.path.name.is_empty() {
            fields.terms.push(steersman_apimachinery::selector::FieldTerm {
                path: "metadata.name".to_owned(),
                equal: true,
                value: call.path.name.clone(),
            });
        }
        Ok(Self {
            resource,
            is_own_form: call.is_own_form(),
            namespace: call.namespace().map(str::to_owned),
            labels,
            fields,
        })
    }

    /// The namespace, or `None` for all.
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Whether it is everything in its namespace.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    /// The key of the only object that can match, if the selectors name it.
    pub(crate) fn only_key(&self) -> Option<String> {
        let name = self.fields.required_value("metadata.name")?;
        if !self.resource.namespaced {
            return Some(name.to_owned());
        }
        let namespace = self.namespace()?;
        Some(crate::store::key(namespace, name))
    }

    /// Whether an object is meant.
    pub(crate) fn matches(&self, stored: &Stored) -> bool {
        let object = &*stored.value;
        if self.namespace().is_some_and(|namespace| meta::namespace(object) != namespace) {
            return false;
        }
        if self.is_everything() {
            return true;
        }
        self.labels.matches(meta::labels(object)) && self.matches_fields(object)
    }

    fn matches_fields(&self, object: &Value) -> bool {
        if self.fields.is_everything() {
            return true;
        }
        let converted;
        let object = if self.is_own_form {
            object
        } else {
            converted = self.resource.rules.from_storage(object);
            &converted
        };
        self.fields.matches(|path| match path {
            "metadata.name" => meta::name(object).to_owned(),
            "metadata.namespace" => meta::namespace(object).to_owned(),
            path => self.resource.rules.selectable_field(object, path).unwrap_or_default(),
        })
    }
}
