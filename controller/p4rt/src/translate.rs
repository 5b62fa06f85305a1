//! Converts between the control plane's vocabulary ([`p4lang::runtime`], names) and P4Runtime's entities (ids, byte strings).
//!
//! Both directions are strict: a request that a switch would have to refuse is refused here, with the error code that the
//! specification requires.

pub mod action;
mod attached;
pub mod cells;
pub mod data;
mod error;
pub mod matches;
mod packet;
mod profile;
mod replication;
pub mod table;

pub use attached::{DigestConfig, MeterConfig};
pub use error::{TranslateError, key_field};
pub use packet::{packet_fields, packet_metadata};
pub use profile::{Choice, GroupMember, WeightedAction};
pub use table::EntryAt;

use crate::p4info::Index;
use crate::v1;
use crate::v1::entity::Entity as Kind;
use p4lang::runtime::{ActionCall, CloneSession, FieldMatch, MulticastGroup, TableEntry, Value};
use v1::packet_replication_engine_entry::Type as Replication;

/// A piece of a switch's state that weir writes or reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A table entry with a key and a direct action.
    TableEntry(TableEntry),
    /// A table entry with a note of the controller, which the switch ignores (`TableEntry.metadata`). Writes take this form;
    /// [`crate::client::Client::read_noted`] reads it.
    NotedEntry {
        /// The table entry.
        entry: TableEntry,
        /// The note: any bytes.
        note: Vec<u8>,
    },
    /// The default action of a table.
    DefaultAction {
        /// Fully qualified name of the table.
        table: String,
        /// The default action; `None` resets it to the program's default action.
        action: Option<ActionCall>,
    },
    /// A multicast group.
    MulticastGroup(MulticastGroup),
    /// A clone session.
    CloneSession(CloneSession),
    /// A cell of a register array.
    Register {
        /// Fully qualified name of the register.
        name: String,
        /// Index of the cell, from 0; `None` means every cell.
        index: Option<u64>,
        /// The fields of the cell's value (one field for a scalar), as bit patterns.
        fields: Vec<Value>,
    },
    /// A cell of an indirect counter.
    Counter {
        /// Fully qualified name of the counter.
        name: String,
        /// Index of the cell, from 0; `None` means every cell.
        index: Option<u64>,
        /// The counter's value; `None` in a write leaves it unchanged.
        value: Option<CounterValue>,
    },
    /// A table entry whose action comes from an action profile.
    IndirectEntry {
        /// Identity of the table entry; never the default entry.
        at: EntryAt,
        /// Member, group or weighted actions from which the entry takes its action.
        choice: Choice,
    },
    /// A member of an action profile.
    Member {
        /// Fully qualified name of the action profile.
        profile: String,
        /// Id of the member in the action profile, from 1.
        id: u32,
        /// Action of the member; `None` only in a deletion of the member.
        action: Option<ActionCall>,
    },
    /// A group of an action selector: the members among which the switch chooses.
    Group {
        /// Fully qualified name of the action selector.
        profile: String,
        /// Id of the group in the action selector, from 1.
        id: u32,
        /// Maximum sum of the members' weights; 0 if the profile sets no limit.
        max_size: u32,
        /// Members of the group, in order.
        members: Vec<GroupMember>,
    },
    /// A cell of an indirect meter.
    Meter {
        /// Fully qualified name of the meter.
        name: String,
        /// Index of the cell, from 0; `None` means every cell.
        index: Option<u64>,
        /// Rates and bursts of the meter; `None` marks every packet green.
        config: Option<MeterConfig>,
    },
    /// The direct meter of a table entry.
    DirectMeter {
        /// Identity of the table entry.
        at: EntryAt,
        /// Rates and bursts of the meter; `None` marks every packet green.
        config: Option<MeterConfig>,
    },
    /// The direct counter of a table entry.
    DirectCounter {
        /// Identity of the table entry.
        at: EntryAt,
        /// The counter's value; `None` in a write leaves it unchanged.
        value: Option<CounterValue>,
    },
    /// All members of a parser value set; a write replaces them.
    ValueSet {
        /// Fully qualified name of the value set.
        name: String,
        /// For each member, the match of each field. If the members are plain values, their only field has no name.
        members: Vec<Vec<FieldMatch>>,
    },
    /// The settings of a digest: whether and how the switch sends its messages to the controller.
    Digest {
        /// Fully qualified name of the digest.
        name: String,
        /// How the switch gathers messages; `None` only in a deletion, which disables the digest.
        config: Option<DigestConfig>,
    },
}

/// The value of a counter cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterValue {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// Which part of a P4Runtime entity is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The whole entity.
    Whole,
    /// Only the identity of the entity, as in a deletion. All other fields of the result are empty, whatever was sent.
    Key,
}

impl Item {
    /// Number of packets in a counter cell; 0 for items that are no counter cell, and for a cell without a value.
    pub fn packets(&self) -> u64 {
        match self {
            Item::Counter { value, .. } => value.map_or(0, |value| value.packets),
            _ => 0,
        }
    }

