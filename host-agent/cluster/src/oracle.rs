//! Checks the outcome of a simulated training: computes all sums anew, with arithmetic that does not use the protocol's code.

use std::fmt;

use crate::{Config, Report, ServerEnd, WorkerEnd};
use aggregation::job::WorkerId;
use aggregation::worker::WorkerError;

/// A violation of the aggregation protocol's guarantees in a simulated training.
#[derive(Debug, Clone, PartialEq)]
pub enum Violation {
    /// A worker completed a round with a value that is not the sum of all workers' values.
    WrongSum {
        /// Rank of the worker.
        worker: WorkerId,
        /// The round, counted from 0.
        round: usize,
        /// Index of the first wrong value in the round, from 0.
        index: usize,
        /// The correct sum for this value.
        expected: i32,
        /// The value that the worker received instead.
        got: i32,
    },
    /// This worker finished without having completed all its rounds.
    RoundsMissing(WorkerId),
    /// This worker was still waiting at the end of the run.
    WorkerHung(WorkerId),
    /// The server was still waiting at the end of the run.
    ServerHung,
    /// This worker gave up with this error, although no node died.
    NeedlessFailure(WorkerId, WorkerError),
    /// The server gave up, although no node died; the value says how it ended.
    NeedlessServerFailure(ServerEnd),
    /// This worker gave up with this error before or after the configured number of timeouts.
    Timeouts(WorkerId, WorkerError),
    /// This worker gave up at this time (in nanoseconds), later than its configured timeouts can last.
    Late(WorkerId, u64),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Correct sums of one round, from the values of every worker. The arithmetic is independent of the protocol's code: exponents
/// found by doubling, rounding of the standard library, and sums of 64-bit integers.
pub fn sums(inputs: &[Vec<f32>], values_per_packet: usize) -> Vec<i32> {
    let limit = (i64::from(i32::MAX) / inputs.len() as i64) as f64;
    let length = inputs.first().map_or(0, Vec::len);
    let mut sums = Vec::with_capacity(length);
    for from in (0..length).step_by(values_per_packet.max(1)) {
        let block = from..(from + values_per_packet).min(length);
        let largest = inputs
            .iter()
            .flat_map(|input| &input[block.clone()])
            .fold(0f64, |max, value| max.max(f64::from(*value).abs()));
        let mut bound = 2f64.powi(-126);
        while bound < largest {
            bound *= 2.0;
        }
        for index in block {
            let quantised = inputs
                .iter()
                .map(|input| (f64::from(input[index]) * limit / bound).round_ties_even() as i64);
            sums.push(i32::try_from(quantised.sum::<i64>()).expect("no sum can wrap"));
        }
    }
    sums
}

/// Returns all violations of the protocol in a simulated training, in which [`answer_with_sums`](super::answer_with_sums) was
/// the server's answer.
pub fn check(
    config: &Config,
    inputs: impl Fn(u64, WorkerId) -> Vec<f32>,
    report: &Report,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let expected: Vec<Vec<i32>> = (0..config.rounds)
        .map(|round| {
            let of_round: Vec<_> = (0..config.job.workers)
                .map(|rank| inputs(round, WorkerId(rank)))
                .collect();
            sums(&of_round, usize::from(config.job.values_per_packet))
        })
        .collect();
    let limit_ns = config
        .last_death_ns()
        .map(|death| death + config.mourning_ns());

    for worker in &report.workers {
        let rank = worker.rank;
        for (round, got) in worker.rounds.iter().enumerate() {
            let wrong = (got.iter().zip(&expected[round]).enumerate())
                .find(|(_, (got, expected))| **got as i32 != **expected);
            if let Some((index, (got, expected))) = wrong {
                let (expected, got) = (*expected, *got as i32);
                violations.push(Violation::WrongSum {
                    worker: rank,
                    round,
                    index,
                    expected,
                    got,
                });
            }
        }
        match worker.end {
            WorkerEnd::Finished if worker.rounds.len() as u64 != config.rounds => {
                violations.push(Violation::RoundsMissing(rank));
            }
            WorkerEnd::Finished | WorkerEnd::Died => {}
            WorkerEnd::Hung => violations.push(Violation::WorkerHung(rank)),
            WorkerEnd::Failed(error) => {
                if report.deaths == 0 {
                    violations.push(Violation::NeedlessFailure(rank, error));
                }
                let stated = config.retransmission.max_timeouts;
                if !matches!(error, WorkerError::Unanswered { timeouts, .. } if timeouts == stated)
                {
                    violations.push(Violation::Timeouts(rank, error));
                }
                if let Some(limit_ns) = limit_ns.filter(|limit_ns| worker.ended_ns > *limit_ns) {
                    violations.push(Violation::Late(rank, worker.ended_ns - limit_ns));
                }
            }
        }
    }
    match report.server.end {
        ServerEnd::Hung => violations.push(Violation::ServerHung),
        ServerEnd::Failed(_) if report.deaths == 0 => {
            violations.push(Violation::NeedlessServerFailure(report.server.end));
        }
        _ => {}
    }
    violations
}
