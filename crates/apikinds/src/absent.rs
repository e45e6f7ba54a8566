//! Subresources that need more than an API: a kubelet that runs containers, a
//! proxy into the cluster's network.

use steersman_apimachinery::resource::Absent;

/// Those of `pods`.
pub(crate) const POD: &[Absent] = &[
    absent("log", "there are no logs: this cluster's pods are simulated, no container runs"),
    absent(
        "exec",
        "there is nothing to execute in: this cluster's pods are simulated, no container runs",
    ),
    absent(
        "attach",
        "there is nothing to attach to: this cluster's pods are simulated, no container runs",
    ),
    absent(
        "portforward",
        "there is no port to forward: this cluster's pods are simulated, no container runs",
    ),
    absent(
        "proxy",
        "there is nothing to connect to: this cluster's pods are simulated, no container runs",
    ),
    absent(
        "ephemeralcontainers",
        "there is nothing to debug: this cluster's pods are simulated, no container runs",
    ),
    absent(
        "resize",
        "pods cannot be resized in place here: this cluster's pods are simulated, no container runs",
    ),
];

/// Those of `nodes`.
pub(crate) const NODE: &[Absent] =
    &[absent("proxy", "there is no kubelet to ask: this cluster's nodes are simulated")];

/// Those of `services`.
pub(crate) const SERVICE: &[Absent] =
    &[absent("proxy", "there is nothing to connect to: no container runs behind this service")];

const fn absent(name: &'static str, why: &'static str) -> Absent {
    Absent { name, why }
}
