//! Simulates single gradient fragments through switches that hold few sums. Their order decides how many links they cross.
//!
//! A worker's gradient consists of fragments, one per piece. With a plan, a switch holds a sum until the fragments of all its
//! members have arrived. First come, first served, as in ATP (Lao et al., NSDI 2021), a fragment takes a free slot and is
//! summed with later ones. A fragment that finds all slots taken by other pieces is forwarded, and later sums of its piece may
//! then never be complete. Once all workers have sent, switches send their incomplete sums, the farthest from the server first.
//!
//! Time is the order of arrival: a fragment and its effects are processed before the next one is sent.

use std::collections::{BTreeMap, BTreeSet};

use super::{Job, JobError, Plan};
use crate::network::{Arc, Network, NodeId};
use crate::routing::{Path, Routing};

/// Event of the simulation: a worker sends its fragment of one piece of the gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Send {
    /// Rank of the worker.
    pub worker: usize,
    /// Index of the piece of the gradient.
    pub piece: usize,
}

/// Traffic that a simulation counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Passed {
    /// Number of fragments on each arc.
    pub links: BTreeMap<Arc, u64>,
    /// Number of fragments that the server received.
    pub at_server: u64,
    /// For each fragment that the server received, in order: the index of the worker's send because of which it came; the
    /// number of sends if a switch sent its incomplete sum at the end.
    pub brought_by: Vec<usize>,
}

impl Passed {
    fn way(&mut self, way: &[Arc]) {
        for arc in way {
            *self.links.entry(*arc).or_default() += 1;
        }
    }

    fn reaches_server(&mut self, by: usize) {
        self.at_server += 1;
        self.brought_by.push(by);
    }

    /// Number of fragments on all links that lead away from switches. The traffic of workers does not depend on sums.
    #[must_use]
    pub fn between_switches(&self, network: &Network) -> u64 {
        let from_switches = self.links.iter();
        let from_switches =
            from_switches.filter(|(arc, _)| network.switch(network.ends(**arc).0).is_some());
        from_switches.map(|(_, count)| count).sum()
    }
}

/// Simulates a plan: each fragment is summed at the node that the plan assigns.
#[must_use]
pub fn planned(plan: &Plan, sends: &[Send]) -> Passed {
    let mut summed = BTreeMap::new();
    for (number, part) in plan.parts.iter().enumerate() {
        for member in &part.members {
            let place = (part.piece, member.worker);
            summed.entry(place).or_insert((number, part, member));
        }
    }
    let mut passed = Passed::default();
    let mut held: BTreeMap<usize, usize> = BTreeMap::new();
    for (place, send) in sends.iter().enumerate() {
        let Some(&(number, part, member)) = summed.get(&(send.piece, send.worker)) else {
            continue;
        };
        passed.way(&member.route);
        if part.up.is_empty() {
            passed.reaches_server(place);
            continue;
        }
        let held = held.entry(number).or_default();
        *held += 1;
        if *held == part.members.len() {
            passed.way(&part.up);
            passed.reaches_server(place);
        }
    }
    passed
}

/// Reaction of a switch to a fragment for which it has no slot, because other pieces have taken all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collision {
    /// The switch forwards the fragment unsummed (ATP).
    Passes,
    /// The switch sends the oldest sum incomplete, and gives its slot to the fragment (ESA among fragments of equal priority).
    Evicts,
}

/// Simulates first come, first served, without a plan: each programmable switch on a path has `slots` slots, one per sum.
pub fn first_come(
    network: &Network,
    job: &Job,
    routing: &Routing<'_>,
    slots: usize,
    sends: &[Send],
) -> Result<Passed, JobError> {
    let alike = |_| slots;
    by_slots(network, job, routing, (&alike, Collision::Passes), sends)
}

