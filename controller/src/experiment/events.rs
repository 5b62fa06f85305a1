//! The lines of `events.jsonl` that say what each fault did to which frame.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use parser_gen::{FieldType, Library, Value};
use scenario::replay::Rewritten;
use serde::Serialize;

use super::Planned;
use proof::{Hit, Outcome};

/// A fault hit a frame, or had to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event<'a> {
    /// When it came, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Which fault.
    pub fault: &'a str,
    /// Its effect.
    pub effect: &'static str,
    /// Of which of its flows the frame is.
    pub flow: &'a str,
    /// Where it came to.
    pub switch: &'a str,
    /// By which port.
    pub port: u32,
    /// Its number among the frames that came there, from 1.
    pub frame: usize,
    /// Its number, from 1, among those of the flow, or of its key in the flow, that the fault looked at.
    pub ordinal: u64,
    /// Where it stands in its RDMA connection, where the fault selects by that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rdma: Option<RdmaPlace>,
    /// The step that was in force.
    pub epoch: u16,
    /// Whether the fault was right.
    pub outcome: Outcome,
    /// Addresses, ports, and what a RoCEv2 header has, where it has some.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<&'static str, String>,
    /// How long it was.
    pub bytes: u32,
    /// When its copies left, by port.
    pub left: Vec<Left<'a>>,
    /// Which bytes were to change, where its effect changes any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Change>,
    /// How long it was to be, if that is not how long it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_to: Option<u32>,
}

/// Where a data packet stands in its RDMA connection; its queue pair and its number are among the fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RdmaPlace {
    /// Its sequence number less the connection's first.
    pub relative_psn: u32,
    /// In which round of the connection it came, from 1.
    pub round: u32,
    /// Which packet is the first: the one that the switch was told of, or the one that it saw first.
    pub first: First,
}

/// See [`RdmaPlace::first`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum First {
    /// Of whoever opened the connection.
    Told,
    /// Nobody told.
    Seen,
}

/// Copies that left by a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left<'a> {
    /// Which.
    pub port: u32,
    /// When, in nanoseconds since 1970.
    pub at_ns: &'a [u64],
}

/// Bytes that were to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Where they begin in the frame.
    pub at: usize,
    /// In hexadecimal.
    pub from: String,
    /// The same.
    pub to: String,
}

/// What is told of a frame, by names of filters.
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

/// The log of a run: switch by switch, in the order in which the frames came.
#[must_use]
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
            rdma: hit.place.map(|place| RdmaPlace {
                relative_psn: place.relative,
                round: place.round,
                first: if hit.is_told {
                    First::Told
                } else {
                    First::Seen
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

/// What is told of a frame that came by a port.
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

/// Runs of bytes that differ.
fn changed(before: &[u8], after: &Rewritten) -> Vec<Change> {
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
    let changes = changes.iter().map(|(at, from, to)| Change {
        at: *at,
        from: hex(from),
        to: hex(to),
    });
    changes.collect()
}

/// A line each.
#[must_use]
pub fn lines<E: Serialize>(events: &[E]) -> String {
    let lines = events
        .iter()
        .filter_map(|event| serde_json::to_string(event).ok());
    lines.map(|line| line + "\n").collect()
}
