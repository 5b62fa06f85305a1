//! What an architecture keeps beside the code while a program is compiled. Only its own folder knows what it is for.

use super::place::Place;
use crate::op::Slot;
use crate::op::bindings::{Gates, InlineList, Requests};
use hashbrown::{HashMap, HashSet};
use p4lang::ir::{ActionId, ExternId};
use p4lang::source::Span;

/// Of a TNA program while it is compiled.
#[derive(Debug, Default)]
pub struct Tofino {
    /// Somebody looks at the ingress parser's error.
    pub reads_parser_error: bool,
    /// Of the deparser being compiled.
    pub gates: Gates,
    /// Registers that a path may execute twice, and their units in [`crate::state::State::executed`].
    pub executed_twice: HashMap<ExternId, u32>,
    /// Slots to be cleared for each packet.
    pub cleared: HashSet<Slot>,
    /// The method of a register action that is being compiled.
    pub(crate) method: Option<InMethod>,
    /// Words of a direct register: table, first word, words.
    pub(crate) direct_registers: HashMap<ExternId, (u32, u32, u32)>,
    pub(crate) residuals: Vec<Residual>,
    /// Slots that are cleared before each parser, not yet given away.
    pub kept: Vec<Slot>,
}

impl Tofino {
    /// A field is read or written.
    pub fn met(&mut self, owner: &str, field: &str) {
        self.reads_parser_error |=
            owner == "ingress_intrinsic_metadata_from_parser_t" && field == "parser_err";
    }
}

/// A call of `subtract_all_and_deposit` that waits for the parser's end.
#[derive(Debug, Clone)]
pub(crate) struct Residual {
    pub(crate) unit: u32,
    /// 1 once the call was met.
    pub(crate) met: Slot,
    /// Where the parser stood, bits.
    pub(crate) start: Slot,
    pub(crate) to: Place,
}

/// A method of a register action that is being compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InMethod {
    pub(crate) action: ActionId,
    /// The cell as it was read, if the body asks for a predicate.
    pub(crate) original: Option<Slot>,
}

/// Where v1model's functions find the packet's metadata.
#[derive(Debug, Default)]
pub struct V1model {
    /// What the calls leave.
    pub requests: Requests,
    /// `egress_spec` and `mcast_grp`, for `mark_to_drop()` without an argument.
    pub destination: [Option<Slot>; 2],
    /// Of the deprecated `clone3`, `resubmit`, `recirculate`.
    pub inline_lists: Vec<InlineList>,
    /// Digest instance of each call.
    pub digests: Vec<(Span, u32)>,
}

impl V1model {
    /// The inline lists with their indices.
    pub fn lists(&self) -> impl Iterator<Item = (u64, Vec<(Slot, u32)>)> {
        let lists = self.inline_lists.iter();
        lists.map(|list| (list.index, list.kept.clone()))
    }
}
