//! An extender behind HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use http::Uri;
use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_framework::extender::{
    Extender, ExtenderError, Filtered, NodeVictims, Pending, Priority, Roles, Wants,
};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::verdict::Preemption;

use crate::client::{Client, Question};
use crate::error::CallError;
use crate::permission::Permission;
use crate::text::harmless;
use crate::v1::{
    ExtenderArgs, ExtenderBindingArgs, ExtenderBindingResult, ExtenderPreemptionArgs,
    ExtenderPreemptionResult, FilterReply, HostPriority, MetaPod, MetaVictims, NodeList, Victims,
    decode, encode,
};

/// See the module documentation.
pub(crate) struct HttpExtender {
    /// The prefix of its URLs.
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) may_bind: Option<Permission>,
    pub(crate) verbs: Verbs,
    pub(crate) weight: i64,
    pub(crate) ignorable: bool,
    pub(crate) knows_nodes: bool,
    /// Empty: everything.
    pub(crate) managed: BTreeSet<String>,
}

/// The verbs that it has.
pub(crate) struct Verbs {
    pub(crate) filter: Option<Verb>,
    pub(crate) prioritize: Option<Verb>,
    pub(crate) preempt: Option<Verb>,
    pub(crate) bind: Option<Verb>,
}

/// What to call.
pub(crate) struct Verb {
    pub(crate) name: String,
    pub(crate) url: Uri,
}

/// Why a verb gave nothing usable.
enum Failure {
    /// In words that say by themselves whom they are about, as they hold the URL,
    /// or are the extender's own.
    Told(String),
    /// In words that lack its name.
    Unnamed(String),
}

impl Failure {
    fn unnamed(what: impl fmt::Display) -> Self {
        Self::Unnamed(what.to_string())
    }

    /// For messages in which the name stands already.
    fn after_its_name(self) -> ExtenderError {
        let (Self::Told(what) | Self::Unnamed(what)) = self;
        ExtenderError(what)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self::Told(error.to_string())
    }
}

impl HttpExtender {
    fn question(&self, verb: &Verb, content: &impl Serialize) -> Result<Question, Failure> {
        match encode(content) {
            Ok(body) => Ok(Question { verb: verb.name.clone(), url: verb.url.clone(), body }),
            Err(error) => {
                Err(Failure::unnamed(format_args!("the question cannot be written: {error}")))
            }
        }
    }

    fn ask<T: DeserializeOwned + Default>(
        &self,
        verb: Option<&Verb>,
        content: &impl Serialize,
    ) -> Result<T, Failure> {
        let verb = verb.ok_or_else(no_such_verb)?;
        let answer = self.client.start(self.question(verb, content)?).wait();
        read(verb, &answer?)
    }

    /// The failure as the core is told it. An extender that may be ignored is
    /// left out with a note that begins with its name.
    fn told(&self, failure: Failure) -> ExtenderError {
        match failure {
            Failure::Unnamed(what) if !self.ignorable => {
                ExtenderError(format!("extender {:?}: {what}", self.name))
            }
            failure => failure.after_its_name(),
        }
    }

