//! The old in-tree storage plugins and the CSI drivers that do their work now:
//! which driver serves a disk, what it calls it, and what a volume's topology
//! reads like in the driver's terms.
//!
//! Source: the behaviour of kube-scheduler v1.36 and the CSI migration design.

use steersman_api::csi_node::CsiNode;
use steersman_api::disk::Disk;
use steersman_api::labels::Labels;
use steersman_api::name::Name;
use steersman_api::node::{REGION_LABEL, ZONE_LABEL};
use steersman_api::persistent_volume::{PersistentVolume, VolumeSource};
use steersman_api::selector::{NodeSelector, NodeSelectorTerm, Operator, Requirement};

/// An in-tree plugin and its successor.
#[derive(Debug)]
pub(crate) struct System {
    /// The in-tree plugin, as storage classes name it.
    plugin: &'static str,
    /// The CSI driver.
    pub(crate) driver: &'static str,
    /// The node label by which the driver tells zones apart, when volumes of the
    /// old plugin are read as if they named it.
    topology_key: Option<&'static str>,
    /// Whether nodes announce that they made the move; it goes without saying
    /// for the systems of the large clouds.
    announced: bool,
}

static AWS_EBS: System = System {
    plugin: "kubernetes.io/aws-ebs",
    driver: "ebs.csi.aws.com",
    topology_key: Some("topology.ebs.csi.aws.com/zone"),
    announced: false,
};
static GCE_PD: System = System {
    plugin: "kubernetes.io/gce-pd",
    driver: "pd.csi.storage.gke.io",
    topology_key: Some("topology.gke.io/zone"),
    announced: false,
};
static AZURE_DISK: System = System {
    plugin: "kubernetes.io/azure-disk",
    driver: "disk.csi.azure.com",
    topology_key: None,
    announced: false,
};
static CINDER: System = System {
    plugin: "kubernetes.io/cinder",
    driver: "cinder.csi.openstack.org",
    topology_key: Some("topology.cinder.csi.openstack.org/zone"),
    announced: false,
};
static PORTWORX: System = System {
    plugin: "kubernetes.io/portworx-volume",
    driver: "pxd.portworx.com",
    topology_key: None,
    announced: true,
};

impl System {
    /// The system of a disk; `None` when it has not moved to CSI.
    pub(crate) fn of_disk(disk: &Disk) -> Option<&'static Self> {
        match disk {
            Disk::AwsEbs { .. } => Some(&AWS_EBS),
            Disk::GcePd { .. } => Some(&GCE_PD),
            Disk::AzureDisk { .. } => Some(&AZURE_DISK),
            Disk::Cinder { .. } => Some(&CINDER),
            Disk::Portworx { .. } => Some(&PORTWORX),
            Disk::Iscsi { .. } | Disk::Rbd { .. } => None,
        }
    }

    /// The system whose in-tree plugin a storage class names.
    pub(crate) fn of_provisioner(provisioner: &str) -> Option<&'static Self> {
        let all = [&AWS_EBS, &GCE_PD, &AZURE_DISK, &CINDER, &PORTWORX];
        all.into_iter().find(|system| system.plugin == provisioner)
    }

    /// Whether the node's CSI drivers count the system's disks.
    pub(crate) fn is_counted_on(&self, node: Option<&CsiNode>) -> bool {
        node.is_some_and(|node| !self.announced || self.is_announced_by(node))
    }

    /// Whether the node announces that its driver has taken over.
    pub(crate) fn is_announced_by(&self, node: &CsiNode) -> bool {
        node.migrated_plugins.iter().any(|plugin| *plugin == self.plugin)
    }
}

/// What a persistent volume's labels say about the zones of a GCE disk.
const ZONE_SEPARATOR: &str = "__";
const OLD_ZONE_LABEL: &str = "failure-domain.beta.kubernetes.io/zone";
const OLD_REGION_LABEL: &str = "failure-domain.beta.kubernetes.io/region";

