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
/// Maximum size of a config in bytes: it is stored, and sent to every client of the role.
const MAX_BYTES: usize = 64 << 10;

/// A role's config, as controllers send it.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RoleConfig {
    /// Ids of objects that only this role writes.
    #[prost(uint32, repeated, tag = "1")]
    pub exclusive_p4_ids: Vec<u32>,
    /// Ids of objects that this role and others write.
    #[prost(uint32, repeated, tag = "2")]
    pub shared_p4_ids: Vec<u32>,
    /// Filter of the packets that the role receives.
    #[prost(message, optional, tag = "3")]
    pub packet_in_filter: Option<PacketFilter>,
    /// Whether the role receives packets.
    #[prost(bool, tag = "4")]
    pub receives_packet_ins: bool,
    /// Whether the role may load programs.
    #[prost(bool, tag = "5")]
    pub can_push_pipeline: bool,
}

/// Packets whose metadata has this value.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PacketFilter {
    /// Id of a field of the `packet_in` header.
    #[prost(uint32, tag = "1")]
    pub metadata_id: u32,
    /// Value of the field, as in the packet's metadata.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

impl RoleConfig {
    /// Parses the protocol's `Role.config`; `None` means full access.
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

    /// All ids that the role may write.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        let exclusive = self.exclusive_p4_ids.iter();
        exclusive.chain(&self.shared_p4_ids).copied()
    }

    /// Whether the role receives a packet with this metadata.
    pub fn receives(&self, metadata: &[v1::PacketMetadata]) -> bool {
        let passes = |filter: &PacketFilter| {
            let mut metadata = metadata.iter();
            metadata.any(|m| m.metadata_id == filter.metadata_id && m.value == filter.value)
        };
        self.receives_packet_ins && self.packet_in_filter.as_ref().is_none_or(passes)
    }
}

/// The objects of the program that a call may write and read.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Ids of the role's own objects; `None` for a role without a config.
    pub(super) own: Option<BTreeSet<u32>>,
    /// Ids of objects that other roles write exclusively.
    pub(super) foreign: BTreeSet<u32>,
}

impl Access {
    /// Whether the role may write the object.
    pub fn has(&self, id: u32) -> bool {
        let own = self.own.as_ref().is_none_or(|own| own.contains(&id));
        own && !self.foreign.contains(&id)
    }

    /// Whether objects with this id are included in reads; those of other roles are left out.
    pub fn reads(&self, id: u32) -> bool {
        self.own.as_ref().is_none_or(|own| own.contains(&id))
    }

    /// Whether an update of this entity is allowed.
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

/// The object that an entity belongs to; `None` for groups and sessions.
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
