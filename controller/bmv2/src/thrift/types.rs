//! Arguments and results of BMv2's calls.

use super::value::Value;

/// The match on one field of a key; values have the field's width in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyPart {
    /// The field equals the value.
    Exact(Vec<u8>),
    /// The first bits of the field equal those of the value: value, number of bits.
    Lpm(Vec<u8>, i32),
    /// The field equals the value in the bits of the mask: value, mask. `optional` fields use this as well.
    Ternary(Vec<u8>, Vec<u8>),
    /// Whether a header is valid.
    Valid(bool),
    /// The field lies in a range: first value, last value.
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

/// Contents of a counter's cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes.
    pub bytes: i64,
    /// Packets.
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
    /// The port that receives a copy.
    pub port: Option<i32>,
    /// The multicast group that receives copies.
    pub group: Option<i32>,
}

/// The action of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionEntry {
    /// The entry has no action.
    None,
    /// An action with its parameters' bytes.
    Action(String, Vec<Vec<u8>>),
    /// A member of an action profile.
    Member(i32),
    /// A group of an action profile.
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

/// An entry as the switch returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEntry {
    /// Fields of the key, in the table's order.
    pub key: Vec<KeyPart>,
    /// Priority of the entry; the smallest number has precedence.
    pub priority: Option<i32>,
    /// Number of the entry on the switch.
    pub handle: i32,
    /// Action of the entry.
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
