//! The permissions of a role (P4Runtime 1.4, section 5.2). The protocol leaves the format of a role's config open; ours
//! is `stratum.P4RoleConfig`, which existing controllers send.

use p4rt::rpc::Code;
use p4rt::status::{UpdateError, UpdateResult};
use p4rt::v1;
use prost::Message as _;
use std::collections::BTreeSet;
use tonic::Status;
use v1::entity::Entity as Kind;

const TYPE: &str = "stratum.P4RoleConfig";
/// Maximum size of a role's config in bytes: it is stored, and sent to every client of the role.
const MAX_BYTES: usize = 64 << 10;

/// A role's config, as controllers send it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RoleConfig {
    /// Ids of the objects that no other role may write.
    #[prost(uint32, repeated, tag = "1")]
    pub exclusive_p4_ids: Vec<u32>,
    /// Ids of the objects that other roles may write too.
    #[prost(uint32, repeated, tag = "2")]
    pub shared_p4_ids: Vec<u32>,
    /// Filter of the packet-ins that the role receives; `None`: all packet-ins.
    #[prost(message, optional, tag = "3")]
    pub packet_in_filter: Option<PacketFilter>,
    /// Whether the role receives packet-ins.
    #[prost(bool, tag = "4")]
    pub receives_packet_ins: bool,
    /// Whether the role may load programs.
    #[prost(bool, tag = "5")]
    pub can_push_pipeline: bool,
}

/// Selects the packet-ins whose metadata field has this value.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PacketFilter {
    /// Id in P4Info of a metadata field of the `packet_in` header.
    #[prost(uint32, tag = "1")]
    pub metadata_id: u32,
    /// Value that the field must have, in the encoding of packet metadata.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

impl RoleConfig {
    /// Parses the config of `role`; `None`: the role has no config, and so full access.
    pub fn from_role(role: &v1::Role) -> Result<Option<Self>, Status> {
        let Some(any) = &role.config else {
            return Ok(None);
        };
        if any.type_url.rsplit('/').next() != Some(TYPE) {
            let message = format!("role.config must be a {TYPE}, not {}", any.type_url);
            return Err(Status::invalid_argument(message));
        }
        if any.value.len() + any.type_url.len() > MAX_BYTES {
            let message = format!("role.config has more than {MAX_BYTES} bytes");
            return Err(Status::invalid_argument(message));
        }
        let config = Self::decode(any.value.as_slice());
        config
            .map(Some)
            .map_err(|error| Status::invalid_argument(format!("role.config: {error}")))
    }

    /// Ids of all objects that the role may write.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        let exclusive = self.exclusive_p4_ids.iter();
        exclusive.chain(&self.shared_p4_ids).copied()
    }

    /// Whether the role receives a packet-in with this metadata.
    pub fn receives(&self, metadata: &[v1::PacketMetadata]) -> bool {
        let passes = |filter: &PacketFilter| {
            let mut metadata = metadata.iter();
            metadata.any(|m| m.metadata_id == filter.metadata_id && m.value == filter.value)
        };
        self.receives_packet_ins && self.packet_in_filter.as_ref().is_none_or(passes)
    }
}

/// The objects of the program that a role may write and read.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Ids of the objects that the role's config lists; `None`: the role has no config.
    pub(super) own: Option<BTreeSet<u32>>,
    /// Ids of objects that other roles write exclusively, so this role may not.
    pub(super) foreign: BTreeSet<u32>,
}

impl Access {
    /// Whether the role may write the object with this id.
    pub fn has(&self, id: u32) -> bool {
        let own = self.own.as_ref().is_none_or(|own| own.contains(&id));
        own && !self.foreign.contains(&id)
    }

    /// Whether the role's reads return the object with this id: one that its config lists, or any if it has no config.
    pub fn reads(&self, id: u32) -> bool {
        self.own.as_ref().is_none_or(|own| own.contains(&id))
    }

    /// Checks that the role may write the object that this entity belongs to.
    pub fn check(&self, entity: Option<&v1::Entity>) -> UpdateResult {
        if self.own.is_none() && self.foreign.is_empty() {
            return Ok(());
        }
        let kind = entity.and_then(|entity| entity.entity.as_ref());
        match kind.and_then(id_of) {
            Some(id) if !self.has(id) => {
                let message = format!("{id:#010x} is not in this role's config");
                Err(UpdateError::new(Code::PermissionDenied, message))
            }
            _ => Ok(()),
        }
    }
}

/// Id of the object that an entity belongs to; `None` for multicast groups and clone sessions.
fn id_of(entity: &Kind) -> Option<u32> {
    Some(match entity {
        Kind::ExternEntry(entry) => entry.extern_id,
        Kind::TableEntry(entry) => entry.table_id,
        Kind::ActionProfileMember(member) => member.action_profile_id,
        Kind::ActionProfileGroup(group) => group.action_profile_id,
        Kind::MeterEntry(entry) => entry.meter_id,
        Kind::DirectMeterEntry(entry) => entry.table_entry.as_ref()?.table_id,
        Kind::CounterEntry(entry) => entry.counter_id,
        Kind::DirectCounterEntry(entry) => entry.table_entry.as_ref()?.table_id,
        Kind::PacketReplicationEngineEntry(_) => return None,
        Kind::ValueSetEntry(entry) => entry.value_set_id,
        Kind::RegisterEntry(entry) => entry.register_id,
        Kind::DigestEntry(entry) => entry.digest_id,
    })
}
