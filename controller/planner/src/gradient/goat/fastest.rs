//! Asynchronous mode: chooses for how many workers a round waits.
//!
//! Each round sums the gradients of the K fastest workers. Rounds with few workers are short, but
//! more are needed: ψ(K) = 4 K² (F₀ − F*)² / (n (ε K − σ²)²), if ε K > σ² (GOAT, the theorem on
//! convergence). The duration of a round is simulated with arrivals of past rounds.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::gradient::Plan;
use crate::network::generate::random::below;

/// Parameters of a model's convergence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learning {
    /// F₀ − F*: loss above the optimum.
    pub loss: f64,
    /// ε: distance of the loss from the optimum at which the training counts as converged.
    pub epsilon: f64,
    /// σ²: variance of gradients.
    pub variance: f64,
    /// n: a number in the paper's formula for ψ(K), which stands for workers or for samples.
    pub count: f64,
}

impl Learning {
    /// ψ(K): number of rounds that a training with K gradients per round needs; `None` if K gradients are too noisy.
    #[must_use]
    pub fn rounds(&self, fastest: usize) -> Option<f64> {
        let k = fastest as f64;
        let signal = self.epsilon * k - self.variance;
        (signal > 0.0).then(|| {
            let ratio = k * self.loss / signal;
            4.0 * ratio * ratio / self.count
        })
    }
}

/// Delays of links in the simulation of a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Delay of a link, in nanoseconds.
    pub hop_ns: u64,
    /// Time for one gradient on a link, in nanoseconds.
    pub transfer_ns: u64,
}

/// Number of workers to wait for, and the time that training takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaitedWorkers {
    /// K, the number of workers for which each round waits.
    pub fastest: usize,
    /// ψ(K), the number of rounds that the training needs.
    pub rounds: f64,
    /// Mean duration of a round in nanoseconds.
    pub round_ns: f64,
}

impl WaitedWorkers {
    /// Duration of the whole training, in nanoseconds.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.rounds * self.round_ns
    }
}

/// Chooses for how many workers K each round waits, so that all rounds together take the least time; the smallest such K.
/// `arrivals` has, for each past round, the time at which each worker's gradient was ready, by rank, in nanoseconds since the
/// round began. `None` if there are no arrivals, or if training converges for no K.
#[must_use]
pub fn choose(
    plan: &Plan,
    arrivals: &[Vec<u64>],
    learning: &Learning,
    timing: Timing,
    samples: usize,
    seed: u64,
) -> Option<WaitedWorkers> {
    let workers = arrivals.iter().map(Vec::len).min()?;
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    // All K are compared on the same drawn rounds.
    let drawn: Vec<&[u64]> = (0..samples.max(1))
        .map(|_| {
            let place = below(&mut rng, arrivals.len() as u64);
            arrivals[place as usize].as_slice()
        })
        .collect();
    let choices = (1..=workers).filter_map(|fastest| {
        let rounds = learning.rounds(fastest)?;
        let times = drawn.iter();
        let times = times.map(|arrivals| round_ns(plan, arrivals, timing, fastest) as f64);
        Some(WaitedWorkers {
            fastest,
            rounds,
            round_ns: times.sum::<f64>() / drawn.len() as f64,
        })
    });
    choices.min_by(|a, b| a.total_ns().total_cmp(&b.total_ns()))
}

