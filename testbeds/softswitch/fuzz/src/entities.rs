//! Generates entities that are mostly valid, and queries for them.

use arbitrary::{Result, Unstructured};
use p4rt::config::{self, P4Info, match_field};
use p4rt::v1;
use prost::bytes::Bytes;
use v1::entity::Entity as Kind;
use v1::field_match::{self, FieldMatchType};
use v1::packet_replication_engine_entry::Type as Replication;

pub(super) fn entity_of(kind: Kind) -> v1::Entity {
    v1::Entity { entity: Some(kind) }
}

/// Queries for all entities.
pub fn all() -> Vec<v1::Entity> {
    let table = |default| v1::TableEntry {
        is_default_action: default,
        counter_data: Some(v1::CounterData::default()),
        meter_config: Some(Box::default()),
        ..v1::TableEntry::default()
    };
    let replication = |kind| {
        Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry { r#type: Some(kind) })
    };
    [
        Kind::TableEntry(table(false)),
        Kind::TableEntry(table(true)),
        Kind::ActionProfileMember(v1::ActionProfileMember::default()),
        Kind::ActionProfileGroup(v1::ActionProfileGroup::default()),
        Kind::MeterEntry(v1::MeterEntry::default()),
        Kind::CounterEntry(v1::CounterEntry::default()),
        Kind::RegisterEntry(v1::RegisterEntry::default()),
        Kind::ValueSetEntry(v1::ValueSetEntry::default()),
        Kind::DigestEntry(v1::DigestEntry::default()),
        replication(Replication::MulticastGroupEntry(
            v1::MulticastGroupEntry::default(),
        )),
        replication(Replication::CloneSessionEntry(
            v1::CloneSessionEntry::default(),
        )),
    ]
    .map(entity_of)
    .into()
}

/// One of these ids, or a random number.
fn id(
    ids: impl Iterator<Item = Option<config::Preamble>>,
    input: &mut Unstructured<'_>,
) -> Result<u32> {
    let ids: Vec<u32> = ids.flatten().map(|preamble| preamble.id).collect();
    if ids.is_empty() || input.ratio(1, 16)? {
        return input.int_in_range(0..=3);
    }
    Ok(*input.choose(&ids)?)
}

fn bytes(width: i32, input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let length = (width.max(1) as usize).div_ceil(8);
    Ok(match input.int_in_range(0..=15u8)? {
        0 => Vec::new(),
        1 => input.arbitrary::<[u8; 20]>()?.to_vec(),
        2 => vec![0; length],
        3..=9 => vec![input.int_in_range(0..=3)?],
        _ => {
            let mut bytes = (0..length)
                .map(|_| input.arbitrary())
                .collect::<Result<Vec<u8>>>()?;
            // Keeps the value within the width.
            let spare = length as u32 * 8 - width.max(1) as u32;
            bytes[0] &= 0xff >> spare;
            bytes
        }
    })
}

/// An action of the program with its parameters; sometimes one parameter is missing.
fn action(info: &P4Info, ids: &[u32], input: &mut Unstructured<'_>) -> Result<v1::Action> {
    let wanted = match ids.is_empty() || input.ratio(1, 16)? {
        true => id(info.actions.iter().map(|a| a.preamble.clone()), input)?,
        false => *input.choose(ids)?,
    };
    let of = |a: &&config::Action| a.preamble.as_ref().is_some_and(|p| p.id == wanted);
    let mut params = Vec::new();
    for param in info.actions.iter().find(of).iter().flat_map(|a| &a.params) {
        if input.ratio(15, 16)? {
            params.push(v1::action::Param {
                param_id: param.id,
                value: match param.bitwidth {
                    0 => Bytes::from_static(input.choose(&[&b"one"[..], b"red", b"", b"x"])?),
                    width => bytes(width, input)?.into(),
                },
            });
        }
    }
    Ok(v1::Action {
        action_id: wanted,
        params,
    })
}

fn field(spec: &config::MatchField, input: &mut Unstructured<'_>) -> Result<v1::FieldMatch> {
    let width = spec.bitwidth;
    let exact = match width {
        0 => input.choose(&[&b"red"[..], b"blue", b""])?.to_vec(),
        width => bytes(width, input)?,
    };
    let own = match spec.r#match {
        Some(match_field::Match::MatchType(kind)) => kind,
        _ => 0,
    };
    let kind = match input.ratio(1, 16)? {
        true => input.int_in_range(0..=8i32)?,
        false => own,
    };
    let matched = match match_field::MatchType::try_from(kind) {
        Ok(match_field::MatchType::Lpm) => FieldMatchType::Lpm(field_match::Lpm {
            value: exact.into(),
            prefix_len: input.int_in_range(-1..=width + 1)?,
        }),
        Ok(match_field::MatchType::Ternary) => {
            let mask = bytes(width, input)?;
            let mut value = exact;
            if value.len() == mask.len() {
                value.iter_mut().zip(&mask).for_each(|(v, m)| *v &= m);
            }
            FieldMatchType::Ternary(field_match::Ternary {
                value: value.into(),
                mask: mask.into(),
            })
        }
        Ok(match_field::MatchType::Range) => FieldMatchType::Range(field_match::Range {
            low: exact.into(),
            high: bytes(width, input)?.into(),
        }),
        Ok(match_field::MatchType::Optional) => FieldMatchType::Optional(field_match::Optional {
            value: exact.into(),
        }),
        _ => FieldMatchType::Exact(field_match::Exact {
            value: exact.into(),
        }),
    };
    Ok(v1::FieldMatch {
        field_id: spec.id,
        field_match_type: Some(matched),
    })
}

