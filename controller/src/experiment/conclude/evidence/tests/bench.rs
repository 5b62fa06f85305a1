//! A switch that treats frames as the model does, or errs as a test demands, with captures on all of its ports.

use std::collections::{BTreeMap, BTreeSet};

use proof::{EpochWrite, Hit, Loser, Loss, TriggerCount};
use scenario::model::Direction as InOut;
use scenario::model::effect::Fate;
use scenario::replay::{Classified, Engine, Recorded, Verdict};
use testbeds::capture::{Direction, Frame};

use super::super::Evidence;
use super::{Recordings, conclude, prove};
use crate::experiment::Planned;
use crate::experiment::conclude::{Conclusion, FaultResult};
use crate::target::Kind;

pub const MS: u64 = 1_000_000;
pub const US: u64 = 1_000;

/// Hosts a, b and c around a switch, with s.
pub fn planned(rest: &str) -> Planned {
    let text = format!(
        "weir: 1
name: lab
seed: 42
topology: {{star: {{hosts: [a, b, c, s], switch: sw}}}}
flows:
  first: {{from: a, to: s, filter: udp.dport == 1001}}
  second: {{from: b, to: s, filter: udp.dport == 1001}}
  every: {{to: s, filter: udp}}
  asked: {{from: a, to: s, filter: udp}}
  answers: {{from: s, to: a, filter: udp}}
  six: {{filter: 'eth.src == 02:57:45:00:00:01 && eth.type == 0x86dd'}}
{rest}"
    );
    let scenario =
        scenario::load("lab.yaml", &text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    Planned::new(scenario, Kind::Embedded).unwrap_or_else(|error| panic!("{error}"))
}

/// A datagram to s, or from s to a.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at_ns: u64,
    pub from: &'static str,
    /// The port of s.
    pub dport: u16,
    /// Frames with the same marker are the same frame.
    pub marker: u32,
}

impl Sent {
    fn to(&self) -> &'static str {
        if self.from == "s" { "a" } else { "s" }
    }
}

/// Datagrams of `first`, this far apart, all different.
pub fn evenly(count: u32, gap_ns: u64) -> Vec<Sent> {
    let numbers = 1..=count;
    numbers
        .map(|marker| Sent {
            at_ns: MS + u64::from(marker) * gap_ns,
            from: "a",
            dport: 1001,
            marker,
        })
        .collect()
}

/// An error of the switch on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// The fault with this number does not do what it has to, and does not count it.
    Spares(usize),
    /// The fault with this number hits the frame, and counts it.
    Hits(usize),
    /// The fault with this number does not do what it has to, and counts it.
    SparesCounted(usize),
    /// The fault with this number hits the frame, and does not count it.
    HitsUncounted(usize),
    /// The frame is lost.
    Loses,
    /// The frame leaves by b's port instead.
    LeavesElsewhere,
    /// The frame leaves by b's port as well.
    Leaks,
    /// The frame leaves with one byte changed.
    Changes,
    /// The frame leaves a second time, 300 ms later.
    RepeatsLate,
}

/// A run.
pub struct Bench {
    pub planned: Planned,
    pub sent: Vec<Sent>,
    pub writes: Vec<EpochWrite>,
    /// The frame with which each write's epoch begins, by its number; by default the first after the confirmation.
    pub begins: BTreeMap<usize, usize>,
    /// Stretches of time in which the machine does nothing.
    pub stalls: Vec<(u64, u64)>,
    pub errors: BTreeMap<usize, Error>,
    /// Number of frames that the recorder missed, by port.
    pub unrecorded: BTreeMap<u32, u64>,
    pub losses: Vec<Loss>,
    /// Whether the first fault holds all frames that it examines, but counts correctly.
    pub holds_all: bool,
    /// Error of each injection's counter.
    pub miscounts: BTreeMap<usize, i64>,
    /// Error of each trigger's counter.
    pub miscounted_turns: BTreeMap<usize, i64>,
    /// Frames that the switch processes after the next one.
    pub swapped: BTreeSet<usize>,
    /// Frames whose arrival no capture has seen.
    pub unseen: BTreeSet<usize>,
    /// Whether `swapped` frames leave as if they were not swapped: no real switch can do that.
    pub left_in_time: bool,
    /// Factor by which delays are too long.
    pub delays_times: u64,
    /// Markers of frames to a multicast address, which no entry forwards.
    pub nowhere: BTreeSet<u32>,
    /// Delay, by frame, between its arrival and the switch's reading of its clock.
    pub lags: BTreeMap<usize, u64>,
    /// Whether the datagrams are IPv6.
    pub is_ipv6: bool,
}

