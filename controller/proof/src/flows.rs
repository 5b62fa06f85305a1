//! Follows each flow between the first and the last switch of its path, to count sent, received and lost frames.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use foldhash::fast::FixedState;
use parser_gen::{FieldId, Headers};
use scenario::model::routing::hash;
use scenario::model::{Flow, Path, Scenario};
use smallvec::{SmallVec, smallvec};

use super::STAMP_NS;
use super::became::{self, Changed, Expected};
use super::docket::Change;
use super::epochs::BACKLOG_NS;
use super::facts::EpochWrite;
use super::flow_count::FlowCount;
use super::frame::{Identity, Plainly, Sight, Way};
use super::throughput::{Bins, Throughput};

/// Maximum number of declared flows whose throughput over time is kept.
pub const MOST_FLOWS: usize = 16;
/// Maximum number of entries in the cache of frames' flows; an entry is for certain values of header fields.
const MAX_SEEN: usize = 1 << 16;

/// Names of the declared flows whose throughput over time is kept: at most [`MOST_FLOWS`], flows that faults act on first.
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

/// An end of flows: a host, or one side of a cable through the testbed.
struct End {
    name: String,
    mac: [u8; 6],
}

/// Indices of the flows to which a frame belongs, by whether the frame's destination is a receiver of the flow.
#[derive(Debug, Default)]
struct Belongs {
    addressed: Vec<usize>,
    unaddressed: Vec<usize>,
}

/// A frame of a flow that a host sent, and that is not counted yet.
#[derive(Debug)]
struct Sent {
    at_ns: u64,
    from: u32,
    /// Index of the destination end, if the frame has exactly one; otherwise `None`.
    to: Option<u32>,
    belongs: Arc<Belongs>,
    wire_len: u32,
}

/// Frames with the same bytes that were sent, and the departures of frames with these bytes.
#[derive(Debug, Default)]
struct Flight {
    sent: SmallVec<[Sent; 1]>,
    /// Destination end and time of each departure from the last switch of the path.
    left: SmallVec<[(u32, u64); 1]>,
}

/// Expected copies of equal frames; and for each observed departure, the destination end and the time.
type CameOut = (Vec<Expected>, Vec<(u32, u64)>);

/// Counts of all flows so far, and the frames that are in flight.
pub struct Flows<'a> {
    scenario: &'a Scenario,
    ends: Vec<End>,
    by_mac: HashMap<[u8; 6], usize, FixedState>,
    /// For each sending end: indices of its counted flows, and each flow's receiving ends.
    from: Vec<Vec<(usize, BTreeSet<usize>)>>,
    fields: Vec<FieldId>,
    /// Flows of a frame, cached by the header fields that filters read, the sending end and the destination.
    seen: HashMap<Box<[u8]>, Arc<Belongs>, FixedState>,
    key: Vec<u8>,
    flights: HashMap<Identity, Flight, Plainly>,
    /// Times and identities of frames by sending end, in the order of sending: in `fresh`, frames not examined yet; in
    /// `waiting`, frames that had not reached their destination when they were examined.
    fresh: Vec<VecDeque<(u64, Identity)>>,
    waiting: Vec<VecDeque<(u64, Identity)>>,
    changed: Changed,
    swept_ns: u64,
    last_ns: u64,
    /// Whether the links of all hosts are recorded. If not, more frames may pass after the last recorded one.
    sees_all_hosts: bool,
    start_ns: Option<u64>,
    counts: Vec<FlowCount>,
    is_counted: Vec<bool>,
    /// Declared name and throughput of each flow whose throughput over time is kept.
    over_time: Vec<(&'a str, Bins)>,
    /// For each flow, the index of its throughput in `over_time`; `None` if it is not kept.
    followed: Vec<Option<usize>>,
}

