//! Rules of kinds that need a few functions and no more: a row of functions,
//! each harmless unless given.

use jiff::Timestamp;
use serde_json::Value;
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::rules::{Column, Part, Plain, Request, Rules, age};

/// A kind as a row of functions. `Simple { default: f, ..Simple::NEW }`.
pub(crate) struct Simple {
    /// Whether the reference keeps `metadata.generation` for the kind.
    pub(crate) generation: bool,
    /// Whether changes have to say which version they change.
    pub(crate) versioned_update: bool,
    /// Whether writing an object that does not exist creates it.
    pub(crate) created_by_update: bool,
    /// Fills in defaults.
    pub(crate) default: fn(&mut Value),
    /// Admits a new object.
    pub(crate) create: fn(&mut Value, &Request<'_>) -> Result<(), ApiError>,
    /// Admits a change of the main resource.
    pub(crate) update: fn(&mut Value, &Value, &Request<'_>) -> Result<(), ApiError>,
    /// Checks the object and, with the old one, the change.
    pub(crate) validate: fn(&Value, Option<&Value>) -> Vec<FieldError>,
    /// Finalizers of new objects.
    pub(crate) finalizers: &'static [&'static str],
    /// Selectable fields.
    pub(crate) selectable: &'static [&'static str],
    /// The value of one of them.
    pub(crate) select: fn(&Value, &str) -> String,
    /// The columns of `kubectl get`.
    pub(crate) columns: &'static [Column],
    /// Their cells.
    pub(crate) cells: fn(&Value, Timestamp) -> Vec<Value>,
}

impl Simple {
    /// A kind with generations and nothing else.
    pub(crate) const NEW: Self = Self {
        generation: true,
        versioned_update: false,
        created_by_update: false,
        default: |_| {},
        create: |_, _| Ok(()),
        update: |_, _, _| Ok(()),
        validate: |_, _| Vec::new(),
        finalizers: &[],
        selectable: &[],
        select: field_text,
        columns: &[Column::name(), Column::text("Age", "Time since creation")],
        cells: |object, now| Plain.cells(object, now),
    };

    /// What the reference shows of kinds for which it has no columns.
    pub(crate) const CREATED_AT: Self = Self {
        generation: false,
        columns: &[
            Column::name(),
            Column { kind: "date", ..Column::text("Created At", "Time of creation") },
        ],
        cells: |object, _| vec![name_cell(object), created_cell(object)],
        ..Self::NEW
    };
}

impl Rules for Simple {
    fn default(&self, object: &mut Value) {
        (self.default)(object);
    }

    fn prepare_create(&self, object: &mut Value, request: &Request<'_>) -> Result<(), ApiError> {
        (self.create)(object, request)
    }

    fn prepare_update(
        &self,
        new: &mut Value,
        old: &Value,
        part: Part,
        request: &Request<'_>,
    ) -> Result<(), ApiError> {
        if part == Part::Main { (self.update)(new, old, request) } else { Ok(()) }
    }

    fn validate(&self, new: &Value, old: Option<&Value>, part: Part) -> Vec<FieldError> {
        if part == Part::Status { Vec::new() } else { (self.validate)(new, old) }
    }

    fn keeps_generation(&self) -> bool {
        self.generation
    }

    fn allows_unconditional_update(&self) -> bool {
        !self.versioned_update
    }

    fn creates_on_update(&self) -> bool {
        self.created_by_update
    }

    fn finalizers(&self) -> &'static [&'static str] {
        self.finalizers
    }

    fn selectable_field(&self, object: &Value, path: &str) -> Option<String> {
        self.selectable.contains(&path).then(|| (self.select)(object, path))
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        self.selectable
    }

    fn columns(&self) -> &'static [Column] {
        self.columns
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        (self.cells)(object, now)
    }
}

/// The value at a dotted path as field selectors see it: empty when unset.
pub(crate) fn field_text(object: &Value, path: &str) -> String {
    match object.pointer(&format!("/{}", path.replace('.', "/"))) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The cell of the first column.
pub(crate) fn name_cell(object: &Value) -> Value {
    object.pointer("/metadata/name").cloned().unwrap_or_default()
}

/// The cell of the column `Age`.
pub(crate) fn age_cell(object: &Value, now: Timestamp) -> Value {
    Value::from(age(object, now))
}

fn created_cell(object: &Value) -> Value {
    object.pointer("/metadata/creationTimestamp").cloned().unwrap_or_else(|| "<unknown>".into())
}
