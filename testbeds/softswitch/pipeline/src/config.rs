//! Configuration of a switch: ports, queues, recirculation link, limits, executor and seeds.

use crate::port_numbers::CPU_PORT;
use crate::queues::EgressQueues;
use std::collections::BTreeSet;

/// Maximum number of trace marks (parser states, tables and actions that packets met) kept until the caller takes them.
pub(crate) const TRACE_LIMIT: usize = 65_536;

/// Default maximum number of steps of a block: twice the steps of a loop over a `bit<16>`. With it, a program with an infinite
/// loop takes three milliseconds per packet. Iterations that move much data cost more steps.
const MAX_STEPS: u32 = 1 << 17;

/// The switch's existing ports. The CPU port and the recirculation port always exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ports {
    /// Every port number is a port.
    #[default]
    Any,
    /// Only the ports with these numbers exist.
    Only(BTreeSet<u32>),
}

/// The link that carries packets from the recirculation port back to the ingress parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecirculationLink {
    /// Time from sending a packet's last bit to the start of the parser, in nanoseconds; at least 1.
    pub latency_ns: u64,
    /// Rate of the link in bits per second; `None`: unlimited.
    pub rate_bps: Option<u64>,
    /// Maximum number of packets on the link; the switch drops and counts packets beyond it.
    pub queue: usize,
}

impl Default for RecirculationLink {
    fn default() -> Self {
        RecirculationLink {
            latency_ns: 20_000,
            rate_bps: None,
            queue: 16_384,
        }
    }
}

/// The executor of a program's blocks. All executors give the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Executor {
    /// The register machine that runs compiled code, for traffic.
    #[default]
    Fast,
    /// The interpreter that runs p4lang's IR directly, for comparison.
    Reference,
    /// Both executors, for tests: each block runs in both, from the same state. The register machine's results count, and
    /// [`crate::Switch::take_differences`] returns how the interpreter's results differ.
    Both,
}

/// Configuration of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Seed of the numbers of all `Random` externs.
    pub seed: u64,
    /// Properties of the link that carries packets from the recirculation port back to ingress.
    pub recirculation: RecirculationLink,
    /// Depth, scheduler and rates of the queues between ingress and egress.
    pub egress_queues: EgressQueues,
    /// Number of the port for packets to and from the controller.
    pub cpu_port: u32,
    /// The ports that exist from the start.
    pub ports: Ports,
    /// Maximum number of steps of one run of a block. A parser state or loop iteration takes one step, and one more for every
    /// 1,024 words of 8 bytes that its instructions read or write. A block that exceeds the maximum is aborted and counted
    /// ([`crate::Stats::out_of_steps`]).
    pub max_steps: u32,
    /// Maximum number of passes that a packet makes in a row by resubmission or egress clones; at more, the switch drops it.
    pub max_passes: u32,
    /// Maximum number of further passes (resubmissions, clones) that one event, such as a received packet, may cause.
    pub max_work: u32,
    /// Maximum number of sent packets that wait for the caller to fetch them.
    pub transmit_limit: usize,
    /// Whether the switch records the parser states, tables and actions that packets meet.
    pub trace: bool,
    /// The executor that runs the program's blocks.
    pub executor: Executor,
    /// With [`Executor::Reference`]: undefined bits hold a pattern with this seed, and [`crate::Switch::take_events`] reports
    /// decisions that read them. `None`: undefined bits are 0. Metadata that waits for a further pass or in an egress queue
    /// counts as defined from then on; metadata that PSA's ingress passes to egress at once keeps its undefined bits.
    pub poison: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            seed: 0,
            recirculation: RecirculationLink::default(),
            egress_queues: EgressQueues::default(),
            cpu_port: CPU_PORT,
            ports: Ports::Any,
            max_steps: MAX_STEPS,
            max_passes: 32,
            max_work: 1024,
            transmit_limit: 65_536,
            trace: false,
            executor: Executor::Fast,
            poison: None,
        }
    }
}
