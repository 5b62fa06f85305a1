//! All-reduce model for the model checker: ranks, and the switches between them.

mod bounds;
mod judge;
mod members;

use std::cell::RefCell;
use std::collections::BTreeMap;

use aggregation::job::{Job, JobConfig, JobId, TreePosition, WorkerId, WorkerSet};
use aggregation::rank::{Carry, Lateness, RankFrame};
use aggregation::{Destination, Mark, Retransmission};
use wire::{Flags, Kind, Packet};

use crate::model::{Act, Frame, Model, Outbox, Status, Wrong, orders_of_first, permutations};
use crate::rack::{Rack, Taken};
use crate::slots::{Rule, Switch};

pub use bounds::{AllReduceBounds, BoundsError, Deadline, Operation};
pub use members::RankMember;

/// A node of the all-reduce model.
#[derive(Debug, Clone)]
pub enum AllReduceNode {
    /// A rank of the job.
    Rank(Box<RankMember>),
    /// The switch, or the topmost switch of a tree.
    Switch(Switch),
    /// A rack's switch, below the topmost switch of a tree.
    Rack(Rack),
    /// A node outside the job that forges frames; `true` once it has sent them.
    Stranger(bool),
}

/// An all-reduce as a model for the model checker.
#[derive(Debug)]
pub struct AllReduce {
    bounds: AllReduceBounds,
    /// The job as the ranks know it. Its window differs from the switch's only in a model without [`Rule::Window`].
    job: Job,
    lateness: Option<Lateness>,
    switch: Switch,
    racks: Vec<Rack>,
    /// The bits of the first sums that any rank received, by operation index.
    sums: RefCell<BTreeMap<usize, Vec<u32>>>,
}

const NOW_NS: u64 = 0;
/// A time at which all timers are due, but ranks that do not answer are not declared dead yet.
const LATE_NS: u64 = 1 << 40;
const DEAD_AFTER_NS: u64 = u64::MAX;

/// Retransmission settings without a limit on timeouts, and without early retransmission.
pub(crate) const PATIENT: Retransmission = Retransmission {
    floor_ns: 1,
    granularity_ns: 0,
    initial_ns: 1,
    ceiling_ns: 1,
    max_timeouts: u32::MAX,
    max_closing_timeouts: 1,
    fast_threshold: 0,
    // The state leaves out the number of answers, so a rank asks after each one.
    ask_after: 1,
};

impl AllReduce {
    /// Creates the all-reduce model with these bounds.
    pub fn new(bounds: AllReduceBounds) -> Result<Self, BoundsError> {
        let config = |window| JobConfig {
            job: JobId(7),
            workers: u16::from(bounds.ranks),
            window,
            // One word per rank, in which only that rank contributes a value, so that a sum shows its contributors. Before them,
            // the first chunk of an operation has the digest, and other chunks have a zero.
            values_per_packet: u16::from(bounds.ranks) + 1,
            values_per_round: 0,
            first_chunk: bounds.first_chunk,
        };
        let ahead = match bounds.without {
            Some(Rule::Window) => 2,
            _ => 1,
        };
        let is_tree = bounds.racks > 1;
        let (children, of_slots) = match is_tree {
            true => (bounds.racks, None),
            false => (bounds.ranks, bounds.without),
        };
        let in_rack = bounds.ranks / bounds.racks;
        let answers = bounds.without == Some(Rule::Up);
        let racks = (0..if is_tree { bounds.racks } else { 0 })
            .map(|number| Rack::new(config(bounds.window), number, in_rack, answers));
        let job = Job::new(config(ahead * bounds.window))?;
        let has_deadlines = bounds.deadline.is_some();
        let lateness = bounds.deadline.map(|Deadline { quorum, keeps }| {
            let place = TreePosition::under_one_switch(&job, WorkerId(0));
            Lateness::new(&job, place, 0, u16::from(quorum), Carry::Drop)?.keeping(keeps)
        });
        Ok(Self {
            racks: racks.collect::<Result<_, _>>()?,
            job,
            lateness: lateness.transpose()?,
            switch: Switch::new(config(bounds.window), of_slots, children, has_deadlines)?,
            bounds,
            sums: RefCell::default(),
        })
    }

    /// The operation with this index; beyond the configured operations, one that uses every register cell.
    fn operation(&self, at: usize) -> Operation {
        let all_cells = || Operation::Integers(self.job.cells() as u8);
        self.bounds
            .operations
            .get(at)
            .cloned()
            .unwrap_or_else(all_cells)
    }

    fn others(&self, rank: u8) -> WorkerSet {
        let me = WorkerSet::only(WorkerId(u16::from(rank)));
        self.job.everyone().without(me)
    }

