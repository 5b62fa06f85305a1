//! `JobGuard` in p4src/common/job_guard.p4.

/// The table of the jobs' leases.
pub const LEASES: &str = "SwitchIngress.guard.leases";
/// The action for a job without a lease.
pub const UNLIMITED: &str = "SwitchIngress.guard.unlimited";
/// The action for a job with a lease.
pub const UNTIL: &str = "SwitchIngress.guard.until";
/// Parameter of [`UNTIL`]: the end of the lease, on the switch's clock.
pub const DEADLINE: &str = "deadline";
/// The table of the ports by which frames of a job come.
pub const SENDERS: &str = "SwitchIngress.guard.senders";
/// The action of [`SENDERS`].
pub const SENDER: &str = "SwitchIngress.guard.sender";
/// Key of [`LEASES`] and [`SENDERS`]: the job.
pub const KEY_JOB: &str = super::aggregate::KEY_JOB;
/// Key of [`SENDERS`]: the ingress port.
pub const KEY_PORT: &str = super::aggregate::KEY_PORT;
/// The meter of each job's frames, in bytes; indexed by [`cell`].
pub const METERS: &str = "SwitchIngress.guard.rate.meters";
/// Counter of frames by job and outcome; indexed by [`outcome_cell`].
pub const OUTCOMES: &str = "SwitchIngress.guard.outcomes.cells";
/// Counter of frames with a job number that their port may not use, by port.
pub const STRANGERS: &str = "SwitchIngress.guard.strangers.ports";

/// The guard's verdict on a frame (`guarded_t` in p4src/common/aggregate_types.p4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// The frame passes.
    Passed,
    /// The frame came by a port that leads to no worker of the job.
    Stranger,
    /// The job's lease has expired.
    Lapsed,
    /// The frame exceeds the job's rate.
    OverRate,
}

/// The cell of a job in [`METERS`].
#[must_use]
pub fn cell(job: u16) -> u64 {
    u64::from(job % 256)
}

/// The cell of a job and a verdict in [`OUTCOMES`].
#[must_use]
pub fn outcome_cell(job: u16, outcome: Guarded) -> u64 {
    4 * cell(job) + outcome as u64
}
