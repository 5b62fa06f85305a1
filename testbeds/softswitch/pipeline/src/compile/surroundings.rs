//! State that an architecture keeps during compilation beside the code. Only the architecture's folder interprets it.

use super::location::Location;
use crate::op::Slot;
use crate::op::bindings::Gates;
use hashbrown::HashSet;
use p4lang::ir::ActionId;

/// State that is kept while a TNA program is compiled.
#[derive(Debug, Default)]
pub struct TofinoContext {
    /// Whether the program reads the ingress parser's error, so that such an error does not drop the packet.
    pub reads_parser_error: bool,
    /// Slots that decide whether requests of the deparser that is being compiled have an effect.
    pub gates: Gates,
    /// Slots that the architecture sets to 0 for each packet.
    pub cleared: HashSet<Slot>,
    /// The register action's method that is being compiled; `None` outside of such methods.
    pub(crate) method: Option<MethodPlan>,
    pub(crate) residuals: Vec<ResidualPlan>,
    /// Free slots for residual checksums, among those that the architecture sets to 0 before each parser.
    pub kept: Vec<Slot>,
}

impl TofinoContext {
    /// Records that the program accesses this field of the type `owner`.
    pub fn met(&mut self, owner: &str, field: &str) {
        self.reads_parser_error |=
            owner == "ingress_intrinsic_metadata_from_parser_t" && field == "parser_err";
    }
}

/// A call of `subtract_all_and_deposit` that is compiled at the parser's end.
#[derive(Debug, Clone)]
pub(crate) struct ResidualPlan {
    pub(crate) unit: u32,
    /// Slot that is 1 once the packet reached the call.
    pub(crate) met: Slot,
    /// Slot of the parser's position in bits when the packet reached the call.
    pub(crate) start: Slot,
    pub(crate) to: Location,
}

/// A register action's method that is being compiled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodPlan {
    pub(crate) action: ActionId,
    /// First slot of the cell's original value, if the body uses a predicate.
    pub(crate) original: Option<Slot>,
}

/// Slots of standard metadata that v1model's extern functions write.
#[derive(Debug, Default)]
pub struct V1modelContext {
    /// Slots of `egress_spec` and `mcast_grp`, for `mark_to_drop()` without an argument.
    pub destination: [Option<Slot>; 2],
}
