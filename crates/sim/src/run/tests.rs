use std::path::PathBuf;

use expect_test::{Expect, expect, expect_file};
use steersman_config::Config;

use super::*;
use crate::input::{Input, InputFile};
use crate::report::{Detail, ReportData, write_text};

fn simulated(manifests: &str, explain: bool) -> Simulated {
    simulated_with(manifests, explain, Preemption::Report)
}

fn simulated_with(manifests: &str, explain: bool, preemption: Preemption) -> Simulated {
    let input = Input::from_files([InputFile::new("input.yaml", manifests)]);
    assert_eq!(input.problems, []);
    let registry = steersman_plugins::table::in_tree();
    let config = Config::default_for(&registry).expect("the default configuration");
    let options = Options { config: &config, registry: &registry, seed: 0, explain, preemption };
    simulate(input.objects, options, &mut |_, _| ()).expect("a simulation")
}

fn testdata(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/simulate").join(name)
}

const FATES: &str = include_str!("../../testdata/simulate/fates.yaml");

#[track_caller]
fn check_text(detail: Detail, expected: &str) {
    let simulated = simulated(FATES, detail.explain);
    let mut text = Vec::new();
    for notice in &simulated.notices {
        text.extend_from_slice(format!("note: {notice}\n").as_bytes());
    }
    write_text(&mut text, &simulated, detail).expect("a vector");
    let text = String::from_utf8(text).expect("text");
    expect_file![testdata(expected)].assert_eq(&text);
}

#[test]
fn every_fate_is_told_in_a_table() {
    check_text(Detail::default(), "fates.txt");
}

#[test]
fn wide_table_shows_what_pods_ask_for_and_explains_decisions() {
    check_text(Detail { wide: true, explain: true }, "fates-wide-explained.txt");
}

