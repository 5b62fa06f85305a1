//! The instruction set of a compiled program: flat code over one frame of 64-bit slots.
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

/// Jump target: a label during compilation, an index into the code's instructions afterwards.
pub type Target = u32;

/// Destination `d` and operands `a`, `b` of an operation, all of one width.
#[derive(Debug, Clone, Copy)]
pub struct T3 {
    /// Width of destination and operands in bits, at most 64.
    pub w: u8,
    pub d: Slot,
    pub a: Slot,
    pub b: Slot,
}

/// One instruction. Values are zero-extended bit patterns; `int<W>` is in two's complement, cut to W bits.
// The tag is a separate byte: hidden in a field, it costs two more instructions at each step.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub enum Op {
    Jump(Target),
    /// Jumps to `to` if slot `c` is not zero.
    JumpIf {
        c: Slot,
        to: Target,
    },
    /// Jumps to `to` if slot `c` is zero.
    JumpIfNot {
        c: Slot,
        to: Target,
    },
    /// Jumps to `to` if slots `a` and `b` are equal.
    JumpEq {
        a: Slot,
        b: Slot,
        to: Target,
    },
    /// Jumps to `to` if slots `a` and `b` differ.
    JumpNe {
        a: Slot,
        b: Slot,
        to: Target,
    },
    End,
    /// Starts a loop iteration or parser state, which uses up `cost` steps of the block; jumps to `to` if fewer are left.
    Step {
        to: Target,
        cost: u32,
    },
    /// Counts a failed `assert` if slot `c` is zero.
    Assert {
        c: Slot,
    },
    /// Sets the parser error to the value of a slot and jumps to `to`.
    Fail {
        error: Slot,
        to: Target,
    },

    /// Copies slot `s` to `d`.
    Mov {
        d: Slot,
        s: Slot,
    },
    /// Copies slot `s` to `d` if slot `g`, the guard, is not zero.
    MovIf {
        g: Slot,
        d: Slot,
        s: Slot,
    },
    /// Copies `n` consecutive slots from `s` on to `d`.
    Copy {
        d: Slot,
        s: Slot,
        n: u32,
    },
    /// Copies `n` consecutive slots from `s` on to `d` if slot `g`, the guard, is not zero.
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
    /// Saturating addition of signed values.
    AddSatS(T3),
    /// Saturating subtraction of signed values.
    SubSatS(T3),
    And(T3),
    Or(T3),
    Xor(T3),
    Shl(T3),
    Shr(T3),
    /// Arithmetic shift of `a` to the right by `b` bits.
    Sar(T3),
    Eq(T3),
    Ne(T3),
    Lt(T3),
    Le(T3),
    /// Sets `d` to whether `a` < `b` as signed values.
    LtS(T3),
    /// Sets `d` to whether `a` ≤ `b` as signed values.
    LeS(T3),
    /// Sets `d` to the logical negation (`!`) of the bool `a`.
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
    /// Sets `d` to the `w` bits of `a` from bit `lo` on; bit 0 is the lowest.
    Slice {
        lo: u8,
        w: u8,
        d: Slot,
        a: Slot,
    },
    /// Sets `d` to `a` with its `w` bits from bit `lo` on replaced by `s`; bit 0 is the lowest.
    Insert {
        lo: u8,
        w: u8,
        d: Slot,
        a: Slot,
        s: Slot,
    },
    /// Sign-extends `a` from width `from` to the larger width `to`, in bits.
    SignExtend {
        from: u8,
        to: u8,
        d: Slot,
        a: Slot,
    },
    /// Sets `d` to `a ++ b`, where `b` has `wb` bits; at most 64 bits in total.
    Concat {
        wb: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// Sets `d` to whether the `n` slots from `a` on equal those from `b` on.
    EqRange {
        d: Slot,
        a: Slot,
        b: Slot,
        n: u32,
    },
    /// An operation on values of more than 64 bits: index of its plan in [`Code::wide`].
    Wide(u32),

    /// Loads the header stack element `e`, an index into [`Code::elements`], to `d`; zeroes if the stack has no such element.
    LoadElement {
        e: u32,
        d: Slot,
    },
    /// Stores `s` to the header stack element `e`, an index into [`Code::elements`], if the stack has such an element.
    StoreElement {
        e: u32,
        s: Slot,
    },
    /// `push_front(n)` on a header stack
    Push {
        e: u32,
        n: u32,
    },
    /// `pop_front(n)` on a header stack
    Pop {
        e: u32,
        n: u32,
    },

    /// Extracts a header (`layout`: index into [`Code::layouts`]) from the packet to `d`; jumps to `to` on an error.
    Extract {
        layout: u32,
        d: Slot,
        to: Target,
    },
    /// Extracts a header whose varbit field takes `bits` bits; jumps to `to` on an error.
    ExtractVarbit {
        layout: u32,
        d: Slot,
        bits: Slot,
        to: Target,
    },
    /// Reads a value from the packet without moving the parser's position; jumps to `to` if the packet is too short.
    Lookahead {
        layout: u32,
        d: Slot,
        to: Target,
    },
    /// Moves the parser's position by the number of bits in slot `bits`; jumps to `to` if the packet is too short.
    Advance {
        bits: Slot,
        to: Target,
    },
    /// Sets `d` to the length of the packet, in bytes.
    PacketLength {
        d: Slot,
    },
    /// Appends the header at `s` to the outgoing packet, if the header is valid.
    Emit {
        layout: u32,
        s: Slot,
    },
    /// Sets `d` to whether a parser's value set contains the key; `set`: index into [`Code::value_sets`].
    InValueSet {
        d: Slot,
        set: u32,
    },

    /// Applies a table. The number is the index of this application in [`Code::applies`].
    Apply(u32),
    /// Reads cell `index` of register `r`, an index into [`Code::registers`], to `d`.
    RegisterRead {
        r: u32,
        d: Slot,
        index: Slot,
    },
    /// Writes `s` to cell `index` of register `r`, an index into [`Code::registers`].
    RegisterWrite {
        r: u32,
        index: Slot,
        s: Slot,
    },
    /// Counts the packet in cell `index` of an indexed counter.
    Count {
        counter: u32,
        index: Slot,
    },
    /// Counts the packet in a table's direct counter, at the table entry found last.
    CountDirect {
        table: u32,
    },
    /// Executes a table's direct meter at the table entry found last. The slots `colour` and `d` are those of `Meter`.
    MeterDirect {
        table: u32,
        colour: Slot,
        d: Slot,
    },
    /// Executes cell `index` of a meter with the packet's previous color (0 green, 1 yellow, 2 red); sets `d` to the new color.
    Meter {
        meter: u32,
        index: Slot,
        colour: Slot,
        d: Slot,
    },
    /// Computes a hash. The number is the index of its plan in [`Code::hashes`].
    Hash(u32),
    /// Resets a checksum unit, the state of one checksum object for the current packet, to 0.
    ChecksumClear {
        unit: u32,
    },
    /// Adds the data at `s` to an Internet checksum unit, or subtracts it. `layout` of the data: index into [`Code::layouts`].
    ChecksumAdd {
        unit: u32,
        layout: u32,
        s: Slot,
        subtract: bool,
    },
    /// Sets `d` to the result of an Internet checksum unit.
    ChecksumGet {
        unit: u32,
        d: Slot,
    },
    /// Sets `d` to the inner state of an Internet checksum unit, for `get_state`.
    ChecksumState {
        unit: u32,
        d: Slot,
    },
    /// Sets the inner state of an Internet checksum unit to `s`, for `set_state`.
    ChecksumSetState {
        unit: u32,
        s: Slot,
    },
    /// Appends the data at slot `s` to the state of a checksum object of any algorithm.
    ChecksumUpdate {
        unit: u32,
        layout: u32,
        s: Slot,
    },
    /// Computes the result of a checksum unit of any algorithm; `hash`: index of its algorithm in [`Code::hashes`].
    ChecksumFinish {
        unit: u32,
        hash: u32,
    },
    /// Sets `d` to the next number of a random number generator.
    Random {
        unit: u32,
        d: Slot,
    },
    /// Sets `d` to a random number from `low` to `high`, inclusive; to `low` if the range is empty.
    RandomRange {
        unit: u32,
        d: Slot,
        low: Slot,
        high: Slot,
    },
    /// Reduces the packet's length, as the next counter or meter counts it, by the number of bytes in slot `s`.
    AdjustBytes {
        s: Slot,
    },
    /// Records that the packet executed a register that it may execute several times; counts all executions but the first.
    RegisterOnce {
        unit: u32,
    },
    /// Reads a direct register's cell to `d`: `words` words, from word `offset` of the data of the table entry found last.
    DirectRead {
        table: u32,
        offset: u32,
        words: u32,
        d: Slot,
    },
    /// Writes a direct register's cell in the data of the table entry found last, or with `every`, of all entries of the table.
    DirectWrite {
        every: bool,
        table: u32,
        offset: u32,
        words: u32,
        s: Slot,
    },
    /// Sets `d` to whether the program lets a selector pick the group member at `index`.
    MemberRead {
        profile: u32,
        index: Slot,
        d: Slot,
    },
    /// Sets whether the program lets a selector pick the group member at `index`.
    MemberWrite {
        profile: u32,
        index: Slot,
        s: Slot,
    },
    /// In a deparser: requests a mirrored, resubmitted or generated packet (`kind`: see `externs::capture`) with the data at
    /// slot `s`. `layout`: the data's layout; `None`: no data.
    Capture {
        kind: u8,
        session: Slot,
        layout: Option<u32>,
        s: Slot,
    },
    /// Executes cell `index` of a low-pass filter or random early detection; `filter`: index into the state's filters.
    Filter {
        filter: u32,
        index: Slot,
        s: Slot,
        d: Slot,
    },
    /// Executes a direct filter at the entry found last in the table that names the filter.
    DirectFilter {
        filter: u32,
        s: Slot,
        d: Slot,
    },
    /// Sets `d` to the result of a stateful ALU's math unit, `w` bits wide; `unit`: index into [`Code::maths`].
    Math {
        unit: u32,
        w: u8,
        d: Slot,
        s: Slot,
    },
    /// Sets `d` to a checksum unit's sum, not complemented, without the bytes that the parser read from position `start` on.
    ChecksumResidual {
        unit: u32,
        start: Slot,
        d: Slot,
    },
    /// Ends a parser: first sets slot `cleared` to 0, then slot `error` to the parser's error. Both may be the same slot.
    Verdict {
        /// Slot of the parser's error: see [`crate::op::bindings::ParserResults`].
        error: Slot,
        /// Slot that is set to 0: see [`crate::op::bindings::ParserResults`].
        cleared: Slot,
    },
    /// Sets `d` to the number of bits that the parser has read.
    Cursor {
        d: Slot,
    },
    /// Sends the values at `s` as a digest message; `digest`: index into [`Code::digests`].
    Digest {
        digest: u32,
        s: Slot,
    },
    /// Records a trace mark (a state, table or action that the packet met). The number is its index in [`Code::marks`].
    Trace(u32),
    /// Executes, for many values at once, instructions that the code repeats per value; jumps behind these. `lanes`: index into
    /// [`Code::lanes`].
    Lanes {
        lanes: u32,
        to: Target,
    },
}

impl Op {
    /// The instruction's jump target; `None` if it does not jump. A table application's targets are in [`Code::applies`].
    pub fn target(&self) -> Option<Target> {
        let mut op = *self;
        op.target_mut().copied()
    }

    /// Whether execution may continue with the instruction that follows this one.
    pub fn continues(&self) -> bool {
        !matches!(
            self,
            Op::Jump(_) | Op::Lanes { .. } | Op::Fail { .. } | Op::End | Op::Apply(_)
        )
    }

    /// The instruction's jump target, mutable; `None` if it does not jump.
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
