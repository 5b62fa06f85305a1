//! The lines of `events.jsonl`: one for each frame that a packet fault hit or should have hit.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use parser_gen::{FieldType, Library, Value};
use scenario::replay::Rewritten;
use serde::Serialize;

use crate::experiment::Planned;
use proof::{Hit, Outcome};

/// A line of `events.jsonl`: a frame that a packet fault hit or should have hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event<'a> {
    /// When the frame arrived at the switch, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Name of the fault.
    pub fault: &'a str,
    /// Word for the fault's effect, such as `drop`.
    pub effect: &'static str,
    /// Name of the fault's flow that the frame belongs to.
    pub flow: &'a str,
    /// Name of the switch at which the frame arrived.
    pub switch: &'a str,
    /// Number of the port at which the frame arrived.
    pub port: u32,
    /// Number of the frame among all frames that arrived at the port, from 1.
    pub frame: usize,
    /// Number of the frame, from 1, among those of the flow (or of its key in the flow) that the fault examined.
    pub ordinal: u64,
    /// Position of the frame in its RDMA connection; `None` unless the fault selects by sequence number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma: Option<RdmaPosition>,
    /// Number of the step of the timeline (epoch) that was in force when the frame arrived.
    pub epoch: u16,
    /// Whether the fault hit the frame as it had to, missed it, or hit it wrongly.
    pub outcome: Outcome,
    /// Addresses, ports and RoCEv2 fields of the frame, by filter name, such as `ip.src`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<&'static str, String>,
    /// Length of the frame when it arrived, in bytes.
    pub bytes: u32,
    /// Copies of the frame that left the switch, by port.
    pub left: Vec<Left<'a>>,
    /// Bytes that the effect had to change; empty for an effect that changes none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedBytes>,
    /// Length in bytes that the frame had to have when it left the switch; `None` if that is `bytes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_to: Option<u32>,
}

/// Position of a data packet in its RDMA connection. The event's `fields` have the packet's queue pair and sequence number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RdmaPosition {
    /// Sequence number of the packet minus the first sequence number of its connection.
    pub relative_psn: u32,
    /// Round of the packet, from 1: a packet whose sequence number does not follow the previous one begins a new round.
    pub round: u32,
    /// Where the switch got the connection's first sequence number from.
    pub first: FirstPsn,
}

/// Where a switch got the first sequence number of an RDMA connection from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FirstPsn {
    /// A program at one end of the connection announced the number.
    Told,
    /// No program announced the number: it is that of the first packet that the switch saw.
    Seen,
}

/// Copies of a frame that left the switch through one port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left<'a> {
    /// Number of the port.
    pub port: u32,
    /// When each copy of the frame left through the port, in nanoseconds since 1970.
    pub at_ns: &'a [u64],
}

/// Consecutive bytes of a frame that a fault had to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedBytes {
    /// Offset of the first changed byte in the frame, from 0.
    pub at: usize,
    /// The bytes before the change, in hexadecimal digits.
    pub from: String,
    /// The bytes after the change, in hexadecimal digits.
    pub to: String,
}

/// Filter names of the fields that an event reports.
const FIELDS: [&str; 10] = [
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.sport",
    "tcp.dport",
    "udp.sport",
    "udp.dport",
    "roce.qp",
    "roce.psn",
];

/// The events of a run's hits, in the order of the hits.
pub fn events<'a>(planned: &'a Planned, hits: &'a [Hit]) -> Vec<Event<'a>> {
    let library = &planned.scenario.protocols;
    let of_hit = |hit: &'a Hit| {
        let injection = planned.plan.injections.get(hit.injection)?;
        let mut faults = planned.scenario.faults.iter();
        let fault = faults.find(|fault| fault.id == injection.fault)?;
        let changes = fault.effect.changes();
        let left_as = hit.left_as.as_ref().filter(|_| changes);
        Some(Event {
            at_ns: hit.at_ns,
            fault: &injection.fault,
            effect: fault.effect.word(),
            flow: &injection.flow,
            switch: &hit.switch,
            port: hit.port,
            frame: hit.frame,
            ordinal: hit.ordinal,
            rdma: hit.place.map(|place| RdmaPosition {
                relative_psn: place.relative,
                round: place.round,
                first: if hit.is_told {
                    FirstPsn::Told
                } else {
                    FirstPsn::Seen
                },
            }),
            epoch: hit.epoch,
            outcome: hit.outcome,
            fields: fields(library, &hit.bytes, hit.port),
            bytes: hit.wire_len,
            left: hit
                .left
                .iter()
                .map(|(port, at_ns)| Left { port: *port, at_ns })
                .collect(),
            changed: left_as.map_or_else(Vec::new, |left| changed(&hit.bytes, left)),
            cut_to: left_as
                .map(|left| left.wire_len)
                .filter(|length| *length != hit.wire_len),
        })
    };
    hits.iter().filter_map(of_hit).collect()
}

/// Reported fields of a frame that arrived at a port, with their values, by filter name.
pub fn fields(library: &Library, frame: &[u8], port: u32) -> BTreeMap<&'static str, String> {
    let values = library.dissect(frame, port);
    let fields = FIELDS.iter().filter_map(|name| {
        let field = library.field(name)?;
        Some((*name, show(field.ty, values.value(name)?)?))
    });
    fields.collect()
}

fn show(ty: FieldType, value: &Value) -> Option<String> {
    let Value::Number(number) = value else {
        return None;
    };
    Some(match ty {
        FieldType::Ipv4 => Ipv4Addr::from(u32::try_from(*number).ok()?).to_string(),
        FieldType::Ipv6 => Ipv6Addr::from(*number).to_string(),
        _ => number.to_string(),
    })
}

/// Sequences of bytes that differ between a frame and the form into which the fault had to rewrite it.
fn changed(before: &[u8], after: &Rewritten) -> Vec<ChangedBytes> {
    let mut changes: Vec<(usize, Vec<u8>, Vec<u8>)> = Vec::new();
    for (at, (from, to)) in before.iter().zip(&after.bytes).enumerate() {
        if from == to {
            continue;
        }
        match changes.last_mut() {
            Some((begin, old, new)) if *begin + old.len() == at => {
                old.push(*from);
                new.push(*to);
            }
            _ => changes.push((at, vec![*from], vec![*to])),
        }
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let changes = changes.iter().map(|(at, from, to)| ChangedBytes {
        at: *at,
        from: hex(from),
        to: hex(to),
    });
    changes.collect()
}

/// Formats each event as one line of JSON.
pub fn lines<E: Serialize>(events: &[E]) -> String {
    let lines = events
        .iter()
        .filter_map(|event| serde_json::to_string(event).ok());
    lines.map(|line| line + "\n").collect()
}
