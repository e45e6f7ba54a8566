//! Pods whose placement depends on plugins that do not exist yet.

use steersman_api::object::ClusterObject;
use steersman_api::pod::PodInfo;
use steersman_framework::registry::{Build, Registry};

/// Longer lists of names are cut.
const MAX_NAMED: usize = 5;

/// Which pods use what is not checked: a sentence per sort of thing.
pub(super) fn notices(objects: &[ClusterObject], registry: &Registry) -> Vec<String> {
    let planned = |plugin: &str| {
        registry.get(plugin).is_some_and(|found| matches!(found.build, Build::Planned))
    };
    let uses = [
        Unchecked {
            plugin: "VolumeBinding",
            what: "volumes",
            used_by: |p| p.spec.has_bound_volumes,
        },
        Unchecked {
            plugin: "DynamicResources",
            what: "resource claims",
            used_by: |p| p.spec.has_resource_claims,
        },
    ];
    let notice = |unchecked: &Unchecked| {
        let pods: Vec<String> = pending(objects)
            .filter(|pod| planned(unchecked.plugin) && (unchecked.used_by)(pod))
            .map(|pod| pod.key.to_string())
            .collect();
        (!pods.is_empty()).then(|| sentence(&pods, unchecked.what))
    };
    uses.iter().filter_map(notice).collect()
}

/// Something that only a planned plugin would look at.
struct Unchecked {
    plugin: &'static str,
    what: &'static str,
    used_by: fn(&PodInfo) -> bool,
}

fn pending(objects: &[ClusterObject]) -> impl Iterator<Item = &PodInfo> {
    objects.iter().filter_map(|object| match object {
        ClusterObject::Pod(pod) if !pod.is_bound() => Some(&**pod),
        _ => None,
    })
}

fn sentence(pods: &[String], what: &str) -> String {
    let named = pods[..pods.len().min(MAX_NAMED)].join(", ");
    let more = match pods.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (n, s) = (pods.len(), if pods.len() == 1 { " uses" } else { "s use" });
    format!("{n} pod{s} {what}, which are not checked yet: {named}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut() {
        let pods: Vec<String> = (0..7).map(|n| format!("default/p{n}")).collect();
        assert_eq!(
            sentence(&pods, "volumes"),
            "7 pods use volumes, which are not checked yet: default/p0, default/p1, default/p2, \
             default/p3, default/p4 and 2 more"
        );
        assert_eq!(
            sentence(&pods[..1], "volumes"),
            "1 pod uses volumes, which are not checked yet: default/p0"
        );
    }
}
