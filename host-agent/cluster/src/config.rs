//! Configuration of a run.

use crate::Node;
use crate::network::{Faults, Rate};
use aggregation::job::{ChunkId, Job, JobConfig, JobError, JobId, WorkerId};
use aggregation::rto::Retransmission;
use aggregation::server::{Mode, Part, PartsError};

/// A node that stops forever, without notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    /// The node.
    pub node: Node,
    /// Time of its death.
    pub at_ns: u64,
}

/// A change of the parts: first for the switches, then for the server, then for each worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replan {
    /// Time at which the switches receive the new plan.
    pub at_ns: u64,
    /// Time until the server receives it, counted from the switches.
    pub server_after_ns: u64,
    /// The new parts, with job numbers that were not used before.
    pub parts: Vec<Part>,
    /// Maximum time until each worker receives it, counted from the server.
    pub told_within_ns: u64,
}

/// Reason why a configuration is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The job's settings are invalid.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The division into parts is invalid.
    #[error(transparent)]
    Parts(#[from] PartsError),
}

/// Configuration of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Seed of every random decision.
    pub seed: u64,
    /// The job.
    pub job: JobConfig,
    /// Whether a switch or the server sums.
    pub mode: Mode,
    /// Parts of the job, each summed by a switch for the server; needs [`Mode::Switch`].
    pub parts: Vec<Part>,
    /// Number of rounds, after which the job is closed.
    pub rounds: u64,
    /// Timeouts of workers and server.
    pub retransmission: Retransmission,
    /// Delay of a link without faults, in each direction.
    pub delay_ns: u64,
    /// Rate of each link in each direction; `None` for unlimited.
    pub rate: Option<Rate>,
    /// Whether workers ignore congestion signals.
    pub fixed_window: bool,
    /// Maximum time that a worker computes before each round.
    pub compute_ns: u64,
    /// Faults of every link without an entry in `links`.
    pub faults: Faults,
    /// Faults of single nodes' links, in both directions.
    pub links: Vec<(Node, Faults)>,
    /// The nodes that die.
    pub deaths: Vec<Death>,
    /// Changes of the parts, in ascending order of time.
    pub replans: Vec<Replan>,
}

impl Config {
    /// A small job on a network without faults, with timeouts that fit its delays.
    pub fn new(seed: u64, workers: u16, mode: Mode) -> Self {
        Self {
            seed,
            job: JobConfig {
                job: JobId(7),
                workers,
                window: 4,
                values_per_packet: 4,
                values_per_round: 40,
                first_chunk: ChunkId(0),
            },
            mode,
            parts: Vec::new(),
            rounds: 2,
            retransmission: Retransmission {
                floor_ns: 200_000,
                initial_ns: 500_000,
                ceiling_ns: 3_200_000,
                max_timeouts: 100,
                max_closing_timeouts: 8,
                fast_threshold: 8,
                ..Retransmission::default()
            },
            delay_ns: 10_000,
            rate: None,
            fixed_window: false,
            compute_ns: 50_000,
            faults: Faults::NONE,
            links: Vec::new(),
            deaths: Vec::new(),
            replans: Vec::new(),
        }
    }

    /// The validated job.
    pub fn checked_job(&self) -> Result<Job, JobError> {
        Job::under_one_switch(self.job)
    }

    /// The part that sums a worker's values, and the worker's number in it.
    pub(super) fn part_of(&self, rank: WorkerId) -> Option<(JobId, WorkerId)> {
        place(&self.parts, rank)
    }

    /// Faults of a node's links.
    pub(super) fn faults_of(&self, node: Node) -> Faults {
        let own = self.links.iter().find(|(of, _)| *of == node);
        own.map_or(self.faults, |(_, faults)| *faults)
    }

    /// Time of the last death.
    pub fn last_death_ns(&self) -> Option<u64> {
        self.deaths.iter().map(|death| death.at_ns).max()
    }

    /// Time after a death by which the last survivor has given up. If the dead node had contributed twice to a slot ahead of
    /// a survivor, that survivor exhausts two chunks' timeouts, and the third chunk never completes. With a congestion
    /// window, a chunk that has timed out also waits behind others in the same state.
    pub fn mourning_ns(&self) -> u64 {
        let turns = if self.fixed_window { 1 } else { 2 };
        3 * turns * (self.retransmission.patience_ns() + self.faults.reorder_ns) + self.compute_ns
    }

    /// Time after which a run counts as hung: each chunk of each round has had all its timeouts, one after another.
    pub fn deadline_ns(&self) -> u64 {
        let chunks = self
            .job
            .values_per_round
            .div_ceil(usize::from(self.job.values_per_packet.max(1)));
        let numbers = (self.rounds + 1) * (chunks as u64 + u64::from(self.job.window) + 4);
        numbers
            .saturating_mul(self.retransmission.patience_ns() + self.faults.reorder_ns)
            .saturating_add(self.rounds * self.compute_ns)
    }
}

/// The part that a worker is in, and its number there.
pub(super) fn place(parts: &[Part], rank: WorkerId) -> Option<(JobId, WorkerId)> {
    parts.iter().find_map(|part| {
        let child = part.workers.iter().position(|worker| *worker == rank)?;
        Some((part.number, WorkerId(child as u16)))
    })
}
