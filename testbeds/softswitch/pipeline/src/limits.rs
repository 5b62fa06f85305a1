//! Limits on the resources of a program. Whatever p4lang accepts, loading it takes about a second at most and some
//! hundred MiB: each resource that can grow has a limit here, and an error that names it and its position.
//!
//! The limits are far above the needs of real programs: p4src and the largest of p4c's samples stay below a tenth of
//! each. [`p4lang::LIMITS`] limits a program's text.

/// Limits on the resources of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the cells of all registers, counters, meters and filters; on a Tofino, summed over all pipes.
    pub cells_bytes: u64,
    /// Maximum declared size of a table, in entries. Memory is allocated as entries are written.
    pub entries: u64,
    /// Maximum declared size of an action profile, in members; or of a selector, in weights of all groups.
    pub members: u64,
    /// Number of tables.
    pub tables: usize,
    /// Slots of variables, of 8 bytes: each worker has a frame of that size.
    pub slots: u32,
    /// Slots of values that are moved to or from bytes (headers, hashed data, digests, elements of registers), counted at
    /// each use.
    pub moved_slots: u32,
    /// Distinct constants, in words of 8 bytes.
    pub constants: u32,
    /// Number of instructions: calls are inlined, so a chain of functions that each call the previous one twice grows
    /// exponentially.
    pub instructions: usize,
    /// Words of 8 bytes, at least one per field, of digest messages that wait to be fetched.
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

/// Size of a pipe's packet generator buffer, in bytes.
pub(crate) const GENERATOR_BUFFER: usize = 16 * 1024;
/// Maximum number of batches per start and of packets per batch: their numbers have 16 bits.
pub(crate) const GENERATOR_BATCHES: u32 = 1 << 16;
