//! Multicast groups and clone sessions.

use super::{Noted, Undo};
use crate::error::ReplicationError;
use crate::switch::Switch;
use crate::table::Note;
use p4lang::runtime::{CloneSession, MulticastGroup};

impl Switch {
    /// Adds or replaces a multicast group.
    pub fn set_multicast_group(&mut self, group: &MulticastGroup) -> Result<(), ReplicationError> {
        let old = self.core.replication.set_group(group)?;
        self.record(|| Undo::Group(group.id, old));
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
