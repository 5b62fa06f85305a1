//! The fault engine of one switch, as the generated P4 text has it: which frames it must hit, and what becomes of each.
//!
//! Decisions depend on seed, fault, flow and ordinal alone, so the frames that came to a switch, in the order in which they
//! came, say which of them had to be hit. [`Engine`] is what does not change during a run, [`State`] what the units' cells
//! hold; [`Engine::pass`] takes one frame through both pipelines. Units stand side by side: each looks at every frame of its
//! flows and counts it, whatever the others do; what becomes of the frame is composed behind them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};

use p4lang::runtime::Match;
use parser_gen::key::PacketKey;
use parser_gen::{FieldValues, Value};

use crate::decision::{self, Draws};
use crate::effect::{Effect, Fate, OVER};
use crate::model::{Direction, Scenario};
use crate::names::forward;
use crate::plan::{Injection, Plan, SwitchPlan};
use crate::protocols::Protocols;
use crate::selection::{Cell, Selection};

/// The flows that a packet belongs to: positions among the switch's flows, ascending.
pub type FlowSet = Arc<[usize]>;

/// What a switch's faults are, and where it forwards to.
#[derive(Debug)]
pub struct Engine {
    library: Arc<Protocols>,
    draws: Draws,
    plan: SwitchPlan,
    /// What has been classified, by all that the filters look at: filters are many, and packets alike.
    seen: Mutex<HashMap<Asked, FlowSet>>,
    /// Fields that the filters name.
    fields: Vec<String>,
    ingress: Vec<Unit>,
    egress: Vec<Unit>,
    start: State,
}

/// A word that stands for the middle of a distribution.
const MEDIAN: u32 = 1 << 31;

/// How many different packets are remembered.
const MAX_SEEN: usize = 1 << 16;

/// What filters look at in a packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Asked {
    fields: Vec<Option<Value>>,
    protocols: Vec<bool>,
}

#[derive(Debug)]
struct Unit {
    effect: Effect,
    selection: Selection,
    /// In declared order: a packet in two flows of a fault belongs to the one declared first.
    entries: Vec<Entry>,
    /// The entry of each flow.
    of_flow: BTreeMap<usize, usize>,
}

#[derive(Debug)]
struct Entry {
    epochs: Vec<RangeInclusive<u16>>,
    injection: usize,
    /// Of fault and flow.
    key: u32,
    /// Index into [`State`].
    cell: usize,
}

/// What the units' cells hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// Ordinals and channels.
    cells: Vec<Cell>,
    /// By cell too, when what was held last is due, where packets keep their order.
    due_ns: Vec<u64>,
}

/// A frame as `Classify` sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Classified {
    /// Its flows when it comes in.
    pub ingress: FlowSet,
    /// The ports that it is forwarded to, and its flows there, in the order in which copies are made.
    pub exits: Vec<(u32, FlowSet)>,
    /// By unit of ingress, the hash of the packet's key, where keys are told apart.
    pub keys: Arc<[u32]>,
    /// When it came, for effects that go by that.
    pub at_ns: u64,
    /// How long it is, for those that go by that.
    pub bytes: u32,
    /// By unit of ingress, when as many more packets of its cell had come as the unit makes one wait for; `u64::MAX` if they
    /// never did. Empty if no unit does.
    pub passed_ns: Arc<[u64]>,
    /// Whether it was seen to leave, by those who look from outside: the clock of a switch is not theirs.
    pub seen_to_leave: Option<bool>,
}

/// A frame as far as it was recorded.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'f> {
    /// From its first on.
    pub bytes: &'f [u8],
    /// How long it was.
    pub wire_len: u32,
}

impl<'f> Recorded<'f> {
    /// A frame of which all is there.
    #[must_use]
    pub fn whole(bytes: &'f [u8]) -> Recorded<'f> {
        Recorded {
            bytes,
            wire_len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        }
    }
}

/// What leaves of a frame, as far as the frame was recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rewritten {
    /// From its first on.
    pub bytes: Vec<u8>,
    /// How long it is.
    pub wire_len: u32,
}