fn table_entry(info: &P4Info, input: &mut Unstructured<'_>) -> Result<v1::TableEntry> {
    let table_id = id(info.tables.iter().map(|t| t.preamble.clone()), input)?;
    let of = |t: &&config::Table| t.preamble.as_ref().is_some_and(|p| p.id == table_id);
    let table = info.tables.iter().find(of).cloned().unwrap_or_default();
    let mut matches = Vec::new();
    let default = input.ratio(1, 12)?;
    if !default {
        for spec in &table.match_fields {
            if input.ratio(15, 16)? {
                matches.push(field(spec, input)?);
            }
        }
    }
    let ids: Vec<u32> = table.action_refs.iter().map(|a| a.id).collect();
    let action = match input.int_in_range(0..=11u8)? {
        0 => None,
        1 | 2 => Some(v1::table_action::Type::ActionProfileMemberId(
            input.int_in_range(0..=4)?,
        )),
        3 | 4 => Some(v1::table_action::Type::ActionProfileGroupId(
            input.int_in_range(0..=4)?,
        )),
        5 => {
            let one = |input: &mut Unstructured<'_>| {
                Ok(v1::ActionProfileAction {
                    action: Some(action(info, &ids, input)?),
                    weight: input.int_in_range(-1..=9)?,
                    watch_kind: None,
                })
            };
            let set = v1::ActionProfileActionSet {
                action_profile_actions: (0..input.int_in_range(0..=3u8)?)
                    .map(|_| one(input))
                    .collect::<Result<_>>()?,
            };
            Some(v1::table_action::Type::ActionProfileActionSet(set))
        }
        _ => Some(v1::table_action::Type::Action(action(info, &ids, input)?)),
    };
    let needs_priority = table.match_fields.iter().any(|f| {
        matches!(f.r#match, Some(match_field::Match::MatchType(kind)) if matches!(
            match_field::MatchType::try_from(kind),
            Ok(match_field::MatchType::Ternary | match_field::MatchType::Range | match_field::MatchType::Optional)
        ))
    });
    Ok(v1::TableEntry {
        table_id,
        r#match: matches,
        action: action.map(|kind| v1::TableAction { r#type: Some(kind) }),
        priority: match (needs_priority, input.ratio(1, 16)?) {
            (true, false) => input.int_in_range(1..=3)?,
            (false, false) => 0,
            (_, true) => input.arbitrary()?,
        },
        is_default_action: default,
        idle_timeout_ns: *input.choose(&[0, 0, 0, 0, 1, -1, i64::MAX])?,
        metadata: input.choose(&[&b""[..], b"", b"m"])?.to_vec(),
        meter_config: meter_config(input)?.map(Box::new),
        counter_data: counter_data(input)?,
        ..v1::TableEntry::default()
    })
}

fn meter_config(input: &mut Unstructured<'_>) -> Result<Option<v1::MeterConfig>> {
    Ok(match input.int_in_range(0..=5u8)? {
        0 => Some(v1::MeterConfig {
            cir: input.arbitrary()?,
            cburst: input.arbitrary()?,
            pir: input.arbitrary()?,
            pburst: input.arbitrary()?,
            eburst: 0,
        }),
        1 => Some(v1::MeterConfig {
            cir: 1,
            cburst: 2,
            pir: 3,
            pburst: 4,
            eburst: 0,
        }),
        _ => None,
    })
}

fn counter_data(input: &mut Unstructured<'_>) -> Result<Option<v1::CounterData>> {
    let some = input.ratio(1, 5)?;
    let data = v1::CounterData {
        byte_count: if some { input.arbitrary()? } else { 0 },
        packet_count: if some { input.int_in_range(-1..=9)? } else { 0 },
    };
    Ok(some.then_some(data))
}

fn index(input: &mut Unstructured<'_>) -> Result<Option<v1::Index>> {
    Ok(match input.int_in_range(0..=7u8)? {
        0 => None,
        1 => Some(v1::Index {
            index: input.arbitrary()?,
        }),
        _ => Some(v1::Index {
            index: input.int_in_range(0..=4)?,
        }),
    })
}

fn replicas(input: &mut Unstructured<'_>) -> Result<Vec<v1::Replica>> {
    let one = |input: &mut Unstructured<'_>| {
        #[allow(deprecated)]
        let port = match input.int_in_range(0..=3u8)? {
            0 => None,
            1 => Some(v1::replica::PortKind::Port(bytes(9, input)?)),
            _ => Some(v1::replica::PortKind::EgressPort(
                input.int_in_range(0..=4)?,
            )),
        };
        Ok(v1::Replica {
            port_kind: port,
            instance: *input.choose(&[0, 0, 1, 2, 70_000])?,
        })
    };
    (0..input.int_in_range(0..=4u8)?)
        .map(|_| one(input))
        .collect()
}