    fn is_tree(&self) -> bool {
        !self.racks.is_empty()
    }

    fn in_rack(&self) -> u8 {
        self.bounds.ranks / self.bounds.racks
    }

    /// Index of the node to which a rank sends its updates: the switch, or in a tree the switch of its rack.
    fn switch_of(&self, rank: u8) -> u8 {
        match self.is_tree() {
            true => self.bounds.ranks + 1 + rank / self.in_rack(),
            false => self.bounds.ranks,
        }
    }
}

impl Model for AllReduce {
    type Node = AllReduceNode;

    fn nodes(&self) -> Vec<AllReduceNode> {
        let ranks = (0..self.bounds.ranks).map(|id| {
            AllReduceNode::Rank(Box::new(RankMember {
                id,
                machine: self.rank(id),
                given: 0,
                done: 0,
                failed: false,
                crashed: false,
                taken: Vec::new(),
            }))
        });
        let switch = AllReduceNode::Switch(self.switch.clone());
        let stranger = self
            .bounds
            .stranger
            .then_some(AllReduceNode::Stranger(false));
        let racks = self.racks.iter().cloned().map(AllReduceNode::Rack);
        ranks.chain([switch]).chain(racks).chain(stranger).collect()
    }

    fn interchangeable(&self) -> usize {
        let is_alike = |operation: &Operation| match operation {
            Operation::Integers(_) => true,
            Operation::Floats(_, exponents) => exponents.iter().all(|e| *e == exponents[0]),
            Operation::NotFinite => false,
        };
        // The host of a chunk follows from the chunk's number.
        let is_special = self.bounds.stranger || self.bounds.hosts;
        match self.bounds.operations.iter().all(is_alike) && !is_special {
            true => usize::from(self.bounds.ranks),
            false => 0,
        }
    }

    /// Permutations of interchangeable nodes: ranks of a rack are interchangeable, and so are racks.
    fn orders(&self, nodes: u8) -> Vec<Vec<u8>> {
        let is_alike = self.interchangeable() > 0;
        if !self.is_tree() || !is_alike {
            let interchangeable = if self.is_tree() {
                0
            } else {
                self.interchangeable()
            };
            return orders_of_first(interchangeable as u8, nodes);
        }
        let first = self.bounds.ranks + 1;
        let size = self.in_rack();
        // For each rack an order of its ranks.
        let mut within = vec![Vec::new()];
        for _ in 0..self.bounds.racks {
            let longer = within.iter().flat_map(|orders: &Vec<Vec<u8>>| {
                let next = permutations(size).into_iter();
                next.map(|order| orders.iter().cloned().chain([order]).collect())
            });
            within = longer.collect();
        }
        let of_racks = permutations(self.bounds.racks).into_iter();
        let orders = of_racks.flat_map(|racks| {
            within
                .iter()
                .map(move |within| {
                    let rank = |rank: u8| {
                        let (rack, place) = (usize::from(rank / size), usize::from(rank % size));
                        racks[rack] * size + within[rack][place]
                    };
                    let ranks = (0..first - 1).map(rank);
                    let switches = racks.iter().map(|rack| first + rack);
                    ranks
                        .chain([first - 1])
                        .chain(switches)
                        .collect::<Vec<u8>>()
                })
                .collect::<Vec<Vec<u8>>>()
        });
        orders.collect()
    }

    fn state(&self, node: &AllReduceNode, out: &mut Vec<u8>) {
        match node {
            AllReduceNode::Rank(member) => {
                out.extend([member.given as u8, member.done as u8]);
                out.extend([u8::from(member.failed), u8::from(member.crashed)]);
                for contributors in member.taken.iter().flatten() {
                    out.extend(contributors.to_le_bytes());
                }
                // All crashed ranks have the same state.
                if !member.crashed {
                    member.machine.state(out);
                }
            }
            AllReduceNode::Switch(switch) => switch.state(out),
            AllReduceNode::Rack(rack) => rack.state(out),
            AllReduceNode::Stranger(spoken) => out.push(u8::from(*spoken)),
        }
    }

    fn status(&self, node: &AllReduceNode) -> Status {
        match node {
            AllReduceNode::Rank(member) if member.crashed => Status::Broken,
            AllReduceNode::Rank(member) if member.failed => Status::Done,
            AllReduceNode::Rank(member) if member.given < self.bounds.operations.len() => {
                Status::Wants
            }
            AllReduceNode::Rank(member) if member.done < member.given => Status::Works,
            AllReduceNode::Rank(_) => Status::Done,
            AllReduceNode::Switch(_) | AllReduceNode::Rack(_) | AllReduceNode::Stranger(_) => {
                Status::Serves
            }
        }
    }

