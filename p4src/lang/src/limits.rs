//! Limits on the size of a program. Compiling any input, even a hostile one, ends within about a second and takes some hundred
//! MiB: each quantity that can grow faster than its source has a limit here and an error that names the limit.
//!
//! The limits are far above the needs of real programs: the largest of p4c's samples and of p4src stay below a tenth of each.

/// The limits on a program. There is one set for all users: a program that compiles somewhere compiles everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Nesting of `#include`: each level is a level of recursion.
    pub include_depth: usize,
    /// Files read in total: `n` files that include each other twice make 2ⁿ.
    pub includes: u32,
    /// Bytes read, and bytes written by the preprocessor: spans have 32 bits, and later phases take a multiple of this size.
    pub source_bytes: usize,
    /// Bytes that macro expansion writes in total: `n` macros that each name the previous one twice make 2ⁿ.
    pub expansion_bytes: usize,
    /// Bytes that macro expansion produces in between: macros may produce much text and leave none of it.
    pub expansion_work: usize,
    /// Nesting of macro calls in arguments of macro calls: each is a level of recursion.
    pub macro_depth: u32,
    /// Nesting of an expression in `#if`.
    pub condition_depth: u32,
    /// Lines of the preprocessed text: each has an entry that maps it to its file.
    pub lines: usize,
    /// Tokens of the preprocessed text: each becomes a node of some hundred bytes.
    pub tokens: usize,
    /// Digits of an integer literal: converting a decimal takes time quadratic in its digits.
    pub digits: usize,
    /// Nesting of brackets, operators and blocks in the syntax tree: every traversal recurses. A chain of `else if`s, or of
    /// operators without parentheses between them, counts as flat.
    pub nesting: u32,
    /// Nesting of expressions, types and instances during checking, followed through declarations: a struct of a struct of a
    /// struct.
    pub expanded_nesting: u32,
    /// Parsers, controls and extern objects, each: `n` controls with two instances of the previous one make 2ⁿ.
    pub instances: usize,
    /// Statements and expressions over all instances; each instance is elaborated separately.
    pub work: u64,
    /// Structs, headers and unions; a generic one counts once per list of type arguments: `g1<T>` of a `g0<g0<T>>` doubles.
    pub structs: usize,
    /// Names in a fully expanded type: `typedef`s of tuples of tuples double.
    pub type_nodes: usize,
    /// Scalars in a value of one type: structs of structs double.
    pub type_leaves: u64,
    /// Nesting of structs, stacks, tuples and new types: every walk from a value to its scalars recurses.
    pub type_nesting: u32,
    /// Width W of `bit<W>` and `int<W>`, in bits: p4c's own default.
    pub width: u32,
    /// Width W of `varbit<W>`, in bits: the longest payload that IP and UDP can carry.
    pub varbit_width: u32,
    /// Elements of a header stack or array.
    pub stack: u32,
    /// Bits of an `int` that constant folding produces: products of products double.
    pub integer_bits: u64,
    /// Scalars that one `==` compares: the lowering emits one comparison for each.
    pub compared_fields: usize,
    /// Parts in total that the lowering emits for `==`, default values and constants of composite types: each can be as large
    /// as its type. A path to a part counts each of its steps.
    pub parts: usize,
    /// Diagnostics shown per severity; further ones are only counted.
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
