//! What a kind demands of its objects: defaults, admission, validation, how
//! they are deleted, shown and selected.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::error::{ApiError, FieldError};
use crate::resource::{Resource, Subresource};

/// The other objects of the cluster, as admission sees them.
pub trait View {
    /// One object in storage form; `namespace` is empty for objects without.
    fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;

    /// The objects of a resource, of one namespace or of all.
    fn list(&self, group: &str, plural: &str, namespace: Option<&str>) -> Vec<Arc<Value>>;
}

/// Who asks, and when.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The resource.
    pub resource: &'static Resource,
    /// The user's name, as authentication found it.
    pub user: &'a str,
    /// The user's groups.
    pub groups: &'a [String],
    /// The time of the request.
    pub now: Timestamp,
    /// Other objects. What admission reads here and what is written later is
    /// not one transaction, as in the reference.
    pub view: &'a dyn View,
    /// A number nobody can guess the next of, for names and ports that the
    /// rules choose.
    pub random: u64,
}

/// What a kind demands. Every method has a harmless default, so a kind without
/// rules of its own is `struct Plain;`.
///
/// The server itself sees to what all kinds share: names and `generateName`,
/// `uid`, `creationTimestamp`, `resourceVersion`, `generation`, `managedFields`,
/// finalizers, `deletionTimestamp`, existence of the namespace, unknown fields,
/// label and annotation syntax, keeping `status` apart from the rest.
///
/// Order on writes: decode, [`Self::to_storage`], [`Self::default`],
/// [`Self::prepare_create`] or [`Self::prepare_update`], [`Self::validate`],
/// store. Answers pass [`Self::from_storage`].
pub trait Rules: Send + Sync {
    /// Fills in what the API fills in for fields that are not given. Must be
    /// idempotent: it also runs on what patches leave.
    fn default(&self, _object: &mut Value) {}

    /// Admission of a new object: what it gets from other objects and what the
    /// client may not decide (`status` is reset here, if the kind does so).
    ///
    /// # Errors
    /// When the object is refused for what it is or for what else exists.
    fn prepare_create(&self, _object: &mut Value, _request: &Request<'_>) -> Result<(), ApiError> {
        Ok(())
    }

    /// Admission of a change. `part` says what is being written.
    ///
    /// # Errors
    /// When the change is refused.
    fn prepare_update(
        &self,
        _new: &mut Value,
        _old: &Value,
        _part: Part,
        _request: &Request<'_>,
    ) -> Result<(), ApiError> {
        Ok(())
    }

    /// Everything that is wrong with the object; with `old`, also with the
    /// change (immutable fields). Answered as 422 with all causes.
    fn validate(&self, _new: &Value, _old: Option<&Value>, _part: Part) -> Vec<FieldError> {
        Vec::new()
    }

    /// Whether `metadata.generation` moves with this change: by default when
    /// anything but `metadata` and `status` differs. Only asked of kinds for
    /// which the reference keeps generations.
    fn keeps_generation(&self) -> bool {
        true
    }

    /// Whether a `PUT` without a `resourceVersion` overwrites whatever is there;
    /// otherwise it is refused.
    fn allows_unconditional_update(&self) -> bool {
        true
    }

    /// Whether a `PUT` of an object that does not exist creates it.
    fn creates_on_update(&self) -> bool {
        false
    }

    /// How long a deleted object stays with a `deletionTimestamp`, in seconds,
    /// before it is removed (0: at once). Pods that nobody runs yet go at once.
    fn grace_period(&self, _object: &Value, _requested: Option<i64>) -> i64 {
        0
    }

