//! The templates that a daemon set or stateful set has had.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};

use crate::cluster::{Key, Watched, World, read};
use crate::engine::plan::{Call, Part, Plan};
use crate::workload::{claim, owner_reference, template_hash};

/// The revisions of an owner.
pub(super) struct History {
    /// That of its template now.
    pub(super) current: Arc<ControllerRevision>,
    /// The others, oldest first.
    pub(super) old: Vec<Arc<ControllerRevision>>,
}

/// What the history is of.
pub(super) struct Subject<'a, O> {
    pub(super) owner: &'a O,
    pub(super) selector: &'a LabelSelector,
    pub(super) template: &'a PodTemplateSpec,
    pub(super) collisions: Option<i32>,
    /// The label under which a revision carries its hash.
    pub(super) label: &'static str,
}

/// The owner's revisions. When there is none of the template yet, the plan
/// makes it, and nothing else can be planned before it is there.
pub(super) fn of<O: Watched>(
    plan: &mut Plan,
    world: &World,
    subject: &Subject<'_, O>,
) -> Option<History> {
    let mut known = claim(plan, &world.revisions, subject.owner, subject.selector).owned;
    known.sort_by_key(|r| (r.revision, r.metadata.name.clone()));
    let data = data_of(subject.template);
    let is_current = |r: &ControllerRevision| r.data.as_ref().is_some_and(|raw| raw.0 == data);
    let newest = known.iter().map(|r| r.revision).max().unwrap_or_default();
    let Some(at) = known.iter().rposition(|r| is_current(r)) else {
        make(plan, world, subject, data, newest + 1);
        return None;
    };
    let current = known.remove(at);
    if current.revision < newest {
        let patch = json!({ "revision": newest + 1 });
        plan.call(Call::patch(&*current, Part::Main, patch));
    }
    Some(History { current, old: known })
}

/// The template of a revision.
pub(super) fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    read(&template).ok()
}

/// Deletes the oldest revisions beyond the limit that no pod has.
pub(super) fn forget(
    plan: &mut Plan,
    history: &History,
    limit: Option<i32>,
    live: &BTreeSet<String>,
    label_of: impl Fn(&ControllerRevision) -> String,
) {
    let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or_default();
    let idle: Vec<_> = history.old.iter().filter(|r| !live.contains(&label_of(r))).collect();
    let n_surplus = idle.len().saturating_sub(limit);
    idle.into_iter().take(n_surplus).for_each(|r| plan.call(Call::delete(&**r, None)));
}

fn make<O: Watched>(
    plan: &mut Plan,
    world: &World,
    subject: &Subject<'_, O>,
    data: Value,
    revision: i64,
) {
    let metadata = subject.owner.metadata();
    let namespace = metadata.namespace.clone().unwrap_or_default();
    let base = metadata.name.as_deref().unwrap_or_default();
    let mut collisions = subject.collisions;
    let (hash, name) = loop {
        let hash = template_hash(subject.template, collisions);
        let name = format!("{base}-{hash}");
        if world.revisions.get(&Key::new(namespace.clone(), name.clone())).is_none() {
            break (hash, name);
        }
        // Another template has the name by chance.
        collisions = Some(collisions.unwrap_or_default() + 1);
    };
    let labels = subject.template.metadata.as_ref().and_then(|m| m.labels.clone());
    let mut labels = labels.unwrap_or_default();
    labels.insert(subject.label.to_owned(), hash);
    plan.call(Call::create(&ControllerRevision {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace),
            labels: Some(labels),
            annotations: metadata.annotations.clone(),
            owner_references: Some(vec![owner_reference(subject.owner)]),
            ..Default::default()
        },
        data: Some(RawExtension(data)),
        revision,
    }));
}

/// What `kubectl rollout undo` sends as a patch to go back to the template.
fn data_of(template: &PodTemplateSpec) -> Value {
    // Objects of the API always have a JSON form.
    let mut template = serde_json::to_value(template).unwrap_or(Value::Null);
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".to_owned(), json!("replace"));
    }
    json!({ "spec": { "template": template } })
}