/// By how much a switch may take a frame later than it was seen to come. Where a queue is as near to its end as this, what
/// became of the frame says whether it had room.
const CLOCK_NS: u64 = 5_000_000;

/// A unit and what it did to a packet.
#[derive(Debug, Clone, Copy)]
pub struct Act<'e> {
    /// The injection that looked at the packet; if none did, the unit's first.
    pub injection: usize,
    /// What the unit does.
    pub effect: &'e Effect,
    /// Whether it looked at the packet.
    pub met: bool,
    /// Whether it fired.
    pub hit: bool,
    /// The word that it drew; 0 if it drew none.
    pub w: u32,
}

impl Act<'_> {
    /// For how long it holds the packet, or would have. One that did not look at it drew no word: the longest is assumed, since
    /// what is shorter cannot be told from a frame that was a little late.
    #[must_use]
    pub fn hold_ns(&self) -> u64 {
        match self.met {
            true => self.effect.hold_ns(self.w),
            false => self.effect.longest_hold_ns(),
        }
    }
}

/// What one pipeline's units do to a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The injections that looked at it, in declared order. Indexes into [`Plan::injections`].
    pub met: Vec<usize>,
    /// The word that each of those drew; 0 where none was.
    pub drawn: Vec<u32>,
    /// Those of them that fired.
    pub hits: Vec<usize>,
    /// Those that fired and of which nothing is to be seen, since another one dropped the packet.
    pub overridden: Vec<usize>,
    /// What becomes of it.
    pub fate: Fate,
}

impl Verdict {
    /// Of a packet that no unit looks at.
    #[must_use]
    pub fn untouched() -> Verdict {
        Verdict {
            met: Vec::new(),
            drawn: Vec::new(),
            hits: Vec::new(),
            overridden: Vec::new(),
            fate: Fate::UNTOUCHED,
        }
    }

    /// The word that an injection drew for the packet; 0 if it drew none.
    #[must_use]
    pub fn drawn_by(&self, injection: usize) -> u32 {
        let met = self.met.iter().position(|met| *met == injection);
        met.and_then(|position| self.drawn.get(position).copied())
            .unwrap_or(0)
    }
}

/// What a switch does to a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// In ingress.
    pub ingress: Verdict,
    /// For each port that it is forwarded to, in egress: one verdict per copy.
    pub exits: Vec<(u32, Vec<Verdict>)>,
}

impl Passage {
    /// How many copies leave by the port at this position of [`Passage::exits`].
    #[must_use]
    pub fn leaving(&self, exit: usize) -> usize {
        let (_, copies) = &self.exits[exit];
        copies.iter().filter(|copy| !copy.fate.is_dropped()).count()
    }

    /// All verdicts: of ingress, and of each copy in egress.
    pub fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        let copies = self.exits.iter().flat_map(|(_, copies)| copies);
        std::iter::once(&self.ingress).chain(copies)
    }
}

impl Engine {
    /// The engine of a switch; `None` if the plan has no such switch.
    #[must_use]
    pub fn new(scenario: &Scenario, plan: &Plan, switch: &str) -> Option<Engine> {
        let planned = plan.switch(switch)?;
        let mut start = State::default();
        let mut units_of = |direction| -> Vec<Unit> {
            let units = planned.units.iter();
            let units = units.filter(|unit| unit.direction == direction);
            units
                .filter_map(|unit| {
                    let injections = plan.injections.iter().enumerate().filter(|(_, point)| {
                        point.switch == switch
                            && point.direction == direction
                            && point.fault == unit.fault
                    });
                    Unit::new(
                        scenario,
                        plan,
                        planned,
                        &unit.fault,
                        injections,
                        &mut start.cells,
                    )
                })
                .collect()
        };
        let (ingress, egress) = (units_of(Direction::Ingress), units_of(Direction::Egress));
        start.due_ns = vec![0; start.cells.len()];
        Some(Engine {
            library: Arc::clone(&scenario.protocols),
            draws: Draws::of_seed(plan.seed),
            plan: planned.clone(),
            seen: Mutex::default(),
            fields: planned
                .flows
                .iter()
                .flat_map(|flow| flow.filter.fields())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            ingress,
            egress,
            start,
        })
    }