    /// Finalizers that the server adds to new objects of this kind
    /// (`kubernetes.io/pvc-protection`).
    fn finalizers(&self) -> &'static [&'static str] {
        &[]
    }

    /// A field that field selectors may name beside `metadata.name` and
    /// `metadata.namespace`: `None` when the kind has no such selectable field,
    /// otherwise its value, empty when unset.
    fn selectable_field(&self, _object: &Value, _path: &str) -> Option<String> {
        None
    }

    /// The names of those fields, for the error about any other.
    fn selectable_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// The columns of `kubectl get`, after which the server adds nothing.
    fn columns(&self) -> &'static [Column] {
        NAME_AND_AGE
    }

    /// The cells of one object, one per column.
    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            object.pointer("/metadata/name").cloned().unwrap_or_default(),
            Value::from(age(object, now)),
        ]
    }

    /// Storage form of an object of this version.
    fn to_storage(&self, object: Value) -> Value {
        object
    }

    /// This version's form of a stored object.
    #[expect(clippy::wrong_self_convention, reason = "it converts the object, not the rules")]
    fn from_storage(&self, object: &Value) -> Value {
        object.clone()
    }

    /// Answers a request of a resource that keeps nothing.
    ///
    /// # Errors
    /// When the request cannot be answered.
    fn answer(&self, object: Value, _request: &Request<'_>) -> Result<Value, ApiError> {
        Ok(object)
    }

    /// What a subresource with [`Action::View`](crate::resource::Action::View) shows.
    ///
    /// # Errors
    /// When the kind has no such view.
    fn read_view(&self, _object: &Value, subresource: &Subresource) -> Result<Value, ApiError> {
        Err(ApiError::internal(format!("{} is not implemented", subresource.name)))
    }

    /// Writes such a view back into the object.
    ///
    /// # Errors
    /// When the view is not acceptable.
    fn write_view(
        &self,
        _object: &mut Value,
        _view: &Value,
        subresource: &Subresource,
    ) -> Result<(), ApiError> {
        Err(ApiError::internal(format!("{} is not implemented", subresource.name)))
    }

    /// Carries out a subresource with
    /// [`Action::Perform`](crate::resource::Action::Perform): changes the object
    /// and gives the answer. Runs inside the write, on the newest version.
    ///
    /// # Errors
    /// When the object is not in the state for it (a pod that has a node).
    fn perform(
        &self,
        _object: &mut Value,
        _body: &Value,
        subresource: &Subresource,
        _request: &Request<'_>,
    ) -> Result<Value, ApiError> {
        Err(ApiError::internal(format!("{} is not implemented", subresource.name)))
    }
}

/// Which part of an object a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The main resource.
    Main,
    /// `/status`.
    Status,
    /// Another subresource, by name.
    Subresource(&'static str),
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading, as the API writes it: `Node`, `Last Seen`.
    pub name: &'static str,
    /// `string`, `integer`, `date`.
    pub kind: &'static str,
    /// `name` for the first column, else empty.
    pub format: &'static str,
    /// 0 for columns that are always shown, 1 for those of `-o wide`.
    pub priority: i32,
    /// One line about it.
    pub description: &'static str,
}

impl Column {
    /// A column of text that is always shown.
    pub const fn text(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: "string", format: "", priority: 0, description }
    }

    /// The column of names.
    pub const fn name() -> Self {
        Self { name: "Name", kind: "string", format: "name", priority: 0, description: "Name" }
    }

    /// A column of whole numbers.
    pub const fn number(name: &'static str, description: &'static str) -> Self {
        Self { name, kind: "integer", format: "", priority: 0, description }
    }

    /// Only shown by `-o wide`.
    pub const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }
}

const NAME_AND_AGE: &[Column] = &[Column::name(), Column::text("Age", "Time since creation")];

/// Rules of a kind without any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Rules for Plain {}

/// The age of an object as tables show it (`5d`, `3h12m`), `<unknown>` without
/// a creation time.
pub fn age(object: &Value, now: Timestamp) -> String {
    let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
    match created.and_then(|text| text.parse::<Timestamp>().ok()) {
        Some(created) => human_duration(now.as_second() - created.as_second()),
        None => "<unknown>".to_owned(),
    }
}

/// Seconds as kubectl writes them: two units at most, fewer as they grow.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |major: i64, major_unit: &str, minor: i64, minor_unit: &str| {
        if minor == 0 {
            format!("{major}{major_unit}")
        } else {
            format!("{major}{major_unit}{minor}{minor_unit}")
        }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1..=0 => "0s".to_owned(),
        1..120 => format!("{seconds}s"),
        120..600 => two(seconds / MINUTE, "m", seconds % MINUTE, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds / HOUR, "h", seconds % HOUR / MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds / DAY, "d", seconds % DAY / HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds / YEAR, "y", seconds % YEAR / DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::human_duration;

    #[test]
    fn durations_read_as_in_kubectl() {
        let cases = [
            (-5, "<invalid>"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (601, "10m"),
            (10_860, "3h1m"),
            (100_000, "27h"),
            (180_000, "2d2h"),
            (86_400 * 30, "30d"),
            (86_400 * 800, "2y70d"),
            (86_400 * 365 * 9, "9y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }
}
