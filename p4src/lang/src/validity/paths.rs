//! Sets of paths as ordered binary decision diagrams: the combinations of facts that hold on some path.
//!
//! A diagram expresses relations between facts ("TCP is valid only where IPv4 is"). Its size depends on these relations, not on
//! the number of paths: if each of thirteen headers may be valid independently, the diagram is a single node.

use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;

/// A set of paths in one [`Diagrams`]. Equal sets have equal numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Paths(u32);

impl Paths {
    /// The empty set of paths: the program point is unreachable.
    pub const NONE: Paths = Paths(0);
    /// The set of all paths: nothing is known.
    pub const ALL: Paths = Paths(1);
}

/// A decision node: the set of paths where the fact is false, and the set where it is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    /// Fact numbers increase from a diagram's root to its leaves.
    fact: u32,
    no: Paths,
    yes: Paths,
}

/// All sets of paths of one analysis. Nodes are shared and never freed.
pub(super) struct Diagrams {
    nodes: Vec<Node>,
    numbers: HashMap<Node, Paths>,
    /// Cached results of [`Diagrams::choose`].
    chosen: HashMap<(Paths, Paths, Paths), Paths>,
}

/// Maximum number of cached results; when the cache reaches it, it is cleared.
const MAX_REMEMBERED: usize = 1 << 18;

impl Diagrams {
    /// Creates the diagrams with the two sets that need no decision: no path and every path.
    pub fn new() -> Diagrams {
        let leaf = |paths| Node {
            fact: u32::MAX,
            no: paths,
            yes: paths,
        };
        Diagrams {
            nodes: vec![leaf(Paths::NONE), leaf(Paths::ALL)],
            numbers: HashMap::new(),
            chosen: HashMap::new(),
        }
    }