    /// Before the first packet.
    #[must_use]
    pub fn start(&self) -> State {
        self.start.clone()
    }

    /// What `Classify` and `Forward` say of a frame that comes in by a port. An empty list of exits: it goes nowhere.
    #[must_use]
    pub fn classify(&self, frame: &[u8], port: u32) -> Classified {
        let flows = |port| self.flows(&self.library.dissect(frame, port));
        let exits = self.exits(frame, port).into_iter();
        Classified {
            at_ns: 0,
            bytes: if self.paces() {
                parser_gen::pace::bytes(&self.library, frame)
            } else {
                0
            },
            seen_to_leave: None,
            passed_ns: Arc::default(),
            keys: self.keys(frame),
            ingress: if self.ingress.is_empty() {
                FlowSet::default()
            } else {
                flows(port)
            },
            exits: exits
                .map(|exit| {
                    let set = if self.egress.is_empty() {
                        FlowSet::default()
                    } else {
                        flows(exit)
                    };
                    (exit, set)
                })
                .collect(),
        }
    }

    /// Says of frames, which stand in the order in which they came by each port, when others of their flow had passed. The
    /// timeline is not asked: where a step ends while a packet waits, it may be due later than is said here, never earlier.
    pub fn tell_passed(&self, frames: &mut [Classified]) {
        if !self
            .ingress
            .iter()
            .any(|unit| unit.effect.distance().is_some())
        {
            return;
        }
        let mut passed_ns = vec![vec![u64::MAX; self.ingress.len()]; frames.len()];
        for (number, unit) in self.ingress.iter().enumerate() {
            let Some(distance) = unit.effect.distance() else {
                continue;
            };
            let mut cells: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for (index, frame) in frames.iter().enumerate() {
                let entries = frame
                    .ingress
                    .iter()
                    .filter_map(|flow| unit.of_flow.get(flow));
                if let Some(entry) = entries.min().filter(|_| !self.guards(&frame.ingress)) {
                    cells
                        .entry(unit.entries[*entry].cell)
                        .or_default()
                        .push(index);
                }
            }
            for met in cells.values() {
                for (one, other) in met.iter().zip(met.iter().skip(distance as usize)) {
                    passed_ns[*one][number] = frames[*other].at_ns;
                }
            }
        }
        for (frame, passed_ns) in frames.iter_mut().zip(passed_ns) {
            frame.passed_ns = passed_ns.into();
        }
    }

    /// Whether packets of these flows are protected.
    fn guards(&self, flows: &FlowSet) -> bool {
        flows.iter().any(|flow| self.plan.flows[*flow].protected)
    }

    /// What units of ingress tell keys apart by.
    fn keys(&self, frame: &[u8]) -> Arc<[u32]> {
        if !self.ingress.iter().any(|unit| unit.key().is_some()) {
            return Arc::default();
        }
        let hash = |unit: &Unit| unit.key().map_or(0, |key| key.hash(&self.library, frame));
        self.ingress.iter().map(hash).collect()
    }

    /// The flows whose filters a packet with these values passes: their plain meaning.
    fn flows(&self, values: &FieldValues) -> FlowSet {
        let asked = Asked {
            fields: self
                .fields
                .iter()
                .map(|field| values.value(field).cloned())
                .collect(),
            protocols: self
                .library
                .protocols()
                .iter()
                .map(|protocol| values.has_protocol(&protocol.filter))
                .collect(),
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flows) = seen.get(&asked) {
            return flows.clone();
        }
        let flows = self.plan.flows.iter();
        let flows = flows.filter(|flow| flow.filter.matches(values));
        let flows: FlowSet = flows.map(|flow| flow.index).collect();
        if seen.len() == MAX_SEEN {
            seen.clear();
        }
        seen.insert(asked, flows.clone());
        flows
    }

