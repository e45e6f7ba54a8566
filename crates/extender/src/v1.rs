//! What goes over the wire: the types of `k8s.io/kube-scheduler/extender/v1`.
//!
//! They are written with the names of their Go fields and without leaving
//! anything out, and read whatever the case of the names, as Go does: `null` is
//! the same as nothing, fields that are not known are passed over.
//!
//! Pods and nodes can be references where they are only written.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta_v1;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::Serialize;

/// What is asked with the verbs filter and prioritize.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExtenderArgs<P = core_v1::Pod, N = core_v1::Node> {
    /// The pod that wants a node.
    pub pod: P,
    /// The nodes in question, unless the extender knows them (`nodeCacheCapable`).
    pub nodes: Option<NodeList<N>>,
    /// Their names, if it does.
    pub node_names: Option<Vec<String>>,
}

/// Nodes.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct NodeList<N = core_v1::Node> {
    /// Says nothing here.
    pub metadata: meta_v1::ListMeta,
    /// The nodes.
    pub items: Vec<N>,
}

/// The answer to filter.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExtenderFilterResult {
    /// The nodes that can run the pod, if nodes were sent.
    pub nodes: Option<NodeList>,
    /// Their names, if names were sent.
    pub node_names: Option<Vec<String>>,
    /// Nodes that cannot, and why; evictions may help.
    pub failed_nodes: BTreeMap<String, String>,
    /// Nodes that cannot, and why; evictions do not help. Counts more than
    /// [`ExtenderFilterResult::failed_nodes`].
    pub failed_and_unresolvable_nodes: BTreeMap<String, String>,
    /// Why there is no answer; empty when there is one.
    pub error: String,
}

/// An element of the answer to prioritize.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct HostPriority {
    /// The node.
    pub host: String,
    /// 0 to 10; more is better.
    pub score: i64,
}

/// What is asked with the verb preempt.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExtenderPreemptionArgs<P = core_v1::Pod> {
    /// The pod that needs room.
    pub pod: P,
    /// Whom to evict from which node, unless the extender knows the pods
    /// (`nodeCacheCapable`).
    pub node_name_to_victims: Option<BTreeMap<String, Victims<P>>>,
    /// The same, if it does.
    pub node_name_to_meta_victims: Option<BTreeMap<String, MetaVictims>>,
}

/// Pods to evict.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Victims<P = core_v1::Pod> {
    /// The pods, the most important first.
    pub pods: Vec<P>,
    /// How many of them a pod disruption budget would have protected.
    #[serde(rename = "NumPDBViolations")]
    pub num_pdb_violations: i64,
}

/// Pods to evict, by UID.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct MetaVictims {
    /// The pods, the most important first.
    pub pods: Vec<MetaPod>,
    /// How many of them a pod disruption budget would have protected.
    #[serde(rename = "NumPDBViolations")]
    pub num_pdb_violations: i64,
}

/// A pod, by UID.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct MetaPod {
    /// Its `metadata.uid`.
    #[serde(rename = "UID")]
    pub uid: String,
}

/// The answer to preempt: the nodes on which pods may be evicted, and which.
/// Nodes that are left out are out of the question.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExtenderPreemptionResult {
    /// By node, at least one pod each.
    pub node_name_to_meta_victims: BTreeMap<String, MetaVictims>,
}

/// What is asked with the verb bind.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExtenderBindingArgs {
    /// The pod's name.
    pub pod_name: String,
    /// Its namespace.
    pub pod_namespace: String,
    /// Its `metadata.uid`.
    #[serde(rename = "PodUID")]
    pub pod_uid: String,
    /// Where it goes.
    pub node: String,
}

/// The answer to bind.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ExtenderBindingResult {
    /// Why the pod is not bound; empty when it is.
    pub error: String,
}

/// What of an answer to filter the scheduler reads: of nodes only their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilterReply {
    pub(crate) nodes: Option<Names>,
    pub(crate) node_names: Option<Vec<String>>,
    pub(crate) failed_nodes: BTreeMap<String, Option<String>>,
    pub(crate) failed_and_unresolvable_nodes: BTreeMap<String, Option<String>>,
    pub(crate) error: String,
}