    fn acts(&self, node: &AllReduceNode) -> Vec<Act> {
        let mut acts = Vec::new();
        match node {
            AllReduceNode::Rank(member) if member.crashed || member.failed => {}
            AllReduceNode::Rank(member) => {
                if member.given < self.bounds.operations.len() {
                    acts.push(Act::Submit);
                }
                if member.done < member.given && self.bounds.without != Some(Rule::Repeat) {
                    acts.push(Act::Timer);
                }
                if self.bounds.crashes {
                    acts.push(Act::Crash);
                }
            }
            AllReduceNode::Switch(switch) if switch.restarts < self.bounds.restarts => {
                acts.push(Act::Restart);
            }
            AllReduceNode::Rack(rack) if rack.restarts < self.bounds.restarts => {
                acts.push(Act::Restart)
            }
            AllReduceNode::Switch(_) | AllReduceNode::Rack(_) => {}
            AllReduceNode::Stranger(spoken) if !spoken => acts.push(Act::Submit),
            AllReduceNode::Stranger(_) => {}
        }
        acts
    }

    fn act(&self, node: &mut AllReduceNode, act: Act, out: &mut Outbox) {
        match (node, act) {
            (AllReduceNode::Rank(member), Act::Submit | Act::More) => {
                let values = self.values(member.given, Some(member.id));
                member.given += 1;
                if let Err(error) = member.machine.submit(values) {
                    out.wrong(Wrong::Unexpected(format!("rank {}: {error}", member.id)));
                }
                self.pump(member, WorkerSet::EMPTY, out);
            }
            (AllReduceNode::Rank(member), Act::Timer) => {
                // In a tree, a rank that is not the first of its rack sends again only after a longer wait; with deadlines, a
                // contributor that is not the first closes a chunk only then.
                let helps = self.is_tree() || self.lateness.is_some();
                for _ in 0..if helps { 2 } else { 1 } {
                    member.machine.handle_timeout(LATE_NS);
                    // A host also reports missing ranks to itself.
                    let may = match self.bounds.hosts {
                        true => self.others(member.id),
                        false => WorkerSet::EMPTY,
                    };
                    self.pump(member, may, out);
                }
            }
            (AllReduceNode::Rank(member), Act::Crash) => member.crashed = true,
            (AllReduceNode::Switch(switch), Act::Restart) => switch.restart(),
            (AllReduceNode::Rack(rack), Act::Restart) => rack.restart(),
            (AllReduceNode::Stranger(spoken), _) => {
                *spoken = true;
                for bytes in self.forged() {
                    let ranks = self.bounds.ranks;
                    out.send(ranks + 1, [ranks], Destination::All, &bytes);
                }
            }
            _ => {}
        }
    }

    fn deliver(&self, node: &mut AllReduceNode, frame: &Frame, out: &mut Outbox) {
        match node {
            AllReduceNode::Rank(member) if member.crashed || member.failed => {}
            AllReduceNode::Rank(member) => {
                let mut bytes = frame.bytes.clone();
                let mut packet = Packet::new_unchecked(&mut bytes[..]);
                match self.bounds.without {
                    // As if a rank had kept it.
                    Some(Rule::Kept) => packet.set_flags(packet.flags() | Flags::KEPT),
                    // As if the asking rank had not given its values to a host.
                    Some(Rule::Asked) if packet.kind() == Kind::Ask => {
                        packet.set_flags(packet.flags().with(Flags::AGAIN, false));
                    }
                    _ => {}
                }
                let received = member.machine.handle_packet(NOW_NS, Mark::None, &bytes);
                if received == RankFrame::Malformed {
                    let what = format!("rank {} calls this frame malformed", member.id);
                    out.wrong(Wrong::Unexpected(what));
                }
                let may = self.may_have_the_sum(member.id, frame);
                self.pump(member, may, out);
            }
            AllReduceNode::Switch(switch) => {
                let child = match self.is_tree() {
                    true => frame.from - self.bounds.ranks - 1,
                    false => frame.from,
                };
                let Some((sum, is_for_sender)) = switch.take(frame, child) else {
                    return;
                };
                let ranks = match frame.addressed {
                    _ if is_for_sender => frame.from..frame.from + 1,
                    Destination::All => 0..self.bounds.ranks,
                    Destination::Worker(rank) => rank.0 as u8..rank.0 as u8 + 1,
                    Destination::Server => 0..0,
                };
                let ranks = ranks.filter(|rank| self.bounds.cut != Some(*rank));
                out.send(self.bounds.ranks, ranks, frame.addressed, &sum);
            }
            AllReduceNode::Rack(rack) => {
                let me = self.bounds.ranks + 1 + rack.number;
                match rack.take(frame, frame.from % self.in_rack()) {
                    Taken::Up(bytes) => out.send(me, [self.bounds.ranks], frame.addressed, &bytes),
                    Taken::Back(bytes) => out.send(me, [frame.from], frame.addressed, &bytes),
                    Taken::Absorbed => {}
                }
            }
            AllReduceNode::Stranger(_) => {}
        }
    }

