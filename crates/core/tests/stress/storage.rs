//! Random claims, volumes, classes and limits, and what a volume controller and
//! a provisioner make of them.

use serde_json::{Value, json};

use crate::api::{Api, text};
use crate::objects::{HOSTNAME, NAMESPACES, NODES, ZONE, ZONES};
use crate::rng::Rng;

pub(crate) const CLAIM: &str = "PersistentVolumeClaim";
pub(crate) const VOLUME: &str = "PersistentVolume";
pub(crate) const CLASS: &str = "storage.k8s.io/StorageClass";
pub(crate) const CSI_NODE: &str = "storage.k8s.io/CSINode";
pub(crate) const DRIVER: &str = "csi.example.com";
pub(crate) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// By hand and made on demand, both with the pod's node, and at once.
const CLASSES: [&str; 3] = ["local", "made", "now"];
const CLAIMS: [&str; 4] = ["c0", "c1", "c2", "c3"];
const VOLUMES: [&str; 8] = ["v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"];
/// The name of the ephemeral volume of pods that have one.
const EPHEMERAL: &str = "scratch";

/// Gives a pod volumes.
pub(crate) fn mount(rng: &mut Rng, pod: &mut Value) {
    let mut volumes: Vec<Value> = Vec::new();
    for n in 0..1 + rng.below(2) {
        let claim = *rng.pick(&CLAIMS);
        volumes.push(json!({"name": format!("v{n}"), "persistentVolumeClaim":
            {"claimName": claim}}));
    }
    if rng.chance(15) {
        volumes = vec![json!({"name": EPHEMERAL, "ephemeral": {"volumeClaimTemplate":
            {"spec": {}}}})];
    }
    pod["spec"]["volumes"] = volumes.into();
}

/// A class; sometimes not the same as before.
fn class(rng: &mut Rng, name: &str) -> Value {
    let provisioner = if name == "local" { "kubernetes.io/no-provisioner" } else { DRIVER };
    let mode = if name == "now" { "Immediate" } else { "WaitForFirstConsumer" };
    let mut class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": mode,
    });
    if name == "made" && rng.chance(50) {
        class["allowedTopologies"] = json!([{"matchLabelExpressions": [
            {"key": ZONE, "values": &ZONES[..1 + rng.below(2)]}]}]);
    }
    class
}

fn claim(rng: &mut Rng, namespace: &str, name: &str, uid: String) -> Value {
    let mode = *rng.pick(&["ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"]);
    let mut claim = json!({
        "apiVersion": "v1", "kind": CLAIM,
        "metadata": {"namespace": namespace, "name": name, "uid": uid, "annotations": {}},
        "spec": {"accessModes": [mode], "storageClassName": *rng.pick(&["local", "local", "made", "made", "now"]),
            "resources": {"requests": {"storage": *rng.pick(&["1Gi", "2Gi", "5Gi"])}}},
        "status": {"phase": "Pending"},
    });
    if rng.chance(10) {
        claim["spec"]["selector"] = json!({"matchLabels": {"tier": "gold"}});
    }
    claim
}

fn volume(rng: &mut Rng, name: &str) -> Value {
    let mut volume = json!({
        "apiVersion": "v1", "kind": VOLUME, "metadata": {"name": name, "labels": {}},
        "spec": {"storageClassName": *rng.pick(&["local", "local", "local", "made", "now"]),
            "capacity": {"storage": *rng.pick(&["1Gi", "3Gi", "10Gi"])},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"]},
        "status": {"phase": "Available"},
    });
    if rng.chance(50) {
        volume["spec"]["csi"] = json!({"driver": DRIVER, "volumeHandle": name});
    } else {
        volume["spec"]["local"] = json!({"path": "/mnt"});
    }
    change_volume(rng, &mut volume);
    volume
}

/// Volumes can be reached from one node, from one zone or from everywhere.
fn change_volume(rng: &mut Rng, volume: &mut Value) {
    match rng.below(6) {
        0 => volume["metadata"]["labels"]["tier"] = "gold".into(),
        1 => volume["metadata"]["labels"][ZONE] = (*rng.pick(&ZONES)).into(),
        2 => volume["metadata"]["labels"] = json!({}),
        3 => volume["spec"]["nodeAffinity"] = only(HOSTNAME, rng.pick::<&str>(&NODES[..6])),
        4 => volume["spec"]["nodeAffinity"] = only(ZONE, rng.pick::<&str>(&ZONES)),
        _ => drop(volume["spec"].as_object_mut().map(|spec| spec.remove("nodeAffinity"))),
    }
}

fn only(label: &str, value: &str) -> Value {
    json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": label, "operator": "In", "values": [value]}]}]}})
}

fn csi_node(rng: &mut Rng, name: &str) -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": name,
            "allocatable": {"count": 1 + rng.below(3)}}]},
    })
}

