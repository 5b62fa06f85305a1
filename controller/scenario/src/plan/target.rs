//! What a plan assumes of a switch.

use parser_gen::FrameValues;
use serde::Serialize;

use crate::job::MAX_CHILDREN;
use crate::names;

/// What the plan assumes of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TargetModel {
    /// One pass over the recirculation port.
    pub loop_ns: u64,
    /// What the recirculation port carries.
    pub loop_rate_bps: u64,
    /// What the machine may add to any deadline: 0 in hardware, the scheduler's wake-up in software.
    pub wakeup_ns: u64,
    /// The recirculation port's number.
    pub recirculation_port: u32,
    /// Whether multicast reaches the recirculation port, as duplicates need (docs/decisions/0003).
    pub multicast_recirculates: bool,
    /// Whether its ports hold frames for as long as their links take.
    pub delays_links: bool,
    /// Whether its program can share flows out over several ways: Tofino's knows one.
    pub has_several_ways: bool,
    /// Whether its ports mark (ECN) frames that find a long queue, as a scenario asks.
    pub marks_queues: bool,
    /// How many faults have room in a direction.
    pub units: usize,
    /// What one fault takes beside that, in thousandths of what the chip has: an average, as measured.
    pub fault_takes: &'static [(&'static str, u64)],
    /// Bits of a draw: a probability is a multiple of 2 to minus this.
    pub draw_bits: u32,
    /// Bits in which it reckons with time.
    pub time_bits: u32,
    /// The largest aggregation frames that it sums in one pass.
    pub frame_values: FrameValues,
    /// So many children a switch can sum: the bits of its bitmap.
    pub sum_children: usize,
    /// Whether a slot has room for what closes it before all have contributed (`CLOSES` in its slots.p4).
    pub closes_chunks: bool,
    /// Whether its program sums RoCEv2: it has to compute a CRC-32 over all of a packet, before and behind the sum.
    pub sums_roce: bool,
    /// Whether its program asks before a sum who may speak for a job, and how much: Tofino has no stage left for it, and the
    /// Thrift of `psa_switch` is not spoken to of meters.
    pub guards_jobs: bool,
    /// Whether a register can hold a deadline and be compared with it: Tofino's stateful ALU cannot, where clocks wrap.
    pub compares_deadlines: bool,
    /// Whether checksums over what changes can be mended.
    pub mends_checksums: bool,
    /// The same where faults act, too; `None` if a sum leaves them no more than the first stage.
    pub frame_values_beside_faults: Option<FrameValues>,
    /// Whether a fault that can stand before a sum does: one pass less.
    pub faults_before_sums: bool,
    /// Whether it has room for keys whose packets are numbered each for itself.
    pub numbers_keys: bool,
    /// Whether packets can wait for others: one that comes back reads a register that others write.
    pub reorders: bool,
    /// Whether faults can wait for triggers.
    pub has_triggers: bool,
    /// How it cuts packets short; `None` if it cannot.
    pub truncates: Option<Truncates>,
    /// Whether a controller can ask it for its clock, as leases need.
    pub tells_time: bool,
    /// Whether `weir run` starts the programs of hosts, and the switches.
    pub runs_hosts: bool,
    /// Whether a switch of this kind can be started again while others run.
    pub restarts: bool,
}

/// What one fault of eight takes of a Tofino 2 (docs/tofino.md). Stages are what `units` says: faults stand side by side.
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

/// What cuts packets short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Truncates {
    /// Clone sessions do, one for each length.
    Clones,
    /// An extern of the architecture's.
    Extern,
}

impl TargetModel {
    /// What these bits take of the recirculation port while they are held: each passes it once a loop.
    #[must_use]
    pub fn looping_bps(&self, held_bits: u64) -> u64 {
        let bps = u128::from(held_bits) * 1_000_000_000 / u128::from(self.loop_ns.max(1));
        u64::try_from(bps).unwrap_or(u64::MAX)
    }

    /// The embedded switch with its default recirculation link.
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

    /// BMv2's `simple_switch_grpc`, which runs v1model. A packet takes 10 to 20 µs of a processor, and waits for four threads
    /// in turn: assumed, not measured.
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

    /// BMv2's `psa_switch`: the same machinery, but its multicast knows the ports 0 to 511 only.
    pub const PSA_SWITCH: TargetModel = TargetModel {
        recirculation_port: names::port::PSA_RECIRCULATE,
        multicast_recirculates: false,
        // Its text is PSA's; no p4c was there to compile it.
        sums_roce: false,
        guards_jobs: false,
        truncates: None,
        tells_time: true,
        ..TargetModel::SIMPLE_SWITCH_GRPC
    };

    /// Tofino: its recirculation port carries 100 Gbit/s, and a pass through both pipelines takes under a microsecond
    /// (assumed; no chip was measured).
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
        // A word of a stateful ALU.
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

    /// Tofino 2: more stages.
    pub const TOFINO2: TargetModel = TargetModel {
        units: 8,
        fault_takes: &OF_TOFINO2,
        frame_values: FrameValues::V64,
        frame_values_beside_faults: Some(FrameValues::V32),
        ..TargetModel::TOFINO
    };
}
