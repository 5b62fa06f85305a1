//! How a program is run.

use crate::port_numbers::CPU_PORT;
use crate::queues::EgressQueues;
use std::collections::BTreeSet;

/// Marks kept until they are fetched.
pub(crate) const TRACE_LIMIT: usize = 65_536;

/// Twice what a loop over a `bit<16>` takes; a program that loops for ever takes three milliseconds a packet. Rounds are counted,
/// not what a round does: one that copies an array of a megabyte each time takes seconds.
const MAX_STEPS: u32 = 1 << 17;

/// Which ports exist. The CPU port and the recirculation port always do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Ports {
    /// Every number is a port.
    #[default]
    Any,
    /// These.
    Only(BTreeSet<u32>),
}

/// The link from the recirculation port back to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecirculationLink {
    /// From the last bit in to the parser; at least 1 ns.
    pub latency_ns: u64,
    /// `None`: unlimited.
    pub rate_bps: Option<u64>,
    /// Packets on the link at most; more are dropped and counted.
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

/// What runs a program's blocks. Both give the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Executor {
    /// A register machine, for traffic.
    #[default]
    Fast,
    /// A plain interpreter of the program as p4lang gives it, to be compared with.
    Reference,
    /// Both, block by block from the same state: for tests. The machine's results count, and what the other does
    /// differently is told by [`crate::Switch::take_differences`].
    Both,
}

/// How a program is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Of all `Random` externs.
    pub seed: u64,
    /// The recirculation port.
    pub recirculation: RecirculationLink,
    /// Between ingress and egress.
    pub egress_queues: EgressQueues,
    /// Where packets to and from the controller pass.
    pub cpu_port: u32,
    /// Which ports exist.
    pub ports: Ports,
    /// Parser states or loop rounds of one block, each once more for every 1,024 words of 8 bytes that its instructions read or
    /// write; a block that takes more is cut there and counted ([`crate::Stats::out_of_steps`]).
    pub max_steps: u32,
    /// Resubmissions and egress clones of one packet in sequence.
    pub max_passes: u32,
    /// Further passes that one event may cause.
    pub max_work: u32,
    /// Packets that wait to be sent.
    pub transmit_limit: usize,
    /// Records which states, tables and actions packets meet.
    pub trace: bool,
    /// What runs blocks.
    pub executor: Executor,
    /// With [`Executor::Reference`]: undefined bits hold a pattern of this seed, and what reads them to decide anything is
    /// told by [`crate::Switch::take_events`]. `None`: they are 0. What metadata carry into another pass or out of an egress queue
    /// counts as defined, but for what PSA's ingress gives egress at once.
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
