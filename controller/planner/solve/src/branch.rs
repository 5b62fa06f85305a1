//! Nodes of a branch and bound, in which order they are taken, and by what they are split.

use super::propagate::WHOLE;
use super::simplex::Basis;
use std::cmp::Ordering;
use std::rc::Rc;

/// A part of the program that is still to be looked at.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Bounds of the integer columns, in their order.
    pub lower: Vec<f64>,
    pub upper: Vec<f64>,
    pub bound: f64,
    pub depth: usize,
    /// What it was branched by: which integer column, upwards or not, from which fraction.
    pub by: Option<(usize, bool, f64)>,
    /// Where its parent's relaxation ended.
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
    /// The greatest is taken first: the least bound, then the deepest, then the oldest.
    fn cmp(&self, other: &Node) -> Ordering {
        other
            .bound
            .total_cmp(&self.bound)
            .then(self.depth.cmp(&other.depth))
            .then(other.serial.cmp(&self.serial))
    }
}

/// How a node is split.
#[derive(Debug)]
pub(super) struct Split {
    /// The place of the integer column.
    pub at: usize,
    /// The greatest value of the lower half.
    pub below: f64,
    /// How far above that the relaxation was.
    pub fraction: f64,
    /// Which half is looked at first.
    pub goes_up: bool,
    /// What both halves cost at least.
    pub bound: f64,
    pub basis: Option<Rc<Basis>>,
}

/// What branching on a column did to the bound, a unit of its fraction, down and up.
#[derive(Debug, Clone, Copy, Default)]
struct PseudoCost {
    sum: [f64; 2],
    count: [u32; 2],
}

/// The same of all integer columns.
#[derive(Debug)]
pub(super) struct PseudoCosts {
    columns: Vec<PseudoCost>,
}

impl PseudoCosts {
    /// Of columns of which nothing is known.
    pub fn of(columns: usize) -> PseudoCosts {
        PseudoCosts {
            columns: vec![PseudoCost::default(); columns],
        }
    }

    /// Learns from what branching came to.
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

    /// The column to branch on, by the product of what both ways are expected to gain.
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
