//! What a run is made of.

use crate::{Node, Rate};
use aggregation::job::{ChunkId, Job, JobConfig, JobError, JobId, WorkerId};
use aggregation::rto::Retransmission;
use aggregation::server::{Mode, Part, PartsError};

/// What a link does to frames, per direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faults {
    /// The share of frames lost.
    pub loss: f64,
    /// The share of frames that arrive twice, each copy with its own delay.
    pub duplicate: f64,
    /// The share of frames held for up to `reorder_ns`.
    pub reorder: f64,
    /// The longest that a frame is held.
    pub reorder_ns: u64,
}

impl Faults {
    /// A network that behaves.
    pub const NONE: Self = Self {
        loss: 0.0,
        duplicate: 0.0,
        reorder: 0.0,
        reorder_ns: 0,
    };
}

/// A node that stops for ever, without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    /// Who.
    pub node: Node,
    /// When.
    pub at_ns: u64,
}

/// Other parts from a time on: switches first, then the server, then each worker when it hears of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replan {
    /// When switches are told.
    pub at_ns: u64,
    /// So long after, the server.
    pub server_after_ns: u64,
    /// With numbers that none had before.
    pub parts: Vec<Part>,
    /// So long after the server at most, each worker.
    pub told_within_ns: u64,
}

/// Why there is no such run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The job.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Its parts.
    #[error(transparent)]
    Parts(#[from] PartsError),
}

/// A run.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Everything random follows from it.
    pub seed: u64,
    /// The job.
    pub job: JobConfig,
    /// Who sums.
    pub mode: Mode,
    /// Parts of the job that a switch each sums for the server; in `mode` [`Mode::Switch`].
    pub parts: Vec<Part>,
    /// Rounds, after which the job is closed.
    pub rounds: u64,
    /// Timeouts of workers and server.
    pub retransmission: Retransmission,
    /// A link's delay without faults, each way.
    pub delay_ns: u64,
    /// What each link carries, each way; `None` for what is sent.
    pub rate: Option<Rate>,
    /// Whether workers take no note of queues.
    pub fixed_window: bool,
    /// A worker computes for up to so long before each round.
    pub compute_ns: u64,
    /// What every link does, unless `links` says otherwise.
    pub faults: Faults,
    /// What single nodes' links do, both ways.
    pub links: Vec<(Node, Faults)>,
    /// Who dies.
    pub deaths: Vec<Death>,
    /// What becomes of the parts meanwhile, in ascending order of time.
    pub replans: Vec<Replan>,
}

impl Config {
    /// A small job on a network that behaves, with timeouts that fit its delays.
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

    /// The job, checked.
    pub fn checked_job(&self) -> Result<Job, JobError> {
        Job::under_one_switch(self.job)
    }

    /// The part that a worker's values are summed in, and its number there.
    pub(super) fn part_of(&self, rank: WorkerId) -> Option<(JobId, WorkerId)> {
        place(&self.parts, rank)
    }

    /// What a node's links do.
    pub(super) fn faults_of(&self, node: Node) -> Faults {
        let own = self.links.iter().find(|(of, _)| *of == node);
        own.map_or(self.faults, |(_, faults)| *faults)
    }

    /// When the last node dies.
    pub fn last_death_ns(&self) -> Option<u64> {
        self.deaths.iter().map(|death| death.at_ns).max()
    }

    /// How long after a death the last survivor has given up: a slot that the dead had fed twice ahead of a survivor
    /// takes that survivor two chunks' patience, and the third chunk never completes. Where the window follows the queues, a chunk
    /// that has timed out waits for its turn, behind others that wait for the same.
    pub fn mourning_ns(&self) -> u64 {
        let turns = if self.fixed_window { 1 } else { 2 };
        3 * turns * (self.retransmission.patience_ns() + self.faults.reorder_ns) + self.compute_ns
    }

    /// A run that is still going then has hung: each chunk of each round has had all its timeouts, one
    /// after the other.
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
