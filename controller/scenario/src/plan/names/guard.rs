//! Names in the control `JobGuard` (p4src/common/job_guard.p4), which checks who may send for a job, and at which rate.

/// The table of the jobs' leases: until when frames of a job may pass.
pub const LEASES: &str = "SwitchIngress.guard.leases";
/// The action of [`LEASES`] for a job without a lease.
pub const UNLIMITED: &str = "SwitchIngress.guard.unlimited";
/// The action of [`LEASES`] for a job with a lease.
pub const UNTIL: &str = "SwitchIngress.guard.until";
/// Parameter of [`UNTIL`]: the end of the lease, on the switch's clock.
pub const DEADLINE: &str = "deadline";
/// The table of the ingress ports by which frames of a job may come.
pub const SENDERS: &str = "SwitchIngress.guard.senders";
/// The action of the table [`SENDERS`].
pub const SENDER: &str = "SwitchIngress.guard.sender";
/// Key of [`LEASES`] and [`SENDERS`]: the job's number.
pub const KEY_JOB: &str = super::aggregate::KEY_JOB;
/// Key of [`SENDERS`]: the ingress port.
pub const KEY_PORT: &str = super::aggregate::KEY_PORT;
/// The meters that measure each job's frames, in bytes; [`cell`] gives a job's index.
pub const METERS: &str = "SwitchIngress.guard.rate.meters";
/// Counter of frames by job and verdict; [`outcome_cell`] is the index.
pub const OUTCOMES: &str = "SwitchIngress.guard.outcomes.cells";
/// Counter, by ingress port, of frames with a job number that the port may not use.
pub const STRANGERS: &str = "SwitchIngress.guard.strangers.ports";

/// The verdict of `JobGuard` on a frame (`guarded_t` in p4src/common/aggregate_types.p4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarded {
    /// The frame passes: its port, lease and rate are in order.
    Passed,
    /// The frame came by a port that leads to no worker of the job.
    Stranger,
    /// The job's lease has expired.
    Lapsed,
    /// The frame exceeds the job's rate.
    OverRate,
}

/// The index of a job in [`METERS`].
#[must_use]
pub fn cell(job: u16) -> u64 {
    u64::from(job % 256)
}

/// The index in the counter [`OUTCOMES`] for a job and a verdict.
#[must_use]
pub fn outcome_cell(job: u16, outcome: Guarded) -> u64 {
    4 * cell(job) + outcome as u64
}
