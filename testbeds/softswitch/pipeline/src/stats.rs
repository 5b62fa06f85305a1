//! What became of packets.

/// Why a packet or copy went no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The program said so at the end of ingress.
    Ingress,
    /// The program said so at the end of egress.
    Egress,
    /// Sent to a port that does not exist.
    InvalidPort,
    /// Sent to a multicast group without copies.
    EmptyGroup,
    /// Cloned to a session without copies.
    NoSession,
    /// The recirculation port's queue was full.
    RecirculationFull,
    /// The queue of its port and class was full.
    QueueFull,
    /// Nobody fetched what was to be sent.
    TransmitFull,
    /// Resubmitted or cloned too often without leaving.
    PassLimit,
    /// One packet made too many others.
    WorkLimit,
    /// TNA: the ingress parser failed, and nobody looks at its error.
    Parser,
    /// TNA: an application of the packet generator was to start while so many made packets that none had room; counted once,
    /// however many packets it would have made.
    GeneratorFull,
}

impl DropReason {
    /// All of them, in order.
    pub const ALL: [DropReason; 12] = [
        DropReason::Ingress,
        DropReason::Egress,
        DropReason::InvalidPort,
        DropReason::EmptyGroup,
        DropReason::NoSession,
        DropReason::RecirculationFull,
        DropReason::QueueFull,
        DropReason::TransmitFull,
        DropReason::PassLimit,
        DropReason::WorkLimit,
        DropReason::Parser,
        DropReason::GeneratorFull,
    ];

    /// In a report.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::Ingress => "ingress",
            DropReason::Egress => "egress",
            DropReason::InvalidPort => "invalid_port",
            DropReason::EmptyGroup => "empty_group",
            DropReason::NoSession => "no_session",
            DropReason::RecirculationFull => "recirculation_full",
            DropReason::QueueFull => "queue_full",
            DropReason::TransmitFull => "transmit_full",
            DropReason::PassLimit => "pass_limit",
            DropReason::WorkLimit => "work_limit",
            DropReason::Parser => "parser",
            DropReason::GeneratorFull => "generator_full",
        }
    }
}

/// Counts since the program was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets handed to the switch.
    pub received: u64,
    /// Packets that the switch made: clones and mirrors, copies of a multicast beyond the first, generated ones. Received and
    /// made are as many as transmitted, dropped and waiting ([`crate::Switch::waiting`]).
    pub made: u64,
    /// Packets queued for a port.
    pub transmitted: u64,
    /// Passes through the recirculation port.
    pub recirculated: u64,
    /// Parsers that ended with an error; the packet goes on, as PSA says.
    pub parser_errors: u64,
    /// Blocks that ran out of steps.
    pub out_of_steps: u64,
    /// Calls of `assert` with false.
    pub failed_assertions: u64,
    /// TNA: executions of a register beyond the first in one pass, which no stateful ALU can do.
    pub register_conflicts: u64,
    drops: [u64; DropReason::ALL.len()],
}

impl Stats {
    /// Packets and copies dropped for that reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// All reasons with their counts.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.into_iter().map(|r| (r, self.dropped(r)))
    }

    /// A packet becomes so many copies; a list without any is a packet that is dropped, and counted there.
    pub(crate) fn copied(&mut self, copies: usize) {
        self.made += (copies as u64).saturating_sub(1);
    }

    /// So many starts of the packet generator make nothing: as if each had made a packet that was dropped.
    pub(crate) fn lose_starts(&mut self, starts: u64) {
        self.made += starts;
        self.drops[DropReason::GeneratorFull as usize] += starts;
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }
}
