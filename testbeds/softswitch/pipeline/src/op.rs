//! The executable form: flat code over one frame of 64-bit slots.
//!
//! A load inlines every call (P4 has no recursion), so that code knows only jumps. Constants live in the first slots of
//! the frame, so that every operand is a slot. Invariant kept by all code: **the fields of an invalid header are 0**, so
//! reads need no check, and writes to fields name the slot of their header's validity as a guard.

pub mod bindings;
mod code;
pub mod codec;
pub mod lanes;
pub mod region;
pub mod run;

pub use crate::bits::Slot;
pub use code::{
    Apply, Coalesced, Code, Element, ErrorCodes, Field, HashPlan, Layout, Mark, ProfilePlan,
    Reached, RegisterPlan, WideOp, WidePlan,
};

/// Label while compiling, position in the code afterwards.
pub type Target = u32;

/// Three operands of one width.
#[derive(Debug, Clone, Copy)]
pub struct T3 {
    /// Width in bits, at most 64.
    pub w: u8,
    /// Destination.
    pub d: Slot,
    /// Left.
    pub a: Slot,
    /// Right.
    pub b: Slot,
}

/// One instruction. Values are zero-extended bit patterns; `int<W>` in two's complement cut to W bits.
// The tag is a byte of its own: hidden in a field, it costs two instructions more at each step.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub enum Op {
    /// Goes there.
    Jump(Target),
    /// If not zero.
    JumpIf {
        c: Slot,
        to: Target,
    },
    /// If zero.
    JumpIfNot {
        c: Slot,
        to: Target,
    },
    /// If equal.
    JumpEq {
        a: Slot,
        b: Slot,
        to: Target,
    },
    /// If different.
    JumpNe {
        a: Slot,
        b: Slot,
        to: Target,
    },
    /// The block is done.
    End,
    /// A round of a loop or a state, which takes some of the block's steps; with fewer left, goes to `to`.
    Step {
        to: Target,
        cost: u32,
    },
    /// Counts a failed `assert` if zero.
    Assert {
        c: Slot,
    },
    /// Sets the parser error and goes there.
    Fail {
        error: Slot,
        to: Target,
    },

    /// One slot.
    Mov {
        d: Slot,
        s: Slot,
    },
    /// One slot, if the guard is not zero.
    MovIf {
        g: Slot,
        d: Slot,
        s: Slot,
    },
    /// Several.
    Copy {
        d: Slot,
        s: Slot,
        n: u32,
    },
    /// Several, if the guard is not zero.
    CopyIf {
        g: Slot,
        d: Slot,
        s: Slot,
        n: u32,
    },
    /// Zeroes.
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
    /// Signed.
    AddSatS(T3),
    /// Signed.
    SubSatS(T3),
    And(T3),
    Or(T3),
    Xor(T3),
    Shl(T3),
    Shr(T3),
    /// Arithmetic.
    Sar(T3),
    Eq(T3),
    Ne(T3),
    Lt(T3),
    Le(T3),
    /// Signed.
    LtS(T3),
    /// Signed.
    LeS(T3),
    /// `!` on bool.
    Not {
        d: Slot,
        a: Slot,
    },
    /// `~`
    BitNot {
        w: u8,
        d: Slot,
        a: Slot,
    },
    /// `-`
    Neg {
        w: u8,
        d: Slot,
        a: Slot,
    },
    /// `w` bits from bit `lo`.
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
    /// From one width to a larger.
    SignExtend {
        from: u8,
        to: u8,
        d: Slot,
        a: Slot,
    },
    /// `a ++ b`, `b` of `wb` bits, 64 in sum at most.
    Concat {
        wb: u8,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// `n` slots each equal.
    EqRange {
        d: Slot,
        a: Slot,
        b: Slot,
        n: u32,
    },
    /// Beyond 64 bits: index into [`Code::wide`].
    Wide(u32),

    /// Stack element to `d`, zeroes if out of range: index into [`Code::elements`].
    LoadElement {
        e: u32,
        d: Slot,
    },
    /// `s` to stack element, nothing if out of range.
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

    /// A header from the packet: index into [`Code::layouts`].
    Extract {
        layout: u32,
        d: Slot,
        to: Target,
    },
    /// The same; `bits` for its varbit field.
    ExtractVarbit {
        layout: u32,
        d: Slot,
        bits: Slot,
        to: Target,
    },
    /// A value from the packet without moving on.
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
    /// Bytes of the packet.
    PacketLength {
        d: Slot,
    },
    /// Appends a header, if valid.
    Emit {
        layout: u32,
        s: Slot,
    },
    /// Looks up the value set: index into [`Code::value_sets`].
    InValueSet {
        d: Slot,
        set: u32,
    },

    /// Index into [`Code::applies`].
    Apply(u32),
    /// Index into [`Code::registers`].
    RegisterRead {
        r: u32,
        d: Slot,
        index: Slot,
    },
    /// The same.
    RegisterWrite {
        r: u32,
        index: Slot,
        s: Slot,
    },
    /// Counter and index.
    Count {
        counter: u32,
        index: Slot,
    },
    /// Direct counter of the table, at the entry found last.
    CountDirect {
        table: u32,
    },
    /// Direct meter of the table, at the entry found last; otherwise as `Meter`.
    MeterDirect {
        table: u32,
        colour: Slot,
        d: Slot,
    },
    /// Meter; the colour of the packet so far (0 green, 1 yellow, 2 red), the result the same.
    Meter {
        meter: u32,
        index: Slot,
        colour: Slot,
        d: Slot,
    },
    /// Index into [`Code::hashes`].
    Hash(u32),
    /// Checksum unit to 0.
    ChecksumClear {
        unit: u32,
    },
    /// Internet checksum, data added or subtracted: index into [`Code::layouts`].
    ChecksumAdd {
        unit: u32,
        layout: u32,
        s: Slot,
        subtract: bool,
    },
    /// Its result.
    ChecksumGet {
        unit: u32,
        d: Slot,
    },
    /// Its inner state.
    ChecksumState {
        unit: u32,
        d: Slot,
    },
    /// Sets its inner state.
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
    /// Result of such a unit: index into [`Code::hashes`] for the algorithm.
    ChecksumFinish {
        unit: u32,
        hash: u32,
    },
    /// Random number.
    Random {
        unit: u32,
        d: Slot,
    },
    /// Random number between two others, inclusive; `low` if there is none.
    RandomRange {
        unit: u32,
        d: Slot,
        low: Slot,
        high: Slot,
    },
    /// The next counter or meter takes this many bytes off the packet's length.
    AdjustBytes {
        s: Slot,
    },
    /// A register that several calls may execute is executed: counts the second time in one pass.
    RegisterOnce {
        unit: u32,
    },
    /// Cell of a direct register at the entry found last, `words` long from word `offset`.
    DirectRead {
        table: u32,
        offset: u32,
        words: u32,
        d: Slot,
    },
    /// The same, or the cells of all entries.
    DirectWrite {
        every: bool,
        table: u32,
        offset: u32,
        words: u32,
        s: Slot,
    },
    /// Whether the member at a place of a selector's group may be picked, by the program's will.
    MemberRead {
        profile: u32,
        index: Slot,
        d: Slot,
    },
    /// Sets it.
    MemberWrite {
        profile: u32,
        index: Slot,
        s: Slot,
    },
    /// A deparser asks for a copy of another kind (`externs::capture`): session, data to go with it (no layout: none).
    Capture {
        kind: u8,
        session: Slot,
        layout: Option<u32>,
        s: Slot,
    },
    /// Low-pass filter or random early detection: index into the filters.
    Filter {
        filter: u32,
        index: Slot,
        s: Slot,
        d: Slot,
    },
    /// The same at the entry found last of the table that names the filter.
    DirectFilter {
        filter: u32,
        s: Slot,
        d: Slot,
    },
    /// A stateful ALU's math unit: index into [`Code::maths`]; the result is `w` bits wide.
    Math {
        unit: u32,
        w: u8,
        d: Slot,
        s: Slot,
    },
    /// The checksum of a unit less the bytes that the parser read from `start` on, not complemented.
    ChecksumResidual {
        unit: u32,
        start: Slot,
        d: Slot,
    },
    /// How many bits the parser has read.
    /// A parser ends: a slot is set to 0, its error goes to another one, or the same.
    Verdict {
        /// See [`crate::op::bindings::Left`].
        error: Slot,
        /// See [`crate::op::bindings::Left`].
        cleared: Slot,
    },
    Cursor {
        d: Slot,
    },
    /// Digest message: index into [`Code::digests`].
    Digest {
        digest: u32,
        s: Slot,
    },
    /// Index into [`Code::marks`].
    Trace(u32),
    /// What was rolled up, in its place: index into [`Code::lanes`]; then goes there.
    Lanes {
        lanes: u32,
        to: Target,
    },
}

impl Op {
    /// Where it may go other than to the next one. An application's targets are in [`Code::applies`].
    pub fn target(&self) -> Option<Target> {
        let mut op = *self;
        op.target_mut().copied()
    }

    /// The same, to be changed.
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
