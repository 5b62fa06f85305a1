//! Which flows a packet is in, as a diagram of decisions: one level per match key, one edge per set of values.
//!
//! As Camus (Jepsen et al., CoNEXT 2018) does for subscriptions: the terms that are still open are what a node stands for,
//! so equal remainders are one node, and terms that a value excludes are gone below its edge. Terms are never compared in
//! pairs: a node sorts the ends of its terms' ranges, and sweeps over them.

mod overflow;
mod term;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(crate) use overflow::Overflow;
use term::Remainders;

use crate::terms::{MatchKey, Term};

/// Classes that `class_t` can tell apart besides 0: "of no flow".
pub const MAX_CLASSES: usize = 65_535;

/// Flows of all classes together.
const MAX_MEMBERS: usize = 1 << 24;

/// Open terms of all nodes together: what bounds time and memory.
const MAX_OPEN: usize = 1 << 25;

/// Where an edge leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum To {
    /// Index into [`Diagram::nodes`].
    Node(u32),
    /// A class: index into [`Diagram::classes`].
    Class(u32),
}

impl To {
    /// The packet is in no flow.
    pub const NONE: To = To::Class(0);
}

/// A decision by the value of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Index into [`Diagram::levels`]. Edges lead to greater ones.
    pub level: usize,
    /// From which value on where to, ascending, the first from 0. Neighbours differ.
    pub edges: Vec<(u128, To)>,
}

/// A reduced, ordered decision diagram over match keys whose leaves are sets of flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagram {
    /// The keys, in the order in which they are looked at.
    pub levels: Vec<MatchKey>,
    /// Targets stand before what leads to them.
    pub nodes: Vec<Node>,
    /// Sets of flows, ascending: that of nobody, those of one flow, of two …
    pub classes: Vec<Vec<usize>>,
    /// Where to begin.
    pub root: To,
}

impl Diagram {
    /// The diagram of flows, each given by its terms; `max_of`: the largest value of a key.
    pub fn new(
        flows: &[Vec<Term>],
        max_of: impl Fn(&MatchKey) -> u128,
    ) -> Result<Diagram, Overflow> {
        let levels: BTreeSet<MatchKey> = flows
            .iter()
            .flatten()
            .flat_map(Term::keys)
            .copied()
            .collect();
        let levels: Vec<MatchKey> = levels.into_iter().collect();
        let (remainders, open) = Remainders::of(&levels, flows);
        let mut builder = Builder {
            remainders,
            max: levels.iter().map(max_of).collect(),
            nodes: Vec::new(),
            leaves: Vec::new(),
            built: HashMap::new(),
            node_numbers: HashMap::new(),
            leaf_numbers: HashMap::new(),
            open: 0,
            members: 0,
        };
        builder.leaf(Vec::new())?;
        let root = builder.build(open)?;
        Ok(builder.finish(levels, root))
    }
}

/// A flow, and what is left of one of its terms; nothing of it is 0.
pub(super) type Open = (u32, u32);

/// An end of a term's range.
struct Mark {
    at: u128,
    /// From here on the term is open; else it was until here.
    begins: bool,
    open: Open,
}

struct Builder {
    remainders: Remainders,
    /// The largest value of each level.
    max: Vec<u128>,
    nodes: Vec<Node>,
    leaves: Vec<Vec<u32>>,
    /// What has been built, by the open terms.
    built: HashMap<Vec<Open>, To>,
    node_numbers: HashMap<(usize, Vec<(u128, To)>), u32>,
    leaf_numbers: HashMap<Vec<u32>, u32>,
    open: usize,
    members: usize,
}

