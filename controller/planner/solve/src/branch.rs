//! Branch and bound: the open nodes of the search, their order, and the choice of the variable to branch on.

use super::propagate::WHOLE;
use super::simplex::Basis;
use std::cmp::Ordering;
use std::rc::Rc;

/// Open subproblem of the branch-and-bound search.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Lower bounds of the integer variables, in their order; `upper` has their upper bounds.
    pub lower: Vec<f64>,
    pub upper: Vec<f64>,
    pub bound: f64,
    pub depth: usize,
    /// The variable's index, whether this is the upper child, and the fraction of its value at the parent; `None` at the root.
    pub by: Option<(usize, bool, f64)>,
    /// Simplex basis at which the parent's relaxation ended, to start from.
    pub basis: Option<Rc<Basis>>,
    pub serial: usize,
}

impl PartialEq for Node {
    fn eq(&self, other: &Node) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Node) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node {
    /// The search takes the greatest node first: the one with the least bound, then the deepest, then the oldest.
    fn cmp(&self, other: &Node) -> Ordering {
        other
            .bound
            .total_cmp(&self.bound)
            .then(self.depth.cmp(&other.depth))
            .then(other.serial.cmp(&self.serial))
    }
}

/// Split of a node into two child nodes, by an integer variable.
#[derive(Debug)]
pub(super) struct Split {
    /// Index of the variable among the integer variables.
    pub at: usize,
    /// Greatest value of the variable in the lower child.
    pub below: f64,
    /// Value of the variable in the relaxation, less `below`.
    pub fraction: f64,
    /// Whether the upper child is searched first.
    pub goes_up: bool,
    /// Lower bound of the cost in both children.
    pub bound: f64,
    pub basis: Option<Rc<Basis>>,
}

/// Observed rises of the cost's lower bound when a variable was branched on, per unit of distance: for lower, then upper
/// children.
#[derive(Debug, Clone, Copy, Default)]
struct PseudoCost {
    sum: [f64; 2],
    count: [u32; 2],
}

/// Pseudo-costs of all integer variables: how much branching on each has raised the cost's lower bound.
#[derive(Debug)]
pub(super) struct PseudoCosts {
    columns: Vec<PseudoCost>,
}

impl PseudoCosts {
    /// Pseudo-costs of `columns` integer variables, without observations.
    pub fn new(columns: usize) -> PseudoCosts {
        PseudoCosts {
            columns: vec![PseudoCost::default(); columns],
        }
    }

    /// Records how much the branching that made a node raised the cost's bound.
    pub fn learn(&mut self, node: &Node, bound: f64) {
        let Some((at, up, fraction)) = node.by else {
            return;
        };
        let gain = bound - node.bound;
        let way = if up { 1.0 - fraction } else { fraction };
        if gain.is_finite() && way > WHOLE {
            let cost = &mut self.columns[at];
            cost.sum[usize::from(up)] += gain.max(0.0) / way;
            cost.count[usize::from(up)] += 1;
        }
    }

    /// Variable to branch on, and its value: the one with the greatest product of the gains expected in both directions.
    pub fn choose(&self, fractional: &[(usize, f64)]) -> Option<(usize, f64)> {
        let known = |way: usize| {
            let (sum, count) = self.columns.iter().fold((0.0, 0), |(sum, count), cost| {
                (sum + cost.sum[way], count + cost.count[way])
            });
            if count > 0 {
                sum / f64::from(count)
            } else {
                1.0
            }
        };
        let usual = [known(0), known(1)];
        let score = |&(at, value): &(usize, f64)| {
            let fraction = value - value.floor();
            let gain = |way: usize, part: f64| {
                let cost = self.columns[at];
                let unit = match cost.count[way] {
                    0 => usual[way],
                    count => cost.sum[way] / f64::from(count),
                };
                (unit * part).max(1e-12 * usual[way].max(f64::MIN_POSITIVE))
            };
            gain(0, fraction) * gain(1, 1.0 - fraction)
        };
        let best = fractional
            .iter()
            .max_by(|a, b| score(a).total_cmp(&score(b)).then(b.0.cmp(&a.0)));
        best.copied()
    }
}
