//! Server-side apply.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::compare::{compare, fields_of};
use super::entries::{Entries, Entry, Manager};
use super::merge::merge;
use super::prune::prune;
use super::set::FieldSet;
use super::update::record;
use super::validate;
use super::{reset_fields, set_managed_fields, unowned_fields, without_managed_fields};
use crate::error::ApiError;
use crate::schema::{At, Schema};

/// Where `kubectl apply` keeps what it last applied from the client's side.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The manager of what was there before anybody's fields were recorded.
const BEFORE_FIRST: &str = "before-first-apply";

/// Applies a configuration: gives the object to store, with its
/// `managedFields`, before defaulting. `live` is the stored object, `None` when
/// there is none. With nothing changed, `live` comes back as it is.
///
/// The configuration's `apiVersion` is taken as the version of its fields.
/// `force` takes fields from other managers.
///
/// # Errors
/// 400 when the configuration carries `managedFields`; 500, as the reference
/// has it, when it does not fit its type; 409 when it sets fields to other
/// values than their managers did, with a cause per field.
#[expect(clippy::too_many_arguments, reason = "they are all needed and have nothing in common")]
pub fn apply(
    schema: &Schema,
    type_name: &str,
    live: Option<&Value>,
    config: &Value,
    manager: &str,
    force: bool,
    subresource: &str,
    now: Timestamp,
) -> Result<Value, ApiError> {
    let at = schema.get_or_any(type_name);
    if config.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    check(at, config)?;
    let api_version = text(config, "/apiVersion");
    let empty = json!({});
    let bare = live.map(without_managed_fields);
    let mut entries = live.map(Entries::of).unwrap_or_default();
    let stored = entries.clone();
    if let Some(bare) = bare.as_deref().filter(|_| entries.all.is_empty()) {
        let before = Manager::updater(BEFORE_FIRST, api_version, subresource);
        record(at, &mut entries, None, bare, before, now);
    }
    let attempt = Attempt {
        at,
        live: bare.as_deref().unwrap_or(&empty),
        config,
        manager: Manager::applier(manager, subresource),
        api_version,
        reset: reset_fields(at, subresource),
        now,
    };
    let (mut object, entries) = match attempt.run(entries.clone(), force) {
        Err(conflicts) if manager == "kubectl" => {
            let conflicts = attempt.real_conflicts(conflicts);
            if !conflicts.is_empty() {
                return Err(conflict_error(&conflicts));
            }
            attempt.run(entries, true).map_err(|conflicts| conflict_error(&conflicts))?
        }
        other => other.map_err(|conflicts| conflict_error(&conflicts))?,
    };
    if manager == "kubectl" {
        renew_last_applied(&mut object, config);
    }
    if let (Some(live), Some(bare)) = (live, &bare)
        && object == **bare
        && entries.same_but_for_time(&stored)
    {
        return Ok(live.clone());
    }
    if let Some(fields) = entries.write() {
        set_managed_fields(&mut object, fields);
    }
    Ok(object)
}

/// One attempt to apply, with everything it needs.
struct Attempt<'a> {
    at: At<'a>,
    /// Without `managedFields`.
    live: &'a Value,
    config: &'a Value,
    manager: Manager,
    api_version: &'a str,
    reset: FieldSet,
    now: Timestamp,
}

/// Fields that another manager owns, and who.
type Conflicts = Vec<(Manager, FieldSet)>;

