//! How RDMA connections came back from the data packets that faults took, as Lumina measures it (SIGCOMM 2023): all times are
//! those of the switch's captures.
//!
//! ```text
//!  sender        switch        receiver
//!    │── k ────────▶ ✗              │    lost
//!    │── k + 1 ────▶│──────────────▶│    noticed  ┐ NAK generation
//!    │◀─────────────│◀───── NAK k ──│    told     ┘ ┐ NAK response
//!    │── k ────────▶│──────────────▶│    again      ┘
//! ```
//!
//! Of a READ, whose data are the responses, the requester tells by another request that begins at the one that is missing.
//! Nothing tells of what was lost behind all others: then only the sender's time-out brings it back.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use parser_gen::Library;
use parser_gen::psn::{DataPacket, MODULUS, Packet};
use scenario::Plan;
use scenario::model::Scenario;
use scenario::telling::Told;
use serde::Serialize;
use testbeds::capture::{Direction, Frame};

use super::{Evidence, Hit, Outcome};

/// What became of a data packet that a fault took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// Which fault took it.
    pub fault: String,
    /// Where.
    pub switch: String,
    /// From whom.
    pub source: Ipv4Addr,
    /// For whom.
    pub destination: Ipv4Addr,
    /// For which queue pair of theirs.
    pub qp: u32,
    /// Its sequence number.
    pub psn: u32,
    /// That, less the connection's first.
    pub relative_psn: u32,
    /// Whether a packet of its number had gone on before, as it was or spoilt by a fault: then the receiver may have had it, and
    /// nobody misses this one.
    pub passed_before: bool,
    /// What told the sender.
    pub told_by: Teller,
    /// When it came, in nanoseconds since 1970.
    pub lost_ns: u64,
    /// From the first packet behind it that went on, to what tells of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nak_generation_ns: Option<u64>,
    /// From what tells of it, to the packet when it comes again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nak_response_ns: Option<u64>,
    /// From the packet, to the packet when it comes again. `None`: it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmission_ns: Option<u64>,
}

/// What tells a sender that a packet is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Teller {
    /// A NAK "PSN sequence error" with its number.
    Nak,
    /// A READ that asks for it and all behind it.
    Read,
    /// Nobody did: it came again after a time-out, or with another that was missing before it.
    Nobody,
}

/// A connection in one direction: source, destination, destination queue pair; and whether READs are answered in it.
type Connection = ([u8; 4], [u8; 4], u32, bool);

fn connection(packet: &Packet, data: DataPacket) -> Connection {
    (packet.source, packet.destination, packet.qp, data.responds)
}

/// When packets of connections passed, with their numbers, in order of time.
type Numbers = HashMap<Connection, Vec<(u64, u32)>>;

/// What is told of a gap: whose data it is (source, destination), the number that is missing, and whether a READ tells.
type Gap = ([u8; 4], [u8; 4], u32, bool);

/// What passed a switch of its RDMA connections.
#[derive(Default)]
struct Passed {
    /// Data that came.
    came: Numbers,
    /// Data that went on.
    left: Numbers,
    /// When each number of theirs went on for the first time.
    first_left: HashMap<(Connection, u32), u64>,
    /// What told of gaps, when it came, and when it went on to who is told.
    told: HashMap<Gap, [Vec<u64>; 2]>,
    /// The first numbers that the switch was told.
    begins: Told,
}

impl Passed {
    fn of(library: &Library, switch: &str, evidence: &Evidence) -> Passed {
        let mut passed = Passed {
            begins: Told::at(switch, &evidence.tellings),
            ..Passed::default()
        };
        let ports = evidence
            .recordings
            .iter()
            .filter(|port| port.switch == switch);
        let mut frames: Vec<&Frame> = ports.flat_map(|port| &port.recording.frames).collect();
        frames.sort_by_key(|frame| frame.at_ns);
        for frame in frames {
            let Some(packet) = Packet::of(library, &frame.bytes) else {
                continue;
            };
            if let Some(data) = packet.data() {
                if frame.direction == Direction::Out {
                    let number = (connection(&packet, data), packet.psn);
                    passed.first_left.entry(number).or_insert(frame.at_ns);
                }
                let of = match frame.direction {
                    Direction::In => &mut passed.came,
                    Direction::Out => &mut passed.left,
                };
                let numbers = of.entry(connection(&packet, data)).or_default();
                numbers.push((frame.at_ns, packet.psn));
            } else if packet.is_sequence_nak() || packet.is_read_request() {
                // The data went the other way.
                let to = (packet.destination, packet.source);
                let told = passed
                    .told
                    .entry((to.0, to.1, packet.psn, packet.is_read_request()));
                told.or_default()[usize::from(frame.direction == Direction::Out)].push(frame.at_ns);
            }
        }
        passed
    }

