//! `cronjobs`. Their schedules are kept, not acted on.

use serde_json::{Value, json};
use steersman_apimachinery::error::FieldError;
use steersman_apimachinery::rules::{Column, human_duration};

use super::cells::{AGE, CONTAINERS, IMAGES, SELECTOR, container_images, container_names};
use super::{check_not_negative, job, without_status};
use crate::fields::{default, flag, items, object_at, text};
use crate::pod::defaults;
use crate::selectors;
use crate::simple::{Simple, age_cell, name_cell};

const TEMPLATE: &str = "/spec/jobTemplate/spec/template";

/// The rules.
pub(crate) static CRON_JOB: Simple = Simple {
    default: |object| {
        let Some(spec) = object_at(object, "/spec") else { return };
        default(spec, "concurrencyPolicy", "Allow");
        default(spec, "suspend", false);
        default(spec, "successfulJobsHistoryLimit", 3);
        default(spec, "failedJobsHistoryLimit", 1);
        // Its jobs are filled in when they are made, but for their pods.
        if let Some(template) = object_at(spec, "/jobTemplate/spec/template") {
            defaults::template(template);
        }
    },
    create: without_status,
    validate,
    columns: &[
        Column::name(),
        Column::text("Schedule", "When jobs start, as cron writes it"),
        Column::text("Timezone", "Time zone of the schedule"),
        Column { kind: "boolean", ..Column::text("Suspend", "Whether no jobs are started") },
        Column::number("Active", "Jobs that run now"),
        Column::text("Last Schedule", "When a job was started last"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |object, now| {
        let or_none = |text: &str| json!(if text.is_empty() { "<none>" } else { text });
        let last = text(object, "/status/lastScheduleTime").parse::<jiff::Timestamp>().ok();
        let last = last.map(|last| human_duration(now.as_second() - last.as_second()));
        vec![
            name_cell(object),
            text(object, "/spec/schedule").into(),
            or_none(text(object, "/spec/timeZone")),
            if flag(object, "/spec/suspend") { "True".into() } else { "False".into() },
            items(object, "/status/active").len().into(),
            or_none(last.as_deref().unwrap_or_default()),
            age_cell(object, now),
            container_names(object, TEMPLATE),
            container_images(object, TEMPLATE),
            selectors::cell(object, "/spec/jobTemplate/spec/selector"),
        ]
    },
    ..Simple::NEW
};

fn validate(new: &Value, _: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let schedule = text(new, "/spec/schedule");
    if schedule.is_empty() {
        errors.push(FieldError::required("spec.schedule", ""));
    } else if !schedule.starts_with('@') && schedule.split_whitespace().count() != 5 {
        let fields = schedule.split_whitespace().count();
        let why = format!("expected exactly 5 fields, found {fields}: [{schedule}]");
        errors.push(FieldError::invalid("spec.schedule", schedule, &why));
    }
    let policy = text(new, "/spec/concurrencyPolicy");
    let allowed = ["Allow", "Forbid", "Replace"];
    if !allowed.contains(&policy) {
        errors.push(FieldError::not_supported("spec.concurrencyPolicy", policy, &allowed));
    }
    for name in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"]
    {
        check_not_negative(new, &format!("spec.{name}"), &mut errors);
    }
    errors.extend(job::check_spec(new, "spec.jobTemplate.spec"));
    errors
}
