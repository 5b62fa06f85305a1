//! Statistics of a switch: packets received, made, transmitted and dropped, by reason, and failures of blocks.

/// The reason why a packet or copy was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The program dropped the packet at the end of ingress.
    Ingress,
    /// The program dropped the packet at the end of egress.
    Egress,
    /// The program sent the packet to a port that does not exist.
    InvalidPort,
    /// The program sent the packet to a multicast group without replicas.
    EmptyGroup,
    /// The program cloned the packet to a session without replicas.
    NoSession,
    /// The queue of the recirculation port was full.
    RecirculationFull,
    /// The egress queue of the packet's port and class was full.
    QueueFull,
    /// The limit of packets to be sent was reached, because the driver did not fetch them in time.
    TransmitFull,
    /// The packet was resubmitted or cloned too many times without leaving the switch.
    PassLimit,
    /// The packet caused more further passes than [`crate::Config::max_work`].
    WorkLimit,
    /// TNA: the ingress parser failed, and the program does not read its error.
    Parser,
    /// TNA: an application of the packet generator could not start, because too many were active. Counts as one packet.
    GeneratorFull,
}

impl DropReason {
    /// All reasons, in the order of the statistics.
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

    /// Name of the reason in reports.
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

/// Packet and error counts of a switch since the program was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of packets that the caller handed to the switch.
    pub received: u64,
    /// Packets made by the switch: clones and mirrors, copies of a multicast beyond the first, generated ones. The sum of
    /// received and made equals the sum of transmitted, dropped and waiting ([`crate::Switch::waiting`]).
    pub made: u64,
    /// Packets that the switch queued for transmission from a port.
    pub transmitted: u64,
    /// Passes of packets through the recirculation port.
    pub recirculated: u64,
    /// Number of parser runs that ended with an error; the packet continues, as PSA demands.
    pub parser_errors: u64,
    /// Number of block runs that exceeded the step limit.
    pub out_of_steps: u64,
    /// Number of failed calls of `assert`.
    pub failed_assertions: u64,
    /// TNA: executions of a register beyond the first in a pass, which no stateful ALU can do.
    pub register_conflicts: u64,
    drops: [u64; DropReason::ALL.len()],
}

impl Stats {
    /// Number of packets and copies dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// All drop reasons, each with its number of dropped packets and copies.
    pub fn drops(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.into_iter().map(|r| (r, self.dropped(r)))
    }

    /// Counts all copies of a packet but the first as made by the switch. If there are none, the caller counts a drop.
    pub(crate) fn copied(&mut self, copies: usize) {
        self.made += (copies as u64).saturating_sub(1);
    }

    /// Counts `starts` lost starts of the packet generator, each as one packet that was made and dropped.
    pub(crate) fn lose_starts(&mut self, starts: u64) {
        self.made += starts;
        self.drops[DropReason::GeneratorFull as usize] += starts;
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }
}
