//! Models of the switch between workers and server: one that only forwards, one that sums, and a comparison of two models.

use std::fmt;

use wire::{Flags, Kind, Packet};

use crate::Node;
use aggregation::job::{CellIndex, ChunkId, Job, JobConfig, JobError, WorkerId, WorkerSet};
use aggregation::server::Part;
use aggregation::slot::{CellView, SlotTable};

/// Content of a cell (where a switch sums one chunk), in a form that any model of a switch can provide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellState {
    /// Number of the chunk whose contributions the cell sums.
    pub owner: ChunkId,
    /// Workers whose values the sums contain.
    pub contributors: WorkerSet,
    /// Union of the flags of all contributions; a cell keeps only `NON_FINITE`.
    pub flags: u8,
    /// Largest `next_scale` of all contributions: the exponent that a worker requests for the chunk one window later.
    pub next_scale: u8,
    /// Sum of each value of the chunk.
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

/// A model of the switch between the workers and the server.
pub trait SwitchModel {
    /// Processes a frame from a node (its bytes from the aggregation header on), and appends the frames to send to `out`.
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>);

    /// Content of the cell (where the switch sums one chunk) with this index; `None` if the switch has no such cell.
    fn cell(&self, cell: CellIndex) -> Option<CellState>;

    /// Changes the parts (groups of workers) that switches sum. A switch that sums no parts ignores the change.
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

/// A switch that only forwards frames: the server sums.
#[derive(Debug, Clone)]
pub struct Forwarder {
    job: Job,
}

impl Forwarder {
    /// Creates a switch that forwards the frames of this job.
    pub fn new(job: Job) -> Self {
        Self { job }
    }

    /// Forwards a frame to the node that its aggregation header names.
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

/// A switch that sums with the reference implementation of slots (where a switch sums chunks).
#[derive(Debug, Clone)]
pub struct SlotSwitch {
    forwarder: Forwarder,
    slots: SlotTable,
}

impl SlotSwitch {
    /// Creates a switch that sums the updates of this job.
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
        // A worker may only use its own port.
        if packet.kind() != Kind::Update || packet.worker() != port.0 {
            return;
        }
        // A probe is answered to its sender.
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

/// Several switches, each of which sums one part of a job (a group of workers), with the reference implementation.
#[derive(Debug, Clone)]
pub struct PartSwitches {
    job: JobConfig,
    forwarder: Forwarder,
    parts: Vec<(Part, SlotTable)>,
    /// Old parts, with the slots of their switches: these switches no longer learn of new parts, but still sum.
    cut_off: Vec<(Part, SlotTable)>,
}

impl PartSwitches {
    /// Creates one switch for each part of the job. Each part has its own job number and its own slots.
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

/// The job as the switch of a part sees it: only the part's workers.
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
        // A worker may only use its own port.
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

    /// Changes the parts. The switch of the first old part is cut off: it does not learn the new parts, and still sums its own.
    /// The switches of the other old parts sum the new parts, and keep the content of their cells.
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

/// Two models of a switch that get the same frames; only the first model's frames are sent. If the models send different
/// frames, or the cell of a frame's chunk differs, that is recorded as a mismatch.
#[derive(Debug, Clone)]
pub struct Compare<A, B> {
    job: Job,
    /// The model whose frames are sent.
    pub first: A,
    /// The model that is compared with the first.
    pub second: B,
    /// Number of received frames for which both models were compared.
    pub compared: u64,
    /// The first mismatches of the models, at most [`Self::MAX_MISMATCHES`].
    pub mismatches: Vec<Mismatch>,
}

/// A difference between two models of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Virtual time at which the results differed, in nanoseconds.
    pub now_ns: u64,
    /// Node that sent the frame that revealed the difference.
    pub from: Node,
    /// The frame that revealed the difference, from the aggregation header on.
    pub payload: Vec<u8>,
    /// Text that describes the difference.
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
    /// Maximum number of mismatches that a comparison keeps.
    pub const MAX_MISMATCHES: usize = 16;

    /// Creates a comparison of the model `second` with `first`.
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
        // The order of a multicast's copies is not defined.
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
                // The content of a cell without contributors is undefined.
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
