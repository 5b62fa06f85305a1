//! State that an architecture keeps beside the code during compilation. Only the architecture's folder interprets it.

use super::location::Location;
use crate::op::Slot;
use crate::op::bindings::Gates;
use hashbrown::HashSet;
use p4lang::ir::ActionId;

/// State of a TNA program during compilation.
#[derive(Debug, Default)]
pub struct TofinoContext {
    /// Whether the program reads the ingress parser's error.
    pub reads_parser_error: bool,
    /// Gates of the deparser that is being compiled.
    pub gates: Gates,
    /// Slots to be cleared for each packet.
    pub cleared: HashSet<Slot>,
    /// The register action's method that is being compiled.
    pub(crate) method: Option<MethodPlan>,
    pub(crate) residuals: Vec<ResidualPlan>,
    /// Unallocated slots that are cleared before each parser.
    pub kept: Vec<Slot>,
}

impl TofinoContext {
    /// Records that a field is read or written.
    pub fn met(&mut self, owner: &str, field: &str) {
        self.reads_parser_error |=
            owner == "ingress_intrinsic_metadata_from_parser_t" && field == "parser_err";
    }
}

/// A call of `subtract_all_and_deposit` that waits for the parser's end.
#[derive(Debug, Clone)]
pub(crate) struct ResidualPlan {
    pub(crate) unit: u32,
    /// Slot that is 1 once the call was reached.
    pub(crate) met: Slot,
    /// Slot of the parser's position, in bits.
    pub(crate) start: Slot,
    pub(crate) to: Location,
}

/// A register action's method that is being compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodPlan {
    pub(crate) action: ActionId,
    /// Slot of the cell's original value, if the body uses a predicate.
    pub(crate) original: Option<Slot>,
}

/// Slots of the packet's metadata for v1model's functions.
#[derive(Debug, Default)]
pub struct V1modelContext {
    /// `egress_spec` and `mcast_grp`, for `mark_to_drop()` without an argument.
    pub destination: [Option<Slot>; 2],
}
