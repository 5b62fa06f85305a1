//! Resources of one pipe of each Tofino chip. Sources: the public open bf-p4c and the vendor's public architecture papers.

/// A Tofino chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chip {
    /// Tofino, with 12 stages per pipe.
    Tofino,
    /// Tofino 2, with 20 stages per pipe.
    Tofino2,
}

/// The resources of one pipe. Ingress and egress share everything except the parsers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChipLimits {
    /// Name of the chip on the command line.
    pub name: &'static str,
    /// Number of match-action stages.
    pub stages: u64,
    /// Number of logical tables per stage.
    pub tables: u64,
    /// Maximum number of ternary tables among the logical tables of a stage.
    pub ternary_tables: u64,
    /// Number of SRAM blocks (1024 × 128 bits) per stage.
    pub sram: u64,
    /// Number of TCAM blocks (512 × 44 bits) per stage.
    pub tcam: u64,
    /// Number of map RAMs per stage; each SRAM block of a register, counter or meter needs one.
    pub map_ram: u64,
    /// Number of stateful or meter ALUs (for registers and meters) per stage.
    pub stateful_alus: u64,
    /// Number of statistics ALUs (for counters) per stage.
    pub statistics_alus: u64,
    /// Bytes that the exact crossbar of a stage carries: the inputs of its exact matches and hashes.
    pub exact_crossbar: u64,
    /// Bytes that the ternary crossbar of a stage carries: the inputs of its ternary matches.
    pub ternary_crossbar: u64,
    /// Number of 16-bit units of hash distribution per stage, which carries hash results to ALUs and memory addresses.
    pub hash_distribution: u64,
    /// Bits of all PHV containers (registers for packet fields) of a pipe, including tagalong and similar containers.
    pub phv_bits: u64,
    /// Number of 32-bit PHV containers (registers for packet fields) that ALUs can write.
    pub phv_words: u64,
    /// Number of TCAM rows of each parser.
    pub parser_rows: u64,
    /// Bits that one parser row matches on.
    pub parser_match_bits: u64,
    /// Bytes that one parser row extracts; `None` for Tofino 2, where the number is unknown.
    pub parser_extract_bytes: Option<u64>,
    /// Number of comparators of a stateful ALU.
    pub comparators: usize,
    /// Number of output values of a stateful ALU.
    pub outputs: usize,
    /// Maximum bits of a register cell; for a cell of two words, the bits of both together.
    pub cell_bits: u32,
    /// Number of packet words that a stateful ALU takes as inputs.
    pub inputs: usize,
}

/// Rows of an SRAM block; then the bits of an SRAM row, the rows of a TCAM block and the bits of a TCAM row.
pub(super) const SRAM_ROWS: u64 = 1024;
pub(super) const SRAM_BITS: u64 = 128;
pub(super) const TCAM_ROWS: u64 = 512;
pub(super) const TCAM_BITS: u64 = 44;
/// Maximum number of RegisterActions of one register; each is an instruction of its ALU.
pub(super) const REGISTER_ACTIONS: usize = 4;
/// Maximum number of constants outside −8 ..= 7 in a stateful ALU.
pub(super) const LARGE_CONSTANTS: usize = 4;
/// Maximum number of instructions of a stateful ALU that update one word.
pub(super) const UPDATES_OF_A_WORD: usize = 2;

impl Chip {
    /// The resources of one pipe of this chip.
    pub fn limits(self) -> ChipLimits {
        let tofino = ChipLimits {
            name: "tofino",
            stages: 12,
            tables: 16,
            ternary_tables: 8,
            sram: 80,
            tcam: 24,
            map_ram: 48,
            stateful_alus: 4,
            statistics_alus: 4,
            exact_crossbar: 128,
            ternary_crossbar: 66,
            hash_distribution: 6,
            phv_bits: (64 + 32) * 8 + (96 + 48) * 16 + (64 + 32) * 32,
            phv_words: 64,
            parser_rows: 256,
            parser_match_bits: 32,
            parser_extract_bytes: Some(28),
            comparators: 2,
            outputs: 1,
            cell_bits: 64,
            inputs: 2,
        };
        match self {
            Chip::Tofino => tofino,
            // Containers of Tofino 2 by kind, with 8, 16 and 32 bits: normal 48, 72, 48; mocha and dark 16, 24, 16 each.
            Chip::Tofino2 => ChipLimits {
                name: "tofino2",
                stages: 20,
                phv_bits: (48 + 32) * 8 + (72 + 48) * 16 + (48 + 32) * 32,
                phv_words: 48,
                parser_extract_bytes: None,
                comparators: 4,
                outputs: 4,
                cell_bits: 128,
                inputs: 4,
                ..tofino
            },
        }
    }
}
