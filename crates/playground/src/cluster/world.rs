//! Everything that nodes and controllers decide from.

use k8s_openapi::api::{apps::v1 as apps_v1, batch::v1 as batch_v1, coordination::v1 as lease_v1};
use k8s_openapi::api::{core::v1 as core_v1, policy::v1 as policy_v1, storage::v1 as storage_v1};
use serde_json::Value;
use steersman_api::problem::Problem;

use super::addresses::Addresses;
use super::kind::{Kind, Watched, read};
use super::store::{Change, Key, Store, uid};

/// A copy of the cluster's objects.
#[derive(Debug, Default)]
pub struct World {
    /// Pods.
    pub pods: Store<core_v1::Pod>,
    /// Nodes.
    pub nodes: Store<core_v1::Node>,
    /// Leases, those of the nodes among them.
    pub leases: Store<lease_v1::Lease>,
    /// Namespaces.
    pub namespaces: Store<core_v1::Namespace>,
    /// Service accounts.
    pub service_accounts: Store<core_v1::ServiceAccount>,
    /// Deployments.
    pub deployments: Store<apps_v1::Deployment>,
    /// Replica sets.
    pub replica_sets: Store<apps_v1::ReplicaSet>,
    /// Daemon sets.
    pub daemon_sets: Store<apps_v1::DaemonSet>,
    /// Stateful sets.
    pub stateful_sets: Store<apps_v1::StatefulSet>,
    /// Revisions of stateful sets and daemon sets.
    pub revisions: Store<apps_v1::ControllerRevision>,
    /// Jobs.
    pub jobs: Store<batch_v1::Job>,
    /// Claims.
    pub claims: Store<core_v1::PersistentVolumeClaim>,
    /// Volumes.
    pub volumes: Store<core_v1::PersistentVolume>,
    /// Storage classes.
    pub storage_classes: Store<storage_v1::StorageClass>,
    /// Disruption budgets.
    pub budgets: Store<policy_v1::PodDisruptionBudget>,
    /// The addresses of nodes and pods.
    pub addresses: Addresses,
}

/// One change, for the controllers to see whether it concerns them.
#[derive(Debug)]
pub enum Seen {
    /// Of a pod.
    Pod(Change<core_v1::Pod>),
    /// Of a node.
    Node(Change<core_v1::Node>),
    /// Of a lease.
    Lease(Change<lease_v1::Lease>),
    /// Of a namespace.
    Namespace(Change<core_v1::Namespace>),
    /// Of a service account.
    ServiceAccount(Change<core_v1::ServiceAccount>),
    /// Of a deployment.
    Deployment(Change<apps_v1::Deployment>),
    /// Of a replica set.
    ReplicaSet(Change<apps_v1::ReplicaSet>),
    /// Of a daemon set.
    DaemonSet(Change<apps_v1::DaemonSet>),
    /// Of a stateful set.
    StatefulSet(Change<apps_v1::StatefulSet>),
    /// Of a revision.
    Revision(Change<apps_v1::ControllerRevision>),
    /// Of a job.
    Job(Change<batch_v1::Job>),
    /// Of a claim.
    Claim(Change<core_v1::PersistentVolumeClaim>),
    /// Of a volume.
    Volume(Change<core_v1::PersistentVolume>),
    /// Of a storage class.
    StorageClass(Change<storage_v1::StorageClass>),
    /// Of a disruption budget.
    Budget(Change<policy_v1::PodDisruptionBudget>),
}

/// What a watch or the answer to a write tells.
#[derive(Debug)]
pub enum News {
    /// A full list of a kind, and its resource version.
    Listed(Kind, Vec<Value>, u64),
    /// An object was added or changed.
    Observed(Kind, Value),
    /// An object was deleted.
    Deleted(Kind, Value),
    /// We wrote an object, and this was the answer.
    Written(Kind, Value),
    /// We deleted an object for good.
    Removed(Kind, Key, String),
}

