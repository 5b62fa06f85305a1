//! The specification of a table, without its entries.

use super::key::FieldSpec;
use crate::bits::limbs;
use crate::externs::counter::CounterKind;

/// An action that a table offers.
#[derive(Debug, Clone)]
pub struct ActionSpec {
    /// Fully qualified name.
    pub name: String,
    /// Parameters set by the control plane: name and width in bits.
    pub params: Vec<(String, u32)>,
    /// Whether the action is `@defaultonly`.
    pub default_only: bool,
    /// Whether the action is `@tableonly`.
    pub table_only: bool,
    /// Whether entries with the action count in the table's direct counter.
    pub counts: bool,
    /// Whether entries with the action use the table's direct meter.
    pub meters: bool,
}

impl ActionSpec {
    /// Number of slots of all parameters.
    pub fn slots(&self) -> usize {
        self.params.iter().map(|(_, w)| limbs(*w) as usize).sum()
    }
}

/// A meter with a cell for each entry.
#[derive(Debug, Clone)]
pub struct DirectMeter {
    /// Fully qualified name.
    pub name: String,
    /// Whether the units are bytes rather than packets.
    pub bytes: bool,
    /// The program's values of the colors green, yellow, red.
    pub colours: [u64; 3],
}

/// A table's declaration.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Fully qualified name.
    pub name: String,
    /// Fields of the key.
    pub fields: Vec<FieldSpec>,
    /// Actions in order.
    pub actions: Vec<ActionSpec>,
    /// Whether the table has a `const default_action`.
    pub const_default: bool,
    /// Whether the table has `const entries`.
    pub const_entries: bool,
    /// Maximum number of entries.
    pub size: u64,
    /// The table's direct counter.
    pub direct_counter: Option<(String, CounterKind)>,
    /// The action profile or selector that entries may refer to.
    pub implementation: Option<String>,
    /// The table's direct meter.
    pub direct_meter: Option<DirectMeter>,
    /// Whether entries may have an idle timeout, after which the control plane is notified that no packet matched them.
    pub idle_timeout: bool,
}

impl Spec {
    /// Whether entries have a priority.
    pub fn wants_priority(&self) -> bool {
        self.fields.iter().any(|f| f.kind.wants_priority())
    }
}
