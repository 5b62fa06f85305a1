//! Types of the arguments and results of BMv2's Thrift calls: keys, actions, table entries, counter cells.

use super::value::Value;

/// Match on one field of a table's key. Values are big-endian, with as many bytes as the field's width needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyPart {
    /// The field equals this value.
    Exact(Vec<u8>),
    /// The field begins with the first bits of a value: the value, and the number of these bits.
    Lpm(Vec<u8>, i32),
    /// The field equals a value in the bits of a mask: the value, and the mask. `optional` fields use this as well.
    Ternary(Vec<u8>, Vec<u8>),
    /// Whether the header that the key names is valid.
    Valid(bool),
    /// The field lies in a range: its first value, and its last value (inclusive).
    Range(Vec<u8>, Vec<u8>),
}

impl KeyPart {
    pub(super) fn to_value(&self) -> Vec<(i16, Value)> {
        // Field 1 tells which of the other fields is set.
        let (kind, value) = match self {
            KeyPart::Exact(key) => (0, vec![(1, bytes(key))]),
            KeyPart::Lpm(key, length) => (1, vec![(1, bytes(key)), (2, (*length).into())]),
            KeyPart::Ternary(key, mask) => (2, vec![(1, bytes(key)), (2, bytes(mask))]),
            KeyPart::Valid(valid) => (3, vec![(1, Value::Bool(*valid))]),
            KeyPart::Range(start, end) => (4, vec![(1, bytes(start)), (2, bytes(end))]),
        };
        vec![(1, kind.into()), (2 + kind as i16, Value::Struct(value))]
    }

    pub(super) fn of_value(value: &Value) -> Option<KeyPart> {
        let kind = value.field(1)?.i32()?;
        let part = value.field(2 + i16::try_from(kind).ok()?)?;
        let data = |number| Some(part.field(number)?.binary()?.to_vec());
        Some(match kind {
            0 => KeyPart::Exact(data(1)?),
            1 => KeyPart::Lpm(data(1)?, part.field(2)?.i32()?),
            2 => KeyPart::Ternary(data(1)?, data(2)?),
            3 => KeyPart::Valid(matches!(part.field(1)?, Value::Bool(true))),
            4 => KeyPart::Range(data(1)?, data(2)?),
            _ => return None,
        })
    }
}

/// Contents of one cell of a counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of bytes counted.
    pub bytes: i64,
    /// Number of packets counted.
    pub packets: i64,
}

impl Counts {
    pub(super) fn to_value(self) -> Value {
        Value::Struct(vec![(1, self.bytes.into()), (2, self.packets.into())])
    }

    pub(super) fn of_value(value: &Value) -> Option<Counts> {
        Some(Counts {
            bytes: value.field(1)?.i64()?,
            packets: value.field(2)?.i64()?,
        })
    }
}

/// Destination of a clone session's copies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mirror {
    /// Port that receives a copy; `None` for no port.
    pub port: Option<i32>,
    /// Multicast group whose ports receive copies; `None` for no group.
    pub group: Option<i32>,
}

/// Action of a table entry, or of a table's default entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionEntry {
    /// The table entry has no action.
    None,
    /// Name of an action, and the bytes of each of its parameters.
    Action(String, Vec<Vec<u8>>),
    /// Handle of a member of an action profile.
    Member(i32),
    /// Handle of a group of an action profile.
    Group(i32),
}

impl ActionEntry {
    pub(super) fn of_value(value: &Value) -> Option<ActionEntry> {
        Some(match value.field(1)?.i32()? {
            0 => ActionEntry::None,
            1 => ActionEntry::Action(
                value.field(2)?.text()?.to_owned(),
                data_of(value.field(3)?)?,
            ),
            2 => ActionEntry::Member(value.field(4)?.i32()?),
            3 => ActionEntry::Group(value.field(5)?.i32()?),
            _ => return None,
        })
    }
}

/// A table entry as the switch returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEntry {
    /// Match on each field of the key, in the table's order.
    pub key: Vec<KeyPart>,
    /// Priority of the entry (the smallest number wins); `None` in a table without priorities.
    pub priority: Option<i32>,
    /// BMv2's handle of the table entry.
    pub handle: i32,
    /// Action of the table entry.
    pub action: ActionEntry,
}

impl RawEntry {
    pub(super) fn of_value(value: &Value) -> Option<RawEntry> {
        let key = value.field(1)?.list()?.iter().map(KeyPart::of_value);
        Some(RawEntry {
            key: key.collect::<Option<_>>()?,
            priority: value.field(2).and_then(|options| options.field(1)?.i32()),
            handle: value.field(3)?.i32()?,
            action: ActionEntry::of_value(value.field(4)?)?,
        })
    }
}

pub(super) fn bytes(value: &[u8]) -> Value {
    value.into()
}

fn data_of(value: &Value) -> Option<Vec<Vec<u8>>> {
    let parts = value.list()?.iter();
    parts.map(|part| Some(part.binary()?.to_vec())).collect()
}