/// The driver's name of a disk that has moved to CSI. `labels` are those of the
/// persistent volume; a disk that a pod names has none.
///
/// # Errors
/// When the old name cannot be translated.
pub(crate) fn volume_handle(disk: &Disk, labels: &Labels) -> Result<Box<str>, String> {
    Ok(match disk {
        Disk::AwsEbs { id } => ebs_volume_id(id)?.into(),
        Disk::GcePd { name, .. } => gce_handle(name, labels)?.into(),
        Disk::AzureDisk { uri } => uri.as_str().into(),
        Disk::Cinder { id } | Disk::Portworx { id } => id.as_str().into(),
        Disk::Iscsi { iqn, .. } => iqn.as_str().into(),
        Disk::Rbd { image, .. } => image.as_str().into(),
    })
}

/// `vol-1` of `vol-1`, `aws://zone/vol-1` and `aws:///vol-1`.
fn ebs_volume_id(id: &str) -> Result<&str, String> {
    let Some(rest) = id.strip_prefix("aws://") else { return Ok(id) };
    let volume = rest.split_once('/').map_or("", |(_, path)| path.trim_matches('/'));
    match volume.starts_with("vol-") && !volume.contains('/') {
        true => Ok(volume),
        false => Err(format!("{id:?} is no name of an EBS volume")),
    }
}

fn gce_handle(name: &str, labels: &Labels) -> Result<String, String> {
    let label = |key: &str| labels.get(&key.into()).filter(|value| !value.is_empty());
    let zones = label(OLD_ZONE_LABEL).or_else(|| label(ZONE_LABEL));
    let zones: Vec<&str> =
        zones.map(|zones| zones.split(ZONE_SEPARATOR).collect()).unwrap_or_default();
    let place = match zones.as_slice() {
        [] => "zones/UNSPECIFIED".to_owned(),
        [zone] => format!("zones/{zone}"),
        several => format!("regions/{}", region_of(several)?),
    };
    Ok(format!("projects/UNSPECIFIED/{place}/disks/{name}"))
}

/// The one region of zones that are called `continent-region-letter`.
fn region_of<'a>(zones: &[&'a str]) -> Result<&'a str, String> {
    let region = |zone: &'a str| {
        let (region, _) = zone.rsplit_once('-')?;
        (region.matches('-').count() == 1).then_some(region)
    };
    let mut regions = zones.iter().map(|zone| region(zone));
    let first = regions.next().flatten();
    match first.filter(|first| regions.all(|other| other == Some(first))) {
        Some(region) => Ok(region),
        None => Err(format!("zones {zones:?} are not of one region")),
    }
}

/// The node affinity of a volume in terms of the driver that serves it now;
/// `None` when it is what the volume says itself.
pub(crate) fn translated_affinity(volume: &PersistentVolume) -> Option<NodeSelector> {
    let VolumeSource::Disk(disk) = &volume.source else { return None };
    let new_key: Name = System::of_disk(disk)?.topology_key?.into();
    let affinity = volume.node_affinity.as_ref();
    let old = topology_labels(volume);
    let mut terms: Vec<NodeSelectorTerm> = affinity.map(|a| a.terms.to_vec()).unwrap_or_default();
    let names_zones = |term: &NodeSelectorTerm| {
        term.labels.iter().any(|r| r.key == old.zone && has_values(&r.operator))
    };
    if terms.iter().any(names_zones) {
        rename(&mut terms, &old.zone, &new_key);
    } else if let Some(zones) = zones_of_label(volume, &old.zone) {
        if terms.is_empty() {
            terms.push(NodeSelectorTerm {
                labels: Box::default(),
                fields: Box::default(),
                usable: true,
            });
        }
        for term in &mut terms {
            let mut labels = std::mem::take(&mut term.labels).into_vec();
            labels
                .push(Requirement { key: new_key.clone(), operator: Operator::In(zones.clone()) });
            term.labels = labels.into();
        }
    }
    if old.region == OLD_REGION_LABEL {
        rename(&mut terms, &old.region, &REGION_LABEL.into());
    }
    let translated = NodeSelector { terms: terms.into() };
    // A volume that says nothing about nodes still says nothing.
    let changed = match affinity {
        Some(affinity) => *affinity != translated,
        None => !translated.terms.is_empty(),
    };
    changed.then_some(translated)
}

