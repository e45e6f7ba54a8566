//! The input of a run: from files to the objects that the core takes in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman_api::key::ObjectKey;
use steersman_api::namespace::Namespace;
use steersman_api::node::Node;
use steersman_api::object::{AnyObject, ClusterObject, StoredObject};
use steersman_api::persistent_volume_claim::PersistentVolumeClaim;
use steersman_api::pod::PodInfo;
use steersman_api::problem::Problem;
use steersman_api::storage_class::StorageClass;
use steersman_api::strict::append_independent;
use steersman_api::workload::{ReplicaSet, ReplicationController, Service, StatefulSet};

use crate::admission::{self, DefaultClass, PriorityClasses};
pub use crate::expand::Workload;
use crate::expand::{self, Existing, has_ended, names::uid};
pub use crate::manifest::{InputFile, InputProblem, Place, STDIN, Source};
use crate::manifest::{Manifests, Sourced, UnknownField, read_paths};
use crate::pods::{Admitted, Intake, Origin};

/// Namespaces that every cluster has: making them is not worth a word.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// Longer lists of names are cut in notices.
const MAX_NAMED: usize = 5;

/// What files describe: a cluster, and the pods that wait for a place in it.
#[derive(Debug, Default)]
pub struct Input {
    /// The objects: namespaces, nodes, services and what else plugins read,
    /// bound pods, then pending pods. Within each, as in the files: that is the
    /// order in which pending pods enter the queue. Objects with a problem are
    /// left out.
    pub objects: Vec<ClusterObject>,
    /// What was left out or made up, one sentence each.
    pub notices: Vec<String>,
    /// What is wrong, in the order of the input.
    pub problems: Vec<InputProblem>,
    workloads: BTreeMap<ObjectKey, Arc<Workload>>,
}

impl Input {
    /// Reads the paths: files, directories, or [`STDIN`] for `stdin`.
    pub fn from_paths(paths: &[PathBuf], stdin: &mut dyn io::Read) -> Self {
        let mut manifests = Manifests::default();
        let mut problems = Vec::new();
        read_paths(paths, stdin, &mut problems, |file, problems| manifests.read(file, problems));
        Self::from_manifests(manifests, problems)
    }

    /// Reads files that are in memory.
    pub fn from_files(files: impl IntoIterator<Item = InputFile>) -> Self {
        let mut manifests = Manifests::default();
        let mut problems = Vec::new();
        for file in files {
            manifests.read(file, &mut problems);
        }
        Self::from_manifests(manifests, problems)
    }

    /// The workload that a pod belongs to; `None` for a pod on its own.
    pub fn workload_of(&self, pod: &ObjectKey) -> Option<&Arc<Workload>> {
        self.workloads.get(pod)
    }

    /// The pods, bound ones first.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<PodInfo>> {
        self.objects.iter().filter_map(|object| match object {
            ClusterObject::Pod(pod) => Some(pod),
            _ => None,
        })
    }

    /// The nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.objects.iter().filter_map(|object| match object {
            ClusterObject::Node(node) => Some(node),
            _ => None,
        })
    }

    fn from_manifests(manifests: Manifests, problems: Vec<InputProblem>) -> Self {
        let mut assembly =
            Assembly { input: Self { problems, ..Self::default() }, manifests: &manifests };
        assembly.check_not_empty();
        assembly.unknown_fields();
        assembly.namespaces();
        let nodes = assembly.nodes();
        let classes = assembly.priority_classes();
        let mut existing = Existing::new(&manifests);
        let mut intake = Intake::new(&classes);
        let made = expand::expand(&manifests, &mut existing, &nodes, &mut intake);
        assembly.owners(&made);
        assembly.written_pods(&existing, &mut intake);
        assembly.input.problems.append(&mut intake.problems);
        let Intake { pods, claims, .. } = intake;
        assembly.claims(made.claims.into_iter().chain(claims));
        assembly.input.notices.extend(made.notices);
        assembly.place_pods(pods, &nodes);
        let mut input = assembly.input;
        input.problems.sort_by(|a, b| a.source.cmp(&b.source));
        input
    }
}

/// An input under construction.
struct Assembly<'m> {
    input: Input,
    manifests: &'m Manifests,
}

impl<'m> Assembly<'m> {
    /// Says which fields are ignored, once each.
    fn unknown_fields(&mut self) {
        for UnknownField { first, count } in self.manifests.unknown_fields.values() {
            let more = match count - 1 {
                0 => String::new(),
                more => format!(" (and {more} more like it)"),
            };
            self.input.notices.push(format!("{first}; ignored{more}"));
        }
    }