    /// Encodes the item as a P4Runtime entity, with the ids that the program of `index` uses.
    pub fn to_entity(&self, index: &Index) -> Result<v1::Entity, TranslateError> {
        let entity = match self {
            Item::TableEntry(entry) => Kind::TableEntry(table::entry_to_proto(entry, index)?),
            Item::NotedEntry { entry, note } => Kind::TableEntry(v1::TableEntry {
                metadata: note.clone(),
                ..table::entry_to_proto(entry, index)?
            }),
            Item::DefaultAction { table, action } => {
                Kind::TableEntry(table::default_to_proto(table, action.as_ref(), index)?)
            }
            Item::MulticastGroup(group) => replication(Replication::MulticastGroupEntry(
                replication::group_to_proto(group)?,
            )),
            Item::CloneSession(session) => replication(Replication::CloneSessionEntry(
                replication::session_to_proto(session)?,
            )),
            Item::Register {
                name,
                index: cell,
                fields,
            } => Kind::RegisterEntry(cells::register_to_proto(name, *cell, fields, index)?),
            Item::Counter {
                name,
                index: cell,
                value,
            } => Kind::CounterEntry(cells::counter_to_proto(name, *cell, *value, index)?),
            Item::IndirectEntry { at, choice } => {
                Kind::TableEntry(table::indirect_to_proto(at, choice, index)?)
            }
            Item::Member {
                profile,
                id,
                action,
            } => {
                let member = profile::member_to_proto(profile, *id, action.as_ref(), index)?;
                Kind::ActionProfileMember(member)
            }
            Item::Group {
                profile,
                id,
                max_size,
                members,
            } => {
                let group = profile::group_to_proto(profile, *id, *max_size, members, index)?;
                Kind::ActionProfileGroup(group)
            }
            Item::Meter {
                name,
                index: cell,
                config,
            } => Kind::MeterEntry(attached::meter_to_proto(name, *cell, *config, index)?),
            Item::DirectMeter { at, config } => {
                let entry = attached::direct_meter_to_proto(at, *config, index)?;
                Kind::DirectMeterEntry(Box::new(entry))
            }
            Item::DirectCounter { at, value } => {
                let entry = attached::direct_counter_to_proto(at, *value, index)?;
                Kind::DirectCounterEntry(Box::new(entry))
            }
            Item::ValueSet { name, members } => {
                Kind::ValueSetEntry(attached::value_set_to_proto(name, members, index)?)
            }
            Item::Digest { name, config } => {
                Kind::DigestEntry(attached::digest_to_proto(name, *config, index)?)
            }
        };
        Ok(v1::Entity {
            entity: Some(entity),
        })
    }

    /// Decodes a P4Runtime entity, with the names that the program of `index` uses.
    pub fn from_entity(
        entity: &v1::Entity,
        index: &Index,
        part: Part,
    ) -> Result<Self, TranslateError> {
        match entity
            .entity
            .as_ref()
            .ok_or(TranslateError::Unset { what: "entity" })?
        {
            Kind::TableEntry(entry) if entry.is_default_action => {
                table::default_from_proto(entry, index, part)
            }
            Kind::TableEntry(entry) => match table::indirect_from_proto(entry, index, part)? {
                Some(indirect) => Ok(indirect),
                None => table::entry_from_proto(entry, index, part).map(Item::TableEntry),
            },
            Kind::PacketReplicationEngineEntry(entry) => {
                match entry
                    .r#type
                    .as_ref()
                    .ok_or(TranslateError::Unset { what: "type" })?
                {
                    Replication::MulticastGroupEntry(group) => {
                        replication::group_from_proto(group, part).map(Item::MulticastGroup)
                    }
                    Replication::CloneSessionEntry(session) => {
                        replication::session_from_proto(session, part).map(Item::CloneSession)
                    }
                }
            }
            Kind::RegisterEntry(entry) => cells::register_from_proto(entry, index),
            Kind::CounterEntry(entry) => cells::counter_from_proto(entry, index),
            Kind::ActionProfileMember(member) => profile::member_from_proto(member, index, part),
            Kind::ActionProfileGroup(group) => profile::group_from_proto(group, index, part),
            Kind::MeterEntry(entry) => attached::meter_from_proto(entry, index),
            Kind::DirectMeterEntry(entry) => attached::direct_meter_from_proto(entry, index),
            Kind::DirectCounterEntry(entry) => attached::direct_counter_from_proto(entry, index),
            Kind::ValueSetEntry(entry) => attached::value_set_from_proto(entry, index),
            Kind::DigestEntry(entry) => attached::digest_from_proto(entry, index, part),
            Kind::ExternEntry(_) => Err(TranslateError::Unsupported {
                what: "extern entries".to_owned(),
            }),
        }
    }
}

fn replication(entry: Replication) -> Kind {
    Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
        r#type: Some(entry),
    })
}

#[cfg(test)]
mod tests;
