//! Decisions of a load that bind every executor: the blocks that the architecture runs, the positions of their parameters
//! in the frame, and those of tables and extern objects in [`State`](crate::state::State).

use crate::externs::hash::Algorithm;
use crate::op::Slot;
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
pub enum UnitId {
    Parser(ParserId),
    /// A control or deparser.
    Control(ControlId),
}

/// A block's unit, and the first slots of its parameters (`None`: the packet).
#[derive(Debug, Clone)]
pub struct BoundBlock {
    /// The unit that runs.
    pub unit: UnitId,
    /// First slots of the parameters, in order.
    pub params: Vec<Option<Slot>>,
    /// Number of slots of each parameter.
    pub sizes: Vec<u32>,
    /// TNA: gates of a deparser.
    pub gates: Gates,
    /// For a parser that other blocks may directly follow: its result slots.
    pub left: Option<ParserResults>,
}

/// Results of a parser for later blocks, besides its parameters.
#[derive(Debug, Clone, Copy)]
pub struct ParserResults {
    /// Slot of its error, written after `cleared`.
    pub error: Slot,
    /// Slot that is set to 0, whatever the parser wrote.
    pub cleared: Slot,
}

/// The field list in a call of `clone3`, `resubmit` or `recirculate`.
#[derive(Debug, Clone)]
pub struct InlineList {
    /// Position of the call in the source.
    pub span: Span,
    /// Number of the list.
    pub index: u64,
    /// First slot and size of each field that it keeps.
    pub kept: Vec<(Slot, u32)>,
}

/// Decisions of a load that bind every executor.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    /// Blocks in the order in which the architecture bound them.
    pub blocks: Vec<BoundBlock>,
    /// Extern objects, indexed by [`ExternId`].
    pub objects: Vec<Object>,
    /// Registers, indexed by the number in [`Object::Register`].
    pub registers: Vec<RegisterPlan>,
    /// Index of each table in the state.
    pub tables: HashMap<(ControlId, u32), u32>,
    /// Index of each value set in the state, by name.
    pub value_sets: HashMap<String, u32>,
    /// The table of each direct counter or meter that works when called.
    pub direct: HashMap<ExternId, u32>,
    /// Index of each profile in the state.
    pub profiles: HashMap<ExternId, u32>,
    /// PSA: slots that the architecture copies from ingress's deparser to egress's parser: from, to, count.
    pub carried: Vec<(Slot, Slot, u32)>,
    /// v1model: slots of the functions' requests.
    pub requests: Requests,
    /// v1model: field lists of the deprecated calls.
    pub inline_lists: Vec<InlineList>,
    /// Steps that a loop iteration or parser state takes, by source position; one if absent.
    pub rounds: HashMap<Span, u32>,
    /// v1model: digest instance of a call, by source position.
    pub digests: Vec<(Span, u32)>,
    /// v1model: index of the generator of `random`.
    pub random: Option<u32>,
    /// TNA: table, first word and number of words of each direct register.
    pub direct_registers: HashMap<ExternId, (u32, u32, u32)>,
    /// TNA: registers that a packet may execute twice, with their units in the state.
    pub executed_twice: HashMap<ExternId, u32>,
}

/// The position of a register in a bank.
#[derive(Debug, Clone, Copy)]
pub struct RegisterPlan {
    pub bank: u32,
    /// First word within a row.
    pub offset: u32,
    /// Number of words of a cell.
    pub words: u32,
}

/// The compiled form of an extern instance.
#[derive(Debug, Clone, Copy)]
pub enum Object {
    /// Index into the code's registers.
    Register(u32),
    Counter(u32),
    /// A direct counter of the table that names it.
    DirectCounter,
    /// A direct counter that counts at each hit without a call.
    AutomaticCounter,
    /// A direct meter of the table that names it; executed when called.
    DirectMeter,
    /// A direct meter that is executed at each hit without a call.
    AutomaticMeter,
    Meter(u32),
    /// A hash with this algorithm.
    Hash(Algorithm),
    /// A checksum unit and its algorithm.
    Checksum(u32, Algorithm),
    InternetChecksum(u32),
    /// Index into the generators.
    Random(u32),
    /// Index into the names.
    Digest(u32),
    /// An object without methods.
    Passive,
    /// An object that only TNA has.
    Tofino(TofinoObject),
}

/// An extern object that only TNA has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TofinoObject {
    /// `RegisterAction…`, `DirectRegisterAction…`, `MinMaxAction…`, `SelectorAction`: the first argument is the register
    /// or selector.
    RegisterAction,
    /// A direct register of the table that names it: words of each entry's cell.
    DirectRegister,
    /// A register parameter of one cell: index into the code's registers.
    RegisterParam(u32),
    /// A filter, see [`crate::externs::filter`]: index into the filters.
    Filter(u32),
    /// A direct filter of the table that names it.
    DirectFilter(u32),
    Checksum(u32),
    /// A parser counter: the slot of its value, 8 bits, signed.
    ParserCounter(Slot),
    Mirror,
    Resubmit,
    Pktgen,
    /// `MathUnit`: index into the code's math units.
    MathUnit(u32),
}

/// Slots that gate a deparser's requests: a request is ignored while its slot is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gates {
    /// Gate of `Mirror.emit`.
    pub mirror: Option<Slot>,
    /// Gate of `Resubmit.emit`.
    pub resubmit: Option<Slot>,
    /// Gate of `Digest.pack`.
    pub digest: Option<Slot>,
}

/// Slots of requests; each holds 0, or a number + 1.
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
    /// Length to which the packet is truncated, in bytes.
    pub truncate: Slot,
    /// Whether a `verify_checksum` failed: 0 or 1.
    pub checksum_error: Slot,
}

/// The requests of a program; each is 0, or a number + 1.
#[derive(Debug, Clone, Copy)]
pub struct RequestValues {
    /// Clone session.
    pub clone: u64,
    /// Field list that the clone keeps.
    pub clone_list: u64,
    /// Field list that the resubmitted packet keeps.
    pub resubmit: u64,
    /// Field list that the recirculated packet keeps.
    pub recirculate: u64,
    /// Length to which the packet is truncated, in bytes.
    pub truncate: u64,
}

impl Requests {
    /// Number of requests.
    pub const COUNT: u32 = 6;
    /// Number of requests that a program makes itself, which come first.
    const ASKED: usize = 5;

    /// The slots of all requests; slot 0 for a program without requests.
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

    #[inline(always)]
    pub fn read(&self, frame: &[u64]) -> RequestValues {
        let first = self.clone as usize;
        let slots = frame[first..].first_chunk().copied();
        let [clone, clone_list, resubmit, recirculate, truncate] =
            slots.unwrap_or([0; Requests::ASKED]);
        RequestValues {
            clone,
            clone_list,
            resubmit,
            recirculate,
            truncate,
        }
    }

    /// Clears the requests of ingress except for the truncation; the result of the verification stays.
    #[inline(always)]
    pub fn clear(&self, frame: &mut [u64], truncate: u64) {
        let first = self.clone as usize;
        if let Some(requested) = frame[first..].first_chunk_mut() {
            *requested = [0, 0, 0, 0, truncate];
        }
    }

    /// Requests in consecutive slots.
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
    /// The inline lists, with their indices.
    pub fn lists(&self) -> impl Iterator<Item = (u64, Vec<(Slot, u32)>)> {
        let lists = self.inline_lists.iter();
        lists.map(|list| (list.index, list.kept.clone()))
    }
}