    fn whole_pod<'a>(&self, pod: &'a PodInfo) -> Result<&'a core_v1::Pod, Failure> {
        let missing =
            || Failure::unnamed(format_args!("the whole of pod {} is not known", pod.key));
        pod.object.as_deref().ok_or_else(missing)
    }

    fn args<'a>(
        &self,
        pod: &'a PodInfo,
        nodes: &[&'a NodeInfo],
    ) -> Result<ExtenderArgs<&'a core_v1::Pod, &'a core_v1::Node>, Failure> {
        let pod = self.whole_pod(pod)?;
        if self.knows_nodes {
            let names = nodes.iter().map(|node| node.name().to_string()).collect();
            return Ok(ExtenderArgs { pod, nodes: None, node_names: Some(names) });
        }
        let whole = |node: &&'a NodeInfo| {
            let missing =
                || Failure::unnamed(format_args!("the whole of node {} is not known", node.name()));
            node.node().object.as_deref().ok_or_else(missing)
        };
        let items: Result<Vec<_>, _> = nodes.iter().map(whole).collect();
        let nodes = NodeList { items: items?, metadata: ListMeta::default() };
        Ok(ExtenderArgs { pod, nodes: Some(nodes), node_names: None })
    }

    fn preemption_args<'a>(
        &self,
        pod: &'a PodInfo,
        candidates: &'a [Preemption],
    ) -> Result<ExtenderPreemptionArgs<&'a core_v1::Pod>, Failure> {
        let mut args = ExtenderPreemptionArgs {
            pod: self.whole_pod(pod)?,
            node_name_to_victims: None,
            node_name_to_meta_victims: None,
        };
        let violated = |it: &Preemption| i64::try_from(it.budgets_violated).unwrap_or(i64::MAX);
        if self.knows_nodes {
            let meta = |it: &Preemption| {
                let pods = it.victims.iter().map(|pod| MetaPod { uid: pod.uid.to_string() });
                let victims =
                    MetaVictims { pods: pods.collect(), num_pdb_violations: violated(it) };
                (it.node.to_string(), victims)
            };
            args.node_name_to_meta_victims = Some(candidates.iter().map(meta).collect());
            return Ok(args);
        }
        let mut by_node = BTreeMap::new();
        for it in candidates {
            let pods: Result<Vec<_>, _> =
                it.victims.iter().map(|pod| self.whole_pod(pod)).collect();
            let victims = Victims { pods: pods?, num_pdb_violations: violated(it) };
            by_node.insert(it.node.to_string(), victims);
        }
        args.node_name_to_victims = Some(by_node);
        Ok(args)
    }

    fn filtered(&self, reply: FilterReply) -> Result<Filtered, Failure> {
        if !reply.error.is_empty() {
            return Err(Failure::Told(harmless(&reply.error)));
        }
        let passed = match (reply.node_names, reply.nodes) {
            (Some(names), _) if self.knows_nodes => names,
            (_, Some(nodes)) => nodes.items.into_iter().map(|item| item.metadata.name).collect(),
            _ => Vec::new(),
        };
        Ok(Filtered {
            passed: passed.iter().map(|text| name(text)).collect(),
            failed: reasons(reply.failed_nodes),
            failed_for_good: reasons(reply.failed_and_unresolvable_nodes),
        })
    }

    async fn ask_to_bind(&self, pod: &PodInfo, node: &Name) -> Result<(), Failure> {
        let verb = self.verbs.bind.as_ref().ok_or_else(no_such_verb)?;
        let args = ExtenderBindingArgs {
            pod_name: pod.key.name.to_string(),
            pod_namespace: pod.key.namespace.to_string(),
            pod_uid: pod.uid.to_string(),
            node: node.to_string(),
        };
        let question = self.question(verb, &args)?;
        let answer = self.client.write(question, self.may_bind.as_ref()).await?;
        let reply: ExtenderBindingResult = read(verb, &answer)?;
        match reply.error.as_str() {
            "" => Ok(()),
            error => Err(Failure::Told(harmless(error))),
        }
    }
}

impl Extender for HttpExtender {
    fn name(&self) -> &str {
        &self.name
    }

    fn roles(&self) -> Roles {
        let mut roles = Roles::empty();
        roles.set(Roles::FILTER, self.verbs.filter.is_some());
        roles.set(Roles::PRIORITIZE, self.verbs.prioritize.is_some());
        roles.set(Roles::PREEMPT, self.verbs.preempt.is_some());
        roles.set(Roles::BIND, self.verbs.bind.is_some());
        roles
    }

    fn is_interested(&self, pod: &PodInfo) -> bool {
        self.managed.is_empty() || asks_for_one_of(pod, &self.managed)
    }

    fn is_ignorable(&self) -> bool {
        self.ignorable
    }

    fn wants(&self) -> Wants {
        let judges = self.roles().intersects(Roles::FILTER | Roles::PRIORITIZE);
        let preempts = self.roles().contains(Roles::PREEMPT);
        Wants {
            // Which resources containers ask for stands nowhere else.
            pending_pods: true,
            placed_pods: preempts && !self.knows_nodes,
            nodes: judges && !self.knows_nodes,
        }
    }

    fn weight(&self) -> i64 {
        self.weight
    }

    fn filter(&self, pod: &PodInfo, nodes: &[&NodeInfo]) -> Result<Filtered, ExtenderError> {
        let args = self.args(pod, nodes);
        let reply = args.and_then(|args| self.ask(self.verbs.filter.as_ref(), &args));
        reply.and_then(|reply| self.filtered(reply)).map_err(|failure| self.told(failure))
    }

