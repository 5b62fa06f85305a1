//! Names in the controls `RoceIn` and `RoceOut` (p4src/common/roce_sum.p4). They convert RoCEv2 frames for the sum, and back.

/// The table of the jobs that the switch sums, by the MAC address to which workers send their frames.
pub const JOBS: &str = "SwitchIngress.roce.jobs";
/// Key of the table [`JOBS`]: the destination MAC address.
pub const KEY_ADDRESS: &str = "hdr.ethernet.dst";
/// The action of the table [`JOBS`].
pub const SUMS: &str = "SwitchIngress.roce.sums";
/// Parameter of [`SUMS`] and [`SPEAKS`]: the job's number.
pub const JOB: &str = "job_";
/// Parameter of [`SUMS`]: the job's number of aggregation slots.
pub const WINDOW: &str = "window_";
/// The table that maps a queue pair number and an ingress port to a worker.
pub const SENDERS: &str = "SwitchIngress.roce.senders";
/// Key of [`SENDERS`]: the queue pair number.
pub const KEY_QPN: &str = "hdr.roce.dest_qp";
/// Key of [`SENDERS`]: the ingress port.
pub const KEY_PORT: &str = super::aggregate::KEY_PORT;
/// The action of the table [`SENDERS`].
pub const SPEAKS: &str = "SwitchIngress.roce.speaks";
/// Parameter of [`SPEAKS`]: the worker's number.
pub const WORKER: &str = "worker_";
/// Counter of RoCEv2 frames by [`Outcome`] (`ROCE_UPDATED` … in p4src/common/roce_types.p4).
pub const OUTCOMES: &str = "SwitchIngress.roce.outcomes.cells";
/// The egress table that maps a worker to its MAC and IPv4 addresses.
pub const WORKERS: &str = "SwitchEgress.roce.workers";
/// Key of [`WORKERS`]: the job's number.
pub const KEY_JOB: &str = "job";
/// Key of [`WORKERS`]: the number of the multicast copy, for frames to all workers; 0 for frames to one worker.
pub const KEY_COPY: &str = "copy";
/// Key of [`WORKERS`]: the destination MAC address of the frame before this table.
pub const KEY_ADDRESSED: &str = "addressed";
/// The action of the table [`WORKERS`].
pub const REACHES: &str = "SwitchEgress.roce.reaches";
/// Parameter of [`REACHES`]: the index of the worker's queue pair in the switch's registers.
pub const CONTACT: &str = "contact_";
/// Parameter of [`REACHES`]: the worker's MAC address.
pub const MAC: &str = "mac_";
/// Parameter of [`REACHES`]: the worker's IPv4 address.
pub const IP: &str = "ip_";
/// Parameter of [`REACHES`]: the bitmap of all workers of the job.
pub const ALL_WORKERS: &str = "all_workers_";
/// The register of the workers' queue pair numbers; 0 for workers that have not registered.
pub const QPNS: &str = "SwitchEgress.roce.contacts.qpns";

/// The number of the queue pair that the switch uses for a worker of a job.
#[must_use]
pub fn qpn(job: u16, worker: u16) -> u32 {
    0x80_0000 | u32::from(job) << 6 | u32::from(worker & 0x3F)
}

/// The result of `RoceIn` for a frame to a job's address; the index of [`OUTCOMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The frame is an update: it contributes values to a sum.
    Updated,
    /// The frame is a registration: a worker announces its queue pair.
    Registered,
    /// The frame's queue pair number is unknown, or belongs to a worker behind another port.
    Stranger,
    /// The frame's ICRC is wrong.
    WrongIcrc,
    /// The frame is neither a valid update nor a valid registration.
    Malformed,
    /// The frame carries another RDMA operation.
    Other,
}
