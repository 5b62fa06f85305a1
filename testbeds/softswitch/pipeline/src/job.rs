//! Packets that wait for a pass through the blocks of a pipeline.

/// The path by which a packet came to a parser, as in `PSA_PacketPath_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Path {
    #[default]
    Normal,
    Resubmit,
    Recirculate,
    Unicast,
    Multicast,
    CloneI2e,
    CloneE2e,
}

/// A packet that waits for a pass through ingress or egress.
#[derive(Debug, Default)]
pub(crate) struct Job {
    pub path: Path,
    pub port: u32,
    pub instance: u16,
    pub class: u64,
    /// Number of passes since the packet came from a port or the recirculation port.
    pub passes: u32,
    pub bytes: Vec<u8>,
    pub meta: Vec<u64>,
}