/// Simulates as [`first_come`] does, with the given number of slots for each switch, and the given reaction if all are taken.
pub fn by_slots(
    network: &Network,
    job: &Job,
    routing: &Routing<'_>,
    (slots, collision): (&dyn Fn(NodeId) -> usize, Collision),
    sends: &[Send],
) -> Result<Passed, JobError> {
    let server = job.server()?.host;
    let no_way = |from: NodeId| job.no_way(network, from, server);
    let ways = job.workers.iter();
    let ways = ways.map(|worker| routing.path(*worker, server).map_err(|_| no_way(*worker)));
    let ways: Vec<Path> = ways.collect::<Result<_, _>>()?;
    let mut switches: BTreeMap<NodeId, SlotSwitch> = BTreeMap::new();
    for (worker, way) in ways.iter().enumerate() {
        for (place, arc) in way.iter().enumerate() {
            let at = network.ends(*arc).0;
            if network.switch(at).is_some_and(|switch| switch.programmable) {
                let switch = switches.entry(at).or_insert_with(|| SlotSwitch {
                    slots: slots(at),
                    up: way[place..].to_vec(),
                    below: BTreeSet::new(),
                    held: BTreeMap::new(),
                    begun: 0,
                });
                switch.below.insert(worker);
            }
        }
    }
    let mut run = Simulation {
        network,
        collision,
        now: 0,
        switches,
        passed: Passed::default(),
    };
    for (place, send) in sends.iter().enumerate() {
        run.now = place;
        if let Some(way) = ways.get(send.worker) {
            run.send(way.clone(), send.piece, BTreeSet::from([send.worker]));
        }
    }
    run.now = sends.len();
    run.finish();
    Ok(run.passed)
}

struct SlotSwitch {
    /// Maximum number of sums that the switch holds at a time.
    slots: usize,
    /// Path from the switch to the server.
    up: Path,
    /// Workers whose paths to the server cross the switch.
    below: BTreeSet<usize>,
    /// For each piece of the gradient that the switch is summing: the sum's serial number, and the workers summed so far.
    held: BTreeMap<usize, (usize, BTreeSet<usize>)>,
    /// Number of sums that the switch has begun.
    begun: usize,
}

struct Simulation<'n> {
    network: &'n Network,
    collision: Collision,
    /// Index of the send that is simulated.
    now: usize,
    switches: BTreeMap<NodeId, SlotSwitch>,
    passed: Passed,
}

impl Simulation<'_> {
    /// Sends a fragment, the sum over the workers `of`, along a path until a switch holds it or the server receives it.
    fn send(&mut self, way: Path, piece: usize, of: BTreeSet<usize>) {
        let mut of = of;
        for arc in way {
            self.passed.way(&[arc]);
            let at = self.network.ends(arc).1;
            let Some(switch) = self.switches.get_mut(&at) else {
                continue;
            };
            let has_room = switch.held.len() < switch.slots;
            let mut evicted = None;
            if !switch.held.contains_key(&piece) && !has_room {
                let oldest = switch.held.iter().min_by_key(|(_, (begun, _))| *begun);
                match (self.collision, oldest) {
                    (Collision::Evicts, Some((oldest, _))) => evicted = Some(*oldest),
                    _ => continue,
                }
            }
            let evicted = evicted.and_then(|piece| Some((piece, switch.held.remove(&piece)?.1)));
            let begun = switch.begun;
            let held = switch.held.entry(piece).or_insert_with(|| {
                switch.begun += 1;
                (begun, BTreeSet::new())
            });
            held.1.append(&mut of);
            let is_whole = held.1 == switch.below;
            if is_whole {
                of = switch
                    .held
                    .remove(&piece)
                    .map_or(BTreeSet::new(), |(_, of)| of);
            }
            if let Some((piece, of)) = evicted {
                let up = switch.up.clone();
                self.send(up, piece, of);
            }
            if !is_whole {
                return;
            }
        }
        self.passed.reaches_server(self.now);
    }

    /// Sends the incomplete sums of all switches to the server.
    fn finish(&mut self) {
        let mut order: Vec<NodeId> = self.switches.keys().copied().collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.switches[at].up.len()));
        for at in order {
            let Some(switch) = self.switches.get_mut(&at) else {
                continue;
            };
            let (up, held) = (switch.up.clone(), std::mem::take(&mut switch.held));
            for (piece, (_, of)) in held {
                self.send(up.clone(), piece, of);
            }
        }
    }
}
