//! Who is promised which volume, and the rules of that.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use steersman_api::key::ObjectKey;
use steersman_framework::world::WriteError;

use crate::api::{Api, node_of, text};
use crate::objects::{HOSTNAME, ZONE};
use crate::storage::{CLAIM, CLASS, CSI_NODE, DRIVER, SELECTED_NODE, VOLUME, is_bound};
use crate::told::Told;

/// Volumes that binding cycles have written for claims.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// By the claim's UID: for which pod, and which volume.
    volumes: BTreeMap<String, (String, String)>,
}

/// A patch that the binding cycle of a pod asks for.
pub(crate) struct Patch<'a> {
    pub(crate) pod: &'a str,
    pub(crate) resource: &'static str,
    pub(crate) key: &'a ObjectKey,
    pub(crate) patch: &'a Value,
}

impl Promises {
    /// A patch of a binding cycle reaches the API server. `Err`: no scheduler
    /// may ask for that.
    pub(crate) fn patch(
        &mut self,
        api: &mut Api,
        Patch { pod, resource, key, patch }: &Patch<'_>,
    ) -> Result<Result<(), WriteError>, String> {
        let (namespace, name) = (key.namespace.to_string(), key.name.to_string());
        let Some(old) = api.other(resource, &namespace, &name).cloned() else {
            return Ok(Err(WriteError::NotFound(format!("{resource} {key}"))));
        };
        let version = text(patch, "/metadata/resourceVersion");
        if version.is_empty() {
            return Err(format!("{resource} {key} is written whatever its version: {patch}"));
        }
        if version != text(&old, "/metadata/resourceVersion") {
            return Ok(Err(WriteError::Conflict(format!("{resource} {key} has changed"))));
        }
        let mut new = old.clone();
        merge(&mut new, patch);
        match *resource {
            VOLUME => self.check_volume(api, pod, &old, &new)?,
            CLAIM => check_claim(&old, &new)?,
            other => return Err(format!("{other} {key} is none of a scheduler's business")),
        }
        api.put_other(resource, new);
        Ok(Ok(()))
    }

    /// The pod holds no reservations any more: promises need not be kept.
    pub(crate) fn end(&mut self, pod: &str) {
        self.volumes.retain(|_, (of, _)| of != pod);
    }

    fn check_volume(
        &mut self,
        api: &Api,
        pod: &str,
        old: &Value,
        new: &Value,
    ) -> Result<(), String> {
        let whose = |volume: &Value| text(volume, "/spec/claimRef/uid").to_owned();
        let (before, after) = (whose(old), whose(new));
        if !before.is_empty() && before != after {
            return Err(format!("{old} is taken from its claim: {new}"));
        }
        let name = text(new, "/metadata/name").to_owned();
        if let Some((by, other)) = self.volumes.get(&after)
            && *other != name
            && api.other(VOLUME, "", other).is_some_and(|volume| whose(volume) == after)
        {
            return Err(format!("claim {after} gets {name}, and {other} for {by}"));
        }
        self.volumes.insert(after, (pod.to_owned(), name));
        Ok(())
    }
}

fn check_claim(old: &Value, new: &Value) -> Result<(), String> {
    let selected = &old["metadata"]["annotations"][SELECTED_NODE];
    if is_bound(old)
        || (!selected.is_null() && *selected != new["metadata"]["annotations"][SELECTED_NODE])
    {
        return Err(format!("{old} is to be made a volume elsewhere: {new}"));
    }
    Ok(())
}

/// A JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else { return *target = patch.clone() };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let fields = target.as_object_mut().expect("made one above");
    for (name, value) in patch {
        match value {
            Value::Null => drop(fields.remove(name)),
            value => merge(fields.entry(name.clone()).or_insert(Value::Null), value),
        }
    }
}

/// The claims that a pod uses: namespace and name.
pub(crate) fn claims_of(pod: &Value) -> BTreeSet<(String, String)> {
    let namespace = text(pod, "/metadata/namespace");
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes
        .map(|volume| match volume["persistentVolumeClaim"]["claimName"].as_str() {
            Some(claim) => (namespace.to_owned(), claim.to_owned()),
            None => {
                let name = format!("{}-{}", text(pod, "/metadata/name"), text(volume, "/name"));
                (namespace.to_owned(), name)
            }
        })
        .collect()
}

impl Api {
    /// Claims of a pod that is being bound have their volumes. Those that came
    /// after `since` are others than the ones that were waited for.
    pub(crate) fn check_claims_bound(&self, uid: &str, since: u32) -> Result<(), String> {
        let Some(pod) = self.pods.get(uid) else { return Ok(()) };
        for (namespace, name) in claims_of(pod) {
            let Some(claim) = self.other(CLAIM, &namespace, &name) else { continue };
            let number = text(claim, "/metadata/uid").trim_start_matches("claim-").parse();
            let is_later = number.is_ok_and(|number: u32| number > since);
            if !is_later && !is_bound(claim) {
                return Err(format!("{uid} is bound to {:?} before {claim}", node_of(pod)));
            }
        }
        Ok(())
    }
}

