//! Limits on the size of a program. Compiling any input, even a hostile one, ends within about a second and takes some hundred
//! MiB: each quantity that can grow faster than its source has a limit here and an error that names the limit.
//!
//! The limits are far above the needs of real programs: the largest of p4c's samples and of p4src stay below a tenth of each.

/// The limits on a program. There is one set for all users: a program that compiles somewhere compiles everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum nesting of `#include`: each level is a level of recursion.
    pub include_depth: usize,
    /// Maximum number of files read in total: in a chain of `n` files, each including the next one twice, 2ⁿ files are read.
    pub includes: u32,
    /// Maximum bytes of the preprocessor's input, and of its output: positions have 32 bits, and later phases need more memory.
    pub source_bytes: usize,
    /// Maximum bytes that macro expansion writes in total: `n` macros, each naming the previous one twice, expand to 2ⁿ words.
    pub expansion_bytes: usize,
    /// Maximum bytes of all intermediate macro expansions: macros may produce much text of which nothing remains.
    pub expansion_work: usize,
    /// Maximum nesting of macro calls in arguments of macro calls: each is a level of recursion.
    pub macro_depth: u32,
    /// Maximum nesting of an expression in `#if`.
    pub condition_depth: u32,
    /// Maximum number of lines of the preprocessed text: each line has an element in the map from lines to files.
    pub lines: usize,
    /// Maximum number of tokens of the preprocessed text: each token becomes a tree node of some hundred bytes.
    pub tokens: usize,
    /// Maximum digits of an integer literal: converting a decimal takes time quadratic in its digits.
    pub digits: usize,
    /// Maximum nesting of brackets, operators and blocks in the syntax tree: every traversal recurses. A chain of `else if`s,
    /// or of operators without parentheses between them, counts as flat.
    pub nesting: u32,
    /// Maximum nesting of expressions, types and instances during checking, also across declarations (struct in a struct).
    pub expanded_nesting: u32,
    /// Maximum number of parsers, of controls, of extern objects: a chain of `n` controls, each with two of the next, makes 2ⁿ.
    pub instances: usize,
    /// Maximum number of statements and expressions that are checked; each instance of a control is checked separately.
    pub work: u64,
    /// Maximum number of structs, headers and unions; a generic struct counts once per list of type arguments.
    pub structs: usize,
    /// Maximum number of names in a fully written-out type: a `typedef` for a pair of the previous `typedef` doubles it.
    pub type_nodes: usize,
    /// Maximum number of scalars in a value of one type: each struct with two fields of the previous struct type doubles it.
    pub type_leaves: u64,
    /// Maximum nesting of structs, stacks, tuples and new types: every walk from a value to its scalars recurses.
    pub type_nesting: u32,
    /// Maximum width W of `bit<W>` and `int<W>`, in bits: p4c's own default.
    pub width: u32,
    /// Maximum width W of `varbit<W>`, in bits: the longest payload that IP and UDP can carry.
    pub varbit_width: u32,
    /// Maximum number of elements of a header stack or array.
    pub stack: u32,
    /// Maximum bits of an `int` that constant folding produces: each multiplication of a number by itself doubles its length.
    pub integer_bits: u64,
    /// Maximum number of scalars that one `==` compares: the lowering emits one comparison for each scalar.
    pub compared_fields: usize,
    /// Maximum number of expressions in the whole program that the compiler generates for `==`, default values and constants of
    /// composite types. An access such as `a.b.c` counts once more for each field.
    pub parts: usize,
    /// Maximum number of diagnostics shown per severity; further diagnostics are only counted.
    pub diagnostics: usize,
}

/// The limits that the compiler applies to every program.
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
