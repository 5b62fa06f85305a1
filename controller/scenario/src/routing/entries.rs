//! What a switch is told, so that it shares flows out.

use std::collections::{BTreeMap, BTreeSet};

use super::ways::{Hops, Kind, NextHops, Ways, Whole};

/// What a switch is told of several ways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Told {
    /// Of each host, in the topology's order.
    pub hosts: Vec<ToHost>,
    /// Of each host, the number of its switch; empty where no pair asks for it.
    pub origins: Vec<u16>,
    /// By the numbers of two switches: a list, and how many ways it has.
    pub pairs: BTreeMap<(u16, u16), (u16, u16)>,
    /// By list and way: the port.
    pub next_hops: BTreeMap<(u16, u16), u32>,
}

/// How a host is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToHost {
    /// By one port.
    Port(u32),
    /// By one of a list's.
    Spread {
        /// Of frames without a flow: the list's first.
        port: u32,
        /// Which list.
        list: u16,
        /// How many ports it has.
        ways: u16,
        /// By how much the hash is turned.
        turn: u8,
    },
    /// By the way that leads from the sender's switch to this one.
    Between {
        /// On the shortest way.
        port: u32,
        /// The switch's number.
        target: u16,
    },
    /// Nothing leads there.
    Nowhere,
}

impl Told {
    /// Whether its program needs more than one way.
    #[must_use]
    pub fn is_multipath(&self) -> bool {
        !self.next_hops.is_empty()
    }
}

/// Lists, each once, numbered from 1.
struct Lists<T>(BTreeMap<T, u16>);

impl<T: Ord> Lists<T> {
    fn number(&mut self, list: T) -> u16 {
        let next = self.0.len() as u16 + 1;
        *self.0.entry(list).or_insert(next)
    }
}

/// The number of a switch in tables, where 0 is none.
fn numbered(switch: usize) -> u16 {
    switch as u16 + 1
}

impl Ways {
    /// What a switch is told.
    #[must_use]
    pub fn told(&self, switch: &str) -> Told {
        let Some(at) = self.number(switch) else {
            return Told::default();
        };
        match &self.kind {
            Kind::Equal(next) => self.told_equal(at, next),
            Kind::Whole(whole) => self.told_whole(at, whole),
        }
    }

    fn told_equal(&self, at: usize, next: &BTreeMap<(usize, usize), NextHops>) -> Told {
        let mut told = Told::default();
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

    fn told_whole(&self, at: usize, whole: &Whole) -> Told {
        let mut told = Told::default();
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
