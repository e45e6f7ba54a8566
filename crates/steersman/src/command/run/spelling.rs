//! Flags as the reference's flag library takes them, turned into what this
//! one's takes: `--leader_elect` is `--leader-elect`. And flags that the
//! reference once had, with what to do instead.

use std::ffi::OsString;

use anyhow::bail;

/// Flags that older releases of kube-scheduler had, and what came after them.
const REMOVED: &[(&str, &str)] = &[
    ("add-dir-header", LOGS),
    ("address", "use --bind-address"),
    (
        "algorithm-provider",
        "it was removed in v1.22; choose plugins in profiles of the KubeSchedulerConfiguration \
         given with --config, such as a scoringStrategy of NodeResourcesFit for \
         ClusterAutoscalerProvider",
    ),
    ("alsologtostderr", LOGS),
    ("azure-container-registry-config", "it never concerned scheduling, leave it out"),
    ("experimental-logging-sanitization", "nothing secret is logged, leave it out"),
    ("failure-domains", "set defaultConstraints in the arguments of PodTopologySpread"),
    (
        "hard-pod-affinity-symmetric-weight",
        "set hardPodAffinityWeight in the arguments of InterPodAffinity",
    ),
    ("lock-object-name", "use --leader-elect-resource-name"),
    ("lock-object-namespace", "use --leader-elect-resource-namespace"),
    ("log-backtrace-at", LOGS),
    ("log-dir", LOGS),
    ("log-file", LOGS),
    ("log-file-max-size", LOGS),
    ("logtostderr", LOGS),
    ("one-output", LOGS),
    ("policy-config-file", POLICY),
    ("policy-configmap", POLICY),
    ("policy-configmap-namespace", POLICY),
    ("port", "use --secure-port, which serves over HTTPS; plain HTTP is not served"),
    ("scheduler-name", "set schedulerName in a profile of the file given with --config"),
    ("skip-headers", LOGS),
    ("skip-log-headers", LOGS),
    ("stderrthreshold", LOGS),
    ("use-legacy-policy-config", POLICY),
];

const LOGS: &str = "logs go to stderr, see the logs flags of --help";
const POLICY: &str = "the Policy API was removed in v1.23; write a KubeSchedulerConfiguration and \
                      give it with --config: predicates and priorities became plugins, which its \
                      profiles enable, and extenders stand in its extenders";

/// The arguments after the command's name, spelled as the parser knows them.
///
/// # Errors
/// When a flag is given that kube-scheduler once had.
pub(crate) fn spelled(args: impl IntoIterator<Item = OsString>) -> anyhow::Result<Vec<OsString>> {
    let mut args = args.into_iter();
    let mut spelled = Vec::new();
    for arg in args.by_ref() {
        let flag = arg.to_str().and_then(|text| text.strip_prefix("--"));
        let Some(flag) = flag else {
            spelled.push(arg);
            continue;
        };
        if flag.is_empty() {
            spelled.push(arg);
            break;
        }
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        let name = name.replace('_', "-");
        if let Ok(i) = REMOVED.binary_search_by_key(&&*name, |(removed, _)| removed) {
            bail!("--{name} does not exist any more: {}", REMOVED[i].1);
        }
        spelled.push(match value {
            Some(value) => format!("--{name}={value}").into(),
            None => format!("--{name}").into(),
        });
    }
    // After `--` nothing is a flag.
    spelled.extend(args);
    Ok(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(args: &[&str]) -> String {
        match spelled(args.iter().map(OsString::from)) {
            Ok(args) => args.iter().filter_map(|arg| arg.to_str()).collect::<Vec<_>>().join(" "),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn underscores_in_names_are_hyphens() {
        assert_eq!(said(&["--bind_address=a_b", "-v", "4"]), "--bind-address=a_b -v 4");
        assert_eq!(said(&["--a_b", "c_d", "--", "--e_f"]), "--a-b c_d -- --e_f");
    }

    #[test]
    fn flags_of_the_past_are_found_and_say_what_came_after_them() {
        assert!(REMOVED.is_sorted_by_key(|(name, _)| name));
        for (name, instead) in REMOVED {
            assert!(said(&[&format!("--{name}=0")]).ends_with(instead), "{name}");
        }
        assert!(said(&["--lock_object_name", "x"]).contains("--leader-elect-resource-name"));
        for policy in ["--policy-config-file=p", "--policy-configmap", "--use-legacy-policy-config"]
        {
            assert!(
                said(&[policy]).contains("removed in v1.23; write a KubeSchedulerConf"),
                "{policy}"
            );
        }
        assert!(said(&["--algorithm-provider=x"]).contains("KubeSchedulerConfiguration"));
        assert_eq!(said(&["--ports=0"]), "--ports=0");
    }
}
