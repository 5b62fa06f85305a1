//! Limits on the resources of a program. Whatever p4lang accepts, loading it takes about a second at most and some
//! hundred MiB: each resource that can grow has a limit here, and an error that names it and its position.
//!
//! The limits are far above the needs of real programs: p4src and the largest of p4c's samples stay below a tenth of
//! each. [`p4lang::LIMITS`] limits a program's text.

/// Limits on the resources of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size in bytes of the cells of all registers, counters, meters and filters; on a Tofino, summed over all pipes.
    pub cells_bytes: u64,
    /// Maximum declared size of a table, in entries. The switch allocates memory only as entries are written.
    pub entries: u64,
    /// Maximum declared size: of an action profile in members, of a selector in the sum of the weights of all its groups.
    pub members: u64,
    /// Maximum number of tables.
    pub tables: usize,
    /// Maximum number of 8-byte slots for the program's variables. Every executor has an array of so many slots, the frame.
    pub slots: u32,
    /// Maximum number of 8-byte slots that the code copies to or from bytes (headers, hashed data, digests, register elements).
    /// A slot counts again at each place in the code that copies it.
    pub moved_slots: u32,
    /// Maximum number of words of 8 bytes of the program's distinct constants.
    pub constants: u32,
    /// Maximum number of instructions: calls are inlined, so a chain of functions that each call the previous one twice grows
    /// exponentially.
    pub instructions: usize,
    /// Maximum size of the digest messages that wait to be fetched, in words of 8 bytes, at least one per field.
    pub digest_words: usize,
}

/// The limits on a program's resources that the switch applies.
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

/// Size of the packet generator's buffer in each pipe of a Tofino, in bytes.
pub(crate) const GENERATOR_BUFFER: usize = 16 * 1024;
/// Maximum number of batches per start of a packet generator's application, and of packets per batch: both have 16 bits.
pub(crate) const GENERATOR_BATCHES: u32 = 1 << 16;