impl Bench {
    /// Creates a run in which epoch 1 is in force before the first frame.
    pub fn new(rest: &str, sent: Vec<Sent>) -> Bench {
        let mut bench = Bench {
            planned: planned(rest),
            sent,
            writes: Vec::new(),
            begins: BTreeMap::new(),
            stalls: Vec::new(),
            errors: BTreeMap::new(),
            unrecorded: BTreeMap::new(),
            losses: Vec::new(),
            holds_all: false,
            miscounts: BTreeMap::new(),
            miscounted_turns: BTreeMap::new(),
            swapped: BTreeSet::new(),
            unseen: BTreeSet::new(),
            left_in_time: false,
            delays_times: 1,
            nowhere: BTreeSet::new(),
            lags: BTreeMap::new(),
            is_ipv6: false,
        };
        bench.write(1, 0, 0);
        bench
    }

    pub fn write(&mut self, epoch: u16, sent_ns: u64, confirmed_ns: u64) -> usize {
        self.writes.push(EpochWrite {
            switch: "sw".to_owned(),
            epoch,
            sent_ns,
            confirmed_ns,
        });
        self.writes.len() - 1
    }

    fn frame(&self, sent: &Sent) -> Box<[u8]> {
        let host = |name: &str| self.planned.scenario.topology.host(name).unwrap();
        let (from, to) = (host(sent.from), host(sent.to()));
        let ports = match sent.from {
            "s" => [sent.dport, 0x3039],
            _ => [0x3039, sent.dport],
        };
        let destination = match self.nowhere.contains(&sent.marker) {
            true => [0x01, 0, 0x5e, 1, 2, 3],
            false => to.mac.0,
        };
        let mut frame = [destination, from.mac.0].concat();
        if self.is_ipv6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 12, 17, 64]);
            for host in [from, to] {
                frame.extend([0xfd; 10]);
                frame.extend(host.mac.0);
            }
        } else {
            frame.extend([0x08, 0x00, 0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0]);
            frame.extend(from.ip.octets());
            frame.extend(to.ip.octets());
        }
        frame.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        frame.extend([0, 12, 0, 0]);
        frame.extend(sent.marker.to_be_bytes());
        // Bytes that a fault may cut off.
        frame.extend([0, 0]);
        frame.into()
    }

    fn port(&self, host: &str) -> u32 {
        let topology = &self.planned.scenario.topology;
        topology.next_hop("sw", host).unwrap().number
    }

    /// When an event that is due at a time happens on a machine that stalls.
    fn awake(&self, due_ns: u64) -> u64 {
        let stalled = |(from, to): &&(u64, u64)| (*from..*to).contains(&due_ns);
        self.stalls
            .iter()
            .find(stalled)
            .map_or(due_ns, |(_, to)| *to)
    }

    fn epoch(&self, number: usize) -> u16 {
        let at_ns = self.sent[number].at_ns;
        let mut begun =
            self.writes
                .iter()
                .enumerate()
                .filter(|(index, write)| match self.begins.get(index) {
                    Some(first) => number >= *first,
                    None => at_ns > write.confirmed_ns,
                });
        begun.next_back().map_or(0, |(_, write)| write.epoch)
    }

    /// Executes the run; returns the captures and the switch's counts.
    fn run(&self) -> (Box<Recordings>, Vec<u64>, Vec<TriggerCount>) {
        let Planned { scenario, plan } = &self.planned;
        let engine = Engine::new(scenario, plan, "sw").unwrap();
        let mut state = engine.start();
        let mut fired: Vec<u64> = vec![0; plan.injections.len()];
        let mut triggers = vec![TriggerCount::default(); scenario.triggers.len()];
        let hosts = scenario.topology.hosts.iter();
        let ports = hosts.map(|host| (self.port(&host.name), Vec::new()));
        let mut frames: BTreeMap<u32, Vec<Frame>> = ports.collect();
        let mut record = |port: u32, at_ns: u64, direction, bytes: &[u8]| {
            frames.entry(port).or_default().push(Frame {
                at_ns,
                direction,
                wire_len: bytes.len() as u32,
                bytes: bytes.into(),
            });
        };
        let of = |fault: usize| {
            let id = &scenario.faults[fault].id;
            let mut points = plan.injections.iter();
            points.position(|point| point.fault == *id).unwrap()
        };
        let effect = |hit: &usize| {
            let id = &plan.injections[*hit].fault;
            let mut faults = scenario.faults.iter();
            &faults.find(|fault| fault.id == *id).unwrap().effect
        };
        let lag_ns = |number: &usize| self.lags.get(number).copied().unwrap_or(0);
        let classified = self
            .sent
            .iter()
            .enumerate()
            .map(|(number, sent)| Classified {
                at_ns: sent.at_ns + lag_ns(&number),
                ..engine.classify(&self.frame(sent), self.port(sent.from))
            });
        let mut classified: Vec<Classified> = classified.collect();
        engine.tell_passed(&mut classified);
        let mut order: Vec<usize> = (0..self.sent.len()).collect();
        self.swapped
            .iter()
            .for_each(|number| order.swap(*number, number + 1));
        for number in order {
            let sent = &self.sent[number];
            let exit = self.port(sent.to());
            let (bytes, port) = (self.frame(sent), self.port(sent.from));
            if !self.unseen.contains(&number) {
                record(port, sent.at_ns, Direction::In, &bytes);
            }
            let passage = engine.pass(&mut state, &classified[number], self.epoch(number));
            let planned = plan.switch("sw").unwrap().triggers.iter();
            for named in planned.filter(|named| named.counter.is_some()) {
                let count = &mut triggers[named.index];
                let times = |of: &[usize]| of.iter().filter(|i| **i == named.index).count() as u64;
                count.on += times(&passage.triggered.came_on);
                count.keyless += times(&passage.triggered.keyless);
            }
            let error = self.errors.get(&number);
            // The faults that hit by a verdict, and those that are counted.
            let erring = |direction, verdict: &Verdict| {
                let (mut hits, mut counted) = (verdict.hits.clone(), verdict.hits.clone());
                let here = |fault: &usize| plan.injections[of(*fault)].direction == direction;
                match error {
                    Some(Error::Spares(fault)) => {
                        hits.retain(|hit| *hit != of(*fault));
                        counted.clone_from(&hits);
                    }
                    Some(Error::Hits(fault)) if here(fault) => {
                        hits.push(of(*fault));
                        counted.clone_from(&hits);
                    }
                    Some(Error::SparesCounted(fault)) => hits.retain(|hit| *hit != of(*fault)),
                    Some(Error::HitsUncounted(fault)) if here(fault) => hits.push(of(*fault)),
                    _ => {}
                }
                if self.holds_all && verdict.met.contains(&of(0)) {
                    hits.push(of(0));
                }
                hits.sort_unstable();
                hits.dedup();
                (hits, counted)
            };
            let (hits, counted) = erring(InOut::Ingress, &passage.ingress);
            let drawn = |hit: &usize| (effect(hit), passage.ingress.drawn_by(*hit));
            let mut fate = Fate::after(hits.iter().map(drawn));
            // The model determines the fate of a frame that waits.
            if hits == passage.ingress.hits {
                fate = passage.ingress.fate;
            }
            let changed = engine.rewritten(Recorded::whole(&bytes), hits.iter().map(drawn));
            let bytes = changed.map_or(bytes, |changed| changed.bytes.into());
            counted.iter().for_each(|hit| fired[*hit] += 1);
            // The frame is processed after the next one if it is swapped.
            let behind = usize::from(self.swapped.contains(&number) && !self.left_in_time);
            let taken_ns = self.sent[number + behind].at_ns;
            let processed_ns = self.awake(taken_ns) + 20 * US;
            let left_ns =
                |copy: usize| self.awake(processed_ns + fate.held_ns(copy) * self.delays_times);
            let mut copies = 0;
            let judged = passage.exits.iter().flat_map(|(_, copies)| copies);
            for copy in 0..fate.copies {
                let Some(verdict) = judged.clone().nth(copy as usize) else {
                    copies += 1;
                    continue;
                };
                let (hits, counted) = erring(InOut::Egress, verdict);
                let fate = Fate::after(hits.iter().map(|hit| (effect(hit), 0)));
                counted.iter().for_each(|hit| fired[*hit] += 1);
                copies += u32::from(!fate.is_dropped());
            }
            let (exits, bytes) = match error {
                _ if !passage.has_exit() => (vec![], bytes),
                Some(Error::Loses) => (vec![], bytes),
                Some(Error::LeavesElsewhere) => (vec![self.port("b")], bytes),
                Some(Error::Leaks) => (vec![exit, self.port("b")], bytes),
                Some(Error::Changes) => {
                    let mut changed = bytes.clone();
                    changed[20] ^= 1;
                    (vec![exit], changed)
                }
                _ => (vec![exit], bytes),
            };
            // A frame with such an error leaves even if a fault had to drop it, or the error would not be visible.
            let wrongly = matches!(
                error,
                Some(Error::LeavesElsewhere | Error::Leaks | Error::Changes)
            );
            for exit in exits {
                for copy in 0..copies.max(u32::from(wrongly)) {
                    record(exit, left_ns(copy as usize), Direction::Out, &bytes);
                }
                if error == Some(&Error::RepeatsLate) {
                    record(exit, left_ns(0) + 300 * MS, Direction::Out, &bytes);
                }
            }
        }
        for (injection, off) in &self.miscounts {
            fired[*injection] = fired[*injection].saturating_add_signed(*off);
        }
        for frames in frames.values_mut() {
            frames.sort_by_key(|frame| frame.at_ns);
        }
        for (trigger, off) in &self.miscounted_turns {
            triggers[*trigger].on = triggers[*trigger].on.saturating_add_signed(*off);
        }
        (frames.into_iter().collect(), fired, triggers)
    }

    pub fn conclude(&self) -> Conclusion {
        let (evidence, recordings) = self.evidence();
        conclude(&self.planned, &evidence, &recordings)
    }

    /// The hits, in the order of the log.
    pub fn hits(&self) -> Vec<Hit> {
        let (evidence, recordings) = self.evidence();
        prove(&self.planned, &evidence, &recordings).1
    }

    /// The evidence and the frames of each port.
    pub fn evidence(&self) -> (Evidence, Box<Recordings>) {
        let (recordings, fired, triggers) = self.run();
        let unrecorded = self.unrecorded.iter().map(|(port, frames)| Loss {
            since_ns: None,
            switch: "sw".to_owned(),
            port: Some(*port),
            frames: *frames,
            by: Loser::Recorder,
        });
        let evidence = Evidence {
            kept: Default::default(),
            writes: self.writes.clone(),
            keyless: vec![0; fired.len()],
            fired,
            triggers,
            losses: unrecorded.chain(self.losses.iter().cloned()).collect(),
            carried: Vec::new(),
            announcements: Vec::new(),
            shares_stamps: false,
        };
        (evidence, recordings)
    }

    /// Result of the only fault.
    pub fn fault(&self) -> FaultResult {
        let faults = self.conclude().faults;
        let [fault] = &faults[..] else {
            panic!("{faults:?}")
        };
        fault.clone()
    }
}
