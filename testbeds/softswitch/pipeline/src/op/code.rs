//! The code of a program: its instructions, and what they refer to by index.

use super::{Op, Slot, Target};
use crate::bits::mask;
use crate::externs::hash::Algorithm;
use crate::op::bindings::{Bindings, Block};
use crate::op::codec::Codec;
use crate::op::lanes::Lanes;
use crate::table::KeyPlan;

/// An element of a stack.
#[derive(Debug, Clone, Copy)]
pub struct Element {
    /// The stack: its `nextIndex`, then the elements.
    pub stack: Slot,
    /// Elements.
    pub count: u32,
    /// Slots per element.
    pub stride: u32,
    /// Holds the index.
    pub index: Slot,
}

/// How a value lies in bytes, most significant bit first.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// Fixed bits in sum.
    pub bits: u32,
    /// Slots in sum.
    pub slots: u32,
    /// The first slot is a validity bit.
    pub header: bool,
    /// Fields in order.
    pub fields: Vec<Field>,
    /// Index into `fields` of the varbit field.
    pub varbit: Option<usize>,
    /// How they move, if there is no varbit field.
    pub codec: Codec,
    /// Its codec's loads are all that reading it takes: a header of whole bytes that is not tiny.
    pub plain: bool,
}

impl Layout {
    /// To be called when all fields are there.
    pub fn seal(&mut self) {
        if self.varbit.is_none() {
            self.codec = Codec::new(&self.fields, self.bits);
            self.plain = self.header && self.bits.is_multiple_of(8) && self.codec.is_plain();
        }
    }
}

/// A field of a [`Layout`].
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// From the layout's first slot.
    pub slot: u32,
    /// From the layout's first bit (a varbit field before it not counted).
    pub offset: u32,
    /// Bits (of a varbit field: the maximum).
    pub width: u32,
}

/// Fields that only travel, slot and width of each, the most significant first: all of them lie in the first one's slot.
#[derive(Debug, Clone)]
pub struct Coalesced(pub Vec<(Slot, u32)>);

/// Operations beyond 64 bits. Widths in bits.
#[derive(Debug, Clone, Copy)]
pub struct WidePlan {
    /// Which.
    pub op: WideOp,
    /// Destination and its width.
    pub d: (Slot, u32),
    /// Left.
    pub a: (Slot, u32),
    /// Right.
    pub b: (Slot, u32),
    /// `int<W>`
    pub signed: bool,
}

/// See [`WidePlan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WideOp {
    /// Division up to 128 bits, all else up to [`MAX_BITS`](crate::bits::MAX_BITS).
    Binary(p4lang::ir::BinOp),
    /// `~`
    BitNot,
    /// `-`
    Neg,
    /// Zero- or sign-extends, or cuts.
    Cast,
    /// From bit `lo`, `d`'s width.
    Slice(u32),
    /// Replaces bits of `a` from bit `lo` by `b`.
    Insert(u32),
    /// `a ++ b`
    Concat,
    /// The value, or 2⁶⁴ − 1 if it is larger.
    Saturate,
}

/// An application of a table.
#[derive(Debug, Clone)]
pub struct Apply {
    /// Index into the run-time tables.
    pub table: u32,
    /// Slots of the key, field by field.
    pub key: Vec<Slot>,
    /// How they are packed.
    pub plan: KeyPlan,
    /// Its actions.
    pub actions: Vec<Reached>,
    /// Where to go when no action runs.
    pub end: Target,
    /// Set to hit.
    pub hit: Option<Slot>,
    /// Set to the action's index.
    pub action_run: Option<Slot>,
    /// The direct counter counts without being asked.
    pub counts: bool,
    /// Set to the direct meter's colour.
    pub colour: Option<Slot>,
    /// Its action profile.
    pub profile: Option<ProfilePlan>,
    /// The table keeps something of each packet: a counter, a meter, a time.
    pub notes: bool,
}

impl Apply {
    /// Where it may go on.
    pub fn targets(&self) -> impl Iterator<Item = Target> {
        self.actions.iter().map(|a| a.target).chain([self.end])
    }

    /// The same, to be changed.
    pub fn targets_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        let targets = self.actions.iter_mut().map(|a| &mut a.target);
        targets.chain([&mut self.end])
    }
}

/// An action as an application reaches it.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Where its code is.
    pub target: Target,
    /// Slots of its parameters.
    pub params: Vec<Slot>,
}

/// How a table uses its action profile.
#[derive(Debug, Clone, Copy)]
pub struct ProfilePlan {
    /// Index into the run-time profiles.
    pub profile: u32,
    /// Which of the profile's tables it is.
    pub place: u32,
    /// Layout and first slot of the fields that a selector hashes.
    pub data: Option<(u32, Slot)>,
}

/// A register's place in a bank.
#[derive(Debug, Clone, Copy)]
pub struct RegisterPlan {
    /// Index into the banks.
    pub bank: u32,
    /// First word within a row.
    pub offset: u32,
    /// Words.
    pub words: u32,
}

/// A call of a hash.
#[derive(Debug, Clone, Copy)]
pub struct HashPlan {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Index into the layouts.
    pub layout: u32,
    /// First slot of the data.
    pub data: Slot,
    /// Result.
    pub d: Slot,
    /// Width of the result.
    pub w: u8,
    /// Base and maximum: base + hash mod max.
    pub bounds: Option<(Slot, Slot)>,
    /// Bits that do not fill bytes are filled up on the left (PSA, as on BMv2) or on the right.
    pub pad_left: bool,
    /// What the parser left of the packet is hashed too.
    pub payload: bool,
    /// It is the Internet checksum of the fields and nothing else.
    pub is_sum: bool,
}