impl Told {
    /// The pod may use its claims on the node, as far as was told.
    pub(crate) fn check_claims(&self, uid: &str, pod: &Value, node: &str) -> Result<(), String> {
        let Some(object) = self.nodes.get(node) else { return Ok(()) };
        for key in claims_of(pod) {
            let Some(claim) = self.other(CLAIM, &key) else {
                return Err(format!("{uid} was scheduled without its claim {key:?}"));
            };
            if claim["spec"]["accessModes"][0] == "ReadWriteOncePod" {
                // As in the reference, pods on nodes that nobody knows do not count.
                let others = self
                    .placed()
                    .filter(|(other, on, _)| *other != uid && self.nodes.contains_key(*on));
                let mut users = others.filter(|(_, _, pod)| claims_of(pod).contains(&key));
                // The claim of an ephemeral volume is the pod's own in any case.
                let own = claim["metadata"].get("ownerReferences").is_some();
                if let Some((other, ..)) = users.next().filter(|_| !own) {
                    return Err(format!("{uid} and {other} use {claim}"));
                }
            }
            if !is_bound(claim) {
                let class = text(claim, "/spec/storageClassName");
                let class = self.other(CLASS, &(String::new(), class.to_owned()));
                if class.is_none_or(|class| class["volumeBindingMode"] == "Immediate") {
                    return Err(format!("{uid} was scheduled before {claim} has a volume"));
                }
                continue;
            }
            let name = text(claim, "/spec/volumeName");
            let Some(volume) = self.other(VOLUME, &(String::new(), name.to_owned())) else {
                return Err(format!("{uid} was scheduled without {name}"));
            };
            // As in the reference, zones do not count for ephemeral volumes.
            let by_zone =
                claim["metadata"].get("ownerReferences").is_some() || is_in_zone(volume, object);
            if !by_zone || !is_reachable(volume, object) {
                return Err(format!("{uid} was scheduled to {node}, far from {volume}"));
            }
        }
        self.check_limit(pod, node)
    }

    /// No more volumes than the driver takes, unless the pod brings none.
    fn check_limit(&self, pod: &Value, node: &str) -> Result<(), String> {
        let limits = self.other(CSI_NODE, &(String::new(), node.to_owned()));
        let limit = limits.and_then(|l| l["spec"]["drivers"][0]["allocatable"]["count"].as_u64());
        let Some(limit) = limit else { return Ok(()) };
        let there = self.placed().filter(|(_, on, _)| *on == node);
        let mut volumes: BTreeSet<String> =
            there.flat_map(|(_, _, pod)| self.driver_volumes(pod)).collect();
        let before = volumes.len();
        volumes.extend(self.driver_volumes(pod));
        let fits = u64::try_from(volumes.len()).is_ok_and(|count| count <= limit);
        match fits || volumes.len() == before {
            true => Ok(()),
            false => Err(format!("node {node} takes {limit} volumes and gets {volumes:?}")),
        }
    }

    /// The driver's volumes that a pod uses or will use.
    fn driver_volumes(&self, pod: &Value) -> Vec<String> {
        let uid = text(pod, "/metadata/uid");
        let volume = |key: (String, String)| {
            let claim = self.other(CLAIM, &key)?;
            let owner = text(claim, "/metadata/ownerReferences/0/uid");
            if !owner.is_empty() && owner != uid {
                return None;
            }
            let named =
                |kind, pointer| self.other(kind, &(String::new(), text(claim, pointer).to_owned()));
            if let Some(volume) = named(VOLUME, "/spec/volumeName") {
                return volume["spec"]["csi"]["volumeHandle"].as_str().map(str::to_owned);
            }
            let class = named(CLASS, "/spec/storageClassName")?;
            (class["provisioner"] == DRIVER).then(|| format!("for {key:?}"))
        };
        claims_of(pod).into_iter().filter_map(volume).collect()
    }

    fn other(&self, kind: &str, (namespace, name): &(String, String)) -> Option<&Value> {
        self.others.get(&(kind.to_owned(), namespace.clone(), name.clone()))
    }
}

/// Whether a node can reach a volume, by its affinity.
fn is_reachable(volume: &Value, node: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    let rule = "/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0";
    volume.pointer(rule).is_none_or(|rule| {
        let label = if rule["key"] == ZONE { &labels[ZONE] } else { &labels[HOSTNAME] };
        rule["values"][0] == *label
    })
}

/// Whether a node is in the zone that a volume is labelled with.
fn is_in_zone(volume: &Value, node: &Value) -> bool {
    let (of_volume, of_node) =
        (&volume["metadata"]["labels"][ZONE], &node["metadata"]["labels"][ZONE]);
    of_volume.is_null() || of_node.is_null() || of_volume == of_node
}
