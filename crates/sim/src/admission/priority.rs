//! Priority classes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use steersman_api::problem::{FieldPath, Problem};

/// The classes that every cluster has.
const SYSTEM_CLASSES: [(&str, i32); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];
/// The names of other classes must not start like theirs.
const SYSTEM_PREFIX: &str = "system-";
/// The largest value of other classes.
const MAX_USER_PRIORITY: i32 = 1_000_000_000;
/// What a pod may do to pods of lower priority, unless it or its class says
/// else.
const DEFAULT_POLICY: &str = "PreemptLowerPriority";
const POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];

/// The priority classes of a cluster.
#[derive(Clone, Debug)]
pub struct PriorityClasses {
    by_name: BTreeMap<String, Class>,
    default: Option<String>,
}

#[derive(Clone, Debug)]
struct Class {
    value: i32,
    policy: String,
}

impl Default for PriorityClasses {
    /// The classes of a cluster in which nobody made any.
    fn default() -> Self {
        let class = |value| Class { value, policy: DEFAULT_POLICY.to_owned() };
        let by_name = SYSTEM_CLASSES
            .iter()
            .map(|(name, value)| ((*name).to_owned(), class(*value)))
            .collect();
        Self { by_name, default: None }
    }
}

impl PriorityClasses {
    /// Adds a class. Of several global defaults the lowest counts.
    pub fn add(&mut self, class: &PriorityClass, problems: &mut Vec<Problem>) {
        let root = FieldPath::root();
        let name = class.metadata.name.clone().unwrap_or_default();
        let Some(value) = class.value else {
            return problems.push(Problem::required(&root.field("value"), "the priority"));
        };
        let system = SYSTEM_CLASSES.iter().find(|(system, _)| *system == name);
        let found_before = problems.len();
        if let Some((_, fixed)) = system {
            // Dumps of a cluster contain these.
            if value != *fixed {
                problems.push(Problem::invalid(&root.field("value"), value, fixed));
            }
        } else {
            if name.starts_with(SYSTEM_PREFIX) {
                let at = root.field("metadata").field("name");
                let allowed = format!("names that do not start with {SYSTEM_PREFIX:?}");
                problems.push(Problem::invalid(&at, format_args!("{name:?}"), allowed));
            }
            if value > MAX_USER_PRIORITY {
                let allowed = format!("up to {MAX_USER_PRIORITY}");
                problems.push(Problem::invalid(&root.field("value"), value, allowed));
            }
        }
        let policy = class.preemption_policy.as_deref().unwrap_or(DEFAULT_POLICY);
        check_policy(policy, &root.field("preemptionPolicy"), problems);
        if problems.len() > found_before {
            return;
        }
        if class.global_default == Some(true) {
            let known = |name: &String| self.by_name[name].value;
            if self.default.as_ref().is_none_or(|other| value < known(other)) {
                self.default = Some(name.clone());
            }
        }
        self.by_name.insert(name, Class { value, policy: policy.to_owned() });
    }

    /// Sets the priority and the preemption policy of a pod from its class.
    /// `stored`: an API server has done so before, and what it found counts; so
    /// it is with pods that are bound: they take room whatever their class.
    pub(super) fn resolve(
        &self,
        spec: &mut core_v1::PodSpec,
        stored: bool,
        problems: &mut Vec<Problem>,
    ) {
        let at = FieldPath::from("spec");
        if let Some(policy) = &spec.preemption_policy {
            check_policy(policy, &at.field("preemptionPolicy"), problems);
        }
        if stored && spec.priority.is_some() {
            return;
        }
        let named = spec.priority_class_name.clone().filter(|name| !name.is_empty());
        let class = match named.as_ref().or(self.default.as_ref()) {
            None => &Class { value: 0, policy: DEFAULT_POLICY.to_owned() },
            Some(name) => match self.by_name.get(name) {
                Some(class) => class,
                // The class is not in the input; what it said is, or it no
                // longer matters.
                None if stored || spec.priority.is_some() => return,
                None => {
                    let known = self.by_name.keys().cloned().collect::<Vec<_>>().join(", ");
                    let at = at.field("priorityClassName");
                    let allowed = format!("a PriorityClass of the input, or one of {known}");
                    return problems.push(Problem::invalid(&at, format_args!("{name:?}"), allowed));
                }
            },
        };
        let whose = match named.as_ref().or(self.default.as_ref()) {
            Some(name) => format!("the value of class {name:?}"),
            None => "its value without a class".to_owned(),
        };
        if let Some(priority) = spec.priority.filter(|priority| *priority != class.value) {
            let allowed = format!("nothing, or {}, {whose}", class.value);
            problems.push(Problem::invalid(&at.field("priority"), priority, allowed));
        }
        if let Some(policy) = spec.preemption_policy.as_ref().filter(|p| **p != class.policy) {
            let allowed = format!("nothing, or {:?}, {whose}", class.policy);
            let at = at.field("preemptionPolicy");
            problems.push(Problem::invalid(&at, format_args!("{policy:?}"), allowed));
        }
        spec.priority = Some(class.value);
        spec.preemption_policy = Some(class.policy.clone());
        spec.priority_class_name = named.or_else(|| self.default.clone());
    }
}

fn check_policy(policy: &str, at: &FieldPath, problems: &mut Vec<Problem>) {
    if !POLICIES.contains(&policy) {
        problems.push(Problem::invalid(at, format_args!("{policy:?}"), POLICIES.join(", ")));
    }
}
