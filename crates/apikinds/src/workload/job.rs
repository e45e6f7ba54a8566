//! `jobs`.

use jiff::Timestamp;
use serde_json::{Value, json};
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::rules::{Column, Request, human_duration};

use super::cells::{AGE, CONTAINERS, IMAGES, SELECTOR, container_images, container_names};
use super::{check_immutable, check_not_negative, template};
use crate::fields::{
    at, child, default, entries, field, flag, items, items_mut, name, number, object_at, set, text,
};
use crate::pod::defaults;
use crate::selectors;
use crate::simple::{Simple, age_cell, name_cell};

/// The labels that say which job a pod is of: the uid, then the name, each
/// under its present key and under the one of old.
const UID_LABELS: [&str; 2] = ["batch.kubernetes.io/controller-uid", "controller-uid"];
const NAME_LABELS: [&str; 2] = ["batch.kubernetes.io/job-name", "job-name"];

/// The rules.
pub(crate) static JOB: Simple = Simple {
    default: |object| {
        default_labels(object);
        if let Some(spec) = object_at(object, "/spec") {
            default_spec(spec);
        }
    },
    create,
    validate: |new, old| {
        let mut errors = check_spec(new, "spec");
        if let Some(old) = old {
            check_update(new, old, &mut errors);
        } else {
            check_selector(new, &mut errors);
        }
        errors
    },
    selectable: &["status.successful"],
    select: |object, _| number(object, "/status/succeeded").unwrap_or(0).to_string(),
    columns: &[
        Column::name(),
        Column::text("Status", "How far the job is"),
        Column::text("Completions", "Pods that succeeded, of those that have to"),
        Column::text("Duration", "Time from start to end"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| {
        vec![
            name_cell(object),
            status(object).into(),
            completions(object).into(),
            duration(object, now).into(),
            age_cell(object, now),
            container_names(object, "/spec/template"),
            container_images(object, "/spec/template"),
            selectors::cell(object, "/spec/selector"),
        ]
    },
    ..Simple::NEW
};

/// Fills in the spec of a job.
fn default_spec(spec: &mut Value) {
    if at(spec, "/completions").is_none() && at(spec, "/parallelism").is_none() {
        default(spec, "completions", 1);
    }
    default(spec, "parallelism", 1);
    let per_index = at(spec, "/backoffLimitPerIndex").is_some();
    default(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    default(spec, "manualSelector", false);
    let has_policy = at(spec, "/podFailurePolicy").is_some();
    let replacement = if has_policy { "Failed" } else { "TerminatingOrFailed" };
    default(spec, "podReplacementPolicy", replacement);
    for rule in items_mut(spec, "/podFailurePolicy/rules") {
        for pattern in items_mut(rule, "/onPodConditions") {
            default(pattern, "status", "True");
        }
    }
    if let Some(template) = object_at(spec, "/template") {
        defaults::template(template);
    }
}

/// A job without labels has those of its pods.
fn default_labels(object: &mut Value) {
    let labels = at(object, "/spec/template/metadata/labels").cloned();
    if let (Some(labels), Some(metadata)) = (labels, child(object, "metadata")) {
        default(metadata, "labels", labels);
    }
}

/// Pods of a job are told by its uid, unless the author says how.
fn create(object: &mut Value, _: &Request<'_>) -> Result<(), ApiError> {
    set(object, "status", json!({}));
    if flag(object, "/spec/manualSelector") {
        return Ok(());
    }
    let uid = text(object, "/metadata/uid").to_owned();
    let job = name(object).to_owned();
    let Some(spec) = object_at(object, "/spec") else { return Ok(()) };
    let template = child(spec, "template").and_then(|template| child(template, "metadata"));
    if let Some(labels) = template.and_then(|metadata| child(metadata, "labels")) {
        UID_LABELS.iter().for_each(|key| default(labels, key, uid.clone()));
        NAME_LABELS.iter().for_each(|key| default(labels, key, job.clone()));
    }
    if let Some(selector) =
        child(spec, "selector").and_then(|selector| child(selector, "matchLabels"))
    {
        default(selector, UID_LABELS[0], uid);
    }
    default_labels(object);
    Ok(())
}

/// Checks the job spec at a dotted path.
pub(super) fn check_spec(object: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let pointer = format!("/{}", path.replace('.', "/"));
    let spec = object.pointer(&pointer).unwrap_or(&Value::Null);
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        check_not_negative(object, &format!("{path}.{name}"), &mut errors);
    }
    match field(spec, "completionMode") {
        "" | "NonIndexed" => {}
        "Indexed" => {
            if at(spec, "/completions").is_none() {
                let why = "when completion mode is Indexed";
                errors.push(FieldError::required(format!("{path}.completions"), why));
            }
        }
        other => errors.push(FieldError::not_supported(
            format!("{path}.completionMode"),
            other,
            &["NonIndexed", "Indexed"],
        )),
    }
    let replacement = field(spec, "podReplacementPolicy");
    if !matches!(replacement, "" | "TerminatingOrFailed" | "Failed") {
        errors.push(FieldError::not_supported(
            format!("{path}.podReplacementPolicy"),
            replacement,
            &["Failed", "TerminatingOrFailed"],
        ));
    }
    template::check(object, &format!("{path}.template"), &mut errors);
    if !matches!(text(spec, "/template/spec/restartPolicy"), "OnFailure" | "Never") {
        let why = "valid values: \"OnFailure\", \"Never\"";
        errors.push(FieldError::required(format!("{path}.template.spec.restartPolicy"), why));
    }
    errors
}

fn check_selector(object: &Value, errors: &mut Vec<FieldError>) {
    let Some(selector) = at(object, "/spec/selector") else {
        errors.push(FieldError::required("spec.selector", ""));
        return;
    };
    selectors::check(selector, "spec.selector", errors);
    let labels = at(object, "/spec/template/metadata/labels");
    let found = || labels.cloned().unwrap_or_default();
    if !selectors::matches(selector, labels) {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", found(), why));
    }
    if flag(object, "/spec/manualSelector") {
        return;
    }
    let said = labels.and_then(|labels| labels.get(UID_LABELS[0])).and_then(Value::as_str);
    if said != Some(text(object, "/metadata/uid")) {
        let path = format!("spec.template.metadata.labels[{}]", UID_LABELS[0]);
        let why = "must be the uid of the job";
        errors.push(FieldError::invalid(path, found(), why));
    }
    let pairs = entries(selector, "/matchLabels").count();
    if pairs > UID_LABELS.len() || !items(selector, "/matchExpressions").is_empty() {
        let why = "`selector` not auto-generated";
        errors.push(FieldError::invalid("spec.selector", selector.clone(), why));
    }
}

/// The template may change while a suspended job has not begun: where its pods
/// may run, that is.
fn check_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let not_begun = flag(old, "/spec/suspend") && at(old, "/status/startTime").is_none();
    for path in ["spec.selector", "spec.completionMode", "spec.podFailurePolicy"] {
        check_immutable(new, Some(old), path, errors);
    }
    let indexed = text(new, "/spec/completionMode") == "Indexed";
    let elastic = indexed && number(new, "/spec/completions") == number(new, "/spec/parallelism");
    if !elastic {
        check_immutable(new, Some(old), "spec.completions", errors);
    }
    let mut before = old.clone();
    if not_begun {
        for field in ["nodeSelector", "tolerations", "affinity", "schedulingGates"] {
            let value = new.pointer(&format!("/spec/template/spec/{field}")).cloned();
            if let Some(spec) = object_at(&mut before, "/spec/template/spec") {
                set(spec, field, value.unwrap_or_default());
            }
        }
        for map in ["labels", "annotations"] {
            let value = new.pointer(&format!("/spec/template/metadata/{map}")).cloned();
            if let Some(metadata) = object_at(&mut before, "/spec/template/metadata") {
                set(metadata, map, value.unwrap_or_default());
            }
        }
    }
    check_immutable(new, Some(&before), "spec.template", errors);
}

fn status(job: &Value) -> &'static str {
    let has = |kind: &str| {
        let mut conditions = items(job, "/status/conditions").iter();
        conditions.any(|c| field(c, "type") == kind && field(c, "status") == "True")
    };
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if at(job, "/metadata/deletionTimestamp").is_some() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(job: &Value) -> String {
    let succeeded = number(job, "/status/succeeded").unwrap_or(0);
    match (number(job, "/spec/completions"), number(job, "/spec/parallelism").unwrap_or(0)) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, workers @ 2..) => format!("{succeeded}/1 of {workers}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

/// Nothing before the start.
fn duration(job: &Value, now: Timestamp) -> String {
    let time = |pointer| text(job, pointer).parse::<Timestamp>().ok();
    let Some(start) = time("/status/startTime") else { return String::new() };
    let end = time("/status/completionTime").unwrap_or(now);
    human_duration(end.as_second() - start.as_second())
}
