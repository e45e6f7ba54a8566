//! Host ports: what pods take of a node's addresses.

use crate::name::Name;

/// The address that stands for all of a node's addresses.
const ANY_IP: &str = "0.0.0.0";

/// A port of the node that a pod wants for itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The address; `0.0.0.0` stands for every one.
    pub ip: Name,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: Name,
    /// 1..=65535.
    pub port: i32,
}

impl HostPort {
    /// A port as pods declare it: without an address every one is meant,
    /// without a protocol TCP.
    pub fn new(ip: &str, protocol: &str, port: i32) -> Self {
        let or =
            |text: &str, default: &str| Name::new(if text.is_empty() { default } else { text });
        Self { ip: or(ip, ANY_IP), protocol: or(protocol, "TCP"), port }
    }

    /// Whether both cannot be on one node.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.ip == other.ip || self.ip == ANY_IP || other.ip == ANY_IP)
    }
}

/// The host ports in use on a node, each as often as a pod has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPorts(Vec<HostPort>);

impl HostPorts {
    /// Takes every one of `ports`.
    pub fn add(&mut self, ports: &[HostPort]) {
        self.0.extend_from_slice(ports);
    }

    /// Gives every one of `ports` back, once each.
    pub fn remove(&mut self, ports: &[HostPort]) {
        for port in ports {
            if let Some(at) = self.0.iter().position(|used| used == port) {
                self.0.swap_remove(at);
            }
        }
    }

    /// Whether any of `wanted` is taken.
    pub fn conflict(&self, wanted: &[HostPort]) -> bool {
        self.0.iter().any(|used| wanted.iter().any(|want| want.conflicts_with(used)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(used: (&str, &str, i32), wanted: (&str, &str, i32), conflict: bool) {
        let mut ports = HostPorts::default();
        let used = [HostPort::new(used.0, used.1, used.2)];
        ports.add(&used);
        let wanted = [HostPort::new(wanted.0, wanted.1, wanted.2)];
        assert_eq!(ports.conflict(&wanted), conflict);
        ports.remove(&used);
        assert!(!ports.conflict(&wanted));
    }

    #[test]
    fn same_port_conflicts_on_same_or_any_address() {
        check(("", "", 80), ("", "TCP", 80), true);
        check(("10.0.0.1", "TCP", 80), ("", "TCP", 80), true);
        check(("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), true);
        check(("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), false);
        check(("", "TCP", 80), ("", "UDP", 80), false);
        check(("", "TCP", 80), ("", "TCP", 81), false);
    }
}