/// `urgent` has no room unless one of the others goes; `queued` comes after it.
const CROWD: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '2', pods: '9'}}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, value: 10}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: default},
 spec: {selector: {matchLabels: {app: db}}},
 status: {disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: db, labels: {app: db}}, spec: {nodeName: n1,
 containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {nodeName: n1,
 containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: urgent}, spec: {priorityClassName: urgent,
 containers: [{name: c, image: i, resources: {requests: {cpu: WANTED}}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: queued}, spec: {
 containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}}
";

#[track_caller]
fn check_crowd(wanted: &str, preemption: Preemption, expected: &Expect) {
    let simulated = simulated_with(&CROWD.replace("WANTED", wanted), false, preemption);
    let mut text = Vec::new();
    write_text(&mut text, &simulated, Detail::default()).expect("a vector");
    let text = String::from_utf8(text).expect("text");
    let pod = serde_json::to_value(ReportData::new(&simulated, Vec::new(), Vec::new()));
    let json = pod.expect("JSON");
    let (pod, evicted) = (&json["pods"][0]["preemption"], &json["evicted"]);
    let (_, text) = text.split_once("\n\n").expect("tables");
    expected.assert_eq(&format!("{text}\n{pod}\n{evicted}\n"));
}

#[test]
fn preemption_is_told_and_not_applied() {
    check_crowd(
        "'1'",
        Preemption::Report,
        &expect![[r#"
        NODE   ZONE   PODS    CPU   MEMORY   OTHER
        n1             2/9   100%        -

        default/urgent fits on no node
          0/1 nodes are available: 1 Insufficient cpu.
          NodeResourcesFit   1 node   Insufficient cpu   n1
          evicting default/web from n1 would make room

        default/queued fits on no node
          0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.
          NodeResourcesFit   1 node   Insufficient cpu   n1

        0 of 2 pods placed on 1 node, 2 unschedulable

        {"budgetsViolated":0,"node":"n1","victims":["default/web"]}
        null
    "#]],
    );
    check_crowd(
        "'2'",
        Preemption::Report,
        &expect![[r#"
        NODE   ZONE   PODS    CPU   MEMORY   OTHER
        n1             2/9   100%        -

        default/urgent fits on no node
          0/1 nodes are available: 1 Insufficient cpu.
          NodeResourcesFit   1 node   Insufficient cpu   n1
          evicting default/db, default/web from n1 would make room, though one is protected by a disruption budget

        default/queued fits on no node
          0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.
          NodeResourcesFit   1 node   Insufficient cpu   n1

        0 of 2 pods placed on 1 node, 2 unschedulable

        {"budgetsViolated":1,"node":"n1","victims":["default/db","default/web"]}
        null
    "#]],
    );
}

#[test]
fn preemption_can_be_applied_or_left_out() {
    check_crowd(
        "'2'",
        Preemption::Apply,
        &expect![[r#"
        NODE   ZONE       PODS    CPU   MEMORY   OTHER
        n1            2 -> 1/9   100%        -

        default/db is evicted from n1 for default/urgent
        default/web is evicted from n1 for default/urgent

        default/queued fits on no node
          0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.
          NodeResourcesFit   1 node   Insufficient cpu   n1

        1 of 2 pods placed on 1 node, 1 unschedulable

        null
        [{"name":"db","namespace":"default","node":"n1","preemptor":"default/urgent"},{"name":"web","namespace":"default","node":"n1","preemptor":"default/urgent"}]
    "#]],
    );
    check_crowd(
        "'2'",
        Preemption::Off,
        &expect![[r#"
        NODE   ZONE   PODS    CPU   MEMORY   OTHER
        n1             2/9   100%        -

        default/urgent fits on no node
          0/1 nodes are available: 1 Insufficient cpu.
          NodeResourcesFit   1 node   Insufficient cpu   n1

        default/queued fits on no node
          0/1 nodes are available: 1 Insufficient cpu.
          NodeResourcesFit   1 node   Insufficient cpu   n1

        0 of 2 pods placed on 1 node, 2 unschedulable

        null
        null
    "#]],
    );
}

#[test]
fn every_fate_is_told_to_machines() {
    let simulated = simulated(FATES, true);
    let data = ReportData::new(&simulated, vec!["a notice".to_owned()], Vec::new());
    let json = serde_json::to_string_pretty(&data).expect("JSON");
    expect_file![testdata("fates.json")].assert_eq(&format!("{json}\n"));
}

#[test]
fn names_of_rejected_nodes_are_cut_unless_explained() {
    let nodes: String = (0..50)
        .map(|n| format!("{{apiVersion: v1, kind: Node, metadata: {{name: n{n:02}}}}}\n---\n"))
        .collect();
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, \
               spec: {containers: [{name: c, image: i}]}}";
    for (explain, expected) in [(false, NODES_SHOWN), (true, 50)] {
        let simulated = simulated(&format!("{nodes}{pod}"), explain);
        let Fate::Unschedulable(no_fit) = &simulated.pods[0].fate else { panic!("{simulated:?}") };
        let [group] = no_fit.rejected.as_slice() else { panic!("{no_fit:?}") };
        assert_eq!((group.count, group.nodes.len()), (50, expected));
        assert!(no_fit.message.starts_with("0/50 nodes are available: 50 Too many pods. "));
    }
}

/// Two zones, and a class of each kind.
const STORAGE: &str = "
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: a}},
 status: {allocatable: {cpu: '2', pods: '9'}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2, labels: {topology.kubernetes.io/zone: b}},
 status: {allocatable: {cpu: '2', pods: '9'}}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: csi.example.com,
 metadata: {name: late, annotations: {storageclass.kubernetes.io/is-default-class: 'true'}},
 volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: csi.example.com,
 metadata: {name: soon}, allowedTopologies: [{matchLabelExpressions: [
 {key: topology.kubernetes.io/zone, values: [b]}]}]}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: kubernetes.io/no-provisioner,
 metadata: {name: local}, volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {storageClassName: local,
 capacity: {storage: 5Gi}, accessModes: [ReadWriteOnce], local: {path: /mnt}, nodeAffinity: {
 required: {nodeSelectorTerms: [{matchExpressions: [
 {key: topology.kubernetes.io/zone, operator: In, values: [b]}]}]}}}}
";

/// Where pods go that use the claims, and what the notices say.
#[track_caller]
fn check_storage(manifests: &str, expected: &Expect) {
    let simulated = simulated(&format!("{STORAGE}---\n{manifests}"), false);
    let mut text = String::new();
    for PodResult { pod, fate, .. } in &simulated.pods {
        let fate = match fate {
            Fate::Placed(node) => node.to_string(),
            Fate::Unschedulable(no_fit) => no_fit.message.clone(),
            other => format!("{other:?}"),
        };
        text.push_str(&format!("{}: {fate}\n", pod.key.name));
    }
    for notice in &simulated.notices {
        text.push_str(&format!("note: {notice}\n"));
    }
    expected.assert_eq(&text);
}

/// A claim, and pods on given nodes that use it.
fn claim_and_pods(claim: &str, pods: &[(&str, &str)]) -> String {
    let mut text = format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: c}}, spec: {{{claim}, \
         resources: {{requests: {{storage: 1Gi}}}}}}}}\n"
    );
    for (pod, more) in pods {
        text.push_str(&format!(
            "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {pod}}}, spec: {{{more} \
             containers: [{{name: c, image: i}}], volumes: [{{name: v, persistentVolumeClaim: \
             {{claimName: c}}}}]}}}}\n"
        ));
    }
    text
}

