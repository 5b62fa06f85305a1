//! How much a program may be. Whatever somebody sends as a program, compiling it ends within a second or so and in some hundred
//! MiB: each thing that can grow faster than its source has a limit here, and an error that names it.
//!
//! The limits are far above what honest programs need: the largest of p4c's samples and of p4src stay below a tenth of each.

/// See the module. There is one set for all: a program that compiles somewhere compiles everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files inside files: each is a level of recursion.
    pub include_depth: usize,
    /// Files read in all: `n` files that include each other twice are 2ⁿ.
    pub includes: u32,
    /// Bytes read, and bytes written by the preprocessor: spans are of 32 bits, and everything after takes a multiple.
    pub source_bytes: usize,
    /// Bytes that macros put in their places in all: `n` macros that name the one before twice make 2ⁿ.
    pub expansion_bytes: usize,
    /// Bytes that macros hand on to each other until then: they may make much and leave nothing.
    pub expansion_work: usize,
    /// Calls inside arguments of calls of macros: each is a level of recursion.
    pub macro_depth: u32,
    /// Nesting of an expression behind `#if`.
    pub condition_depth: u32,
    /// Lines of the preprocessed text: each has a place that leads back to its file.
    pub lines: usize,
    /// Tokens of the preprocessed text: each becomes a node of some hundred bytes.
    pub tokens: usize,
    /// Digits of an integer: converting decimals takes their square.
    pub digits: usize,
    /// Nesting of the tree, brackets, operators and blocks: everything that walks it recurses. A chain of `else if`s, or of
    /// operators between which no parenthesis stands, is flat.
    pub nesting: u32,
    /// Nesting of expressions, types and instances while they are checked, through declarations: a struct of a struct of a
    /// struct.
    pub expanded_nesting: u32,
    /// Parsers, controls and extern objects, each: `n` controls with two instances of the one before are 2ⁿ.
    pub instances: usize,
    /// Statements and expressions over all instances, each of which is elaborated by itself.
    pub work: u64,
    /// Structs, headers and unions, each generic one for every list of types: `g1<T>` of a `g0<g0<T>>` doubles.
    pub structs: usize,
    /// Names in a type as it is written out: `typedef`s of tuples of tuples double.
    pub type_nodes: usize,
    /// Scalars in a value of a type: structs of structs double.
    pub type_leaves: u64,
    /// Structs, stacks, tuples and new types inside each other: whatever follows a value to its scalars recurses.
    pub type_nesting: u32,
    /// Of `bit<W>`, `int<W>`: p4c's own default.
    pub width: u32,
    /// Of `varbit<W>`: the longest that IP and UDP can carry.
    pub varbit_width: u32,
    /// Elements of a header stack or array.
    pub stack: u32,
    /// Bits of an `int` that constants make: products of products double.
    pub integer_bits: u64,
    /// Scalars that one `==` compares: it becomes a comparison for each.
    pub compared_fields: usize,
    /// Parts that `==`, default values and names of constants of composite types are written out to, over all: each may be
    /// as long as its type is large. A place counts with each step of its path.
    pub parts: usize,
    /// Diagnostics shown of each severity; the others are counted.
    pub diagnostics: usize,
}

/// The limits.
pub const LIMITS: Limits = Limits {
    include_depth: 64,
    includes: 4096,
    source_bytes: 16 << 20,
    expansion_bytes: 8 << 20,
    expansion_work: 32 << 20,
    macro_depth: 100,
    condition_depth: 64,
    lines: 2 << 20,
    tokens: 2 << 20,
    digits: 4096,
    nesting: 200,
    expanded_nesting: 256,
    instances: 16_384,
    work: 2_000_000,
    structs: 16_384,
    type_nodes: 4096,
    type_leaves: 1 << 18,
    type_nesting: 128,
    width: 2048,
    varbit_width: 65_535 * 8,
    stack: 65_536,
    integer_bits: 1 << 16,
    compared_fields: 4096,
    parts: 1 << 20,
    diagnostics: 100,
};
