//! The capabilities and limits of each kind of switch that the planner relies on.

use parser_gen::FrameValues;
use serde::Serialize;

use crate::model::job::MAX_CHILDREN;
use crate::plan::names;

/// The capabilities and limits of a kind of switch that the planner relies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TargetModel {
    /// Duration of one pass over the recirculation port, in nanoseconds.
    pub loop_ns: u64,
    /// Rate of the recirculation port, in bits per second.
    pub loop_rate_bps: u64,
    /// Time by which the switch may miss a deadline, in nanoseconds: 0 in hardware, the scheduler's wake-up in software.
    pub wakeup_ns: u64,
    /// Number of the recirculation port.
    pub recirculation_port: u32,
    /// Whether a multicast group can have the recirculation port, which duplicates need (docs/decisions/0003).
    pub multicast_recirculates: bool,
    /// Whether the switch's ports hold frames for the latency of their links.
    pub delays_links: bool,
    /// Whether the switch's program can distribute flows over several paths: Tofino's supports one path.
    pub has_several_ways: bool,
    /// Whether the switch's ports mark frames in a long queue (ECN).
    pub marks_queues: bool,
    /// Maximum number of faults in ingress. The same number is possible in egress.
    pub units: usize,
    /// Further resources of a chip: name, and the measured average that one fault uses, in thousandths of the chip's capacity.
    pub fault_takes: &'static [(&'static str, u64)],
    /// Number of bits of a random draw: a probability is a multiple of 2 to the power of minus this number.
    pub draw_bits: u32,
    /// Number of bits of the switch's timestamps.
    pub time_bits: u32,
    /// Maximum number of values in the aggregation frames that the switch sums in one pass.
    pub frame_values: FrameValues,
    /// Maximum number of children (ranks and lower switches) of a switch that sums: the number of bits in its bitmap.
    pub sum_children: usize,
    /// Whether the switch can complete a sum before all ranks have contributed (`CLOSES` in its slots.p4).
    pub closes_chunks: bool,
    /// Whether the switch's program sums RoCEv2, which needs a CRC-32 over the whole packet before and after the sum.
    pub sums_roce: bool,
    /// Whether the program checks, before a sum, who may send for a job and at which rate. Tofino has no stage left for it, and
    /// weir does not set the meters of `psa_switch` over Thrift.
    pub guards_jobs: bool,
    /// Whether the switch can keep a deadline in a register and compare times with it. Tofino's ALU cannot, because clocks
    /// wrap.
    pub compares_deadlines: bool,
    /// Whether the switch can update checksums over fields that a fault changed.
    pub mends_checksums: bool,
    /// Maximum number of values in a frame if the switch also has faults; `None`: a sum leaves faults only the first stage.
    pub frame_values_beside_faults: Option<FrameValues>,
    /// Whether the planner places a suitable fault in front of the sum. This saves a pass through the chip.
    pub faults_before_sums: bool,
    /// Whether the switch has capacity to number the packets of each key separately.
    pub numbers_keys: bool,
    /// Whether packets can wait for later packets: a recirculated packet then reads a register that the later packets write.
    pub reorders: bool,
    /// Whether faults on the switch can wait for triggers.
    pub has_triggers: bool,
    /// How the switch truncates packets; `None` if it cannot.
    pub truncates: Option<Truncates>,
    /// Whether a controller can read the switch's clock, which leases need.
    pub tells_time: bool,
    /// Whether `weir run` starts the hosts' programs and the switches.
    pub runs_hosts: bool,
    /// Whether one switch of this kind can be restarted while other switches run.
    pub restarts: bool,
}

/// Average resources of one fault, measured with eight faults on a Tofino 2 (docs/tofino.md); stages are limited by `units`.
const OF_TOFINO2: [(&str, u64); 9] = [
    ("PHV", 78),
    ("hash distribution units", 45),
    ("logical tables", 43),
    ("stateful ALUs", 20),
    ("exact crossbar", 16),
    ("TCAM", 13),
    ("SRAM", 11),
    ("ternary crossbar", 10),
    ("map RAMs", 6),
];

/// How a switch truncates packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncates {
    /// By clone sessions, one for each length.
    Clones,
    /// By an extern of the architecture.
    Extern,
}