    /// Whether no unit would ever look at such a frame.
    #[must_use]
    pub fn ignores(&self, frame: &Classified) -> bool {
        let idle = |units: &[Unit], flows: &FlowSet| {
            let met = |unit: &Unit| flows.iter().any(|flow| unit.of_flow.contains_key(flow));
            !units.iter().any(met)
        };
        idle(&self.ingress, &frame.ingress)
            && frame
                .exits
                .iter()
                .all(|(_, flows)| idle(&self.egress, flows))
    }

    /// Takes a frame through both pipelines while an epoch is in force.
    pub fn pass(&self, state: &mut State, frame: &Classified, epoch: u16) -> Passage {
        let ingress = self.judge(&self.ingress, state, &frame.ingress, epoch, frame);
        let mut exits: Vec<(u32, Vec<Verdict>)> = frame
            .exits
            .iter()
            .map(|(port, _)| (*port, Vec::new()))
            .collect();
        for _ in 0..ingress.fate.copies {
            for ((_, copies), (_, flows)) in exits.iter_mut().zip(&frame.exits) {
                copies.push(self.judge(&self.egress, state, flows, epoch, frame));
            }
        }
        Passage { ingress, exits }
    }

    /// All units of ingress, in declared order, with what each did to a packet.
    pub fn ingress_acts<'e>(&'e self, verdict: &'e Verdict) -> impl Iterator<Item = Act<'e>> {
        acts(&self.ingress, verdict)
    }

    /// All units of egress.
    pub fn egress_acts<'e>(&'e self, verdict: &'e Verdict) -> impl Iterator<Item = Act<'e>> {
        acts(&self.egress, verdict)
    }

    /// What leaves of a frame that some units fired on, each with the word that it drew; `None` if it is as it came.
    #[must_use]
    pub fn rewritten<'e>(
        &self,
        frame: Recorded<'_>,
        fired: impl Iterator<Item = (&'e Effect, u32)>,
    ) -> Option<Rewritten> {
        let mut changed: Option<Rewritten> = None;
        let mut leaves = u32::MAX;
        for (effect, w) in fired.filter(|(effect, _)| effect.changes()) {
            let changed = changed.get_or_insert_with(|| Rewritten {
                bytes: frame.bytes.to_vec(),
                wire_len: frame.wire_len,
            });
            effect.change(&self.library, w, &mut changed.bytes);
            leaves = leaves.min(effect.leaves().map_or(u32::MAX, u32::from));
        }
        // Headers are read whole and written before the packet is cut.
        if let Some(changed) = &mut changed {
            changed.wire_len = changed.wire_len.min(leaves);
            changed.bytes.truncate(leaves as usize);
        }
        changed.filter(|changed| changed.bytes != frame.bytes || changed.wire_len != frame.wire_len)
    }

    fn paces(&self) -> bool {
        let mut units = self.ingress.iter();
        units.any(|unit| unit.effect.pace().is_some())
    }

    /// Whether any unit changes bytes.
    #[must_use]
    pub fn rewrites(&self) -> bool {
        let mut units = self.ingress.iter();
        units.any(|unit| unit.effect.changes())
    }

    /// What leaves of a frame with this verdict in ingress; `None` if it is as it came.
    #[must_use]
    pub fn leaves_as(&self, verdict: &Verdict, frame: Recorded<'_>) -> Option<Rewritten> {
        let fired = self.ingress_acts(verdict).filter(|act| act.hit);
        self.rewritten(frame, fired.map(|act| (act.effect, act.w)))
    }