impl World {
    /// Takes in one piece of news. The error is of an object that is not of
    /// its kind's form; everything else has been taken in.
    pub fn apply(&mut self, news: News) -> (Vec<Seen>, Vec<Problem>) {
        let kind = match &news {
            News::Listed(kind, ..)
            | News::Observed(kind, _)
            | News::Deleted(kind, _)
            | News::Written(kind, _)
            | News::Removed(kind, ..) => *kind,
        };
        let (seen, errors) = match kind {
            Kind::Pod => self.take_in(news, Seen::Pod),
            Kind::Node => self.take_in(news, Seen::Node),
            Kind::Lease => self.take_in(news, Seen::Lease),
            Kind::Namespace => self.take_in(news, Seen::Namespace),
            Kind::ServiceAccount => self.take_in(news, Seen::ServiceAccount),
            Kind::Deployment => self.take_in(news, Seen::Deployment),
            Kind::ReplicaSet => self.take_in(news, Seen::ReplicaSet),
            Kind::DaemonSet => self.take_in(news, Seen::DaemonSet),
            Kind::StatefulSet => self.take_in(news, Seen::StatefulSet),
            Kind::Revision => self.take_in(news, Seen::Revision),
            Kind::Job => self.take_in(news, Seen::Job),
            Kind::Claim => self.take_in(news, Seen::Claim),
            Kind::Volume => self.take_in(news, Seen::Volume),
            Kind::StorageClass => self.take_in(news, Seen::StorageClass),
            Kind::Budget => self.take_in(news, Seen::Budget),
            Kind::Event => (Vec::new(), Vec::new()),
        };
        for seen in &seen {
            self.note_addresses(seen);
        }
        (seen, errors)
    }

    fn take_in<K: Watched>(
        &mut self,
        news: News,
        wrap: fn(Change<K>) -> Seen,
    ) -> (Vec<Seen>, Vec<Problem>) {
        let store = K::store_mut(self);
        let decode = |mut value: Value| {
            // Nobody here reads who owns which field, which is half of a small
            // object.
            if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
            read::<K>(&value)
        };
        let changes = match news {
            News::Listed(_, items, version) => {
                let mut errors = Vec::new();
                let keep = |value| decode(value).map_err(|error| errors.push(error)).ok();
                let list = items.into_iter().filter_map(keep).collect();
                let changes = store.replace(list, version);
                return (changes.into_iter().map(wrap).collect(), errors);
            }
            News::Observed(_, value) => decode(value).map(|object| store.observe(object)),
            News::Deleted(_, value) => decode(value).map(|object| store.observe_deleted(&object)),
            News::Written(_, value) => decode(value).map(|object| store.written(object)),
            News::Removed(_, key, uid) => Ok(store.deleted(&key, &uid)),
        };
        match changes {
            Ok(change) => (change.into_iter().map(wrap).collect(), Vec::new()),
            Err(error) => (Vec::new(), vec![error]),
        }
    }

    fn note_addresses(&mut self, seen: &Seen) {
        match seen {
            Seen::Node(change) => {
                let node = change.object();
                let name = node.metadata.name.as_deref().unwrap_or_default();
                if change.new.is_some() {
                    let listed = node.status.as_ref().and_then(|s| s.addresses.as_deref());
                    let internal = listed.unwrap_or_default().iter();
                    let internal =
                        internal.filter(|a| a.type_ == "InternalIP").map(|a| &*a.address);
                    self.addresses.node_seen(name, internal.into_iter().next());
                } else {
                    self.addresses.node_gone(name);
                }
            }
            Seen::Pod(change) => {
                let pod = change.object();
                let id = uid(&pod.metadata);
                if change.new.is_none() {
                    self.addresses.pod_gone(id);
                } else if pod.node().is_some() {
                    let listed = pod.status.as_ref().and_then(|s| s.pod_ip.as_deref());
                    self.addresses.pod_seen(id, listed);
                }
            }
            _ => {}
        }
    }
}
