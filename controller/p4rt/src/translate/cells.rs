//! Translates cells of registers and indirect counters (P4Runtime 1.4, sections 9.4 and 9.7).

use super::data::{Names, NoNames, Typed};
use super::{CounterValue, Item, TranslateError};
use crate::p4info::Index;
use crate::v1;
use p4lang::p4info::{Counter, DataType, Digest, ElementField, Register, TypeInfo};
use p4lang::runtime::Value;

type Result<T> = std::result::Result<T, TranslateError>;

pub(super) fn register_to_proto(
    name: &str,
    cell: Option<u64>,
    fields: &[Value],
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
        data: Some(Element::from(register).to_proto(fields, index.types(), &NoNames)?),
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
        fields: Element::from(register).from_proto(data, index.types(), &NoNames)?,
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

/// Encodes the index of a register or counter cell as a P4Runtime message.
#[must_use]
pub fn index_to_proto(cell: u64) -> v1::Index {
    v1::Index {
        index: i64::try_from(cell).unwrap_or(i64::MAX),
    }
}

/// Decodes the index of a cell in an array of `size` cells; `None` means all cells.
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

/// The type of a register's cells or a digest's messages, as its P4Info describes it.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    owner: &'a str,
    declared: Option<&'a DataType>,
    struct_name: &'a Option<String>,
    fields: &'a [ElementField],
}

impl<'a> From<&'a Register> for Element<'a> {
    fn from(register: &'a Register) -> Self {
        Element {
            owner: &register.preamble.name,
            declared: register.data_type.as_ref(),
            struct_name: &register.struct_name,
            fields: &register.element,
        }
    }
}

impl<'a> From<&'a Digest> for Element<'a> {
    fn from(digest: &'a Digest) -> Self {
        Element {
            owner: &digest.preamble.name,
            declared: digest.data_type.as_ref(),
            struct_name: &digest.struct_name,
            fields: &digest.element,
        }
    }
}

impl Element<'_> {
    /// Encodes the scalars of a register cell or digest message as a P4Runtime value.
    pub fn to_proto(
        self,
        scalars: &[Value],
        types: &TypeInfo,
        names: &dyn Names,
    ) -> Result<v1::P4Data> {
        self.with_type(types, |ty| ty.to_proto(scalars, names))
    }

    /// Decodes the scalars of a register cell or digest message from a P4Runtime value.
    pub fn from_proto(
        self,
        data: &v1::P4Data,
        types: &TypeInfo,
        names: &dyn Names,
    ) -> Result<Vec<Value>> {
        self.with_type(types, |ty| ty.from_proto(data, names))
    }

    /// Calls `work` with the element's declared type, or if that is unknown, with a type built from its scalars.
    fn with_type<R>(
        self,
        types: &TypeInfo,
        work: impl FnOnce(Typed<'_>) -> Result<R>,
    ) -> Result<R> {
        let Element {
            owner,
            declared,
            struct_name,
            fields,
        } = self;
        if let Some(ty) = declared {
            return work(Typed { owner, ty, types });
        }
        let scalar = |field: &ElementField| match (field.boolean, field.signed) {
            (true, _) => DataType::Bool,
            (false, true) => DataType::Int(field.bitwidth),
            (false, false) => DataType::Bit(field.bitwidth),
        };
        let mut made_up = TypeInfo::default();
        let ty = match (struct_name, fields) {
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
}
