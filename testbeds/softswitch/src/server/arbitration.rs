//! Who may write (P4Runtime 1.4, sections 5.3 and 5.4). Pure: takes messages, gives the notices to send.
//!
//! Per role, the client with the highest election id ever seen is primary. A takeover has two steps, so that the old
//! primary's writes in flight end in between: [`Arbitration::update`] refuses its further writes and tells the others,
//! [`Arbitration::complete`] installs the new primary and tells it.

use p4rt::rpc::{self, Code};
use p4rt::v1;
use std::collections::BTreeMap;
use tonic::Status;

/// Streams of one role at a time.
const MAX_CLIENTS_PER_ROLE: usize = 64;

/// A stream.
pub type ClientId = u64;

/// A message to one client.
pub type Notice = (ClientId, v1::MasterArbitrationUpdate);

/// All roles of one device.
#[derive(Debug)]
pub struct Arbitration {
    device_id: u64,
    roles: BTreeMap<String, Role>,
    clients: BTreeMap<ClientId, Client>,
}

#[derive(Debug, Default)]
struct Role {
    primary: Option<ClientId>,
    /// The highest that a primary has had.
    highest: Option<u128>,
}

#[derive(Debug)]
struct Client {
    role: String,
    election_id: Option<u128>,
}

/// What an accepted update leads to.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// These are told.
    Notify(Vec<Notice>),
    /// These are told; once no write is in flight, [`Arbitration::complete`] follows.
    TakeOver(Vec<Notice>, ClientId),
}

impl Arbitration {
    /// For one device, without clients.
    #[must_use]
    pub fn new(device_id: u64) -> Self {
        // The default role, with full access, is always there.
        let roles = BTreeMap::from([(String::new(), Role::default())]);
        Self {
            device_id,
            roles,
            clients: BTreeMap::new(),
        }
    }

