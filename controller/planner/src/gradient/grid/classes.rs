//! Classes of nodes that a relaxation need not distinguish.
//!
//! Classes are the coarsest equitable partition: nodes of one class have equal numbers of links of each kind to each other
//! class. In a linear program, the mean over a class is as good as any solution, so one variable stands for a class of links,
//! and one row for a class of nodes (Grohe, Kersting, Mladenov and Selman, *Dimension reduction via colour refinement*, 2014).
//! For example, the workers of a rack are one class, and so are spines that do not sum.

use std::collections::BTreeMap;

use super::streams::Streams;
use crate::network::{Arc, NodeId};

/// Role of a node in a gradient plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The node is a worker, which sends gradients.
    Worker,
    /// The node is a switch: it forwards gradients, and sums those of at most this many workers.
    Switch(usize),
    /// The node is the server, which receives gradients.
    Server,
}

/// Nodes with the same role and the same links to other classes.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub kind: Kind,
    pub nodes: Vec<NodeId>,
}

/// A class of arcs: the classes of nodes at its two ends, and the capacity of a link in both directions, in streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arcs {
    pub from: usize,
    pub to: usize,
    pub room: usize,
    pub back: usize,
}

impl Arcs {
    /// Class of the arcs on the same links in the other direction.
    pub fn reverse(self) -> Arcs {
        Arcs {
            from: self.to,
            to: self.from,
            room: self.back,
            back: self.room,
        }
    }
}

/// A network whose nodes and links are reduced to classes of alike ones.
#[derive(Debug)]
pub(super) struct Classes {
    pub classes: Vec<Class>,
    /// Number of arcs in each class.
    pub arcs: BTreeMap<Arcs, usize>,
}

/// A link as seen from one end: capacity away from it and back to it, in streams, and the class of the node at the other end.
type LinkView = (usize, usize, usize);

impl Classes {
    pub fn new(streams: &Streams<'_>, rate_bps: f64) -> Classes {
        let network = streams.network;
        let kinds = kinds(streams, rate_bps);
        // More capacity is never used.
        let most = streams.most_streams();
        let room = |arc: Arc| streams.room(arc, rate_bps).min(most);
        let ids: Vec<NodeId> = network
            .ids()
            .filter(|id| kinds[id.index()].is_some())
            .collect();
        let mut class_of: Vec<usize> = vec![0; network.nodes().len()];
        let mut count = number(&mut class_of, &ids, |id| kinds[id.index()]);
        loop {
            let seen: Vec<Vec<LinkView>> = ids
                .iter()
                .map(|id| {
                    let links = network.adjacent(*id).iter();
                    let links = links.filter(|(_, peer)| kinds[peer.index()].is_some());
                    let seen = links.map(|(link, peer)| {
                        let (away, to) = (network.arc(*link, *id), network.arc(*link, *peer));
                        (room(away), room(to), class_of[peer.index()])
                    });
                    let mut seen: Vec<LinkView> = seen.collect();
                    seen.sort_unstable();
                    seen
                })
                .collect();
            let before = class_of.clone();
            let mut seen = ids.iter().zip(seen);
            let keys: BTreeMap<NodeId, Vec<LinkView>> =
                seen.by_ref().map(|(id, seen)| (*id, seen)).collect();
            let finer = number(&mut class_of, &ids, |id| (before[id.index()], &keys[&id]));
            if finer == count {
                break;
            }
            count = finer;
        }
        let mut classes: Vec<Class> = Vec::new();
        classes.resize_with(count, || Class {
            kind: Kind::Server,
            nodes: Vec::new(),
        });
        for id in &ids {
            let class = &mut classes[class_of[id.index()]];
            class.kind = kinds[id.index()].unwrap_or(Kind::Server);
            class.nodes.push(*id);
        }
        let mut arcs: BTreeMap<Arcs, usize> = BTreeMap::new();
        for arc in network.arcs() {
            let (from, to) = network.ends(arc);
            if kinds[from.index()].is_none() || kinds[to.index()].is_none() {
                continue;
            }
            let back = network.arc(arc.link, to);
            let alike = Arcs {
                from: class_of[from.index()],
                to: class_of[to.index()],
                room: room(arc),
                back: room(back),
            };
            *arcs.entry(alike).or_default() += 1;
        }
        Classes { classes, arcs }
    }
}

/// Role of each node in the job; `None` for hosts without a role.
fn kinds(streams: &Streams<'_>, rate_bps: f64) -> Vec<Option<Kind>> {
    let network = streams.network;
    let mut kinds = vec![None; network.nodes().len()];
    for switch in network.switches() {
        kinds[switch.index()] = Some(Kind::Switch(0));
    }
    for (switch, room) in streams.rooms(rate_bps) {
        kinds[switch.index()] = Some(Kind::Switch(room.min(streams.job.workers.len())));
    }
    for worker in &streams.job.workers {
        kinds[worker.index()] = Some(Kind::Worker);
    }
    kinds[streams.server.host.index()] = Some(Kind::Server);
    kinds
}

/// Numbers the classes of nodes with equal keys, and writes them to `class_of`. Returns the number of classes.
fn number<K: Ord>(class_of: &mut [usize], ids: &[NodeId], key: impl Fn(NodeId) -> K) -> usize {
    let mut known: BTreeMap<K, usize> = ids.iter().map(|id| (key(*id), 0)).collect();
    for (number, class) in known.values_mut().enumerate() {
        *class = number;
    }
    for id in ids {
        class_of[id.index()] = known[&key(*id)];
    }
    known.len()
}