/// The names in a list of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) items: Vec<Named>,
}

/// An object's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) metadata: Meta,
}

/// An object's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) name: String,
}

/// Reads a type as Go does: the names of fields in any case, `null` as nothing.
macro_rules! read_as_go_does {
    ($($type:ident { $($name:literal => $field:ident),* $(,)? })*) => { $(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Fields;

                impl<'de> Visitor<'de> for Fields {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_unit<E>(self) -> Result<$type, E> {
                        Ok($type::default())
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$type, A::Error> {
                        let mut it = $type::default();
                        while let Some(name) = map.next_key::<String>()? {
                            match name.to_ascii_lowercase().as_str() {
                                $($name => {
                                    it.$field = map.next_value::<Option<_>>()?.unwrap_or_default();
                                })*
                                _ => {
                                    map.next_value::<IgnoredAny>()?;
                                }
                            }
                        }
                        Ok(it)
                    }
                }

                deserializer.deserialize_any(Fields)
            }
        }
    )* };
}

read_as_go_does! {
    ExtenderArgs { "pod" => pod, "nodes" => nodes, "nodenames" => node_names }
    NodeList { "metadata" => metadata, "items" => items }
    ExtenderFilterResult {
        "nodes" => nodes,
        "nodenames" => node_names,
        "failednodes" => failed_nodes,
        "failedandunresolvablenodes" => failed_and_unresolvable_nodes,
        "error" => error,
    }
    HostPriority { "host" => host, "score" => score }
    ExtenderPreemptionArgs {
        "pod" => pod,
        "nodenametovictims" => node_name_to_victims,
        "nodenametometavictims" => node_name_to_meta_victims,
    }
    Victims { "pods" => pods, "numpdbviolations" => num_pdb_violations }
    MetaVictims { "pods" => pods, "numpdbviolations" => num_pdb_violations }
    MetaPod { "uid" => uid }
    ExtenderPreemptionResult { "nodenametometavictims" => node_name_to_meta_victims }
    ExtenderBindingArgs {
        "podname" => pod_name,
        "podnamespace" => pod_namespace,
        "poduid" => pod_uid,
        "node" => node,
    }
    ExtenderBindingResult { "error" => error }
    FilterReply {
        "nodes" => nodes,
        "nodenames" => node_names,
        "failednodes" => failed_nodes,
        "failedandunresolvablenodes" => failed_and_unresolvable_nodes,
        "error" => error,
    }
    Names { "items" => items }
    Named { "metadata" => metadata }
    Meta { "name" => name }
}

/// The JSON of a question.
pub(crate) fn encode(question: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(question)
}

