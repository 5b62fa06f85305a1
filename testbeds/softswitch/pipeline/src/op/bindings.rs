//! What a load decides and every executor must keep to: which blocks the architecture runs, where their parameters lie
//! in the frame, and where tables and extern objects lie in [`State`](crate::state::State).

use crate::externs::hash::Algorithm;
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
    /// Steps that a round of a loop, or a parser's state, takes, by its place; one where there is none.
    pub rounds: HashMap<Span, u32>,
    /// v1model: digest instance of a call, by its place.
    pub digests: Vec<(Span, u32)>,
    /// v1model: the generator of `random`.
    pub random: Option<u32>,
    /// TNA: table, first word and words of a direct register.
    pub direct_registers: HashMap<ExternId, (u32, u32, u32)>,
    /// TNA: registers that a packet may execute twice, and their units in the state.
    pub executed_twice: HashMap<ExternId, u32>,
}

/// What an extern instance became.
#[derive(Debug, Clone, Copy)]
pub enum Object {
    /// Index into the code's registers.
    Register(u32),
    /// Index into the counters.
    Counter(u32),
    /// Of the table that names it.
    DirectCounter,
    /// The same, counting at each hit by itself.
    AutomaticCounter,
    /// Of the table that names it; applied when called.
    DirectMeter,
    /// The same, applied at each hit by itself.
    AutomaticMeter,
    /// Index into the meters.
    Meter(u32),
    /// Its algorithm.
    Hash(Algorithm),
    /// Unit and algorithm.
    Checksum(u32, Algorithm),
    /// Unit.
    InternetChecksum(u32),
    /// Index into the generators.
    Random(u32),
    /// Index into the names.
    Digest(u32),
    /// Nothing that a program can call.
    Passive,
    /// TNA's, apart from those above.
    Tofino(TofinoObject),
}

/// An extern object of TNA that no other architecture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TofinoObject {
    /// `RegisterAction…`, `DirectRegisterAction…`, `MinMaxAction…`, `SelectorAction`: its register, or selector, is its first
    /// argument.
    RegisterAction,
    /// Of the table that names it: words of each entry's cell.
    DirectRegister,
    /// Index into the code's registers: one cell.
    RegisterParam(u32),
    /// See [`crate::externs::filter`]: index into the filters.
    Filter(u32),
    /// Of the table that names it.
    DirectFilter(u32),
    /// Checksum unit.
    Checksum(u32),
    /// The slot of its value: 8 bits, signed.
    ParserCounter(Slot),
    /// `Mirror`
    Mirror,
    /// `Resubmit`
    Resubmit,
    /// `Pktgen`
    Pktgen,
    /// `MathUnit`: index into the code's.
    MathUnit(u32),
}

/// Slots that gate what a deparser asks for: nothing is asked while they are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gates {
    /// Of `Mirror.emit`.
    pub mirror: Option<Slot>,
    /// Of `Resubmit.emit`.
    pub resubmit: Option<Slot>,
    /// Of `Digest.pack`.
    pub digest: Option<Slot>,
}

/// Slots that hold 0, or a number + 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requests {
    /// Clone session.
    pub clone: Slot,
    /// Field list that the clone keeps.
    pub clone_list: Slot,
    /// Field list that the resubmitted packet keeps.
    pub resubmit: Slot,
    /// Field list that the recirculated packet keeps.
    pub recirculate: Slot,
    /// Bytes that the packet is cut to.
    pub truncate: Slot,
    /// A `verify_checksum` failed: 0 or 1.
    pub checksum_error: Slot,
}

/// What a program has asked for, each 0 or a number + 1.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Clone session.
    pub clone: u64,
    /// Field list that the clone keeps.
    pub clone_list: u64,
    /// Field list that the resubmitted packet keeps.
    pub resubmit: u64,
    /// Field list that the recirculated packet keeps.
    pub recirculate: u64,
    /// Bytes that the packet is cut to.
    pub truncate: u64,
}

impl Requests {
    /// How many there are.
    pub const COUNT: u32 = 6;
    /// How many of them a program asks for; the first ones.
    const ASKED: usize = 5;

    /// All of them; of a program that has none, slot 0.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        [
            self.clone,
            self.clone_list,
            self.resubmit,
            self.recirculate,
            self.truncate,
            self.checksum_error,
        ]
        .into_iter()
    }

    /// What is asked for.
    #[inline(always)]
    pub fn of(&self, frame: &[u64]) -> Asked {
        let first = self.clone as usize;
        let slots = frame[first..].first_chunk().copied();
        let [clone, clone_list, resubmit, recirculate, truncate] =
            slots.unwrap_or([0; Requests::ASKED]);
        Asked {
            clone,
            clone_list,
            resubmit,
            recirculate,
            truncate,
        }
    }

    /// Takes back what ingress has asked for, but the length to cut to; not what verification found.
    #[inline(always)]
    pub fn clear(&self, frame: &mut [u64], truncate: u64) {
        let first = self.clone as usize;
        if let Some(asked) = frame[first..].first_chunk_mut() {
            *asked = [0, 0, 0, 0, truncate];
        }
    }

    /// In slots that follow each other.
    pub fn at(first: Slot) -> Requests {
        Requests {
            clone: first,
            clone_list: first + 1,
            resubmit: first + 2,
            recirculate: first + 3,
            truncate: first + 4,
            checksum_error: first + 5,
        }
    }
}

impl Bindings {
    /// The inline lists with their indices.
    pub fn lists(&self) -> impl Iterator<Item = (u64, Vec<(Slot, u32)>)> {
        let lists = self.inline_lists.iter();
        lists.map(|list| (list.index, list.kept.clone()))
    }
}
