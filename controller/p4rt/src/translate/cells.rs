//! Cells of registers and indirect counters (P4Runtime 1.4, sections 9.4 and 9.7).

use super::data::{Names, NoNames, Typed};
use super::{CounterValue, Item, TranslateError};
use crate::p4info::Index;
use crate::v1;
use p4lang::p4info::{Counter, DataType, Digest, ElementField, Register, TypeInfo};

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
        data: Some(element_to_proto(register, fields, index.types(), &NoNames)?),
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
        fields: element_from_proto(register, data, index.types(), &NoNames)?,
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
        data: value.map(value_to_proto),
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
        value: entry.data.as_ref().map(value_from_proto),
    })
}

pub(super) fn value_to_proto(value: CounterValue) -> v1::CounterData {
    v1::CounterData {
        byte_count: value.bytes.cast_signed(),
        packet_count: value.packets.cast_signed(),
    }
}

pub(super) fn value_from_proto(data: &v1::CounterData) -> CounterValue {
    CounterValue {
        packets: data.packet_count.cast_unsigned(),
        bytes: data.byte_count.cast_unsigned(),
    }
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

pub(super) fn check_index(name: &str, cell: Option<u64>, size: i64) -> Result<()> {
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
pub fn digest_to_proto(
    digest: &Digest,
    fields: &[u128],
    types: &TypeInfo,
    names: &dyn Names,
) -> Result<v1::P4Data> {
    let element = (digest.data_type.as_ref(), &digest.struct_name);
    with_type(
        &digest.preamble.name,
        element,
        &digest.element,
        types,
        |ty| ty.to_proto(fields, names),
    )
}

/// A digest message's fields.
pub fn digest_from_proto(
    digest: &Digest,
    data: &v1::P4Data,
    types: &TypeInfo,
    names: &dyn Names,
) -> Result<Vec<u128>> {
    let element = (digest.data_type.as_ref(), &digest.struct_name);
    with_type(
        &digest.preamble.name,
        element,
        &digest.element,
        types,
        |ty| ty.from_proto(data, names),
    )
}

/// A register cell's fields as the protocol says them.
pub fn element_to_proto(
    register: &Register,
    fields: &[u128],
    types: &TypeInfo,
    names: &dyn Names,
) -> Result<v1::P4Data> {
    let element = (register.data_type.as_ref(), &register.struct_name);
    let owner = &register.preamble.name;
    with_type(owner, element, &register.element, types, |ty| {
        ty.to_proto(fields, names)
    })
}

/// A register cell's fields.
pub fn element_from_proto(
    register: &Register,
    data: &v1::P4Data,
    types: &TypeInfo,
    names: &dyn Names,
) -> Result<Vec<u128>> {
    let element = (register.data_type.as_ref(), &register.struct_name);
    let owner = &register.preamble.name;
    with_type(owner, element, &register.element, types, |ty| {
        ty.from_proto(data, names)
    })
}

/// The element's type as declared; where that is not known, as its scalars have it.
fn with_type<R>(
    owner: &str,
    (declared, struct_name): (Option<&DataType>, &Option<String>),
    element: &[ElementField],
    types: &TypeInfo,
    work: impl FnOnce(Typed<'_>) -> Result<R>,
) -> Result<R> {
    if let Some(ty) = declared {
        return work(Typed { owner, ty, types });
    }
    let scalar = |field: &ElementField| match (field.boolean, field.signed) {
        (true, _) => DataType::Bool,
        (false, true) => DataType::Int(field.bitwidth),
        (false, false) => DataType::Bit(field.bitwidth),
    };
    let mut made_up = TypeInfo::default();
    let ty = match (struct_name, element) {
        (_, []) => {
            return Err(TranslateError::Unsupported {
                what: format!("{owner}: elements of a type that the P4Info does not describe"),
            });
        }
        (Some(name), fields) => {
            let members = fields.iter().map(|f| (f.name.clone(), scalar(f)));
            made_up.structs.insert(name.clone(), members.collect());
            DataType::Struct(name.clone())
        }
        (None, [field]) => scalar(field),
        (None, fields) => DataType::Tuple(fields.iter().map(scalar).collect()),
    };
    work(Typed {
        owner,
        ty: &ty,
        types: &made_up,
    })
}