/// Reads the first JSON value of an answer; what comes after it does not
/// matter. An error says where in the answer it is.
pub(crate) fn decode<T: serde::de::DeserializeOwned + Default>(answer: &[u8]) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_slice(answer);
    match serde_path_to_error::deserialize::<_, Option<T>>(&mut reader) {
        Ok(read) => Ok(read.unwrap_or_default()),
        Err(error) if error.path().iter().next().is_none() => Err(error.inner().to_string()),
        Err(error) => Err(format!("{}: {}", error.path(), error.inner())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check<T>(value: &T, expected: &str)
    where
        T: Serialize + serde::de::DeserializeOwned + Default + PartialEq + fmt::Debug,
    {
        let text = String::from_utf8(encode(value).unwrap()).unwrap();
        assert_eq!(text, expected);
        assert_eq!(decode::<T>(text.as_bytes()).unwrap(), *value);
    }

    fn pod() -> core_v1::Pod {
        let metadata = meta_v1::ObjectMeta { name: Some("p".into()), ..Default::default() };
        core_v1::Pod { metadata, ..Default::default() }
    }

    const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}"#;

    #[test]
    fn names_are_those_of_the_go_types() {
        let meta = |uid: &str| MetaVictims {
            pods: vec![MetaPod { uid: uid.into() }],
            num_pdb_violations: 1,
        };
        let named = [("foo".to_owned(), meta("u"))];
        let args = ExtenderArgs { pod: pod(), node_names: Some(vec!["n".into()]), nodes: None };
        check(&args, &format!(r#"{{"Pod":{POD},"Nodes":null,"NodeNames":["n"]}}"#));
        check(
            &ExtenderArgs { nodes: Some(NodeList::default()), node_names: None, pod: pod() },
            &format!(r#"{{"Pod":{POD},"Nodes":{{"metadata":{{}},"items":[]}},"NodeNames":null}}"#),
        );
        check(
            &ExtenderPreemptionArgs {
                pod: pod(),
                node_name_to_victims: Some(
                    [("n".into(), Victims { pods: vec![pod()], num_pdb_violations: 2 })].into(),
                ),
                node_name_to_meta_victims: Some(named.clone().into()),
            },
            &format!(
                r#"{{"Pod":{POD},"NodeNameToVictims":{{"n":{{"Pods":[{POD}],"NumPDBViolations":2}}}},"NodeNameToMetaVictims":{{"foo":{{"Pods":[{{"UID":"u"}}],"NumPDBViolations":1}}}}}}"#
            ),
        );
        check(
            &ExtenderPreemptionResult { node_name_to_meta_victims: named.into() },
            r#"{"NodeNameToMetaVictims":{"foo":{"Pods":[{"UID":"u"}],"NumPDBViolations":1}}}"#,
        );
        check(
            &ExtenderFilterResult {
                nodes: None,
                node_names: Some(vec!["n".into()]),
                failed_nodes: [("foo".into(), "bar".into())].into(),
                failed_and_unresolvable_nodes: [("baz".into(), "qux".into())].into(),
                error: "e".into(),
            },
            r#"{"Nodes":null,"NodeNames":["n"],"FailedNodes":{"foo":"bar"},"FailedAndUnresolvableNodes":{"baz":"qux"},"Error":"e"}"#,
        );
        check(
            &ExtenderBindingArgs {
                pod_name: "a".into(),
                pod_namespace: "b".into(),
                pod_uid: "c".into(),
                node: "d".into(),
            },
            r#"{"PodName":"a","PodNamespace":"b","PodUID":"c","Node":"d"}"#,
        );
        check(&ExtenderBindingResult { error: "e".into() }, r#"{"Error":"e"}"#);
        check(&HostPriority { host: "h".into(), score: 1 }, r#"{"Host":"h","Score":1}"#);
    }

    #[test]
    fn case_nulls_strangers_and_what_follows_do_not_matter() {
        let answer = br#"{"NODENAMES":["a"],"failednodes":{"b":null},"Nodes":{"ITEMS":[
            {"Metadata":{"NAME":"c","labels":{"x":"y"}},"spec":[1]},null]},"Error":null,"more":{}} rest"#;
        let read: FilterReply = decode(answer).unwrap();
        assert_eq!(read.node_names, Some(vec!["a".to_owned()]));
        assert_eq!(read.failed_nodes, [("b".to_owned(), None)].into());
        let names = read.nodes.unwrap().items.into_iter().map(|item| item.metadata.name);
        assert_eq!(names.collect::<Vec<_>>(), ["c", ""]);
        assert_eq!(decode::<FilterReply>(b"null").unwrap(), FilterReply::default());
        assert_eq!(decode::<Vec<HostPriority>>(b"null").unwrap(), []);
    }

    #[test]
    fn errors_say_where() {
        let bad = |answer: serde_json::Value| {
            let error = decode::<FilterReply>(answer.to_string().as_bytes()).unwrap_err();
            error.split(" at line").next().unwrap_or_default().to_owned()
        };
        assert_eq!(
            bad(json!({"FailedNodes": {"n1": 3}})),
            "FailedNodes.n1: invalid type: integer `3`, expected a string"
        );
        assert_eq!(
            bad(json!({"NodeNames": ["a", {}]})),
            "NodeNames[1]: invalid type: map, expected a string"
        );
        assert_eq!(bad(json!([])), "invalid type: sequence, expected an object");
        assert_eq!(
            decode::<FilterReply>(b"").unwrap_err(),
            "EOF while parsing a value at line 1 column 0"
        );
        assert_eq!(
            decode::<FilterReply>(b"<html>").unwrap_err(),
            "expected value at line 1 column 1"
        );
    }
}
