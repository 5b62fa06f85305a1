//! Finds the constraints that contradict each other in a problem without a placement: the deletion filter (Chinneck and
//! Dravnieks, *Locating Minimal Infeasible Constraint Sets in Linear Programs*, ORSA J. Computing 3, 1991), in groups as in
//! delta debugging (Zeller and Hildebrandt 2002).
//!
//! A constraint stays removed if the rest still has no placement. Once each single constraint was tried, the rest is a minimal
//! set: without any of its members it has no contradiction.

use super::blocks::{Blocks, Held};
use super::bound::{Levels, LoadMeasure, Prices};
use super::candidates::Candidates;
use super::domains::Domains;
use super::placing::Placing;
use super::problem::Problem;
use super::refusal::{Conflict, Refusal};
use super::search::{Known, Wanted, search};

/// Maximum number of tests whether there is a placement.
const MAX_QUESTIONS: usize = 3_000;
/// Maximum number of options that a search examines for one test.
const WORK: usize = 2_000_000;
/// If a lower bound of how much of some limit is used exceeds this, there is certainly no placement.
pub(super) const SURELY: f64 = 1.0 + 1e-6;

/// Whether a placement exists under the active constraints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Yes,
    No,
    Unknown,
}

/// Finds the contradicting constraints of a problem that has no placement.
pub(super) fn explain(problem: &Problem, candidates: &[Candidates]) -> Refusal {
    let mut filter = Filter {
        problem,
        candidates,
        held: Held::all(problem),
        questions: MAX_QUESTIONS,
        least: true,
    };
    // First remove choices: a problem with few choices is quick to test.
    filter.thin(|held| &mut held.choices, |_, _| true);
    let is_near = near(problem, candidates, &filter.held);
    filter.thin(|held| &mut held.limits, |_, row| is_near[row]);
    let has = |held: &Held, (a, b): (usize, usize)| held.choices[a] && held.choices[b];
    filter.thin(
        |held| &mut held.orders,
        |held, pair| has(held, problem.orders[pair]),
    );
    filter.thin(
        |held| &mut held.clashes,
        |held, pair| has(held, problem.clashes[pair]),
    );
    filter.thin(
        |held| &mut held.ties,
        |held, tie| {
            let members = problem.ties[tie].iter();
            members.filter(|choice| held.choices[**choice]).count() > 1
        },
    );
    filter.thin(
        |held| &mut held.pins,
        |held, choice| held.choices[choice] && problem.choices[choice].pin.is_some(),
    );
    Refusal::from_conflict(filter.conflict())
}

/// For each switch and resource, whether an active choice can be placed at the switch.
fn near(problem: &Problem, candidates: &[Candidates], held: &Held) -> Vec<bool> {
    let resources = problem.resources.len();
    let mut near = vec![false; held.limits.len()];
    let of = candidates.iter().zip(&held.choices);
    let sets = of.filter(|(_, held)| **held).flat_map(|(of, _)| &of.sets);
    for switch in sets.flatten() {
        near[switch * resources..(switch + 1) * resources].fill(true);
    }
    near
}

struct Filter<'p> {
    problem: &'p Problem,
    candidates: &'p [Candidates],
    held: Held,
    questions: usize,
    least: bool,
}

impl Filter<'_> {
    /// Deactivates constraints of one kind, the last first, in ever smaller groups. Those that cannot matter go without a test.
    fn thin(
        &mut self,
        of: impl Fn(&mut Held) -> &mut Vec<bool>,
        matters: impl Fn(&Held, usize) -> bool,
    ) {
        let all: Vec<usize> = (0..of(&mut self.held).len()).collect();
        let before = self.held.clone();
        for &one in &all {
            of(&mut self.held)[one] = matters(&before, one);
        }
        let mut group = all.len().next_power_of_two();
        while group > 0 {
            let left: Vec<usize> = all
                .iter()
                .copied()
                .filter(|one| of(&mut self.held)[*one])
                .collect();
            for some in left.rchunks(group) {
                for one in some {
                    of(&mut self.held)[*one] = false;
                }
                let answer = self.ask();
                if answer != Answer::No {
                    for one in some {
                        of(&mut self.held)[*one] = true;
                    }
                    self.least &= group > 1 || answer == Answer::Yes;
                }
            }
            group /= 2;
        }
    }

    /// Tests whether the active constraints allow a placement.
    fn ask(&mut self) -> Answer {
        let Some(left) = self.questions.checked_sub(1) else {
            return Answer::Unknown;
        };
        self.questions = left;
        let blocks = Blocks::new(self.problem, self.candidates, &self.held);
        let none = match blocks.cut {
            true => Answer::Unknown,
            false => Answer::No,
        };
        let Some(domains) = Domains::consistent(&blocks) else {
            return none;
        };
        let blocks = domains.remaining(&blocks);
        let domains = Domains::new(&blocks);
        // Test the bound first: without a placement, the heuristic would run up to its limit.
        let limits = Prices::find(&blocks, LoadMeasure::Limits);
        if limits.bound > SURELY {
            return none;
        }
        if Placing::place(&blocks, &domains, 0).is_some() {
            return Answer::Yes;
        }
        let levels = Levels::new(&blocks);
        let known = Known {
            prices: &limits,
            limits: &limits,
            levels: &levels,
        };
        let steps = (WORK / blocks.size().max(1)) as u64;
        let found = search(&blocks, &domains, known, Wanted::Any, steps);
        match (found.chosen, found.complete) {
            (Some(_), _) => Answer::Yes,
            (None, true) => none,
            (None, false) => Answer::Unknown,
        }
    }

    fn conflict(self) -> Conflict {
        let Filter { problem, held, .. } = self;
        let numbers = |held: &[bool]| -> Vec<usize> {
            let held = held.iter().enumerate();
            held.filter(|(_, held)| **held).map(|(n, _)| n).collect()
        };
        let resources = problem.resources.len();
        let rows = numbers(&held.limits).into_iter();
        let active = |tie: &Vec<usize>| -> Vec<usize> {
            let members = tie.iter().filter(|choice| held.choices[**choice]);
            members.copied().collect()
        };
        Conflict {
            choices: numbers(&held.choices),
            pins: numbers(&held.pins),
            limits: rows.map(|row| (row / resources, row % resources)).collect(),
            orders: numbers(&held.orders)
                .into_iter()
                .map(|n| problem.orders[n])
                .collect(),
            clashes: numbers(&held.clashes)
                .into_iter()
                .map(|n| problem.clashes[n])
                .collect(),
            ties: numbers(&held.ties)
                .into_iter()
                .map(|n| active(&problem.ties[n]))
                .collect(),
            least: self.least,
        }
    }
}
