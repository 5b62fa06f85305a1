//! Titan's objective: places a training's workers so that they take the fewest idle hosts, then the fewest hosts. A host has a
//! number of slots, and in each step of the training a limited number of pairs of workers may communicate between two racks.
//!
//! Our reading: Titan plans for circuits between racks, configured for each step t: Σ x_n^s x_n'^s' C^t_n,n' ≤ P_s,s'. x_n^s
//! says whether worker n is in rack s; C is a [`Pattern`] here, P a list of [`RackLimit`]s. The greedy method is the paper's,
//! run twice: first it adds hosts to the busy ones, then it chooses again among all these, each time the host with which the
//! most workers fit. While workers are alike, as with a parameter server, the number of workers that fit on a set of hosts is a
//! monotone submodular function of the set, and k greedy hosts fit at least 1 − 1/e of the workers of any k hosts. If a pattern
//! distinguishes workers, there is no guarantee. `exact` is the program itself.

mod conflict;
mod crossing;
mod exact;
mod greedy;
mod problem;
mod refusal;

pub use problem::{End, HostId, Machine, Pattern, RackId, RackLimit, WorkerProblem};
pub use refusal::{WorkerConflict, WorkerRefusal};

use crate::solve::SolveError;

/// Maximum number of variables of an integer program that is solved exactly.
const MOST: usize = 4_000;

/// Hosts found for all workers of a training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedWorkers {
    /// For each worker, its host: an index into [`WorkerProblem::machines`].
    pub at: Vec<HostId>,
    /// Number of idle hosts that the workers take.
    pub idle: usize,
    /// Number of hosts that the workers take.
    pub hosts: usize,
    /// Whether the number of idle hosts, and then of hosts, is proved to be the least possible.
    pub proven: bool,
}

impl PlacedWorkers {
    fn new(problem: &WorkerProblem, at: Vec<HostId>, proven: bool) -> PlacedWorkers {
        let mut hosts = at.clone();
        hosts.sort_unstable();
        hosts.dedup();
        let is_idle = |host: &&HostId| !problem.machines[**host].busy;
        PlacedWorkers {
            idle: hosts.iter().filter(is_idle).count(),
            hosts: hosts.len(),
            at,
            proven,
        }
    }

    /// Quantity to minimize: the number of idle hosts taken, then the number of all hosts taken.
    fn cost(&self) -> (usize, usize) {
        (self.idle, self.hosts)
    }

    /// Each host that is taken and its number of workers, in the order of hosts.
    #[must_use]
    pub fn hosts(&self) -> Vec<(HostId, usize)> {
        let mut hosts: Vec<(HostId, usize)> = Vec::new();
        let mut at = self.at.clone();
        at.sort_unstable();
        for host in at {
            match hosts.last_mut() {
                Some((last, count)) if *last == host => *count += 1,
                _ => hosts.push((host, 1)),
            }
        }
        hosts
    }
}

/// Places workers at hosts: by the greedy method, and by the integer program if it is small.
///
/// # Errors
///
/// [`WorkerRefusal`], with the smallest set of constraints found that contradict each other.
pub fn place(problem: &WorkerProblem) -> Result<PlacedWorkers, WorkerRefusal> {
    refusal::check(problem)?;
    let greedy = greedy::place(problem);
    if let Some(placed) = &greedy
        && placed.cost() == problem.at_least()
    {
        let at = placed.at.clone();
        return Ok(PlacedWorkers::new(problem, at, true));
    }
    if exact::variables(problem) > MOST {
        return greedy.ok_or(WorkerRefusal::NotFound);
    }
    match (exact::place(problem, greedy.as_ref()), greedy) {
        // The hosts are equally good, but the greedy method's are in fewer racks.
        (Ok(exact), Some(placed)) if placed.cost() <= exact.cost() => Ok(PlacedWorkers {
            proven: exact.proven,
            ..placed
        }),
        (Ok(exact), _) => Ok(exact),
        (Err(SolveError::Infeasible), None) => Err(conflict::explain(problem)),
        (Err(_), Some(placed)) => Ok(placed),
        (Err(_), None) => Err(WorkerRefusal::NotFound),
    }
}

/// Places workers by the greedy method only; `None` if it fails, which is no proof that there is no placement.
///
/// # Errors
///
/// [`WorkerRefusal`] if the problem is invalid.
pub fn greedy(problem: &WorkerProblem) -> Result<Option<PlacedWorkers>, WorkerRefusal> {
    refusal::check(problem)?;
    Ok(greedy::place(problem))
}

/// Number of workers that fit on the first hosts that the greedy method takes: on no host, on one, and so on.
///
/// # Errors
///
/// [`WorkerRefusal`] if the problem is invalid.
pub fn greedy_room(problem: &WorkerProblem) -> Result<Vec<usize>, WorkerRefusal> {
    refusal::check(problem)?;
    Ok(greedy::room(problem))
}
