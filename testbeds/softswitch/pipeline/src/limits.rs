//! How much a program may ask of a switch. Whatever p4lang accepts, loading it ends within a second or so and in some hundred
//! MiB: each thing that can be large has a limit here, and an error that names it and its place.
//!
//! The limits are far above what honest programs need: p4src and the largest of p4c's samples stay below a tenth of each. What a
//! program's text can be is limited by [`p4lang::LIMITS`].

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the cells of all registers, counters, meters and filters, those of a Tofino in all pipes.
    pub cells_bytes: u64,
    /// Entries that a table may be declared with. Memory is taken as entries are written.
    pub entries: u64,
    /// Members that an action profile may be declared with, or weights of all groups of a selector.
    pub members: u64,
    /// Tables.
    pub tables: usize,
    /// Slots of variables, of 8 bytes: each worker has a frame of as many.
    pub slots: u32,
    /// Slots of values that go to or come from bytes (headers, what is hashed, digests, elements of registers), counted at each place.
    pub moved_slots: u32,
    /// Different constants, in words of 8 bytes.
    pub constants: u32,
    /// Instructions: calls are inlined, so that functions that call the one before twice double.
    pub instructions: usize,
    /// Words of 8 bytes, one a field at least, of digest messages that wait to be fetched.
    pub digest_words: usize,
}

/// The limits.
pub const LIMITS: Limits = Limits {
    cells_bytes: 128 << 20,
    entries: 1 << 24,
    members: 1 << 20,
    tables: 4096,
    slots: 1 << 20,
    moved_slots: 1 << 20,
    constants: 1 << 14,
    instructions: 1 << 20,
    digest_words: 1 << 20,
};

/// Bytes of a pipe's buffer.
pub(crate) const GENERATOR_BUFFER: usize = 16 * 1024;
/// Batches of a start, packets of a batch at most: their numbers have 16 bits.
pub(crate) const GENERATOR_BATCHES: u32 = 1 << 16;
