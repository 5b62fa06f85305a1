//! Queries that read the state of a switch.

use crate::p4info::{Index, Object, Section};
use crate::translate::table::at_to_proto;
use crate::translate::{EntryAt, TranslateError};
use crate::v1;
use crate::v1::entity::Entity as Kind;
use crate::v1::packet_replication_engine_entry::Type as Replication;

/// A query for a part of a switch's state. Names are fully qualified, or aliases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// The entries of one table or of all tables.
    Entries {
        /// Name of the table; `None` means every table.
        table: Option<String>,
    },
    /// The default action of a table.
    DefaultAction {
        /// Name of the table.
        table: String,
    },
    /// One multicast group or all.
    MulticastGroups {
        /// Id of the multicast group; `None` means every group.
        id: Option<u32>,
    },
    /// One clone session or all.
    CloneSessions {
        /// Id of the clone session; `None` means every session.
        id: Option<u32>,
    },
    /// One cell of a register or all.
    Register {
        /// Name of the register.
        name: String,
        /// Index of the cell, from 0; `None` means every cell.
        index: Option<u64>,
    },
    /// One cell of an indirect counter or all.
    Counter {
        /// Name of the counter.
        name: String,
        /// Index of the cell, from 0; `None` means every cell.
        index: Option<u64>,
    },
    /// One cell of an indirect meter or all.
    Meter {
        /// Name of the meter.
        name: String,
        /// Index of the cell, from 0; `None` means every cell.
        index: Option<u64>,
    },
    /// The direct counters of one table entry or of all entries of a table.
    DirectCounters {
        /// Name of the table.
        table: String,
        /// The table entry; `None` means every entry except the default entry.
        at: Option<EntryAt>,
    },
    /// The direct meters of one table entry or of all entries of a table.
    DirectMeters {
        /// Name of the table.
        table: String,
        /// The table entry; `None` means every entry except the default entry.
        at: Option<EntryAt>,
    },
    /// One member of an action profile or all.
    Members {
        /// Name of the action profile.
        profile: String,
        /// Id of the member; `None` means every member.
        id: Option<u32>,
    },
    /// One group of an action selector or all.
    Groups {
        /// Name of the action selector.
        profile: String,
        /// Id of the group; `None` means every group.
        id: Option<u32>,
    },
    /// All members of a parser value set.
    ValueSet {
        /// Name of the value set.
        name: String,
    },
    /// The settings of a digest, if it is enabled.
    Digest {
        /// Name of the digest.
        name: String,
    },
}

impl Query {
    pub(super) fn to_entity(&self, index: &Index) -> Result<v1::Entity, TranslateError> {
        let cell = |cell: &Option<u64>| {
            cell.map(|cell| v1::Index {
                index: i64::try_from(cell).unwrap_or(i64::MAX),
            })
        };
        let replication = |entry| {
            Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
                r#type: Some(entry),
            })
        };
        let entry = |table: &str, at: Option<&EntryAt>| match at {
            Some(at) => at_to_proto(at, index),
            None => Ok(v1::TableEntry {
                table_id: id(&index.tables, table)?,
                ..Default::default()
            }),
        };
        let entity = match self {
            Self::Entries { table } => Kind::TableEntry(v1::TableEntry {
                table_id: table
                    .as_deref()
                    .map_or(Ok(0), |name| id(&index.tables, name))?,
                ..Default::default()
            }),
            Self::DefaultAction { table } => Kind::TableEntry(v1::TableEntry {
                table_id: id(&index.tables, table)?,
                is_default_action: true,
                ..Default::default()
            }),
            Self::MulticastGroups { id } => {
                replication(Replication::MulticastGroupEntry(v1::MulticastGroupEntry {
                    multicast_group_id: id.unwrap_or(0),
                    ..Default::default()
                }))
            }
            Self::CloneSessions { id } => {
                replication(Replication::CloneSessionEntry(v1::CloneSessionEntry {
                    session_id: id.unwrap_or(0),
                    ..Default::default()
                }))
            }
            Self::Register { name, index: at } => Kind::RegisterEntry(v1::RegisterEntry {
                register_id: id(&index.registers, name)?,
                index: cell(at),
                data: None,
            }),
            Self::Counter { name, index: at } => Kind::CounterEntry(v1::CounterEntry {
                counter_id: id(&index.counters, name)?,
                index: cell(at),
                data: None,
            }),
            Self::Meter { name, index: at } => Kind::MeterEntry(v1::MeterEntry {
                meter_id: id(&index.meters, name)?,
                index: cell(at),
                ..Default::default()
            }),
            Self::DirectCounters { table, at } => {
                Kind::DirectCounterEntry(Box::new(v1::DirectCounterEntry {
                    table_entry: Some(entry(table, at.as_ref())?),
                    data: None,
                }))
            }
            Self::DirectMeters { table, at } => {
                Kind::DirectMeterEntry(Box::new(v1::DirectMeterEntry {
                    table_entry: Some(entry(table, at.as_ref())?),
                    ..Default::default()
                }))
            }
            Self::Members {
                profile,
                id: member,
            } => Kind::ActionProfileMember(v1::ActionProfileMember {
                action_profile_id: id(&index.action_profiles, profile)?,
                member_id: member.unwrap_or(0),
                action: None,
            }),
            Self::Groups { profile, id: group } => {
                Kind::ActionProfileGroup(v1::ActionProfileGroup {
                    action_profile_id: id(&index.action_profiles, profile)?,
                    group_id: group.unwrap_or(0),
                    ..Default::default()
                })
            }
            Self::ValueSet { name } => Kind::ValueSetEntry(v1::ValueSetEntry {
                value_set_id: id(&index.value_sets, name)?,
                members: Vec::new(),
            }),
            Self::Digest { name } => Kind::DigestEntry(v1::DigestEntry {
                digest_id: id(&index.digests, name)?,
                config: None,
            }),
        };
        Ok(v1::Entity {
            entity: Some(entity),
        })
    }
}

fn id<T: Object>(section: &Section<T>, name: &str) -> Result<u32, TranslateError> {
    let unknown = || TranslateError::UnknownName {
        kind: T::KIND,
        name: name.to_owned(),
    };
    section
        .named(name)
        .map(|object| object.preamble().id)
        .ok_or_else(unknown)
}
