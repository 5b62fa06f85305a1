//! The code of a program: its instructions, and the data that they refer to by index.

use super::{Op, Slot, Target};
use crate::bits::mask;
use crate::externs::hash::Algorithm;
use crate::op::bindings::{Bindings, Block, RegisterPlan};
use crate::op::codec::{Codec, LayoutField};
use crate::op::lanes::Lanes;
use crate::table::KeyPlan;

/// An element of a header stack at an index that is known at run time.
#[derive(Debug, Clone, Copy)]
pub struct Element {
    /// First slot of the stack: its `nextIndex`, followed by the elements.
    pub stack: Slot,
    /// Number of elements of the stack.
    pub count: u32,
    /// Number of slots per element.
    pub stride: u32,
    pub index: Slot,
}

/// The layout of a value in packet bytes, most significant bit first.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// Number of bits of the value, without the varbit field.
    pub bits: u32,
    /// Number of slots that the value takes in the frame.
    pub slots: u32,
    /// Whether the value's first slot is a header's validity.
    pub header: bool,
    pub fields: Vec<LayoutField>,
    /// Index into `fields` of the varbit field; `None`: there is none.
    pub varbit: Option<usize>,
    /// Plan to move the fields between slots and bytes, if there is no varbit field.
    pub codec: Codec,
    /// Whether loads of single words suffice to read the value: a header of 8 whole bytes or more, whose fields need no more.
    pub plain: bool,
}

impl Layout {
    /// Computes the codec, after all fields were added.
    pub fn seal(&mut self) {
        if self.varbit.is_none() {
            self.codec = Codec::new(&self.fields, self.bits);
            self.plain = self.header && self.bits.is_multiple_of(8) && self.codec.is_plain();
        }
    }
}

/// Header fields that are kept together in the first field's slot: own slot and width in bits of each, the first uppermost.
#[derive(Debug, Clone)]
pub struct Coalesced(pub Vec<(Slot, u32)>);

/// An operation on values of more than 64 bits: operands are first slot and width in bits.
#[derive(Debug, Clone, Copy)]
pub struct WidePlan {
    /// The operation to apply.
    pub op: WideOp,
    /// First slot and width in bits of the destination.
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
    /// Extends the value with zeroes or its sign, or cuts it, to the destination's width.
    Cast,
    /// Takes bits from this bit on, as many as the destination is wide.
    Slice(u32),
    /// Replaces the bits of `a` from this bit on by `b`.
    Insert(u32),
    /// Concatenation `a ++ b`.
    Concat,
    /// Sets the destination to the value, or to 2⁶⁴ − 1 if the value is larger.
    Saturate,
}

/// An application of a table in the code.
#[derive(Debug, Clone)]
pub struct Apply {
    /// Index of the table in the state.
    pub table: u32,
    /// First slot of each field of the key, in order.
    pub key: Vec<Slot>,
    /// The plan by which the key is packed from the frame.
    pub plan: KeyPlan,
    /// The table's actions, in order.
    pub actions: Vec<Reached>,
    /// Position in the code at which execution continues if no action runs.
    pub end: Target,
    /// Slot that is set to whether a table entry matched; `None`: the program does not read it.
    pub hit: Option<Slot>,
    /// Slot that is set to the chosen action's index; `None`: the program does not read it.
    pub action_run: Option<Slot>,
    /// Whether the table's direct counter counts each hit without a call.
    pub counts: bool,
    /// Slot that is set to the color that the direct meter gives without a call; `None`: there is no such meter.
    pub colour: Option<Slot>,
    /// How the table uses its action profile; `None`: the table has none.
    pub profile: Option<ProfilePlan>,
    /// Whether applying the table records data about the packet: in a counter, a meter or an idle timer.
    pub notes: bool,
}

impl Apply {
    /// The positions in the code at which execution may continue after the table was applied.
    pub fn targets(&self) -> impl Iterator<Item = Target> {
        self.actions.iter().map(|a| a.target).chain([self.end])
    }

    /// The positions in the code at which execution may continue after the table was applied, mutable.
    pub fn targets_mut(&mut self) -> impl Iterator<Item = &mut Target> {
        let targets = self.actions.iter_mut().map(|a| &mut a.target);
        targets.chain([&mut self.end])
    }
}

/// The code and the parameters of an action that a table application may run.
#[derive(Debug, Clone)]
pub struct Reached {
    /// Position of the action's code.
    pub target: Target,
    /// Slots of the action's parameters from the table entry.
    pub params: Vec<Slot>,
}

/// How a table uses an action profile.
#[derive(Debug, Clone, Copy)]
pub struct ProfilePlan {
    /// Index of the action profile in the state.
    pub profile: u32,
    /// Index of the table in the list of tables that use the profile.
    pub place: u32,
    /// Key fields that the selector hashes: index of their layout, and first slot; `None`: the profile has no selector.
    pub data: Option<(u32, Slot)>,
}

