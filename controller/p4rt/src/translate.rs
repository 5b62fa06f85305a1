//! The control plane's vocabulary ([`p4lang::runtime`], names) ↔ P4Runtime's entities (ids, byte strings).
//!
//! Strict in both directions: what a switch would have to refuse is refused here, with the code that the specification
//! asks for.

pub mod action;
pub mod cells;
mod error;
pub mod matches;
mod packet;
mod replication;
pub mod table;

pub use error::TranslateError;
pub use packet::{packet_fields, packet_metadata};

use crate::p4info::Index;
use crate::v1;
use crate::v1::entity::Entity as Kind;
use p4lang::runtime::{ActionCall, CloneSession, MulticastGroup, TableEntry};
use v1::packet_replication_engine_entry::Type as Replication;

/// Anything that this project writes into a switch or reads from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A match entry.
    TableEntry(TableEntry),
    /// The default action of a table.
    DefaultAction {
        /// Fully qualified name.
        table: String,
        /// None resets it to the program's.
        action: Option<ActionCall>,
    },
    /// A multicast group.
    MulticastGroup(MulticastGroup),
    /// A clone session.
    CloneSession(CloneSession),
    /// A register's cell.
    Register {
        /// Fully qualified name.
        name: String,
        /// None means every cell.
        index: Option<u64>,
        /// The element's fields (one for a scalar), as bit patterns.
        fields: Vec<u128>,
    },
    /// A counter's cell.
    Counter {
        /// Fully qualified name.
        name: String,
        /// None means every cell.
        index: Option<u64>,
        /// None in a write means: leave as it is.
        value: Option<CounterValue>,
    },
}

/// What a counter holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CounterValue {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// How much of an entity is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// What identifies it, as a deletion does. The rest comes out empty, whatever was sent.
    Key,
}

impl Item {
    /// The entity that says the same to `index`'s program.
    pub fn to_entity(&self, index: &Index) -> Result<v1::Entity, TranslateError> {
        let entity = match self {
            Item::TableEntry(entry) => Kind::TableEntry(table::entry_to_proto(entry, index)?),
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
        };
        Ok(v1::Entity {
            entity: Some(entity),
        })
    }

    /// What an entity says of `index`'s program.
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
            Kind::TableEntry(entry) => {
                table::entry_from_proto(entry, index, part).map(Item::TableEntry)
            }
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
            other => Err(TranslateError::Unsupported {
                what: entity_name(other).to_owned(),
            }),
        }
    }
}

fn replication(entry: Replication) -> Kind {
    Kind::PacketReplicationEngineEntry(v1::PacketReplicationEngineEntry {
        r#type: Some(entry),
    })
}

/// What messages call a kind of entity.
#[must_use]
pub fn entity_name(entity: &Kind) -> &'static str {
    match entity {
        Kind::ExternEntry(_) => "extern entries",
        Kind::TableEntry(_) => "table entries",
        Kind::ActionProfileMember(_) => "action profile members",
        Kind::ActionProfileGroup(_) => "action profile groups",
        Kind::MeterEntry(_) => "meters",
        Kind::DirectMeterEntry(_) => "direct meters",
        Kind::CounterEntry(_) => "counters",
        Kind::DirectCounterEntry(_) => "direct counters",
        Kind::PacketReplicationEngineEntry(_) => "packet replication",
        Kind::ValueSetEntry(_) => "parser value sets",
        Kind::RegisterEntry(_) => "registers",
        Kind::DigestEntry(_) => "digests",
    }
}

#[cfg(test)]
mod tests;
