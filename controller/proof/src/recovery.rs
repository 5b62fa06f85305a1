//! Measures how RDMA connections recover from data packets that faults took, with Lumina's metrics (SIGCOMM 2023). All times come
//! from the switch's captures.
//!
//! ```text
//!  sender        switch        receiver
//!    │── k ────────▶ ✗              │    lost
//!    │── k + 1 ────▶│──────────────▶│    noticed  ┐ NAK generation
//!    │◀─────────────│◀───── NAK k ──│    told     ┘ ┐ NAK response
//!    │── k ────────▶│──────────────▶│    again      ┘
//! ```
//!
//! In a READ, the responses carry the data: the requester reports a gap by another request that begins at the missing response.
//! If the last packets are lost, nothing reports the gap, and only the sender's timeout recovers them.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use parser_gen::Library;
use parser_gen::psn::{DataPacket, MODULUS, Packet};
use scenario::model::Scenario;
use scenario::plan::announcement::Announcements;
use scenario::plan::{Plan, PortLatency, port_latencies};
use serde::Serialize;

use super::frame::{Sight, Way};
use super::{Hit, Outcome};

/// Maximum time, in nanoseconds, to wait for the retransmission of a lost packet: longer than any queue pair timeout in use.
const PATIENCE_NS: u64 = 60_000_000_000;

/// How an RDMA connection recovered from the loss of a data packet that a fault took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// Id of the fault that took the packet.
    pub fault: String,
    /// Name of the switch that lost the packet.
    pub switch: String,
    /// Source address of the lost packet.
    pub source: Ipv4Addr,
    /// Destination address of the lost packet.
    pub destination: Ipv4Addr,
    /// Destination queue pair of the lost packet.
    pub qp: u32,
    /// Packet sequence number (24 bits) of the lost packet.
    pub psn: u32,
    /// Packet sequence number of the lost packet, relative to the connection's first packet.
    pub relative_psn: u32,
    /// Whether an earlier packet with this sequence number had left. The receiver may then have it, and not miss this packet.
    pub passed_before: bool,
    /// Kind of packet by which the receiver reported the loss to the sender.
    pub told_by: Teller,
    /// Time at which the lost packet arrived at the switch, in nanoseconds since 1970.
    pub lost_ns: u64,
    /// Time from the departure of the first later packet to the report of the loss, in nanoseconds;
    /// `None` if either is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nak_generation_ns: Option<u64>,
    /// Time from the report of the loss to the retransmission, in nanoseconds. `None`: no report or no retransmission.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nak_response_ns: Option<u64>,
    /// Time from the lost packet's arrival to its retransmission, in nanoseconds. `None`: it was not retransmitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmission_ns: Option<u64>,
}

/// Kind of packet by which a receiver reports a loss to the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Teller {
    /// A NAK "PSN sequence error" with the lost packet's sequence number.
    Nak,
    /// A READ that requests the lost response and all responses after it.
    Read,
    /// No packet: the retransmission followed a timeout, or the report of an earlier loss.
    Nobody,
}

/// An RDMA connection in one direction: source, destination, destination queue pair, and whether READ responses flow in it.
type Connection = ([u8; 4], [u8; 4], u32, bool);

fn connection(packet: &Packet, data: DataPacket) -> Connection {
    (packet.source, packet.destination, packet.qp, data.responds)
}

/// For each connection, the time and sequence number of its packets, in order of time.
type Numbers = HashMap<Connection, Vec<(u64, u32)>>;

/// A reported gap: source and destination address of the data, the missing sequence number, and whether a READ reports it.
type Gap = ([u8; 4], [u8; 4], u32, bool);

/// A data packet that a fault took, and the fault.
struct Lost {
    fault: String,
    packet: Packet,
    place: Option<u32>,
    at_ns: u64,
}