impl HashPlan {
    /// To be called when the layout is sealed.
    pub fn seal(&mut self, layout: &Layout) {
        // Two's powers of 16 bits are 1 there, so a field counts where it lies; but what is filled up on the left moves.
        let in_place = !self.pad_left || layout.bits.is_multiple_of(8);
        self.is_sum = self.algorithm == Algorithm::OnesComplement16
            && in_place
            && self.w >= 16
            && self.bounds.is_none()
            && !self.payload
            && layout.varbit.is_none();
    }
}

/// What a packet met.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Mark {
    /// A parser state: parser and state.
    State(String, String),
    /// A table.
    Table(String),
    /// An action.
    Action(String),
}

/// Code and what it refers to.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// What it keeps to.
    pub bindings: Bindings,
    /// Errors that the machine itself raises.
    pub errors: ErrorCodes,
    /// Instructions of all blocks.
    pub ops: Vec<Op>,
    /// Where each block's code begins, in the order of [`Bindings::blocks`].
    pub entries: Vec<Target>,
    /// Which blocks write nothing but the frame and the packet.
    pub quiet: Vec<bool>,
    /// Which blocks do nothing.
    pub empty: Vec<bool>,
    /// For [`Op::Lanes`].
    pub lanes: Vec<Lanes>,
    /// Values of the first slots.
    pub constants: Vec<u64>,
    /// Slots of the frame.
    pub frame: u32,
    /// For [`Op::Wide`].
    pub wide: Vec<WidePlan>,
    /// For stacks.
    pub elements: Vec<Element>,
    /// For packets, hashes, checksums.
    pub layouts: Vec<Layout>,
    /// Fields that share a slot.
    pub coalesced: Vec<Coalesced>,
    /// For [`Op::Apply`].
    pub applies: Vec<Apply>,
    /// For registers.
    pub registers: Vec<RegisterPlan>,
    /// For [`Op::Hash`].
    pub hashes: Vec<HashPlan>,
    /// Value set and the keys' slots.
    pub value_sets: Vec<(u32, Vec<(Slot, u32)>)>,
    /// Math units.
    pub maths: Vec<crate::externs::math::MathUnit>,
    /// For [`Op::Digest`]: digest instance and layout.
    pub digests: Vec<(u32, u32)>,
    /// For [`Op::Trace`].
    pub marks: Vec<Mark>,
}

impl Code {
    /// Gives each field its own slot, as the reference executor has it.
    pub fn spread(&self, frame: &mut [u64]) {
        for Coalesced(fields) in &self.coalesced {
            let mut value = frame[fields[0].0 as usize];
            for (slot, width) in fields.iter().rev() {
                frame[*slot as usize] = value & mask(*width);
                value = value.checked_shr(*width).unwrap_or(0);
            }
        }
    }

    /// The other way round.
    pub fn gather(&self, frame: &mut [u64]) {
        for Coalesced(fields) in &self.coalesced {
            let mut value = 0;
            for (slot, width) in fields {
                let field = std::mem::take(&mut frame[*slot as usize]);
                value = value << width | field & mask(*width);
            }
            frame[fields[0].0 as usize] = value;
        }
    }

    /// Whether a block, if its packet and its parameters are not looked at, might as well not run.
    pub fn is_quiet(&self, block: Block) -> bool {
        self.quiet.get(block.number as usize).is_some_and(|q| *q)
    }

    /// Whether a block does nothing.
    #[inline]
    pub fn is_empty(&self, block: Block) -> bool {
        self.empty.get(block.number as usize).is_some_and(|e| *e)
    }

    /// Finds out which blocks do nothing.
    pub fn note_empty(&mut self) {
        let first = |entry: &Target| self.ops.get(*entry as usize);
        let empty = |entry: &Target| matches!(first(entry), None | Some(Op::End));
        self.empty = self.entries.iter().map(empty).collect();
    }

    /// Finds out which blocks are quiet. Blocks lie one behind the other, each with its `End`.
    pub fn note_quiet(&mut self) {
        let quiet = |entry: &Target| {
            let rest = self.ops.iter().skip(*entry as usize);
            rest.take_while(|op| !matches!(op, Op::End)).all(|op| {
                matches!(
                    op,
                    Op::Jump(_)
                        | Op::JumpIf { .. }
                        | Op::JumpIfNot { .. }
                        | Op::JumpEq { .. }
                        | Op::JumpNe { .. }
                        | Op::Mov { .. }
                        | Op::MovIf { .. }
                        | Op::Copy { .. }
                        | Op::CopyIf { .. }
                        | Op::Zero { .. }
                        | Op::Emit { .. }
                )
            })
        };
        self.quiet = self.entries.iter().map(quiet).collect();
    }
}

/// Values of `error` that the machine itself raises, as the program numbers them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorCodes {
    /// `PacketTooShort`
    pub packet_too_short: u64,
    /// `HeaderTooShort`
    pub header_too_short: u64,
    /// `ParserTimeout`
    pub parser_timeout: u64,
    /// `ParserInvalidArgument`
    pub invalid_argument: u64,
}