    /// What became of a packet that came at a time.
    fn times(&self, lost: &Packet, data: DataPacket, lost_ns: u64) -> Times {
        let behind = |numbers: &Numbers, is_it: &dyn Fn(u32) -> bool| {
            let all = numbers.get(&connection(lost, data))?;
            let later = &all[all.partition_point(|(at_ns, _)| *at_ns <= lost_ns)..];
            later
                .iter()
                .find(|(_, psn)| is_it(*psn))
                .map(|(at_ns, _)| *at_ns)
        };
        let follows = |psn: u32| (1..MODULUS / 2).contains(&(psn.wrapping_sub(lost.psn) % MODULUS));
        let noticed_ns = behind(&self.left, &follows);
        let again_ns = behind(&self.came, &|psn| psn == lost.psn);
        let told = self
            .told
            .get(&(lost.source, lost.destination, lost.psn, data.responds));
        let told_ns = told
            .and_then(|[came, left]| {
                // One that a fault takes tells nobody.
                let left_ns = left.iter().find(|at_ns| **at_ns > lost_ns)?;
                let mut before = came
                    .iter()
                    .filter(|at_ns| *at_ns <= left_ns && **at_ns > lost_ns);
                before.next_back().copied()
            })
            .filter(|told_ns| again_ns.is_none_or(|again_ns| *told_ns < again_ns))
            // Who has seen nothing behind it does not miss it: that is a READ's time-out.
            .filter(|told_ns| noticed_ns.is_some_and(|noticed_ns| noticed_ns <= *told_ns));
        Times {
            noticed_ns,
            told_ns,
            again_ns,
        }
    }

    /// Whether a packet of its number had gone on before a time.
    fn has_left(&self, packet: &Packet, data: DataPacket, before_ns: u64) -> bool {
        let first_ns = self.first_left.get(&(connection(packet, data), packet.psn));
        first_ns.is_some_and(|first_ns| *first_ns < before_ns)
    }

    /// The number of a connection's first packet.
    fn first(&self, connection: &Connection) -> Option<u32> {
        let (_, psn) = self.came.get(connection)?.first()?;
        Some(*psn)
    }
}

struct Times {
    noticed_ns: Option<u64>,
    told_ns: Option<u64>,
    again_ns: Option<u64>,
}

/// Of each data packet of an RDMA connection that a fault took: it went nowhere, or nobody takes what became of it. Sequence
/// errors are told without the queue pair that misses something, so of two connections between the same hosts that lose packets
/// of the same number at the same time, the first to be told is taken for both.
pub fn recoveries(
    scenario: &Scenario,
    plan: &Plan,
    evidence: &Evidence,
    hits: &[Hit],
) -> Vec<Recovery> {
    let library = &scenario.protocols;
    let mut passed: HashMap<String, Passed> = HashMap::new();
    let mut came: HashMap<(&str, u32), Vec<&Frame>> = HashMap::new();
    for port in &evidence.recordings {
        let frames = port.recording.going(Direction::In).collect();
        came.insert((&port.switch, port.port), frames);
    }
    let of_hit = |hit: &Hit| {
        let injection = plan.injections.get(hit.injection)?;
        let fault = scenario
            .faults
            .iter()
            .find(|fault| fault.id == injection.fault)?;
        if !fault.effect.takes() || hit.outcome == Outcome::Missed {
            return None;
        }
        let frame = came
            .get(&(hit.switch.as_str(), hit.port))?
            .get(hit.frame.checked_sub(1)?)?;
        let lost = Packet::of(library, &frame.bytes)?;
        let data = lost.data()?;
        let passed = passed
            .entry(hit.switch.clone())
            .or_insert_with(|| Passed::of(library, &hit.switch, evidence));
        let times = passed.times(&lost, data, frame.at_ns);
        let relative_psn = match hit.place {
            Some(place) => place.relative,
            None => {
                let told = passed.begins.begun(&lost, frame.at_ns);
                let told = told.map(|begun| begun.first);
                let first = told.or_else(|| passed.first(&connection(&lost, data)))?;
                lost.psn.wrapping_sub(first) % MODULUS
            }
        };
        let between = |from: Option<u64>, to: Option<u64>| to?.checked_sub(from?);
        Some(Recovery {
            fault: fault.id.clone(),
            switch: hit.switch.clone(),
            source: lost.source.into(),
            destination: lost.destination.into(),
            qp: lost.qp,
            psn: lost.psn,
            relative_psn,
            passed_before: passed.has_left(&lost, data, frame.at_ns),
            told_by: match (times.told_ns, data.responds) {
                (None, _) => Teller::Nobody,
                (Some(_), false) => Teller::Nak,
                (Some(_), true) => Teller::Read,
            },
            lost_ns: frame.at_ns,
            nak_generation_ns: between(times.noticed_ns, times.told_ns),
            nak_response_ns: between(times.told_ns, times.again_ns),
            retransmission_ns: between(Some(frame.at_ns), times.again_ns),
        })
    };
    hits.iter().filter_map(of_hit).collect()
}