    /// Number of decision nodes created so far.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    fn at(&self, paths: Paths) -> Node {
        self.nodes[paths.0 as usize]
    }

    fn node(&mut self, fact: u32, no: Paths, yes: Paths) -> Paths {
        if no == yes {
            return no;
        }
        let node = Node { fact, no, yes };
        let next = Paths(self.nodes.len() as u32);
        let number = *self.numbers.entry(node).or_insert(next);
        if number == next {
            self.nodes.push(node);
        }
        number
    }

    /// The paths on which all facts in `facts` have the given values; `facts` is in ascending order.
    pub fn cube(&mut self, facts: &BTreeMap<u32, bool>) -> Paths {
        facts
            .iter()
            .rev()
            .fold(Paths::ALL, |rest, (fact, holds)| match holds {
                true => self.node(*fact, Paths::NONE, rest),
                false => self.node(*fact, rest, Paths::NONE),
            })
    }

    /// The paths of `of` that are in `yes`, and the paths outside of `of` that are in `no`.
    fn choose(&mut self, of: Paths, yes: Paths, no: Paths) -> Paths {
        match (of, yes, no) {
            (Paths::ALL, ..) => return yes,
            (Paths::NONE, ..) => return no,
            (_, Paths::ALL, Paths::NONE) => return of,
            _ if yes == no => return yes,
            _ => {}
        }
        if let Some(known) = self.chosen.get(&(of, yes, no)) {
            return *known;
        }
        let nodes = [of, yes, no].map(|paths| (paths, self.at(paths)));
        let fact = nodes.iter().map(|(_, node)| node.fact).min().unwrap_or(0);
        let half = |holds: bool| {
            nodes.map(|(paths, node)| match node.fact == fact {
                true if holds => node.yes,
                true => node.no,
                false => paths,
            })
        };
        let ([of_no, yes_no, no_no], [of_yes, yes_yes, no_yes]) = (half(false), half(true));
        let without = self.choose(of_no, yes_no, no_no);
        let with = self.choose(of_yes, yes_yes, no_yes);
        let result = self.node(fact, without, with);
        if self.chosen.len() >= MAX_REMEMBERED {
            self.chosen.clear();
        }
        self.chosen.insert((of, yes, no), result);
        result
    }

    /// The union of two sets of paths.
    pub fn join(&mut self, a: Paths, b: Paths) -> Paths {
        self.choose(a, Paths::ALL, b)
    }

    /// The paths of the set on which a fact is true (`holds`) or false.
    pub fn where_is(&mut self, paths: Paths, fact: u32, holds: bool) -> Paths {
        let literal = self.cube(&BTreeMap::from([(fact, holds)]));
        self.choose(literal, paths, Paths::NONE)
    }

    /// The set of paths after the fact becomes unknown: on each path it may be true or false.
    pub fn forget(&mut self, paths: Paths, fact: u32) -> Paths {
        self.quantify(paths, fact, &mut HashMap::new())
    }

    fn quantify(&mut self, paths: Paths, fact: u32, known: &mut HashMap<Paths, Paths>) -> Paths {
        let node = self.at(paths);
        if node.fact > fact {
            return paths;
        }
        if node.fact == fact {
            return self.join(node.no, node.yes);
        }
        if let Some(known) = known.get(&paths) {
            return *known;
        }
        let no = self.quantify(node.no, fact, known);
        let yes = self.quantify(node.yes, fact, known);
        let result = self.node(node.fact, no, yes);
        known.insert(paths, result);
        result
    }

    /// The set of paths after a fact is set to true or false on each path.
    pub fn set(&mut self, paths: Paths, fact: u32, holds: bool) -> Paths {
        let forgotten = self.forget(paths, fact);
        self.where_is(forgotten, fact, holds)
    }

    /// The set of paths after the fact `to` is set to the value of the fact `from`.
    pub fn copy(&mut self, paths: Paths, to: u32, from: u32) -> Paths {
        if to == from {
            return paths;
        }
        let forgotten = self.forget(paths, to);
        let [no, yes] = [false, true].map(|holds| {
            let side = self.where_is(forgotten, from, holds);
            self.where_is(side, to, holds)
        });
        self.join(no, yes)
    }

    /// Whether the diagram of a set of paths has more than `limit` nodes.
    pub fn is_larger(&self, paths: Paths, limit: usize) -> bool {
        if self.nodes.len() <= limit {
            return false;
        }
        let mut seen = HashSet::new();
        let mut waiting = vec![paths];
        while let Some(paths) = waiting.pop() {
            if paths.0 > 1 && seen.insert(paths.0) {
                let node = self.at(paths);
                waiting.extend([node.no, node.yes]);
            }
            if seen.len() > limit {
                return true;
            }
        }
        false
    }

    /// The smallest superset of paths without relations between facts: each fact holds on all paths, on none, or is unknown.
    pub fn unrelated(&mut self, paths: Paths) -> Paths {
        let facts = self.common(paths, &mut HashMap::new());
        match paths {
            Paths::NONE => paths,
            _ => self.cube(&facts),
        }
    }

    /// The facts that hold on all paths of a set (`true`), and the facts that hold on none (`false`).
    fn common(
        &self,
        paths: Paths,
        known: &mut HashMap<Paths, BTreeMap<u32, bool>>,
    ) -> BTreeMap<u32, bool> {
        if paths == Paths::ALL || paths == Paths::NONE {
            return BTreeMap::new();
        }
        if let Some(facts) = known.get(&paths) {
            return facts.clone();
        }
        let node = self.at(paths);
        let facts = match (node.no, node.yes) {
            (Paths::NONE, rest) | (rest, Paths::NONE) => {
                let mut facts = self.common(rest, known);
                facts.insert(node.fact, rest == node.yes);
                facts
            }
            (no, yes) => {
                let mut facts = self.common(no, known);
                let others = self.common(yes, known);
                facts.retain(|fact, holds| others.get(fact) == Some(holds));
                facts
            }
        };
        known.insert(paths, facts.clone());
        facts
    }
}
