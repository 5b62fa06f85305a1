//! A model of one switch's fault engine, equivalent to the generated P4: which frames it must hit, and the fate of each.
//!
//! A decision depends only on seed, fault, flow and ordinal, so the sequence of frames that reached a switch determines which
//! of them must be hit. [`Engine`] holds what stays constant during a run, [`State`] the contents of the fault units' register
//! cells; [`Engine::pass`] takes one frame through both pipelines. The fault units are independent: each examines and counts
//! every frame of its flows, whatever the others do. The frame's fate is composed from their results.

mod exits;
mod frame;
mod judge;
mod progress;
mod slots;
mod state;
mod trigger;
mod unit;
mod verdict;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::FixedState;
use parser_gen::key::KeyHash;
use parser_gen::psn::DataPacket;
use parser_gen::{FieldId, Headers};

use crate::model::decision::Draws;
use crate::model::effect::Effect;
use crate::model::protocols::Protocols;
use crate::model::{Direction, Scenario};
use crate::plan::{Plan, SwitchPlan};
use exits::Forwarding;
pub use frame::{Classified, Recorded, Rewritten};
use judge::{SHARED_CLOCK_NS, acts};
pub use state::State;
pub use trigger::Doubt;
use trigger::SwitchTrigger;
use unit::FaultUnit;
pub use verdict::{Act, Passage, Triggered, Verdict};

/// The flows that a packet belongs to: their positions in the switch's list of flows, ascending.
pub type FlowSet = Arc<[usize]>;

/// The model of a switch's fault units and forwarding, without their state.
#[derive(Debug)]
pub struct Engine {
    library: Arc<Protocols>,
    draws: Draws,
    plan: SwitchPlan,
    forwarding: Forwarding,
    /// A cache of packets' flows, by the values of all fields that filters read. Filters are many, and packets repeat.
    seen: Mutex<FlowCache>,
    /// The fields that the flows' filters read.
    fields: Vec<FieldId>,
    /// The fields that show whether a packet opens a TCP connection.
    beginning: Vec<FieldId>,
    ingress: Vec<FaultUnit>,
    egress: Vec<FaultUnit>,
    triggers: Vec<SwitchTrigger>,
    /// Whether no egress unit examines frames, and all frames to the same destination take one path.
    is_plain: bool,
    /// Number of injections (pairs of fault and flow at a switch) in the plan, on all switches.
    injections: usize,
    start: State,
}

/// A cache of packets' flows, by the values of the fields that filters read (`key` is a buffer for them), and of egress ports.
#[derive(Debug, Default)]
struct FlowCache {
    key: Vec<u8>,
    flows: HashMap<Box<[u8]>, FlowSet, FixedState>,
    /// The egress ports of frames, by destination MAC address and ingress port.
    exits: HashMap<([u8; 6], u32), Exits, FixedState>,
}

/// The egress ports of a frame, and the flows that the frame belongs to at each of them.
#[derive(Debug, Clone)]
struct Exits {
    exits: Arc<[(u32, FlowSet)]>,
    untouched: Arc<[(u32, Vec<Verdict>)]>,
}

/// A random word that selects the median of a distribution.
const MEDIAN: u32 = 1 << 31;

/// Maximum number of entries in the cache of packets' flows.
const MAX_SEEN: usize = 1 << 16;

impl Engine {
    /// The model of a switch's fault engine; `None` if the plan lacks the switch, or uses another scenario's protocols.
    #[must_use]
    pub fn new(scenario: &Scenario, plan: &Plan, switch: &str) -> Option<Engine> {
        let planned = plan.switch(switch)?;
        let mut start = State::default();
        let mut units_of = |direction| -> Vec<FaultUnit> {
            let units = planned.units.iter();
            let units = units.filter(|unit| unit.direction == direction);
            units
                .filter_map(|unit| {
                    let injections = plan.injections.iter().enumerate().filter(|(_, point)| {
                        point.switch == switch
                            && point.direction == direction
                            && point.fault == unit.fault
                    });
                    FaultUnit::new(scenario, plan, planned, &unit.fault, injections, &mut start)
                })
                .collect()
        };
        let (ingress, egress) = (units_of(Direction::Ingress), units_of(Direction::Egress));
        let triggers = SwitchTrigger::for_switch(scenario, plan, planned);
        start.await_triggers(triggers.len());
        let mut engine = Engine {
            is_plain: false,
            library: Arc::clone(&scenario.protocols),
            draws: Draws::of_seed(plan.seed),
            forwarding: Forwarding::new(&planned.entries),
            plan: planned.clone(),
            seen: Mutex::default(),
            fields: planned
                .flows
                .iter()
                .flat_map(|flow| flow.filter.fields())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .map(|field| scenario.protocols.field_id(field))
                .collect::<Option<_>>()?,
            beginning: ["tcp.flags.syn", "tcp.flags.ack", "tcp.seq"]
                .into_iter()
                .filter_map(|field| scenario.protocols.field_id(field))
                .collect(),
            ingress,
            egress,
            triggers,
            injections: plan.injections.len(),
            start,
        };
        engine.is_plain = engine.egress.is_empty() && !engine.spreads();
        Some(engine)
    }

