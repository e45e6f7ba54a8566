//! Extenders that make trouble. What they say depends on nothing but the pod,
//! the node and how many pods stand on it, so that asking more often changes no
//! history, and every change of their mind comes with an event.

use std::sync::Arc;

use steersman_api::name::Name;
use steersman_api::node_info::NodeInfo;
use steersman_api::pod::PodInfo;
use steersman_framework::extender::{
    Extender, ExtenderError, Filtered, NodeVictims, Pending, Priority, Roles,
};
use steersman_framework::extensions::BoxFuture;
use steersman_framework::verdict::Preemption;

use crate::rng::Rng;

/// Those of a history; some have none.
pub(crate) fn extenders(seed: u64) -> Vec<Arc<dyn Extender>> {
    if seed % 5 != 2 {
        return Vec::new();
    }
    let fails = Unsteady { name: "fails", is_ignorable: true, roles: Roles::all() };
    let roles = Roles::FILTER | Roles::PRIORITIZE | Roles::PREEMPT;
    vec![Arc::new(fails), Arc::new(Unsteady { name: "picky", is_ignorable: false, roles })]
}

/// The one that may be ignored fails often and binds nothing; the other one
/// refuses more than half of the nodes and a third of the preemptions, and fails
/// now and then.
struct Unsteady {
    name: &'static str,
    is_ignorable: bool,
    roles: Roles,
}

/// One of `n` numbers, always the same for the same words and number.
fn draw(words: &[&str], count: usize, n: usize) -> usize {
    let hash = words
        .iter()
        .flat_map(|word| word.bytes().chain([0]))
        .fold(count as u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    Rng::new(hash).below(n)
}

impl Unsteady {
    fn about(&self, pod: &PodInfo, node: &NodeInfo, n: usize) -> usize {
        draw(&[self.name, &pod.uid.0, node.name()], node.pods().len(), n)
    }

    fn may_fail(&self, verb: &str, pod: &PodInfo) -> Result<(), ExtenderError> {
        let in_vain = if self.is_ignorable { 2 } else { 11 };
        match draw(&[self.name, verb, &pod.uid.0], 0, in_vain) {
            0 => Err(ExtenderError(format!("{} fails at {verb}", self.name))),
            _ => Ok(()),
        }
    }
}

impl Extender for Unsteady {
    fn name(&self) -> &str {
        self.name
    }

    fn roles(&self) -> Roles {
        self.roles
    }

    fn is_interested(&self, pod: &PodInfo) -> bool {
        draw(&[self.name, &pod.uid.0], 0, 3) > 0
    }

    fn is_ignorable(&self) -> bool {
        self.is_ignorable
    }

    fn filter(&self, pod: &PodInfo, nodes: &[&NodeInfo]) -> Result<Filtered, ExtenderError> {
        self.may_fail("filter", pod)?;
        let mut answer = Filtered::default();
        for node in nodes {
            let name = node.name().clone();
            match self.about(pod, node, 5) {
                0 => drop(answer.failed.insert(name, "not now".to_owned())),
                1 => drop(answer.failed_for_good.insert(name, "never".to_owned())),
                // Nor is it accepted.
                2 => {}
                _ => answer.passed.push(name),
            }
        }
        Ok(answer)
    }

    fn prioritize<'a>(
        &'a self,
        pod: &'a PodInfo,
        nodes: &'a [&'a NodeInfo],
    ) -> Pending<'a, Vec<Priority>> {
        Pending::new(move || {
            self.may_fail("prioritize", pod)?;
            let priority = |node: &&NodeInfo| {
                let priority = i64::try_from(self.about(pod, node, 14)).expect("it is small");
                Priority { node: node.name().clone(), priority: priority - 2 }
            };
            Ok(nodes.iter().map(priority).collect())
        })
    }

    fn preempt(
        &self,
        pod: &PodInfo,
        candidates: &[Preemption],
    ) -> Result<Vec<NodeVictims>, ExtenderError> {
        self.may_fail("preempt", pod)?;
        // Whoever the victims are: they also change with nominations, of which
        // no event tells.
        let accepts = |it: &&Preemption| draw(&[self.name, &pod.uid.0, &it.node], 0, 3) > 0;
        let accepted = candidates.iter().filter(accepts).map(|it| NodeVictims {
            node: it.node.clone(),
            victims: it.victims.iter().rev().map(|victim| victim.uid.clone()).collect(),
            budgets_violated: it.budgets_violated,
        });
        Ok(accepted.collect())
    }

    fn bind<'a>(&'a self, _: &'a PodInfo, _: &'a Name) -> BoxFuture<'a, Result<(), ExtenderError>> {
        let failed = ExtenderError(format!("{} binds nothing", self.name));
        Box::pin(std::future::ready(Err(failed)))
    }
}
