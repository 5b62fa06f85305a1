//! Forwarding of a switch: its port to every other node, found by one search, and its ports for broadcasts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Link, Topology};

impl Topology {
    /// This switch's port to each host and switch that it can reach, by name. For one host, [`Topology::next_hop`] gives the
    /// same.
    #[must_use]
    pub fn ports_towards<'a>(&'a self, switch: &'a str) -> BTreeMap<&'a str, u32> {
        let peers = self.peers();
        let switches: BTreeSet<&str> = self.switches.iter().map(String::as_str).collect();
        let mut towards: BTreeMap<&str, u32> = BTreeMap::new();
        let mut hops = BTreeMap::from([(switch, 0)]);
        let mut queue = VecDeque::from([switch]);
        // Nodes are visited in order of distance, so the port of each is the lowest one when it is visited.
        while let Some(node) = queue.pop_front() {
            let next = hops[node] + 1;
            let onward = peers.get(node).map_or(&[][..], Vec::as_slice);
            for ((_, peer), number) in onward.iter().zip(1..) {
                let port = towards.get(node).copied().unwrap_or(number);
                match hops.get(peer) {
                    None => {
                        hops.insert(peer, next);
                        towards.insert(peer, port);
                        if switches.contains(peer) {
                            queue.push_back(peer);
                        }
                    }
                    Some(known) if *known == next => {
                        let lowest = towards.entry(peer).or_insert(port);
                        *lowest = port.min(*lowest);
                    }
                    Some(_) => {}
                }
            }
        }
        towards
    }

    /// The ports of a switch to which it sends broadcasts: those on a spanning tree, so that broadcasts do not loop.
    #[must_use]
    pub fn flood_ports(&self, switch: &str) -> Vec<u32> {
        let Some(root) = self.switches.first() else {
            return Vec::new();
        };
        let peers = self.peers();
        let switches: BTreeSet<&str> = self.switches.iter().map(String::as_str).collect();
        let mut tree: BTreeSet<*const Link> = BTreeSet::new();
        let mut seen = BTreeSet::from([root.as_str()]);
        let mut queue = VecDeque::from([root.as_str()]);
        while let Some(node) = queue.pop_front() {
            for (link, peer) in peers.get(node).into_iter().flatten() {
                if switches.contains(peer) && seen.insert(peer) {
                    queue.push_back(peer);
                    tree.insert(std::ptr::from_ref(*link));
                }
            }
        }
        let ports = peers.get(switch).into_iter().flatten().zip(1..);
        let ports = ports.filter(|((_, peer), _)| !self.gone.contains(*peer));
        let on_tree = ports.filter(|((link, peer), _)| {
            !switches.contains(peer) || tree.contains(&std::ptr::from_ref(*link))
        });
        on_tree.map(|(_, number)| number).collect()
    }

    /// For each node by name, its links and neighbors in declared order; for a switch, this is the order of its ports.
    fn peers(&self) -> BTreeMap<&str, Vec<(&Link, &str)>> {
        let mut peers: BTreeMap<&str, Vec<(&Link, &str)>> = BTreeMap::new();
        for link in &self.links {
            let [a, b] = link.ends.each_ref().map(String::as_str);
            peers.entry(a).or_default().push((link, b));
            peers.entry(b).or_default().push((link, a));
        }
        peers
    }
}

#[cfg(test)]
mod tests {
    use planner::network::generate::{FatTree, Jellyfish, Parts};

    use super::*;

    #[test]
    fn a_ring_floods_along_a_tree() {
        let mut topology = Topology::star("a", &["h"]);
        topology.switches.extend(["b".to_owned(), "c".to_owned()]);
        topology.links.extend([
            Link::new("a", "b"),
            Link::new("b", "c"),
            Link::new("c", "a"),
        ]);
        let flooded: usize = ["a", "b", "c"]
            .iter()
            .map(|s| topology.flood_ports(s).len())
            .sum();
        // Two tree links with two ends, and one host.
        assert_eq!(flooded, 5);
    }

    #[test]
    fn all_ports_at_once_are_those_of_one_host_after_another() {
        let fat_tree = FatTree {
            k: 4,
            hosts_per_edge: None,
            rate_bps: 1,
            parts: Parts::default(),
        };
        let jellyfish = |seed| Jellyfish {
            switches: 12,
            degree: 3,
            hosts_per_switch: 1,
            host_rate_bps: 1,
            rate_bps: 1,
            seed,
            parts: Parts::default(),
        };
        let drawn = (0..10).map(|seed| jellyfish(seed).build());
        for network in std::iter::once(fat_tree.build()).chain(drawn) {
            let mut topology = Topology::from_network(&network.unwrap(), &Link::new("", ""));
            // Adds a second link between two switches, and a host that would shorten a path.
            let [a, b] = [&topology.switches[0], &topology.switches[5]].map(Clone::clone);
            topology.add_host("both", &a);
            let others = [Link::new("both", &b), Link::new(&a, &b), Link::new(&b, &a)];
            topology.links.extend(others);
            for switch in &topology.switches {
                let towards = topology.ports_towards(switch);
                for node in topology.nodes().filter(|node| node != switch) {
                    let one = topology.next_hop(switch, node).map(|port| port.number);
                    assert_eq!(towards.get(node).copied(), one, "{switch} → {node}");
                }
            }
        }
    }
}
