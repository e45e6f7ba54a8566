//! How the rows of the table are written down.

use steersman_apimachinery::resource::{Absent, Resource, Storage, Subresource};
use steersman_apimachinery::rules::Rules;

/// A row under construction. It begins as what most resources are: namespaced,
/// kept as it is, without subresources.
pub(crate) struct Row(pub(crate) Resource);

/// Begins a row.
pub(crate) const fn row(
    [group, version, kind]: [&'static str; 3],
    plural: &'static str,
    singular: &'static str,
    schema: &'static str,
    rules: &'static dyn Rules,
) -> Row {
    Row(Resource {
        group,
        version,
        kind,
        plural,
        singular,
        namespaced: true,
        short_names: &[],
        categories: &[],
        schema,
        storage: Storage::Own,
        has_status: false,
        subresources: &[],
        absent: &[],
        rules,
    })
}

impl Row {
    pub(crate) const fn cluster_wide(self) -> Self {
        Self(Resource { namespaced: false, ..self.0 })
    }

    pub(crate) const fn short(self, short_names: &'static [&'static str]) -> Self {
        Self(Resource { short_names, ..self.0 })
    }

    pub(crate) const fn in_categories(self, categories: &'static [&'static str]) -> Self {
        Self(Resource { categories, ..self.0 })
    }

    pub(crate) const fn with_status(self) -> Self {
        Self(Resource { has_status: true, ..self.0 })
    }

    pub(crate) const fn with(self, subresources: &'static [Subresource]) -> Self {
        Self(Resource { subresources, ..self.0 })
    }

    pub(crate) const fn without(self, absent: &'static [Absent]) -> Self {
        Self(Resource { absent, ..self.0 })
    }

    pub(crate) const fn kept_as(self, group: &'static str, plural: &'static str) -> Self {
        Self(Resource { storage: Storage::SharedWith { group, plural }, ..self.0 })
    }

    pub(crate) const fn through(self, [group, plural, subresource]: [&'static str; 3]) -> Self {
        Self(Resource { storage: Storage::Through { group, plural, subresource }, ..self.0 })
    }

    pub(crate) const fn kept_nowhere(self) -> Self {
        Self(Resource { storage: Storage::Nowhere, ..self.0 })
    }
}