    /// The shortest that any unit holds a packet on purpose, in the middle of what it draws; `None` if none does.
    #[must_use]
    pub fn shortest_hold_ns(&self) -> Option<u64> {
        let holding = self.ingress.iter();
        let holding = holding.filter(|unit| unit.effect.longest_hold_ns() > 0);
        let holding = holding.map(|unit| unit.effect.hold_ns(MEDIAN));
        holding.filter(|hold_ns| *hold_ns > 0).min()
    }

    fn judge(
        &self,
        units: &[Unit],
        state: &mut State,
        flows: &FlowSet,
        epoch: u16,
        frame: &Classified,
    ) -> Verdict {
        let mut verdict = Verdict::untouched();
        let mut fired: Vec<(&Unit, usize, u32)> = Vec::new();
        let mut waits_ns: u64 = 0;
        let is_guarded = self.guards(flows);
        for (number, unit) in units.iter().enumerate() {
            let Some(entry) = unit.entry(flows, epoch).filter(|_| !is_guarded) else {
                continue;
            };
            verdict.met.push(entry.injection);
            let cell = &mut state.cells[entry.cell];
            let draws_words = unit.effect.draws();
            // It is drawn whether the unit fires or not.
            let w = match (draws_words, unit.effect.distance()) {
                (true, _) => self.draws.words(entry.key, cell.turn).w,
                (false, Some(_)) => {
                    let passed_ns = frame.passed_ns.get(number).copied().unwrap_or(u64::MAX);
                    u32::try_from(passed_ns.saturating_sub(frame.at_ns)).unwrap_or(u32::MAX)
                }
                (false, None) => 0,
            };
            verdict.drawn.push(w);
            let hash = frame.keys.get(number).copied().unwrap_or(0);
            let words = unit
                .selection
                .take(&self.draws, entry.key, hash, draws_words, cell);
            if words.is_some() {
                verdict.hits.push(entry.injection);
                let at_ns = frame.at_ns;
                let mut w = w;
                if let Some(pace) = unit.effect.pace() {
                    let free_ns = &mut state.due_ns[entry.cell];
                    let wait_ns = free_ns.saturating_sub(at_ns);
                    let wait_ns = wait_ns.saturating_add(pace.cost_ns(frame.bytes));
                    let is_over = match frame.seen_to_leave {
                        Some(left) if wait_ns.abs_diff(pace.most_ns) <= CLOCK_NS => !left,
                        _ => wait_ns > pace.most_ns,
                    };
                    if is_over {
                        w = OVER;
                        verdict.drawn.pop();
                        verdict.drawn.push(w);
                    } else {
                        *free_ns = at_ns.saturating_add(wait_ns);
                        waits_ns = waits_ns.saturating_add(if pace.holds { wait_ns } else { 0 });
                    }
                }
                fired.push((unit, entry.injection, w));
                if unit.effect.keeps_order() {
                    let due_ns = at_ns.saturating_add(unit.effect.hold_ns(w));
                    let last_ns = &mut state.due_ns[entry.cell];
                    waits_ns = waits_ns.saturating_add(last_ns.saturating_sub(due_ns));
                    *last_ns = due_ns.max(*last_ns);
                }
            }
        }
        verdict.fate = Fate::after(fired.iter().map(|(unit, _, w)| (&unit.effect, *w)));
        if !verdict.fate.is_dropped() {
            verdict.fate.delay_ns = verdict.fate.delay_ns.saturating_add(waits_ns);
        }
        if verdict.fate.is_dropped() {
            let hidden = fired.iter();
            let hides_itself = |unit: &Unit, w: u32| unit.effect.pace().is_some() && w == OVER;
            let hidden = hidden
                .filter(|(unit, _, w)| unit.effect.is_overridden() && !hides_itself(unit, *w));
            verdict.overridden = hidden.map(|(_, injection, _)| *injection).collect();
        }
        verdict
    }

