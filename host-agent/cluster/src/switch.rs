//! What stands between workers and server.

use std::fmt;

use wire::{Flags, Kind, Packet};

use crate::Node;
use aggregation::job::{CellIndex, ChunkId, Job, JobConfig, JobError, WorkerId, WorkerSet};
use aggregation::server::Part;
use aggregation::slot::{CellView, SlotTable};

/// A cell's content, as a switch of any make can tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellState {
    /// The chunk that owns the cell.
    pub owner: ChunkId,
    /// Who contributed.
    pub contributors: WorkerSet,
    /// The ORed flags; only `NON_FINITE` is kept.
    pub flags: u8,
    /// The largest `next_scale`.
    pub next_scale: u8,
    /// The sums.
    pub values: Vec<i32>,
}

impl From<CellView<'_>> for CellState {
    fn from(cell: CellView<'_>) -> Self {
        Self {
            owner: cell.owner,
            contributors: cell.contributors,
            flags: cell.flags.bits(),
            next_scale: cell.next_scale,
            values: cell.values.to_vec(),
        }
    }
}

/// A switch, as the cluster sees it.
pub trait SwitchModel {
    /// Takes a frame in, from the aggregation header on, and appends what it sends.
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>);

    /// What a cell holds, counted from the job's base; `None` where there is no such cell.
    fn cell(&self, cell: CellIndex) -> Option<CellState>;

    /// Is told of other parts to sum; one that sums none does not mind.
    fn replan(&mut self, _parts: &[Part]) {}
}

impl<S: SwitchModel + ?Sized> SwitchModel for Box<S> {
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        (**self).handle(now_ns, from, payload, out);
    }

    fn cell(&self, cell: CellIndex) -> Option<CellState> {
        (**self).cell(cell)
    }

    fn replan(&mut self, parts: &[Part]) {
        (**self).replan(parts);
    }
}

/// A switch that knows nothing of aggregation: the server sums.
#[derive(Debug, Clone)]
pub struct Forwarder {
    job: Job,
}

impl Forwarder {
    /// Forwards a job's frames.
    pub fn new(job: Job) -> Self {
        Self { job }
    }

    /// Sends a frame on to whom its header names.
    fn forward(&self, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        let Ok(packet) = Packet::new_checked(payload) else {
            return;
        };
        match (from, packet.kind()) {
            (Node::Worker(_), Kind::Update | Kind::Sum) => {
                out.push((Node::Server, payload.to_vec()))
            }
            (Node::Server, Kind::Result) if packet.worker() == wire::ALL_WORKERS => {
                let everyone = self.job.everyone().iter();
                out.extend(everyone.map(|worker| (Node::Worker(worker), payload.to_vec())));
            }
            (Node::Server, Kind::Result) => {
                let worker = WorkerId(packet.worker());
                if self.job.everyone().contains(worker) {
                    out.push((Node::Worker(worker), payload.to_vec()));
                }
            }
            _ => {}
        }
    }
}

impl SwitchModel for Forwarder {
    fn handle(&mut self, _now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        self.forward(from, payload, out);
    }

    fn cell(&self, _cell: CellIndex) -> Option<CellState> {
        None
    }
}

/// A switch with the reference slots.
#[derive(Debug, Clone)]
pub struct SlotSwitch {
    forwarder: Forwarder,
    slots: SlotTable,
}

impl SlotSwitch {
    /// Admits a job.
    pub fn new(job: Job) -> Self {
        Self {
            forwarder: Forwarder::new(job),
            slots: SlotTable::new(job),
        }
    }
}

impl SwitchModel for SlotSwitch {
    fn handle(&mut self, _now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        let Node::Worker(port) = from else {
            self.forwarder.forward(from, payload, out);
            return;
        };
        let Ok(packet) = Packet::new_checked(payload) else {
            return;
        };
        // Nobody speaks for another port's worker.
        if packet.kind() != Kind::Update || packet.worker() != port.0 {
            return;
        }
        // Who asks is answered.
        let to = match packet.flags().contains(Flags::PROBE) {
            true => from,
            false => Node::Server,
        };
        let outcome = self.slots.update(&packet);
        let mut sum = payload.to_vec();
        let mut packet = Packet::new_unchecked(&mut sum[..]);
        if self.slots.make_sum(outcome, &mut packet) {
            out.push((to, sum));
        }
    }

    fn cell(&self, cell: CellIndex) -> Option<CellState> {
        Some(self.slots.cell(cell)?.into())
    }
}

/// Switches that sum a part of a job each ([`Part`]), and the reference slots in all of them.
#[derive(Debug, Clone)]
pub struct PartSwitches {
    job: JobConfig,
    forwarder: Forwarder,
    parts: Vec<(Part, SlotTable)>,
    /// Of switches that are told nothing any more, and go on.
    cut_off: Vec<(Part, SlotTable)>,
}

