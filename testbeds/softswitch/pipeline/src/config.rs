//! Configuration of a switch.

use crate::port_numbers::CPU_PORT;
use crate::queues::EgressQueues;
use std::collections::BTreeSet;

/// Maximum number of marks kept until they are fetched.
pub(crate) const TRACE_LIMIT: usize = 65_536;

/// Default step limit: twice the steps of a loop over a `bit<16>`; a program with an infinite loop takes three
/// milliseconds per packet. Steps count iterations, not their work: iterations that copy an array of a megabyte each take
/// seconds.
const MAX_STEPS: u32 = 1 << 17;

/// The existing ports. The CPU port and the recirculation port always exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ports {
    /// Every number is a port.
    #[default]
    Any,
    /// Only these ports exist.
    Only(BTreeSet<u32>),
}

/// The link from the recirculation port back to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecirculationLink {
    /// Time from the last bit sent to the start of the parser, in nanoseconds; at least 1.
    pub latency_ns: u64,
    /// Rate in bits per second; `None`: unlimited.
    pub rate_bps: Option<u64>,
    /// Maximum number of packets on the link; further ones are dropped and counted.
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

/// The executor of a program's blocks. All give the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Executor {
    /// A register machine, for traffic.
    #[default]
    Fast,
    /// A direct interpreter of p4lang's IR, for comparison.
    Reference,
    /// Both executors, block by block from the same state: for tests. The machine's results count, and
    /// [`crate::Switch::take_differences`] returns the interpreter's differences.
    Both,
}

/// Configuration of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Seed of all `Random` externs.
    pub seed: u64,
    /// The recirculation port.
    pub recirculation: RecirculationLink,
    /// The queues between ingress and egress.
    pub egress_queues: EgressQueues,
    /// Port of packets to and from the controller.
    pub cpu_port: u32,
    /// The existing ports.
    pub ports: Ports,
    /// Maximum number of parser states or loop iterations in a block, each counted once more for every 1,024 words of 8
    /// bytes that its instructions read or write; a block that exceeds it is aborted and counted
    /// ([`crate::Stats::out_of_steps`]).
    pub max_steps: u32,
    /// Maximum number of consecutive resubmissions and egress clones of a packet.
    pub max_passes: u32,
    /// Maximum number of further passes that one event may cause.
    pub max_work: u32,
    /// Maximum number of packets that wait to be sent.
    pub transmit_limit: usize,
    /// Whether to record the states, tables and actions of packets.
    pub trace: bool,
    /// The executor of blocks.
    pub executor: Executor,
    /// With [`Executor::Reference`]: undefined bits hold a pattern with this seed, and [`crate::Switch::take_events`]
    /// reports decisions that read them. `None`: undefined bits are 0. Metadata that is carried into another pass or out
    /// of an egress queue counts as defined, except for metadata that PSA's ingress passes to egress at once.
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
