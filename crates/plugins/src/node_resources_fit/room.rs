//! Whether what a pod requests fits into the room that a node has left.

use std::borrow::Cow;
use std::collections::BTreeSet;

use steersman_api::name::Name;
use steersman_api::node::Node;
use steersman_api::node_info::NodeInfo;
use steersman_api::resources::{Resources, is_extended};
use steersman_framework::verdict::{Reason, RejectKind};

use super::args::NodeResourcesFitArgs;

/// A node and what of it is taken.
pub(super) struct Room<'a> {
    node: &'a Node,
    pods: usize,
    requested: Cow<'a, Resources>,
}

/// Something that a node has too little of for a pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shortage<'a> {
    pub(super) what: Lacking<'a>,
    /// Whether evictions may help.
    pub(super) kind: RejectKind,
}

/// What a node may have too little of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Lacking<'a> {
    /// Places for pods.
    Places,
    /// A resource with an entry of its own in [`Resources`].
    Basic(&'static str),
    /// Another resource.
    Scalar(&'a Name),
}

impl Lacking<'_> {
    /// The reason that users read.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Places => "Too many pods".into(),
            Self::Basic(insufficient) => (*insufficient).into(),
            Self::Scalar(name) => format!("Insufficient {name}").into(),
        }
    }
}

impl<'a> Room<'a> {
    /// The room that the pods on `node` leave.
    pub(super) fn left_on(node: &'a NodeInfo) -> Self {
        let requested = Cow::Borrowed(node.requested());
        Self { node: node.node(), pods: node.pods().len(), requested }
    }

    /// The room that there would be on `node` without the pods of a priority
    /// below `priority`.
    pub(super) fn without_lower(node: &'a NodeInfo, priority: i32) -> Self {
        let mut pods = 0;
        let mut requested = Resources::default();
        for pod in node.pods().iter().filter(|p| p.spec.priority >= priority) {
            pods += 1;
            requested.add(&pod.resources.requests);
        }
        Self { node: node.node(), pods, requested: Cow::Owned(requested) }
    }

    /// What a pod with these requests lacks here: places first, then CPU,
    /// memory, ephemeral storage, and the others by name.
    pub(super) fn shortages<'r>(
        &self,
        requests: &'r Resources,
        ignored: &Ignored,
    ) -> impl Iterator<Item = Shortage<'r>> {
        let (offered, taken) = (&self.node.allocatable, &*self.requested);
        let taken_places = i64::try_from(self.pods).unwrap_or(i64::MAX);
        let places = (taken_places >= self.node.allowed_pods)
            .then_some(Shortage { what: Lacking::Places, kind: RejectKind::Unschedulable });
        let basic = [
            ("Insufficient cpu", requests.milli_cpu, offered.milli_cpu, taken.milli_cpu),
            ("Insufficient memory", requests.memory, offered.memory, taken.memory),
            (
                "Insufficient ephemeral-storage",
                requests.ephemeral_storage,
                offered.ephemeral_storage,
                taken.ephemeral_storage,
            ),
        ];
        let basic = basic.into_iter().filter_map(|(insufficient, request, offered, taken)| {
            let kind = shortage(request, offered, taken)?;
            Some(Shortage { what: Lacking::Basic(insufficient), kind })
        });
        let scalars = requests.scalars().filter_map(|(name, request)| {
            let kind = shortage(request, offered.scalar(name), taken.scalar(name))?;
            let what = Lacking::Scalar(name);
            (!ignored.covers(name)).then_some(Shortage { what, kind })
        });
        places.into_iter().chain(basic).chain(scalars)
    }

    /// Whether a pod with these requests lacks nothing.
    pub(super) fn fits(&self, requests: &Resources, ignored: &Ignored) -> bool {
        self.shortages(requests, ignored).next().is_none()
    }
}

/// Whether `request` is more than what is left of one resource, and if so
/// whether evictions may help.
fn shortage(request: i64, offered: i64, taken: i64) -> Option<RejectKind> {
    if request <= 0 || request <= offered.saturating_sub(taken) {
        return None;
    }
    Some(if request > offered {
        RejectKind::UnschedulableAndUnresolvable
    } else {
        RejectKind::Unschedulable
    })
}

/// Extended resources that are not checked.
pub(super) struct Ignored {
    names: BTreeSet<String>,
    groups: BTreeSet<String>,
}

impl Ignored {
    pub(super) fn new(args: &NodeResourcesFitArgs) -> Self {
        Self {
            names: args.ignored_resources.iter().cloned().collect(),
            groups: args.ignored_resource_groups.iter().cloned().collect(),
        }
    }

    fn covers(&self, name: &str) -> bool {
        let group = name.split('/').next().unwrap_or_default();
        (self.names.contains(name) || self.groups.contains(group)) && is_extended(name)
    }
}