fn data(input: &mut Unstructured<'_>, depth: u8) -> Result<v1::P4Data> {
    use v1::p4_data::Data;
    let data = match input.int_in_range(0..=5u8)? {
        0 => None,
        1 if depth < 3 => {
            let members = (0..input.int_in_range(0..=3u8)?)
                .map(|_| data(input, depth + 1))
                .collect::<Result<_>>()?;
            Some(Data::Struct(v1::P4StructLike { members }))
        }
        2 => Some(Data::Bool(input.arbitrary()?)),
        3 => Some(Data::Struct(v1::P4StructLike {
            members: [32, 8]
                .into_iter()
                .map(|width| {
                    Ok(v1::P4Data {
                        data: Some(Data::Bitstring(bytes(width, input)?)),
                    })
                })
                .collect::<Result<_>>()?,
        })),
        _ => Some(Data::Bitstring(bytes(32, input)?)),
    };
    Ok(v1::P4Data { data })
}

/// An entity for a write.
pub fn entity(info: &P4Info, input: &mut Unstructured<'_>) -> Result<v1::Entity> {
    let kind = match input.int_in_range(0..=15u8)? {
        0..=5 => Kind::TableEntry(table_entry(info, input)?),
        6 => {
            let profiles = info.action_profiles.iter();
            Kind::ActionProfileMember(v1::ActionProfileMember {
                action_profile_id: id(profiles.map(|p| p.preamble.clone()), input)?,
                member_id: input.int_in_range(0..=4)?,
                action: match input.ratio(1, 12)? {
                    true => None,
                    false => Some(action(info, &[], input)?),
                },
            })
        }
        7 => {
            let profiles = info.action_profiles.iter();
            let member = |input: &mut Unstructured<'_>| {
                Ok(v1::action_profile_group::Member {
                    member_id: input.int_in_range(0..=4)?,
                    weight: input.int_in_range(-1..=9)?,
                    watch_kind: None,
                })
            };
            Kind::ActionProfileGroup(v1::ActionProfileGroup {
                action_profile_id: id(profiles.map(|p| p.preamble.clone()), input)?,
                group_id: input.int_in_range(0..=4)?,
                members: (0..input.int_in_range(0..=3u8)?)
                    .map(|_| member(input))
                    .collect::<Result<_>>()?,
                max_size: *input.choose(&[0, 0, 2, 16, -1, i32::MAX])?,
            })
        }
        8 => Kind::MeterEntry(v1::MeterEntry {
            meter_id: id(info.meters.iter().map(|m| m.preamble.clone()), input)?,
            index: index(input)?,
            config: meter_config(input)?,
            counter_data: None,
        }),
        9 => Kind::CounterEntry(v1::CounterEntry {
            counter_id: id(info.counters.iter().map(|c| c.preamble.clone()), input)?,
            index: index(input)?,
            data: counter_data(input)?,
        }),
        10 => {
            let entry = Some(table_entry(info, input)?);
            match input.arbitrary()? {
                true => Kind::DirectCounterEntry(Box::new(v1::DirectCounterEntry {
                    table_entry: entry,
                    data: counter_data(input)?,
                })),
                false => Kind::DirectMeterEntry(Box::new(v1::DirectMeterEntry {
                    table_entry: entry,
                    config: meter_config(input)?,
                    counter_data: None,
                })),
            }
        }
        11 => {
            let replication = match input.arbitrary()? {
                true => Replication::MulticastGroupEntry(v1::MulticastGroupEntry {
                    multicast_group_id: input.int_in_range(0..=3)?,
                    replicas: replicas(input)?,
                    metadata: input.choose(&[&b""[..], b"m"])?.to_vec(),
                }),
                false => Replication::CloneSessionEntry(v1::CloneSessionEntry {
                    session_id: input.int_in_range(0..=3)?,
                    replicas: replicas(input)?,
                    class_of_service: input.int_in_range(0..=8)?,
                    packet_length_bytes: *input.choose(&[0, 0, 20, -1, i32::MAX])?,
                }),
            };
            Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
                r#type: Some(replication),
            })
        }
        12 => {
            let value_set_id = id(info.value_sets.iter().map(|v| v.preamble.clone()), input)?;
            let of =
                |v: &&config::ValueSet| v.preamble.as_ref().is_some_and(|p| p.id == value_set_id);
            let set = info.value_sets.iter().find(of).cloned().unwrap_or_default();
            let member = |input: &mut Unstructured<'_>| {
                let fields = set.r#match.iter().map(|spec| field(spec, input));
                Ok(v1::ValueSetMember {
                    r#match: fields.collect::<Result<_>>()?,
                })
            };
            Kind::ValueSetEntry(v1::ValueSetEntry {
                value_set_id,
                members: (0..input.int_in_range(0..=5u8)?)
                    .map(|_| member(input))
                    .collect::<Result<_>>()?,
            })
        }
        13 => Kind::RegisterEntry(v1::RegisterEntry {
            register_id: id(info.registers.iter().map(|r| r.preamble.clone()), input)?,
            index: index(input)?,
            data: Some(data(input, 0)?),
        }),
        14 => Kind::DigestEntry(v1::DigestEntry {
            digest_id: id(info.digests.iter().map(|d| d.preamble.clone()), input)?,
            config: Some(v1::digest_entry::Config {
                max_timeout_ns: *input.choose(&[0, 1, -1, i64::MAX])?,
                max_list_size: *input.choose(&[0, 1, -1, i32::MAX])?,
                ack_timeout_ns: *input.choose(&[0, 1, -1, i64::MAX])?,
            }),
        }),
        _ => Kind::ExternEntry(v1::ExternEntry {
            extern_type_id: input.int_in_range(0..=1)?,
            extern_id: input.int_in_range(0..=1)?,
            entry: None,
        }),
    };
    Ok(entity_of(kind))
}

/// A query for all entities of a kind, or for one.
pub fn query(info: &P4Info, input: &mut Unstructured<'_>) -> Result<v1::Entity> {
    match input.ratio(1, 4)? {
        true => Ok(input.choose(&all())?.clone()),
        false => entity(info, input),
    }
}