/// Time, in nanoseconds since the round began, at which the server has the sum of the fastest workers' gradients. A switch
/// sends its sum once it has the gradients of all its workers among these; the server receives one stream after the other.
#[must_use]
pub fn round_ns(plan: &Plan, arrivals: &[u64], timing: Timing, fastest: usize) -> u64 {
    let mut order: Vec<usize> = (0..arrivals.len()).collect();
    order.sort_by_key(|rank| (arrivals[*rank], *rank));
    order.truncate(fastest);
    let way = |links: usize| timing.hop_ns * links as u64;
    let takes = |share: f64| libm::ceil(share * timing.transfer_ns as f64) as u64;
    let mut comes: Vec<(u64, u64)> = Vec::new();
    for part in &plan.parts {
        let members = part.members.iter();
        let there = members.filter(|member| order.contains(&member.worker));
        let there = there.map(|member| arrivals[member.worker] + way(member.route.len()));
        let takes = takes(part.share);
        match part.up.is_empty() {
            true => comes.extend(there.map(|at| (at, takes))),
            false => comes.extend(
                there
                    .max()
                    .map(|at| (at + way(part.up.len()) + takes, takes)),
            ),
        }
    }
    comes.sort_unstable();
    comes
        .into_iter()
        .fold(0, |free, (at, takes)| free.max(at) + takes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gradient::{Goal, Member, Part};

    const TIMING: Timing = Timing {
        hop_ns: 0,
        transfer_ns: 10,
    };

    /// Four workers that one switch, or the server, sums.
    fn plan(at_server: bool) -> Plan {
        let arc = crate::network::Arc {
            link: crate::LinkId(0),
            back: false,
        };
        let members = (0..4).map(|worker| Member {
            worker,
            route: vec![arc],
        });
        Plan {
            job: String::new(),
            parts: vec![Part {
                piece: 0,
                share: 1.0,
                server: 0,
                at: crate::NodeId(0),
                members: members.collect(),
                up: if at_server { Vec::new() } else { vec![arc] },
            }],
            answers: Vec::new(),
            rate_bps: 1.0,
            bound_bps: f64::INFINITY,
            goal: Goal::Rate,
            is_optimal: false,
        }
    }

    /// A switch: the third gradient arrives at 30, its sum takes 10 to the server and 10 into it. The server: the arrivals at
    /// 10, 20, 30 take 10 each.
    #[test]
    fn a_round_ends_when_the_server_has_the_sum() {
        let arrivals = [30, 10, 900, 20];
        assert_eq!(round_ns(&plan(false), &arrivals, TIMING, 3), 50);
        assert_eq!(round_ns(&plan(true), &arrivals, TIMING, 3), 40);
        assert_eq!(round_ns(&plan(true), &[0; 4], TIMING, 4), 40);
        assert_eq!(round_ns(&plan(false), &[0; 4], TIMING, 4), 20);
    }

    /// Has loss 1, ε = 1, σ² = 1, n = 4, so ψ(K) = (K / (K − 1))²: none, 4, 9/4, 16/9 for K = 1 to 4.
    fn learning() -> Learning {
        Learning {
            loss: 1.0,
            epsilon: 1.0,
            variance: 1.0,
            count: 4.0,
        }
    }

    #[test]
    fn too_few_never_get_there() {
        let rounds: Vec<_> = (1..=4).map(|k| learning().rounds(k)).collect();
        assert_eq!(rounds, [None, Some(4.0), Some(2.25), Some(16.0 / 9.0)]);
    }

    /// One straggler: K = 3 takes 2.25 · 50 = 112.5, K = 2 4 · 40 = 160, K = 4 16/9 · 920. In step, K = 4 is best: 16/9 · 20.
    #[test]
    fn who_is_late_is_not_waited_for() {
        let late = [vec![30, 10, 900, 20]];
        let choice = choose(&plan(false), &late, &learning(), TIMING, 5, 1).unwrap();
        assert_eq!((choice.fastest, choice.total_ns()), (3, 112.5));
        let in_step = [vec![0; 4]];
        let choice = choose(&plan(false), &in_step, &learning(), TIMING, 5, 1).unwrap();
        assert_eq!(choice.fastest, 4);
    }

    #[test]
    fn the_same_seed_chooses_the_same() {
        let arrivals: Vec<Vec<u64>> = (0..9).map(|round| vec![round, 7 * round, 50, 90]).collect();
        let choose = |seed| choose(&plan(false), &arrivals, &learning(), TIMING, 20, seed);
        assert_eq!(choose(3), choose(3));
    }
}