    /// The ports that the forwarding entries name for a frame that came in by a port.
    fn exits(&self, frame: &[u8], port: u32) -> Vec<u32> {
        let mut wire = self
            .plan
            .entries
            .iter()
            .filter(|entry| entry.table == forward::WIRE);
        let came_by = Match::exact(u128::from(port));
        if let Some(entry) = wire.find(|entry| entry.key.iter().any(|key| key.value == came_by)) {
            let leads_to = entry
                .action
                .params
                .first()
                .and_then(|(_, value)| value.to());
            return leads_to.into_iter().collect();
        }
        let Some(destination) = frame.get(..6) else {
            return Vec::new();
        };
        let destination = destination
            .iter()
            .fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
        let is_for = |entry: &&p4lang::runtime::TableEntry| {
            let mut key = entry.key.iter();
            entry.table == forward::TABLE && key.any(|key| key.value == Match::exact(destination))
        };
        let Some(action) = self.plan.entries.iter().find(is_for).map(|e| &e.action) else {
            return Vec::new();
        };
        let Some((_, value)) = action.params.first() else {
            return Vec::new();
        };
        if action.name != forward::MULTICAST {
            return value.to().into_iter().collect();
        }
        let mut groups = self.plan.groups.iter();
        let group = groups.find(|group| *value == u128::from(group.id));
        group
            .map(|group| group.replicas.iter().map(|replica| replica.port).collect())
            .unwrap_or_default()
    }
}

fn acts<'e>(units: &'e [Unit], verdict: &'e Verdict) -> impl Iterator<Item = Act<'e>> {
    units.iter().filter_map(|unit| {
        let (first, last) = (unit.entries.first()?, unit.entries.last()?);
        // A unit's injections stand in the plan's order.
        let own = first.injection..=last.injection;
        let mut met = verdict
            .met
            .iter()
            .copied()
            .filter(|injection| own.contains(injection));
        let met = met.find(|injection| {
            let entries = &unit.entries;
            entries
                .binary_search_by_key(injection, |entry| entry.injection)
                .is_ok()
        });
        let injection = met.unwrap_or(first.injection);
        Some(Act {
            injection,
            effect: &unit.effect,
            met: met.is_some(),
            hit: verdict.hits.contains(&injection),
            w: verdict.drawn_by(injection),
        })
    })
}

impl Unit {
    fn new<'p>(
        scenario: &Scenario,
        plan: &Plan,
        planned: &SwitchPlan,
        fault: &str,
        injections: impl Iterator<Item = (usize, &'p Injection)>,
        cells: &mut Vec<Cell>,
    ) -> Option<Unit> {
        let fault = scenario.faults.iter().find(|other| other.id == fault)?;
        let mut unit = Unit {
            effect: fault.effect.clone(),
            // What the switch can hold of it.
            selection: fault.selection.rounded(plan.draw_bits).ok()?,
            entries: Vec::new(),
            of_flow: BTreeMap::new(),
        };
        let positions = planned.positions();
        // A fault that never fires has no entries.
        let injections = injections.filter(|_| fault.selection != Selection::Never);
        for (index, injection) in injections {
            let flow = &scenario.flows[*fault.flows.get(injection.cell)?];
            let position = *positions.get(injection.flow.as_str())?;
            unit.of_flow.entry(position).or_insert(unit.entries.len());
            unit.entries.push(Entry {
                epochs: fault.epochs.clone(),
                injection: index,
                key: decision::key(fault.key, flow.key),
                cell: cells.len(),
            });
            cells.push(Cell::default());
        }
        Some(unit)
    }

    /// What tells packets apart that it selects by their key.
    fn key(&self) -> Option<&PacketKey> {
        match &self.selection {
            Selection::Share(share) => Some(&share.key),
            _ => None,
        }
    }

    fn entry(&self, flows: &FlowSet, epoch: u16) -> Option<&Entry> {
        let entries = flows.iter().filter_map(|flow| self.of_flow.get(flow));
        let entry = &self.entries[*entries.min()?];
        let is_armed = entry.epochs.iter().any(|range| range.contains(&epoch));
        is_armed.then_some(entry)
    }
}
