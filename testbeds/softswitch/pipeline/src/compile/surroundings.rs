//! What an architecture keeps beside the code while a program is compiled. Only its own folder knows what it is for.

use super::place::Place;
use crate::op::Slot;
use crate::op::bindings::Gates;
use hashbrown::HashSet;
use p4lang::ir::ActionId;

/// Of a TNA program while it is compiled.
#[derive(Debug, Default)]
pub struct Tofino {
    /// Somebody looks at the ingress parser's error.
    pub reads_parser_error: bool,
    /// Of the deparser being compiled.
    pub gates: Gates,
    /// Slots to be cleared for each packet.
    pub cleared: HashSet<Slot>,
    /// The method of a register action that is being compiled.
    pub(crate) method: Option<InMethod>,
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
    /// `egress_spec` and `mcast_grp`, for `mark_to_drop()` without an argument.
    pub destination: [Option<Slot>; 2],
}
