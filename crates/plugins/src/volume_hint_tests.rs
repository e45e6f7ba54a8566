//! The hints of the volume plugins are complete: whatever makes a node fit
//! brings the pod back. Small random clusters, each with one random change.

use proptest::prelude::{ProptestConfig, any, proptest};
use proptest::sample::Index;
use serde_json::{Value, json};
use steersman_api::key::ObjectKey;
use steersman_api::node::ZONE_LABEL;
use steersman_framework::events::Change;
use steersman_framework::registry::Descriptor;
use steersman_testing::bench::Bench;
use steersman_testing::{NodeBuilder, PodBuilder, node, pod};

use crate::test_volumes::{
    annotated, bound_claim, came, changed, claim, csi_node, left, local_class, only_where,
    pod_with, stored, volume, waiting_class, went,
};
use crate::{node_volume_limits, volume_binding, volume_restrictions, volume_zone};

/// A place of the cluster that is empty or holds one of several objects.
struct Slot {
    choices: Vec<Value>,
    /// Whether one choice can take the place of another in an update; an API
    /// server refuses some.
    updates: bool,
}

fn volume_choices(name: &str) -> Vec<Value> {
    let zone = |zone: &str| only_where(ZONE_LABEL, zone);
    let local = |spec: Value| {
        let mut object = volume(name, json!({"storageClassName": "local"}));
        object["spec"]
            .as_object_mut()
            .expect("a spec")
            .extend(spec.as_object().expect("fields").clone());
        object
    };
    let kept =
        |claim: &str| json!({"namespace": "default", "name": claim, "uid": format!("uid-{claim}")});
    let mut labelled = local(json!({}));
    labelled["metadata"]["labels"] = json!({ZONE_LABEL: "z2"});
    let mut released = local(json!({}));
    released["status"]["phase"] = "Released".into();
    vec![
        local(json!({})),
        local(json!({"nodeAffinity": zone("z1")})),
        local(json!({"nodeAffinity": zone("z2")})),
        local(json!({"nodeAffinity": zone("z9"), "claimRef": kept("c")})),
        local(json!({"claimRef": kept("c")})),
        local(json!({"claimRef": kept("x")})),
        labelled,
        released,
    ]
}

fn in_tree(labels: Value) -> Value {
    let mut object = volume("disk", json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}));
    object["metadata"]["labels"] = labels;
    object
}

fn claim_choices() -> Vec<Value> {
    let of_class = |class: &str| claim("c", json!({"storageClassName": class}));
    let one_pod = json!({"storageClassName": "local", "accessModes": ["ReadWriteOncePod"]});
    let mut wish = of_class("local");
    wish["spec"]["volumeName"] = "pv".into();
    vec![
        of_class("local"),
        of_class("fast"),
        bound_claim("c", "pv"),
        bound_claim("c", "disk"),
        wish,
        claim("c", one_pod),
        annotated(of_class("fast"), "volume.kubernetes.io/selected-node", "n2"),
    ]
}

fn moved(mut node: Value) -> Value {
    node["metadata"]["annotations"] =
        json!({"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"});
    node
}

fn slots() -> Vec<Slot> {
    let slot = |choices, updates| Slot { choices, updates };
    let mut topology = waiting_class("fast");
    topology["allowedTopologies"] =
        json!([{"matchLabelExpressions": [{"key": ZONE_LABEL, "values": ["z1"]}]}]);
    let driver = |publishes: bool| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
            "metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": publishes}})
    };
    let capacity = |amount: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
            "metadata": {"namespace": "ns", "name": "c"}, "storageClassName": "fast",
            "nodeTopology": {"matchLabels": {ZONE_LABEL: "z1"}}, "capacity": amount})
    };
    let attachment = |volume: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
            "metadata": {"name": "va"}, "spec": {"attacher": "csi.example.com", "nodeName": "n1",
                "source": {"persistentVolumeName": volume}}})
    };
    let limits = |n| csi_node("n1", &[("csi.example.com", n), ("ebs.csi.aws.com", n)]);
    vec![
        slot(volume_choices("pv"), true),
        slot(volume_choices("other"), true),
        slot(vec![in_tree(json!({})), in_tree(json!({ZONE_LABEL: "z1"}))], true),
        slot(claim_choices(), true),
        slot(vec![local_class("local")], false),
        slot(vec![waiting_class("fast"), topology], true),
        slot(vec![driver(true), driver(false)], true),
        slot(vec![capacity("1Gi"), capacity("9Gi")], true),
        slot(vec![limits(0), limits(1), moved(limits(1)), csi_node("n1", &[])], true),
        slot(vec![attachment("pv"), attachment("theirs")], false),
    ]
}

/// Pods that may be on n1.
fn neighbours() -> [PodBuilder; 3] {
    let ebs = json!({"name": "v", "awsElasticBlockStore": {"volumeID": "vol-9"}});
    [
        pod_with("x", &["c"]).on("n1"),
        pod_with("y", &["theirs"]).on("n1"),
        pod("z").on("n1").spec(json!({"volumes": [ebs]})),
    ]
}

