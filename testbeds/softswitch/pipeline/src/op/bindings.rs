//! Results of loading a program that all executors use: the blocks that the architecture runs, the positions of their
//! parameters in the frame, and the positions of tables and extern objects in [`State`](crate::state::State).

use crate::externs::hash::Algorithm;
use crate::op::Slot;
use hashbrown::HashMap;
use p4lang::ir::{ControlId, ExternId, ParserId};
use p4lang::source::Span;

/// A block that an architecture runs, such as the ingress parser.
#[derive(Debug, Clone, Copy, Default)]
pub struct Block {
    /// Index into [`Bindings::blocks`].
    pub number: u32,
}

/// The parser or control of the program that a block runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitId {
    Parser(ParserId),
    /// A control or deparser.
    Control(ControlId),
}

/// A block's parser or control, and the first slots of its parameters.
#[derive(Debug, Clone)]
pub struct BoundBlock {
    /// The parser or control that the block runs.
    pub unit: UnitId,
    /// First slots of the parameters, in order; `None` for the packet.
    pub params: Vec<Option<Slot>>,
    /// Number of slots of each parameter.
    pub sizes: Vec<u32>,
    /// TNA: slots that decide whether the deparser's requests have an effect.
    pub gates: Gates,
    /// For a parser directly behind which other blocks may run: the slots of its results. `None` for other blocks.
    pub left: Option<ParserResults>,
}

/// Slots of a parser's results for later blocks, besides its parameters.
#[derive(Debug, Clone, Copy)]
pub struct ParserResults {
    /// Slot to which the parser's error is written, after `cleared` was set to 0.
    pub error: Slot,
    /// Slot that is set to 0 when the parser ends, whatever the parser wrote to it.
    pub cleared: Slot,
}

/// The field list that a deprecated call of `clone3`, `resubmit` or `recirculate` contains.
#[derive(Debug, Clone)]
pub struct InlineList {
    /// Position of the call in the source.
    pub span: Span,
    /// Number of the field list, greater than those of the lists that the program declares.
    pub index: u64,
    /// First slot and number of slots of each field that the list keeps.
    pub kept: Vec<(Slot, u32)>,
}

/// Positions of blocks, tables and extern objects that all executors share.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    /// Blocks in the order in which the architecture bound them.
    pub blocks: Vec<BoundBlock>,
    /// Extern objects, indexed by [`ExternId`].
    pub objects: Vec<Object>,
    /// Registers, indexed by the number in [`Object::Register`].
    pub registers: Vec<RegisterPlan>,
    /// Index of each table in the state, by control and number of the table in it.
    pub tables: HashMap<(ControlId, u32), u32>,
    /// Index of each value set in the state, by name.
    pub value_sets: HashMap<String, u32>,
    /// For each direct counter or meter that works when the program calls it: index of its table.
    pub direct: HashMap<ExternId, u32>,
    /// Index of each action profile in the state.
    pub profiles: HashMap<ExternId, u32>,
    /// PSA: slots that the architecture copies from ingress's deparser to egress's parser: first source, first target, number.
    pub carried: Vec<(Slot, Slot, u32)>,
    /// v1model: slots of the extern functions' requests, such as a clone.
    pub requests: Requests,
    /// v1model: field lists of the deprecated calls.
    pub inline_lists: Vec<InlineList>,
    /// Number of steps that a loop iteration or parser state costs, by its source position; 1 if absent.
    pub rounds: HashMap<Span, u32>,
    /// v1model: number of the digest that a call of `digest` sends, by source position of the call.
    pub digests: Vec<(Span, u32)>,
    /// v1model: index of the random number generator for `random`; `None`: the program does not call it.
    pub random: Option<u32>,
    /// TNA: for each direct register, the index of its table, and its first word and number of words in an entry's data.
    pub direct_registers: HashMap<ExternId, (u32, u32, u32)>,
    /// TNA: registers that a packet may execute twice, each with its index in [`crate::state::Pass::executed`].
    pub executed_twice: HashMap<ExternId, u32>,
}

/// The position of a register in a bank: memory that registers share, whose row i has cell i of each.
#[derive(Debug, Clone, Copy)]
pub struct RegisterPlan {
    pub bank: u32,
    /// Index of a cell's first word in a row of the bank.
    pub offset: u32,
    /// Number of words of a cell of the register.
    pub words: u32,
}