impl Builder {
    fn build(&mut self, open: Vec<Open>) -> Result<To, Overflow> {
        let open = without_settled(open);
        let remainders = &self.remainders;
        let Some(level) = open
            .iter()
            .filter_map(|(_, rest)| remainders.level(*rest))
            .min()
        else {
            return self.leaf(open.into_iter().map(|(flow, _)| flow).collect());
        };
        if let Some(to) = self.built.get(&open) {
            return Ok(*to);
        }
        self.open += open.len();
        if self.open > MAX_OPEN {
            return Err(Overflow::of(
                open.iter().map(|(flow, _)| *flow),
                &self.leaves,
            ));
        }
        let (here, below): (Vec<Open>, Vec<Open>) = open
            .iter()
            .partition(|(_, rest)| remainders.level(*rest) == Some(level));
        let marks = self.marks(level, &here);
        // Two terms of a flow may have the same rest, and ranges that overlap: hence the counts.
        let mut within: BTreeMap<Open, usize> = BTreeMap::new();
        let mut edges: Vec<(u128, To)> = Vec::new();
        if marks.first().is_none_or(|mark| mark.at > 0) {
            edges.push((0, self.build(below.clone())?));
        }
        for same in marks.chunk_by(|a, b| a.at == b.at) {
            for mark in same {
                let count = within.entry(mark.open).or_default();
                if mark.begins {
                    *count += 1;
                } else {
                    *count -= 1;
                }
            }
            let ended = same
                .iter()
                .filter(|mark| within.get(&mark.open) == Some(&0));
            for open in ended.map(|mark| mark.open).collect::<Vec<_>>() {
                within.remove(&open);
            }
            let open = below.iter().chain(within.keys()).copied().collect();
            let to = self.build(open)?;
            if edges.last().is_none_or(|(_, last)| *last != to) {
                edges.push((same[0].at, to));
            }
        }
        let to = match edges.as_slice() {
            [(_, only)] => *only,
            _ => To::Node(self.node(level, edges)),
        };
        self.built.insert(open, to);
        Ok(to)
    }

    /// The ends of all ranges that terms have at their next level, ascending.
    fn marks(&self, level: usize, here: &[Open]) -> Vec<Mark> {
        let mut marks = Vec::new();
        for (flow, rest) in here {
            let Some((ranges, next)) = self.remainders.step(*rest) else {
                continue;
            };
            let open = (*flow, next);
            for (low, high) in ranges.iter() {
                let mark = |at, begins| Mark { at, begins, open };
                marks.push(mark(low, true));
                marks.extend((high < self.max[level]).then(|| mark(high + 1, false)));
            }
        }
        // Counts stay above zero if what begins at a value is counted before what ended at it.
        marks.sort_unstable_by_key(|mark| (mark.at, !mark.begins, mark.open));
        marks
    }

    fn node(&mut self, level: usize, edges: Vec<(u128, To)>) -> u32 {
        let next = self.nodes.len() as u32;
        let number = *self
            .node_numbers
            .entry((level, edges.clone()))
            .or_insert(next);
        if number == next {
            self.nodes.push(Node { level, edges });
        }
        number
    }

    fn leaf(&mut self, flows: Vec<u32>) -> Result<To, Overflow> {
        if let Some(number) = self.leaf_numbers.get(&flows) {
            return Ok(To::Class(*number));
        }
        self.members += flows.len();
        if self.leaves.len() > MAX_CLASSES || self.members > MAX_MEMBERS {
            return Err(Overflow::of(flows.into_iter(), &self.leaves));
        }
        let number = self.leaves.len() as u32;
        self.leaf_numbers.insert(flows.clone(), number);
        self.leaves.push(flows);
        Ok(To::Class(number))
    }

    /// Numbers the classes by their flows rather than by the order in which they were found.
    fn finish(self, levels: Vec<MatchKey>, root: To) -> Diagram {
        let mut order: Vec<usize> = (0..self.leaves.len()).collect();
        order.sort_by_key(|leaf| (self.leaves[*leaf].len(), &self.leaves[*leaf]));
        let mut classes = vec![0; order.len()];
        for (class, leaf) in order.iter().enumerate() {
            classes[*leaf] = class as u32;
        }
        let renamed = |to: To| match to {
            To::Class(leaf) => To::Class(classes[leaf as usize]),
            to => to,
        };
        let nodes = self.nodes.into_iter().map(|node| Node {
            level: node.level,
            edges: node
                .edges
                .into_iter()
                .map(|(low, to)| (low, renamed(to)))
                .collect(),
        });
        let flows = |leaf: &usize| {
            self.leaves[*leaf]
                .iter()
                .map(|flow| *flow as usize)
                .collect()
        };
        Diagram {
            levels,
            nodes: nodes.collect(),
            classes: order.iter().map(flows).collect(),
            root: renamed(root),
        }
    }
}

/// Sorted, and without the other terms of a flow of which one term holds already.
fn without_settled(mut open: Vec<Open>) -> Vec<Open> {
    open.sort_unstable();
    open.dedup();
    let mut settled = None;
    open.retain(|(flow, rest)| {
        if *rest == 0 {
            settled = Some(*flow);
            return true;
        }
        settled != Some(*flow)
    });
    open
}
