//! Finds the paths that the packets of a flow can take.

use std::collections::BTreeMap;

use crate::model::Path;
use crate::model::overlap;
use crate::model::protocols::Protocols;
use crate::model::routing::Ways;
use crate::model::routing::hash::FiveTuple;
use crate::model::topology::{Host, Topology};

/// The field with a packet's source MAC address.
const SOURCE: &str = "eth.src";
/// The filter name of the protocol whose frames follow a gradient plan.
const AGGREGATION: &str = "agg";
/// Kinds of aggregation frames from a worker to the server: 1 is an update from the worker, 2 a sum from a switch.
const GRADIENTS: [(&str, u128); 2] = [("agg.kind", 1), ("agg.kind", 2)];
/// Kind of aggregation frames on the way from the server to the workers: 3 is a result.
const ANSWERS: [(&str, u128); 1] = [("agg.kind", 3)];

/// The paths of aggregation frames according to a gradient plan.
#[derive(Default)]
pub(super) struct PlannedWays {
    /// Paths from workers to the server.
    pub gradients: Vec<Path>,
    /// Paths from the server to workers, for answers to all workers. Answers to one worker take the path of any other packet.
    pub answers: Vec<Path>,
}

/// The transport protocols with ports: IP protocol number, field of the source port, field of the destination port.
const PORTS: [(u8, &str, &str); 2] = [
    (6, "tcp.sport", "tcp.dport"),
    (17, "udp.sport", "udp.dport"),
];

/// The paths between pairs of hosts, each computed once for all flows.
pub(super) struct AllRoutes<'t> {
    topology: &'t Topology,
    protocols: &'t Protocols,
    planned: PlannedWays,
    /// All paths, if several lead from one host to another; otherwise `None`.
    several: Option<&'t Ways>,
    /// By index of the receiver and of the sender: the switches on the path; `None` if there is no path.
    ways: BTreeMap<(usize, usize), Option<Vec<String>>>,
}

