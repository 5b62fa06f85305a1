//! Titan's integer program. If workers are alike, its variables are the numbers of workers per host; otherwise each worker has
//! a variable for each host, and each pair that may communicate between limited racks has a variable that is 1 if it does.

use std::collections::BTreeMap;

use super::PlacedWorkers;
use super::problem::{End, HostId, RackId, WorkerProblem};
use crate::solve::{Cmp, Limits, Model, Sense, SolveError, Var, milp};

/// Maximum number of nodes of the branch-and-bound search.
const NODES: usize = 2_000;

/// Number of variables that the integer program of a problem has.
pub(super) fn variables(problem: &WorkerProblem) -> usize {
    let machines = problem.machines.len();
    if problem.are_alike() {
        return 2 * machines;
    }
    let pairs: usize = problem.pattern.steps.iter().map(Vec::len).sum();
    let workers = problem.workers.saturating_mul(machines);
    let crossing = pairs.saturating_mul(2 * problem.limits.len());
    workers.saturating_add(machines).saturating_add(crossing)
}

/// Best placement of workers, as far as the limit of nodes allows; `start` is a known placement to begin from.
pub(super) fn place(
    problem: &WorkerProblem,
    start: Option<&PlacedWorkers>,
) -> Result<PlacedWorkers, SolveError> {
    let program = Program::new(problem);
    let start = start.map(|placed| program.values(problem, &placed.at));
    let limits = Limits {
        nodes: NODES,
        ..Limits::default()
    };
    let answer = milp(&program.model, &limits, start.as_deref())?;
    let at = program.read(problem, &answer.values);
    Ok(PlacedWorkers::new(problem, at, answer.proven))
}

struct Program {
    model: Model,
    /// For each host, the variable that is 1 if the host is taken.
    used: Vec<Var>,
    counts: Counts,
}

enum Counts {
    /// For alike workers: the variable of each host for its number of workers.
    Alike(Vec<Var>),
    /// For different workers: by worker and host, the variable that is 1 if the worker is at the host.
    Each(Vec<Vec<Var>>),
}

impl Program {
    fn new(problem: &WorkerProblem) -> Program {
        let mut model = Model::new(Sense::Minimize);
        // One idle host saved outweighs all hosts.
        let all = problem.machines.len() as f64 + 1.0;
        let used = problem.machines.iter().map(|machine| {
            let cost = if machine.busy { 1.0 } else { 1.0 + all };
            model.binary(cost)
        });
        let used = used.collect();
        let mut program = Program {
            model,
            used,
            counts: Counts::Alike(Vec::new()),
        };
        match problem.are_alike() {
            true => program.alike(problem),
            false => program.each(problem),
        }
        program
    }

    fn slots(&mut self, problem: &WorkerProblem, host: HostId, mut terms: Vec<(Var, f64)>) {
        let slots = problem.machines[host].slots.min(problem.workers);
        terms.push((self.used[host], -(slots as f64)));
        self.model.constrain(terms, Cmp::Le, 0.0);
    }

    /// Adds the variables and rows for alike workers. Each worker in a rack has a fixed number of pairs with another rack.
    fn alike(&mut self, problem: &WorkerProblem) {
        let workers = problem.workers as f64;
        let counts: Vec<Var> = (problem.machines.iter())
            .map(|_| self.model.integer(0.0, workers, 0.0))
            .collect();
        let all = counts.iter().map(|count| (*count, 1.0));
        self.model.constrain(all, Cmp::Eq, workers);
        for (host, count) in counts.iter().enumerate() {
            self.slots(problem, host, vec![(*count, 1.0)]);
        }
        for (step, number, _) in steps_and_limits(problem) {
            let (a, b) = problem.limits[number].racks;
            let pairs = &problem.pattern.steps[step];
            let pairs_of = |worker: usize, rack: RackId| {
                let own = pairs.iter().filter(|(from, to)| {
                    let ends = [End::Worker(worker), End::Rack(rack)];
                    [*from, *to] == ends || [*to, *from] == ends
                });
                own.count() as f64
            };
            // All workers have equal pairs; pairs between fixed ends do not depend on workers.
            let (with_a, with_b) = (pairs_of(0, a), pairs_of(0, b));
            let given = given(pairs, (a, b));
            let terms = problem.machines.iter().zip(&counts);
            let terms = terms.filter_map(|(machine, count)| match machine.rack {
                rack if rack == a => Some((*count, with_b)),
                rack if rack == b => Some((*count, with_a)),
                _ => None,
            });
            let most = problem.limits[number].pairs as f64 - given as f64;
            self.model.constrain(terms, Cmp::Le, most);
        }
        let mut pinned: BTreeMap<HostId, f64> = BTreeMap::new();
        for host in problem.pinned().into_values() {
            *pinned.entry(host).or_default() += 1.0;
        }
        for (host, least) in pinned {
            self.model
                .constrain(vec![(counts[host], 1.0)], Cmp::Ge, least);
        }
        self.counts = Counts::Alike(counts);
    }

