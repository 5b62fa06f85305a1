//! Converts table entries, multicast groups and action calls of P4Runtime to JSON and text.

use p4lang::runtime::{ActionCall, FieldMatch, Match, MulticastGroup, Replica, TableEntry, Value};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

pub(super) fn call(name: String, params: &[(&str, u128)]) -> ActionCall {
    ActionCall {
        name,
        params: params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect(),
    }
}

/// Writes table entries as JSON: p4lang's runtime types do not implement serde.
pub(super) fn serialize_entries<S: Serializer>(
    entries: &[TableEntry],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct Entry<'a>(&'a TableEntry);
    struct Key<'a>(&'a [FieldMatch]);
    struct Params<'a>(&'a [(String, Value)]);
    struct Number<'a>(&'a Value);
    impl Serialize for Number<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.0.to_u128() {
                Some(number) => number.serialize(serializer),
                None => serializer.collect_str(self.0),
            }
        }
    }
    impl Serialize for Key<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(
                self.0
                    .iter()
                    .map(|field| (&field.field, show_match(&field.value))),
            )
        }
    }
    impl Serialize for Params<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(name, value)| (name, Number(value))))
        }
    }
    impl Serialize for Entry<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("table", &self.0.table)?;
            map.serialize_entry("key", &Key(&self.0.key))?;
            map.serialize_entry("priority", &self.0.priority)?;
            map.serialize_entry("action", &self.0.action.name)?;
            map.serialize_entry("params", &Params(&self.0.action.params))?;
            map.end()
        }
    }
    let mut list = serializer.serialize_seq(Some(entries.len()))?;
    for entry in entries {
        list.serialize_element(&Entry(entry))?;
    }
    list.end()
}

pub(super) fn serialize_groups<S: Serializer>(
    groups: &[MulticastGroup],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Group {
        id: u32,
        ports: Vec<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        instances: Option<Vec<u16>>,
    }
    serializer.collect_seq(groups.iter().map(|group| Group {
        id: group.id,
        ports: group.replicas.iter().map(|replica| replica.port).collect(),
        instances: instances(&group.replicas),
    }))
}

/// The instance numbers of a multicast group's replicas; `None` if they are 1, 2, … in order.
fn instances(replicas: &[Replica]) -> Option<Vec<u16>> {
    let instances: Vec<u16> = replicas.iter().map(|replica| replica.instance).collect();
    let counted = instances.iter().zip(1..).all(|(one, other)| *one == other);
    (!counted).then_some(instances)
}

pub(super) fn show_match(value: &Match) -> String {
    match value {
        Match::Exact(value) | Match::Optional(value) => format!("{value:#x}"),
        Match::Lpm { value, prefix_len } => format!("{value:#x}/{prefix_len}"),
        Match::Ternary { value, mask } => format!("{value:#x} &&& {mask:#x}"),
        Match::Range { low, high } => format!("{low}..{high}"),
    }
}
