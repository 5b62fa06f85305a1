//! The code of a program: its instructions, and the data that they refer to by index.

use super::{Op, Slot, Target};
use crate::bits::mask;
use crate::externs::hash::Algorithm;
use crate::op::bindings::{Bindings, Block, RegisterPlan};
use crate::op::codec::{Codec, LayoutField};
use crate::op::lanes::Lanes;
use crate::table::KeyPlan;

/// An element of a stack.
#[derive(Debug, Clone, Copy)]
pub struct Element {
    /// First slot of the stack: its `nextIndex`, followed by the elements.
    pub stack: Slot,
    /// Number of elements.
    pub count: u32,
    /// Slots per element.
    pub stride: u32,
    pub index: Slot,
}

/// The layout of a value in bytes, most significant bit first.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// Total number of fixed bits.
    pub bits: u32,
    /// Total number of slots.
    pub slots: u32,
    /// Whether the first slot is a validity bit.
    pub header: bool,
    pub fields: Vec<LayoutField>,
    /// Index into `fields` of the varbit field.
    pub varbit: Option<usize>,
    /// Codec of the fields, if there is no varbit field.
    pub codec: Codec,
    /// Whether the codec's loads suffice to read the value: a header of whole bytes that is not tiny.
    pub plain: bool,
}

impl Layout {
    /// Computes the codec; called once all fields are present.
    pub fn seal(&mut self) {
        if self.varbit.is_none() {
            self.codec = Codec::new(&self.fields, self.bits);
            self.plain = self.header && self.bits.is_multiple_of(8) && self.codec.is_plain();
        }
    }
}

/// Joined fields with slot and width, the most significant first: all of them are in the first one's slot.
#[derive(Debug, Clone)]
pub struct Coalesced(pub Vec<(Slot, u32)>);

/// An operation beyond 64 bits. Widths are in bits.
#[derive(Debug, Clone, Copy)]
pub struct WidePlan {
    /// The operation.
    pub op: WideOp,
    /// Destination and its width.
    pub d: (Slot, u32),
    pub a: (Slot, u32),
    pub b: (Slot, u32),
    /// Whether the operands are `int<W>`.
    pub signed: bool,
}

/// The operation of a [`WidePlan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WideOp {
    /// A binary operation: division up to 128 bits, others up to [`MAX_BITS`](crate::bits::MAX_BITS).
    Binary(p4lang::ir::BinOp),
    BitNot,
    Neg,
    /// Zero-extends, sign-extends, or cuts.
    Cast,
    /// Takes bits from bit `lo` on, as many as `d` is wide.
    Slice(u32),
    /// Replaces bits of `a` from bit `lo` on by `b`.
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
    /// The plan by which the key is packed.
    pub plan: KeyPlan,
    /// The table's actions.
    pub actions: Vec<Reached>,
    /// Position to continue at if no action runs.
    pub end: Target,
    /// Slot that is set to whether an entry was hit.
    pub hit: Option<Slot>,
    /// Slot that is set to the action's index.
    pub action_run: Option<Slot>,
    /// Whether the direct counter counts without a call.
    pub counts: bool,
    /// Slot that is set to the direct meter's color.
    pub colour: Option<Slot>,
    /// The table's action profile.
    pub profile: Option<ProfilePlan>,
    /// Whether the table records data about each packet: a counter, a meter, a time.
    pub notes: bool,
}

impl Apply {
    /// The positions at which execution may continue.
    pub fn targets(&self) -> impl Iterator<Item = Target> {
        self.actions.iter().map(|a| a.target).chain([self.end])
    }

    /// The positions at which execution may continue, mutable.
    pub fn targets_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        let targets = self.actions.iter_mut().map(|a| &mut a.target);
        targets.chain([&mut self.end])
    }
}

/// An action of a table's application.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Position of the action's code.
    pub target: Target,
    /// Slots of the action's parameters.
    pub params: Vec<Slot>,
}

/// How a table uses its action profile.
#[derive(Debug, Clone, Copy)]
pub struct ProfilePlan {
    /// Index into the run-time profiles.
    pub profile: u32,
    /// Index of the table among the profile's tables.
    pub place: u32,
    /// Layout and first slot of the fields that the selector hashes.
    pub data: Option<(u32, Slot)>,
}

/// A computation of a hash.
#[derive(Debug, Clone, Copy)]
pub struct HashPlan {
    pub algorithm: Algorithm,
    pub layout: u32,
    pub data: Slot,
    /// Slot of the result.
    pub d: Slot,
    /// Width of the result.
    pub w: u8,
    /// Slots of base and maximum: base + hash mod max.
    pub bounds: Option<(Slot, Slot)>,
    /// Whether bits that do not fill bytes are padded on the left (PSA, as on BMv2) or on the right.
    pub pad_left: bool,
    /// Whether the payload after the parser's position is hashed too.
    pub payload: bool,
    /// Whether the hash is just the Internet checksum of the fields.
    pub is_sum: bool,
}