    /// The engine for a switch whose own clock provides the timestamps of the captured frames.
    #[must_use]
    pub fn with_shared_clock(mut self) -> Engine {
        for trigger in &mut self.triggers {
            trigger.clock_ns = SHARED_CLOCK_NS;
        }
        self
    }

    /// The state of the switch before its first packet.
    #[must_use]
    pub fn start(&self) -> State {
        self.start.clone()
    }

    /// Determines the flows and egress ports of a frame from an ingress port, as `Classify` and `Forward` do in P4. An empty
    /// list of egress ports means that the switch does not forward the frame.
    #[must_use]
    pub fn classify(&self, frame: &[u8], port: u32) -> Classified {
        self.classify_parsed(frame, &self.library.parsed(frame), port)
    }

    /// Determines flows and egress ports as [`Engine::classify`], for a frame whose headers are already parsed.
    #[must_use]
    #[inline]
    pub fn classify_parsed(&self, frame: &[u8], headers: &Headers, port: u32) -> Classified {
        let flows = |at| self.flows(frame, headers, at);
        let ingress = match self.ingress.is_empty() && self.triggers.is_empty() {
            true => FlowSet::default(),
            false => flows(port),
        };
        let Exits { exits, untouched } = self.known_exits(frame, port, &flows);
        let restarts = self.ingress.iter().any(FaultUnit::restarts)
            || self.triggers.iter().any(SwitchTrigger::restarts);
        Classified {
            port,
            may_turn: Arc::default(),
            at_ns: 0,
            bytes: if self.paces() {
                parser_gen::pace::bytes(&self.library, frame)
            } else {
                0
            },
            seen_to_leave: None,
            left_ns: None,
            passed_ns: Arc::default(),
            keys: self.keys(frame, headers),
            trigger_keys: self.trigger_keys(frame, headers),
            data: self.data(frame),
            told: None,
            begins: restarts.then(|| self.begins(frame, headers)).flatten(),
            ingress,
            exits,
            untouched,
        }
    }

