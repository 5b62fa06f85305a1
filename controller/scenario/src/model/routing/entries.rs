//! Builds the tables by which a switch distributes flows over several paths.

use std::collections::{BTreeMap, BTreeSet};

use super::ways::{Hops, NextHops, PathSet, Ways, Whole};

/// The contents of a switch's forwarding tables where several paths lead to hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathTables {
    /// For each host, in the topology's order: how this switch forwards frames to the host.
    pub hosts: Vec<ToHost>,
    /// For each host, in the topology's order: the number of the switch that it is attached to. Empty if `pairs` is empty.
    pub origins: Vec<u16>,
    /// For a sender's and a receiver's switch, both by number: the number of a list of ports, and the length of this list.
    pub pairs: BTreeMap<(u16, u16), (u16, u16)>,
    /// For the number of a list of ports, and an index in the list (one per path): the egress port.
    pub next_hops: BTreeMap<(u16, u16), u32>,
}

/// How a switch forwards frames to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToHost {
    /// By this port.
    Port(u32),
    /// By one of the ports in a list. The hash of the frame's flow (addresses, protocol, ports) selects the port.
    Spread {
        /// Port of frames that belong to no flow: the first of the list.
        port: u32,
        /// Number of the list of ports, counted from 1.
        list: u16,
        /// Number of ports in the list.
        ways: u16,
        /// Number of bits by which this switch rotates the hash, so that not all switches select alike.
        turn: u8,
    },
    /// By the port on one of the paths from the sender's to the receiver's switch. The hash of the flow selects the path.
    Between {
        /// Port on the shortest path from this switch.
        port: u32,
        /// Number of the receiver's switch, counted from 1.
        target: u16,
    },
    /// By no port: the host is unreachable.
    Nowhere,
}

impl PathTables {
    /// Whether the switch forwards to any host over more than one path.
    #[must_use]
    pub fn is_multipath(&self) -> bool {
        !self.next_hops.is_empty()
    }
}

/// Different lists of ports, each with its number, counted from 1.
struct Lists<T>(BTreeMap<T, u16>);

impl<T: Ord> Lists<T> {
    fn number(&mut self, list: T) -> u16 {
        let next = self.0.len() as u16 + 1;
        *self.0.entry(list).or_insert(next)
    }
}

/// The number of a switch in table entries, counted from 1; 0 means no switch.
fn numbered(switch: usize) -> u16 {
    switch as u16 + 1
}

impl Ways {
    /// The contents of the named switch's forwarding tables; empty for an unknown switch.
    #[must_use]
    pub fn told(&self, switch: &str) -> PathTables {
        let Some(at) = self.number(switch) else {
            return PathTables::default();
        };
        match &self.kind {
            PathSet::Equal(next) => self.told_equal(at, next),
            PathSet::Whole(whole) => self.told_whole(at, whole),
        }
    }

    fn told_equal(&self, at: usize, next: &BTreeMap<(usize, usize), NextHops>) -> PathTables {
        let mut told = PathTables::default();
        let mut lists = Lists(BTreeMap::new());
        for home in &self.homes {
            let to_host = match next.get(&(at, home.switch)) {
                _ if home.switch == at => ToHost::Port(home.port),
                None => ToHost::Nowhere,
                Some(next) => match next.ports.as_slice() {
                    [] => ToHost::Nowhere,
                    [only] => ToHost::Port(*only),
                    ports => {
                        let list = lists.number(ports.to_vec());
                        let numbered = (0..).zip(ports);
                        told.next_hops
                            .extend(numbered.map(|(way, port)| ((list, way), *port)));
                        ToHost::Spread {
                            port: ports[0],
                            list,
                            ways: ports.len() as u16,
                            turn: next.turn,
                        }
                    }
                },
            };
            told.hosts.push(to_host);
        }
        told
    }

    fn told_whole(&self, at: usize, whole: &Whole) -> PathTables {
        let mut told = PathTables::default();
        let mut lists = Lists(BTreeMap::new());
        let port_here = |hops: &Hops| {
            let here = hops.iter().find(|(switch, _)| *switch == at);
            here.map(|(_, port)| *port)
        };
        for ((from, to), ways) in &whole.ways {
            let ports: Vec<Option<u32>> = ways.iter().map(port_here).collect();
            if ways.len() < 2 || ports.iter().all(Option::is_none) {
                continue;
            }
            let list = lists.number(ports.clone());
            told.pairs
                .insert((numbered(*from), numbered(*to)), (list, ways.len() as u16));
            let known = (0..).zip(ports);
            let known = known.filter_map(|(way, port)| Some(((list, way), port?)));
            told.next_hops.extend(known);
        }
        let targets: BTreeSet<u16> = told.pairs.keys().map(|(_, target)| *target).collect();
        for home in &self.homes {
            let target = numbered(home.switch);
            let shortest = whole.shortest.get(&(at, home.switch)).copied();
            told.hosts.push(match shortest {
                _ if home.switch == at => ToHost::Port(home.port),
                None => ToHost::Nowhere,
                Some(port) if targets.contains(&target) => ToHost::Between { port, target },
                Some(port) => ToHost::Port(port),
            });
        }
        if told.is_multipath() {
            told.origins = self
                .homes
                .iter()
                .map(|home| numbered(home.switch))
                .collect();
        }
        told
    }
}
