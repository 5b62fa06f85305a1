//! Configuration of a simulated all-reduce: job, network, timeouts, faults, and deaths of ranks.

use aggregation::job::{Job, JobConfig, JobError, TreePosition, WorkerId};
use aggregation::rank::{Carry, Fallback, Lateness, LatenessError, Reduction, Share};
use aggregation::rto::Retransmission;

use super::Racks;
use crate::Faults;
use crate::network::{Policer, Rate};

/// Configuration of a simulated all-reduce.
#[derive(Debug, Clone)]
pub struct AllReduceConfig {
    /// Seed of every random decision in the run.
    pub seed: u64,
    /// Settings of the job: number of ranks, of slots, and of values per packet.
    pub job: JobConfig,
    /// Retransmission timeouts of the ranks.
    pub retransmission: Retransmission,
    /// Delay of each rank's link in each direction, in nanoseconds; faults may add to it.
    pub delay_ns: u64,
    /// Rate of each rank's link in each direction; `None` for unlimited rate.
    pub rate: Option<Rate>,
    /// Rate limit of the switch on the frames of all ranks together; `None` for no limit.
    pub policer: Option<Policer>,
    /// Whether ranks ignore congestion signals.
    pub fixed_window: bool,
    /// Maximum time between two operations that a rank submits, in nanoseconds.
    pub pause_ns: u64,
    /// Random faults of every link.
    pub faults: Faults,
    /// Division of the ranks into racks, in a tree of switches; `None` for a single switch.
    pub racks: Option<Racks>,
    /// Nanoseconds without a reply after which ranks declare another rank dead; `None` if ranks do not probe each other.
    pub dead_after_ns: Option<u64>,
    /// Work between operations of ranks that wait for the sums of each operation; replaces [`pause_ns`](Self::pause_ns).
    pub steps: Option<Steps>,
    /// When the switch sends partial sums, without all contributions; `None` if it waits for all contributions.
    pub deadline: Option<Deadline>,
    /// When ranks sum their values without the switch, since it does not answer; `None` for never.
    pub fallback: Option<Fallback>,
    /// Ranks that die: rank, and virtual time of the death in nanoseconds.
    pub deaths: Vec<(WorkerId, u64)>,
    /// Times after which the recovery of the ranks is measured, ascending, in nanoseconds;
    /// [`AllReduceReport::recoveries`](super::AllReduceReport::recoveries) has the results.
    pub watched_ns: Vec<u64>,
    /// How all operations combine values: sum or average, exactness, rounding, key of the tensor.
    pub reduction: Reduction,
    /// Returns whether a rank contributes and gets sums in an operation (index from 0); replaces the share in `reduction`.
    pub share: fn(usize, WorkerId) -> Share,
    /// Rank that asks for an average where the others ask for a sum, or vice versa; `None` if all ranks agree.
    pub averages_at: Option<WorkerId>,
    /// Maximum duration of a run in virtual nanoseconds.
    pub deadline_ns: u64,
}

impl AllReduceConfig {
    /// A configuration in which ranks submit operations at random times, over links with these faults, with fitting timeouts.
    pub fn new(seed: u64, job: JobConfig, faults: Faults) -> Self {
        const MS: u64 = 1_000_000;
        Self {
            seed,
            job,
            retransmission: Retransmission {
                floor_ns: MS / 5,
                granularity_ns: 0,
                initial_ns: MS / 2,
                ceiling_ns: 3 * MS,
                max_timeouts: 100,
                max_closing_timeouts: 8,
                fast_threshold: 4,
                ask_after: 2,
            },
            delay_ns: 10_000,
            rate: None,
            policer: None,
            fixed_window: false,
            pause_ns: 60_000,
            faults,
            racks: None,
            dead_after_ns: Some(100 * MS),
            steps: None,
            deadline: None,
            fallback: None,
            deaths: Vec::new(),
            watched_ns: Vec::new(),
            reduction: Reduction::default(),
            share: |_, _| Share::default(),
            averages_at: None,
            deadline_ns: 60_000 * MS,
        }
    }
}

/// Work of a rank that repeats a step: it computes, contributes its values, and waits for the sums.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// Duration of the computation in each step, in nanoseconds.
    pub compute_ns: u64,
    /// Maximum additional duration of a step's computation in an occasional stall, in nanoseconds.
    pub stall_ns: u64,
    /// Probability that a step's computation stalls, 0 to 1.
    pub stalls: f64,
}

/// When switches send partial sums, without the contributions of all ranks.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    /// Nanoseconds after which a switch may close a chunk: send the sum of the contributions that have arrived.
    pub after_ns: u64,
    /// Minimum number of ranks that must have contributed to a partial sum.
    pub quorum: u16,
    /// Treatment, by each rank, of its own values that come too late for a sum.
    pub carry: Carry,
    /// Number of sums per slot that each rank keeps for ranks that are behind; `None` for the default.
    pub keeps: Option<u32>,
}

impl Deadline {
    pub(super) fn lateness(
        self,
        job: &Job,
        place: TreePosition,
    ) -> Result<Lateness, LatenessError> {
        let lateness = Lateness::new(job, place, self.after_ns, self.quorum, self.carry)?;
        self.keeps
            .map_or(Ok(lateness), |keeps| lateness.keeping(keeps))
    }
}

/// Reason why the configuration of a simulated all-reduce is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AllReduceConfigError {
    /// The settings of the job are invalid.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The deadline of partial sums is invalid for this job.
    #[error(transparent)]
    Lateness(#[from] LatenessError),
}
