//! What a block is run on, and how it ends, whatever runs it.

/// What a block is run on, apart from its parameters, which lie in the frame.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// Time.
    pub(crate) now_ns: u64,
    /// What a parser reads.
    pub(crate) packet: &'a [u8],
    /// Bits of it that were read before.
    pub(crate) cursor: usize,
    /// What a deparser appends to.
    pub(crate) out: &'a mut Vec<u8>,
}

/// How a block ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Bits read so far.
    pub(crate) cursor: usize,
    /// The parser's error; 0 is `NoError`.
    pub(crate) error: u64,
}