impl Attempt<'_> {
    fn run(&self, mut entries: Entries, force: bool) -> Result<(Value, Entries), Conflicts> {
        let at = self.at;
        let listed = fields_of(at, self.config).without_subtrees(&self.reset);
        let last = entries.get(&self.manager).map(|entry| entry.fields.clone()).unwrap_or_default();
        let merged = merge(at, self.live, self.config);
        entries.all.retain(|entry| entry.manager != self.manager);
        let mut object = prune(at, merged, &last, &entries.owned().union(&listed));
        at.prune(&mut object);
        let comparison = compare(at, Some(self.live), Some(&object)).without_subtrees(&self.reset);
        let changed = comparison.changed();
        if !force {
            let conflicts = conflicts(&entries, &changed);
            if !conflicts.is_empty() {
                return Err(conflicts);
            }
        }
        entries.take(&changed.union(&comparison.removed));
        let fields = listed.difference(unowned_fields());
        if !fields.is_empty() {
            entries.all.push(Entry {
                manager: self.manager.clone(),
                api_version: self.api_version.to_owned(),
                time: Some(self.now),
                fields,
            });
        }
        Ok((object, entries))
    }

    /// The conflicts less those with what the same user's `kubectl apply`
    /// applied from the client's side. Values that were changed since are not
    /// that user's any more.
    fn real_conflicts(&self, conflicts: Conflicts) -> Conflicts {
        let Some(own) = self.last_applied() else { return conflicts };
        conflicts
            .into_iter()
            .map(|(manager, fields)| (manager, fields.difference(&own)))
            .filter(|(_, fields)| !fields.is_empty())
            .collect()
    }

    fn last_applied(&self) -> Option<FieldSet> {
        let annotation = self.live.get("metadata")?.get("annotations")?.get(LAST_APPLIED)?;
        let last: Value = serde_json::from_str(annotation.as_str()?).ok()?;
        if text(&last, "/apiVersion") != self.api_version {
            return None;
        }
        let comparison = compare(self.at, Some(&last), Some(self.live));
        let since = comparison.changed().union(&comparison.removed);
        Some(fields_of(self.at, &last).difference(&since))
    }
}

fn conflicts(entries: &Entries, changed: &FieldSet) -> Conflicts {
    let mut conflicts: Conflicts = entries
        .all
        .iter()
        .map(|entry| (entry.manager.clone(), entry.fields.intersection(changed)))
        .filter(|(_, fields)| !fields.is_empty())
        .collect();
    conflicts.sort_by_key(|(manager, _)| manager.shown());
    conflicts
}

fn conflict_error(conflicts: &Conflicts) -> ApiError {
    let each: Vec<(String, String)> = conflicts
        .iter()
        .flat_map(|(manager, fields)| {
            fields.paths().into_iter().map(|path| (manager.shown(), path))
        })
        .collect();
    let causes: Vec<Value> = each
        .iter()
        .map(|(manager, path)| {
            json!({
                "reason": "FieldManagerConflict",
                "message": format!("conflict with {manager}"),
                "field": path,
            })
        })
        .collect();
    let message = match each.as_slice() {
        [(manager, path)] => {
            format!("Apply failed with 1 conflict: conflict with {manager}: {path}")
        }
        several => {
            let mut lines = Vec::new();
            let mut last = None;
            for (manager, path) in several {
                if last != Some(manager) {
                    lines.push(format!("conflicts with {manager}:"));
                    last = Some(manager);
                }
                lines.push(format!("- {path}"));
            }
            format!("Apply failed with {} conflicts: {}", several.len(), lines.join("\n"))
        }
    };
    let mut error = ApiError::new(409, "Conflict", message);
    error.details = Some(json!({ "causes": causes }));
    error
}

/// Whether a configuration, as a client sent it, can be applied at all: it says
/// which version its fields are of, and its type declares them.
///
/// # Errors
/// 400 when the version is another one; 500, as the reference has it, when it
/// does not fit its type.
pub fn check_config(
    schema: &Schema,
    type_name: &str,
    api_version: &str,
    config: &Value,
) -> Result<(), ApiError> {
    let found = text(config, "/apiVersion");
    if found != api_version {
        return Err(ApiError::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {found}, expected: {api_version}"
        )));
    }
    check(schema.get_or_any(type_name), config)
}

fn check(at: At<'_>, config: &Value) -> Result<(), ApiError> {
    let errors = validate::errors(at, config);
    let what = match errors.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        several => format!("errors:\n  {}", several.join("\n  ")),
    };
    let message = format!(
        "failed to create typed patch object ({}/{}; {}, Kind={}): {what}",
        text(config, "/metadata/namespace"),
        text(config, "/metadata/name"),
        text(config, "/apiVersion"),
        text(config, "/kind"),
    );
    Err(ApiError::new(500, "", message))
}

/// Keeps the annotation of client-side apply up to date, where there is one, so
/// that a user can go back.
fn renew_last_applied(object: &mut Value, config: &Value) {
    let annotation = object
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(|annotations| annotations.get_mut(LAST_APPLIED))
        .filter(|annotation| annotation.as_str().is_some_and(|text| !text.is_empty()));
    let Some(annotation) = annotation else { return };
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config.pointer_mut("/metadata/annotations") {
        annotations.remove(LAST_APPLIED);
    }
    *annotation = Value::from(format!("{config}\n"));
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
