//! Arbitration of write access (P4Runtime 1.4, sections 5.3 and 5.4). Pure: takes messages, returns the notices to send.
//!
//! Per role, the client with the highest election id ever seen is primary. A takeover has two steps, so that the old
//! primary's writes in flight finish in between: [`Arbitration::update`] refuses its further writes and notifies the
//! other clients, [`Arbitration::complete`] installs the new primary and notifies it.

mod role;

pub use role::Access;

use p4rt::rpc::{self, Code};
use p4rt::status::excerpt;
use p4rt::v1;
use role::RoleConfig;
use std::collections::{BTreeMap, BTreeSet};
use tonic::Status;

/// Maximum number of clients that are connected for one role at a time.
const MAX_CLIENTS_PER_ROLE: usize = 64;
/// Maximum number of roles whose highest election ids the switch remembers.
const MAX_ROLES: usize = 64;

/// Number that identifies a client's stream.
pub type ClientId = u64;

/// A message to one client that says who is primary.
pub type Notice = (ClientId, v1::MasterArbitrationUpdate);

/// All clients and roles of one device, and the primary of each role.
#[derive(Debug)]
pub struct Arbitration {
    device_id: u64,
    roles: BTreeMap<String, Role>,
    clients: BTreeMap<ClientId, Client>,
}

#[derive(Debug, Default)]
struct Role {
    primary: Option<ClientId>,
    /// The client that becomes primary once the writes in progress have ended; `None`: no change of primary is in progress.
    heir: Option<ClientId>,
    /// The highest election id that any primary of the role has had.
    highest: Option<u128>,
    /// The role's config; `None`: the role has full access.
    config: Option<RoleConfig>,
    /// The role's config as the primary sent it, for notices to other clients.
    sent: Option<prost_types::Any>,
}

impl Role {
    /// The primary, or during a takeover the next primary.
    fn first(&self) -> Option<ClientId> {
        self.primary.or(self.heir)
    }

    /// Removes the client as primary or next primary of the role; returns whether it was either.
    fn resigns(&mut self, id: ClientId) -> bool {
        let first = self.first() == Some(id);
        if first {
            (self.primary, self.heir) = (None, None);
        }
        first
    }
}

#[derive(Debug)]
struct Client {
    role: String,
    election_id: Option<u128>,
}

/// Result of a client's arbitration update that was accepted.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// The notices to send; the update starts no takeover.
    Notify(Vec<Notice>),
    /// A takeover: the notices to send, and the next primary. Call [`Arbitration::complete`] once no write is in progress.
    TakeOver(Vec<Notice>, ClientId),
}

impl Arbitration {
    /// Creates the arbitration of one device, without clients.
    #[must_use]
    pub fn new(device_id: u64) -> Self {
        // The default role, with full access, always exists.
        let roles = BTreeMap::from([(String::new(), Role::default())]);
        Self {
            device_id,
            roles,
            clients: BTreeMap::new(),
        }
    }

    /// Handles an arbitration update of a client. An error ends the client's stream.
    pub fn update(
        &mut self,
        id: ClientId,
        update: &v1::MasterArbitrationUpdate,
    ) -> Result<Step, Status> {
        let (role, config) = role_of(update)?;
        let election_id = update
            .election_id
            .map(|id| u128::from(id.high) << 64 | u128::from(id.low));
        let known = self.clients.get(&id);
        if update.device_id != self.device_id {
            return Err(match known {
                None => Status::not_found(format!("no device {}", update.device_id)),
                Some(_) => Status::failed_precondition("a stream cannot change its device"),
            });
        }
        if known.is_some_and(|client| client.role != role) {
            return Err(Status::failed_precondition(
                "a stream cannot change its role",
            ));
        }
        let peers = || {
            self.clients
                .iter()
                .filter(|(peer, client)| **peer != id && client.role == role)
        };
        if election_id.is_some() && peers().any(|(_, client)| client.election_id == election_id) {
            return Err(Status::invalid_argument(
                "this election id is in use by another client",
            ));
        }
        if known.is_none() && peers().count() >= MAX_CLIENTS_PER_ROLE {
            return Err(Status::resource_exhausted(format!(
                "{MAX_CLIENTS_PER_ROLE} clients of this role are connected, the maximum"
            )));
        }
        self.check_room(&role)?;
        self.check_exclusive(&role, config.as_ref())?;
        self.clients.insert(
            id,
            Client {
                role: role.clone(),
                election_id,
            },
        );
        let state = self.roles.entry(role.clone()).or_default();
        if election_id.is_some() && election_id >= state.highest {
            state.highest = election_id;
            state.primary = None;
            state.heir = Some(id);
            state.config = config;
            state.sent = update.role.as_ref().and_then(|role| role.config.clone());
            let others: Vec<_> = self.members(&role).filter(|&peer| peer != id).collect();
            return Ok(Step::TakeOver(self.notices(&role, &others), id));
        }
        let downgraded = state.resigns(id);
        let told: Vec<_> = match downgraded {
            true => self.members(&role).collect(),
            false => vec![id],
        };
        Ok(Step::Notify(self.notices(&role, &told)))
    }

