//! Integer programs: branch and bound over checked relaxations.
//!
//! The node with the best bound is taken first; from each node the search dives along one child until it is cut off. The
//! branching variable is chosen by earlier gains in the bound (pseudo-costs); without any, by the distance from a whole number.
//! Every cut-off is proved: bounds by [`super::check`], the rest by interval arithmetic.

use super::branch::{Node, PseudoCosts, Split};
use super::check;
use super::heuristic;
use super::model::{Answer, Model, SolveError, Unsolved};
use super::program::{Bounds, Program};
use super::propagate::{self, Cutoff, WHOLE};
use super::relax::{Point, Relaxed, Relaxer, magnitude};
use super::simplex::Basis;
use std::collections::BinaryHeap;

/// Maximum number of integer variables in a model.
pub const MAX_INTEGERS: usize = 20_000;

/// Maximum number of variable bounds in all open nodes together: 256 MiB of memory.
const MAX_HELD: usize = 32 << 20;

/// Limits of a branch-and-bound search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Maximum number of nodes to search; fewer if so many would exceed the memory limit. Equal
    /// limits give equal answers on every machine, unlike a time limit.
    pub nodes: usize,
    /// Relative gap between objective and bound up to which the answer counts as proven.
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

/// Solves a model whose integer variables take whole values.
///
/// `start` are initial values, by [`Var::index`](super::Var::index). Values of integer variables are used as given; other
/// variables are solved for if their values do not fit. A start that leads to no answer is no error.
pub fn milp(model: &Model, limits: &Limits, start: Option<&[f64]>) -> Result<Answer, SolveError> {
    let program = Program::from_model(model)?;
    solve(&program, limits, start)
}

/// Solves a program in standard form, as [`milp`] does a model.
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
    let Some(mut search) = Search::new(program, limits) else {
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
    /// Indices of the integer variables among all variables.
    integers: Vec<usize>,
    /// Bounds of all variables that hold in all nodes.
    bounds: Bounds,
    implied: Bounds,
    /// Number that divides the cost of every solution that the search must consider; 0 if there is none.
    step: f64,
    best: Option<(Vec<f64>, f64)>,
    open: BinaryHeap<Node>,
    /// Least of the cost's lower bounds in all nodes that were dropped.
    floor: f64,
    costs: PseudoCosts,
    nodes: usize,
    serial: usize,
}

impl<'a> Search<'a> {
    /// Prepares the search; `None` if the bounds and rows admit no point.
    fn new(program: &'a Program, limits: &'a Limits) -> Option<Search<'a>> {
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
        let costs = PseudoCosts::new(integers.len());
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

    /// The search looks only for solutions that cost less than this.
    fn target(&self) -> f64 {
        let Some((x, value)) = &self.best else {
            return f64::INFINITY;
        };
        // A double cannot represent smaller improvements.
        let least = 1e-9 * magnitude(self.program, x);
        let target = value - (self.limits.gap * value.abs()).max(least);
        match self.step > 0.0 {
            // The next possible value below, plus a small margin for rounding.
            true => target.min(((value / self.step - WHOLE).ceil() - 0.999) * self.step),
            false => target,
        }
    }

    /// Drops a node in which every solution's cost is at least `bound`.
    fn drop_node(&mut self, bound: f64) {
        self.floor = self.floor.min(bound);
    }

    fn visit(&mut self, node: Node) -> Result<Option<Node>, SolveError> {
        let Some((bounds, implied)) = self.narrowed(&node) else {
            // No feasible point, or none cheaper than the target.
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

    /// Bounds of variables in a node, and tighter ones that rows imply; `None` if no point in it costs less than the target.
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

    /// The given lower bound of the cost, raised to the next value that the cost can take.
    fn lifted(&self, bound: f64) -> f64 {
        match self.step > 0.0 && bound.is_finite() {
            true => (bound / self.step).ceil() * self.step,
            false => bound,
        }
    }

    /// Integer variables with fractional values: index among the integer variables, and value.
    fn fractional(&self, x: &[f64], bounds: &Bounds) -> Vec<(usize, f64)> {
        let all = self.integers.iter().enumerate();
        all.filter(|(_, j)| !bounds.is_fixed(**j))
            .map(|(at, j)| (at, x[*j]))
            .filter(|(_, x)| (x - x.round()).abs() > WHOLE)
            .collect()
    }

    /// Searches for feasible integer values near the values of a relaxation, and records the best.
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

    /// Rounds a relaxation's values whose integers are nearly whole, and records the result if it is feasible.
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

    /// Tightens the bounds of integer variables where, by reduced costs, other values cannot cost less than the target.
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

    /// Splits a node at the variable with the greatest expected gain in the bound; returns the child to continue with.
    fn branch(
        &mut self,
        node: Node,
        bounds: &Bounds,
        point: &Point,
        fractional: &[(usize, f64)],
    ) -> Option<Node> {
        let by = self.costs.choose(fractional).or_else(|| {
            // All integers are whole within the tolerance: take the one that is farthest off.
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
            // Search towards the best known solution: better ones tend to be near it.
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

    /// Splits a node without a solved relaxation at the integer variable of widest range; returns the child to continue with.
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

    /// Splits a node into two children, keeps one of them open, and returns the other to continue with.
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

    /// Error for a model with an unbounded relaxation: if it has any solution, it has no optimal one.
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

/// Number that divides the cost of every solution to consider, if all variables with a cost and their costs are whole; else 0.
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

/// Whether some cheapest solution gives a continuous variable a whole value: all its bounds are whole, including those that
/// rows with integer variables imply.
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
