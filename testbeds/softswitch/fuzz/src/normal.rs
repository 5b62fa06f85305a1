//! The normal form in which a written entity must be read back.

use super::entities::entity_of;
use p4rt::v1;
use prost::Message as _;
use prost::bytes::Bytes;
use v1::entity::Entity as Kind;
use v1::field_match::FieldMatchType;
use v1::packet_replication_engine_entry::Type as Replication;

/// An entity's key, and the normal form of its value. `None` if an update does not replace the entity as a whole.
pub fn form(entity: &v1::Entity) -> Option<(Vec<u8>, Vec<u8>)> {
    let (key, value) = match entity.entity.as_ref()? {
        Kind::TableEntry(entry) if entry.is_default_action => return None,
        Kind::TableEntry(entry) => {
            // An entry modified without an action keeps its action.
            let action = entry.action.as_ref()?.r#type.as_ref()?;
            let action = match action {
                v1::table_action::Type::Action(action) => {
                    v1::table_action::Type::Action(normal_action(action))
                }
                v1::table_action::Type::ActionProfileActionSet(_) => return None,
                other => other.clone(),
            };
            let mut key = v1::TableEntry {
                table_id: entry.table_id,
                r#match: entry.r#match.iter().map(normal_match).collect(),
                priority: entry.priority,
                ..v1::TableEntry::default()
            };
            key.r#match.sort_by_key(|m| m.field_id);
            let value = v1::TableEntry {
                action: Some(v1::TableAction {
                    r#type: Some(action),
                }),
                idle_timeout_ns: entry.idle_timeout_ns,
                metadata: entry.metadata.clone(),
                ..v1::TableEntry::default()
            };
            (Kind::TableEntry(key), Kind::TableEntry(value))
        }
        Kind::ActionProfileMember(member) => {
            let key = v1::ActionProfileMember {
                action: None,
                ..member.clone()
            };
            let value = v1::ActionProfileMember {
                action: member.action.as_ref().map(normal_action),
                ..v1::ActionProfileMember::default()
            };
            (
                Kind::ActionProfileMember(key),
                Kind::ActionProfileMember(value),
            )
        }
        Kind::ActionProfileGroup(group) => {
            let key = v1::ActionProfileGroup {
                action_profile_id: group.action_profile_id,
                group_id: group.group_id,
                ..v1::ActionProfileGroup::default()
            };
            let mut members: Vec<_> = group.members.clone();
            members.sort_by_key(|m| m.member_id);
            for member in &mut members {
                member.watch_kind = None;
            }
            let value = v1::ActionProfileGroup {
                members,
                ..v1::ActionProfileGroup::default()
            };
            (
                Kind::ActionProfileGroup(key),
                Kind::ActionProfileGroup(value),
            )
        }
        Kind::PacketReplicationEngineEntry(entry) => {
            let ports = |replicas: &[v1::Replica]| {
                let mut replicas: Vec<_> = replicas.to_vec();
                for replica in &mut replicas {
                    replica.port_kind = None;
                }
                replicas.sort_by_key(|r| r.instance);
                replicas
            };
            let (key, value) = match entry.r#type.as_ref()? {
                Replication::MulticastGroupEntry(group) => (
                    Replication::MulticastGroupEntry(v1::MulticastGroupEntry {
                        multicast_group_id: group.multicast_group_id,
                        ..v1::MulticastGroupEntry::default()
                    }),
                    Replication::MulticastGroupEntry(v1::MulticastGroupEntry {
                        multicast_group_id: 0,
                        replicas: ports(&group.replicas),
                        metadata: group.metadata.clone(),
                    }),
                ),
                Replication::CloneSessionEntry(session) => (
                    Replication::CloneSessionEntry(v1::CloneSessionEntry {
                        session_id: session.session_id,
                        ..v1::CloneSessionEntry::default()
                    }),
                    Replication::CloneSessionEntry(v1::CloneSessionEntry {
                        session_id: 0,
                        replicas: ports(&session.replicas),
                        ..session.clone()
                    }),
                ),
            };
            let whole = |kind| {
                Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
                    r#type: Some(kind),
                })
            };
            (whole(key), whole(value))
        }
        _ => return None,
    };
    Some((
        entity_of(key).encode_to_vec(),
        entity_of(value).encode_to_vec(),
    ))
}

fn shortest(bytes: &Bytes) -> Bytes {
    let zeroes = bytes.iter().take_while(|b| **b == 0).count();
    bytes.slice(zeroes.min(bytes.len().saturating_sub(1))..)
}

fn normal_action(action: &v1::Action) -> v1::Action {
    let mut action = action.clone();
    for param in &mut action.params {
        param.value = shortest(&param.value);
    }
    action.params.sort_by_key(|p| p.param_id);
    action
}

fn normal_match(field: &v1::FieldMatch) -> v1::FieldMatch {
    let mut field = field.clone();
    match &mut field.field_match_type {
        Some(FieldMatchType::Exact(m)) => m.value = shortest(&m.value),
        Some(FieldMatchType::Ternary(m)) => {
            (m.value, m.mask) = (shortest(&m.value), shortest(&m.mask));
        }
        Some(FieldMatchType::Lpm(m)) => m.value = shortest(&m.value),
        Some(FieldMatchType::Range(m)) => {
            (m.low, m.high) = (shortest(&m.low), shortest(&m.high));
        }
        Some(FieldMatchType::Optional(m)) => m.value = shortest(&m.value),
        Some(FieldMatchType::Other(_)) | None => {}
    }
    field
}
