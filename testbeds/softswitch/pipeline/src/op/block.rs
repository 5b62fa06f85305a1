//! Inputs and results of a block's run, for every executor.

/// Inputs of a block, other than its parameters, which are in the frame.
#[derive(Debug)]
pub(crate) struct BlockRun<'a> {
    /// Current time in nanoseconds.
    pub(crate) now_ns: u64,
    pub(crate) packet: &'a [u8],
    /// Number of bits of the packet that were read before.
    pub(crate) cursor: usize,
    /// The output to which a deparser appends.
    pub(crate) out: &'a mut Vec<u8>,
}

/// Result of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockEnd {
    /// Number of bits read so far.
    pub(crate) cursor: usize,
    /// The parser's error; 0 is `NoError`.
    pub(crate) error: u64,
}
