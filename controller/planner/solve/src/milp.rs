//! Integer programs: branch and bound over checked relaxations.
//!
//! Nodes are taken by their bound, the best first; from each the search dives along one child until it is cut off. Where a
//! variable was branched on before, what that did to the bound says how to branch (pseudo-costs); else how far it is from a
//! whole number. What every node is cut off by is proved: bounds by [`super::check`], the rest by intervals.

use super::branch::{Node, PseudoCosts, Split};
use super::check;
use super::heuristic;
use super::model::{Answer, Model, SolveError, Unsolved};
use super::program::{Bounds, Program};
use super::propagate::{self, Cutoff, WHOLE};
use super::relax::{Point, Relaxed, Relaxer, magnitude};
use super::simplex::Basis;
use std::collections::BinaryHeap;

/// Integer variables, of models that are solved.
pub const MAX_INTEGERS: usize = 20_000;

/// Bounds that nodes hold which are still to be looked at, at most: 256 MiB of them.
const MAX_HELD: usize = 32 << 20;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Nodes of the search, at most: fewer where so many would hold too much memory. The same limit gives the same answer on
    /// every machine, which a limit of time does not.
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
    costs: PseudoCosts,
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
        let costs = PseudoCosts::of(integers.len());
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
            relaxer: Relaxer::often(program, &implied),
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
                let held = self.open.len().saturating_mul(2 * self.integers.len());
                if self.nodes >= self.limits.nodes.max(1) || held > MAX_HELD {
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
            // The next value below, if this is none that the cost takes at best; and a little above it for rounding.
            true => target.min(((value / self.step - WHOLE).ceil() - 0.999) * self.step),
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
        self.costs.learn(&node, point.bound);
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

    /// Splits a node where it gains most; the child to go on with.
    fn branch(
        &mut self,
        node: Node,
        bounds: &Bounds,
        point: &Point,
        fractional: &[(usize, f64)],
    ) -> Option<Node> {
        let by = self.costs.choose(fractional).or_else(|| {
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
        let by = Split {
            at,
            below,
            fraction,
            goes_up,
            bound: point.bound,
            basis: point.basis.clone(),
        };
        self.split(node, bounds, by)
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
        let by = Split {
            at,
            below,
            fraction: 0.5,
            goes_up: true,
            bound: node.bound,
            basis: node.basis.clone(),
        };
        self.split(node, bounds, by)
    }

    /// Splits a node; the child to go on with.
    fn split(&mut self, node: Node, bounds: &Bounds, by: Split) -> Option<Node> {
        let ends = |ends: &[f64]| self.integers.iter().map(|j| ends[*j]).collect();
        let mut down = Node {
            lower: ends(&bounds.lower),
            upper: ends(&bounds.upper),
            bound: by.bound,
            depth: node.depth + 1,
            by: Some((by.at, false, by.fraction)),
            basis: by.basis,
            serial: self.serial + 1,
        };
        let mut up = down.clone();
        self.serial += 2;
        up.serial = self.serial;
        up.by = Some((by.at, true, by.fraction));
        down.upper[by.at] = by.below;
        up.lower[by.at] = by.below + 1.0;
        let (first, second) = if by.goes_up { (up, down) } else { (down, up) };
        self.open.push(second);
        Some(first)
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

/// What all values of the cost that need be looked at are multiples of, if all that costs is whole and costs whole numbers;
/// else 0.
fn step(program: &Program) -> f64 {
    let mut step = 0_u64;
    for (j, cost) in program.cost.iter().enumerate() {
        if *cost == 0.0 {
            continue;
        }
        let is_whole = program.integer[j] || is_whole_at_best(program, j);
        if !is_whole || cost.fract() != 0.0 || cost.abs() > 1e9 {
            return 0.0;
        }
        step = divisor(step, cost.abs() as u64);
    }
    step as f64
}

/// Whether a fractional variable is at a whole number whenever the others are and it costs the least: every end that it has
/// is whole, those that rows make with whole variables alone included.
fn is_whole_at_best(program: &Program, column: usize) -> bool {
    let is_whole = |value: f64| value.is_infinite() || value.fract() == 0.0;
    let bounds = &program.bounds;
    is_whole(bounds.lower[column])
        && is_whole(bounds.upper[column])
        && program.columns.line(column).all(|(row, own)| {
            let is_own = own.abs() == 1.0;
            let mut others = program.rows.line(row).filter(|(j, _)| *j != column);
            is_own
                && is_whole(program.low[row])
                && is_whole(program.high[row])
                && others.all(|(j, value)| program.integer[j] && is_whole(value))
        })
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
