//! Integer programs: branch and bound over checked relaxations.
//!
//! Nodes are taken by their bound, the best first; from each the search dives along one child until it is cut off. Where a
//! variable was branched on before, what that did to the bound says how to branch (pseudo-costs); else how far it is from a
//! whole number. What every node is cut off by is proved: bounds by [`super::check`], the rest by intervals.

use super::check;
use super::heuristic;
use super::model::{Answer, Model, SolveError, Unsolved};
use super::program::{Bounds, Program};
use super::propagate::{self, Cutoff};
use super::relax::{Point, Relaxed, Relaxer, magnitude};
use super::simplex::Basis;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// Integer variables, of models that are solved.
pub const MAX_INTEGERS: usize = 20_000;

/// What is nearer to a whole number counts as one.
pub(super) const WHOLE: f64 = 1e-6;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Nodes of the search, at most. The same limit gives the same answer on every machine, which a limit of time does not.
    pub nodes: usize,
    /// The share of the objective that may lie between it and its bound for the answer to count as proven.
    pub gap: f64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            nodes: 10_000,
            gap: super::GAP,
        }
    }
}

/// Solves a model with whole numbers where it wants them.
///
/// `start` are values, by [`Var::index`](super::Var::index), to begin from. Values of whole variables are taken; the others
/// are found anew where they do not fit. A start that leads to no answer is no error.
pub fn milp(model: &Model, limits: &Limits, start: Option<&[f64]>) -> Result<Answer, SolveError> {
    let program = Program::of(model)?;
    solve(&program, limits, start)
}

/// The same for a program.
pub(super) fn solve(
    program: &Program,
    limits: &Limits,
    start: Option<&[f64]>,
) -> Result<Answer, SolveError> {
    let integers = program.integer.iter().filter(|is| **is).count();
    if integers > MAX_INTEGERS {
        return Err(SolveError::TooLarge(
            integers,
            "integer variables",
            MAX_INTEGERS,
        ));
    }
    let Some(mut search) = Search::of(program, limits) else {
        return Err(SolveError::Infeasible);
    };
    if let Some(start) = start {
        search.begin_from(start);
    }
    search.run()?;
    search.answer()
}

/// A part of the program that is still to be looked at.
#[derive(Debug, Clone)]
struct Node {
    /// Bounds of the integer columns, in their order.
    lower: Vec<f64>,
    upper: Vec<f64>,
    bound: f64,
    depth: usize,
    /// What it was branched by: which integer column, upwards or not, from which fraction.
    by: Option<(usize, bool, f64)>,
    /// Where its parent's relaxation ended.
    basis: Option<Rc<Basis>>,
    serial: usize,
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

/// What branching on a column did to the bound, a unit of its fraction, down and up.
#[derive(Debug, Clone, Copy, Default)]
struct PseudoCost {
    sum: [f64; 2],
    count: [u32; 2],
}

struct Search<'a> {
    program: &'a Program,
    relaxer: Relaxer<'a>,
    limits: &'a Limits,
    /// The columns that are whole.
    integers: Vec<usize>,
    /// What holds everywhere.
    bounds: Bounds,
    implied: Bounds,
    /// All values of the cost are multiples of it, if it is not 0.
    step: f64,
    best: Option<(Vec<f64>, f64)>,
    open: BinaryHeap<Node>,
    /// What everything that is not looked at any more costs at least.
    floor: f64,
    costs: Vec<PseudoCost>,
    nodes: usize,
    serial: usize,
}

