//! Translates meters, direct counters, value sets and digest settings (P4Runtime 1.4, sections 9.3, 9.4, 9.6, 9.8).

use super::matches::{EXACT, match_from_proto, match_to_proto};
use super::table::{EntryAt, at_from_proto, at_to_proto};
use super::{CounterValue, Item, Part, TranslateError, cells};
use crate::p4info::Index;
use crate::v1;
use p4lang::p4info::{Digest, Meter, ValueSet};
use p4lang::runtime::FieldMatch;

type Result<T> = std::result::Result<T, TranslateError>;

/// Configuration of a two-rate three-color meter (RFC 2698), in packets or bytes as the meter declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed information rate, in packets or bytes per second.
    pub cir: u64,
    /// Committed burst size, in packets or bytes.
    pub cburst: u64,
    /// Peak information rate, in packets or bytes per second.
    pub pir: u64,
    /// Peak burst size, in packets or bytes.
    pub pburst: u64,
}

/// How a switch gathers a digest's messages into lists before it sends them to the controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DigestConfig {
    /// Maximum time in nanoseconds that a message waits for further messages of its list.
    pub max_timeout_ns: u64,
    /// Maximum number of messages in a list; 0 leaves the limit to the switch.
    pub max_list_size: u32,
    /// Time in nanoseconds before the switch may send an equal message again; an acknowledgment of its list ends this time.
    pub ack_timeout_ns: u64,
}

impl MeterConfig {
    fn to_proto(self) -> Result<v1::MeterConfig> {
        let number = |value: u64| {
            let too_large = |_| TranslateError::Malformed(format!("invalid rate or burst {value}"));
            i64::try_from(value).map_err(too_large)
        };
        Ok(v1::MeterConfig {
            cir: number(self.cir)?,
            cburst: number(self.cburst)?,
            pir: number(self.pir)?,
            pburst: number(self.pburst)?,
            eburst: 0,
        })
    }

    fn from_proto(config: &v1::MeterConfig) -> Result<Self> {
        let number = |value: i64| {
            let negative = |_| TranslateError::Malformed(format!("invalid rate or burst {value}"));
            u64::try_from(value).map_err(negative)
        };
        Ok(Self {
            cir: number(config.cir)?,
            cburst: number(config.cburst)?,
            pir: number(config.pir)?,
            pburst: number(config.pburst)?,
        })
    }
}

pub(super) fn meter_to_proto(
    name: &str,
    cell: Option<u64>,
    config: Option<MeterConfig>,
    index: &Index,
) -> Result<v1::MeterEntry> {
    let meter = index.meters.named(name);
    let meter = meter.ok_or_else(|| TranslateError::unknown_name::<Meter>(name))?;
    cells::check_index(&meter.preamble.name, cell, meter.size)?;
    Ok(v1::MeterEntry {
        meter_id: meter.preamble.id,
        index: cell.map(cells::index_to_proto),
        config: config.map(MeterConfig::to_proto).transpose()?,
        counter_data: None,
    })
}

pub(super) fn meter_from_proto(entry: &v1::MeterEntry, index: &Index) -> Result<Item> {
    let id = entry.meter_id;
    let meter = index.meters.with_id(id);
    let meter = meter.ok_or_else(|| TranslateError::unknown_id::<Meter>(id))?;
    let name = &meter.preamble.name;
    Ok(Item::Meter {
        name: name.clone(),
        index: cells::index_from_proto(name, entry.index, meter.size)?,
        config: entry
            .config
            .as_ref()
            .map(MeterConfig::from_proto)
            .transpose()?,
    })
}

pub(super) fn direct_meter_to_proto(
    at: &EntryAt,
    config: Option<MeterConfig>,
    index: &Index,
) -> Result<v1::DirectMeterEntry> {
    Ok(v1::DirectMeterEntry {
        table_entry: Some(at_to_proto(at, index)?),
        config: config.map(MeterConfig::to_proto).transpose()?,
        counter_data: None,
    })
}

pub(super) fn direct_meter_from_proto(entry: &v1::DirectMeterEntry, index: &Index) -> Result<Item> {
    Ok(Item::DirectMeter {
        at: at(entry.table_entry.as_ref(), index)?,
        config: entry
            .config
            .as_ref()
            .map(MeterConfig::from_proto)
            .transpose()?,
    })
}

pub(super) fn direct_counter_to_proto(
    at: &EntryAt,
    value: Option<CounterValue>,
    index: &Index,
) -> Result<v1::DirectCounterEntry> {
    Ok(v1::DirectCounterEntry {
        table_entry: Some(at_to_proto(at, index)?),
        data: value.map(cells::value_to_proto),
    })
}

