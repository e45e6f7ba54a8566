//! Storage classes.

use k8s_openapi::api::{core::v1 as core_v1, storage::v1 as storage_v1};

use crate::key::ObjectKey;
use crate::labels::Labels;
use crate::name::Name;
use crate::object::StoredObject;
use crate::problem::Problem;
use crate::selector::{Operator, Requirement};

/// A `StorageClass`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageClass {
    /// Its name.
    pub key: ObjectKey,
    /// Who makes volumes of the class.
    pub provisioner: Name,
    /// Whether its claims are bound when a pod that uses them is scheduled
    /// (`WaitForFirstConsumer`), and not at once.
    pub waits_for_consumer: bool,
    /// Where volumes can be made: nodes must meet all conditions of one of the
    /// terms. Without terms, everywhere.
    pub allowed_topologies: Box<[TopologyTerm]>,
}

/// Conditions on a node's labels; a term without conditions is met by none.
pub type TopologyTerm = Box<[Requirement]>;

/// The provisioner of classes whose volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

impl StoredObject for StorageClass {
    const RESOURCE: &'static str = "storage.k8s.io/StorageClass";

    fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl StorageClass {
    /// Reads a class. An absent binding mode is `Immediate`, as an API server
    /// fills in.
    pub fn from_k8s(class: &storage_v1::StorageClass, _: &mut Vec<Problem>) -> Self {
        let terms = class.allowed_topologies.iter().flatten();
        Self {
            key: ObjectKey::cluster(class.metadata.name.as_deref().unwrap_or_default()),
            provisioner: class.provisioner.as_str().into(),
            waits_for_consumer: class.volume_binding_mode.as_deref()
                == Some("WaitForFirstConsumer"),
            allowed_topologies: terms.map(topology_term).collect(),
        }
    }

    /// Whether volumes are made on demand.
    pub fn can_provision(&self) -> bool {
        !self.provisioner.is_empty() && self.provisioner != NO_PROVISIONER
    }

    /// Whether volumes can be made for a node of those labels.
    pub fn allows_topology(&self, node_labels: &Labels) -> bool {
        let met = |term: &TopologyTerm| {
            !term.is_empty() && term.iter().all(|requirement| requirement.matches(node_labels))
        };
        self.allowed_topologies.is_empty() || self.allowed_topologies.iter().any(met)
    }
}

fn topology_term(term: &core_v1::TopologySelectorTerm) -> TopologyTerm {
    let expressions = term.match_label_expressions.iter().flatten();
    expressions
        .map(|expression| Requirement {
            key: expression.key.as_str().into(),
            operator: Operator::In(expression.values.iter().map(|v| v.as_str().into()).collect()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class(json: Value) -> StorageClass {
        StorageClass::from_k8s(&serde_json::from_value(json).expect("a class"), &mut Vec::new())
    }

    #[track_caller]
    fn check_topology(terms: Value, node_labels: &[(&str, &str)], expected: bool) {
        let text = terms.to_string();
        let class = class(json!({"metadata": {"name": "c"}, "provisioner": "p",
            "allowedTopologies": terms}));
        let labels = Labels::from_pairs(node_labels.iter().copied());
        assert_eq!(class.allows_topology(&labels), expected, "{text} {node_labels:?}");
    }

    #[test]
    fn node_meets_all_conditions_of_one_term() {
        let term = |conditions: Value| json!({"matchLabelExpressions": conditions});
        let zone = json!({"key": "zone", "values": ["z1", "z2"]});
        let rack = json!({"key": "rack", "values": ["r1"]});
        check_topology(Value::Null, &[], true);
        check_topology(json!([]), &[], true);
        check_topology(json!([term(json!([zone]))]), &[("zone", "z2")], true);
        check_topology(json!([term(json!([zone]))]), &[("zone", "z3")], false);
        check_topology(json!([term(json!([zone]))]), &[], false);
        check_topology(json!([term(json!([zone, rack]))]), &[("zone", "z1")], false);
        let either = json!([term(json!([zone])), term(json!([rack]))]);
        check_topology(either, &[("rack", "r1")], true);
        check_topology(json!([term(json!([]))]), &[("zone", "z1")], false);
    }

    #[test]
    fn binding_mode_and_provisioner() {
        let minimal = class(json!({"metadata": {"name": "c"}, "provisioner": "p"}));
        assert_eq!((minimal.waits_for_consumer, minimal.can_provision()), (false, true));
        let local = class(json!({"metadata": {"name": "c"}, "provisioner": NO_PROVISIONER,
            "volumeBindingMode": "WaitForFirstConsumer"}));
        assert_eq!((local.waits_for_consumer, local.can_provision()), (true, false));
    }
}
