//! Cells of registers and indirect counters (P4Runtime 1.4, sections 9.4 and 9.7).

use super::matches::check_width;
use super::{CounterValue, Item, TranslateError};
use crate::bytes;
use crate::p4info::Index;
use crate::v1;
use crate::v1::p4_data::Data;
use p4lang::p4info::{Counter, Digest, ElementField, Register};

type Result<T> = std::result::Result<T, TranslateError>;

pub(super) fn register_to_proto(
    name: &str,
    cell: Option<u64>,
    fields: &[u128],
    index: &Index,
) -> Result<v1::RegisterEntry> {
    let register = index
        .registers
        .named(name)
        .ok_or_else(|| TranslateError::unknown_name::<Register>(name))?;
    check_index(&register.preamble.name, cell, register.size)?;
    Ok(v1::RegisterEntry {
        register_id: register.preamble.id,
        index: cell.map(index_to_proto),
        data: Some(element_to_proto(register, fields)?),
    })
}

pub(super) fn register_from_proto(entry: &v1::RegisterEntry, index: &Index) -> Result<Item> {
    let id = entry.register_id;
    let register = index
        .registers
        .with_id(id)
        .ok_or_else(|| TranslateError::unknown_id::<Register>(id))?;
    let data = entry
        .data
        .as_ref()
        .ok_or(TranslateError::Unset { what: "data" })?;
    Ok(Item::Register {
        name: register.preamble.name.clone(),
        index: index_from_proto(&register.preamble.name, entry.index, register.size)?,
        fields: element_from_proto(register, data)?,
    })
}

pub(super) fn counter_to_proto(
    name: &str,
    cell: Option<u64>,
    value: Option<CounterValue>,
    index: &Index,
) -> Result<v1::CounterEntry> {
    let counter = index
        .counters
        .named(name)
        .ok_or_else(|| TranslateError::unknown_name::<Counter>(name))?;
    check_index(&counter.preamble.name, cell, counter.size)?;
    Ok(v1::CounterEntry {
        counter_id: counter.preamble.id,
        index: cell.map(index_to_proto),
        data: value.map(|value| v1::CounterData {
            byte_count: value.bytes.cast_signed(),
            packet_count: value.packets.cast_signed(),
        }),
    })
}

pub(super) fn counter_from_proto(entry: &v1::CounterEntry, index: &Index) -> Result<Item> {
    let id = entry.counter_id;
    let counter = index
        .counters
        .with_id(id)
        .ok_or_else(|| TranslateError::unknown_id::<Counter>(id))?;
    Ok(Item::Counter {
        name: counter.preamble.name.clone(),
        index: index_from_proto(&counter.preamble.name, entry.index, counter.size)?,
        value: entry.data.map(|data| CounterValue {
            packets: data.packet_count.cast_unsigned(),
            bytes: data.byte_count.cast_unsigned(),
        }),
    })
}

/// An index as the protocol says it.
#[must_use]
pub fn index_to_proto(cell: u64) -> v1::Index {
    v1::Index {
        index: i64::try_from(cell).unwrap_or(i64::MAX),
    }
}

/// An index into an array of `size` cells; none means all.
pub fn index_from_proto(name: &str, index: Option<v1::Index>, size: i64) -> Result<Option<u64>> {
    let Some(v1::Index { index }) = index else {
        return Ok(None);
    };
    let negative = |_| TranslateError::Malformed(format!("{name}: index {index} is negative"));
    let cell = Some(u64::try_from(index).map_err(negative)?);
    check_index(name, cell, size)?;
    Ok(cell)
}

fn check_index(name: &str, cell: Option<u64>, size: i64) -> Result<()> {
    match cell {
        Some(index) if i64::try_from(index).map_or(true, |index| index >= size) => {
            Err(TranslateError::IndexOutOfRange {
                name: name.to_owned(),
                index,
                size,
            })
        }
        _ => Ok(()),
    }
}

/// A digest message's fields as the protocol says them.
pub fn digest_to_proto(digest: &Digest, fields: &[u128]) -> Result<v1::P4Data> {
    data_to_proto(
        &digest.preamble.name,
        &digest.element,
        digest.struct_name.is_some(),
        fields,
    )
}

fn element_to_proto(register: &Register, fields: &[u128]) -> Result<v1::P4Data> {
    data_to_proto(
        &register.preamble.name,
        &register.element,
        register.struct_name.is_some(),
        fields,
    )
}

fn data_to_proto(
    owner: &str,
    element: &[ElementField],
    is_struct: bool,
    fields: &[u128],
) -> Result<v1::P4Data> {
    check_count(owner, element.len(), fields.len())?;
    let fields = element.iter().zip(fields);
    let mut members = fields
        .map(|(field, &value)| scalar_to_proto(field, value))
        .collect::<Result<Vec<_>>>()?;
    match (is_struct, members.len()) {
        (false, 1) => Ok(members.remove(0)),
        (true, _) => Ok(v1::P4Data {
            data: Some(Data::Struct(v1::P4StructLike { members })),
        }),
        (false, _) => Ok(v1::P4Data {
            data: Some(Data::Tuple(v1::P4StructLike { members })),
        }),
    }
}

fn element_from_proto(register: &Register, data: &v1::P4Data) -> Result<Vec<u128>> {
    let members = match (&register.struct_name, register.element.len(), &data.data) {
        (None, 1, _) => std::slice::from_ref(data),
        (Some(_), _, Some(Data::Struct(members))) | (None, _, Some(Data::Tuple(members))) => {
            &members.members
        }
        _ => return Err(wrong_type(&register.preamble.name)),
    };
    check_count(
        &register.preamble.name,
        register.element.len(),
        members.len(),
    )?;
    let members = register.element.iter().zip(members);
    members
        .map(|(field, member)| scalar_from_proto(&register.preamble.name, field, member))
        .collect()
}

fn check_count(name: &str, declared: usize, given: usize) -> Result<()> {
    match declared {
        0 => Err(TranslateError::Unsupported {
            what: format!("{name}: elements other than scalars and flat structs"),
        }),
        _ if given == declared => Ok(()),
        _ => Err(TranslateError::Malformed(format!(
            "{name}: an element has {declared} fields, not {given}"
        ))),
    }
}

fn scalar_to_proto(field: &ElementField, value: u128) -> Result<v1::P4Data> {
    check_width(&field.name, value, field.bitwidth)?;
    let data = match field {
        ElementField { boolean: true, .. } => Data::Bool(value != 0),
        ElementField {
            signed: true,
            bitwidth,
            ..
        } => Data::Bitstring(bytes::encode_signed(value, *bitwidth)),
        ElementField { .. } => Data::Bitstring(bytes::encode(value)),
    };
    Ok(v1::P4Data { data: Some(data) })
}

fn scalar_from_proto(register: &str, field: &ElementField, data: &v1::P4Data) -> Result<u128> {
    let value = match (field.boolean, &data.data) {
        (true, Some(Data::Bool(value))) => Ok(u128::from(*value)),
        (false, Some(Data::Bitstring(value))) if field.signed => {
            bytes::decode_signed(value, field.bitwidth)
        }
        (false, Some(Data::Bitstring(value))) => bytes::decode(value, field.bitwidth),
        _ => return Err(wrong_type(register)),
    };
    let field = if field.name.is_empty() {
        register
    } else {
        &field.name
    };
    value.map_err(|source| TranslateError::Value {
        field: field.to_owned(),
        source,
    })
}

fn wrong_type(register: &str) -> TranslateError {
    TranslateError::Malformed(format!(
        "{register}: the data is of another type than the register's element"
    ))
}
