//! Addresses of services inside of the cluster, and ports on its nodes.
//!
//! Source: the documentation of services, with the default ranges.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Value, json};
use steersman_apimachinery::error::{ApiError, FieldError};
use steersman_apimachinery::rules::Request;

use crate::fields::{
    default, field, flag, items, items_mut, name, namespace, number, object_at, set, text,
};

/// The service `kubernetes`: the first address of the range.
pub(crate) const KUBERNETES_IP: &str = "10.96.0.1";
/// `10.96.0.0/12`.
const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 0]);
const SIZE: u32 = 1 << 20;
/// Ports on nodes.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;
/// How many addresses are tried before the service is refused. With so many
/// failures in a row the range is as good as full.
const ATTEMPTS: u64 = 1000;

/// Gives a service the addresses and ports that it lacks, and refuses those it
/// asks for that others have.
pub(super) fn allocate(
    service: &mut Value,
    old: Option<&Value>,
    request: &Request<'_>,
) -> Result<(), ApiError> {
    let me = (namespace(service).to_owned(), name(service).to_owned());
    let others: Vec<_> = request
        .view
        .list("", "services", None)
        .into_iter()
        .filter(|other| (namespace(other), name(other)) != (&*me.0, &*me.1))
        .collect();
    let taken: BTreeSet<&str> = others.iter().map(|other| text(other, "/spec/clusterIP")).collect();
    let refuse = |error| Err(ApiError::invalid(request.resource, &me.1, &[error]));
    let unchanged =
        old.is_some_and(|old| text(old, "/spec/clusterIP") == text(service, "/spec/clusterIP"));
    match text(service, "/spec/clusterIP") {
        _ if text(service, "/spec/type") == "ExternalName" => {}
        "None" => set_ip(service, "None"),
        "" => match free_address(&taken, request.random) {
            Some(address) => set_ip(service, &address),
            None => {
                return Err(ApiError::internal("failed to allocate a serviceIP: range is full"));
            }
        },
        wanted => {
            let wanted = wanted.to_owned();
            if !unchanged && let Some(why) = why_not(&wanted, &taken) {
                let why = format!("failed to allocate IP {wanted}: {why}");
                return refuse(FieldError::invalid("spec.clusterIPs", json!([wanted]), &why));
            }
            set_ip(service, &wanted);
        }
    }
    if let Err(error) = allocate_node_ports(service, old, &others, request.random) {
        return refuse(error);
    }
    Ok(())
}

fn set_ip(service: &mut Value, address: &str) {
    let Some(spec) = object_at(service, "/spec") else { return };
    set(spec, "clusterIP", address);
    set(spec, "clusterIPs", json!([address]));
    default(spec, "ipFamilies", json!(["IPv4"]));
    default(spec, "ipFamilyPolicy", "SingleStack");
}

/// A free address other than the first and the last of the range.
fn free_address(taken: &BTreeSet<&str>, random: u64) -> Option<String> {
    let usable = u64::from(SIZE) - 2;
    (0..ATTEMPTS)
        .map(|attempt| {
            // The remainder fits: it is below the size of the range.
            let offset = u32::try_from(random.wrapping_add(attempt) % usable).unwrap_or(0);
            Ipv4Addr::from(FIRST + 1 + offset).to_string()
        })
        .find(|address| address != KUBERNETES_IP && !taken.contains(&**address))
}

fn why_not(address: &str, taken: &BTreeSet<&str>) -> Option<String> {
    let Ok(parsed) = address.parse::<Ipv4Addr>() else {
        return Some("not a valid IP".to_owned());
    };
    let number = u32::from(parsed);
    if number <= FIRST || number >= FIRST + SIZE - 1 {
        let range = format!("{}/12", Ipv4Addr::from(FIRST));
        return Some(format!(
            "the provided network does not match the current range, the range of valid IPs is \
             {range}"
        ));
    }
    taken.contains(address).then(|| "provided IP is already allocated".to_owned())
}

fn allocate_node_ports(
    service: &mut Value,
    old: Option<&Value>,
    others: &[std::sync::Arc<Value>],
    random: u64,
) -> Result<(), FieldError> {
    let wanted = match text(service, "/spec/type") {
        "NodePort" => true,
        "LoadBalancer" => flag(service, "/spec/allocateLoadBalancerNodePorts"),
        _ => false,
    };
    let mut taken: BTreeSet<(i64, String)> =
        others.iter().flat_map(|other| node_ports(other)).collect();
    let own: BTreeSet<(i64, String)> = old.into_iter().flat_map(node_ports).collect();
    for (i, port) in items_mut(service, "/spec/ports").iter_mut().enumerate() {
        let protocol = field(port, "protocol").to_owned();
        let path = format!("spec.ports[{i}].nodePort");
        match number(port, "/nodePort").unwrap_or(0) {
            0 if wanted => {
                let span = NODE_PORTS.end() - NODE_PORTS.start() + 1;
                let start =
                    i64::try_from(random % 100_003).unwrap_or(0) + i64::try_from(i).unwrap_or(0);
                let free = (0..span)
                    .map(|step| NODE_PORTS.start() + (start + step) % span)
                    .find(|candidate| !taken.contains(&(*candidate, protocol.clone())));
                let Some(free) = free else {
                    let why = "failed to allocate a nodePort: range is full";
                    return Err(FieldError::invalid(path, 0, why));
                };
                taken.insert((free, protocol));
                set(port, "nodePort", free);
            }
            0 => {}
            given => {
                let key = (given, protocol);
                if !NODE_PORTS.contains(&given) && !own.contains(&key) {
                    let why = format!(
                        "provided port is not in the valid range. The range of valid ports is \
                         {}-{}",
                        NODE_PORTS.start(),
                        NODE_PORTS.end()
                    );
                    return Err(FieldError::invalid(path, given, &why));
                }
                if !taken.insert(key) {
                    return Err(FieldError::invalid(
                        path,
                        given,
                        "provided port is already allocated",
                    ));
                }
            }
        }
    }
    Ok(())
}

fn node_ports(service: &Value) -> Vec<(i64, String)> {
    items(service, "/spec/ports")
        .iter()
        .filter_map(|port| Some((number(port, "/nodePort")?, field(port, "protocol").to_owned())))
        .filter(|(port, _)| *port != 0)
        .collect()
}
