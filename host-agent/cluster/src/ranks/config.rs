//! Configuration of an all-reduce in virtual time.

use aggregation::job::{Job, JobConfig, JobError, TreePosition, WorkerId};
use aggregation::rank::{Carry, Fallback, Lateness, LatenessError, Reduction, Share};
use aggregation::rto::Retransmission;

use super::Racks;
use crate::Faults;
use crate::network::{Policer, Rate};

/// Configuration of a run.
#[derive(Debug, Clone)]
pub struct AllReduceConfig {
    /// Seed of every random decision.
    pub seed: u64,
    /// The job.
    pub job: JobConfig,
    /// Timeouts of the ranks.
    pub retransmission: Retransmission,
    /// Delay of a link without faults, in each direction.
    pub delay_ns: u64,
    /// Rate of each rank's link in each direction; `None` for unlimited.
    pub rate: Option<Rate>,
    /// Limit of the switch on all ranks together; `None` for unlimited.
    pub policer: Option<Policer>,
    /// Whether ranks ignore congestion signals.
    pub fixed_window: bool,
    /// Maximum time between the submissions of a rank's consecutive operations.
    pub pause_ns: u64,
    /// Faults of every link.
    pub faults: Faults,
    /// Division of the ranks into racks, in a tree of switches.
    pub racks: Option<Racks>,
    /// Time without a reply after which a rank is declared dead; `None` if ranks do not ask each other.
    pub dead_after_ns: Option<u64>,
    /// Work of ranks between operations, if they wait for the sums of each; replaces [`pause_ns`](Self::pause_ns).
    pub steps: Option<Steps>,
    /// Deadline and quorum of partial sums.
    pub deadline: Option<Deadline>,
    /// When ranks sum themselves.
    pub fallback: Option<Fallback>,
    /// Ranks that die, with the time.
    pub deaths: Vec<(WorkerId, u64)>,
    /// Times at which the chunks in flight are recorded, ascending; [`AllReduceReport::recoveries`](super::AllReduceReport::recoveries) has the durations until they
    /// completed.
    pub watched_ns: Vec<u64>,
    /// Reduction of all operations.
    pub reduction: Reduction,
    /// Role of a rank in an operation; replaces the share in `reduction`.
    pub share: fn(usize, WorkerId) -> Share,
    /// A rank that requests averages if the others do not, or the other way around.
    pub averages_at: Option<WorkerId>,
    /// Maximum duration of a run.
    pub deadline_ns: u64,
}

impl AllReduceConfig {
    /// Ranks that submit operations now and then, over a network with these faults, with timeouts that fit its delays.
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

/// Work of a rank that computes, contributes its values, waits for the sums, and repeats.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// Time of each computation.
    pub compute_ns: u64,
    /// Maximum additional time of an occasional stall.
    pub stall_ns: u64,
    /// Probability of a stall.
    pub stalls: f64,
}

/// Deadline and quorum of partial sums.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    /// Time after which a chunk may be closed.
    pub after_ns: u64,
    /// Minimum number of contributors.
    pub quorum: u16,
    /// Treatment of late values.
    pub carry: Carry,
    /// Number of sums kept per slot; `None` for the default.
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

/// Reason why a configuration is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AllReduceConfigError {
    /// The job's settings are invalid.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The deadline is invalid for this job.
    #[error(transparent)]
    Lateness(#[from] LatenessError),
}
