//! Reveal's integer program: variables for options, for charges (amounts of resources that options share), and for pairs of a
//! user (training) and a point (switch) whose loss may touch the user.

use std::collections::BTreeMap;

use super::problem::{PointId, RobustProblem, UserId};
use super::state::State;
use crate::solve::{Cmp, Limits, Model, Sense, SolveError, Var, lp, milp};

/// Maximum number of nodes of each branch-and-bound search.
const NODES: usize = 2_000;
/// Maximum number of variables of a linear relaxation that is solved.
const RELAXED: usize = 20_000;

/// Result of solving the integer program.
pub(super) struct Exact {
    pub chosen: Vec<usize>,
    pub bound: usize,
    pub proven: bool,
}

/// Number of variables that the integer program of a problem has.
pub(super) fn variables(problem: &RobustProblem) -> usize {
    let options = problem
        .decisions
        .iter()
        .map(|decision| decision.options.len());
    options.sum::<usize>() + pairs(problem).len() + problem.charges.len() + 1
}

/// Minimizes the users (trainings) that the loss of the worst point (switch) touches, then the
/// cost, as far as the limit of nodes allows. `start` has a known option for each decision.
pub(super) fn place(problem: &RobustProblem, start: Option<&[usize]>) -> Result<Exact, SolveError> {
    let mut program = Program::new(problem);
    let limits = Limits {
        nodes: NODES,
        ..Limits::default()
    };
    let values = start.map(|chosen| program.values(problem, chosen));
    let fewest = milp(&program.model, &limits, values.as_deref())?;
    let chosen = program.read(&fewest.values);
    let worst = State::with_chosen(problem, &chosen).worst();
    let bound = (fewest.bound - 1e-6).ceil().max(0.0) as usize;
    program.lessen_cost(problem, worst);
    let cheapest = match milp(&program.model, &limits, Some(&fewest.values)) {
        Ok(answer) => answer,
        // Keep the previous result.
        Err(_) => {
            return Ok(Exact {
                chosen,
                bound,
                proven: false,
            });
        }
    };
    Ok(Exact {
        chosen: program.read(&cheapest.values),
        bound,
        proven: bound >= worst && cheapest.proven,
    })
}

/// Whether all constraints of a problem can hold together; an error if that is unknown.
pub(super) fn is_open(problem: &RobustProblem) -> Result<bool, SolveError> {
    let mut program = Program::new(problem);
    program.model.set_objective(program.worst, 0.0);
    let limits = Limits {
        nodes: NODES,
        ..Limits::default()
    };
    match milp(&program.model, &limits, None) {
        Ok(_) => Ok(true),
        Err(SolveError::Infeasible) => Ok(false),
        Err(error) => Err(error),
    }
}

/// For each decision, the share of each of its options in the linear relaxation; `None` if it is unsolved.
pub(super) fn relaxed(problem: &RobustProblem) -> Option<Vec<Vec<f64>>> {
    if variables(problem) > RELAXED {
        return None;
    }
    let program = Program::new(problem);
    let answer = lp(&program.model).ok()?;
    let of_decision = |options: &Vec<Var>| options.iter().map(|y| answer.value(*y)).collect();
    Some(program.options.iter().map(of_decision).collect())
}

/// Lower bound of the number of users (trainings) that the loss of the worst point (switch) touches.
pub(super) fn bound(problem: &RobustProblem) -> usize {
    if variables(problem) > RELAXED {
        return 0;
    }
    let answer = lp(&Program::new(problem).model);
    answer.map_or(0, |answer| (answer.bound - 1e-6).ceil().max(0.0) as usize)
}

/// Pairs of a user (training) and a point (switch) whose loss touches the user under some option.
fn pairs(problem: &RobustProblem) -> BTreeMap<(UserId, PointId), ()> {
    let mut pairs = BTreeMap::new();
    for decision in &problem.decisions {
        for point in decision.options.iter().flat_map(|option| &option.points) {
            for user in &decision.users {
                pairs.insert((*user, *point), ());
            }
        }
    }
    pairs
}

struct Program {
    model: Model,
    options: Vec<Vec<Var>>,
    touches: BTreeMap<(UserId, PointId), Var>,
    charges: Vec<Var>,
    worst: Var,
}

