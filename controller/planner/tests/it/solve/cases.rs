//! Programs generated from a seed.

use planner::solve::{Cmp, Model, Sense};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// A program as written.
#[derive(Clone)]
pub struct Case {
    pub sense: Sense,
    pub variables: Vec<Variable>,
    pub rows: Vec<Written>,
}

/// A variable.
#[derive(Clone)]
pub struct Variable {
    pub lower: f64,
    pub upper: f64,
    pub objective: f64,
    pub is_integer: bool,
}

/// A row: terms, comparison, right-hand side.
pub type Written = (Vec<(usize, f64)>, Cmp, f64);

/// Kind of a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Arbitrary rows, fractional variables.
    Dense,
    /// Few terms per row, and some variables without bounds.
    Open,
    /// Many more rows meet at the optimal vertex than are needed.
    Degenerate,
    /// Units of variables, and of rows, that differ by up to 1e9.
    BadlyScaled,
    /// Rates of gradients: links, switches, a common rate.
    Rates,
    /// No point meets all rows.
    Infeasible,
    /// Several knapsacks.
    Knapsack,
    /// Facility location: which facilities are open, and which customers they serve.
    Facilities,
    /// Facility location with capacities, in large units.
    CapacitatedFacilities,
    /// Assignment, one to one.
    Assignment,
    /// Cover of each element by at least one set.
    SetCover,
    /// Integer and fractional variables with arbitrary rows.
    Mixed,
    /// As `Mixed`, often infeasible.
    TightMixed,
    /// Rates of gradients where each worker uses one switch or the server, in units of all sizes.
    Choices,
    /// Facility location with 60 possible facilities, each near some of 90 customers.
    Large,
}

impl Kind {
    pub const ALL: [Kind; 15] = [
        Kind::Dense,
        Kind::Open,
        Kind::Degenerate,
        Kind::BadlyScaled,
        Kind::Rates,
        Kind::Infeasible,
        Kind::Knapsack,
        Kind::Facilities,
        Kind::CapacitatedFacilities,
        Kind::Assignment,
        Kind::SetCover,
        Kind::Mixed,
        Kind::TightMixed,
        Kind::Choices,
        Kind::Large,
    ];
}

/// Random numbers from a seed.
struct Dice(ChaCha12Rng);

impl Dice {
    /// Number below `n`.
    fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n as u64) as usize
    }

    /// Whole number between two, both included.
    fn whole(&mut self, least: i64, greatest: i64) -> f64 {
        let span = (greatest - least + 1) as usize;
        (least + self.below(span) as i64) as f64
    }

    fn share(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, least: f64, greatest: f64) -> f64 {
        least + (greatest - least) * self.share()
    }

    fn chance(&mut self, share: f64) -> bool {
        self.share() < share
    }

    /// Power of 2 with a whole exponent between two.
    fn power(&mut self, least: i64, greatest: i64) -> f64 {
        self.whole(least, greatest).exp2()
    }

    /// Power of 10 with an exponent between two.
    fn scale(&mut self, least: f64, greatest: f64) -> f64 {
        10_f64.powf(self.between(least, greatest))
    }
}

