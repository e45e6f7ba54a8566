//! Counts again what the API server says, without the scheduler's code.

use std::collections::BTreeMap;

use serde_json::Value;
use steersman_api::quantity::Quantity;
use steersman_apiserver::ApiServer;

/// What is asked for of one node, in thousandths, and what it has.
#[derive(Default)]
struct Amounts {
    asked: BTreeMap<String, i64>,
    room: BTreeMap<String, i64>,
}

/// Problems shown at the most.
const ENOUGH: usize = 10;

/// What is wrong with the bindings of `n_pods` pods (and any others); empty if
/// all is well.
pub(crate) fn problems(server: &ApiServer, n_pods: usize) -> Vec<String> {
    let objects = server.dump();
    let mut nodes: BTreeMap<&str, Amounts> = BTreeMap::new();
    for node in objects.iter().filter(|object| object["kind"] == "Node") {
        let room = amounts(&node["status"]["allocatable"]);
        nodes.insert(name(node), Amounts { room, ..Amounts::default() });
    }
    let mut problems = Vec::new();
    let mut n_bound = 0;
    for pod in objects.iter().filter(|object| object["kind"] == "Pod") {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let Some(node) = nodes.get_mut(node) else {
            problems.push(format!("pod {} is on node {node:?}, which does not exist", name(pod)));
            continue;
        };
        n_bound += 1;
        *node.asked.entry("pods".to_owned()).or_default() += 1000;
        for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
            for (resource, amount) in amounts(&container["resources"]["requests"]) {
                *node.asked.entry(resource).or_default() += amount;
            }
        }
    }
    if n_bound < n_pods {
        problems.push(format!("{n_bound} of {n_pods} pods are bound"));
    }
    for (name, Amounts { asked, room }) in nodes {
        for (resource, asked) in asked {
            let room = room.get(&resource).copied().unwrap_or(0);
            if asked > room {
                problems
                    .push(format!("node {name} has {room}m {resource}, and gave away {asked}m"));
            }
        }
    }
    let more = problems.len().saturating_sub(ENOUGH);
    problems.truncate(ENOUGH);
    if more > 0 {
        problems.push(format!("{more} more problems"));
    }
    problems
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// What cannot be read counts as nothing on both sides: the API server takes no
/// such objects.
fn amounts(list: &Value) -> BTreeMap<String, i64> {
    let amount = |text: &Value| Quantity::parse(text.as_str()?).ok().map(Quantity::milli_value);
    let list = list.as_object().into_iter().flatten();
    list.filter_map(|(resource, text)| Some((resource.clone(), amount(text)?))).collect()
}