    /// From the cache: egress ports, and the frame's flows at each. Mostly equal for frames of one ingress port and
    /// destination.
    #[inline]
    fn known_exits(&self, frame: &[u8], port: u32, flows: &dyn Fn(u32) -> FlowSet) -> Exits {
        let find = || {
            let exits = self.exits(frame, port).into_iter();
            let exits = exits.map(|exit| match self.egress.is_empty() {
                true => (exit, FlowSet::default()),
                false => (exit, flows(exit)),
            });
            let exits: Arc<[(u32, FlowSet)]> = exits.collect();
            let untouched = exits
                .iter()
                .map(|(exit, _)| (*exit, vec![Verdict::untouched()]));
            Exits {
                untouched: untouched.collect(),
                exits,
            }
        };
        if !self.is_plain {
            return find();
        }
        let Some(destination) = frame.first_chunk::<6>() else {
            return find();
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(exits) = seen.exits.get(&(*destination, port)) {
            return exits.clone();
        }
        let exits = find();
        if seen.exits.len() == MAX_SEEN {
            seen.exits.clear();
        }
        seen.exits.insert((*destination, port), exits.clone());
        exits
    }

    /// The ingress units in which the frame waits for later packets: number of the unit, index of the cell, number of packets.
    #[inline]
    pub fn waits<'e>(
        &'e self,
        frame: &'e Classified,
    ) -> impl Iterator<Item = (usize, usize, u32)> + 'e {
        let is_guarded = self.guards(&frame.ingress);
        let units = self.ingress.iter().enumerate();
        units.filter_map(move |(number, unit)| {
            let distance = unit.effect.distance()?;
            let flows = frame.ingress.iter();
            let entry = flows.filter_map(|flow| unit.of_flow.get(flow)).min()?;
            let cell = unit.entries[*entry].cell;
            (!is_guarded).then_some((number, cell, distance))
        })
    }

    /// Number of fault units in ingress.
    #[must_use]
    pub fn units(&self) -> usize {
        self.ingress.len()
    }

    /// Sets, for each frame that waits for later frames of its flow, the time when enough of them had come. `frames` are in
    /// order of arrival at each port. The timeline is ignored: if a step ends while a packet waits, the packet may be due later
    /// than this time, never earlier.
    pub fn tell_passed(&self, frames: &mut [Classified]) {
        let mut passed_ns = vec![vec![u64::MAX; self.ingress.len()]; frames.len()];
        let mut waiting: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (index, frame) in frames.iter().enumerate() {
            for (unit, cell, distance) in self.waits(frame) {
                let met = waiting.entry((unit, cell)).or_default();
                met.push(index);
                if let Some(first) = met.len().checked_sub(distance as usize + 1) {
                    passed_ns[met[first]][unit] = frame.at_ns;
                }
            }
        }
        for (frame, passed_ns) in frames.iter_mut().zip(passed_ns) {
            frame.passed_ns = passed_ns.into();
        }
    }

    /// The key by which an injection numbers a frame; `None` if the injection numbers all frames of a flow together.
    #[must_use]
    #[inline]
    pub fn key_of(&self, frame: &Classified, injection: usize) -> Option<Arc<[u8]>> {
        let mut units = self.ingress.iter().zip(frame.keys.iter());
        let is_of = |unit: &FaultUnit| {
            unit.entries
                .iter()
                .any(|entry| entry.injection == injection)
        };
        let (_, hash) = units.find(|(unit, _)| unit.keys.is_some() && is_of(unit))?;
        Some(Arc::clone(&hash.key))
    }

    /// Whether any of these flows is protected from faults.
    #[inline]
    fn guards(&self, flows: &FlowSet) -> bool {
        flows.iter().any(|flow| self.plan.flows[*flow].protected)
    }

    /// For each ingress unit, the hash of the frame's key (such as its connection); empty if no unit uses keys.
    #[inline]
    fn keys(&self, frame: &[u8], headers: &Headers) -> Arc<[KeyHash]> {
        if !self.ingress.iter().any(|unit| unit.key().is_some()) {
            return Arc::default();
        }
        let hash = |unit: &FaultUnit| {
            let key = unit.key();
            key.map_or_else(KeyHash::default, |key| {
                key.hash(&self.library, frame, headers)
            })
        };
        self.ingress.iter().map(hash).collect()
    }

    /// The frame's role in an RDMA connection; `None` if it has none.
    #[inline]
    fn data(&self, frame: &[u8]) -> Option<DataPacket> {
        let mut units = self.ingress.iter();
        let asks = units.any(FaultUnit::places);
        asks.then(|| DataPacket::parse(&self.library, frame))
            .flatten()
    }

    /// The TCP sequence number of a frame that opens a connection; `None` for other frames.
    #[inline]
    fn begins(&self, frame: &[u8], headers: &Headers) -> Option<u32> {
        let number = |field: &FieldId| self.library.number(*field, frame, headers);
        let [syn, ack, seq] = &self.beginning[..] else {
            return None;
        };
        let begins = number(syn) == Some(1) && number(ack) == Some(0);
        begins.then(|| u32::try_from(number(seq)?).ok()).flatten()
    }

    /// The flows whose filters a frame matches at a port, computed without the cache.
    #[inline]
    fn flows(&self, frame: &[u8], headers: &Headers, port: u32) -> FlowSet {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let FlowCache {
            key, flows: known, ..
        } = &mut *seen;
        key.clear();
        self.library.ask(&self.fields, frame, headers, port, key);
        if let Some(flows) = known.get(key.as_slice()) {
            return flows.clone();
        }
        let values = self.library.dissect(frame, port);
        let flows = self.plan.flows.iter();
        let flows = flows.filter(|flow| flow.filter.matches(&values));
        let flows: FlowSet = flows.map(|flow| flow.index).collect();
        if known.len() == MAX_SEEN {
            known.clear();
        }
        known.insert(key.as_slice().into(), flows.clone());
        flows
    }

    /// Whether no unit examines frames with this classification, and no trigger depends on them, whatever the epoch.
    #[must_use]
    #[inline]
    pub fn ignores(&self, frame: &Classified) -> bool {
        let idle = |units: &[FaultUnit], flows: &FlowSet| {
            let met = |unit: &FaultUnit| flows.iter().any(|flow| unit.of_flow.contains_key(flow));
            !units.iter().any(met)
        };
        let mut triggers = self.triggers.iter();
        !triggers.any(|trigger| trigger.meets(frame))
            && idle(&self.ingress, &frame.ingress)
            && frame
                .exits
                .iter()
                .all(|(_, flows)| idle(&self.egress, flows))
    }

    /// Takes a frame through ingress and egress of the switch in an epoch, updates the state, and returns the verdicts.
    #[inline]
    pub fn pass(&self, state: &mut State, frame: &Classified, epoch: u16) -> Passage {
        let on = self.look(state, frame, epoch);
        let looked = (&frame.ingress, on.as_slice());
        let ingress = self.judge(&self.ingress, state, looked, epoch, frame);
        let triggered = self.advance(state, frame, epoch, &ingress);
        if ingress.fate.copies == 1 && self.egress.is_empty() && !frame.untouched.is_empty() {
            return Passage {
                ingress,
                exits: frame.untouched.clone(),
                triggered,
            };
        }
        let mut exits: Vec<(u32, Vec<Verdict>)> = frame
            .exits
            .iter()
            .map(|(port, _)| (*port, Vec::new()))
            .collect();
        for _ in 0..ingress.fate.copies {
            for ((_, copies), (_, flows)) in exits.iter_mut().zip(frame.exits.iter()) {
                copies.push(self.judge(&self.egress, state, (flows, &[]), epoch, frame));
            }
        }
        Passage {
            ingress,
            exits: exits.into(),
            triggered,
        }
    }

    /// For each fault unit in ingress, in declared order: what it did to the packet with this verdict.
    #[inline]
    pub fn ingress_acts<'e>(&'e self, verdict: &'e Verdict) -> impl Iterator<Item = Act<'e>> {
        acts(&self.ingress, verdict)
    }

    /// For each fault unit in egress, in declared order: what it did to the packet with this verdict.
    #[inline]
    pub fn egress_acts<'e>(&'e self, verdict: &'e Verdict) -> impl Iterator<Item = Act<'e>> {
        acts(&self.egress, verdict)
    }

    /// The frame that leaves the switch after units with these effects and drawn random words fired; `None` if it is unchanged.
    #[must_use]
    pub fn rewritten<'e>(
        &self,
        frame: Recorded<'_>,
        fired: impl Iterator<Item = (&'e Effect, u32)>,
    ) -> Option<Rewritten> {
        let mut changed: Option<Rewritten> = None;
        let mut leaves = u32::MAX;
        // A switch parses a frame once, before effects change it.
        let headers = OnceCell::new();
        for (effect, w) in fired.filter(|(effect, _)| effect.changes()) {
            let changed = changed.get_or_insert_with(|| Rewritten {
                bytes: frame.bytes.to_vec(),
                wire_len: frame.wire_len,
            });
            let headers = headers.get_or_init(|| self.library.parsed(frame.bytes));
            effect.change(&self.library, headers, w, &mut changed.bytes);
            leaves = leaves.min(effect.leaves().map_or(u32::MAX, u32::from));
        }
        // The switch reads and writes complete headers before it cuts the packet.
        if let Some(changed) = &mut changed {
            changed.wire_len = changed.wire_len.min(leaves);
            changed.bytes.truncate(leaves as usize);
        }
        changed.filter(|changed| changed.bytes != frame.bytes || changed.wire_len != frame.wire_len)
    }

    #[inline]
    fn paces(&self) -> bool {
        let mut units = self.ingress.iter();
        units.any(|unit| unit.effect.pace().is_some())
    }

    /// Whether the effect of any fault unit delays packets.
    #[must_use]
    #[inline]
    pub fn is_timed(&self) -> bool {
        let mut units = self.ingress.iter();
        units.any(|unit| unit.effect.is_timed())
    }

    /// Whether the effect of any fault unit changes bytes of packets.
    #[must_use]
    #[inline]
    pub fn rewrites(&self) -> bool {
        let mut units = self.ingress.iter();
        units.any(|unit| unit.effect.changes())
    }

    /// Whether a unit whose effect changes bytes examines the frame.
    #[must_use]
    #[inline]
    pub fn may_rewrite(&self, frame: &Classified) -> bool {
        let mut units = self.ingress.iter().filter(|unit| unit.effect.changes());
        let met = |unit: &FaultUnit| {
            frame
                .ingress
                .iter()
                .any(|flow| unit.of_flow.contains_key(flow))
        };
        units.any(met)
    }

    /// The frame that leaves the switch after this ingress verdict; `None` if the frame is unchanged.
    #[must_use]
    #[inline]
    pub fn leaves_as(&self, verdict: &Verdict, frame: Recorded<'_>) -> Option<Rewritten> {
        let fired = self.ingress_acts(verdict).filter(|act| act.hit);
        self.rewritten(frame, fired.map(|act| (act.effect, act.w)))
    }

    /// The shortest time, in nanoseconds, for which any unit holds packets on purpose; `None` if none does. A random time
    /// counts with its median.
    #[must_use]
    pub fn shortest_hold_ns(&self) -> Option<u64> {
        let holding = self.ingress.iter();
        let holding = holding.filter(|unit| unit.effect.longest_hold_ns() > 0);
        let holding = holding.map(|unit| unit.effect.hold_ns(MEDIAN));
        holding.filter(|hold_ns| *hold_ns > 0).min()
    }
}
