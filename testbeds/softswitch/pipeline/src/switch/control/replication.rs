//! Control plane operations on multicast groups and clone sessions.

use super::Undo;
use crate::error::ReplicationError;
use crate::port_numbers::check_port;
use crate::switch::{Noted, Switch};
use crate::table::Note;
use p4lang::ir::{Arch, Program, Type};
use p4lang::runtime::{CloneSession, MulticastGroup, Replica};

/// Widths in bits of multicast group ids and of clone session ids, in the metadata by which packets select them.
fn id_widths(program: &Program) -> (u32, u32) {
    let of = |owner: &str, field: &str| {
        let ty = program.types.iter().find(|ty| ty.name == owner);
        let field = ty.and_then(|ty| ty.fields.iter().find(|f| f.name == field));
        match field.map(|f| &f.ty) {
            Some(Type::Bit(width)) => *width,
            _ => u32::BITS,
        }
    };
    match program.arch {
        Arch::Psa => {
            let output = "psa_ingress_output_metadata_t";
            (
                of(output, "multicast_group"),
                of(output, "clone_session_id"),
            )
        }
        // `clone` takes a session of 32 bits.
        Arch::V1model => (of("standard_metadata_t", "mcast_grp"), u32::BITS),
        // `Mirror.emit` takes a `MirrorId_t`.
        Arch::Tna => (of(FOR_TM, "mcast_grp_a"), 10),
        Arch::T2na => (of(FOR_TM, "mcast_grp_a"), 8),
        Arch::Other(_) => (u32::BITS, u32::BITS),
    }
}

const FOR_TM: &str = "ingress_intrinsic_metadata_for_tm_t";

fn check_id(what: &'static str, id: u32, width: u32) -> Result<(), ReplicationError> {
    match id.checked_shr(width) {
        None | Some(0) => Ok(()),
        Some(_) => Err(ReplicationError::Id { what, id, width }),
    }
}

impl Switch {
    /// Adds or replaces a multicast group.
    pub fn set_multicast_group(&mut self, group: &MulticastGroup) -> Result<(), ReplicationError> {
        let (width, _) = id_widths(self.program());
        check_id("multicast group", group.id, width)?;
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

    /// Removes a multicast group.
    pub fn delete_multicast_group(&mut self, id: u32) -> Result<(), ReplicationError> {
        let old = self.core.replication.delete_group(id)?;
        self.set_note(Noted::Group(id), Note::default());
        self.record(|| Undo::Group(id, Some(old)));
        Ok(())
    }

    /// All multicast groups, in the order of their ids.
    pub fn multicast_groups(&self) -> Vec<MulticastGroup> {
        self.core.replication.groups()
    }

    /// Adds or replaces a clone session.
    pub fn set_clone_session(&mut self, session: &CloneSession) -> Result<(), ReplicationError> {
        let (_, width) = id_widths(self.program());
        check_id("clone session", session.id, width)?;
        self.check_replicas(&session.replicas)?;
        // PSA's `ClassOfService_t`, which v1model's packets also use.
        if session.class_of_service > u8::MAX.into() {
            return Err(ReplicationError::Class(session.class_of_service));
        }
        let old = self.core.replication.set_session(session)?;
        self.record(|| Undo::Session(session.id, old));
        Ok(())
    }

    /// Removes a clone session.
    pub fn delete_clone_session(&mut self, id: u32) -> Result<(), ReplicationError> {
        let old = self.core.replication.delete_session(id)?;
        self.set_note(Noted::Session(id), Note::default());
        self.record(|| Undo::Session(id, Some(old)));
        Ok(())
    }

    /// All clone sessions, in the order of their ids.
    pub fn clone_sessions(&self) -> Vec<CloneSession> {
        self.core.replication.sessions()
    }
}
