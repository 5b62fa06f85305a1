//! Multicast groups and clone sessions.

use super::{Noted, Undo};
use crate::error::ReplicationError;
use crate::port_numbers::check_port;
use crate::switch::Switch;
use crate::table::Note;
use p4lang::runtime::{CloneSession, MulticastGroup, Replica};

impl Switch {
    /// Adds or replaces a multicast group.
    pub fn set_multicast_group(&mut self, group: &MulticastGroup) -> Result<(), ReplicationError> {
        self.check_replicas(&group.replicas)?;
        let old = self.core.replication.set_group(group)?;
        self.record(|| Undo::Group(group.id, old));
        Ok(())
    }

    fn check_replicas(&self, replicas: &[Replica]) -> Result<(), ReplicationError> {
        for replica in replicas {
            check_port(&self.program().arch, replica.port)?;
        }
        Ok(())
    }

    /// Takes a multicast group out.
    pub fn delete_multicast_group(&mut self, id: u32) -> Result<(), ReplicationError> {
        let old = self.core.replication.delete_group(id)?;
        self.set_note(Noted::Group(id), Note::default());
        self.record(|| Undo::Group(id, Some(old)));
        Ok(())
    }

    /// All multicast groups by id.
    pub fn multicast_groups(&self) -> Vec<MulticastGroup> {
        self.core.replication.groups()
    }

    /// Adds or replaces a clone session.
    pub fn set_clone_session(&mut self, session: &CloneSession) -> Result<(), ReplicationError> {
        self.check_replicas(&session.replicas)?;
        // PSA's `ClassOfService_t`; v1model's packets take it, too.
        if session.class_of_service > u8::MAX.into() {
            return Err(ReplicationError::Class(session.class_of_service));
        }
        let old = self.core.replication.set_session(session)?;
        self.record(|| Undo::Session(session.id, old));
        Ok(())
    }

    /// Takes a clone session out.
    pub fn delete_clone_session(&mut self, id: u32) -> Result<(), ReplicationError> {
        let old = self.core.replication.delete_session(id)?;
        self.set_note(Noted::Session(id), Note::default());
        self.record(|| Undo::Session(id, Some(old)));
        Ok(())
    }

    /// All clone sessions by id.
    pub fn clone_sessions(&self) -> Vec<CloneSession> {
        self.core.replication.sessions()
    }
}