impl Case {
    /// A program without variables.
    pub fn empty(sense: Sense) -> Case {
        Case {
            sense,
            variables: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub fn add(&mut self, lower: f64, upper: f64, objective: f64, is_integer: bool) -> usize {
        self.variables.push(Variable {
            lower,
            upper,
            objective,
            is_integer,
        });
        self.variables.len() - 1
    }

    pub fn row(&mut self, terms: Vec<(usize, f64)>, cmp: Cmp, rhs: f64) {
        self.rows.push((terms, cmp, rhs));
    }

    pub fn model(&self) -> Model {
        let mut model = Model::new(self.sense);
        let mut vars = Vec::new();
        for v in &self.variables {
            vars.push(match v.is_integer {
                true => model.integer(v.lower, v.upper, v.objective),
                false => model.variable(v.lower, v.upper, v.objective),
            });
        }
        for (terms, cmp, rhs) in &self.rows {
            model.constrain(terms.iter().map(|(j, a)| (vars[*j], *a)), *cmp, *rhs);
        }
        model
    }

    pub fn with_rows(&self, keep: impl Fn(usize) -> bool) -> Case {
        let rows = self.rows.iter().enumerate();
        let rows = rows.filter(|(i, _)| keep(*i));
        Case {
            sense: self.sense,
            variables: self.variables.clone(),
            rows: rows.map(|(_, row)| row.clone()).collect(),
        }
    }

    pub fn objective(&self, x: &[f64]) -> f64 {
        self.variables
            .iter()
            .zip(x)
            .map(|(v, x)| v.objective * x)
            .sum()
    }

    /// Violation of the worst row, relative to its magnitude.
    pub fn missed(&self, x: &[f64]) -> f64 {
        let mut worst = 0.0_f64;
        for (terms, cmp, rhs) in &self.rows {
            let sum: f64 = terms.iter().map(|(j, a)| a * x[*j]).sum();
            let ends = |j: usize| {
                let v = &self.variables[j];
                let finite =
                    [v.lower, v.upper].map(|end| if end.is_finite() { end.abs() } else { 0.0 });
                finite[0].max(finite[1]).max(x[j].abs())
            };
            let most = terms
                .iter()
                .map(|(j, a)| a.abs() * ends(*j))
                .fold(rhs.abs(), f64::max);
            let missed = match cmp {
                Cmp::Le => sum - rhs,
                Cmp::Ge => rhs - sum,
                Cmp::Eq => (sum - rhs).abs(),
            };
            worst = worst.max(if missed > 0.0 { missed / most } else { 0.0 });
        }
        worst
    }

    /// Binary variables with rows of small whole numbers.
    pub fn with_binaries(n: usize, seed: u64, maximize: bool) -> Case {
        let dice = &mut Dice(ChaCha12Rng::seed_from_u64(seed));
        let mut case = Case::empty(if maximize {
            Sense::Maximize
        } else {
            Sense::Minimize
        });
        for _ in 0..n {
            let objective = dice.whole(-9, 9);
            case.add(0.0, 1.0, objective, true);
        }
        for _ in 0..1 + dice.below(5) {
            let mut terms = Vec::new();
            for j in 0..n {
                if dice.chance(0.6) {
                    terms.push((j, dice.whole(-6, 9)));
                }
            }
            let cmp = [Cmp::Le, Cmp::Le, Cmp::Ge, Cmp::Ge, Cmp::Eq][dice.below(5)];
            let rhs = dice.whole(-4, 12);
            case.row(terms, cmp, rhs);
        }
        case
    }

    /// The program of a seed before its units are changed, for solvers that do not scale.
    pub fn plain(kind: Kind, seed: u64) -> Case {
        let dice = &mut dice(kind, seed);
        match kind {
            Kind::BadlyScaled => any_rows(dice, 0.0, 0.5, true),
            Kind::CapacitatedFacilities => facilities(dice, true),
            Kind::Choices => choices(dice),
            _ => Case::new(kind, seed),
        }
    }

    pub fn new(kind: Kind, seed: u64) -> Case {
        let dice = &mut Dice(ChaCha12Rng::seed_from_u64(
            seed.wrapping_mul(64) + kind as u64,
        ));
        match kind {
            Kind::Dense => any_rows(dice, 0.0, 0.6, true),
            Kind::Open => open(dice),
            Kind::Degenerate => degenerate(dice),
            Kind::BadlyScaled => {
                let plain = any_rows(dice, 0.0, 0.5, true);
                scaled(dice, &plain)
            }
            Kind::Rates => rates(dice),
            Kind::Infeasible => infeasible(dice),
            Kind::Knapsack => knapsack(dice),
            Kind::Facilities => facilities(dice, false),
            Kind::CapacitatedFacilities => {
                let plain = facilities(dice, true);
                scaled(dice, &plain)
            }
            Kind::Assignment => assignment(dice),
            Kind::SetCover => set_cover(dice),
            Kind::Mixed => any_rows(dice, 0.5, 0.4, true),
            Kind::TightMixed => any_rows(dice, 0.7, 0.4, false),
            Kind::Choices => {
                let plain = choices(dice);
                scaled(dice, &plain)
            }
            Kind::Large => large(dice),
        }
    }
}

/// Rows through or near a point; if not `is_feasible`, near it only.
fn any_rows(dice: &mut Dice, integers: f64, density: f64, is_feasible: bool) -> Case {
    let sense = [Sense::Minimize, Sense::Maximize][dice.below(2)];
    let mut case = Case::empty(sense);
    let n = 2 + dice.below(25);
    let mut point = Vec::new();
    for _ in 0..n {
        let lower = dice.whole(-5, 5);
        let upper = lower + dice.whole(0, 9);
        let is_integer = dice.chance(integers);
        let objective = dice.between(-10.0, 10.0);
        case.add(lower, upper, objective, is_integer);
        let x = dice.between(lower, upper);
        point.push(if is_integer { x.round() } else { x });
    }
    for _ in 0..1 + dice.below(20) {
        let mut terms = Vec::new();
        for j in 0..n {
            if dice.chance(density) {
                terms.push((j, (dice.between(-10.0, 10.0) * 8.0).round() / 8.0));
            }
        }
        let sum: f64 = terms.iter().map(|(j, a)| a * point[*j]).sum();
        let room = match is_feasible {
            true => dice.between(0.0, 5.0),
            false => dice.between(-6.0, 3.0),
        };
        match dice.below(if is_feasible { 5 } else { 2 }) {
            0 | 2 => case.row(terms, Cmp::Le, sum + room),
            1 | 3 => case.row(terms, Cmp::Ge, sum - room),
            _ => case.row(terms, Cmp::Eq, sum),
        }
    }
    case
}

/// A diet problem: positive rows, no upper bounds; sometimes a free variable that rows bound.
fn open(dice: &mut Dice) -> Case {
    let mut case = Case::empty(Sense::Minimize);
    let n = 3 + dice.below(20);
    for _ in 0..n {
        let objective = dice.between(0.0, 10.0).floor();
        case.add(0.0, f64::INFINITY, objective, false);
    }
    for _ in 0..2 + dice.below(15) {
        let mut terms = Vec::new();
        for j in 0..n {
            if dice.chance(0.4) {
                terms.push((j, dice.between(0.5, 9.0)));
            }
        }
        if !terms.is_empty() {
            let rhs = dice.between(1.0, 50.0);
            case.row(terms, Cmp::Ge, rhs);
        }
    }
    if dice.chance(0.5) {
        let free = case.add(f64::NEG_INFINITY, f64::INFINITY, 1.0, false);
        for j in 0..n {
            case.row(vec![(free, 1.0), (j, -1.0)], Cmp::Ge, 0.0);
        }
    }
    case
}

/// A transport problem: supplies equal demands, and all costs are nearly equal.
fn degenerate(dice: &mut Dice) -> Case {
    let mut case = Case::empty(Sense::Minimize);
    let n = 2 + dice.below(5);
    let alike = dice.chance(0.5);
    for _ in 0..n * n {
        let objective = if alike { 1.0 } else { dice.whole(1, 3) };
        case.add(0.0, f64::INFINITY, objective, false);
    }
    for i in 0..n {
        case.row((0..n).map(|j| (i * n + j, 1.0)).collect(), Cmp::Eq, 5.0);
        case.row((0..n).map(|j| (j * n + i, 1.0)).collect(), Cmp::Eq, 5.0);
        case.row((0..n).map(|j| (j * n + i, 2.0)).collect(), Cmp::Le, 10.0);
    }
    case
}

/// Scales each fractional variable and each row by its own factor: powers of two, which cause no rounding.
fn scaled(dice: &mut Dice, plain: &Case) -> Case {
    let mut case = plain.clone();
    let mut unit = vec![1.0; case.variables.len()];
    for (v, unit) in case.variables.iter_mut().zip(&mut unit) {
        if !v.is_integer {
            *unit = dice.power(0, 30);
            v.lower *= *unit;
            v.upper *= *unit;
            v.objective /= *unit;
        }
    }
    for (terms, _, rhs) in &mut case.rows {
        let scale = dice.power(-10, 20);
        for (j, a) in terms.iter_mut() {
            *a *= scale / unit[*j];
        }
        *rhs *= scale;
    }
    case
}

fn dice(kind: Kind, seed: u64) -> Dice {
    Dice(ChaCha12Rng::seed_from_u64(
        seed.wrapping_mul(64) + kind as u64,
    ))
}

/// Workers choose shares of switches and links; the least rate is maximized.
fn rates(dice: &mut Dice) -> Case {
    let mut case = Case::empty(Sense::Maximize);
    let (workers, switches) = (2 + dice.below(10), 1 + dice.below(5));
    let server = dice.scale(9.0, 11.0).round();
    let common = case.add(0.0, f64::INFINITY, 1.0, false);
    let sums: Vec<usize> = (0..switches)
        .map(|_| case.add(0.0, server, 0.0, false))
        .collect();
    let mut into: Vec<Vec<(usize, f64)>> = vec![Vec::new(); switches];
    let mut at_server: Vec<(usize, f64)> = sums.iter().map(|y| (*y, 1.0)).collect();
    for _ in 0..workers {
        let mut gives = vec![(common, 1.0)];
        let link = dice.scale(9.0, 10.5).round();
        for s in 0..=switches {
            let rate = case.add(0.0, link, 0.0, false);
            gives.push((rate, -1.0));
            if s == switches {
                at_server.push((rate, 1.0));
            } else {
                into[s].push((rate, 1.0));
                case.row(vec![(rate, 1.0), (sums[s], -1.0)], Cmp::Le, 0.0);
            }
        }
        let link_terms = gives[1..].iter().map(|(rate, _)| (*rate, 1.0)).collect();
        case.row(link_terms, Cmp::Le, link);
        case.row(gives, Cmp::Le, 0.0);
    }
    for terms in into {
        let capacity = dice.scale(9.0, 12.0).round();
        case.row(terms, Cmp::Le, capacity);
    }
    case.row(at_server, Cmp::Le, server);
    case
}

/// Rows that a combination of them refutes, by a margin of at least a hundredth of the point.
fn infeasible(dice: &mut Dice) -> Case {
    let mut case = any_rows(dice, 0.3, 0.5, true);
    let n = case.variables.len();
    let mut sum = vec![0.0; n];
    let mut rhs = 0.0;
    for _ in 0..1 + dice.below(4) {
        let terms: Vec<(usize, f64)> = (0..n).map(|j| (j, dice.whole(-5, 5))).collect();
        let side = dice.whole(-9, 9);
        let weight = dice.whole(1, 3);
        for (j, a) in &terms {
            sum[*j] += weight * a;
        }
        rhs += weight * side;
        case.row(terms, Cmp::Le, side);
    }
    let margin = dice.between(0.5, 4.0);
    case.row(sum.into_iter().enumerate().collect(), Cmp::Ge, rhs + margin);
    case
}

fn knapsack(dice: &mut Dice) -> Case {
    let mut case = Case::empty(Sense::Maximize);
    let n = 5 + dice.below(26);
    for _ in 0..n {
        let worth = dice.whole(1, 60);
        case.add(0.0, 1.0, worth, true);
    }
    for _ in 0..1 + dice.below(3) {
        let terms: Vec<(usize, f64)> = (0..n).map(|j| (j, dice.whole(1, 60))).collect();
        let total: f64 = terms.iter().map(|(_, a)| a).sum();
        case.row(terms, Cmp::Le, (total * 0.4).floor());
    }
    case
}

fn facilities(dice: &mut Dice, has_capacity: bool) -> Case {
    let mut case = Case::empty(Sense::Minimize);
    let (places, customers) = (2 + dice.below(6), 2 + dice.below(10));
    let open: Vec<usize> = (0..places)
        .map(|_| {
            let cost = dice.whole(20, 90);
            case.add(0.0, 1.0, cost, true)
        })
        .collect();
    let mut served = vec![Vec::new(); places];
    for _ in 0..customers {
        let demand = dice.whole(1, 9);
        let mut by = Vec::new();
        for place in 0..places {
            let cost = dice.whole(1, 50);
            let part = case.add(0.0, demand, cost / demand, false);
            by.push((part, 1.0));
            served[place].push((part, 1.0));
            case.row(vec![(part, 1.0), (open[place], -demand)], Cmp::Le, 0.0);
        }
        case.row(by, Cmp::Eq, demand);
    }
    if has_capacity {
        let least = 5.0 * customers as f64 / places as f64 * 2.0;
        for place in 0..places {
            let capacity = (least * dice.between(0.8, 2.0)).ceil();
            let mut terms = served[place].clone();
            terms.push((open[place], -capacity));
            case.row(terms, Cmp::Le, 0.0);
        }
    }
    case
}

fn assignment(dice: &mut Dice) -> Case {
    let mut case = Case::empty(Sense::Minimize);
    let n = 2 + dice.below(7);
    for _ in 0..n * n {
        let cost = dice.whole(1, 20);
        case.add(0.0, 1.0, cost, true);
    }
    for i in 0..n {
        case.row((0..n).map(|j| (i * n + j, 1.0)).collect(), Cmp::Eq, 1.0);
        case.row((0..n).map(|j| (j * n + i, 1.0)).collect(), Cmp::Eq, 1.0);
    }
    case
}

fn set_cover(dice: &mut Dice) -> Case {
    let mut case = Case::empty(Sense::Minimize);
    let (sets, elements) = (8 + dice.below(25), 8 + dice.below(25));
    for _ in 0..sets {
        let cost = dice.whole(1, 9);
        case.add(0.0, 1.0, cost, true);
    }
    for _ in 0..elements {
        let mut terms: Vec<(usize, f64)> = Vec::new();
        for j in 0..sets {
            if dice.chance(0.2) {
                terms.push((j, 1.0));
            }
        }
        if terms.is_empty() {
            terms.push((dice.below(sets), 1.0));
        }
        case.row(terms, Cmp::Ge, 1.0);
    }
    case
}

/// GRID: the least worker's rate is maximized, and each worker is summed at one node.
fn choices(dice: &mut Dice) -> Case {
    let mut case = Case::empty(Sense::Maximize);
    let (workers, switches) = (3 + dice.below(5), 1 + dice.below(3));
    let server = dice.whole(4, 20);
    let common = case.add(0.0, f64::INFINITY, 1.0, false);
    let sums: Vec<usize> = (0..switches)
        .map(|_| case.add(0.0, server, 0.0, false))
        .collect();
    let mut into: Vec<Vec<(usize, f64)>> = vec![Vec::new(); switches];
    let mut at_server: Vec<(usize, f64)> = sums.iter().map(|sum| (*sum, 1.0)).collect();
    for _ in 0..workers {
        let mut gives = vec![(common, 1.0)];
        let mut one = Vec::new();
        for place in 0..=switches {
            let choice = case.add(0.0, 1.0, 0.0, true);
            let rate = case.add(0.0, server, 0.0, false);
            one.push((choice, 1.0));
            gives.push((rate, -1.0));
            case.row(vec![(rate, 1.0), (choice, -server)], Cmp::Le, 0.0);
            if place < switches {
                into[place].push((rate, 1.0));
                case.row(vec![(rate, 1.0), (sums[place], -1.0)], Cmp::Le, 0.0);
            } else {
                at_server.push((rate, 1.0));
            }
        }
        case.row(one, Cmp::Eq, 1.0);
        case.row(gives, Cmp::Le, 0.0);
    }
    for terms in into {
        let capacity = dice.whole(4, 40);
        case.row(terms, Cmp::Le, capacity);
    }
    case.row(at_server, Cmp::Le, server);
    case
}

fn large(dice: &mut Dice) -> Case {
    let mut case = Case::empty(Sense::Minimize);
    let (places, customers, near) = (60, 90, 8);
    let open: Vec<usize> = (0..places)
        .map(|_| {
            let cost = dice.whole(100, 300);
            case.add(0.0, 1.0, cost, true)
        })
        .collect();
    let mut served = vec![Vec::new(); places];
    for customer in 0..customers {
        let mut by = Vec::new();
        for step in 0..near {
            let place = (customer * 7 + step * step * 3 + step) % places;
            if by.iter().any(|(_, other, _)| *other == place) {
                continue;
            }
            let cost = dice.whole(5, 200);
            let part = case.add(0.0, 1.0, cost, false);
            by.push((part, place, 1.0));
            served[place].push((part, 1.0));
            case.row(vec![(part, 1.0), (open[place], -1.0)], Cmp::Le, 0.0);
        }
        let by = by.into_iter().map(|(part, _, one)| (part, one));
        case.row(by.collect(), Cmp::Eq, 1.0);
    }
    for (place, terms) in served.into_iter().enumerate() {
        let mut terms = terms;
        terms.push((open[place], -8.0));
        case.row(terms, Cmp::Le, 0.0);
    }
    case
}