/// The RDMA packets that passed a switch, and those that faults took there.
pub struct Connections<'a> {
    switch: &'a str,
    library: &'a Library,
    latencies: Vec<PortLatency>,
    /// Data packets that arrived at the switch.
    came: Numbers,
    /// Data packets that left the switch.
    left: Numbers,
    /// Time, in nanoseconds since 1970, at which each sequence number of a connection first left the switch.
    first_left: HashMap<(Connection, u32), u64>,
    /// Sequence number of the first packet of each connection that was captured.
    firsts: HashMap<Connection, u32>,
    /// For each reported gap: times at which reports arrived at the switch, and at which they left towards the data's sender.
    told: HashMap<Gap, [Vec<u64>; 2]>,
    /// First sequence numbers of connections, as announced to the switch.
    pub begins: Announcements,
    lost: Vec<Lost>,
    recoveries: Vec<Recovery>,
    forgot_ns: u64,
}

impl<'a> Connections<'a> {
    /// An empty record of the RDMA connections through `switch`.
    pub fn new(scenario: &'a Scenario, switch: &'a str) -> Connections<'a> {
        Connections {
            switch,
            library: &scenario.protocols,
            latencies: port_latencies(&scenario.topology, switch),
            came: Numbers::new(),
            left: Numbers::new(),
            first_left: HashMap::new(),
            firsts: HashMap::new(),
            told: HashMap::new(),
            begins: Announcements::default(),
            lost: Vec::new(),
            recoveries: Vec::new(),
            forgot_ns: 0,
        }
    }

    /// Takes a frame that passed a port of the switch. The frames of all ports come nearly in order of time.
    pub fn see(&mut self, sight: &Sight<'_>) {
        let packet = may_be_roce(sight.bytes).then(|| Packet::parse(self.library, sight.bytes));
        let Some(packet) = packet.flatten() else {
            return;
        };
        let (at_ns, out) = (sight.at_ns, sight.way == Way::Out);
        if let Some(data) = packet.data() {
            let connection = connection(&packet, data);
            if out {
                let number = (connection, packet.psn);
                self.first_left.entry(number).or_insert(at_ns);
            } else {
                self.firsts.entry(connection).or_insert(packet.psn);
            }
            let of = if out { &mut self.left } else { &mut self.came };
            insert(of.entry(connection).or_default(), (at_ns, packet.psn));
        } else if packet.is_sequence_nak() || packet.is_read_request() {
            // The data went in the other direction.
            let to = (packet.destination, packet.source);
            let gap = (to.0, to.1, packet.psn, packet.is_read_request());
            insert(
                &mut self.told.entry(gap).or_default()[usize::from(out)],
                at_ns,
            );
        }
    }

    /// Takes a hit of a fault, and notes the packet if the fault took it.
    pub fn hit(&mut self, scenario: &Scenario, plan: &Plan, hit: &Hit) {
        let Some(packet) = hit.packet.filter(|_| hit.outcome != Outcome::Missed) else {
            return;
        };
        let injection = &plan.injections[hit.injection];
        let mut faults = scenario.faults.iter();
        let takes = faults.any(|fault| fault.id == injection.fault && fault.effect.takes());
        if takes && packet.data().is_some() {
            let latency = self
                .latencies
                .iter()
                .find(|latency| latency.port == hit.port);
            self.lost.push(Lost {
                fault: injection.fault.clone(),
                packet,
                place: hit.place.map(|place| place.relative),
                at_ns: hit.at_ns - latency.map_or(0, |latency| latency.in_ns),
            });
        }
    }

    /// Reports recoveries from old enough losses, and forgets older packets, once all frames until `now_ns` are in.
    pub fn advance(&mut self, now_ns: u64) {
        let until_ns = now_ns.saturating_sub(PATIENCE_NS);
        if now_ns != u64::MAX && until_ns < self.forgot_ns.saturating_add(PATIENCE_NS / 4) {
            return;
        }
        self.forgot_ns = until_ns;
        let (old, young) = std::mem::take(&mut self.lost)
            .into_iter()
            .partition(|lost| lost.at_ns <= until_ns);
        self.lost = young;
        let old: Vec<Lost> = old;
        let recoveries = old.iter().filter_map(|lost| self.recovery(lost));
        let recoveries: Vec<Recovery> = recoveries.collect();
        self.recoveries.extend(recoveries);
        for numbers in [&mut self.came, &mut self.left] {
            numbers.retain(|_, numbers| {
                numbers.drain(..numbers.partition_point(|(at_ns, _)| *at_ns < until_ns));
                !numbers.is_empty()
            });
        }
        self.first_left.retain(|_, at_ns| *at_ns >= until_ns);
        self.told.retain(|_, [came, left]| {
            came.retain(|at_ns| *at_ns >= until_ns);
            left.retain(|at_ns| *at_ns >= until_ns);
            !came.is_empty() || !left.is_empty()
        });
    }

    /// Recoveries from all lost packets, at the end of the run, in order of the losses.
    pub fn conclude(mut self) -> Vec<Recovery> {
        let lost = std::mem::take(&mut self.lost);
        let rest = lost.iter().filter_map(|lost| self.recovery(lost));
        let rest: Vec<Recovery> = rest.collect();
        self.recoveries.extend(rest);
        self.recoveries.sort_by_key(|of| of.lost_ns);
        self.recoveries
    }

    fn recovery(&self, lost: &Lost) -> Option<Recovery> {
        let Lost { packet, at_ns, .. } = lost;
        let data = packet.data()?;
        let times = self.times(packet, data, *at_ns);
        let relative_psn = match lost.place {
            Some(place) => place,
            None => {
                let told = self.begins.begun(packet, *at_ns);
                let told = told.map(|begun| begun.first);
                let seen = || self.firsts.get(&connection(packet, data)).copied();
                packet.psn.wrapping_sub(told.or_else(seen)?) % MODULUS
            }
        };
        let between = |from: Option<u64>, to: Option<u64>| to?.checked_sub(from?);
        Some(Recovery {
            fault: lost.fault.clone(),
            switch: self.switch.to_owned(),
            source: packet.source.into(),
            destination: packet.destination.into(),
            qp: packet.qp,
            psn: packet.psn,
            relative_psn,
            passed_before: self.has_left(packet, data, *at_ns),
            told_by: match (times.told_ns, data.responds) {
                (None, _) => Teller::Nobody,
                (Some(_), false) => Teller::Nak,
                (Some(_), true) => Teller::Read,
            },
            lost_ns: *at_ns,
            nak_generation_ns: between(times.noticed_ns, times.told_ns),
            nak_response_ns: between(times.told_ns, times.again_ns),
            retransmission_ns: between(Some(*at_ns), times.again_ns),
        })
    }

    /// Times at which the loss of a packet that arrived at `lost_ns` was noticed, reported and repaired.
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
                // A report that a fault takes does not reach the sender.
                let left_ns = left.iter().find(|at_ns| **at_ns > lost_ns)?;
                let mut before = came
                    .iter()
                    .filter(|at_ns| *at_ns <= left_ns && **at_ns > lost_ns);
                before.next_back().copied()
            })
            .filter(|told_ns| again_ns.is_none_or(|again_ns| *told_ns < again_ns))
            // A receiver that has got no later packet does not notice the gap: this READ follows a timeout.
            .filter(|told_ns| noticed_ns.is_some_and(|noticed_ns| noticed_ns <= *told_ns));
        Times {
            noticed_ns,
            told_ns,
            again_ns,
        }
    }

    /// Whether a packet with this connection and sequence number had left the switch before `before_ns`.
    fn has_left(&self, packet: &Packet, data: DataPacket, before_ns: u64) -> bool {
        let first_ns = self.first_left.get(&(connection(packet, data), packet.psn));
        first_ns.is_some_and(|first_ns| *first_ns < before_ns)
    }
}

/// Whether a frame may be RoCEv2: it is UDP to the RoCEv2 port, or not plain IPv4, so that this is unknown.
pub fn may_be_roce(frame: &[u8]) -> bool {
    const PORT: [u8; 2] = 4791_u16.to_be_bytes();
    if frame.get(12..14) != Some(&[8, 0]) {
        return true;
    }
    let ip = usize::from(frame.get(14).map_or(0, |first| first & 15)) * 4;
    frame.get(23) == Some(&17) && frame.get(14 + ip + 2..14 + ip + 4) == Some(&PORT)
}

/// Inserts an element into an ascending list, searching from the end.
fn insert<T: Ord>(into: &mut Vec<T>, new: T) {
    let behind = into.iter().rposition(|other| *other <= new);
    into.insert(behind.map_or(0, |last| last + 1), new);
}

struct Times {
    noticed_ns: Option<u64>,
    told_ns: Option<u64>,
    again_ns: Option<u64>,
}