impl<'t> AllRoutes<'t> {
    pub(super) fn new(
        topology: &'t Topology,
        protocols: &'t Protocols,
        planned: PlannedWays,
        several: Option<&'t Ways>,
    ) -> AllRoutes<'t> {
        AllRoutes {
            topology,
            protocols,
            planned,
            several,
            ways: BTreeMap::new(),
        }
    }

    /// The paths of the packets that match a filter. They connect all hosts whose addresses the filter accepts, and pass a
    /// switch whose port the filter accepts.
    pub(super) fn paths(
        &mut self,
        filter: &parser_gen::Filter,
        from: Option<&Host>,
        to: Option<&Host>,
    ) -> Vec<Path> {
        let topology = self.topology;
        let chosen = |chosen: Option<&Host>| -> Vec<(usize, &Host)> {
            let hosts = topology.hosts.iter().enumerate();
            hosts
                .filter(|(_, host)| chosen.is_none_or(|chosen| chosen.name == host.name))
                .collect()
        };
        let address = |host: &Host| u128::from(host.ip.to_bits());
        let allowed = overlap::Allowed::new(self.protocols, filter);
        let fields = filter.fields();
        let mac = |host: &Host| {
            let bytes = host.mac.0.iter();
            bytes.fold(0, |all, byte| all << 8 | u128::from(*byte))
        };
        // Programs may send from addresses that no host has; then every host may be the sender.
        let has_mac = |host: &Host| allowed.allows(&[(SOURCE, mac(host))], &[]);
        let goes_by_mac = fields.contains(&SOURCE) && topology.hosts.iter().any(has_mac);
        let mut paths = Vec::new();
        for (to_at, receiver) in chosen(to) {
            for (from_at, sender) in chosen(from) {
                let mut fixed = vec![("ip.src", address(sender)), ("ip.dst", address(receiver))];
                if topology.wire {
                    let port = topology.next_hop(Topology::WIRE, &sender.name);
                    let port = port.map(|port| ("switch.port", u128::from(port.number)));
                    fixed = port.into_iter().collect();
                }
                if sender.name == receiver.name || !allowed.allows(&fixed, &[]) {
                    continue;
                }
                if goes_by_mac {
                    fixed.push((SOURCE, mac(sender)));
                    if !allowed.allows(&fixed, &[]) {
                        continue;
                    }
                }
                let is_between =
                    |path: &&Path| (&path.from, &path.to) == (&sender.name, &receiver.name);
                let is_some_of = |kinds: &[(&'static str, u128)]| {
                    let mut kinds = kinds.iter();
                    kinds.any(|kind| allowed.allows(&[&fixed[..], &[*kind]].concat(), &[]))
                };
                if let Some(planned) = self.planned.gradients.iter().find(is_between) {
                    if is_some_of(&GRADIENTS) {
                        paths.push(planned.clone());
                    }
                    if !allowed.allows(&fixed, &[AGGREGATION]) {
                        continue;
                    }
                }
                let answers = self.planned.answers.iter().find(is_between);
                // Answers to all workers are addressed to a group, so a flow to a single host contains none of them.
                let answers = answers.filter(|_| to.is_none() && is_some_of(&ANSWERS));
                let answers = answers.cloned();
                paths.extend(answers.clone());
                let others = match self.several {
                    Some(several) => {
                        let hash = known_hash(&allowed, (sender, receiver));
                        all(several, (sender, receiver), hash)
                    }
                    None => {
                        let switches = self.way((to_at, receiver), (from_at, sender));
                        let way = switches.map(|switches| Path {
                            from: sender.name.clone(),
                            to: receiver.name.clone(),
                            switches,
                        });
                        way.into_iter().collect()
                    }
                };
                let others = others.into_iter();
                paths.extend(others.filter(|way| answers.as_ref() != Some(way)));
            }
        }
        if fields.contains(&overlap::PORT) {
            paths.retain(|path| {
                let nodes = std::iter::once(&path.from).chain(&path.switches);
                let mut hops = nodes.zip(&path.switches);
                hops.any(|(from, switch)| allowed.enters(topology, switch, from))
            });
        }
        paths
    }

    fn way(&mut self, to: (usize, &Host), from: (usize, &Host)) -> Option<Vec<String>> {
        if let Some(way) = self.ways.get(&(to.0, from.0)) {
            return way.clone();
        }
        let routes = self.topology.routes_to(&to.1.name);
        for (at, sender) in self.topology.hosts.iter().enumerate() {
            let way = routes.path_from(&sender.name);
            let way = way.map(|switches| switches.into_iter().map(str::to_owned).collect());
            self.ways.insert((to.0, at), way);
        }
        self.ways.get(&(to.0, from.0)).cloned().flatten()
    }
}

/// The hash by which switches choose the path of a flow's packets; `None` if it differs between packets. It is the same for all
/// packets of one connection, of ICMP, and of the aggregation protocol. Frames with a VLAN tag take the first path; a filter
/// that does not test for a tag is taken to mean frames without one.
fn known_hash(allowed: &overlap::Allowed<'_>, (sender, receiver): (&Host, &Host)) -> Option<u32> {
    let [src, dst] = [sender, receiver].map(|host| host.ip.to_bits());
    let fixed = [("ip.src", u128::from(src)), ("ip.dst", u128::from(dst))];
    if !allowed.allows(&fixed, &[AGGREGATION]) || allowed.all_have(&fixed, "vlan") {
        return Some(0);
    }
    let flow = |protocol, src_port, dst_port| FiveTuple {
        src,
        dst,
        protocol,
        src_port,
        dst_port,
    };
    if allowed.all_have(&fixed, "icmp") {
        return Some(flow(1, 0, 0).hash());
    }
    let of_ports = |(protocol, sport, dport): &(u8, &str, &str)| {
        let port = |field| u16::try_from(allowed.only(&fixed, field)?).ok();
        Some(flow(*protocol, port(sport)?, port(dport)?).hash())
    };
    PORTS.iter().find_map(of_ports)
}

fn all(several: &Ways, (from, to): (&Host, &Host), hash: Option<u32>) -> Vec<Path> {
    let ways = match hash {
        Some(hash) => several
            .taken(&from.name, &to.name, hash)
            .into_iter()
            .collect(),
        None => several.between(&from.name, &to.name),
    };
    let mut paths: Vec<Path> = Vec::new();
    for way in ways {
        let path = Path {
            from: from.name.clone(),
            to: to.name.clone(),
            switches: way.switches,
        };
        // Parallel links connect the same switches.
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}
