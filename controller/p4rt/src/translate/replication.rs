//! Translates multicast groups and clone sessions (P4Runtime 1.4, section 9.5).

use super::{Part, TranslateError};
use crate::bytes;
use crate::v1;
use crate::v1::replica::PortKind;
use p4lang::runtime::{CloneSession, MulticastGroup, Replica};

type Result<T> = std::result::Result<T, TranslateError>;

pub(super) fn group_to_proto(group: &MulticastGroup) -> Result<v1::MulticastGroupEntry> {
    check_id("multicast group", group.id)?;
    check_replicas(&group.replicas)?;
    Ok(v1::MulticastGroupEntry {
        multicast_group_id: group.id,
        replicas: group.replicas.iter().map(replica_to_proto).collect(),
        metadata: Vec::new(),
    })
}

pub(super) fn group_from_proto(
    group: &v1::MulticastGroupEntry,
    part: Part,
) -> Result<MulticastGroup> {
    check_id("multicast group", group.multicast_group_id)?;
    let replicas = match part {
        Part::Key => Vec::new(),
        Part::Whole => replicas_from_proto(&group.replicas)?,
    };
    Ok(MulticastGroup {
        id: group.multicast_group_id,
        replicas,
    })
}

pub(super) fn session_to_proto(session: &CloneSession) -> Result<v1::CloneSessionEntry> {
    check_id("clone session", session.id)?;
    check_replicas(&session.replicas)?;
    let too_long =
        |_| TranslateError::Malformed(format!("packet length {}", session.packet_length_bytes));
    Ok(v1::CloneSessionEntry {
        session_id: session.id,
        replicas: session.replicas.iter().map(replica_to_proto).collect(),
        class_of_service: session.class_of_service,
        packet_length_bytes: i32::try_from(session.packet_length_bytes).map_err(too_long)?,
    })
}

pub(super) fn session_from_proto(
    session: &v1::CloneSessionEntry,
    part: Part,
) -> Result<CloneSession> {
    check_id("clone session", session.session_id)?;
    let id = session.session_id;
    if part == Part::Key {
        return Ok(CloneSession {
            id,
            replicas: Vec::new(),
            class_of_service: 0,
            packet_length_bytes: 0,
        });
    }
    let negative =
        |_| TranslateError::Malformed(format!("packet length {}", session.packet_length_bytes));
    Ok(CloneSession {
        id,
        replicas: replicas_from_proto(&session.replicas)?,
        class_of_service: session.class_of_service,
        packet_length_bytes: u32::try_from(session.packet_length_bytes).map_err(negative)?,
    })
}

fn check_id(what: &str, id: u32) -> Result<()> {
    match id {
        0 => Err(TranslateError::Malformed(format!(
            "0 is not a {what}: in a read, it stands for all of them"
        ))),
        _ => Ok(()),
    }
}

/// Encodes a replica with its port as `egress_port`: deprecated since 1.4, but the only form that every switch in use supports.
fn replica_to_proto(replica: &Replica) -> v1::Replica {
    v1::Replica {
        instance: replica.instance.into(),
        #[allow(deprecated)]
        port_kind: Some(PortKind::EgressPort(replica.port)),
    }
}

fn replicas_from_proto(replicas: &[v1::Replica]) -> Result<Vec<Replica>> {
    let replicas = replicas
        .iter()
        .map(replica_from_proto)
        .collect::<Result<Vec<_>>>()?;
    check_replicas(&replicas)?;
    Ok(replicas)
}

fn replica_from_proto(replica: &v1::Replica) -> Result<Replica> {
    let port = match replica.port_kind.as_ref() {
        None => {
            return Err(TranslateError::Unset {
                what: "the replica's port",
            });
        }
        #[allow(deprecated)]
        Some(PortKind::EgressPort(port)) => *port,
        Some(PortKind::Port(port)) => {
            let value = |source| TranslateError::Value {
                field: "port".to_owned(),
                source,
            };
            let port = bytes::decode(port, u32::BITS).map_err(value)?;
            port.to().unwrap_or(u32::MAX)
        }
    };
    let too_large = |_| {
        TranslateError::Malformed(format!(
            "instance {} does not fit into 16 bits",
            replica.instance
        ))
    };
    Ok(Replica {
        port,
        instance: u16::try_from(replica.instance).map_err(too_large)?,
    })
}

fn check_replicas(replicas: &[Replica]) -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    match replicas.iter().find(|replica| !seen.insert(**replica)) {
        None => Ok(()),
        Some(Replica { port, instance }) => Err(TranslateError::Malformed(format!(
            "port {port} with instance {instance} is given twice"
        ))),
    }
}