impl HashPlan {
    /// Completes the plan; called once the layout is sealed.
    pub fn seal(&mut self, layout: &Layout) {
        // 2^16 is 1 modulo 2^16 − 1, so a field counts at its position; but padding on the left shifts it.
        let in_place = !self.pad_left || layout.bits.is_multiple_of(8);
        self.is_sum = self.algorithm == Algorithm::OnesComplement16
            && in_place
            && self.w >= 16
            && self.bounds.is_none()
            && !self.payload
            && layout.varbit.is_none();
    }
}

/// An element that a packet met.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Mark {
    /// A parser state: names of parser and state.
    State(String, String),
    /// A table's name.
    Table(String),
    /// An action's name.
    Action(String),
}

/// The code, and the data that it refers to.
#[derive(Debug, Clone, Default)]
pub struct Code {
    pub bindings: Bindings,
    /// Errors that the machine itself raises.
    pub errors: ErrorCodes,
    /// Instructions of all blocks.
    pub ops: Vec<Op>,
    /// Start of each block's code, in the order of [`Bindings::blocks`].
    pub entries: Vec<Target>,
    /// Whether each block writes nothing but the frame and the packet.
    pub quiet: Vec<bool>,
    /// Whether each block does nothing.
    pub empty: Vec<bool>,
    /// Bodies for [`Op::Lanes`].
    pub lanes: Vec<Lanes>,
    /// Constants, the values of the first slots.
    pub constants: Vec<u64>,
    /// Number of slots of the frame.
    pub frame: u32,
    /// Plans for [`Op::Wide`].
    pub wide: Vec<WidePlan>,
    /// Elements of stacks.
    pub elements: Vec<Element>,
    /// Layouts for packets, hashes, checksums.
    pub layouts: Vec<Layout>,
    /// Fields that share a slot.
    pub coalesced: Vec<Coalesced>,
    /// Applications for [`Op::Apply`].
    pub applies: Vec<Apply>,
    pub registers: Vec<RegisterPlan>,
    /// Plans for [`Op::Hash`].
    pub hashes: Vec<HashPlan>,
    /// Index of each value set, and the slots and widths of its key.
    pub value_sets: Vec<(u32, Vec<(Slot, u32)>)>,
    pub maths: Vec<crate::externs::math::MathUnit>,
    /// For [`Op::Digest`]: digest instance and layout.
    pub digests: Vec<(u32, u32)>,
    /// Marks for [`Op::Trace`].
    pub marks: Vec<Mark>,
}

impl Code {
    /// Moves each joined field to its own slot, as the reference executor expects.
    pub fn spread(&self, frame: &mut [u64]) {
        for Coalesced(fields) in &self.coalesced {
            let mut value = frame[fields[0].0 as usize];
            for (slot, width) in fields.iter().rev() {
                frame[*slot as usize] = value & mask(*width);
                value = value.checked_shr(*width).unwrap_or(0);
            }
        }
    }

    /// Joins the fields again, as the machine expects.
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

    /// Which positions are reached by a jump.
    pub fn landings(&self, reached: &[bool]) -> Vec<bool> {
        let mut landed = vec![false; self.ops.len() + 1];
        for entry in &self.entries {
            landed[*entry as usize] = true;
        }
        for (op, _) in self.ops.iter().zip(reached).filter(|(_, r)| **r) {
            if let Some(to) = op.target() {
                landed[to as usize] = true;
            }
        }
        for apply in &self.applies {
            for to in apply.targets() {
                landed[to as usize] = true;
            }
        }
        landed
    }

    /// Whether a block need not run if its packet and its parameters are not used afterwards.
    pub fn is_quiet(&self, block: Block) -> bool {
        self.quiet.get(block.number as usize).is_some_and(|q| *q)
    }

    /// Whether a block does nothing.
    #[inline]
    pub fn is_empty(&self, block: Block) -> bool {
        self.empty.get(block.number as usize).is_some_and(|e| *e)
    }

    /// Records which blocks do nothing.
    pub fn note_empty(&mut self) {
        let first = |entry: &Target| self.ops.get(*entry as usize);
        let empty = |entry: &Target| matches!(first(entry), None | Some(Op::End));
        self.empty = self.entries.iter().map(empty).collect();
    }

    /// Records which blocks are quiet. Blocks are consecutive, each with its `End`.
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

/// Values of `error` that the machine itself raises, in the program's numbering.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorCodes {
    pub packet_too_short: u64,
    pub header_too_short: u64,
    pub parser_timeout: u64,
    pub invalid_argument: u64,
}
