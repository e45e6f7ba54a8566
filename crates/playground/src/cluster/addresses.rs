//! Which address nodes and pods have.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Nodes without an address of their own get one from 172.18.0.0/16 and on.
const FIRST_NODE: u32 = u32::from_be_bytes([172, 18, 0, 2]);
/// Pods get theirs from 10.128.0.0/9, which is apart from the services'
/// 10.96.0.0/12.
const FIRST_POD: u32 = u32::from_be_bytes([10, 128, 0, 1]);
const LAST_POD: u32 = u32::from_be_bytes([10, 255, 255, 254]);

/// Addresses in use. A pod keeps the address that it is given when it is first
/// seen on a node, so that the decision to start it can be made again and comes
/// out the same.
#[derive(Debug)]
pub struct Addresses {
    nodes: BTreeMap<String, String>,
    next_node: u32,
    pods: BTreeMap<String, String>,
    taken: BTreeMap<u32, String>,
    next_pod: u32,
}

impl Default for Addresses {
    fn default() -> Self {
        Self {
            nodes: BTreeMap::new(),
            next_node: FIRST_NODE,
            pods: BTreeMap::new(),
            taken: BTreeMap::new(),
            next_pod: FIRST_POD,
        }
    }
}

impl Addresses {
    /// The address of a node.
    pub fn of_node(&self, name: &str) -> Option<&str> {
        self.nodes.get(name).map(String::as_str)
    }

    /// The address of a pod on the pod network.
    pub fn of_pod(&self, uid: &str) -> Option<&str> {
        self.pods.get(uid).map(String::as_str)
    }

    pub(super) fn node_seen(&mut self, name: &str, listed: Option<&str>) {
        if let Some(listed) = listed {
            self.nodes.insert(name.to_owned(), listed.to_owned());
        } else if !self.nodes.contains_key(name) {
            let address = Ipv4Addr::from(self.next_node);
            self.next_node += 1;
            self.nodes.insert(name.to_owned(), address.to_string());
        }
    }

    pub(super) fn node_gone(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    pub(super) fn pod_seen(&mut self, uid: &str, listed: Option<&str>) {
        if self.pods.contains_key(uid) {
            return;
        }
        let number = match listed {
            Some(listed) => listed.parse::<Ipv4Addr>().ok().map(u32::from),
            None => self.free(),
        };
        if let Some(number) = number {
            self.taken.insert(number, uid.to_owned());
            self.pods.insert(uid.to_owned(), Ipv4Addr::from(number).to_string());
        }
    }

    pub(super) fn pod_gone(&mut self, uid: &str) {
        let Some(address) = self.pods.remove(uid) else { return };
        if let Ok(address) = address.parse::<Ipv4Addr>() {
            let number = u32::from(address);
            // Pods on the host's network share an address.
            if self.taken.get(&number).is_some_and(|holder| holder == uid) {
                self.taken.remove(&number);
            }
        }
    }

    /// The next address that nobody has; going round, so that one is not used
    /// again right away.
    fn free(&mut self) -> Option<u32> {
        let n_addresses = LAST_POD - FIRST_POD + 1;
        for _ in 0..n_addresses {
            let candidate = self.next_pod;
            self.next_pod = if candidate == LAST_POD { FIRST_POD } else { candidate + 1 };
            if !self.taken.contains_key(&candidate) {
                return Some(candidate);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_given_once_kept_and_not_given_again_at_once() {
        let mut addresses = Addresses::default();
        addresses.pod_seen("a", None);
        addresses.pod_seen("b", Some("10.128.0.2"));
        addresses.pod_seen("c", None);
        assert_eq!(addresses.of_pod("a"), Some("10.128.0.1"));
        assert_eq!(addresses.of_pod("c"), Some("10.128.0.3"), "b has the second");
        addresses.pod_gone("a");
        addresses.pod_seen("d", None);
        assert_eq!((addresses.of_pod("a"), addresses.of_pod("d")), (None, Some("10.128.0.4")));
    }
}