impl Api {
    /// Classes and some claims and volumes to begin with.
    pub(crate) fn furnish(&mut self, rng: &mut Rng) {
        for name in CLASSES {
            self.put_other(CLASS, class(rng, name));
        }
        for _ in 0..8 {
            self.change_claims(rng);
            self.change_volumes(rng);
        }
    }

    /// Users make and delete claims, and ephemeral volumes get theirs.
    pub(crate) fn change_claims(&mut self, rng: &mut Rng) {
        let (namespace, name) = (*rng.pick(&NAMESPACES), *rng.pick(&CLAIMS));
        let found = self.other(CLAIM, namespace, name).cloned();
        match (rng.below(15), found) {
            (0 | 1, Some(_)) => self.delete_other(CLAIM, namespace, name),
            (3, Some(mut claim)) => {
                claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                self.put_other(CLAIM, claim);
            }
            (4 | 5, Some(claim)) => self.put_other(CLAIM, claim),
            (_, None) => {
                let uid = self.new_claim_uid();
                self.put_other(CLAIM, claim(rng, namespace, name, uid));
            }
            _ => {}
        }
    }

    /// The controller of ephemeral volumes: a claim for each pod that has one,
    /// until the pod is gone.
    pub(crate) fn control_ephemeral(&mut self, rng: &mut Rng) {
        let wanted: Vec<(String, String, String)> = self
            .pods
            .iter()
            .filter(|(_, pod)| text(pod, "/spec/volumes/0/name") == EPHEMERAL)
            .map(|(uid, pod)| {
                let name = format!("{}-{EPHEMERAL}", text(pod, "/metadata/name"));
                (uid.clone(), text(pod, "/metadata/namespace").to_owned(), name)
            })
            .collect();
        for (pod, namespace, name) in &wanted {
            if self.other(CLAIM, namespace, name).is_none() {
                let uid = self.new_claim_uid();
                let mut claim = claim(rng, namespace, name, uid);
                claim["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Pod",
                    "name": "p", "uid": pod, "controller": true}]);
                self.put_other(CLAIM, claim);
            }
        }
        let orphan = |claim: &&Value| {
            let owner = text(claim, "/metadata/ownerReferences/0/uid");
            !owner.is_empty() && !wanted.iter().any(|(uid, ..)| uid == owner)
        };
        let orphan = self.of_kind(CLAIM).find(orphan).map(key);
        if let Some((namespace, name)) = orphan {
            self.delete_other(CLAIM, &namespace, &name);
        }
    }

    /// Volumes come, change and go by hand.
    pub(crate) fn change_volumes(&mut self, rng: &mut Rng) {
        let name = *rng.pick(&VOLUMES);
        match self.other(VOLUME, "", name).cloned() {
            None => self.put_other(VOLUME, volume(rng, name)),
            Some(_) if rng.chance(15) => self.delete_other(VOLUME, "", name),
            Some(mut volume) => {
                change_volume(rng, &mut volume);
                self.put_other(VOLUME, volume);
            }
        }
    }

    /// Classes and limits change.
    pub(crate) fn change_storage(&mut self, rng: &mut Rng) {
        if rng.chance(25) {
            let name = *rng.pick(&CLASSES);
            match rng.chance(20) {
                true => self.delete_other(CLASS, "", name),
                false => self.put_other(CLASS, class(rng, name)),
            }
            return;
        }
        let name = *rng.pick(&NODES);
        match rng.chance(30) {
            true => self.delete_other(CSI_NODE, "", name),
            false => self.put_other(CSI_NODE, csi_node(rng, name)),
        }
    }

    /// The volume controller and the provisioner make one step.
    pub(crate) fn control_volumes(&mut self, rng: &mut Rng) {
        let unbound = self.of_kind(CLAIM).filter(|claim| {
            !is_bound(claim) && claim["metadata"].get("deletionTimestamp").is_none()
        });
        if let Some(claim) = rng.pick_any(unbound.cloned()) {
            self.control_claim(rng, claim);
        }
        let used = self.of_kind(VOLUME).filter(|volume| self.is_released(volume));
        let Some(mut volume) = rng.pick_any(used.cloned()) else { return };
        if rng.chance(50) {
            return self.delete_other(VOLUME, "", text(&volume, "/metadata/name"));
        }
        drop(volume["spec"].as_object_mut().map(|spec| spec.remove("claimRef")));
        volume["status"]["phase"] = "Available".into();
        self.put_other(VOLUME, volume);
    }

    fn control_claim(&mut self, rng: &mut Rng, mut claim: Value) {
        let kept = self.of_kind(VOLUME).find(|volume| is_kept_for(volume, &claim)).cloned();
        if let Some(mut volume) = kept {
            if volume["status"]["phase"] != "Bound" {
                volume["status"]["phase"] = "Bound".into();
                self.put_other(VOLUME, volume.clone());
                if rng.chance(50) {
                    return;
                }
            }
            claim["spec"]["volumeName"] = volume["metadata"]["name"].clone();
            claim["metadata"]["annotations"][BIND_COMPLETED] = "yes".into();
            claim["status"]["phase"] = "Bound".into();
            return self.put_other(CLAIM, claim);
        }
        let Some(class) = self.other(CLASS, "", text(&claim, "/spec/storageClassName")) else {
            return;
        };
        let waits = class["volumeBindingMode"] == "WaitForFirstConsumer";
        let makes = class["provisioner"] == DRIVER;
        let selected = claim["metadata"]["annotations"][SELECTED_NODE].as_str().map(str::to_owned);
        match selected {
            Some(_) if rng.chance(15) => {
                let annotations = claim["metadata"]["annotations"].as_object_mut();
                annotations.expect("as it was made").remove(SELECTED_NODE);
                self.put_other(CLAIM, claim);
            }
            Some(node) if makes => self.provision(&claim, &only(HOSTNAME, &node)),
            None if !waits && makes => {
                self.provision(&claim, &only(HOSTNAME, rng.pick::<&str>(&NODES[..6])))
            }
            Some(_) | None => {}
        }
    }

    fn provision(&mut self, claim: &Value, reach: &Value) {
        let name = format!("pvc-{}", text(claim, "/metadata/uid"));
        let metadata = &claim["metadata"];
        self.put_other(
            VOLUME,
            json!({
                "apiVersion": "v1", "kind": VOLUME, "metadata": {"name": name, "labels": {}},
                "spec": {"storageClassName": claim["spec"]["storageClassName"],
                    "capacity": claim["spec"]["resources"]["requests"],
                    "accessModes": claim["spec"]["accessModes"],
                    "nodeAffinity": reach,
                    "claimRef": {"namespace": metadata["namespace"], "name": metadata["name"],
                        "uid": metadata["uid"]},
                    "csi": {"driver": DRIVER, "volumeHandle": name}},
                "status": {"phase": "Bound"},
            }),
        );
    }

    /// Whether the claim that a volume was for is gone, or has another one.
    fn is_released(&self, volume: &Value) -> bool {
        let reference = &volume["spec"]["claimRef"];
        if reference.is_null() {
            return false;
        }
        let claim = self.other(CLAIM, text(reference, "/namespace"), text(reference, "/name"));
        claim.is_none_or(|claim| {
            let other = claim["spec"]["volumeName"]
                .as_str()
                .is_some_and(|name| name != text(volume, "/metadata/name"));
            claim["metadata"]["uid"] != reference["uid"] || other
        })
    }
}

pub(crate) fn is_bound(claim: &Value) -> bool {
    claim["metadata"]["annotations"].get(BIND_COMPLETED).is_some()
}

fn is_kept_for(volume: &Value, claim: &Value) -> bool {
    let reference = &volume["spec"]["claimRef"];
    !reference.is_null() && reference["uid"] == claim["metadata"]["uid"]
}

fn key(object: &Value) -> (String, String) {
    let field = |pointer| text(object, pointer).to_owned();
    (field("/metadata/namespace"), field("/metadata/name"))
}