impl PartSwitches {
    /// Admits the parts of a job. Each has a number, and slots, of its own.
    pub fn new(job: JobConfig, parts: &[Part]) -> Result<Self, JobError> {
        let slots = |part: &Part| Ok((part.clone(), SlotTable::new(job_of(job, part)?)));
        Ok(Self {
            job,
            forwarder: Forwarder::new(Job::new(job)?),
            parts: parts.iter().map(slots).collect::<Result<_, JobError>>()?,
            cut_off: Vec::new(),
        })
    }
}

/// A part as the job that its switch knows.
fn job_of(job: JobConfig, part: &Part) -> Result<Job, JobError> {
    Job::under_one_switch(JobConfig {
        job: part.number,
        workers: part.workers.len() as u16,
        ..job
    })
}

impl SwitchModel for PartSwitches {
    fn handle(&mut self, _now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        let (Ok(packet), Node::Worker(rank)) = (Packet::new_checked(payload), from) else {
            self.forwarder.forward(from, payload, out);
            return;
        };
        let mut parts = self.parts.iter_mut().chain(&mut self.cut_off);
        let Some((part, slots)) = parts.find(|(part, _)| part.number.0 == packet.job()) else {
            self.forwarder.forward(from, payload, out);
            return;
        };
        // Nobody speaks for another port's worker.
        if part.workers.get(usize::from(packet.worker())) != Some(&rank) {
            return;
        }
        let outcome = slots.update(&packet);
        let mut sum = payload.to_vec();
        if slots.make_sum(outcome, &mut Packet::new_unchecked(&mut sum[..])) {
            out.push((Node::Server, sum));
        }
    }

    fn cell(&self, _cell: CellIndex) -> Option<CellState> {
        None
    }

    /// The first part's switch cannot be told, and goes on. Of the others' cells a part gets those of one before, with all that
    /// is in them.
    fn replan(&mut self, parts: &[Part]) {
        let mut before = std::mem::take(&mut self.parts).into_iter();
        self.cut_off.extend(before.next());
        for part in parts {
            let Ok(job) = job_of(self.job, part) else {
                continue;
            };
            let slots = match before.next() {
                Some((_, slots)) => slots.handed_to(job),
                None => SlotTable::new(job),
            };
            self.parts.push((part.clone(), slots));
        }
    }
}

/// Two switches, given the same frames. What the first sends is sent; where the second differs, in
/// frames or in the cell that the frame names, that is a mismatch.
#[derive(Debug, Clone)]
pub struct Compare<A, B> {
    job: Job,
    /// The one whose frames are used.
    pub first: A,
    /// The one that is compared.
    pub second: B,
    /// Packets compared.
    pub compared: u64,
    /// The first differences, at most [`Self::MAX_MISMATCHES`].
    pub mismatches: Vec<Mismatch>,
}

/// A difference between two switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// When.
    pub now_ns: u64,
    /// Who sent the frame after which they differed.
    pub from: Node,
    /// The frame.
    pub payload: Vec<u8>,
    /// What differed, and how.
    pub what: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "at {} ns, after a frame of {:?}: {}",
            self.now_ns, self.from, self.what
        )
    }
}

impl<A, B> Compare<A, B> {
    /// How many differences are kept.
    pub const MAX_MISMATCHES: usize = 16;

    /// Compares `second` with `first`.
    pub fn new(job: Job, first: A, second: B) -> Self {
        Self {
            job,
            first,
            second,
            compared: 0,
            mismatches: Vec::new(),
        }
    }
}

impl<A: SwitchModel, B: SwitchModel> SwitchModel for Compare<A, B> {
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        let before = out.len();
        self.first.handle(now_ns, from, payload, out);
        let mut other = Vec::new();
        self.second.handle(now_ns, from, payload, &mut other);
        // The order among the copies of a multicast is nobody's promise.
        let mut sent = out[before..].to_vec();
        sent.sort();
        other.sort();
        self.compared += 1;

        let mut differ = Vec::new();
        if sent != other {
            differ.push(format!("frames {sent:02x?} and {other:02x?}"));
        }
        if let Ok(packet) = Packet::new_checked(payload) {
            let cell = self.job.cell(ChunkId(packet.chunk()));
            let cells = [self.first.cell(cell), self.second.cell(cell)].map(|state| {
                // What a cell without contributors holds means nothing.
                state.filter(|state| !state.contributors.is_empty())
            });
            if cells[0] != cells[1] {
                differ.push(format!(
                    "cell {}: {:?} and {:?}",
                    cell.0, cells[0], cells[1]
                ));
            }
        }
        for what in differ {
            if self.mismatches.len() < Self::MAX_MISMATCHES {
                self.mismatches.push(Mismatch {
                    now_ns,
                    from,
                    payload: payload.to_vec(),
                    what,
                });
            }
        }
    }

    fn cell(&self, cell: CellIndex) -> Option<CellState> {
        self.first.cell(cell)
    }
}