    fn check_not_empty(&mut self) {
        let skipped = &self.manifests.skipped;
        if !skipped.is_empty() {
            let total: usize = skipped.values().sum();
            let kinds: Vec<String> =
                skipped.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            self.input.notices.push(format!(
                "skipped {total} object{} of kinds that scheduling does not read: {}",
                plural(total),
                kinds.join(", ")
            ));
        }
        if self.manifests.is_empty() && self.input.problems.is_empty() {
            let message = "found no object that scheduling reads, allowed: at least a Node and a \
                           Pod or a workload";
            self.input.problems.push(InputProblem::at(Source::file("input"), message));
        }
    }

    /// The namespaces of the input, and those that its objects take for given.
    fn namespaces(&mut self) {
        let mut written = BTreeSet::new();
        for namespace in &self.manifests.namespaces {
            let mut object = namespace.object.clone();
            written.insert(object.metadata.name.clone().unwrap_or_default());
            admission::admit_namespace(&mut object);
            self.store(namespace, "Namespace", &object.metadata, |problems| {
                Namespace::from_k8s(&object, problems)
            });
        }
        let missing = self.manifests.used_namespaces.keys().filter(|name| !written.contains(*name));
        let mut announced = Vec::new();
        for name in missing {
            let metadata = ObjectMeta { name: Some(name.clone()), ..Default::default() };
            let mut object = core_v1::Namespace { metadata, ..Default::default() };
            admission::admit_namespace(&mut object);
            let made = Namespace::from_k8s(&object, &mut Vec::new());
            self.input.objects.push(ClusterObject::Other(AnyObject::new(made)));
            if !SYSTEM_NAMESPACES.contains(&name.as_str()) {
                announced.push(name.clone());
            }
        }
        self.notice(&announced, "namespace", "used but not in the input, so made without labels");
    }

    fn nodes(&mut self) -> Vec<Arc<Node>> {
        let mut nodes = Vec::new();
        let mut without_room = Vec::new();
        for node in &self.manifests.nodes {
            let mut object = node.object.clone();
            let mut found = Vec::new();
            admission::admit_node(&mut object, &mut found);
            let mut unreadable = Vec::new();
            let read = Node::from_k8s(&object, &mut unreadable);
            append_independent(&mut found, unreadable);
            if found.is_empty() {
                if read.allowed_pods == 0 {
                    without_room.push(read.name.to_string());
                }
                nodes.push(Arc::new(read));
            } else {
                self.report(node, "Node", &object.metadata, found);
            }
        }
        self.notice(
            &without_room,
            "node",
            "neither status.allocatable.pods nor status.capacity.pods, so no pod fits",
        );
        self.input.objects.extend(nodes.iter().cloned().map(ClusterObject::Node));
        nodes
    }

    fn priority_classes(&mut self) -> PriorityClasses {
        let mut classes = PriorityClasses::default();
        for class in &self.manifests.priority_classes {
            let mut found = Vec::new();
            classes.add(&class.object, &mut found);
            self.report(class, "PriorityClass", &class.object.metadata, found);
        }
        classes
    }

    /// Services, owners and whatever else plugins read.
    fn owners(&mut self, made: &expand::Made) {
        let manifests = self.manifests;
        for service in &manifests.services {
            self.store(service, "Service", &service.object.metadata, |problems| {
                Service::from_k8s(&service.object, problems)
            });
        }
        for controller in &manifests.replication_controllers {
            self.store(controller, "ReplicationController", &controller.object.metadata, |found| {
                ReplicationController::from_k8s(&controller.object, found)
            });
        }
        for set in &manifests.replica_sets {
            self.store(set, "ReplicaSet", &set.object.metadata, |problems| {
                ReplicaSet::from_k8s(&set.object, problems)
            });
        }
        for set in &made.replica_sets {
            // The deployment's selector has been checked.
            let read = ReplicaSet::from_k8s(set, &mut Vec::new());
            self.input.objects.push(ClusterObject::Other(AnyObject::new(read)));
        }
        for set in &manifests.stateful_sets {
            self.store(set, "StatefulSet", &set.object.metadata, |problems| {
                StatefulSet::from_k8s(&set.object, problems)
            });
        }
        self.input.objects.extend(manifests.others.iter().map(|other| other.object.clone()));
    }