/// The compiled form of an extern object: its kind, and its position in the state.
#[derive(Debug, Clone, Copy)]
pub enum Object {
    /// A register: index into [`Bindings::registers`].
    Register(u32),
    Counter(u32),
    /// A direct counter of the table that names it; counts when called.
    DirectCounter,
    /// A direct counter that counts at each hit of a table entry without a call.
    AutomaticCounter,
    /// A direct meter of the table that names it; executed when called.
    DirectMeter,
    /// A direct meter that is executed at each hit of a table entry without a call.
    AutomaticMeter,
    Meter(u32),
    /// A hash object with this algorithm.
    Hash(Algorithm),
    /// A checksum object: index of its unit in the state, and its algorithm.
    Checksum(u32, Algorithm),
    InternetChecksum(u32),
    /// A random number generator: index into the state's generators.
    Random(u32),
    /// A digest: index into the state's digest names.
    Digest(u32),
    /// An extern object without methods.
    Passive,
    /// An extern object that only TNA has.
    Tofino(TofinoObject),
}

/// An extern object that only TNA has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TofinoObject {
    /// `RegisterAction…`, `DirectRegisterAction…`, `MinMaxAction…`, `SelectorAction`: the constructor's first argument is the
    /// register or selector.
    RegisterAction,
    /// A direct register, whose cells are in the entries of the table that names it.
    DirectRegister,
    /// A register parameter, which has one cell: index into the code's registers.
    RegisterParam(u32),
    /// An indexed filter, see [`crate::externs::filter`]: index into the state's filters.
    Filter(u32),
    /// A direct filter of the table that names it: index into the state's filters.
    DirectFilter(u32),
    Checksum(u32),
    /// A parser counter: the slot of its value, which has 8 bits and a sign.
    ParserCounter(Slot),
    Mirror,
    Resubmit,
    Pktgen,
    /// A math unit: index into the code's math units.
    MathUnit(u32),
}

/// For each kind of request of a deparser, a slot: while it is 0, the request has no effect. `None`: it always has one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gates {
    /// Slot that decides whether `Mirror.emit` has an effect.
    pub mirror: Option<Slot>,
    /// Slot that decides whether `Resubmit.emit` has an effect.
    pub resubmit: Option<Slot>,
    /// Slot that decides whether `Digest.pack` has an effect.
    pub digest: Option<Slot>,
}

/// Slots of v1model's requests; each holds 0 for no request, or a number + 1.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requests {
    /// Slot of the clone session.
    pub clone: Slot,
    /// Slot of the number of the field list that the clone keeps.
    pub clone_list: Slot,
    /// Slot of the number of the field list that the resubmitted packet keeps.
    pub resubmit: Slot,
    /// Slot of the number of the field list that the recirculated packet keeps.
    pub recirculate: Slot,
    /// Slot of the length to which the packet is truncated, in bytes.
    pub truncate: Slot,
    /// Slot of whether a `verify_checksum` failed: 0 or 1.
    pub checksum_error: Slot,
}

/// The values of a v1model program's requests; each is 0 for no request, or a number + 1.
#[derive(Debug, Clone, Copy)]
pub struct RequestValues {
    /// Clone session + 1.
    pub clone: u64,
    /// Number of the field list that the clone keeps, + 1.
    pub clone_list: u64,
    /// Number of the field list that the resubmitted packet keeps, + 1.
    pub resubmit: u64,
    /// Number of the field list that the recirculated packet keeps, + 1.
    pub recirculate: u64,
    /// Length to which the packet is truncated in bytes, + 1.
    pub truncate: u64,
}

impl Requests {
    /// Number of slots of requests.
    pub const COUNT: u32 = 6;
    /// Number of requests that extern calls store: all but the checksum error. Their slots come first.
    const ASKED: usize = 5;

    /// The slots of all requests; slot 0 several times for a program without requests.
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

    /// Sets the requests to 0 after ingress, but the truncation to `truncate`; the checksum error stays.
    #[inline(always)]
    pub fn clear(&self, frame: &mut [u64], truncate: u64) {
        let first = self.clone as usize;
        if let Some(requested) = frame[first..].first_chunk_mut() {
            *requested = [0, 0, 0, 0, truncate];
        }
    }

    /// The requests in consecutive slots, starting at `first`.
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
    /// The field lists of deprecated calls: number of each, and first slot and number of slots of each field that it keeps.
    pub fn lists(&self) -> impl Iterator<Item = (u64, Vec<(Slot, u32)>)> {
        let lists = self.inline_lists.iter();
        lists.map(|list| (list.index, list.kept.clone()))
    }
}
