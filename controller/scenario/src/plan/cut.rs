//! Prepares the switch to cut packets by clone sessions: one session for each length, whose number is the length in bytes.

use p4lang::runtime::{CloneSession, Replica};
use parser_gen::EngineSpec;
use serde::{Serialize, Serializer};

use super::{TargetModel, Truncates, Unit};
use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;

/// Bytes of the header `hold_h` in front of a packet on the recirculation port (p4src/common/headers.p4, 48-bit times).
const HOLD_BYTES: u32 = 10;
/// Bytes of the further header `wait_h` on the recirculation port, in programs where packets wait for other packets.
const WAIT_BYTES: u32 = 13;

/// Refuses to truncate packets on a switch that would sum them before it cuts them.
pub(super) fn check(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    switch: &str,
    units: &[Unit],
    target: &TargetModel,
) {
    if target.truncates != Some(Truncates::Extern) {
        return;
    }
    let faults = units
        .iter()
        .filter_map(|unit| scenario.faults.iter().find(|f| f.id == unit.fault));
    for fault in faults.filter(|fault| fault.effect.leaves().is_some()) {
        let message = format!(
            "switch `{switch}` sums a job; on this target, it would also sum the bytes that fault `{}` cuts off",
            fault.id
        );
        sink.error(Code::Effect, fault.place_span, message)
            .hint("let the fault act on another switch: `where: SWITCH`");
    }
}

/// The clone sessions that a switch needs to truncate packets, in ascending order of their numbers.
pub(super) fn sessions(
    scenario: &Scenario,
    units: &[Unit],
    engine: &EngineSpec,
    target: &TargetModel,
) -> Vec<CloneSession> {
    if target.truncates != Some(Truncates::Clones) {
        return Vec::new();
    }
    let faults = units
        .iter()
        .filter_map(|unit| scenario.faults.iter().find(|f| f.id == unit.fault));
    let mut lengths: Vec<u16> = faults.filter_map(|fault| fault.effect.leaves()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let front = HOLD_BYTES + if engine.waits() { WAIT_BYTES } else { 0 };
    let session = |bytes: u16| CloneSession {
        id: bytes.into(),
        replicas: vec![Replica {
            port: target.recirculation_port,
            instance: 1,
        }],
        class_of_service: 0,
        packet_length_bytes: u32::from(bytes) + front,
    };
    lengths.into_iter().map(session).collect()
}

pub(super) fn serialize<S: Serializer>(
    sessions: &[CloneSession],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Session {
        id: u32,
        ports: Vec<u32>,
        packet_length_bytes: u32,
    }
    serializer.collect_seq(sessions.iter().map(|session| {
        Session {
            id: session.id,
            ports: session
                .replicas
                .iter()
                .map(|replica| replica.port)
                .collect(),
            packet_length_bytes: session.packet_length_bytes,
        }
    }))
}
