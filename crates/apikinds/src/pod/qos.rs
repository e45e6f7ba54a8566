//! The quality of service class of a pod.
//!
//! Source: the documentation of Pod Quality of Service Classes.

use std::collections::BTreeMap;

use serde_json::Value;
use steersman_api::quantity::Quantity;

use crate::fields::{entries, items};

/// The resources that count.
const COUNTED: [&str; 2] = ["cpu", "memory"];

type Amounts<'a> = BTreeMap<&'a str, Quantity>;

/// The class of a pod's spec: `Guaranteed`, `Burstable` or `BestEffort`.
pub(super) fn class(spec: &Value) -> &'static str {
    let mut requests = Amounts::new();
    let mut limits = Amounts::new();
    let mut all_limited = true;
    let whole = spec.get("resources").filter(|resources| {
        entries(resources, "/requests").chain(entries(resources, "/limits")).next().is_some()
    });
    let parts: Vec<&Value> = match whole {
        Some(resources) => vec![resources],
        None => {
            let containers = items(spec, "/containers").iter();
            let all = containers.chain(items(spec, "/initContainers"));
            all.map(|container| container.get("resources").unwrap_or(&Value::Null)).collect()
        }
    };
    for resources in parts {
        add(&mut requests, resources, "/requests");
        let limited = add(&mut limits, resources, "/limits");
        all_limited &= limited == COUNTED.len();
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if all_limited && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the counted amounts above zero, and says how many there are.
fn add<'a>(totals: &mut Amounts<'a>, resources: &'a Value, list: &str) -> usize {
    let mut found = 0;
    for name in COUNTED {
        let amount = resources.pointer(list).and_then(|list| list.get(name));
        let amount = amount.and_then(Value::as_str).and_then(|text| Quantity::parse(text).ok());
        let Some(amount) = amount.filter(|amount| *amount > Quantity::ZERO) else { continue };
        let total = totals.entry(name).or_default();
        *total = total.plus(amount);
        found += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::class;

    #[test]
    fn follows_requests_and_limits() {
        let full = json!({"cpu": "1", "memory": "1Gi"});
        let container = |requests: Value, limits: Value| json!({"resources": {"requests": requests, "limits": limits}});
        let none = json!({});
        let guaranteed = container(full.clone(), full.clone());
        let cases = [
            (json!({"containers": [{}]}), "BestEffort"),
            (json!({"containers": [container(json!({"cpu": "0"}), none.clone())]}), "BestEffort"),
            (
                json!({"containers": [container(json!({"example.com/gpu": "1"}), none.clone())]}),
                "BestEffort",
            ),
            (json!({"containers": [guaranteed.clone()]}), "Guaranteed"),
            (json!({"containers": [guaranteed.clone()], "initContainers": [{}]}), "Burstable"),
            (json!({"containers": [guaranteed.clone(), {}]}), "Burstable"),
            (json!({"containers": [container(full.clone(), none.clone())]}), "Burstable"),
            (
                json!({"containers": [container(json!({"cpu": "500m", "memory": "1Gi"}), full)]}),
                "Burstable",
            ),
            (
                json!({"containers": [{}], "resources": guaranteed["resources"].clone()}),
                "Guaranteed",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(class(&spec), expected, "{spec}");
        }
    }
}