impl<'a> Flows<'a> {
    /// Empty counts of the flows whose first and last switch are recorded and that pass no
    /// aggregating switch. `is_recorded` returns whether a port of a switch is recorded.
    pub fn new(scenario: &'a Scenario, is_recorded: &dyn Fn(&str, u32) -> bool) -> Flows<'a> {
        let topology = &scenario.topology;
        let hosts = topology.hosts.iter();
        let ends: Vec<End> = hosts
            .map(|host| End {
                name: host.name.clone(),
                mac: host.mac.0,
            })
            .collect();
        let number = |name: &str| ends.iter().position(|end| end.name == name);
        let mut from: Vec<Vec<(usize, BTreeSet<usize>)>> =
            ends.iter().map(|_| Vec::new()).collect();
        let mut is_counted = vec![false; scenario.flows.len()];
        for (index, flow) in scenario.flows.iter().enumerate() {
            let summed = |path: &Path| path.switches.iter().any(|switch| scenario.sums(switch));
            let pairs = flow.paths.iter().map(|path| {
                let (first, last) = path.switches.first().zip(path.switches.last())?;
                let port = |switch: &str, neighbour: &str| {
                    let number = topology.next_hop(switch, neighbour)?.number;
                    is_recorded(switch, number).then_some(())
                };
                port(first, &path.from)?;
                port(last, &path.to)?;
                (!summed(path)).then_some(())?;
                number(&path.from).zip(number(&path.to))
            });
            let pairs: Option<Vec<(usize, usize)>> = pairs.collect();
            let Some(pairs) = pairs.filter(|pairs| !pairs.is_empty()) else {
                continue;
            };
            is_counted[index] = true;
            for (sender, receiver) in pairs {
                match from[sender].last_mut().filter(|(of, _)| *of == index) {
                    Some((_, receivers)) => _ = receivers.insert(receiver),
                    None => from[sender].push((index, [receiver].into())),
                }
            }
        }
        let sees_all_hosts = topology.switches.iter().all(|switch| {
            let mut ports = topology.ports(switch);
            ports.all(|port| topology.host(port.peer).is_none() || is_recorded(switch, port.number))
        });
        let declared = followed(scenario);
        // Throughput of a declaration is meaningful only if all its flows are counted.
        let whole = |declared: &&&str| {
            let mut flows = scenario.flows.iter().zip(&is_counted);
            flows.all(|(flow, is_counted)| flow.declared != **declared || *is_counted)
        };
        let over_time: Vec<(&str, Bins)> = declared
            .iter()
            .filter(whole)
            .map(|name| (*name, Bins::default()))
            .collect();
        let followed = scenario.flows.iter().map(|flow| {
            over_time
                .iter()
                .position(|(declared, _)| *declared == flow.declared)
        });
        let fields: BTreeSet<&str> = scenario
            .flows
            .iter()
            .flat_map(|flow| flow.filter.fields())
            .collect();
        Flows {
            by_mac: ends
                .iter()
                .enumerate()
                .map(|(number, end)| (end.mac, number))
                .collect(),
            from,
            fields: fields
                .into_iter()
                .filter_map(|name| scenario.protocols.field_id(name))
                .collect(),
            seen: HashMap::default(),
            key: Vec::new(),
            flights: HashMap::default(),
            fresh: ends.iter().map(|_| VecDeque::new()).collect(),
            waiting: ends.iter().map(|_| VecDeque::new()).collect(),
            changed: Changed::default(),
            swept_ns: 0,
            last_ns: 0,
            sees_all_hosts,
            start_ns: None,
            counts: vec![FlowCount::default(); scenario.flows.len()],
            is_counted,
            followed: followed.collect(),
            over_time,
            ends,
            scenario,
        }
    }

    /// Index of the flow end that a switch's port leads to; `None` if it leads to another switch.
    pub fn end_at(&self, switch: &str, port: u32) -> Option<usize> {
        let mut ports = self.scenario.topology.ports(switch);
        let peer = ports.find(|other| other.number == port)?.peer;
        self.ends.iter().position(|end| end.name == peer)
    }

    /// Notes an epoch that took effect. The workload begins with epoch 1. It ends with the last frame, or, if not all hosts'
    /// links are recorded, no earlier than when the faults are disarmed.
    pub fn write(&mut self, write: &EpochWrite) {
        if write.epoch == 1 {
            self.start_ns = self.start_ns.max(Some(write.confirmed_ns));
        }
        if write.epoch == 0 && !self.sees_all_hosts {
            self.last_ns = self.last_ns.max(write.sent_ns);
        }
    }

    /// Adds a switch's announcement of a frame that a fault changes or that has equal frames.
    pub fn change(&mut self, switch: usize, change: Change) {
        self.changed
            .push(switch, change.came, change.at_ns, change.outcome);
    }

    /// Takes a frame that passed a recorded link between a switch and an end of flows.
    pub fn see(&mut self, end: usize, port: u32, sight: &Sight<'_>, headers: &Headers) {
        self.last_ns = self.last_ns.max(sight.at_ns);
        if sight.way == Way::Out {
            let flight = self.flights.entry(sight.identity).or_default();
            flight.left.push((end as u32, sight.at_ns));
            return;
        }
        let wire = self.scenario.topology.wire;
        let to = match wire {
            // Each frame from one end of a wire is for the other end.
            true => Some(1 - end),
            false => sight
                .bytes
                .first_chunk()
                .and_then(|mac| self.by_mac.get(mac))
                .copied(),
        };
        let belongs = self.belongs((end, to), port, sight, headers);
        if belongs.addressed.is_empty() && belongs.unaddressed.is_empty() {
            return;
        }
        let flight = self.flights.entry(sight.identity).or_default();
        flight.sent.push(Sent {
            at_ns: sight.at_ns,
            from: end as u32,
            to: to.map(|to| to as u32),
            belongs,
            wire_len: sight.wire_len,
        });
        self.fresh[end].push_back((sight.at_ns, sight.identity));
    }

    /// The flows that a frame sent by an end belongs to.
    fn belongs(
        &mut self,
        (from, to): (usize, Option<usize>),
        port: u32,
        sight: &Sight<'_>,
        headers: &Headers,
    ) -> Arc<Belongs> {
        if self.from[from].is_empty() {
            return Arc::default();
        }
        let library = &self.scenario.protocols;
        self.key.clear();
        self.key.extend(from.to_le_bytes());
        self.key.extend(to.unwrap_or(usize::MAX).to_le_bytes());
        library.ask(&self.fields, sight.bytes, headers, port, &mut self.key);
        if let Some(belongs) = self.seen.get(self.key.as_slice()) {
            return belongs.clone();
        }
        let values = library.dissect(sight.bytes, port);
        let scenario = self.scenario;
        let own = self.from[from].iter();
        let own = own.filter(|(flow, _)| scenario.flows[*flow].filter.matches(&values));
        // A frame on another path does not belong to a flow that is tied to one switch.
        let crosses = |flow: &Flow, to: usize| match (&scenario.ways, &flow.on) {
            (Some(ways), Some(on)) => {
                let (from, to) = (&self.ends[from].name, &self.ends[to].name);
                let way = ways.taken(from, to, hash::frame_hash(sight.bytes));
                way.is_some_and(|way| way.switches.contains(on))
            }
            _ => true,
        };
        let mut by_way = false;
        let (mut addressed, mut unaddressed) = (Vec::new(), Vec::new());
        for (index, receivers) in own {
            let flow = &scenario.flows[*index];
            by_way |= flow.on.is_some();
            match to.filter(|to| receivers.contains(to)) {
                Some(to) if crosses(flow, to) => addressed.push(*index),
                Some(_) => {}
                // Both ends of a wire take every frame. With several switches, the path of such a frame is unknown.
                None if scenario.topology.wire || flow.on.is_some() => {}
                None => unaddressed.push(*index),
            }
        }
        let belongs = Arc::new(Belongs {
            addressed,
            unaddressed,
        });
        if !by_way {
            if self.seen.len() == MAX_SEEN {
                self.seen.clear();
            }
            self.seen
                .insert(self.key.as_slice().into(), belongs.clone());
        }
        belongs
    }

    /// Counts each frame without equal frames that was sent until `sent_until_ns` and reached its destination once, until
    /// `left_until_ns`. Until the latter time, the switches have announced every change to frames.
    pub fn advance_lately(&mut self, sent_until_ns: u64, left_until_ns: u64) {
        for end in 0..self.fresh.len() {
            while let Some(entry) = self.fresh[end].pop_front_if(|(at, _)| *at <= sent_until_ns) {
                match self.has_come_through(entry.1, left_until_ns) {
                    true => {
                        let flight = self.flights.remove(&entry.1).unwrap_or_default();
                        self.count_one(entry.1, flight);
                    }
                    false => self.waiting[end].push_back(entry),
                }
            }
        }
    }

    fn has_come_through(&self, identity: Identity, left_until_ns: u64) -> bool {
        let Some(Flight { sent, left }) = self.flights.get(&identity) else {
            return false;
        };
        let ([one], [(end, left_ns)]) = (&sent[..], &left[..]) else {
            return false;
        };
        one.to == Some(*end)
            && one.belongs.unaddressed.is_empty()
            && *left_ns <= left_until_ns
            && !self.changed.knows(identity)
    }

    /// Counts the frames that were sent until `until_ns`, about which all captures are in.
    pub fn advance(&mut self, until_ns: u64) {
        for end in 0..self.waiting.len() {
            while let Some(entry) = self.fresh[end].pop_front_if(|(at, _)| *at <= until_ns) {
                self.waiting[end].push_back(entry);
            }
            let is_old = |(sent_ns, _): &mut (u64, Identity)| *sent_ns <= until_ns;
            while let Some((_, identity)) = self.waiting[end].pop_front_if(is_old) {
                self.settle(identity, until_ns);
            }
        }
        if until_ns.saturating_sub(self.swept_ns) >= BACKLOG_NS {
            self.swept_ns = until_ns;
            let before_ns = until_ns.saturating_sub(STAMP_NS);
            self.changed.forget(before_ns);
            self.flights.retain(|_, flight| {
                flight.left.retain(|(_, at_ns)| *at_ns >= before_ns);
                !flight.sent.is_empty() || !flight.left.is_empty()
            });
        }
    }

    /// Removes the first of several equal frames if it was sent until `until_ns`, reached its
    /// destination before the next was sent, and no switch changed it; otherwise returns `None`.
    fn first_alone(&mut self, identity: Identity, until_ns: u64) -> Option<Flight> {
        let flight = self.flights.get_mut(&identity)?;
        let [first, next, ..] = &flight.sent[..] else {
            return None;
        };
        let next_ns = next.at_ns;
        flight.left.sort_by_key(|(_, at_ns)| *at_ns);
        let own = flight.left.partition_point(|(_, at_ns)| *at_ns < next_ns);
        let is_alone = first.at_ns <= until_ns
            && first.belongs.unaddressed.is_empty()
            && own == 1
            && first.to == Some(flight.left[0].0)
            && !self.changed.knows_before(identity, next_ns);
        is_alone.then(|| Flight {
            sent: smallvec![flight.sent.remove(0)],
            left: smallvec![flight.left.remove(0)],
        })
    }

    /// Counts the frames with this identity that were sent until `until_ns`.
    fn settle(&mut self, identity: Identity, until_ns: u64) {
        if let Some(alone) = self.first_alone(identity, until_ns) {
            self.count_one(identity, alone);
            return;
        }
        let Some(flight) = self.flights.get_mut(&identity) else {
            return;
        };
        if let ([sent], false) = (&flight.sent[..], self.changed.knows(identity)) {
            if sent.at_ns <= until_ns {
                let flight = self.flights.remove(&identity).unwrap_or_default();
                self.count_one(identity, flight);
            }
            return;
        }
        let ready = flight
            .sent
            .iter()
            .take_while(|sent| sent.at_ns <= until_ns)
            .count();
        if ready == 0 {
            return;
        }
        let sent: Vec<Sent> = flight.sent.drain(..ready).collect();
        let next_ns = flight.sent.first().map_or(u64::MAX, |next| next.at_ns);
        let times: Vec<u64> = sent.iter().map(|sent| sent.at_ns).collect();
        let mut by_key: BTreeMap<Identity, Vec<Expected>> = BTreeMap::new();
        for copy in self.changed.expected(identity, &times) {
            by_key.entry(copy.identity).or_default().push(copy);
        }
        let by_key = by_key.into_iter().map(|(key, copies)| {
            let mut left = Vec::new();
            let owed = copies.iter().filter(|copy| copy.comes_out()).count();
            if let Some(flight) = self.flights.get_mut(&key) {
                // Departures after the next equal frame was sent are attributed to that frame, except expected held copies.
                flight.left.sort_by_key(|(_, at_ns)| *at_ns);
                flight.left.retain(|&mut (end, at_ns)| {
                    let is_own = at_ns < next_ns || left.len() < owed;
                    if is_own {
                        left.push((end, at_ns));
                    }
                    !is_own
                });
            }
            (copies, left)
        });
        let by_key: Vec<CameOut> = by_key.collect();
        self.count(&sent, &by_key);
        let is_over = |flight: &Flight| flight.sent.is_empty() && flight.left.is_empty();
        if self.flights.get(&identity).is_some_and(is_over) {
            self.flights.remove(&identity);
        }
    }

    /// Counts a frame without equal frames that no fault changed. Usually it left the last switch once, or not at all.
    fn count_one(&mut self, identity: Identity, flight: Flight) {
        let Flight { sent, left } = flight;
        let [one] = &sent[..] else {
            return;
        };
        let came_out = match &left[..] {
            [] => Some(None),
            [(end, left_ns)] if Some(*end) == one.to => Some(Some(*left_ns)),
            _ => None,
        };
        let Some(left_ns) = came_out.filter(|_| one.belongs.unaddressed.is_empty()) else {
            let expected = vec![Expected::itself(identity, one.at_ns)];
            self.count(&sent, &[(expected, left.to_vec())]);
            return;
        };
        let took_ns = left_ns.map(|left_ns| left_ns.saturating_sub(one.at_ns));
        for flow in one.belongs.addressed.iter() {
            self.counts[*flow].add_frames(&[took_ns], u64::from(took_ns.is_some()));
            let Some(bins) = self.followed[*flow].map(|at| &mut self.over_time[at].1) else {
                continue;
            };
            let since = |at_ns: u64| at_ns.checked_sub(self.start_ns?);
            bins.send(since(one.at_ns), one.wire_len);
            if let Some(left_ns) = left_ns {
                bins.receive(since(left_ns), one.wire_len);
            }
        }
    }

    /// Counts equal frames that were sent. `by_key`: for each identity of leaving frames, expected copies and seen departures.
    fn count(&mut self, sent: &[Sent], by_key: &[CameOut]) {
        let Some(first) = sent.first() else {
            return;
        };
        let ways = [
            (&first.belongs.addressed, first.to),
            (&first.belongs.unaddressed, None),
        ];
        for (flows, to) in ways.into_iter().filter(|(flows, _)| !flows.is_empty()) {
            let mut took_ns: Vec<Option<u64>> = vec![None; sent.len()];
            let mut out = Vec::new();
            for (expected, left) in by_key {
                let times = match to {
                    Some(to) => times_at(left, to),
                    // A frame that left towards any end is received, regardless of the number of receivers.
                    None => {
                        let ends: BTreeSet<u32> = left.iter().map(|(end, _)| *end).collect();
                        let others = ends.into_iter().filter(|end| *end != first.from);
                        let times = others.map(|end| times_at(left, end));
                        times.max_by_key(Vec::len).unwrap_or_default()
                    }
                };
                for (number, left_ns) in became::assigned(expected.clone(), &times) {
                    let took = took_ns[number].get_or_insert(u64::MAX);
                    *took = left_ns.saturating_sub(sent[number].at_ns).min(*took);
                }
                out.extend(times);
            }
            for flow in flows.iter() {
                self.counts[*flow].add_frames(&took_ns, out.len() as u64);
                let Some(bins) = self.followed[*flow].map(|at| &mut self.over_time[at].1) else {
                    continue;
                };
                let since = |at_ns: u64| at_ns.checked_sub(self.start_ns?);
                for sent in sent {
                    bins.send(since(sent.at_ns), sent.wire_len);
                }
                for at_ns in &out {
                    bins.receive(since(*at_ns), first.wire_len);
                }
            }
        }
    }

    /// Final counts of all flows by name (also by declared name, if it stands for several), and throughput by declared name.
    pub fn conclude(mut self) -> (BTreeMap<String, FlowCount>, Vec<(String, Throughput)>) {
        self.advance(u64::MAX);
        let mut counts: BTreeMap<String, FlowCount> = BTreeMap::new();
        let flows = self.scenario.flows.iter().zip(&self.counts);
        let counted = flows
            .zip(&self.is_counted)
            .filter(|(_, is_counted)| **is_counted);
        for ((flow, count), _) in counted {
            if flow.declared != flow.name {
                counts.entry(flow.declared.clone()).or_default().add(count);
            }
            counts.insert(flow.name.clone(), count.clone());
        }
        let length_ns = self.last_ns.saturating_sub(self.start_ns.unwrap_or(0)) + 1;
        let over_time = self.over_time.into_iter();
        let over_time = over_time.map(|(name, bins)| (name.to_owned(), bins.over(length_ns)));
        (counts, over_time.collect())
    }
}

fn times_at(left: &[(u32, u64)], end: u32) -> Vec<u64> {
    let here = left.iter().filter(|(at, _)| *at == end);
    let mut times: Vec<u64> = here.map(|(_, at_ns)| *at_ns).collect();
    times.sort_unstable();
    times
}
