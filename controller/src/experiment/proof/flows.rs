//! What became of each flow between its first switch and its last.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parser_gen::{Filter, Library};
use scenario::model::{Flow, Path, Scenario};
use scenario::routing::hash;
use testbeds::bed::PortRecording;
use testbeds::capture::{Direction, Frame, Seen};

use super::Evidence;
use super::became::{Changed, FlowCount, FrameKey, Sent};
use super::throughput::{Bins, Throughput};

/// Of so many declared flows it is kept what they carried over time.
pub const MOST_FLOWS: usize = 16;

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
    let came = entry.recording.going(Direction::In);
    let before: Vec<_> = came
        .filter(is_for_receiver)
        .filter(|frame| crosses(frame))
        .filter(|frame| filter.matches(&library.dissect(&frame.bytes, entry.port)))
        .map(seen)
        .collect();
    let sent = Sent::new(&before, changed);
    let left = exit.recording.going(Direction::Out);
    let left = times(left.filter(is_for_receiver), &sent);
    compare(&before, &sent, left, over_time)
}

fn seen(frame: &Frame) -> Seen<FrameKey> {
    Seen {
        key: (frame.bytes.clone(), frame.wire_len),
        at_ns: frame.at_ns,
    }
}

/// The times of those frames that a flow's may have become.
fn times<'f>(
    frames: impl Iterator<Item = &'f Frame>,
    sent: &Sent<'_>,
) -> HashMap<FrameKey, Vec<u64>> {
    let mut times: HashMap<FrameKey, Vec<u64>> = HashMap::new();
    for Seen { key, at_ns } in frames.map(seen) {
        if sent.may_become(&key) {
            times.entry(key).or_default().push(at_ns);
        }
    }
    times
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
            .map(seen)
            .collect();
        if before.is_empty() {
            continue;
        }
        let sent = Sent::new(&before, changed);
        let mut left: HashMap<FrameKey, Vec<u64>> = HashMap::new();
        let is_exit = |recording: &&PortRecording| {
            leads_to(recording, &|peer| {
                peer != sender && topology.host(peer).is_some()
            })
        };
        for exit in recordings.iter().filter(is_exit) {
            for (key, here) in times(exit.recording.going(Direction::Out), &sent) {
                let most = left.entry(key).or_default();
                if most.len() < here.len() {
                    *most = here;
                }
            }
        }
        let over_time = over_time.as_mut().map(|(bins, of)| (*bins, &mut **of));
        total.add(&compare(&before, &sent, left, over_time));
    }
    total
}

/// Counts a flow's frames, and adds them to its throughput.
fn compare(
    before: &[Seen<FrameKey>],
    sent: &Sent<'_>,
    left: HashMap<FrameKey, Vec<u64>>,
    over_time: Option<(&Bins, &mut Throughput)>,
) -> FlowCount {
    if let Some((bins, throughput)) = over_time {
        for Seen { key, at_ns } in before {
            bins.add(&mut throughput.sent, *at_ns, key.1);
        }
        for (key, times) in &left {
            let times = times.iter();
            times.for_each(|at_ns| bins.add(&mut throughput.received, *at_ns, key.1));
        }
    }
    sent.count(left)
}
