//! What a switch is told of RDMA connections by those who open them: with which sequence numbers they begin.
//!
//! Without that, the first packet that the switch sees counts as the first.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use p4lang::runtime::{FieldMatch, Match, TableEntry};
use parser_gen::engine::Select;
use parser_gen::psn::{Begun, Packet};
use serde::{Deserialize, Serialize};

use crate::model::Direction;
use crate::names::fault::{self, key};
use crate::plan::{SwitchPlan, call};

/// Data of a connection that go one way. Responses of a READ have the numbers of who asks, so they are a stream of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Who sends.
    pub source: Ipv4Addr,
    /// Who receives.
    pub destination: Ipv4Addr,
    /// The receiver's queue pair.
    pub qp: u32,
    /// Whether they answer READs.
    pub responds: bool,
}

impl Stream {
    /// Of a packet, if it carries data.
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

/// A switch was told of a stream. Times are in nanoseconds since 1970, as those of captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Telling {
    /// Which switch.
    pub switch: String,
    /// Of which stream.
    pub stream: Stream,
    /// The number of its first packet.
    pub first_psn: u32,
    /// Which of the connections that have had the queue pair, from 1.
    pub life: u8,
    /// Read before it was sent.
    pub sent_ns: u64,
    /// Read after the switch had confirmed it.
    pub confirmed_ns: u64,
}

/// What one switch was told, in the order of time.
#[derive(Debug, Clone, Default)]
pub struct Told(BTreeMap<Stream, Vec<Telling>>);

/// A frame waits for its switch so long at most, as a rule.
const WAITING_NS: u64 = 5_000_000;

impl Told {
    /// Of all tellings those of a switch.
    #[must_use]
    pub fn at(switch: &str, tellings: &[Telling]) -> Told {
        let mut told = Told::default();
        for telling in tellings.iter().filter(|telling| telling.switch == switch) {
            told.add(telling);
        }
        told
    }

    /// One more.
    pub fn add(&mut self, telling: &Telling) {
        let of_stream = self.0.entry(telling.stream).or_default();
        let behind = of_stream.partition_point(|other| other.confirmed_ns <= telling.confirmed_ns);
        of_stream.insert(behind, telling.clone());
    }

    /// Whether it was told of nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the switch knew of a packet's stream when it came.
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

    /// Whether a packet came while the switch was being told of its stream: it may have met either. Who tells before it connects
    /// sends none.
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
    /// The entries that tell this switch of a stream, one for each fault that selects by sequence numbers.
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
        let telling = |switch: &str, stream, confirmed_ns, first_psn| Telling {
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
        let told = Told::at("sw", &tellings);
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
        assert!(Told::at("nobody", &tellings).is_empty());
    }
}
