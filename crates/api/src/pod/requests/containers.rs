//! What the containers of a pod ask for together.

use std::borrow::Cow;

use k8s_openapi::api::core::v1 as core_v1;

use super::amounts::{Amounts, ApiList, add, raise, read_list};
use crate::pod::convert::is_sidecar;
use crate::problem::{FieldPath, Problem};

/// Requests and reported resources of every container.
pub(super) struct Containers<'a> {
    main: Vec<Container<'a>>,
    init: Vec<Container<'a>>,
}

/// One container.
struct Container<'a> {
    /// Whether it is an init container that keeps running.
    sidecar: bool,
    /// What the spec requests.
    spec: Amounts<'a>,
    /// What the kubelet set aside, by its status.
    allocated: Option<Amounts<'a>>,
    /// What runs now, by its status.
    actuated: Option<Amounts<'a>>,
}

impl<'a> Containers<'a> {
    pub(super) fn read(
        spec: &'a core_v1::PodSpec,
        status: Option<&'a core_v1::PodStatus>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut read_all = |containers: &'a [core_v1::Container], field: &str| {
            let at = |i| FieldPath::from("spec").field(field).index(i);
            let containers = containers.iter().enumerate();
            containers.map(|(i, c)| Container::read(c, status, problems, || at(i))).collect()
        };
        Self {
            main: read_all(&spec.containers, "containers"),
            init: read_all(spec.init_containers.as_deref().unwrap_or_default(), "initContainers"),
        }
    }

    /// What the spec asks for, `defaults` standing in for what containers leave
    /// out.
    pub(super) fn asked(&self, defaults: &Amounts<'a>) -> Amounts<'a> {
        self.aggregate(defaults, |c| Some(&c.spec))
    }

    /// The largest of what is asked for, set aside and running. The kubelet's
    /// own sums over the pod, set aside and running, are taken where it
    /// `reported` them.
    pub(super) fn total(
        &self,
        reported: Option<(&Amounts<'a>, &Amounts<'a>)>,
        resize_infeasible: bool,
        defaults: &Amounts<'a>,
    ) -> Amounts<'a> {
        let mut largest = if resize_infeasible { Amounts::new() } else { self.asked(defaults) };
        if let Some((allocated, actuated)) = reported {
            raise(&mut largest, allocated);
            raise(&mut largest, actuated);
        } else if resize_infeasible || self.any_status() {
            let allocated = self.aggregate(defaults, |c| c.allocated_or_spec(resize_infeasible));
            let actuated = self.aggregate(defaults, |c| c.actuated_or_allocated(resize_infeasible));
            raise(&mut largest, &allocated);
            raise(&mut largest, &actuated);
        }
        largest
    }

    /// Whether a status says anything that the spec does not.
    fn any_status(&self) -> bool {
        let mut containers = self.main.iter().chain(&self.init);
        containers.any(|c| c.allocated.is_some() || c.actuated.is_some())
    }

    fn aggregate(
        &self,
        defaults: &Amounts<'a>,
        of: impl for<'m> Fn(&'m Container<'a>) -> Option<&'m Amounts<'a>>,
    ) -> Amounts<'a> {
        let with_defaults = |container| {
            let stated = of(container).map_or(Cow::Owned(Amounts::new()), Cow::Borrowed);
            complete(stated, defaults)
        };
        let init = self.init.iter().map(|container| (container.sidecar, with_defaults(container)));
        together(self.main.iter().map(with_defaults), init)
    }
}

/// What containers need together, given what each needs; of init containers also
/// whether it is a sidecar. Containers run together; an init container runs with
/// the sidecars before it and without the containers.
pub(super) fn together<'m, 'a: 'm>(
    main: impl Iterator<Item = Cow<'m, Amounts<'a>>>,
    init: impl Iterator<Item = (bool, Cow<'m, Amounts<'a>>)>,
) -> Amounts<'a> {
    let mut running = Amounts::new();
    for needed in main {
        add(&mut running, &needed);
    }
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for (is_sidecar, needed) in init {
        if is_sidecar {
            add(&mut running, &needed);
            add(&mut sidecars, &needed);
            raise(&mut starting, &sidecars);
        } else {
            let mut needed = needed.into_owned();
            add(&mut needed, &sidecars);
            raise(&mut starting, &needed);
        }
    }
    raise(&mut running, &starting);
    running
}

/// `amounts` and what of `defaults` they leave out.
fn complete<'m, 'a>(
    mut amounts: Cow<'m, Amounts<'a>>,
    defaults: &Amounts<'a>,
) -> Cow<'m, Amounts<'a>> {
    for (name, amount) in defaults {
        if !amounts.contains_key(name) {
            amounts.to_mut().insert(name, *amount);
        }
    }
    amounts
}

impl<'a> Container<'a> {
    fn read(
        container: &'a core_v1::Container,
        status: Option<&'a core_v1::PodStatus>,
        problems: &mut Vec<Problem>,
        at: impl Fn() -> FieldPath,
    ) -> Self {
        let requests = container.resources.as_ref().and_then(|r| r.requests.as_ref());
        let requests_at = || at().field("resources").field("requests");
        let mut read = Self {
            sidecar: is_sidecar(container),
            spec: read_list(requests, problems, requests_at),
            allocated: None,
            actuated: None,
        };
        let Some((reported, list, i)) = status.and_then(|s| find_status(s, &container.name)) else {
            return read;
        };
        let status_at = |field: &str| FieldPath::from("status").field(list).index(i).field(field);
        let allocated: Option<&ApiList> = reported.allocated_resources.as_ref();
        read.allocated = allocated
            .map(|list| read_list(Some(list), problems, || status_at("allocatedResources")));
        let actuated = reported.resources.as_ref().and_then(|r| r.requests.as_ref());
        read.actuated = actuated.map(|list| {
            read_list(Some(list), problems, || status_at("resources").field("requests"))
        });
        read
    }

    fn allocated_or_spec(&self, resize_infeasible: bool) -> Option<&Amounts<'a>> {
        self.allocated.as_ref().or((!resize_infeasible).then_some(&self.spec))
    }

    fn actuated_or_allocated(&self, resize_infeasible: bool) -> Option<&Amounts<'a>> {
        self.actuated.as_ref().or_else(|| self.allocated_or_spec(resize_infeasible))
    }
}

/// The status of the container called `name`, and where it stands.
fn find_status<'a>(
    status: &'a core_v1::PodStatus,
    name: &str,
) -> Option<(&'a core_v1::ContainerStatus, &'static str, usize)> {
    [
        ("containerStatuses", &status.container_statuses),
        ("initContainerStatuses", &status.init_container_statuses),
    ]
    .into_iter()
    .find_map(|(field, list)| {
        let (i, found) = list.iter().flatten().enumerate().find(|(_, c)| c.name == name)?;
        Some((found, field, i))
    })
}