    /// Adds a variable for each worker and host, and for each pair of workers that may communicate between limited racks.
    fn each(&mut self, problem: &WorkerProblem) {
        let by_worker = (0..problem.workers).map(|_| {
            problem
                .machines
                .iter()
                .map(|_| self.model.binary(0.0))
                .collect()
        });
        let at: Vec<Vec<Var>> = by_worker.collect();
        for at in &at {
            let all = at.iter().map(|at| (*at, 1.0));
            self.model.constrain(all, Cmp::Eq, 1.0);
        }
        for host in 0..problem.machines.len() {
            let here = at.iter().map(|at| (at[host], 1.0)).collect();
            self.slots(problem, host, here);
            // Tighter for hosts with many slots: a host is taken if it has any worker.
            for at in &at {
                let terms = [(at[host], 1.0), (self.used[host], -1.0)];
                self.model.constrain(terms, Cmp::Le, 0.0);
            }
        }
        let stands = |end: End, rack: RackId| -> (Vec<(Var, f64)>, f64) {
            match end {
                End::Rack(own) => (Vec::new(), if own == rack { 1.0 } else { 0.0 }),
                End::Worker(worker) => {
                    let machines = problem.machines.iter().zip(&at[worker]);
                    let here = machines.filter(|(machine, _)| machine.rack == rack);
                    (here.map(|(_, at)| (*at, 1.0)).collect(), 0.0)
                }
            }
        };
        for (step, number, (a, b)) in steps_and_limits(problem) {
            let mut crossing = Vec::new();
            for (from, to) in &problem.pattern.steps[step] {
                for (from_rack, to_rack) in [(a, b), (b, a)] {
                    let (mut terms, one) = stands(*from, from_rack);
                    let (others, other) = stands(*to, to_rack);
                    // At least 1 if both ends are in these racks.
                    let crosses = self.model.variable(0.0, 1.0, 0.0);
                    terms.extend(others);
                    terms.push((crosses, -1.0));
                    self.model.constrain(terms, Cmp::Le, 1.0 - one - other);
                    crossing.push((crosses, 1.0));
                }
            }
            let most = problem.limits[number].pairs as f64;
            self.model.constrain(crossing, Cmp::Le, most);
        }
        for (worker, host) in problem.pinned() {
            self.model
                .constrain(vec![(at[worker][host], 1.0)], Cmp::Ge, 1.0);
        }
        self.counts = Counts::Each(at);
    }

    fn read(&self, problem: &WorkerProblem, values: &[f64]) -> Vec<HostId> {
        let value = |var: &Var| values[var.index()].round();
        match &self.counts {
            Counts::Each(at) => {
                let host = |at: &Vec<Var>| at.iter().position(|at| value(at) > 0.5).unwrap_or(0);
                at.iter().map(host).collect()
            }
            Counts::Alike(counts) => {
                let mut left: Vec<usize> =
                    counts.iter().map(|count| value(count) as usize).collect();
                let pinned = problem.pinned();
                for host in pinned.values() {
                    left[*host] -= 1;
                }
                let mut next = 0;
                let workers = (0..problem.workers).map(|worker| {
                    if let Some(host) = pinned.get(&worker) {
                        return *host;
                    }
                    while left[next] == 0 {
                        next += 1;
                    }
                    left[next] -= 1;
                    next
                });
                workers.collect()
            }
        }
    }

    /// Values of the program's variables for a placement; the solver sets those of pairs.
    fn values(&self, problem: &WorkerProblem, at: &[HostId]) -> Vec<f64> {
        let mut values = vec![0.0; self.model.variables()];
        for (worker, host) in at.iter().enumerate() {
            values[self.used[*host].index()] = 1.0;
            match &self.counts {
                Counts::Alike(counts) => values[counts[*host].index()] += 1.0,
                Counts::Each(all) => values[all[worker][*host].index()] = 1.0,
            }
        }
        debug_assert_eq!(at.len(), problem.workers);
        values
    }
}

/// All pairs of a step and a limit, as indices, with the two racks of the limit.
fn steps_and_limits(problem: &WorkerProblem) -> Vec<(usize, usize, (RackId, RackId))> {
    let steps = 0..problem.pattern.steps.len();
    let all = steps.flat_map(|step| {
        let limits = problem.limits.iter().enumerate();
        limits.map(move |(number, limit)| (step, number, limit.racks))
    });
    all.filter(|(_, _, (a, b))| a != b).collect()
}

/// Number of communicating pairs of two servers, one in each of the two racks.
fn given(pairs: &[(End, End)], (a, b): (RackId, RackId)) -> usize {
    let ends = [End::Rack(a), End::Rack(b)];
    let between = |(from, to): &&(End, End)| [*from, *to] == ends || [*to, *from] == ends;
    pairs.iter().filter(between).count()
}
