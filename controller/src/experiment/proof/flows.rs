//! What became of each flow between its first switch and its last, from the captures alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parser_gen::{Filter, Library};
use scenario::model::{Flow, Path, Scenario};
use scenario::routing::hash;
use testbeds::bed::PortRecording;
use testbeds::capture::{self, Direction, Frame, Seen};

use super::Evidence;
use super::throughput::{Bins, Throughput};

/// Of so many declared flows it is kept what they carried over time.
pub const MOST_FLOWS: usize = 16;

/// What became of a flow between its first and its last switch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowCount {
    /// Frames that the sender put on its link.
    pub sent: u64,
    /// Of those, frames that came out towards the receiver.
    pub received: u64,
    /// Sent and not received.
    pub lost: u64,
    /// Received more often than sent.
    pub extra: u64,
    /// The longest time between the two.
    pub longest_ns: u64,
}

impl FlowCount {
    fn add(&mut self, other: &FlowCount) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.extra += other.extra;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// Frames that faults changed on their way: what came to a switch (bytes and length), and what left it. `None` where some of
/// the same bytes were changed and others were not.
pub type Changed = HashMap<FrameKey, Option<FrameKey>>;

/// A frame's bytes as far as they were recorded, and its length on the wire.
pub type FrameKey = (Box<[u8]>, u32);

/// No path has as many switches.
const MAX_CHANGES: usize = 512;

/// As what a frame comes to its receiver.
fn arrives_as(frame: &Frame, changed: &Changed) -> FrameKey {
    let mut key = (frame.bytes.clone(), frame.wire_len);
    for _ in 0..MAX_CHANGES {
        match changed.get(&key) {
            Some(Some(next)) if *next != key => key.clone_from(next),
            _ => break,
        }
    }
    key
}

/// Declared flows of which it is kept what they carry over time: those first that faults act on.
fn followed(scenario: &Scenario) -> Vec<&str> {
    let hit = scenario.faults.iter().flat_map(|fault| &fault.flows);
    let hit = hit.filter_map(|index| scenario.flows.get(*index));
    let mut followed: Vec<&str> = Vec::new();
    for flow in hit.chain(&scenario.flows) {
        if followed.len() == MOST_FLOWS {
            break;
        }
        if !followed.contains(&flow.declared.as_str()) {
            followed.push(&flow.declared);
        }
    }
    followed
}

/// The flows whose first and last switch were recorded and that no aggregating switch takes in, by name; and by declared
/// name where a declaration stands for several. With what some of them carried over time.
pub fn count(
    scenario: &Scenario,
    evidence: &Evidence,
    changed: &Changed,
) -> (BTreeMap<String, FlowCount>, Vec<(String, Throughput)>) {
    let recordings = &evidence.recordings;
    let bins = Bins::of(evidence);
    let mut counts: BTreeMap<String, FlowCount> = BTreeMap::new();
    let mut carried: Vec<(&str, Option<Throughput>)> = followed(scenario)
        .into_iter()
        .map(|declared| (declared, None))
        .collect();
    for flow in &scenario.flows {
        let mut own = carried
            .iter_mut()
            .find(|(declared, _)| *declared == flow.declared);
        // Several ways lead from one host to another, past the same two ports.
        let mut ends = BTreeSet::new();
        let summed = |path: &Path| path.switches.iter().any(|switch| scenario.sums(switch));
        let paths = flow.paths.iter();
        let paths = paths.filter(|path| summed(path) || ends.insert((&path.from, &path.to)));
        let on_path = paths.map(|path| {
            if summed(path) {
                return None;
            }
            let (first, last) = path.switches.first().zip(path.switches.last())?;
            let port = |switch: &str, neighbour: &str| {
                let number = scenario.topology.next_hop(switch, neighbour)?.number;
                recordings
                    .iter()
                    .find(|recording| recording.switch == switch && recording.port == number)
            };
            let (entry, exit) = (port(first, &path.from)?, port(last, &path.to)?);
            // All that comes in by one end of a wire is for the other.
            let receiver = match scenario.topology.wire {
                true => Vec::new(),
                false => scenario.topology.host(&path.to)?.mac.0.to_vec(),
            };
            let ends = (entry, exit);
            let throughput = own
                .as_mut()
                .map(|(_, of)| of.get_or_insert_with(|| bins.empty()));
            let over_time = throughput.map(|throughput| (&bins, throughput));
            // What takes another way is no part of a flow that one switch knows.
            let crosses = |frame: &Frame| match (&scenario.ways, &flow.on) {
                (Some(ways), Some(on)) => {
                    let way = ways.taken(&path.from, &path.to, hash::of_frame(&frame.bytes));
                    way.is_some_and(|way| way.switches.contains(on))
                }
                _ => true,
            };
            Some(between(
                &scenario.protocols,
                ends,
                &receiver,
                (&flow.filter, &crosses),
                changed,
                over_time,
            ))
        });
        let on_path: Option<Vec<FlowCount>> = on_path.collect();
        let Some(on_path) = on_path.filter(|counts| !counts.is_empty()) else {
            // Half of it says nothing.
            carried.retain(|(declared, _)| *declared != flow.declared);
            continue;
        };
        let throughput = own.and_then(|(_, of)| of.as_mut());
        let over_time = throughput.map(|throughput| (&bins, throughput));
        let mut total = unaddressed(scenario, flow, recordings, changed, over_time);
        on_path.iter().for_each(|count| total.add(count));
        counts.insert(flow.name.clone(), total);
        if flow.declared != flow.name {
            counts.entry(flow.declared.clone()).or_default().add(&total);
        }
    }
    let carried = carried.into_iter();
    let carried = carried.filter_map(|(declared, of)| Some((declared.to_owned(), of?)));
    (counts, carried.collect())
}

/// What of a flow came in by one port, and what of that went out by another.
fn between(
    library: &Library,
    (entry, exit): (&PortRecording, &PortRecording),
    receiver: &[u8],
    (filter, crosses): (&Filter, &dyn Fn(&Frame) -> bool),
    changed: &Changed,
    over_time: Option<(&Bins, &mut Throughput)>,
) -> FlowCount {
    let is_for_receiver = |frame: &&Frame| frame.bytes.starts_with(receiver);
    let seen = |frame: &Frame| Seen {
        key: (frame.bytes.clone(), frame.wire_len),
        at_ns: frame.at_ns,
    };
    let came = entry.recording.going(Direction::In);
    let before: Vec<_> = came
        .filter(is_for_receiver)
        .filter(|frame| crosses(frame))
        .filter(|frame| filter.matches(&library.dissect(&frame.bytes, entry.port)))
        .map(|frame| Seen {
            key: arrives_as(frame, changed),
            at_ns: frame.at_ns,
        })
        .collect();
    let wanted: BTreeSet<_> = before.iter().map(|seen| &seen.key).collect();
    let after: Vec<_> = exit
        .recording
        .going(Direction::Out)
        .filter(is_for_receiver)
        .map(seen)
        .filter(|seen| wanted.contains(&seen.key))
        .collect();
    compare(&before, &after, over_time)
}

/// Frames of a flow whose destination is none of its receivers: a broadcast, a multicast, an unknown address, another host. A
/// frame that came out towards any host counts as received, however many of them got it.
fn unaddressed(
    scenario: &Scenario,
    flow: &Flow,
    recordings: &[PortRecording],
    changed: &Changed,
    mut over_time: Option<(&Bins, &mut Throughput)>,
) -> FlowCount {
    let topology = &scenario.topology;
    let mut total = FlowCount::default();
    // Both ends of a wire take everything. Which way such a frame takes through several is not known.
    if topology.wire || flow.on.is_some() {
        return total;
    }
    let senders: BTreeSet<&str> = flow.paths.iter().map(|path| path.from.as_str()).collect();
    for sender in senders {
        let paths = flow.paths.iter().filter(|path| path.from == sender);
        let receivers = paths.filter_map(|path| topology.host(&path.to));
        let receivers: Vec<&[u8]> = receivers.map(|host| &host.mac.0[..]).collect();
        let leads_to = |recording: &PortRecording, is_end: &dyn Fn(&str) -> bool| {
            let mut ports = topology.ports(&recording.switch);
            ports.any(|port| port.number == recording.port && is_end(port.peer))
        };
        let is_entry = |recording: &&PortRecording| leads_to(recording, &|peer| peer == sender);
        let Some(entry) = recordings.iter().find(is_entry) else {
            continue;
        };
        let is_addressed = |frame: &Frame| receivers.iter().any(|mac| frame.bytes.starts_with(mac));
        let came = entry.recording.going(Direction::In);
        let came = came.filter(|frame| !is_addressed(frame));
        let library = &scenario.protocols;
        let before: Vec<_> = came
            .filter(|frame| {
                flow.filter
                    .matches(&library.dissect(&frame.bytes, entry.port))
            })
            .map(|frame| Seen {
                key: arrives_as(frame, changed),
                at_ns: frame.at_ns,
            })
            .collect();
        if before.is_empty() {
            continue;
        }
        let mut left: BTreeMap<_, Vec<u64>> =
            before.iter().map(|seen| (&seen.key, Vec::new())).collect();
        let is_exit = |recording: &&PortRecording| {
            leads_to(recording, &|peer| {
                peer != sender && topology.host(peer).is_some()
            })
        };
        for exit in recordings.iter().filter(is_exit) {
            let mut here: BTreeMap<FrameKey, Vec<u64>> = BTreeMap::new();
            for frame in exit.recording.going(Direction::Out) {
                let key = (frame.bytes.clone(), frame.wire_len);
                if left.contains_key(&key) {
                    here.entry(key).or_default().push(frame.at_ns);
                }
            }
            for (key, times) in here {
                if let Some(most) = left.get_mut(&key).filter(|most| most.len() < times.len()) {
                    *most = times;
                }
            }
        }
        let after: Vec<_> = left
            .into_iter()
            .flat_map(|(key, times)| {
                let key = key.clone();
                times.into_iter().map(move |at_ns| Seen {
                    key: key.clone(),
                    at_ns,
                })
            })
            .collect();
        let over_time = over_time.as_mut().map(|(bins, of)| (*bins, &mut **of));
        total.add(&compare(&before, &after, over_time));
    }
    total
}

/// Compares a flow's frames at its entry with those at its exit, and adds both to the flow's throughput.
fn compare(
    before: &[Seen<FrameKey>],
    after: &[Seen<FrameKey>],
    over_time: Option<(&Bins, &mut Throughput)>,
) -> FlowCount {
    if let Some((bins, throughput)) = over_time {
        for (seen, bin) in [
            (before, &mut throughput.sent),
            (after, &mut throughput.received),
        ] {
            for Seen { key, at_ns } in seen {
                bins.add(bin, *at_ns, key.1);
            }
        }
    }
    let difference = capture::match_frames(before, after, u64::MAX);
    FlowCount {
        sent: before.len() as u64,
        received: difference.matched,
        lost: difference.missing.len() as u64,
        extra: difference.extra.len() as u64,
        longest_ns: difference.longest_in_time_ns,
    }
}