    /// The storage classes and the claims: those of the input, and those that
    /// controllers make for pods.
    fn claims(&mut self, made: impl Iterator<Item = Sourced<core_v1::PersistentVolumeClaim>>) {
        let manifests = self.manifests;
        for class in &manifests.storage_classes {
            self.store(class, "StorageClass", &class.object.metadata, |problems| {
                StorageClass::from_k8s(&class.object, problems)
            });
        }
        let classes = manifests.storage_classes.iter().map(|class| &class.object);
        let default = DefaultClass::among(classes);
        let mut taken = BTreeSet::new();
        for mut claim in manifests.persistent_volume_claims.iter().cloned().chain(made) {
            let name = named(&claim.object.metadata);
            // A claim of that name that is there is used.
            if !taken.insert(name.clone()) {
                continue;
            }
            let mut found = Vec::new();
            admission::admit_claim(&mut claim.object, &default, &mut found);
            claim.object.metadata.uid.get_or_insert_with(|| uid(&["PersistentVolumeClaim", &name]));
            let metadata = claim.object.metadata.clone();
            self.store(&claim, "PersistentVolumeClaim", &metadata, |problems| {
                let read = PersistentVolumeClaim::from_k8s(&claim.object, problems);
                append_independent(&mut found, std::mem::take(problems));
                problems.append(&mut found);
                read
            });
        }
    }

    /// The pods that are in the input as such.
    fn written_pods(&mut self, existing: &Existing<'m>, intake: &mut Intake<'_>) {
        let mut ended = Vec::new();
        for pod in &self.manifests.pods {
            let metadata = &pod.object.metadata;
            if has_ended(&pod.object) {
                ended.push(named(metadata));
                continue;
            }
            let origin = Origin {
                source: pod.source.clone(),
                order: pod.order,
                object: format!("Pod {}", named(metadata)),
                from_template: false,
            };
            intake.take(pod.object.clone(), &origin, existing.workload_of(&pod.object));
        }
        self.notice(&ended, "pod", "left out as ended already");
    }

    fn place_pods(&mut self, mut pods: Vec<Admitted>, nodes: &[Arc<Node>]) {
        pods.sort_by_key(|admitted| admitted.order);
        for Admitted { pod, workload, .. } in &pods {
            if let Some(workload) = workload {
                self.input.workloads.insert(pod.key.clone(), workload.clone());
            }
        }
        let known: BTreeSet<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let (bound, pending): (Vec<_>, Vec<_>) =
            pods.into_iter().map(|admitted| admitted.pod).partition(|pod| pod.is_bound());
        let lost: Vec<String> = bound
            .iter()
            .filter(|pod| pod.node_name.as_ref().is_some_and(|node| !known.contains(node.as_str())))
            .map(|pod| pod.key.to_string())
            .collect();
        self.notice(&lost, "pod", "bound to a node that is not in the input");
        self.input.objects.extend(bound.into_iter().chain(pending).map(ClusterObject::Pod));
    }

    fn store<T, S: StoredObject>(
        &mut self,
        origin: &Sourced<T>,
        kind: &str,
        metadata: &ObjectMeta,
        read: impl FnOnce(&mut Vec<Problem>) -> S,
    ) {
        let mut found = Vec::new();
        let object = read(&mut found);
        if found.is_empty() {
            self.input.objects.push(ClusterObject::Other(AnyObject::new(object)));
        } else {
            self.report(origin, kind, metadata, found);
        }
    }

    fn report<T>(
        &mut self,
        origin: &Sourced<T>,
        kind: &str,
        metadata: &ObjectMeta,
        problems: Vec<Problem>,
    ) {
        let object = format!("{kind} {}", named(metadata));
        let problems = problems.into_iter().map(|problem| InputProblem {
            source: origin.source.clone(),
            object: Some(object.clone()),
            problem,
        });
        self.input.problems.extend(problems);
    }

    /// One notice about all of `names`.
    fn notice(&mut self, names: &[String], what: &str, message: &str) {
        if names.is_empty() {
            return;
        }
        let mut text = format!(
            "{what}{} {}",
            plural(names.len()),
            names[..names.len().min(MAX_NAMED)].join(", ")
        );
        if names.len() > MAX_NAMED {
            let _ = write!(text, " and {} more", names.len() - MAX_NAMED);
        }
        self.input.notices.push(format!("{text}: {message}"));
    }
}

fn named(metadata: &ObjectMeta) -> String {
    let name = metadata.name.as_deref().unwrap_or_default();
    match metadata.namespace.as_deref() {
        None | Some("") => name.to_owned(),
        Some(namespace) => format!("{namespace}/{name}"),
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests;