    fn mask(&self, frame: &mut Frame) -> Vec<Frame> {
        let packet = Packet::new_unchecked(&frame.bytes[..]);
        let (kind, is_probe) = (packet.kind(), packet.flags().contains(Flags::PROBE));
        if kind == Kind::Sum {
            // A receiver ignores the path of a SUM, and whether the switch or a rank that kept it has sent it.
            frame.addressed = Destination::All;
            // Except that a host's sum is not the switch's.
            let is_kept = packet.flags().contains(Flags::KEPT);
            if frame.from < self.bounds.ranks && !self.bounds.hosts && !is_kept {
                frame.from = self.bounds.ranks;
            }
        }
        let write = |frame: &mut Frame, transmission, again, worker| {
            let mut packet = Packet::new_unchecked(&mut frame.bytes[..]);
            packet.set_transmission(transmission);
            // In the answer to a probe, it shows whether the chunk is complete, and which rank has asked.
            let is_answer = matches!(kind, Kind::Sum | Kind::Given);
            if kind != Kind::Ask && (!is_answer || !is_probe) {
                packet.set_flags(packet.flags().with(Flags::AGAIN, again));
            }
            if kind == Kind::Sum && !is_probe {
                packet.set_worker(worker);
            }
        };
        write(frame, 0, false, 0);
        let last = u16::from(self.bounds.ranks) - 1;
        let variants = [(63, false, 0), (0, true, 0), (1, true, last)];
        let variants = variants.map(|(transmission, again, worker)| {
            let mut variant = frame.clone();
            write(&mut variant, transmission, again, worker);
            variant
        });
        variants.to_vec()
    }

    /// Whether a frame changes nothing, so that its delivery need not be explored. A switch's report of an incomplete chunk
    /// only makes a rank repeat earlier frames, or wait and ask other ranks. Their replies change nothing, either: that they
    /// are alive, or a sum that the switch has sent to all.
    fn is_idle(&self, frame: &Frame) -> bool {
        let Ok(packet) = Packet::new_checked(&frame.bytes[..]) else {
            return false;
        };
        let flags = packet.flags();
        // With deadlines, a switch's report may make a rank close the chunk, and only ranks send kept sums.
        if self.lateness.is_some() {
            return false;
        }
        match packet.kind() {
            // A rank that has given its values to a host makes others do so.
            Kind::Ask => !flags.contains(Flags::AGAIN),
            Kind::Here => true,
            Kind::Sum | Kind::Given => {
                flags.contains(Flags::PROBE) && !flags.contains(Flags::AGAIN)
            }
            Kind::Update | Kind::Result | Kind::Give | Kind::Differ => false,
        }
    }

    /// The error if ranks have sums of the same operation but of different contributors; `None` if they agree.
    fn disagree(&self, nodes: &[&AllReduceNode]) -> Option<Wrong> {
        let members = nodes.iter().filter_map(|node| match node {
            AllReduceNode::Rank(member) => Some(member),
            _ => None,
        });
        let mut known: Vec<&[u64]> = Vec::new();
        for member in members {
            for (at, taken) in member.taken.iter().enumerate() {
                if known.get(at).is_some_and(|known| known != taken) {
                    let what = format!(
                        "rank {} has sums of {taken:?} in operation {at}, where another has those of {:?}",
                        member.id, known[at]
                    );
                    return Some(Wrong::Sum(what));
                }
                if at == known.len() {
                    known.push(taken);
                }
            }
        }
        None
    }

    fn has_more(&self) -> bool {
        !self.bounds.operations.contains(&Operation::NotFinite)
    }

    fn name(&self, node: u8) -> String {
        match node.cmp(&self.bounds.ranks) {
            std::cmp::Ordering::Less => format!("rank {node}"),
            std::cmp::Ordering::Equal => "the switch".into(),
            std::cmp::Ordering::Greater if self.is_tree() => {
                format!("the switch of rack {}", node - self.bounds.ranks - 1)
            }
            std::cmp::Ordering::Greater => "a stranger".into(),
        }
    }

    fn describe(&self, node: &AllReduceNode) -> String {
        match node {
            AllReduceNode::Rank(member) => format!("{} of {} done", member.done, member.given),
            AllReduceNode::Switch(switch) => switch.describe(),
            AllReduceNode::Rack(rack) => rack.describe(),
            AllReduceNode::Stranger(_) => String::new(),
        }
    }
}