    fn prioritize<'a>(
        &'a self,
        pod: &'a PodInfo,
        nodes: &'a [&'a NodeInfo],
    ) -> Pending<'a, Vec<Priority>> {
        let started = self.verbs.prioritize.as_ref().ok_or_else(no_such_verb);
        let started = started.and_then(|verb| {
            let question = self.question(verb, &self.args(pod, nodes)?)?;
            Ok((verb, self.client.start(question)))
        });
        Pending::new(move || {
            let reply = started.and_then(|(verb, call)| read(verb, &call.wait()?));
            // Whether it may be ignored or not, it is left out if it failed.
            let reply: Vec<HostPriority> = reply.map_err(Failure::after_its_name)?;
            let priorities = reply.into_iter();
            Ok(priorities.map(|it| Priority { node: name(&it.host), priority: it.score }).collect())
        })
    }

    fn preempt(
        &self,
        pod: &PodInfo,
        candidates: &[Preemption],
    ) -> Result<Vec<NodeVictims>, ExtenderError> {
        let args = self.preemption_args(pod, candidates);
        let reply = args.and_then(|args| self.ask(self.verbs.preempt.as_ref(), &args));
        reply.and_then(victims).map_err(|failure| self.told(failure))
    }

    fn bind<'a>(
        &'a self,
        pod: &'a PodInfo,
        node: &'a Name,
    ) -> BoxFuture<'a, Result<(), ExtenderError>> {
        Box::pin(async move { self.ask_to_bind(pod, node).await.map_err(|it| self.told(it)) })
    }
}

/// Whether a container or init container asks for one of the resources, or
/// limits it, be it to nothing.
fn asks_for_one_of(pod: &PodInfo, resources: &BTreeSet<String>) -> bool {
    let Some(spec) = pod.object.as_ref().and_then(|object| object.spec.as_ref()) else {
        let requests = &pod.resources.requests;
        return resources.iter().any(|name| requests.scalar(&name.as_str().into()) != 0);
    };
    let init_containers = spec.init_containers.as_deref().unwrap_or_default();
    spec.containers.iter().chain(init_containers).any(|container| {
        let Some(asked) = &container.resources else { return false };
        let lists = asked.requests.iter().chain(&asked.limits);
        lists.flat_map(BTreeMap::keys).any(|name| resources.contains(name))
    })
}

fn no_such_verb() -> Failure {
    Failure::unnamed("does not have the verb")
}

fn read<T: DeserializeOwned + Default>(verb: &Verb, answer: &[u8]) -> Result<T, Failure> {
    decode(answer).map_err(|error| {
        let error = harmless(&error);
        Failure::unnamed(format_args!("the answer to {} cannot be read: {error}", verb.name))
    })
}

fn victims(reply: ExtenderPreemptionResult) -> Result<Vec<NodeVictims>, Failure> {
    let read = |(node, victims): (String, MetaVictims)| {
        let found = victims.num_pdb_violations;
        let budgets_violated = usize::try_from(found).map_err(|_| {
            Failure::unnamed(format_args!(
                "NodeNameToMetaVictims.{}.NumPDBViolations: found {found}, allowed: 0 or more",
                harmless(&node)
            ))
        })?;
        let victims = victims.pods.iter().map(|pod| harmless(&pod.uid).as_str().into()).collect();
        Ok(NodeVictims { node: name(&node), victims, budgets_violated })
    };
    reply.node_name_to_meta_victims.into_iter().map(read).collect()
}

fn reasons(nodes: BTreeMap<String, Option<String>>) -> BTreeMap<Name, String> {
    let nodes = nodes.into_iter();
    nodes.map(|(node, why)| (name(&node), harmless(&why.unwrap_or_default()))).collect()
}

/// A name that an extender gives. One that is too long for a name is cut: it
/// names nothing.
fn name(text: &str) -> Name {
    harmless(text).as_str().into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use steersman_testing::pod;

    use super::*;

    #[track_caller]
    fn check_interest(spec: serde_json::Value, expected: bool) {
        let managed = BTreeSet::from(["example.com/gpu".to_owned()]);
        let object: core_v1::Pod = serde_json::from_value(json!({"spec": spec})).unwrap();
        let pod = PodInfo { object: Some(Arc::new(object)), ..(*pod("p").build()).clone() };
        assert_eq!(asks_for_one_of(&pod, &managed), expected);
    }

    #[test]
    fn interest_is_in_requests_and_limits_of_any_container() {
        let asks = |kind: &str, resource: &str, amount: &str| json!({"name": "c", "resources": {kind: {resource: amount}}});
        let plain = asks("requests", "cpu", "1");
        check_interest(json!({"containers": [plain]}), false);
        check_interest(
            json!({"containers": [plain, asks("requests", "example.com/gpu", "1")]}),
            true,
        );
        check_interest(json!({"containers": [asks("limits", "example.com/gpu", "0")]}), true);
        check_interest(json!({"containers": [asks("requests", "example.com/gpus", "1")]}), false);
        let init = asks("limits", "example.com/gpu", "2");
        check_interest(json!({"containers": [plain], "initContainers": [init]}), true);
    }
}
