//! What a table is, apart from its entries.

use super::key::FieldSpec;
use crate::bits::limbs;
use crate::externs::counter::Kind as CounterKind;

/// An action that a table offers.
#[derive(Debug, Clone)]
pub struct ActionSpec {
    /// Fully qualified.
    pub name: String,
    /// Parameters of the control plane: name and width in bits.
    pub params: Vec<(String, u32)>,
    /// `@defaultonly`
    pub default_only: bool,
    /// `@tableonly`
    pub table_only: bool,
    /// Entries that run it count by the table's direct counter.
    pub counts: bool,
    /// The same of the direct meter.
    pub meters: bool,
}

impl ActionSpec {
    /// Slots of all parameters.
    pub fn slots(&self) -> usize {
        self.params.iter().map(|(_, w)| limbs(*w) as usize).sum()
    }
}

/// A meter with a cell for each entry.
#[derive(Debug, Clone)]
pub struct DirectMeter {
    /// Fully qualified.
    pub name: String,
    /// Bytes rather than packets.
    pub bytes: bool,
    /// The program's values of green, yellow, red.
    pub colours: [u64; 3],
}

/// A table's declaration.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Fully qualified.
    pub name: String,
    /// Key.
    pub fields: Vec<FieldSpec>,
    /// Actions in order.
    pub actions: Vec<ActionSpec>,
    /// `const default_action`
    pub const_default: bool,
    /// `const entries`
    pub const_entries: bool,
    /// Entries at most.
    pub size: u64,
    /// Its direct counter.
    pub direct_counter: Option<(String, CounterKind)>,
    /// The action profile or selector that its entries may name.
    pub implementation: Option<String>,
    /// Its direct meter.
    pub direct_meter: Option<DirectMeter>,
    /// Its entries may have a time after which the control plane is told that no packet found them.
    pub idle_timeout: bool,
}

impl Spec {
    /// Entries carry a priority.
    pub fn wants_priority(&self) -> bool {
        self.fields.iter().any(|f| f.kind.wants_priority())
    }
}