impl Program {
    fn new(problem: &RobustProblem) -> Program {
        let mut model = Model::new(Sense::Minimize);
        let most = problem.most_users.unwrap_or(problem.users.len());
        let worst = model.integer(0.0, most as f64, 1.0);
        let options: Vec<Vec<Var>> = (problem.decisions.iter())
            .map(|decision| decision.options.iter().map(|_| model.binary(0.0)).collect())
            .collect();
        let touches: BTreeMap<(UserId, PointId), Var> = (pairs(problem).into_keys())
            .map(|pair| (pair, model.variable(0.0, 1.0, 0.0)))
            .collect();
        let charges: Vec<Var> = (problem.charges.iter())
            .map(|_| model.variable(0.0, 1.0, 0.0))
            .collect();
        let mut loads: Vec<Vec<(Var, f64)>> = vec![Vec::new(); problem.limits.len()];
        for (charge, held) in problem.charges.iter().zip(&charges) {
            for (limit, amount) in &charge.takes {
                loads[*limit].push((*held, *amount));
            }
        }
        for (decision, own) in problem.decisions.iter().zip(&options) {
            let all = own.iter().map(|y| (*y, 1.0));
            model.constrain(all, Cmp::Eq, 1.0);
            let mut by_point: BTreeMap<PointId, Vec<Var>> = BTreeMap::new();
            let mut by_charge: BTreeMap<usize, Vec<Var>> = BTreeMap::new();
            for (option, y) in decision.options.iter().zip(own) {
                // A point may be contained twice in an option; it counts once.
                for point in &option.points {
                    let of = by_point.entry(*point).or_default();
                    if of.last() != Some(y) {
                        of.push(*y);
                    }
                }
                for charge in &option.charges {
                    by_charge.entry(*charge).or_default().push(*y);
                }
                for (limit, amount) in &option.takes {
                    loads[*limit].push((*y, *amount));
                }
            }
            // One option is taken, so the options that need a thing need it at most once in total.
            let mut implies = |ys: Vec<Var>, held: Var| {
                let terms = ys.into_iter().map(|y| (y, 1.0)).chain([(held, -1.0)]);
                model.constrain(terms, Cmp::Le, 0.0);
            };
            for (point, ys) in by_point {
                for user in &decision.users {
                    implies(ys.clone(), touches[&(*user, point)]);
                }
            }
            for (charge, ys) in by_charge {
                implies(ys, charges[charge]);
            }
        }
        for (terms, limit) in loads.into_iter().zip(&problem.limits) {
            let all: f64 = terms.iter().map(|(_, amount)| amount.max(0.0)).sum();
            // A limit that cannot be exceeded would only harm numerical precision.
            if all > limit.most {
                model.constrain(terms, Cmp::Le, limit.most);
            }
        }
        for [(a, of_a), (b, of_b)] in &problem.excluded {
            let terms = [(options[*a][*of_a], 1.0), (options[*b][*of_b], 1.0)];
            model.constrain(terms, Cmp::Le, 1.0);
        }
        let mut of_point: BTreeMap<PointId, Vec<(Var, f64)>> = BTreeMap::new();
        let mut of_user: BTreeMap<UserId, Vec<(Var, f64)>> = BTreeMap::new();
        for ((user, point), touch) in &touches {
            of_point.entry(*point).or_default().push((*touch, 1.0));
            of_user.entry(*user).or_default().push((*touch, 1.0));
        }
        for terms in of_point.into_values() {
            model.constrain(terms.into_iter().chain([(worst, -1.0)]), Cmp::Le, 0.0);
        }
        if let Some(most) = problem.most_points {
            for terms in of_user.into_values() {
                model.constrain(terms, Cmp::Le, most as f64);
            }
        }
        Program {
            model,
            options,
            touches,
            charges,
            worst,
        }
    }

    /// Changes the program's objective to the cost, with at most `worst` users (trainings) at any point (switch).
    fn lessen_cost(&mut self, problem: &RobustProblem, worst: usize) {
        self.model.bound(self.worst, 0.0, worst as f64);
        self.model.set_objective(self.worst, 0.0);
        for (decision, own) in problem.decisions.iter().zip(&self.options) {
            for (option, y) in decision.options.iter().zip(own) {
                self.model.set_objective(*y, option.cost);
            }
        }
    }

    fn read(&self, values: &[f64]) -> Vec<usize> {
        let of_decision = |options: &Vec<Var>| {
            let is_taken = |y: &Var| values[y.index()] > 0.5;
            options.iter().position(is_taken).unwrap_or(0)
        };
        self.options.iter().map(of_decision).collect()
    }

    fn values(&self, problem: &RobustProblem, chosen: &[usize]) -> Vec<f64> {
        let state = State::with_chosen(problem, chosen);
        let mut values = vec![0.0; self.model.variables()];
        values[self.worst.index()] = state.worst() as f64;
        for (own, option) in self.options.iter().zip(chosen) {
            values[own[*option].index()] = 1.0;
        }
        for (point, users) in state.touched().into_iter().enumerate() {
            for user in users {
                if let Some(touch) = self.touches.get(&(user, point)) {
                    values[touch.index()] = 1.0;
                }
            }
        }
        for (decision, option) in problem.decisions.iter().zip(chosen) {
            for charge in &decision.options[*option].charges {
                values[self.charges[*charge].index()] = 1.0;
            }
        }
        values
    }
}
