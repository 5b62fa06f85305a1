//! Announcements of RDMA connections: an endpoint announces a connection's first sequence number to a switch.
//!
//! Without an announcement, the first packet that the switch sees counts as the first of the connection.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use p4lang::runtime::{FieldMatch, Match, TableEntry};
use parser_gen::engine::Select;
use parser_gen::psn::{Begun, Packet};
use serde::{Deserialize, Serialize};

use super::SwitchPlan;
use super::runtime::call;
use crate::model::Direction;
use crate::plan::names::fault::{self, key};

/// One direction of an RDMA connection that carries data. READ responses are a separate stream, because they carry the
/// requester's sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// IPv4 address of the sender of the data.
    pub source: Ipv4Addr,
    /// IPv4 address of the receiver of the data.
    pub destination: Ipv4Addr,
    /// Number of the receiver's queue pair.
    pub qp: u32,
    /// Whether the data are responses to READs.
    pub responds: bool,
}

impl Stream {
    /// The stream that an RDMA packet belongs to; `None` if the packet carries no data.
    #[must_use]
    pub fn of(packet: &Packet) -> Option<Stream> {
        Some(Stream {
            source: packet.source.into(),
            destination: packet.destination.into(),
            qp: packet.qp,
            responds: packet.data()?.responds,
        })
    }
}

/// The announcement of an RDMA stream to a switch. Times are in nanoseconds since 1970, as in captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Announcement {
    /// Name of the switch that received the announcement.
    pub switch: String,
    /// The stream whose first sequence number is announced.
    pub stream: Stream,
    /// Sequence number of the stream's first packet.
    pub first_psn: u32,
    /// Generation of the receiver's queue pair, counted from 1. When a queue pair number is reused, the next generation begins.
    pub life: u8,
    /// A time before the announcement was sent, in nanoseconds since 1970.
    pub sent_ns: u64,
    /// A time after the switch had confirmed the announcement, in nanoseconds since 1970.
    pub confirmed_ns: u64,
}

/// The announcements to one switch, by stream, in the order in which the switch confirmed them.
#[derive(Debug, Clone, Default)]
pub struct Announcements(BTreeMap<Stream, Vec<Announcement>>);

/// Usual maximum time, in nanoseconds, that a frame waits at a switch before the switch processes it.
const WAITING_NS: u64 = 5_000_000;

impl Announcements {
    /// Selects the announcements to the named switch.
    #[must_use]
    pub fn at(switch: &str, tellings: &[Announcement]) -> Announcements {
        let mut told = Announcements::default();
        for telling in tellings.iter().filter(|telling| telling.switch == switch) {
            told.add(telling);
        }
        told
    }

    /// Adds an announcement to this switch.
    pub fn add(&mut self, telling: &Announcement) {
        let of_stream = self.0.entry(telling.stream).or_default();
        let behind = of_stream.partition_point(|other| other.confirmed_ns <= telling.confirmed_ns);
        of_stream.insert(behind, telling.clone());
    }

    /// Whether there are no announcements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last announcement of the packet's stream that the switch had confirmed when the packet came; `None`: there is none.
    #[must_use]
    pub fn begun(&self, packet: &Packet, at_ns: u64) -> Option<Begun> {
        let of_stream = self.0.get(&Stream::of(packet)?)?;
        let known = of_stream.partition_point(|telling| telling.confirmed_ns <= at_ns);
        let telling = of_stream.get(known.checked_sub(1)?)?;
        Some(Begun {
            first: telling.first_psn,
            life: telling.life,
        })
    }

    /// Whether a packet came while its stream was being announced: it is then unknown whether the switch knew the stream. An
    /// endpoint that announces before it connects sends no such packet.
    #[must_use]
    pub fn is_in_doubt(&self, packet: &Packet, at_ns: u64) -> bool {
        let of_stream = Stream::of(packet).and_then(|stream| self.0.get(&stream));
        let mut tellings = of_stream.into_iter().flatten();
        tellings.any(|telling| {
            let since_ns = telling.sent_ns.saturating_sub(WAITING_NS);
            (since_ns..telling.confirmed_ns).contains(&at_ns)
        })
    }
}

impl SwitchPlan {
    /// The table entries that announce a stream to this switch: one for each fault unit that selects by sequence number.
    #[must_use]
    pub fn tell(&self, stream: Stream, begun: Begun) -> Vec<TableEntry> {
        let of_psn = self.units.iter().filter(|unit| {
            let spec = self.engine.ingress.get(unit.unit);
            unit.direction == Direction::Ingress
                && spec.is_some_and(|spec| spec.select == Select::Psn)
        });
        let exact = |field: &str, value: u32| FieldMatch {
            field: field.to_owned(),
            value: Match::exact(u128::from(value)),
        };
        of_psn
            .map(|unit| {
                let part = |name: &str| fault::part(unit.direction, unit.unit, name);
                TableEntry {
                    table: part(fault::CONNECTIONS),
                    key: vec![
                        exact(key::SOURCE, stream.source.into()),
                        exact(key::DESTINATION, stream.destination.into()),
                        exact(key::QP, stream.qp),
                        exact(key::DATA, 1 + u32::from(stream.responds)),
                    ],
                    priority: 0,
                    action: call(
                        part(fault::BEGAN),
                        &[
                            (fault::LIFE, begun.life.into()),
                            (fault::FIRST, begun.first.into()),
                        ],
                    ),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_last_counts() {
        let packet = Packet {
            source: [10, 0, 0, 1],
            destination: [10, 0, 0, 2],
            qp: 17,
            psn: 9,
            opcode: 0x06,
            syndrome: None,
        };
        let stream = Stream::of(&packet).unwrap();
        let telling = |switch: &str, stream, confirmed_ns, first_psn| Announcement {
            switch: switch.to_owned(),
            stream,
            first_psn,
            life: 1,
            sent_ns: confirmed_ns - 10,
            confirmed_ns,
        };
        let responses = Stream {
            responds: true,
            ..stream
        };
        let tellings = [
            telling("sw", stream, 200, 8),
            telling("sw", stream, 100, 3),
            telling("sw", responses, 100, 4),
            telling("other", stream, 50, 5),
        ];
        let told = Announcements::at("sw", &tellings);
        let of = |at_ns| told.begun(&packet, at_ns).map(|begun| begun.first);
        assert_eq!(
            [99, 100, 199, 200].map(of),
            [None, Some(3), Some(3), Some(8)]
        );
        let response = Packet {
            opcode: 0x10,
            ..packet
        };
        let begun = told.begun(&response, 100).unwrap();
        assert_eq!((begun.first, begun.life), (4, 1));
        let doubts = [150 + WAITING_NS, 199, 200].map(|at_ns| told.is_in_doubt(&packet, at_ns));
        assert_eq!(doubts, [false, true, false]);
        assert!(Announcements::at("nobody", &tellings).is_empty());
    }
}
