//! `horizontalpodautoscalers`.

use serde_json::{Value, json};
use steersman_apimachinery::rules::Column;

use crate::fields::{default, items, number, object_at, set, text};
use crate::simple::{Simple, age_cell, name_cell};

const AGE: Column = Column::text("Age", "Time since creation");

/// The rules of `horizontalpodautoscalers`. They are kept, not acted on.
pub(crate) static HORIZONTAL_POD_AUTOSCALER: Simple = Simple {
    generation: false,
    default: |object| {
        let Some(spec) = object_at(object, "/spec") else { return };
        default(spec, "minReplicas", 1);
        default(
            spec,
            "metrics",
            json!([{
                "type": "Resource",
                "resource": {
                    "name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 80},
                },
            }]),
        );
    },
    create: |object, _| {
        set(object, "status", json!({"desiredReplicas": 0}));
        Ok(())
    },
    columns: &[
        Column::name(),
        Column::text("Reference", "What it scales"),
        Column::text("Targets", "What it looks at, and what it should be"),
        Column::text("MinPods", "The fewest pods"),
        Column::text("MaxPods", "The most pods"),
        Column::text("Replicas", "Pods there are"),
        AGE,
    ],
    cells: |object, now| {
        let reference = format!(
            "{}/{}",
            text(object, "/spec/scaleTargetRef/kind"),
            text(object, "/spec/scaleTargetRef/name")
        );
        let count = |pointer| number(object, pointer);
        vec![
            name_cell(object),
            reference.into(),
            targets(object).into(),
            count("/spec/minReplicas").map_or_else(|| "<unset>".into(), |n| n.to_string().into()),
            count("/spec/maxReplicas").unwrap_or(0).into(),
            count("/status/currentReplicas").unwrap_or(0).into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

/// Nothing measures: what is looked at is unknown.
fn targets(autoscaler: &Value) -> String {
    let metrics = items(autoscaler, "/spec/metrics");
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    let one = |metric: &Value| {
        let name = text(metric, "/resource/name");
        match number(metric, "/resource/target/averageUtilization") {
            Some(wanted) => format!("{name}: <unknown>/{wanted}%"),
            None => match text(metric, "/resource/target/averageValue") {
                "" => "<unknown>".to_owned(),
                wanted => format!("{name}: <unknown>/{wanted}"),
            },
        }
    };
    metrics.iter().map(one).collect::<Vec<_>>().join(", ")
}