impl TargetModel {
    /// Load of held packets on the recirculation port, in bits per second: each held bit passes the port once per loop.
    #[must_use]
    pub fn looping_bps(&self, held_bits: u64) -> u64 {
        let bps = u128::from(held_bits) * 1_000_000_000 / u128::from(self.loop_ns.max(1));
        u64::try_from(bps).unwrap_or(u64::MAX)
    }

    /// weir's embedded switch with its default recirculation link.
    pub const EMBEDDED: TargetModel = TargetModel {
        loop_ns: 20_000,
        loop_rate_bps: 100_000_000_000,
        wakeup_ns: 5_000_000,
        recirculation_port: names::port::PSA_RECIRCULATE,
        multicast_recirculates: true,
        delays_links: true,
        has_several_ways: true,
        marks_queues: true,
        units: 64,
        fault_takes: &[],
        draw_bits: 32,
        time_bits: 48,
        frame_values: FrameValues::V2048,
        sum_children: MAX_CHILDREN,
        closes_chunks: true,
        sums_roce: true,
        guards_jobs: true,
        compares_deadlines: true,
        mends_checksums: true,
        frame_values_beside_faults: Some(FrameValues::V2048),
        faults_before_sums: false,
        truncates: Some(Truncates::Clones),
        reorders: true,
        numbers_keys: true,
        has_triggers: true,
        tells_time: true,
        runs_hosts: true,
        restarts: true,
    };

    /// BMv2's `simple_switch_grpc`, which runs v1model. A packet takes 10 to 20 µs of a processor, and waits for four
    /// threads in turn; these values are assumed, not measured.
    pub const SIMPLE_SWITCH_GRPC: TargetModel = TargetModel {
        loop_ns: 100_000,
        loop_rate_bps: 100_000_000,
        wakeup_ns: 20_000_000,
        recirculation_port: names::port::V1MODEL_HOLD,
        multicast_recirculates: true,
        delays_links: false,
        has_several_ways: true,
        marks_queues: false,
        units: 64,
        fault_takes: &[],
        draw_bits: 32,
        time_bits: 48,
        frame_values: FrameValues::V256,
        sum_children: MAX_CHILDREN,
        closes_chunks: true,
        sums_roce: true,
        guards_jobs: true,
        compares_deadlines: true,
        mends_checksums: true,
        frame_values_beside_faults: Some(FrameValues::V256),
        faults_before_sums: false,
        truncates: Some(Truncates::Extern),
        reorders: true,
        numbers_keys: true,
        has_triggers: true,
        tells_time: false,
        runs_hosts: true,
        restarts: false,
    };

    /// BMv2's `psa_switch`: as `simple_switch_grpc`, but its multicast reaches only ports 0 to 511.
    pub const PSA_SWITCH: TargetModel = TargetModel {
        recirculation_port: names::port::PSA_RECIRCULATE,
        multicast_recirculates: false,
        // Its program is PSA's; no p4c was available to compile the RoCE part.
        sums_roce: false,
        guards_jobs: false,
        truncates: None,
        tells_time: true,
        ..TargetModel::SIMPLE_SWITCH_GRPC
    };

    /// Tofino: its recirculation port carries 100 Gbit/s, and a pass through both pipelines takes less than a microsecond
    /// (assumed; not measured on a chip).
    pub const TOFINO: TargetModel = TargetModel {
        truncates: None,
        reorders: false,
        numbers_keys: false,
        has_triggers: false,
        loop_ns: 1_000,
        loop_rate_bps: 100_000_000_000,
        wakeup_ns: 0,
        recirculation_port: names::port::TOFINO_RECIRCULATE,
        multicast_recirculates: true,
        delays_links: false,
        has_several_ways: false,
        marks_queues: false,
        units: 1,
        fault_takes: &[],
        draw_bits: 16,
        time_bits: 32,
        frame_values: FrameValues::V32,
        // The width of a word of a stateful ALU.
        sum_children: 32,
        closes_chunks: false,
        sums_roce: false,
        guards_jobs: false,
        compares_deadlines: false,
        mends_checksums: false,
        frame_values_beside_faults: None,
        faults_before_sums: true,
        tells_time: true,
        runs_hosts: false,
        restarts: false,
    };

    /// Tofino 2, which has more stages.
    pub const TOFINO2: TargetModel = TargetModel {
        units: 8,
        fault_takes: &OF_TOFINO2,
        frame_values: FrameValues::V64,
        frame_values_beside_faults: Some(FrameValues::V32),
        ..TargetModel::TOFINO
    };
}