struct TopologyLabels {
    zone: Name,
    region: Name,
}

/// The labels by which the volume names zones and regions: today's, or those
/// of old. The affinity counts before the volume's own labels.
fn topology_labels(volume: &PersistentVolume) -> TopologyLabels {
    let in_affinity = |key: &str| {
        let terms = volume.node_affinity.iter().flat_map(|affinity| &affinity.terms);
        terms.flat_map(|term| &term.labels).any(|requirement| requirement.key == key)
    };
    let in_labels = |key: &str| volume.labels.contains_key(&key.into());
    let is_old = if in_affinity(ZONE_LABEL) {
        false
    } else {
        in_affinity(OLD_ZONE_LABEL) || (!in_labels(ZONE_LABEL) && in_labels(OLD_ZONE_LABEL))
    };
    let (zone, region) =
        if is_old { (OLD_ZONE_LABEL, OLD_REGION_LABEL) } else { (ZONE_LABEL, REGION_LABEL) };
    TopologyLabels { zone: zone.into(), region: region.into() }
}

fn has_values(operator: &Operator) -> bool {
    match operator {
        Operator::In(values) | Operator::NotIn(values) => !values.is_empty(),
        Operator::Gt(_) | Operator::Lt(_) => true,
        Operator::Exists | Operator::DoesNotExist => false,
    }
}

fn rename(terms: &mut [NodeSelectorTerm], old: &Name, new: &Name) {
    let requirements = terms.iter_mut().flat_map(|term| term.labels.iter_mut());
    for requirement in requirements.filter(|requirement| requirement.key == *old) {
        requirement.key = new.clone();
    }
}