    /// Handles a client's update. An error ends the client's stream.
    pub fn update(
        &mut self,
        id: ClientId,
        update: &v1::MasterArbitrationUpdate,
    ) -> Result<Step, Status> {
        let role = role_name(update)?;
        let election_id = update
            .election_id
            .map(|id| u128::from(id.high) << 64 | u128::from(id.low));
        let known = self.clients.get(&id);
        if update.device_id != self.device_id {
            return Err(match known {
                None => Status::not_found(format!("no device {}", update.device_id)),
                Some(_) => Status::failed_precondition("a stream does not change its device"),
            });
        }
        if known.is_some_and(|client| client.role != role) {
            return Err(Status::failed_precondition(
                "a stream does not change its role",
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
                "{MAX_CLIENTS_PER_ROLE} clients are connected"
            )));
        }
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
            let others = self
                .members(&role)
                .filter(|&peer| peer != id)
                .collect::<Vec<_>>();
            let notices = others
                .into_iter()
                .map(|peer| (peer, self.notice(&role, Code::AlreadyExists)));
            return Ok(Step::TakeOver(notices.collect(), id));
        }
        let downgraded = state.primary == Some(id);
        if downgraded {
            state.primary = None;
        }
        let told: Vec<_> = match downgraded {
            true => self.members(&role).collect(),
            false => vec![id],
        };
        Ok(Step::Notify(self.notices(&role, &told)))
    }

    /// Installs the primary of a [`Step::TakeOver`], unless it has gone or been outbid meanwhile.
    pub fn complete(&mut self, id: ClientId) -> Vec<Notice> {
        let Some(Client { role, election_id }) = self.clients.get(&id) else {
            return Vec::new();
        };
        let role = role.clone();
        let state = self.roles.entry(role.clone()).or_default();
        if *election_id == state.highest {
            state.primary = Some(id);
        }
        self.notices(&role, &[id])
    }

    /// A stream has ended.
    pub fn leave(&mut self, id: ClientId) -> Vec<Notice> {
        let Some(Client { role, .. }) = self.clients.remove(&id) else {
            return Vec::new();
        };
        let state = self.roles.entry(role.clone()).or_default();
        if state.primary != Some(id) {
            return Vec::new();
        }
        state.primary = None;
        let members: Vec<_> = self.members(&role).collect();
        self.notices(&role, &members)
    }

    /// Whether a call with this election id comes from the primary.
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
            .ok_or_else(|| Status::not_found(format!("no role `{role}`")))?;
        let election_id = election_id.map(|id| u128::from(id.high) << 64 | u128::from(id.low));
        let primary = state.primary.and_then(|id| self.clients.get(&id));
        match primary {
            Some(client) if client.election_id == election_id => Ok(()),
            Some(_) => Err(Status::permission_denied("this client is not primary")),
            None => Err(Status::permission_denied("there is no primary client")),
        }
    }

    /// Whether this is our device.
    pub fn check_device(&self, device_id: u64) -> Result<(), Status> {
        if device_id == self.device_id {
            Ok(())
        } else {
            Err(Status::not_found(format!("no device {device_id}")))
        }
    }

    /// Whether this stream's client is primary of its role.
    #[must_use]
    pub fn is_primary(&self, id: ClientId) -> bool {
        let role = self
            .clients
            .get(&id)
            .and_then(|client| self.roles.get(&client.role));
        role.is_some_and(|role| role.primary == Some(id))
    }

    /// The primary of the default role, which packets from the switch go to.
    #[must_use]
    pub fn primary(&self) -> Option<ClientId> {
        self.roles.get("").and_then(|role| role.primary)
    }

    fn members(&self, role: &str) -> impl Iterator<Item = ClientId> {
        self.clients
            .iter()
            .filter(move |(_, client)| client.role == role)
            .map(|(&id, _)| id)
    }

    fn notices(&self, role: &str, clients: &[ClientId]) -> Vec<Notice> {
        let primary = self.roles.get(role).and_then(|role| role.primary);
        let code = |id| match primary {
            Some(primary) if primary == id => Code::Ok,
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
        let highest = self.roles.get(role).and_then(|role| role.highest);
        v1::MasterArbitrationUpdate {
            device_id: self.device_id,
            role: (!role.is_empty()).then(|| v1::Role {
                name: role.to_owned(),
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

fn role_name(update: &v1::MasterArbitrationUpdate) -> Result<String, Status> {
    let role = update.role.clone().unwrap_or_default();
    #[allow(deprecated)]
    let number = role.id;
    if number != 0 {
        return Err(Status::unimplemented(
            "roles by number are deprecated; use the role's name",
        ));
    }
    if role.config.is_some() {
        return Err(Status::invalid_argument(
            "this switch knows no role configurations: every role has full access",
        ));
    }
    Ok(role.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(device_id: u64, election_id: u64) -> v1::MasterArbitrationUpdate {
        let election_id = (election_id != 0).then_some(v1::Uint128 {
            high: 0,
            low: election_id,
        });
        v1::MasterArbitrationUpdate {
            device_id,
            election_id,
            ..Default::default()
        }
    }

    fn id(low: u64) -> Option<v1::Uint128> {
        Some(v1::Uint128 { high: 0, low })
    }

    /// Who is told which code.
    fn told(notices: &[Notice]) -> Vec<(ClientId, Code)> {
        let code = |notice: &v1::MasterArbitrationUpdate| {
            Code::try_from(notice.status.as_ref().unwrap().code).unwrap()
        };
        notices
            .iter()
            .map(|(id, notice)| (*id, code(notice)))
            .collect()
    }

    fn take_over(
        arbitration: &mut Arbitration,
        client: ClientId,
        election_id: u64,
    ) -> Vec<(ClientId, Code)> {
        let Ok(Step::TakeOver(mut notices, id)) =
            arbitration.update(client, &update(1, election_id))
        else {
            panic!("a takeover")
        };
        notices.extend(arbitration.complete(id));
        told(&notices)
    }

    fn notified(step: Result<Step, Status>) -> Vec<(ClientId, Code)> {
        match step {
            Ok(Step::Notify(notices)) => told(&notices),
            other => panic!("{other:?}"),
        }
    }

    fn refused(step: Result<Step, Status>) -> tonic::Code {
        step.unwrap_err().code()
    }

    #[test]
    fn the_highest_election_id_is_primary() {
        let mut arbitration = Arbitration::new(1);
        assert_eq!(take_over(&mut arbitration, 10, 5), [(10, Code::Ok)]);
        assert_eq!(
            notified(arbitration.update(11, &update(1, 4))),
            [(11, Code::AlreadyExists)]
        );
        assert_eq!(
            take_over(&mut arbitration, 12, 6),
            [
                (10, Code::AlreadyExists),
                (11, Code::AlreadyExists),
                (12, Code::Ok)
            ]
        );
        assert!(arbitration.check_write(1, "", id(6)).is_ok());
        assert_eq!(
            arbitration.check_write(1, "", id(5)).unwrap_err().code(),
            tonic::Code::PermissionDenied
        );
        assert_eq!(
            arbitration.check_write(1, "", None).unwrap_err().code(),
            tonic::Code::PermissionDenied
        );
        assert_eq!(arbitration.primary(), Some(12));
    }

    #[test]
    fn a_lower_id_is_not_promoted_when_the_primary_leaves() {
        let mut arbitration = Arbitration::new(1);
        take_over(&mut arbitration, 10, 5);
        notified(arbitration.update(11, &update(1, 4)));
        assert_eq!(told(&arbitration.leave(10)), [(11, Code::NotFound)]);
        assert_eq!(
            arbitration.check_write(1, "", id(4)).unwrap_err().code(),
            tonic::Code::PermissionDenied
        );
        assert_eq!(
            notified(arbitration.update(11, &update(1, 4))),
            [(11, Code::NotFound)]
        );
        // The highest id ever seen, again.
        assert_eq!(
            take_over(&mut arbitration, 12, 5),
            [(11, Code::AlreadyExists), (12, Code::Ok)]
        );
    }

    #[test]
    fn no_write_is_accepted_between_the_two_steps() {
        let mut arbitration = Arbitration::new(1);
        take_over(&mut arbitration, 10, 5);
        let Ok(Step::TakeOver(_, new)) = arbitration.update(11, &update(1, 6)) else {
            panic!("a takeover")
        };
        assert!(arbitration.check_write(1, "", id(5)).is_err());
        assert!(arbitration.check_write(1, "", id(6)).is_err());
        arbitration.complete(new);
        assert!(arbitration.check_write(1, "", id(6)).is_ok());
    }

    #[test]
    fn a_takeover_that_is_outbid_or_abandoned_installs_nobody() {
        let mut arbitration = Arbitration::new(1);
        assert!(matches!(
            arbitration.update(10, &update(1, 5)),
            Ok(Step::TakeOver(..))
        ));
        assert!(matches!(
            arbitration.update(11, &update(1, 6)),
            Ok(Step::TakeOver(..))
        ));
        assert_eq!(told(&arbitration.complete(11)), [(11, Code::Ok)]);
        assert_eq!(told(&arbitration.complete(10)), [(10, Code::AlreadyExists)]);
        assert!(matches!(
            arbitration.update(12, &update(1, 7)),
            Ok(Step::TakeOver(..))
        ));
        arbitration.leave(12);
        assert_eq!(arbitration.complete(12), []);
        assert_eq!(arbitration.primary(), None);
    }

    #[test]
    fn a_primary_may_step_down() {
        let mut arbitration = Arbitration::new(1);
        take_over(&mut arbitration, 10, 5);
        notified(arbitration.update(11, &update(1, 4)));
        let stepped_down = notified(arbitration.update(10, &update(1, 3)));
        assert_eq!(stepped_down, [(10, Code::NotFound), (11, Code::NotFound)]);
        assert!(!arbitration.is_primary(10));
    }

    #[test]
    fn without_an_election_id_a_client_only_listens() {
        let mut arbitration = Arbitration::new(1);
        let Ok(Step::Notify(notices)) = arbitration.update(10, &update(1, 0)) else {
            panic!("a notice")
        };
        assert_eq!(told(&notices), [(10, Code::NotFound)]);
        assert_eq!(notices[0].1.election_id, None, "no primary has been seen");
    }

    #[test]
    fn streams_that_break_the_rules_end() {
        let mut arbitration = Arbitration::new(1);
        assert_eq!(
            refused(arbitration.update(10, &update(2, 5))),
            tonic::Code::NotFound
        );
        take_over(&mut arbitration, 10, 5);
        assert_eq!(
            refused(arbitration.update(10, &update(2, 5))),
            tonic::Code::FailedPrecondition
        );
        assert_eq!(
            refused(arbitration.update(11, &update(1, 5))),
            tonic::Code::InvalidArgument
        );
        let mut other_role = update(1, 5);
        other_role.role = Some(v1::Role {
            name: "sdn".into(),
            ..Default::default()
        });
        assert_eq!(
            refused(arbitration.update(10, &other_role)),
            tonic::Code::FailedPrecondition
        );
        assert_eq!(
            take_over(&mut arbitration, 10, 5),
            [(10, Code::Ok)],
            "its own id again is fine"
        );
    }

    #[test]
    fn roles_are_apart() {
        let mut arbitration = Arbitration::new(1);
        take_over(&mut arbitration, 10, 5);
        let mut sdn = update(1, 5);
        sdn.role = Some(v1::Role {
            name: "sdn".into(),
            ..Default::default()
        });
        assert!(
            matches!(arbitration.update(11, &sdn), Ok(Step::TakeOver(notices, 11)) if notices.is_empty())
        );
        arbitration.complete(11);
        assert!(arbitration.is_primary(10) && arbitration.is_primary(11));
        assert!(arbitration.check_write(1, "sdn", id(5)).is_ok());
        assert_eq!(
            arbitration
                .check_write(1, "gone", id(5))
                .unwrap_err()
                .code(),
            tonic::Code::NotFound
        );
        assert_eq!(
            arbitration.check_write(7, "", id(5)).unwrap_err().code(),
            tonic::Code::NotFound
        );
    }
}
