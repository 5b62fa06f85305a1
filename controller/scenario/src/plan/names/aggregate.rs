//! `Aggregate` in p4src/common/aggregate.p4.

/// The table of jobs that the switch sums.
pub const JOBS: &str = "SwitchIngress.aggregate.jobs";
/// The action of [`JOBS`].
pub const AGGREGATE_JOB: &str = "SwitchIngress.aggregate.aggregate_job";
/// Parameter of [`AGGREGATE_JOB`]: the bitmap of a complete chunk.
pub const ALL_WORKERS: &str = "all_workers_";
/// Parameter of [`AGGREGATE_JOB`]: the job's first pair of cells.
pub const BASE: &str = "base_";
/// Parameter of [`AGGREGATE_JOB`]: the job's number of slots, a power of two.
pub const WINDOW: &str = "window_";
/// Parameter of [`AGGREGATE_JOB`]: one less than [`WINDOW`].
pub const SLOT_MASK: &str = "slot_mask_";
/// The action of [`JOBS`] at a switch below the root: [`AGGREGATE_JOB`]'s parameters, [`UP_PORT`] and [`UP_WORKER`].
pub const AGGREGATE_PART: &str = "SwitchIngress.aggregate.aggregate_part";
/// The action of [`JOBS`] for a job with deadlines, with [`AGGREGATE_JOB`]'s parameters; in programs that can close
/// chunks.
pub const AGGREGATE_UNTIL: &str = "SwitchIngress.aggregate.aggregate_until";
/// Parameter of [`AGGREGATE_PART`]: the port of the parent switch.
pub const UP_PORT: &str = "up_port_";
/// Parameter of [`AGGREGATE_PART`]: this switch's number among the children of its parent.
pub const UP_WORKER: &str = "up_worker_";
/// The table of each job's workers and child switches.
pub const MEMBERS: &str = "SwitchIngress.aggregate.members";
/// The action of [`MEMBERS`].
pub const MEMBER: &str = "SwitchIngress.aggregate.member";
/// Parameter of [`MEMBER`]: the worker's bit in bitmaps.
pub const WORKER_BIT: &str = "worker_bit_";
/// Key of [`JOBS`] and [`MEMBERS`]: the job.
pub const KEY_JOB: &str = "hdr.agg.job";
/// Key of [`MEMBERS`]: the worker's rank.
pub const KEY_WORKER: &str = "hdr.agg.worker";
/// Key of [`MEMBERS`]: whether the frame is a probe; the entry for probes has no worker bit.
pub const KEY_PROBE: &str = "hdr.agg.probe";
/// Key of [`MEMBERS`]: the ingress port.
pub const KEY_PORT: &str = "meta.port";
/// The register of the chunk that each slot belongs to.
pub const OWNERS: &str = "SwitchIngress.aggregate.owner.owners";
/// The register of the workers that have contributed to each slot.
pub const BITMAPS: &str = "SwitchIngress.aggregate.bitmap.bitmaps";
/// A second bitmap in TNA: one register classifies a packet, the other records the workers present.
pub const ARRIVALS: &str = "SwitchIngress.aggregate.bitmap.arrivals";
/// The register of opened and closed cells; in programs that can close chunks.
pub const MARKS: &str = "SwitchIngress.aggregate.marks.marks";
/// The register of a chunk's flags.
pub const FLAGS: &str = "SwitchIngress.aggregate.flags.flags";
/// The register of the next scales.
pub const SCALES: &str = "SwitchIngress.aggregate.scale.scales";
/// Counter of frames by outcome (`outcome_t` in p4src/common/aggregate_types.p4).
pub const OUTCOMES: &str = "SwitchIngress.aggregate.outcomes.cells";
/// Cell of [`OUTCOMES`]: frames that name a rank behind another port (p4src/common/aggregate_types.p4).
pub const OUTCOME_FOREIGN: usize = 5;
/// Cell of [`OUTCOMES`]: frames whose slot, version or count does not fit their chunk.
pub const OUTCOME_MALFORMED: usize = 6;

/// The register of one value of each slot; values are in blocks of 32.
#[must_use]
pub fn sums(value: usize) -> String {
    format!(
        "SwitchIngress.aggregate.sum{}.s{}.sums",
        value / 32,
        value % 32
    )
}