/// The plan to compute a hash.
#[derive(Debug, Clone, Copy)]
pub struct HashPlan {
    pub algorithm: Algorithm,
    pub layout: u32,
    pub data: Slot,
    /// Slot to which the hash is written.
    pub d: Slot,
    /// Width of the hash in bits.
    pub w: u8,
    /// Slots of `base` and `max`, for base + hash mod max; `None`: the hash itself.
    pub bounds: Option<(Slot, Slot)>,
    /// Whether data of an incomplete byte is padded on the left (PSA, as on BMv2) instead of the right.
    pub pad_left: bool,
    /// Whether the packet's payload, after the parser's position, is hashed too.
    pub payload: bool,
    /// Whether the hash equals the Internet checksum of the fields, which is faster.
    pub is_sum: bool,
}

impl HashPlan {
    /// Completes the plan, after the data's layout was sealed.
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

/// A parser state, table or action, as a trace records it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Mark {
    /// The names of a parser and of its state that the packet entered.
    State(String, String),
    /// The name of a table that was applied.
    Table(String),
    /// The name of an action that ran.
    Action(String),
}

/// The code of a program, and the data that its instructions refer to.
#[derive(Debug, Clone, Default)]
pub struct Code {
    pub bindings: Bindings,
    /// Numbers of the parser errors that the machine itself raises.
    pub errors: ErrorCodes,
    /// Instructions of all blocks.
    pub ops: Vec<Op>,
    /// Position of the first instruction of each block, in the order of [`Bindings::blocks`].
    pub entries: Vec<Target>,
    /// For each block, whether all that it writes is the frame and the outgoing packet.
    pub quiet: Vec<bool>,
    /// For each block, whether it does nothing.
    pub empty: Vec<bool>,
    /// Rolled-up loops for [`Op::Lanes`].
    pub lanes: Vec<Lanes>,
    /// Constants: the values of the frame's first slots, which are never written.
    pub constants: Vec<u64>,
    /// Number of slots of the frame, including constants.
    pub frame: u32,
    /// Plans of the operations for [`Op::Wide`].
    pub wide: Vec<WidePlan>,
    /// Elements of header stacks, for the instructions that access them.
    pub elements: Vec<Element>,
    /// Layouts of values that are moved to or from packets, hashes and checksums.
    pub layouts: Vec<Layout>,
    /// Groups of fields that share a slot.
    pub coalesced: Vec<Coalesced>,
    /// Table applications for [`Op::Apply`].
    pub applies: Vec<Apply>,
    pub registers: Vec<RegisterPlan>,
    /// Plans of the hashes for [`Op::Hash`].
    pub hashes: Vec<HashPlan>,
    /// For [`Op::InValueSet`]: index of the value set in the state, and slots and widths in bits of the key.
    pub value_sets: Vec<(u32, Vec<(Slot, u32)>)>,
    pub maths: Vec<crate::externs::math::MathUnit>,
    /// For [`Op::Digest`]: number of the digest, and index of the message's layout.
    pub digests: Vec<(u32, u32)>,
    /// States, tables and actions that [`Op::Trace`] records.
    pub marks: Vec<Mark>,
}

impl Code {
    /// Moves each field that shares a slot to its own slot, as the reference executor expects.
    pub fn spread(&self, frame: &mut [u64]) {
        for Coalesced(fields) in &self.coalesced {
            let mut value = frame[fields[0].0 as usize];
            for (slot, width) in fields.iter().rev() {
                frame[*slot as usize] = value & mask(*width);
                value = value.checked_shr(*width).unwrap_or(0);
            }
        }
    }

    /// Moves fields that share a slot back to it from their own slots, as the machine expects: the inverse of [`Self::spread`].
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

    /// For each instruction, whether execution may come to it from elsewhere than the instruction before: a block starts there,
    /// or a jump or table leads there. `reached`: for each instruction, whether it may run.
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

    /// Whether a block may be skipped if its packet and its parameters are not used afterwards.
    pub fn is_quiet(&self, block: Block) -> bool {
        self.quiet.get(block.number as usize).is_some_and(|q| *q)
    }

    /// Whether a block of the program does nothing, so that it may be skipped.
    #[inline]
    pub fn is_empty(&self, block: Block) -> bool {
        self.empty.get(block.number as usize).is_some_and(|e| *e)
    }

    /// Records for each block whether it does nothing.
    pub fn note_empty(&mut self) {
        let first = |entry: &Target| self.ops.get(*entry as usize);
        let empty = |entry: &Target| matches!(first(entry), None | Some(Op::End));
        self.empty = self.entries.iter().map(empty).collect();
    }

    /// Records which blocks write nothing but the frame and the packet. Blocks are consecutive, each with an `End` instruction.
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

/// Numbers, in the program's numbering, of the parser errors that the machine itself raises.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorCodes {
    pub packet_too_short: u64,
    pub header_too_short: u64,
    pub parser_timeout: u64,
    pub invalid_argument: u64,
}