/// The zones that a label of the volume lists; `None` when it lists none.
fn zones_of_label(volume: &PersistentVolume, label: &Name) -> Option<Box<[Name]>> {
    let listed = volume.labels.get(label)?.split(ZONE_SEPARATOR).map(str::trim);
    let mut zones: Vec<Name> = listed.filter(|zone| !zone.is_empty()).map(Name::new).collect();
    zones.sort();
    zones.dedup();
    (!zones.is_empty()).then(|| zones.into())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use steersman_api::object::ClusterObject;
    use steersman_testing::decoded;

    use super::*;

    fn volume(labels: Value, spec: Value) -> PersistentVolume {
        let json = json!({"apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": "pv", "labels": labels}, "spec": spec});
        let ClusterObject::Other(object) = decoded(json) else { panic!("not a volume") };
        object.get::<PersistentVolume>().expect("a volume").clone()
    }

    #[track_caller]
    fn check_handle(disk: &Disk, labels: &[(&str, &str)], expected: Result<&str, &str>) {
        let handle = volume_handle(disk, &Labels::from_pairs(labels.iter().copied()));
        assert_eq!(handle.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn ebs_volumes_are_called_by_their_id() {
        let ebs = |id: &str| Disk::AwsEbs { id: id.into() };
        check_handle(&ebs("vol-1"), &[], Ok("vol-1"));
        check_handle(&ebs("aws://us-east-1a/vol-1"), &[], Ok("vol-1"));
        check_handle(&ebs("aws:///vol-1"), &[], Ok("vol-1"));
        check_handle(&ebs("aws://a/b"), &[], Err("\"aws://a/b\" is no name of an EBS volume"));
        check_handle(&ebs("aws://a"), &[], Err("\"aws://a\" is no name of an EBS volume"));
    }

    #[test]
    fn gce_disks_are_called_by_their_place() {
        let disk = Disk::GcePd { name: "d".into(), read_only: false };
        check_handle(&disk, &[], Ok("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"));
        check_handle(
            &disk,
            &[(ZONE_LABEL, "a-b-c")],
            Ok("projects/UNSPECIFIED/zones/a-b-c/disks/d"),
        );
        check_handle(
            &disk,
            &[(OLD_ZONE_LABEL, "a-b-c__a-b-d"), (ZONE_LABEL, "x")],
            Ok("projects/UNSPECIFIED/regions/a-b/disks/d"),
        );
        let several = "zones [\"a-b-c\", \"a-x-d\"] are not of one region";
        check_handle(&disk, &[(ZONE_LABEL, "a-b-c__a-x-d")], Err(several));
        let odd = "zones [\"a\", \"b\"] are not of one region";
        check_handle(&disk, &[(ZONE_LABEL, "a__b")], Err(odd));
    }

    /// The translated affinity of an EBS volume in short: `key in values`.
    #[track_caller]
    fn check_affinity(labels: Value, terms: Value, expected: Option<&[&[&str]]>) {
        let spec = json!({"awsElasticBlockStore": {"volumeID": "vol-1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}});
        let translated = translated_affinity(&volume(labels, spec));
        let short = |requirement: &Requirement| match &requirement.operator {
            Operator::In(values) => {
                let values: Vec<&str> = values.iter().map(Name::as_str).collect();
                format!("{} in {}", requirement.key, values.join(","))
            }
            other => format!("{} {other:?}", requirement.key),
        };
        let found: Option<Vec<Vec<String>>> = translated.map(|selector| {
            selector.terms.iter().map(|term| term.labels.iter().map(short).collect()).collect()
        });
        let expected: Option<Vec<Vec<String>>> = expected.map(|terms| {
            terms.iter().map(|term| term.iter().map(|text| (*text).to_owned()).collect()).collect()
        });
        assert_eq!(found, expected);
    }

    fn within(key: &str, value: &str) -> Value {
        json!({"key": key, "operator": "In", "values": [value]})
    }

    #[test]
    fn zones_of_the_affinity_get_the_drivers_label() {
        let terms = json!([{"matchExpressions": [within(ZONE_LABEL, "a"), within("x", "y")]}]);
        let expected: &[&[&str]] = &[&["topology.ebs.csi.aws.com/zone in a", "x in y"]];
        check_affinity(json!({}), terms.clone(), Some(expected));
        // What the affinity says counts before the labels.
        check_affinity(json!({ZONE_LABEL: "b"}), terms, Some(expected));
        let old = json!([{"matchExpressions":
            [within(OLD_ZONE_LABEL, "a"), within(OLD_REGION_LABEL, "r")]}]);
        let expected: &[&[&str]] =
            &[&["topology.ebs.csi.aws.com/zone in a", "topology.kubernetes.io/region in r"]];
        check_affinity(json!({}), old, Some(expected));
    }

    #[test]
    fn zones_of_the_labels_are_added_to_every_term() {
        check_affinity(json!({}), json!([]), None);
        let expected: &[&[&str]] = &[&["topology.ebs.csi.aws.com/zone in a,b"]];
        check_affinity(json!({ZONE_LABEL: "b__a"}), json!([]), Some(expected));
        let terms = json!([{"matchExpressions": [within("x", "y")]},
            {"matchExpressions": [within("x", "z")]}]);
        let expected: &[&[&str]] = &[
            &["x in y", "topology.ebs.csi.aws.com/zone in a"],
            &["x in z", "topology.ebs.csi.aws.com/zone in a"],
        ];
        check_affinity(json!({OLD_ZONE_LABEL: "a"}), terms, Some(expected));
    }

    #[test]
    fn volumes_of_drivers_and_of_systems_without_zones_stay_as_they_are() {
        let zone = json!({ZONE_LABEL: "a"});
        let csi = json!({"csi": {"driver": "d", "volumeHandle": "h"}});
        assert_eq!(translated_affinity(&volume(zone.clone(), csi)), None);
        let portworx = json!({"portworxVolume": {"volumeID": "v"}});
        assert_eq!(translated_affinity(&volume(zone, portworx)), None);
    }
}