pub(super) fn direct_counter_from_proto(
    entry: &v1::DirectCounterEntry,
    index: &Index,
) -> Result<Item> {
    Ok(Item::DirectCounter {
        at: at(entry.table_entry.as_ref(), index)?,
        value: entry.data.as_ref().map(cells::value_from_proto),
    })
}

fn at(entry: Option<&v1::TableEntry>, index: &Index) -> Result<EntryAt> {
    let unset = TranslateError::Unset {
        what: "table_entry",
    };
    at_from_proto(entry.ok_or(unset)?, index)
}

pub(super) fn value_set_to_proto(
    name: &str,
    members: &[Vec<FieldMatch>],
    index: &Index,
) -> Result<v1::ValueSetEntry> {
    let set = index.value_sets.named(name);
    let set = set.ok_or_else(|| TranslateError::unknown_name::<ValueSet>(name))?;
    let member = |fields: &Vec<FieldMatch>| {
        let mut matches = Vec::new();
        for field in &set.match_fields {
            // The field has no name in a set of plain values.
            let given = fields.iter().find(|f| f.field == field.name);
            match given {
                Some(given) => matches.extend(match_to_proto(name, field, &given.value)?),
                None if field.match_type == EXACT => {
                    return Err(missing(name, &field.name));
                }
                None => {}
            }
        }
        if let Some(stray) = fields
            .iter()
            .find(|f| set.match_fields.iter().all(|field| field.name != f.field))
        {
            return Err(unknown(name, format!("`{}`", stray.field)));
        }
        Ok(v1::ValueSetMember { r#match: matches })
    };
    Ok(v1::ValueSetEntry {
        value_set_id: set.preamble.id,
        members: members.iter().map(member).collect::<Result<_>>()?,
    })
}

pub(super) fn value_set_from_proto(entry: &v1::ValueSetEntry, index: &Index) -> Result<Item> {
    let id = entry.value_set_id;
    let set = index.value_sets.with_id(id);
    let set = set.ok_or_else(|| TranslateError::unknown_id::<ValueSet>(id))?;
    let name = &set.preamble.name;
    let field = |given: &v1::FieldMatch| {
        let field = set.match_fields.iter().find(|f| f.id == given.field_id);
        let field = field.ok_or_else(|| unknown(name, format!("with id {}", given.field_id)))?;
        Ok(FieldMatch {
            field: field.name.clone(),
            value: match_from_proto(name, field, given)?,
        })
    };
    let member = |member: &v1::ValueSetMember| member.r#match.iter().map(field).collect();
    Ok(Item::ValueSet {
        name: name.clone(),
        members: entry.members.iter().map(member).collect::<Result<_>>()?,
    })
}

fn missing(owner: &str, field: &str) -> TranslateError {
    TranslateError::Missing {
        owner: owner.to_owned(),
        kind: "field",
        field: field.to_owned(),
    }
}

fn unknown(owner: &str, field: String) -> TranslateError {
    TranslateError::UnknownField {
        owner: owner.to_owned(),
        kind: "field",
        field,
    }
}

pub(super) fn digest_to_proto(
    name: &str,
    config: Option<DigestConfig>,
    index: &Index,
) -> Result<v1::DigestEntry> {
    let digest = index.digests.named(name);
    let digest = digest.ok_or_else(|| TranslateError::unknown_name::<Digest>(name))?;
    let large = |_| TranslateError::Malformed("a digest's time or size is too large".to_owned());
    let config = config.map(|config| {
        Ok(v1::digest_entry::Config {
            max_timeout_ns: i64::try_from(config.max_timeout_ns).map_err(large)?,
            max_list_size: i32::try_from(config.max_list_size).map_err(large)?,
            ack_timeout_ns: i64::try_from(config.ack_timeout_ns).map_err(large)?,
        })
    });
    Ok(v1::DigestEntry {
        digest_id: digest.preamble.id,
        config: config.transpose()?,
    })
}

pub(super) fn digest_from_proto(
    entry: &v1::DigestEntry,
    index: &Index,
    part: Part,
) -> Result<Item> {
    let id = entry.digest_id;
    let digest = index.digests.with_id(id);
    let digest = digest.ok_or_else(|| TranslateError::unknown_id::<Digest>(id))?;
    let negative = |_| TranslateError::Malformed("a digest's time or size is negative".to_owned());
    let config = entry.config.as_ref().filter(|_| part == Part::Whole);
    let config = config.map(|config| {
        Ok(DigestConfig {
            max_timeout_ns: u64::try_from(config.max_timeout_ns).map_err(negative)?,
            max_list_size: u32::try_from(config.max_list_size).map_err(negative)?,
            ack_timeout_ns: u64::try_from(config.ack_timeout_ns).map_err(negative)?,
        })
    });
    Ok(Item::Digest {
        name: digest.preamble.name.clone(),
        config: config.transpose()?,
    })
}
