//! `RoceIn` and `RoceOut` in p4src/common/roce_sum.p4.

/// The table of addresses of jobs that the switch sums.
pub const JOBS: &str = "SwitchIngress.roce.jobs";
/// The key of [`JOBS`].
pub const KEY_ADDRESS: &str = "hdr.ethernet.dst";
/// The action of [`JOBS`].
pub const SUMS: &str = "SwitchIngress.roce.sums";
/// Parameter of [`SUMS`] and [`SPEAKS`]: the job's number.
pub const JOB: &str = "job_";
/// Parameter of [`SUMS`]: the job's number of slots.
pub const WINDOW: &str = "window_";
/// The table that maps a queue pair number and an ingress port to a worker.
pub const SENDERS: &str = "SwitchIngress.roce.senders";
/// Key of [`SENDERS`]: the queue pair number.
pub const KEY_QPN: &str = "hdr.roce.dest_qp";
/// Key of [`SENDERS`]: the ingress port.
pub const KEY_PORT: &str = super::aggregate::KEY_PORT;
/// The action of [`SENDERS`].
pub const SPEAKS: &str = "SwitchIngress.roce.speaks";
/// Parameter of [`SPEAKS`]: the worker's number.
pub const WORKER: &str = "worker_";
/// Counter of frames by outcome (`ROCE_UPDATED` … in p4src/common/roce_types.p4).
pub const OUTCOMES: &str = "SwitchIngress.roce.outcomes.cells";
/// The egress table of the workers' addresses.
pub const WORKERS: &str = "SwitchEgress.roce.workers";
/// Key of [`WORKERS`]: the job.
pub const KEY_JOB: &str = "job";
/// Key of [`WORKERS`]: the copy's number, for frames to all workers; 0 for frames to one.
pub const KEY_COPY: &str = "copy";
/// Key of [`WORKERS`]: the address of the frame before this table.
pub const KEY_ADDRESSED: &str = "addressed";
/// The action of [`WORKERS`].
pub const REACHES: &str = "SwitchEgress.roce.reaches";
/// Parameter of [`REACHES`]: the index of the worker's queue pair in the registers.
pub const CONTACT: &str = "contact_";
/// Parameter of [`REACHES`]: the worker's MAC address.
pub const MAC: &str = "mac_";
/// Parameter of [`REACHES`]: the worker's IPv4 address.
pub const IP: &str = "ip_";
/// Parameter of [`REACHES`]: the bitmap of all workers.
pub const ALL_WORKERS: &str = "all_workers_";
/// The register of the workers' queue pair numbers; 0 for workers that have not registered.
pub const QPNS: &str = "SwitchEgress.roce.contacts.qpns";

/// The switch's queue pair number for a worker of a job.
#[must_use]
pub fn qpn(job: u16, worker: u16) -> u32 {
    0x80_0000 | u32::from(job) << 6 | u32::from(worker & 0x3F)
}

/// The outcome of a frame to a job's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The frame is an update.
    Updated,
    /// The frame is a registration.
    Registered,
    /// The frame's queue pair number is unknown, or belongs to another port.
    Stranger,
    /// The frame's ICRC is wrong.
    WrongIcrc,
    /// The frame is neither a valid update nor a valid registration.
    Malformed,
    /// The frame carries another operation.
    Other,
}
