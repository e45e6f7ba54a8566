//! `endpoints` and `endpointslices`.

use serde_json::{Value, json};
use steersman_apimachinery::rules::Column;

use crate::fields::{default, field, items, items_mut, number, text};
use crate::simple::{Simple, age_cell, name_cell};

/// How many addresses a table shows.
const SHOWN: usize = 3;

/// The rules of `endpoints`.
pub(crate) static ENDPOINTS: Simple = Simple {
    created_by_update: true,
    generation: false,
    default: |object| {
        for subset in items_mut(object, "/subsets") {
            for port in items_mut(subset, "/ports") {
                default(port, "protocol", "TCP");
            }
        }
    },
    columns: &[
        Column::name(),
        Column::text("Endpoints", "Addresses that serve"),
        Column::text("Age", "Time since creation"),
    ],
    cells: |object, now| vec![name_cell(object), addresses(object).into(), age_cell(object, now)],
    ..Simple::NEW
};

/// The rules of `endpointslices`.
pub(crate) static ENDPOINT_SLICE: Simple = Simple {
    versioned_update: true,
    default: |object| {
        for port in items_mut(object, "/ports") {
            default(port, "name", "");
            default(port, "protocol", "TCP");
        }
    },
    columns: &[
        Column::name(),
        Column::text("AddressType", "What kind of addresses"),
        Column::text("Ports", "Ports that serve"),
        Column::text("Endpoints", "Addresses that serve"),
        Column::text("Age", "Time since creation"),
    ],
    cells: |object, now| {
        let ports = items(object, "/ports").iter().map(|port| match number(port, "/port") {
            Some(port) => port.to_string(),
            None => "*".to_owned(),
        });
        let addresses = items(object, "/endpoints")
            .iter()
            .flat_map(|endpoint| items(endpoint, "/addresses"))
            .filter_map(Value::as_str)
            .map(str::to_owned);
        vec![
            name_cell(object),
            text(object, "/addressType").into(),
            shortened(ports.collect(), "<unset>").into(),
            shortened(addresses.collect(), "<unset>").into(),
            age_cell(object, now),
        ]
    },
    ..Simple::NEW
};

fn addresses(endpoints: &Value) -> String {
    let mut all = Vec::new();
    for subset in items(endpoints, "/subsets") {
        let ports = items(subset, "/ports");
        let none = [json!({})];
        for port in if ports.is_empty() { &none } else { ports } {
            for address in items(subset, "/addresses") {
                let ip = field(address, "ip");
                all.push(match number(port, "/port") {
                    Some(port) => format!("{ip}:{port}"),
                    None => ip.to_owned(),
                });
            }
        }
    }
    shortened(all, "<none>")
}

fn shortened(all: Vec<String>, empty: &str) -> String {
    match all.len() {
        0 => empty.to_owned(),
        n if n > SHOWN => format!("{} + {} more...", all[..SHOWN].join(","), n - SHOWN),
        _ => all.join(","),
    }
}
