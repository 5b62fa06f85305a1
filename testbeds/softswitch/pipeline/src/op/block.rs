//! Inputs and results of the run of a block, in any executor.

/// Inputs of a block, other than its parameters, which are in the frame.
#[derive(Debug)]
pub(crate) struct BlockRun<'a> {
    /// Time of the run in nanoseconds.
    pub(crate) now_ns: u64,
    pub(crate) packet: &'a [u8],
    /// Number of bits of the packet that earlier blocks have read.
    pub(crate) cursor: usize,
    /// Bytes of the outgoing packet, to which a deparser appends.
    pub(crate) out: &'a mut Vec<u8>,
}

/// Results of a block's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockEnd {
    /// Number of bits of the packet that the parser has read.
    pub(crate) cursor: usize,
    /// The number of the parser's error; 0 is `NoError`.
    pub(crate) error: u64,
}
