//! Names of the tables, actions, keys and registers of the control `Aggregate` (p4src/common/aggregate.p4), which sums.

/// The table of jobs that the switch sums.
pub const JOBS: &str = "SwitchIngress.aggregate.jobs";
/// The action of the table [`JOBS`].
pub const AGGREGATE_JOB: &str = "SwitchIngress.aggregate.aggregate_job";
/// Parameter of [`AGGREGATE_JOB`]: bitmap of the workers, with a bit for each worker that must contribute to a chunk.
pub const ALL_WORKERS: &str = "all_workers_";
/// Parameter of [`AGGREGATE_JOB`]: index of the job's first aggregation slot.
pub const BASE: &str = "base_";
/// Parameter of [`AGGREGATE_JOB`]: the job's number of aggregation slots, a power of two.
pub const WINDOW: &str = "window_";
/// Parameter of [`AGGREGATE_JOB`]: the job's number of aggregation slots less one, as a mask.
pub const SLOT_MASK: &str = "slot_mask_";
/// The action of [`JOBS`] at a switch below the root: parameters of [`AGGREGATE_JOB`], [`UP_PORT`] and [`UP_WORKER`].
pub const AGGREGATE_PART: &str = "SwitchIngress.aggregate.aggregate_part";
/// As [`AGGREGATE_JOB`], for a job with deadlines. Only in programs that can close a chunk before all have contributed.
pub const AGGREGATE_UNTIL: &str = "SwitchIngress.aggregate.aggregate_until";
/// Parameter of [`AGGREGATE_PART`]: the port to the parent switch.
pub const UP_PORT: &str = "up_port_";
/// Parameter of [`AGGREGATE_PART`]: this switch's number among the children of its parent switch.
pub const UP_WORKER: &str = "up_worker_";
/// The table of the workers and child switches that contribute to each job.
pub const MEMBERS: &str = "SwitchIngress.aggregate.members";
/// The action of the table [`MEMBERS`].
pub const MEMBER: &str = "SwitchIngress.aggregate.member";
/// Parameter of [`MEMBER`]: the worker's bit in bitmaps of the workers that have contributed.
pub const WORKER_BIT: &str = "worker_bit_";
/// Key of [`JOBS`] and [`MEMBERS`]: the job's number.
pub const KEY_JOB: &str = "hdr.agg.job";
/// Key of [`MEMBERS`]: the worker's rank.
pub const KEY_WORKER: &str = "hdr.agg.worker";
/// Key of [`MEMBERS`]: whether the frame is a probe, which adds no values. The table entry for probes has no worker bit.
pub const KEY_PROBE: &str = "hdr.agg.probe";
/// Key of [`MEMBERS`]: the ingress port.
pub const KEY_PORT: &str = "meta.port";
/// The register that says to which chunk (piece of the values) each aggregation slot belongs.
pub const OWNERS: &str = "SwitchIngress.aggregate.owner.owners";
/// The register with a bitmap for each cell (one version of a slot): the workers that have contributed to its sum.
pub const BITMAPS: &str = "SwitchIngress.aggregate.bitmap.bitmaps";
/// TNA's second bitmap of workers that have contributed. There, the register [`BITMAPS`] only classifies a packet.
pub const ARRIVALS: &str = "SwitchIngress.aggregate.bitmap.arrivals";
/// The register that records which cells were opened and closed; only in programs with [`AGGREGATE_UNTIL`].
pub const MARKS: &str = "SwitchIngress.aggregate.marks.marks";
/// The register with the flags of the chunk in each cell (one version of a slot).
pub const FLAGS: &str = "SwitchIngress.aggregate.flags.flags";
/// The register with the next scale of each cell: the largest exponent that a worker wants for the next chunk in the slot.
pub const SCALES: &str = "SwitchIngress.aggregate.scale.scales";
/// Counter of aggregation frames by what the switch did with them (`outcome_t` in p4src/common/aggregate_types.p4).
pub const OUTCOMES: &str = "SwitchIngress.aggregate.outcomes.cells";
/// Index in [`OUTCOMES`]: frames whose ingress port does not lead to the rank that they name.
pub const OUTCOME_FOREIGN: usize = 5;
/// Index in [`OUTCOMES`]: frames whose slot, slot version or number of values does not fit their chunk.
pub const OUTCOME_MALFORMED: usize = 6;

/// Name of the register with the value at index `value` of each slot. The name has two parts: `value` / 32, and the rest.
#[must_use]
pub fn sums(value: usize) -> String {
    format!(
        "SwitchIngress.aggregate.sum{}.s{}.sums",
        value / 32,
        value % 32
    )
}
