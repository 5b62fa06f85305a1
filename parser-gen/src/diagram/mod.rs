//! Decision diagram that finds the flows of a packet: one level per match key, one edge per set of values.
//!
//! It follows Camus (Jepsen et al., CoNEXT 2018): a node represents the set of terms that are still open, so equal
//! remainders share a node, and an edge drops the terms that its values exclude. Terms are never compared in pairs: a node
//! sorts the ends of its terms' ranges and sweeps over them.

mod overflow;
mod term;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub(crate) use overflow::Overflow;
use term::Remainders;

use crate::terms::{MatchKey, Term};

/// Maximum number of classes that `class_t` can hold besides class 0, "of no flow".
pub const MAX_CLASSES: usize = 65_535;

/// Maximum of the sum of all classes' numbers of flows.
const MAX_MEMBERS: usize = 1 << 24;

/// Maximum number of open terms, summed over all nodes of a diagram. It bounds time and memory.
const MAX_OPEN: usize = 1 << 25;

/// Target of a diagram's edge: another node, or the packet's class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum EdgeTarget {
    /// A further node: index into [`Diagram::nodes`].
    Node(u32),
    /// Class of the packet: index into [`Diagram::classes`].
    Class(u32),
}

impl EdgeTarget {
    /// Target of an edge for packets that are in no flow.
    pub const NONE: EdgeTarget = EdgeTarget::Class(0);
}

/// Node of a decision diagram: a decision by the value of one match key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiagramNode {
    /// Match key that the node tests: index into [`Diagram::levels`]. Edges lead to greater levels only.
    pub level: usize,
    /// Edges as (lowest value, target), ascending from value 0: each holds up to the next. Adjacent targets differ.
    pub edges: Vec<(u128, EdgeTarget)>,
}

/// A reduced, ordered decision diagram over match keys whose leaves are sets of flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Diagram {
    /// Match keys, in the order in which the diagram tests them.
    pub levels: Vec<MatchKey>,
    /// Nodes of the diagram; the target of an edge precedes the node that has the edge.
    pub nodes: Vec<DiagramNode>,
    /// Flow indexes of each class, ascending: first the empty set, then sets of one flow, of two flows, and so on.
    pub classes: Vec<Vec<usize>>,
    /// Target at which every packet enters the diagram: the root node, or a class if there are no nodes.
    pub root: EdgeTarget,
}

impl Diagram {
    /// Builds the decision diagram of flows, each given by its terms. `max_of` returns the largest value of a match key.
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
        let (remainders, open) = Remainders::new(&levels, flows);
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

/// Open term of a flow: the flow's index, and the number of the term's remainder. Remainder 0 is empty: the term holds.
pub(super) type Open = (u32, u32);

/// Value at which the range of an open term begins or ends.
struct Mark {
    at: u128,
    /// Whether the term's range begins at this value; otherwise the range ends here.
    begins: bool,
    open: Open,
}

struct Builder {
    remainders: Remainders,
    /// Largest value of each level's match key.
    max: Vec<u128>,
    nodes: Vec<DiagramNode>,
    leaves: Vec<Vec<u32>>,
    /// Targets built so far, by the open terms that lead to them.
    built: HashMap<Vec<Open>, EdgeTarget>,
    node_numbers: HashMap<(usize, Vec<(u128, EdgeTarget)>), u32>,
    leaf_numbers: HashMap<Vec<u32>, u32>,
    open: usize,
    members: usize,
}

impl Builder {
    fn build(&mut self, open: Vec<Open>) -> Result<EdgeTarget, Overflow> {
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
            return Err(Overflow::new(
                open.iter().map(|(flow, _)| *flow),
                &self.leaves,
            ));
        }
        let (here, below): (Vec<Open>, Vec<Open>) = open
            .iter()
            .partition(|(_, rest)| remainders.level(*rest) == Some(level));
        let marks = self.marks(level, &here);
        // Two terms of one flow may have equal remainders and overlapping ranges, so open terms are counted.
        let mut within: BTreeMap<Open, usize> = BTreeMap::new();
        let mut edges: Vec<(u128, EdgeTarget)> = Vec::new();
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
            _ => EdgeTarget::Node(self.node(level, edges)),
        };
        self.built.insert(open, to);
        Ok(to)
    }

    /// Begins and ends of all ranges that the open terms have at this level, ascending.
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
        // Ranges that begin at a value come before those that end there, so that counts stay above zero.
        marks.sort_unstable_by_key(|mark| (mark.at, !mark.begins, mark.open));
        marks
    }

    fn node(&mut self, level: usize, edges: Vec<(u128, EdgeTarget)>) -> u32 {
        let next = self.nodes.len() as u32;
        let number = *self
            .node_numbers
            .entry((level, edges.clone()))
            .or_insert(next);
        if number == next {
            self.nodes.push(DiagramNode { level, edges });
        }
        number
    }

    fn leaf(&mut self, flows: Vec<u32>) -> Result<EdgeTarget, Overflow> {
        if let Some(number) = self.leaf_numbers.get(&flows) {
            return Ok(EdgeTarget::Class(*number));
        }
        self.members += flows.len();
        if self.leaves.len() > MAX_CLASSES || self.members > MAX_MEMBERS {
            return Err(Overflow::new(flows.into_iter(), &self.leaves));
        }
        let number = self.leaves.len() as u32;
        self.leaf_numbers.insert(flows.clone(), number);
        self.leaves.push(flows);
        Ok(EdgeTarget::Class(number))
    }

    /// Renumbers the classes by their flows, independent of the order in which they were found.
    fn finish(self, levels: Vec<MatchKey>, root: EdgeTarget) -> Diagram {
        let mut order: Vec<usize> = (0..self.leaves.len()).collect();
        order.sort_by_key(|leaf| (self.leaves[*leaf].len(), &self.leaves[*leaf]));
        let mut classes = vec![0; order.len()];
        for (class, leaf) in order.iter().enumerate() {
            classes[*leaf] = class as u32;
        }
        let renamed = |to: EdgeTarget| match to {
            EdgeTarget::Class(leaf) => EdgeTarget::Class(classes[leaf as usize]),
            to => to,
        };
        let nodes = self.nodes.into_iter().map(|node| DiagramNode {
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

/// Sorts open terms. If one term of a flow already holds, removes the flow's other terms.
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
