//! Declarations of tables and of their actions, without entries.

use super::key::FieldSpec;
use crate::bits::limbs;
use crate::externs::counter::CounterKind;

/// The declaration of an action that a table offers.
#[derive(Debug, Clone)]
pub struct ActionSpec {
    /// Fully qualified name of the action.
    pub name: String,
    /// Parameters that the control plane sets: name and width in bits.
    pub params: Vec<(String, u32)>,
    /// Whether the action is `@defaultonly`: entries may not use it.
    pub default_only: bool,
    /// Whether the action is `@tableonly`: it may not be the default action.
    pub table_only: bool,
    /// Whether entries with the action count in the table's direct counter.
    pub counts: bool,
    /// Whether entries with the action use the table's direct meter.
    pub meters: bool,
}

impl ActionSpec {
    /// Number of 64-bit slots of all parameters of the action.
    pub fn slots(&self) -> usize {
        self.params.iter().map(|(_, w)| limbs(*w) as usize).sum()
    }
}

/// A direct meter, which has a cell for each table entry.
#[derive(Debug, Clone)]
pub struct DirectMeter {
    /// Fully qualified name of the meter.
    pub name: String,
    /// Whether the meter measures bytes rather than packets.
    pub bytes: bool,
    /// The architecture's numbers of the colors green, yellow, red.
    pub colours: [u64; 3],
}

/// The declaration of a table.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Fully qualified name of the table.
    pub name: String,
    /// Fields of the key that entries match, in order of declaration.
    pub fields: Vec<FieldSpec>,
    /// Actions that the table offers, in order of declaration.
    pub actions: Vec<ActionSpec>,
    /// Whether the table has a `const default_action`, which cannot be written.
    pub const_default: bool,
    /// Whether the table has `const entries`, which cannot be written.
    pub const_entries: bool,
    /// Maximum number of entries of the table.
    pub size: u64,
    /// Name and kind of the table's direct counter; `None` if it has none.
    pub direct_counter: Option<(String, CounterKind)>,
    /// Name of the action profile or selector whose members or groups the entries refer to; `None` if there is none.
    pub implementation: Option<String>,
    /// The table's direct meter; `None` if it has none.
    pub direct_meter: Option<DirectMeter>,
    /// Whether entries may have an idle timeout, after which the control plane is notified that no packet matched them.
    pub idle_timeout: bool,
}

impl Spec {
    /// Whether entries have a priority: whether a key field is ternary, range or optional.
    pub fn wants_priority(&self) -> bool {
        self.fields.iter().any(|f| f.kind.wants_priority())
    }
}
