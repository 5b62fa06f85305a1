//! The executable form: flat code over one frame of 64-bit slots.
//!
//! Loading inlines every call (P4 has no recursion), so that code contains only jumps. Constants are in the first slots
//! of the frame, so that every operand is a slot. Invariant of all code: **the fields of an invalid header are 0**, so
//! reads need no check, and writes to fields name the slot of their header's validity as a guard.

pub mod bindings;
pub mod block;
mod code;
pub mod codec;
pub mod lanes;
pub mod region;

pub use crate::bits::Slot;
pub use code::{
    Apply, Coalesced, Code, Element, ErrorCodes, HashPlan, Layout, Mark, ProfilePlan, Reached,
    WideOp, WidePlan,
};

/// A label during compilation, a position in the code afterwards.
pub type Target = u32;

/// Three operands of one width.
#[derive(Debug, Clone, Copy)]
pub struct T3 {
    /// Width in bits, at most 64.
    pub w: u8,
    pub d: Slot,
    pub a: Slot,
    pub b: Slot,
}

/// One instruction. Values are zero-extended bit patterns; `int<W>` in two's complement cut to W bits.
// The tag is a separate byte: hidden in a field, it costs two more instructions at each step.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub enum Op {
    Jump(Target),
    /// Jumps if `c` is not zero.
    JumpIf {
        c: Slot,
        to: Target,
    },
    /// Jumps if `c` is zero.
    JumpIfNot {
        c: Slot,
        to: Target,
    },
    /// Jumps if both are equal.
    JumpEq {
        a: Slot,
        b: Slot,
        to: Target,
    },
    /// Jumps if both differ.
    JumpNe {
        a: Slot,
        b: Slot,
        to: Target,
    },
    End,
    /// Starts a loop iteration or state, which takes some of the block's steps; jumps to `to` if fewer are left.
    Step {
        to: Target,
        cost: u32,
    },
    /// Counts a failed `assert` if `c` is zero.
    Assert {
        c: Slot,
    },
    /// Sets the parser error and jumps.
    Fail {
        error: Slot,
        to: Target,
    },

    /// Copies one slot.
    Mov {
        d: Slot,
        s: Slot,
    },
    /// Copies one slot, if the guard is not zero.
    MovIf {
        g: Slot,
        d: Slot,
        s: Slot,
    },
    /// Copies several slots.
    Copy {
        d: Slot,
        s: Slot,
        n: u32,
    },
    /// Copies several slots, if the guard is not zero.
    CopyIf {
        g: Slot,
        d: Slot,
        s: Slot,
        n: u32,
    },
    Zero {
        d: Slot,
        n: u32,
    },

    Add(T3),
    Sub(T3),
    Mul(T3),
    Div(T3),
    Mod(T3),
    AddSat(T3),
    SubSat(T3),
    /// Saturating addition, signed.
    AddSatS(T3),
    /// Saturating subtraction, signed.
    SubSatS(T3),
    And(T3),
    Or(T3),
    Xor(T3),
    Shl(T3),
    Shr(T3),
    /// Arithmetic shift to the right.
    Sar(T3),
    Eq(T3),
    Ne(T3),
    Lt(T3),
    Le(T3),
    /// Less than, signed.
    LtS(T3),
    /// Less than or equal, signed.
    LeS(T3),
    /// `!` on bool.
    Not {
        d: Slot,
        a: Slot,
    },
    BitNot {
        w: u8,
        d: Slot,
        a: Slot,
    },
    Neg {
        w: u8,
        d: Slot,
        a: Slot,
    },
    /// Takes `w` bits from bit `lo`.
    Slice {
        lo: u8,
        w: u8,
        d: Slot,
        a: Slot,
    },
    /// `d` = `a` with `w` bits from bit `lo` replaced by `s`.
    Insert {
        lo: u8,
        w: u8,
        d: Slot,
        a: Slot,
        s: Slot,
    },
    /// Sign-extends a value to a larger width.
    SignExtend {
        from: u8,
        to: u8,
        d: Slot,
        a: Slot,
    },
    /// `a ++ b`, with `b` of `wb` bits; at most 64 bits in total.
    Concat {
        wb: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// Whether `n` slots are pairwise equal.
    EqRange {
        d: Slot,
        a: Slot,
        b: Slot,
        n: u32,
    },
    /// An operation beyond 64 bits: index into [`Code::wide`].
    Wide(u32),

    /// Loads a stack element to `d`, zeroes if out of range: index into [`Code::elements`].
    LoadElement {
        e: u32,
        d: Slot,
    },
    /// Stores `s` to a stack element; has no effect if out of range.
    StoreElement {
        e: u32,
        s: Slot,
    },
    /// `push_front`
    Push {
        e: u32,
        n: u32,
    },
    /// `pop_front`
    Pop {
        e: u32,
        n: u32,
    },

    /// Extracts a header from the packet: index into [`Code::layouts`].
    Extract {
        layout: u32,
        d: Slot,
        to: Target,
    },
    /// Extracts a header with `bits` bits in its varbit field.
    ExtractVarbit {
        layout: u32,
        d: Slot,
        bits: Slot,
        to: Target,
    },
    /// Reads a value from the packet without advancing.
    Lookahead {
        layout: u32,
        d: Slot,
        to: Target,
    },
    /// Skips bits.
    Advance {
        bits: Slot,
        to: Target,
    },
    /// Length of the packet, in bytes.
    PacketLength {
        d: Slot,
    },
    /// Appends a header if it is valid.
    Emit {
        layout: u32,
        s: Slot,
    },
    /// Looks up a value set: index into [`Code::value_sets`].
    InValueSet {
        d: Slot,
        set: u32,
    },

    /// Applies a table: index into [`Code::applies`].
    Apply(u32),
    /// Reads a register: index into [`Code::registers`].
    RegisterRead {
        r: u32,
        d: Slot,
        index: Slot,
    },
    /// Writes a register: index into [`Code::registers`].
    RegisterWrite {
        r: u32,
        index: Slot,
        s: Slot,
    },
    /// Counts at an index of a counter.
    Count {
        counter: u32,
        index: Slot,
    },
    /// Counts in a table's direct counter, at the entry found last.
    CountDirect {
        table: u32,
    },
    /// Executes a table's direct meter, at the entry found last; otherwise as `Meter`.
    MeterDirect {
        table: u32,
        colour: Slot,
        d: Slot,
    },
    /// Executes a meter with the packet's previous color (0 green, 1 yellow, 2 red); the result is a color too.
    Meter {
        meter: u32,
        index: Slot,
        colour: Slot,
        d: Slot,
    },
    /// Computes a hash: index into [`Code::hashes`].
    Hash(u32),
    /// Resets a checksum unit to 0.
    ChecksumClear {
        unit: u32,
    },
    /// Adds data to an Internet checksum, or subtracts it: index into [`Code::layouts`].
    ChecksumAdd {
        unit: u32,
        layout: u32,
        s: Slot,
        subtract: bool,
    },
    /// Result of an Internet checksum.
    ChecksumGet {
        unit: u32,
        d: Slot,
    },
    /// Inner state of an Internet checksum.
    ChecksumState {
        unit: u32,
        d: Slot,
    },
    /// Sets the inner state of an Internet checksum.
    ChecksumSetState {
        unit: u32,
        s: Slot,
    },
    /// Appends data to a checksum unit of any algorithm.
    ChecksumUpdate {
        unit: u32,
        layout: u32,
        s: Slot,
    },
    /// Result of a checksum unit with any algorithm: index into [`Code::hashes`] for the algorithm.
    ChecksumFinish {
        unit: u32,
        hash: u32,
    },
    /// Draws a random number.
    Random {
        unit: u32,
        d: Slot,
    },
    /// Draws a random number between two others, inclusive; `low` if the range is empty.
    RandomRange {
        unit: u32,
        d: Slot,
        low: Slot,
        high: Slot,
    },
    /// Reduces the packet's length for the next counter or meter by this many bytes.
    AdjustBytes {
        s: Slot,
    },
    /// Records that a register which several calls may execute is executed, and counts the second time in a pass.
    RegisterOnce {
        unit: u32,
    },
    /// Reads the cell of a direct register at the entry found last, `words` long from word `offset`.
    DirectRead {
        table: u32,
        offset: u32,
        words: u32,
        d: Slot,
    },
    /// Writes the cell of a direct register at the entry found last, or the cells of all entries.
    DirectWrite {
        every: bool,
        table: u32,
        offset: u32,
        words: u32,
        s: Slot,
    },
    /// Whether the program permits to pick the member at an index of a selector's group.
    MemberRead {
        profile: u32,
        index: Slot,
        d: Slot,
    },
    /// Sets whether the program permits to pick the member.
    MemberWrite {
        profile: u32,
        index: Slot,
        s: Slot,
    },
    /// Requests a copy of another kind from a deparser (`externs::capture`): session, and data for the copy (no layout:
    /// none).
    Capture {
        kind: u8,
        session: Slot,
        layout: Option<u32>,
        s: Slot,
    },
    /// Executes a low-pass filter or random early detection: index into the filters.
    Filter {
        filter: u32,
        index: Slot,
        s: Slot,
        d: Slot,
    },
    /// Executes a direct filter at the entry found last of the table that names it.
    DirectFilter {
        filter: u32,
        s: Slot,
        d: Slot,
    },
    /// Executes a stateful ALU's math unit: index into [`Code::maths`]; the result is `w` bits wide.
    Math {
        unit: u32,
        w: u8,
        d: Slot,
        s: Slot,
    },
    /// The checksum of a unit without the bytes that the parser read from `start` on, not complemented.
    ChecksumResidual {
        unit: u32,
        start: Slot,
        d: Slot,
    },
    /// Ends a parser: sets a slot to 0, then writes its error to another one, or the same.
    Verdict {
        /// See [`crate::op::bindings::ParserResults`].
        error: Slot,
        /// See [`crate::op::bindings::ParserResults`].
        cleared: Slot,
    },
    /// Number of bits that the parser has read.
    Cursor {
        d: Slot,
    },
    /// Sends a digest message: index into [`Code::digests`].
    Digest {
        digest: u32,
        s: Slot,
    },
    /// Records a mark: index into [`Code::marks`].
    Trace(u32),
    /// Executes rolled-up instructions in their place, then jumps: index into [`Code::lanes`].
    Lanes {
        lanes: u32,
        to: Target,
    },
}

impl Op {
    /// The jump target, if any. A table application's targets are in [`Code::applies`].
    pub fn target(&self) -> Option<Target> {
        let mut op = *self;
        op.target_mut().copied()
    }

    /// Whether execution may continue with the next instruction.
    pub fn continues(&self) -> bool {
        !matches!(
            self,
            Op::Jump(_) | Op::Lanes { .. } | Op::Fail { .. } | Op::End | Op::Apply(_)
        )
    }

    /// The jump target, mutable.
    pub fn target_mut(&mut self) -> Option<&mut Target> {
        match self {
            Op::Jump(to)
            | Op::JumpIf { to, .. }
            | Op::JumpIfNot { to, .. }
            | Op::JumpEq { to, .. }
            | Op::JumpNe { to, .. }
            | Op::Step { to, .. }
            | Op::Fail { to, .. }
            | Op::Extract { to, .. }
            | Op::ExtractVarbit { to, .. }
            | Op::Lookahead { to, .. }
            | Op::Advance { to, .. }
            | Op::Lanes { to, .. } => Some(to),
            _ => None,
        }
    }
}