fn targets() -> [PodBuilder; 3] {
    let ebs = |id: &str| json!({"name": "v", "awsElasticBlockStore": {"volumeID": id}});
    let claim = json!({"name": "c", "persistentVolumeClaim": {"claimName": "c"}});
    [
        pod_with("p", &["c"]),
        pod("p").spec(json!({"volumes": [claim, ebs("vol-8")]})),
        pod("p").spec(json!({"volumes": [ebs("vol-9")]})),
    ]
}

fn nodes() -> [NodeBuilder; 4] {
    [node("n1").zone("z1"), node("n1").zone("z2"), node("n2").zone("z2"), node("n2")]
}

/// What is in the cluster: a choice for each slot, and who is on n1.
#[derive(Clone, Debug)]
struct Scene {
    objects: Vec<Option<usize>>,
    neighbours: [bool; 3],
    /// Which of [`nodes`] n1 is, and n2 if it is there.
    nodes: (usize, Option<usize>),
}

impl Scene {
    fn bench(&self, descriptor: &Descriptor) -> Bench {
        let all = slots();
        let chosen = self.objects.iter().zip(&all);
        let objects = chosen.filter_map(|(choice, slot)| Some(slot.choices[(*choice)?].clone()));
        let theirs = [bound_claim("theirs", "theirs"), volume("theirs", json!({}))];
        let pods = neighbours().into_iter().zip(self.neighbours);
        let places = [Some(self.nodes.0), self.nodes.1];
        Bench::new(descriptor)
            .nodes(places.into_iter().flatten().map(|n| nodes()[n].clone()))
            .objects(theirs)
            .objects(objects)
            .pods(pods.filter(|(_, there)| *there).map(|(pod, _)| pod))
    }

    /// Another scene, and what happened in between. `None` when the draw makes
    /// no difference or is not possible.
    fn change(&self, draw: Index, choice: Index) -> Option<(Self, Change)> {
        let mut after = self.clone();
        let all = slots();
        let n = all.len();
        let change = match draw.index(n + 5) {
            at if at < n => {
                let slot = &all[at];
                let picked = choice.index(slot.choices.len() + 1);
                after.objects[at] = (picked < slot.choices.len()).then_some(picked);
                let json = |choice: Option<usize>| choice.map(|c| slot.choices[c].clone());
                match (json(self.objects[at]), json(after.objects[at])) {
                    (None, Some(new)) => came(new),
                    (Some(old), None) => went(old),
                    (Some(old), Some(new)) if slot.updates && old != new => changed(old, new),
                    _ => return None,
                }
            }
            at if at < n + 3 => {
                if !std::mem::take(&mut after.neighbours[at - n]) {
                    return None;
                }
                left(neighbours()[at - n].clone())
            }
            at if at == n + 3 => {
                after.nodes.0 = 1 - self.nodes.0;
                let [old, new] = [self.nodes.0, after.nodes.0].map(|n| nodes()[n].clone().build());
                Change::Node { old: Some(old), new: Some(new) }
            }
            _ => {
                after.nodes.1 = Some(2 + choice.index(2));
                let build = |n: usize| nodes()[n].clone().build();
                Change::Node { old: self.nodes.1.map(build), new: after.nodes.1.map(build) }
            }
        };
        change.event().is_some().then_some((after, change))
    }
}

/// Objects as they are seen are the ones that were meant.
#[test]
fn every_choice_can_be_read() {
    for choice in slots().into_iter().flat_map(|slot| slot.choices) {
        assert_ne!(*stored(choice).key(), ObjectKey::cluster(""));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hints_are_complete(
        choices in proptest::collection::vec(any::<Index>(), 10),
        neighbours in any::<[bool; 3]>(),
        places in (0..2_usize, proptest::option::of(2..4_usize)),
        target in 0..3_usize,
        draws in proptest::collection::vec(any::<(Index, Index)>(), 3),
    ) {
        let all = slots();
        let pick = |(choice, slot): (&Index, &Slot)| {
            let picked = choice.index(slot.choices.len() + 1);
            (picked < slot.choices.len()).then_some(picked)
        };
        let objects = choices.iter().zip(&all).map(pick).collect();
        // What becomes of claims that only other pods use, changes nothing that
        // counts: a claim in use keeps its driver.
        let [shares_claim, others @ ..] = neighbours;
        let neighbours = [shares_claim && target != 2, others[0], others[1]];
        let scene = Scene { objects, neighbours, nodes: places };
        let target = targets()[target].clone().build();
        let plugins = [
            volume_restrictions::descriptor(),
            node_volume_limits::descriptor(),
            volume_binding::descriptor(),
            volume_zone::descriptor(),
        ];
        for (draw, choice) in draws {
            let Some((after, change)) = scene.change(draw, choice) else { continue };
            for plugin in &plugins {
                let [before, after] = [&scene, &after].map(|scene| scene.bench(plugin));
                before.check_hint_is_complete(&after, &target, &change);
            }
        }
    }
}
