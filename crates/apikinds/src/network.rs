//! `ingresses`, `ingressclasses`, `networkpolicies`. They are kept, not acted on.

use serde_json::{Value, json};
use steersman_apimachinery::rules::Column;

use crate::fields::{default, field, items, items_mut, object_at, set, text};
use crate::selectors;
use crate::simple::{Simple, age_cell, name_cell};

const AGE: Column = Column::text("Age", "Time since creation");
/// How many hosts a table shows.
const SHOWN: usize = 3;

/// The rules of `ingresses`.
pub(crate) static INGRESS: Simple = Simple {
    create: |object, _| {
        set(object, "status", json!({"loadBalancer": {}}));
        Ok(())
    },
    columns: &[
        Column::name(),
        Column::text("Class", "What serves it"),
        Column::text("Hosts", "Hosts whose requests it takes"),
        Column::text("Address", "Where it is reached"),
        Column::text("Ports", "Ports it is reached at"),
        AGE,
    ],
    cells: |object, now| {
        let class = match text(object, "/spec/ingressClassName") {
            "" => "<none>",
            class => class,
        };
        let tls = !items(object, "/spec/tls").is_empty();
        let addresses: Vec<&str> = items(object, "/status/loadBalancer/ingress")
            .iter()
            .map(|ingress| match field(ingress, "ip") {
                "" => field(ingress, "hostname"),
                ip => ip,
            })
            .collect();
        vec![
            name_cell(object),
            class.into(),
            hosts(object).into(),
            addresses.join(",").into(),
            if tls { "80, 443".into() } else { "80".into() },
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

/// The rules of `ingressclasses`.
pub(crate) static INGRESS_CLASS: Simple = Simple {
    columns: &[
        Column::name(),
        Column::text("Controller", "What serves ingresses of the class"),
        Column::text("Parameters", "Where its parameters are"),
        AGE,
    ],
    cells: |object, now| {
        let parameters = object.pointer("/spec/parameters").map_or_else(
            || "<none>".to_owned(),
            |parameters| {
                let kind = field(parameters, "kind");
                let name = field(parameters, "name");
                match field(parameters, "apiGroup") {
                    "" => format!("{kind}/{name}"),
                    group => format!("{kind}.{group}/{name}"),
                }
            },
        );
        vec![
            name_cell(object),
            text(object, "/spec/controller").into(),
            parameters.into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

/// The rules of `networkpolicies`.
pub(crate) static NETWORK_POLICY: Simple = Simple {
    default: |object| {
        let Some(spec) = object_at(object, "/spec") else { return };
        let outward = !items(spec, "/egress").is_empty();
        let types = if outward { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        default(spec, "policyTypes", types);
        for list in ["/ingress", "/egress"] {
            for rule in items_mut(spec, list) {
                for port in items_mut(rule, "/ports") {
                    default(port, "protocol", "TCP");
                }
            }
        }
    },
    columns: &[Column::name(), Column::text("Pod-Selector", "Pods it is about"), AGE],
    cells: |object, now| {
        vec![name_cell(object), selectors::cell(object, "/spec/podSelector"), age_cell(object, now)]
    },
    ..Simple::NEW
};

fn hosts(ingress: &Value) -> String {
    let rules = items(ingress, "/spec/rules");
    let named: Vec<&str> =
        rules.iter().map(|rule| field(rule, "host")).filter(|host| !host.is_empty()).collect();
    match named.len() {
        0 => "*".to_owned(),
        n if n > SHOWN => format!("{} + {} more...", named[..SHOWN].join(","), n - SHOWN),
        _ => named.join(","),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use steersman_apimachinery::rules::Rules;

    use super::*;
    use crate::cluster::now;

    #[test]
    fn rows_are_those_of_kubectl() {
        let row =
            |rules: &dyn Rules, object: Value| Value::from(rules.cells(&object, now())).to_string();
        let rules = ["a", "b", "c", "d"].map(|host| json!({"host": host}));
        let ingress = json!({"metadata": {"name": "i"}, "spec": {"rules": rules, "tls": [{}]}});
        expect![[r#"["i","<none>","a,b,c + 1 more...","","80, 443","<unknown>"]"#]]
            .assert_eq(&row(&INGRESS, ingress));
        let class = json!({"metadata": {"name": "c"}, "spec": {
            "controller": "example.com/c", "parameters": {"kind": "K", "name": "n"},
        }});
        expect![[r#"["c","example.com/c","K/n","<unknown>"]"#]]
            .assert_eq(&row(&INGRESS_CLASS, class));
        let mut policy = json!({"metadata": {"name": "p"}, "spec": {
            "podSelector": {}, "egress": [{"ports": [{"port": 53}]}],
        }});
        NETWORK_POLICY.default(&mut policy);
        expect![[r#"{"egress":[{"ports":[{"port":53,"protocol":"TCP"}]}],"podSelector":{},"policyTypes":["Ingress","Egress"]}"#]].assert_eq(&policy["spec"].to_string());
        expect![[r#"["p","<none>","<unknown>"]"#]].assert_eq(&row(&NETWORK_POLICY, policy));
    }
}