    /// Makes the client of a [`Step::TakeOver`] primary, unless it has left or a client with a higher election id has come;
    /// returns the notices to send.
    pub fn complete(&mut self, id: ClientId) -> Vec<Notice> {
        let Some(Client { role, .. }) = self.clients.get(&id) else {
            return Vec::new();
        };
        let role = role.clone();
        let state = self.roles.entry(role.clone()).or_default();
        if state.heir == Some(id) {
            state.heir = None;
            state.primary = Some(id);
        }
        self.notices(&role, &[id])
    }

    /// Handles the end of a client's stream; returns the notices to send.
    pub fn leave(&mut self, id: ClientId) -> Vec<Notice> {
        let Some(Client { role, .. }) = self.clients.remove(&id) else {
            return Vec::new();
        };
        let state = self.roles.entry(role.clone()).or_default();
        if !state.resigns(id) {
            return Vec::new();
        }
        let members: Vec<_> = self.members(&role).collect();
        self.notices(&role, &members)
    }

    /// Checks that a write with this election id comes from the role's primary.
    pub fn check_write(
        &self,
        device_id: u64,
        role: &str,
        election_id: Option<v1::Uint128>,
    ) -> Result<(), Status> {
        self.check_device(device_id)?;
        let state = self
            .roles
            .get(role)
            .ok_or_else(|| Status::not_found(format!("no role `{}`", excerpt(role))))?;
        let election_id = election_id.map(|id| u128::from(id.high) << 64 | u128::from(id.low));
        let primary = state.primary.and_then(|id| self.clients.get(&id));
        match primary {
            Some(client) if client.election_id == election_id => Ok(()),
            Some(_) => Err(Status::permission_denied("this client is not primary")),
            None => Err(Status::permission_denied("there is no primary client")),
        }
    }

    /// Checks that a call names the device of this switch.
    pub fn check_device(&self, device_id: u64) -> Result<(), Status> {
        if device_id == self.device_id {
            Ok(())
        } else {
            Err(Status::not_found(format!("no device {device_id}")))
        }
    }

    /// Whether the client of this stream is primary of its role.
    #[must_use]
    pub fn is_primary(&self, id: ClientId) -> bool {
        let role = self
            .clients
            .get(&id)
            .and_then(|client| self.roles.get(&client.role));
        role.is_some_and(|role| role.primary == Some(id))
    }

    /// The objects that a role may write and read. An unknown role has access to nothing.
    #[must_use]
    pub fn access(&self, role: &str) -> Access {
        let foreign = self.live_configs(role);
        let own = match self.roles.get(role) {
            Some(role) => role.config.as_ref().map(|config| config.ids().collect()),
            None => Some(BTreeSet::new()),
        };
        Access {
            own,
            foreign: foreign
                .flat_map(|c| c.exclusive_p4_ids.iter().copied())
                .collect(),
        }
    }

    /// Checks that a role's config allows it to load a program.
    pub fn check_push(&self, role: &str) -> Result<(), Status> {
        let config = self.roles.get(role).and_then(|role| role.config.as_ref());
        match config {
            Some(config) if !config.can_push_pipeline => Err(Status::permission_denied(format!(
                "role `{}` may not set the pipeline",
                excerpt(role)
            ))),
            _ => Ok(()),
        }
    }

