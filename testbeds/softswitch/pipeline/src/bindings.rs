//! What a load decides and every executor must keep to: which blocks the architecture runs, where their parameters lie
//! in the frame, and where tables and extern objects lie in [`State`](crate::externs::State).

use crate::compile::Object;
use crate::compile::tna::Gates;
use crate::compile::v1model_functions::Requests;
use crate::op::{RegisterPlan, Slot};
use hashbrown::HashMap;
use p4lang::ir::{ControlId, ExternId, ParserId};
use p4lang::source::Span;

/// A block that an architecture runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Block {
    /// Index into [`Bindings::blocks`].
    pub number: u32,
}

/// The unit that a block is an instance of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A parser.
    Parser(ParserId),
    /// A control or deparser.
    Control(ControlId),
}

/// A block's unit and the first slots of its parameters (`None`: the packet).
#[derive(Debug, Clone)]
pub struct Bound {
    /// What runs.
    pub unit: Unit,
    /// In order.
    pub params: Vec<Option<Slot>>,
    /// How many slots each takes.
    pub sizes: Vec<u32>,
    /// TNA: of a deparser.
    pub gates: Gates,
    /// Of a parser whose successors may follow at once.
    pub left: Option<Left>,
}

/// What a parser leaves for the blocks behind it, besides its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Left {
    /// Where its error goes, when this is done:
    pub error: Slot,
    /// What is set to 0, whatever the parser wrote.
    pub cleared: Slot,
}

/// The field list in a call of `clone3`, `resubmit` or `recirculate`.
#[derive(Debug, Clone)]
pub struct InlineList {
    /// The call.
    pub span: Span,
    /// The list's number.
    pub index: u64,
    /// First slot and size of each field that it keeps.
    pub kept: Vec<(Slot, u32)>,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    /// Blocks in the order in which the architecture bound them.
    pub blocks: Vec<Bound>,
    /// By [`ExternId`].
    pub objects: Vec<Object>,
    /// By an [`Object::Register`]'s number.
    pub registers: Vec<RegisterPlan>,
    /// Index into the state's tables.
    pub tables: HashMap<(ControlId, u32), u32>,
    /// Index into the state's value sets, by name.
    pub value_sets: HashMap<String, u32>,
    /// The table of a direct counter or meter that works when called.
    pub direct: HashMap<ExternId, u32>,
    /// Index into the state's profiles.
    pub profiles: HashMap<ExternId, u32>,
    /// PSA: what ingress's deparser leaves for egress's parser, and the architecture copies: from, to, slots.
    pub carried: Vec<(Slot, Slot, u32)>,
    /// v1model: where its functions leave what they ask for.
    pub requests: Requests,
    /// v1model: field lists of the deprecated calls.
    pub inline_lists: Vec<InlineList>,
    /// v1model: digest instance of a call, by its place.
    pub digests: Vec<(Span, u32)>,
    /// v1model: the generator of `random`.
    pub random: Option<u32>,
    /// TNA: table, first word and words of a direct register.
    pub direct_registers: HashMap<ExternId, (u32, u32, u32)>,
    /// TNA: registers that a packet may execute twice, and their units in the state.
    pub executed_twice: HashMap<ExternId, u32>,
}