const IN_ZONE_A: &str = "nodeSelector: {topology.kubernetes.io/zone: a},";

#[test]
fn claim_that_waits_gets_a_volume_where_its_first_pod_goes() {
    let pods = [("first", IN_ZONE_A), ("second", ""), ("third", "")];
    check_storage(
        &claim_and_pods("accessModes: [ReadWriteMany]", &pods),
        &expect![[r#"
            first: n1
            second: n1
            third: n1
            note: made 1 volume on paper, for claim default/c
        "#]],
    );
}

#[test]
fn claim_that_does_not_wait_gets_a_volume_before_its_pods() {
    let pods = [("anywhere", ""), ("elsewhere", IN_ZONE_A)];
    check_storage(
        &claim_and_pods("accessModes: [ReadWriteOnce], storageClassName: soon", &pods),
        &expect![[r#"
            anywhere: n2
            elsewhere: 0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.
            note: made 1 volume on paper, for claim default/c
        "#]],
    );
}

#[test]
fn volume_that_is_there_is_given_away_once() {
    let pods = [("user", "")];
    let claim = "accessModes: [ReadWriteOnce], storageClassName: local";
    let other = claim_and_pods(claim, &pods)
        .replace("claimName: c", "claimName: d")
        .replace("name: c}, spec", "name: d}, spec")
        .replace("name: user", "name: late");
    check_storage(
        &format!("{}---\n{other}", claim_and_pods(claim, &pods)),
        &expect![[r#"
        user: n2
        late: 0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.
    "#]],
    );
}

#[test]
fn claim_for_one_pod_lets_in_one() {
    let pods = [("one", ""), ("two", "")];
    check_storage(
        &claim_and_pods("accessModes: [ReadWriteOncePod]", &pods),
        &expect![[r#"
        one: n1
        two: 0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod. no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.
        note: made 1 volume on paper, for claim default/c
    "#]],
    );
}

#[test]
fn stateful_sets_and_ephemeral_volumes_get_claims_of_their_own() {
    check_storage(
        "
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2,
 selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}},
 spec: {containers: [{name: c, image: i}]}}, volumeClaimTemplates: [{metadata: {name: data},
 spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-1},
 spec: {accessModes: [ReadWriteOnce], storageClassName: '', resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}],
 volumes: [{name: scratch, ephemeral: {volumeClaimTemplate: {spec: {
 accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]}}
",
        &expect![[r#"
            db-0: n2
            db-1: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found
            p: n1
            note: made 2 volumes on paper, for claims default/data-db-0, default/p-scratch
        "#]],
    );
}