    /// The primaries that receive a packet-in with this metadata.
    #[must_use]
    pub fn receivers(&self, metadata: &[v1::PacketMetadata]) -> Vec<ClientId> {
        let receives = |role: &&Role| {
            let config = role.config.as_ref();
            config.is_none_or(|config| config.receives(metadata))
        };
        let roles = self.roles.values().filter(receives);
        roles.filter_map(|role| role.primary).collect()
    }

    /// The primaries whose roles may write this object; they receive its notifications.
    #[must_use]
    pub fn holders(&self, id: u32) -> Vec<ClientId> {
        let holders = self
            .roles
            .iter()
            .filter(|(name, _)| self.access(name).has(id));
        holders.filter_map(|(_, role)| role.primary).collect()
    }

    /// Configs of the roles other than `but` that have a primary or a next primary.
    fn live_configs(&self, but: &str) -> impl Iterator<Item = &RoleConfig> {
        let others = self.roles.iter().filter(move |(name, _)| *name != but);
        others
            .filter(|(_, role)| role.first().is_some())
            .filter_map(|(_, role)| role.config.as_ref())
    }

    /// Checks that this config of `role` and the configs of other roles share no object that one of them claims exclusively.
    fn check_exclusive(&self, role: &str, config: Option<&RoleConfig>) -> Result<(), Status> {
        let Some(config) = config else {
            return Ok(());
        };
        let mine: BTreeSet<u32> = config.exclusive_p4_ids.iter().copied().collect();
        for other in self.live_configs(role) {
            let taken = other.ids().find(|id| mine.contains(id));
            let foreign = || config.ids().find(|id| other.exclusive_p4_ids.contains(id));
            if let Some(id) = taken.or_else(foreign) {
                let message = format!("{id:#010x} is claimed by another role");
                return Err(Status::invalid_argument(message));
            }
        }
        Ok(())
    }

    fn check_room(&self, role: &str) -> Result<(), Status> {
        if self.roles.contains_key(role) || self.roles.len() < MAX_ROLES {
            return Ok(());
        }
        Err(Status::resource_exhausted(format!(
            "all {MAX_ROLES} roles are in use"
        )))
    }

    fn members(&self, role: &str) -> impl Iterator<Item = ClientId> {
        self.clients
            .iter()
            .filter(move |(_, client)| client.role == role)
            .map(|(&id, _)| id)
    }

    fn notices(&self, role: &str, clients: &[ClientId]) -> Vec<Notice> {
        let first = self.roles.get(role).and_then(Role::first);
        let code = |id| match first {
            Some(first) if first == id => Code::Ok,
            Some(_) => Code::AlreadyExists,
            None => Code::NotFound,
        };
        clients
            .iter()
            .map(|&id| (id, self.notice(role, code(id))))
            .collect()
    }

    fn notice(&self, role: &str, code: Code) -> v1::MasterArbitrationUpdate {
        let message = match code {
            Code::Ok => "you are primary",
            Code::AlreadyExists => "another client is primary",
            _ => "there is no primary",
        };
        let state = self.roles.get(role);
        let highest = state.and_then(|role| role.highest);
        v1::MasterArbitrationUpdate {
            device_id: self.device_id,
            role: (!role.is_empty()).then(|| v1::Role {
                name: role.to_owned(),
                config: state.and_then(|role| role.sent.clone()),
                ..Default::default()
            }),
            election_id: highest.map(|id| v1::Uint128 {
                high: (id >> 64) as u64,
                low: id as u64,
            }),
            status: Some(rpc::Status {
                code: code.into(),
                message: message.to_owned(),
                details: Vec::new(),
            }),
        }
    }
}

fn role_of(update: &v1::MasterArbitrationUpdate) -> Result<(String, Option<RoleConfig>), Status> {
    let role = update.role.clone().unwrap_or_default();
    #[allow(deprecated)]
    let number = role.id;
    if number != 0 {
        return Err(Status::unimplemented(
            "roles by number are deprecated; use the role's name",
        ));
    }
    let config = RoleConfig::from_role(&role)?;
    if role.name.is_empty() && config.is_some() {
        return Err(Status::invalid_argument("the default role has full access"));
    }
    Ok((role.name, config))
}

#[cfg(test)]
mod tests;
