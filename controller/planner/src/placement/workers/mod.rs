//! Titan's objective: of all ways to place a training's workers, one that takes the fewest idle hosts, and of these one that
//! takes the fewest hosts. A host has so many slots; in each step of the training only so many pairs of its workers may talk
//! between two racks.
//!
//! Our reading. Titan plans for circuits between racks, configured anew for each step t: Σ x_n^s x_n'^s' C^t_n,n' ≤ P_s,s'. C
//! is a [`Pattern`] here, P a list of [`Limit`]s. The greedy is the paper's, twice: first hosts are added to those that run
//! something already, then hosts are chosen anew among all these, each time the one that makes room for most workers. While
//! workers are alike, as before a parameter server, the workers that a set of hosts has room for are a monotone submodular
//! function of the set, and k greedy hosts have room for 1 − 1/e of what any k have; where a pattern tells workers apart they
//! are not, and nothing is promised. `exact` is the program itself.

mod conflict;
mod crossing;
mod exact;
mod greedy;
mod problem;
mod refusal;

pub use problem::{End, HostId, Limit, Machine, Pattern, Problem, RackId};
pub use refusal::{Conflict, Refusal};

use crate::solve::SolveError;

/// Variables of programs that are solved.
const MOST: usize = 4_000;

/// Where workers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// By worker: a place in [`Problem::machines`].
    pub at: Vec<HostId>,
    /// Hosts that were idle and are no more.
    pub idle: usize,
    /// Hosts that are taken.
    pub hosts: usize,
    /// Whether no placement takes fewer idle hosts, nor as few and fewer hosts.
    pub proven: bool,
}

impl Placed {
    fn of(problem: &Problem, at: Vec<HostId>, proven: bool) -> Placed {
        let mut hosts = at.clone();
        hosts.sort_unstable();
        hosts.dedup();
        let is_idle = |host: &&HostId| !problem.machines[**host].busy;
        Placed {
            idle: hosts.iter().filter(is_idle).count(),
            hosts: hosts.len(),
            at,
            proven,
        }
    }

    /// What is lessened.
    fn cost(&self) -> (usize, usize) {
        (self.idle, self.hosts)
    }

    /// Each host that is taken with how many workers it has, in the order of hosts.
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

/// Places workers: greedily, and where the program is small by it.
///
/// # Errors
///
/// [`Refusal`], with the smallest set of constraints found that contradict each other.
pub fn place(problem: &Problem) -> Result<Placed, Refusal> {
    problem.check()?;
    let greedy = greedy::place(problem);
    if let Some(placed) = &greedy
        && placed.cost() == problem.at_least()
    {
        let at = placed.at.clone();
        return Ok(Placed::of(problem, at, true));
    }
    if exact::variables(problem) > MOST {
        return greedy.ok_or(Refusal::NotFound);
    }
    match (exact::place(problem, greedy.as_ref()), greedy) {
        // Hosts of equal worth: those that the greedy took stand in fewer racks.
        (Ok(exact), Some(placed)) if placed.cost() <= exact.cost() => Ok(Placed {
            proven: exact.proven,
            ..placed
        }),
        (Ok(exact), _) => Ok(exact),
        (Err(SolveError::Infeasible), None) => Err(conflict::explain(problem)),
        (Err(_), Some(placed)) => Ok(placed),
        (Err(_), None) => Err(Refusal::NotFound),
    }
}

/// Places workers by the greedy alone; `None` if it finds no room for them, which there may be all the same.
///
/// # Errors
///
/// [`Refusal`] of a problem that makes no sense.
pub fn greedy(problem: &Problem) -> Result<Option<Placed>, Refusal> {
    problem.check()?;
    Ok(greedy::place(problem))
}

/// How many workers the first hosts that the greedy takes have room for: after none, after one, and so on.
///
/// # Errors
///
/// [`Refusal`] of a problem that makes no sense.
pub fn greedy_room(problem: &Problem) -> Result<Vec<usize>, Refusal> {
    problem.check()?;
    Ok(greedy::room(problem))
}