impl<'a> Search<'a> {
    /// None if there is nothing within bounds and rows.
    fn of(program: &'a Program, limits: &'a Limits) -> Option<Search<'a>> {
        let integers: Vec<usize> = (0..program.width())
            .filter(|j| program.integer[*j])
            .collect();
        let mut implied = program.bounds.clone();
        propagate::tighten(program, &mut implied, &program.integer, None).ok()?;
        let mut bounds = program.bounds.clone();
        for &j in &integers {
            bounds.lower[j] = implied.lower[j];
            bounds.upper[j] = implied.upper[j];
        }
        let costs = vec![PseudoCost::default(); integers.len()];
        let at = |bounds: &[f64]| integers.iter().map(|j| bounds[*j]).collect();
        let root = Node {
            lower: at(&bounds.lower),
            upper: at(&bounds.upper),
            bound: f64::NEG_INFINITY,
            depth: 0,
            by: None,
            basis: None,
            serial: 0,
        };
        Some(Search {
            program,
            relaxer: Relaxer::of(program, &implied),
            limits,
            step: step(program),
            integers,
            bounds,
            implied,
            best: None,
            open: BinaryHeap::from([root]),
            floor: f64::INFINITY,
            costs,
            nodes: 0,
            serial: 0,
        })
    }

    fn run(&mut self) -> Result<(), SolveError> {
        while let Some(node) = self.open.pop() {
            let mut next = Some(node);
            while let Some(node) = next.take() {
                if node.bound >= self.target() {
                    self.drop_node(node.bound);
                    continue;
                }
                if self.nodes >= self.limits.nodes.max(1) {
                    self.open.push(node);
                    return Ok(());
                }
                self.nodes += 1;
                next = self.visit(node)?;
            }
        }
        Ok(())
    }

    /// What is not cheaper than this is not looked for.
    fn target(&self) -> f64 {
        let Some((x, value)) = &self.best else {
            return f64::INFINITY;
        };
        // Below what a double tells apart, nothing is bettered.
        let least = 1e-9 * magnitude(self.program, x);
        let target = value - (self.limits.gap * value.abs()).max(least);
        match self.step > 0.0 {
            true => target.min(value - self.step * 0.999),
            false => target,
        }
    }

    /// Leaves a node, all of which costs at least `bound`.
    fn drop_node(&mut self, bound: f64) {
        self.floor = self.floor.min(bound);
    }

    fn visit(&mut self, node: Node) -> Result<Option<Node>, SolveError> {
        let Some((bounds, implied)) = self.narrowed(&node) else {
            // Nothing within, or nothing cheaper than the target.
            self.drop_node(self.target());
            return Ok(None);
        };
        let mut point = match self.relaxer.relax(&bounds, &implied, node.basis.as_deref()) {
            Relaxed::Solved(point) => point,
            Relaxed::Infeasible(_) => {
                self.drop_node(self.target());
                return Ok(None);
            }
            Relaxed::Unbounded if node.depth == 0 => return Err(self.endless()),
            Relaxed::Unbounded | Relaxed::Failed => {
                return Ok(self.split_blindly(node, &bounds));
            }
        };
        point.bound = self.lifted(point.bound).max(node.bound);
        self.learn(&node, point.bound);
        if node.depth == 0 {
            self.seek(&bounds, &implied, &point);
        }
        let fractional = self.fractional(&point.x, &bounds);
        if fractional.is_empty() {
            self.accept(&point.x, &bounds, &implied, point.basis.as_deref());
        } else if node.depth > 0 && self.nodes.is_multiple_of(16) {
            self.seek(&bounds, &implied, &point);
        }
        if point.bound >= self.target() {
            self.drop_node(point.bound);
            return Ok(None);
        }
        let (mut bounds, mut implied) = (bounds, implied);
        self.fix_by_reduced_costs(&point, &mut bounds, &mut implied);
        Ok(self.branch(node, &bounds, &point, &fractional))
    }

    /// Bounds of a node, made tighter; none if nothing cheaper than the target is within.
    fn narrowed(&self, node: &Node) -> Option<(Bounds, Bounds)> {
        let mut bounds = self.bounds.clone();
        let mut implied = self.implied.clone();
        for (at, &j) in self.integers.iter().enumerate() {
            implied.lower[j] = node.lower[at];
            implied.upper[j] = node.upper[at];
        }
        let cutoff = self.best.as_ref().map(|_| Cutoff {
            cost: &self.program.cost,
            most: self.target(),
        });
        let whole = &self.program.integer;
        propagate::tighten(self.program, &mut implied, whole, cutoff.as_ref()).ok()?;
        for &j in &self.integers {
            bounds.lower[j] = implied.lower[j];
            bounds.upper[j] = implied.upper[j];
        }
        Some((bounds, implied))
    }

    /// A bound raised to the next value that the cost can take.
    fn lifted(&self, bound: f64) -> f64 {
        match self.step > 0.0 && bound.is_finite() {
            true => (bound / self.step).ceil() * self.step,
            false => bound,
        }
    }

    fn learn(&mut self, node: &Node, bound: f64) {
        let Some((at, up, fraction)) = node.by else {
            return;
        };
        let gain = bound - node.bound;
        let way = if up { 1.0 - fraction } else { fraction };
        if gain.is_finite() && way > WHOLE {
            let cost = &mut self.costs[at];
            cost.sum[usize::from(up)] += gain.max(0.0) / way;
            cost.count[usize::from(up)] += 1;
        }
    }

    /// The integer columns whose values are not whole: their places, and the values.
    fn fractional(&self, x: &[f64], bounds: &Bounds) -> Vec<(usize, f64)> {
        let all = self.integers.iter().enumerate();
        all.filter(|(_, j)| !bounds.is_fixed(**j))
            .map(|(at, j)| (at, x[*j]))
            .filter(|(_, x)| (x - x.round()).abs() > WHOLE)
            .collect()
    }

    /// Looks for values near those of a relaxation.
    fn seek(&mut self, bounds: &Bounds, implied: &Bounds, point: &Point) {
        let target = self.target();
        let found = heuristic::round(
            &mut self.relaxer,
            &self.integers,
            bounds,
            implied,
            &point.x,
            point.basis.as_deref(),
            target,
        );
        self.take(found);
        let target = self.target();
        let found = heuristic::dive(
            &mut self.relaxer,
            &self.integers,
            bounds,
            implied,
            &point.x,
            point.basis.as_deref(),
            target,
        );
        self.take(found);
    }

    /// Makes values whose integers are nearly whole whole, and takes them.
    fn accept(&mut self, x: &[f64], bounds: &Bounds, implied: &Bounds, basis: Option<&Basis>) {
        let found =
            heuristic::complete(&mut self.relaxer, &self.integers, bounds, implied, x, basis);
        self.take(found);
    }

    fn begin_from(&mut self, start: &[f64]) {
        if start.len() == self.program.width() && start.iter().all(|x| x.is_finite()) {
            let (bounds, implied) = (self.bounds.clone(), self.implied.clone());
            self.accept(start, &bounds, &implied, None);
        }
    }

    fn take(&mut self, found: Option<(Vec<f64>, f64)>) {
        if let Some((x, value)) = found
            && self.best.as_ref().is_none_or(|(_, best)| value < *best)
        {
            self.best = Some((x, value));
        }
    }

    /// Where moving a variable from its bound costs more than there is to the target, it stays.
    fn fix_by_reduced_costs(&self, point: &Point, bounds: &mut Bounds, implied: &mut Bounds) {
        let left =
            self.target() - check::bound(self.program, implied, &self.program.cost, &point.y);
        if !left.is_finite() {
            return;
        }
        for &j in &self.integers {
            if bounds.is_fixed(j) {
                continue;
            }
            let unit = check::reduced_cost(self.program, &self.program.cost, &point.y, j);
            if unit.least > 0.0 {
                let most = (bounds.lower[j] + left / unit.least + WHOLE).floor();
                bounds.upper[j] = bounds.upper[j].min(most.max(bounds.lower[j]));
            } else if unit.greatest < 0.0 {
                let least = (bounds.upper[j] + left / unit.greatest - WHOLE).ceil();
                bounds.lower[j] = bounds.lower[j].max(least.min(bounds.upper[j]));
            }
            implied.lower[j] = bounds.lower[j];
            implied.upper[j] = bounds.upper[j];
        }
    }

    /// Splits a node; the child to go on with.
    fn branch(
        &mut self,
        node: Node,
        bounds: &Bounds,
        point: &Point,
        fractional: &[(usize, f64)],
    ) -> Option<Node> {
        let by = self.choose(fractional).or_else(|| {
            // All are whole but for what was forgiven: the one that was forgiven most.
            let all = self.integers.iter().enumerate();
            let free = all.filter(|(_, j)| !bounds.is_fixed(**j));
            let off = |x: f64| (x - x.round()).abs();
            free.map(|(at, j)| (at, point.x[*j]))
                .max_by(|a, b| off(a.1).total_cmp(&off(b.1)).then(b.0.cmp(&a.0)))
        });
        let Some((at, value)) = by else {
            self.drop_node(point.bound);
            return None;
        };
        let j = self.integers[at];
        let mut below = value.floor();
        if below >= bounds.upper[j] {
            below = bounds.upper[j] - 1.0;
        }
        let fraction = (value - below).clamp(0.0, 1.0);
        let goes_up = match self.best.as_ref() {
            // Towards the best that is known: that is where a better one tends to be.
            Some((best, _)) if fraction > 0.2 && fraction < 0.8 => best[j] > below + 0.5,
            _ => fraction > 0.5,
        };
        self.split(
            node,
            bounds,
            at,
            below,
            fraction,
            goes_up,
            point.bound,
            point.basis.clone(),
        )
    }

    /// Splits a node of which nothing is known at the widest integer column.
    fn split_blindly(&mut self, node: Node, bounds: &Bounds) -> Option<Node> {
        let all = self.integers.iter().enumerate();
        let width = |j: usize| bounds.upper[j] - bounds.lower[j];
        let widest = all
            .filter(|(_, j)| width(**j) >= 1.0)
            .max_by(|a, b| width(*a.1).total_cmp(&width(*b.1)).then(b.0.cmp(&a.0)));
        let Some((at, &j)) = widest else {
            self.drop_node(node.bound);
            return None;
        };
        let (lower, upper) = (bounds.lower[j], bounds.upper[j]);
        let below = match (lower.is_finite(), upper.is_finite()) {
            (true, true) => (lower + (upper - lower) / 2.0).floor().min(upper - 1.0),
            (true, false) => lower + 1.0,
            (false, true) => upper - 1.0,
            (false, false) => 0.0,
        };
        let (bound, basis) = (node.bound, node.basis.clone());
        self.split(node, bounds, at, below, 0.5, true, bound, basis)
    }

    #[allow(clippy::too_many_arguments)]
    fn split(
        &mut self,
        node: Node,
        bounds: &Bounds,
        at: usize,
        below: f64,
        fraction: f64,
        goes_up: bool,
        bound: f64,
        basis: Option<Rc<Basis>>,
    ) -> Option<Node> {
        let ends = |ends: &[f64]| -> Vec<f64> { self.integers.iter().map(|j| ends[*j]).collect() };
        let mut down = Node {
            lower: ends(&bounds.lower),
            upper: ends(&bounds.upper),
            bound,
            depth: node.depth + 1,
            by: Some((at, false, fraction)),
            basis,
            serial: self.serial + 1,
        };
        let mut up = down.clone();
        self.serial += 2;
        up.serial = self.serial;
        down.upper[at] = below;
        up.lower[at] = below + 1.0;
        up.by = Some((at, true, fraction));
        let (first, second) = if goes_up { (up, down) } else { (down, up) };
        self.open.push(second);
        Some(first)
    }

    /// The column to branch on, by the product of what both ways are expected to gain.
    fn choose(&self, fractional: &[(usize, f64)]) -> Option<(usize, f64)> {
        let known = |way: usize| {
            let (sum, count) = self.costs.iter().fold((0.0, 0), |(sum, count), cost| {
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
                let cost = self.costs[at];
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

    /// The relaxation has no end: then, if there is any answer, there is none that is best.
    fn endless(&self) -> SolveError {
        let mut any = self.program.clone();
        any.cost.fill(0.0);
        match solve(&any, self.limits, None) {
            Ok(_) => SolveError::Unbounded,
            Err(error) => error,
        }
    }

    fn answer(self) -> Result<Answer, SolveError> {
        let open = self.open.iter().map(|node| node.bound);
        let bound = open.fold(self.floor, f64::min);
        let Some((values, value)) = self.best else {
            return Err(match bound == f64::INFINITY {
                true => SolveError::Infeasible,
                false if self.open.is_empty() => SolveError::Unsolved(Unsolved::Numbers),
                false => SolveError::Unsolved(Unsolved::Nodes),
            });
        };
        let lifted = match self.step > 0.0 && bound.is_finite() {
            true => (bound / self.step).ceil() * self.step,
            false => bound,
        };
        let bound = lifted.min(value);
        let least = 1e-9 * magnitude(self.program, &values);
        let allowed = (self.limits.gap * value.abs()).max(least);
        Ok(Answer {
            proven: value - bound <= allowed * (1.0 + 1e-9),
            objective: self.program.sign * value,
            bound: self.program.sign * bound,
            values,
            nodes: self.nodes,
        })
    }
}

/// What all values of the cost are multiples of, if all that costs is whole and costs whole numbers; else 0.
fn step(program: &Program) -> f64 {
    let mut step = 0_u64;
    for (j, cost) in program.cost.iter().enumerate() {
        if *cost == 0.0 {
            continue;
        }
        if !program.integer[j] || cost.fract() != 0.0 || cost.abs() > 1e9 {
            return 0.0;
        }
        step = divisor(step, cost.abs() as u64);
    }
    step as f64
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
