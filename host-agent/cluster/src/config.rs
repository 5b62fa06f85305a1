//! Configuration of a simulated training: job, network, timeouts, faults, and deaths of nodes.

use crate::Node;
use crate::network::{Faults, Rate};
use aggregation::job::{ChunkId, Job, JobConfig, JobError, JobId, WorkerId};
use aggregation::rto::Retransmission;
use aggregation::server::{Mode, Part, PartsError};

/// Death of a node: it stops forever, without notice to other nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    /// The node that dies.
    pub node: Node,
    /// Time of the death, in virtual nanoseconds from the start of the run.
    pub at_ns: u64,
}

/// New division of the job into parts during a run. Switches learn it first, then the server, then each worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replan {
    /// Time at which the switches receive the new division.
    pub at_ns: u64,
    /// Time from the switches' receipt of the new division to the server's, in nanoseconds.
    pub server_after_ns: u64,
    /// The new parts (workers whose updates one switch sums), with job numbers that no earlier part had.
    pub parts: Vec<Part>,
    /// Maximum time from the server's receipt of the new division to each worker's, in nanoseconds.
    pub told_within_ns: u64,
}

/// Reason why a simulation's configuration is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The settings of the training job are invalid.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The division of the job into parts is invalid.
    #[error(transparent)]
    Parts(#[from] PartsError),
}

/// Configuration of a simulated training with workers, a switch and a parameter server.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Seed of every random decision in the run.
    pub seed: u64,
    /// Settings of the training job: number of workers, slots, values per round.
    pub job: JobConfig,
    /// Whether a switch or the parameter server sums the gradients.
    pub mode: Mode,
    /// Parts of the job: workers whose updates one switch sums for the server. Needs [`Mode::Switch`].
    pub parts: Vec<Part>,
    /// Number of training rounds, after which the job is closed.
    pub rounds: u64,
    /// Retransmission timeouts of workers and server.
    pub retransmission: Retransmission,
    /// Delay of each link in each direction, in nanoseconds; faults may add to it.
    pub delay_ns: u64,
    /// Rate of each link in each direction; `None` for unlimited rate.
    pub rate: Option<Rate>,
    /// Whether workers ignore congestion signals.
    pub fixed_window: bool,
    /// Maximum time that a worker computes before each round, in nanoseconds.
    pub compute_ns: u64,
    /// Faults of every link that `links` does not list.
    pub faults: Faults,
    /// Faults of the links of single nodes, in both directions; they replace `faults`.
    pub links: Vec<(Node, Faults)>,
    /// Nodes that die during the run.
    pub deaths: Vec<Death>,
    /// Divisions of the job into new parts during the run, in ascending order of time.
    pub replans: Vec<Replan>,
}

impl Config {
    /// A small job on a network without faults, with timeouts that fit the network's delays.
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

    /// Validates the job's settings.
    pub fn checked_job(&self) -> Result<Job, JobError> {
        Job::under_one_switch(self.job)
    }

    /// Job number of the part (group of workers) with this worker, and its number in the part; `None` if no part has it.
    pub(super) fn part_of(&self, rank: WorkerId) -> Option<(JobId, WorkerId)> {
        place(&self.parts, rank)
    }

    /// Faults of a node's links: those that `links` has for the node, else `faults`.
    pub(super) fn faults_of(&self, node: Node) -> Faults {
        let own = self.links.iter().find(|(of, _)| *of == node);
        own.map_or(self.faults, |(_, faults)| *faults)
    }

    /// Time of the last configured death of a node; `None` if no node dies.
    pub fn last_death_ns(&self) -> Option<u64> {
        self.deaths.iter().map(|death| death.at_ns).max()
    }

    /// Maximum time in nanoseconds from a node's death until the last survivor gives up. In the worst case, the dead node had
    /// contributed to two chunks of a slot before a survivor did. The survivor then waits through all timeouts of both chunks,
    /// and of a third, which never completes. With a congestion window, a chunk that timed out also waits behind others that
    /// timed out.
    pub fn mourning_ns(&self) -> u64 {
        let turns = if self.fixed_window { 1 } else { 2 };
        3 * turns * (self.retransmission.patience_ns() + self.faults.reorder_ns) + self.compute_ns
    }

    /// Virtual time in nanoseconds at which a run counts as hung: enough for all timeouts of all chunks, one after another.
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

/// Job number of the part that a worker is in, and the worker's number in this part; `None` if no part has the worker.
pub(super) fn place(parts: &[Part], rank: WorkerId) -> Option<(JobId, WorkerId)> {
    parts.iter().find_map(|part| {
        let child = part.workers.iter().position(|worker| *worker == rank)?;
        Some((part.number, WorkerId(child as u16)))
    })
}
