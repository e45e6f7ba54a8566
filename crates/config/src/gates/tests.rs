use super::{Effect, FeatureGates, Gate, Row, Stage, help, table};

fn parsed(text: &str) -> (FeatureGates, Vec<String>) {
    match FeatureGates::parse(text) {
        Ok((gates, notices)) => (gates, notices.iter().map(ToString::to_string).collect()),
        Err(errors) => panic!("{text}: {errors}"),
    }
}

#[track_caller]
fn check_refused(text: &str, expected: &[&str]) {
    match FeatureGates::parse(text) {
        Ok(_) => panic!("{text} was accepted"),
        Err(errors) => {
            let found: Vec<String> = errors.errors().iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}

#[test]
fn the_table_is_sorted_and_complete() {
    assert!(table::ROWS.is_sorted_by(|a, b| a.name < b.name));
    let count = |stage| table::ROWS.iter().filter(|row| row.stage == stage).count();
    let counts = [Stage::Alpha, Stage::Beta, Stage::Ga, Stage::Deprecated].map(count);
    assert_eq!(counts, [50, 100, 76, 16]);
    assert!(table::ROWS.iter().all(|row| row.stage != Stage::Alpha || !row.default));
    for (i, gate) in Gate::all().enumerate() {
        assert_eq!((gate as usize, format!("{gate:?}").as_str()), (i, gate.name()));
        let row = Row::find(gate.name()).expect("it is in the table");
        assert_eq!(row.locked, gate.effect() == Effect::Locked, "{gate:?}");
    }
    for (name, needed) in table::NEEDS {
        assert!([*name].iter().chain(*needed).all(|name| Row::find(name).is_some()), "{name}");
    }
}

#[test]
fn defaults_are_the_references() {
    let gates = FeatureGates::default();
    for (gate, on) in [
        (Gate::DRADeviceTaints, true),
        (Gate::DRADeviceTaintRules, false),
        (Gate::NodeDeclaredFeatures, true),
        (Gate::SchedulerAsyncAPICalls, false),
        (Gate::SchedulerPopFromBackoffQ, true),
        (Gate::StorageCapacityScoring, false),
    ] {
        assert_eq!(gates.enabled(gate), on, "{gate:?}");
    }
    assert!(gates.iter().all(|gate| gate.enabled == gate.default));
    assert_eq!(parsed(""), (gates, Vec::new()));
}

#[test]
fn gates_are_set_by_name() {
    let (gates, notices) =
        parsed(" kube:SchedulerPopFromBackoffQ = False,,kube:NominatedNodeNameForExpectation=0");
    assert!(!gates.enabled(Gate::SchedulerPopFromBackoffQ));
    assert!(!gates.enabled(Gate::NominatedNodeNameForExpectation));
    assert_eq!(notices, [""; 0]);
    // The last one counts.
    assert!(
        parsed("SchedulerPopFromBackoffQ=false,SchedulerPopFromBackoffQ=t")
            .0
            .enabled(Gate::SchedulerPopFromBackoffQ)
    );
    // Of no concern to schedulers.
    assert_eq!(parsed("MemoryQoS=true").1, [""; 0]);
}

#[test]
fn all_alpha_and_all_beta_leave_what_is_set_by_name() {
    let (gates, notices) =
        parsed("AllAlpha=true,GangScheduling=false,WorkloadAwarePreemption=false");
    assert!(gates.enabled(Gate::StorageCapacityScoring) && !gates.enabled(Gate::GangScheduling));
    assert!(gates.enabled(Gate::SchedulerPopFromBackoffQ));
    assert_eq!(notices, [""; 0]);
    let (gates, _) = parsed("SchedulerPopFromBackoffQ=true,AllBeta=false");
    assert!(gates.enabled(Gate::SchedulerPopFromBackoffQ));
    assert!(!gates.enabled(Gate::SchedulerAsyncPreemption));
    assert!(gates.enabled(Gate::DynamicResourceAllocation));
    let all_beta = gates.iter().find(|gate| gate.name == "AllBeta").expect("it is there");
    assert_eq!((all_beta.enabled, all_beta.default, all_beta.stage), (false, false, Stage::Beta));
}

#[test]
fn nonsense_is_refused_all_at_once() {
    check_refused(
        "SchedulerPopFromBackofQ=true,Nope=true,NodeDeclaredFeatures,AllAlpha=yes",
        &[
            "missing bool value for NodeDeclaredFeatures",
            "invalid value of AllAlpha=yes, allowed: true, false",
            "unrecognized feature gate: Nope",
            "unrecognized feature gate: SchedulerPopFromBackofQ; did you mean \
             SchedulerPopFromBackoffQ?",
        ],
    );
    check_refused("wardle:A=true", &["component not registered: wardle"]);
    check_refused(
        "kube:MemoryQoS=true,MemoryQoS=true",
        &["set feature gates with the prefix kube: or without it, not in both ways"],
    );
    check_refused("=true", &["unrecognized feature gate: "]);
}

#[test]
fn locked_gates_keep_their_value() {
    check_refused(
        "SchedulerQueueingHints=false,SeparateCacheWatchRPC=true",
        &[
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true",
            "cannot set feature gate SeparateCacheWatchRPC to true, feature is locked to false",
        ],
    );
    assert_eq!(
        parsed("SchedulerQueueingHints=true").1,
        ["--feature-gates: SchedulerQueueingHints=true: the feature is GA; the gate will be \
          removed in a future release"]
    );
}

#[test]
fn what_a_feature_needs_must_be_on() {
    check_refused(
        "NodeDeclaredFeatures=false,GangScheduling=true",
        &[
            "ExtendWebSocketsToKubelet is enabled, but depends on features that are disabled: \
             [NodeDeclaredFeatures]",
            "GangScheduling is enabled, but depends on features that are disabled: \
             [GenericWorkload]",
            "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are \
             disabled: [NodeDeclaredFeatures]",
            "InPlacePodVerticalScalingInitContainers is enabled, but depends on features that are \
             disabled: [NodeDeclaredFeatures]",
            "RestartAllContainersOnContainerExits is enabled, but depends on features that are \
             disabled: [NodeDeclaredFeatures]",
        ],
    );
}

#[test]
fn gates_of_workloads_need_each_other() {
    check_refused(
        "TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true",
        &[
            "TopologyAwareWorkloadScheduling is enabled, but depends on features that are \
             disabled: [GenericWorkload]",
            "WorkloadAwarePreemption is enabled, but depends on features that are disabled: \
             [GangScheduling]",
        ],
    );
    let all = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true";
    assert!(parsed(all).0.enabled(Gate::WorkloadAwarePreemption));
}

#[test]
fn what_v1_36_locked_and_removed_is_locked_and_removed() {
    check_refused(
        "GitRepoVolumeDriver=true,NodeLogQuery=false,TopologyManagerPolicyOptions=false",
        &[
            "cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false",
            "cannot set feature gate NodeLogQuery to false, feature is locked to true",
            "cannot set feature gate TopologyManagerPolicyOptions to false, feature is locked to \
             true",
        ],
    );
    for gone in [
        "InPlacePodVerticalScalingAllocatedStatus",
        "MemoryManager",
        "ServiceTrafficDistribution",
        "TopologyAwareHints",
    ] {
        assert!(Row::find(gone).is_none(), "{gone}");
    }
    let settable = "AllowServiceExternalIPs=false,DisableCPUQuotaWithExclusiveCPUs=false,\
                    ServiceCIDRStatusFieldWiping=false";
    assert_eq!(parsed(settable).1.len(), 3);
}

#[test]
fn notices_tell_what_has_no_effect_and_what_goes_away() {
    assert_eq!(
        parsed("KMSv1=true,SchedulerAsyncPreemption=false,OpportunisticBatching=true").1,
        [
            "--feature-gates: KMSv1=true: the gate is deprecated; the gate will be removed in a \
             future release",
            "--feature-gates: SchedulerAsyncPreemption=false: no effect here: victims are always \
             deleted beside the cycles",
        ]
    );
}

#[test]
fn help_offers_what_is_not_finished() {
    let lines: Vec<String> = help().collect();
    assert_eq!(lines[0], "APIResponseCompression=true|false (BETA - default=true)");
    assert!(lines.contains(&"AllAlpha=true|false (ALPHA - default=false)".to_owned()));
    assert!(!lines.iter().any(|line| line.starts_with("SchedulerQueueingHints")));
    assert_eq!(lines.len(), 150);
}
