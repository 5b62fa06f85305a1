//! Models of the switch between workers and server.

use std::fmt;

use wire::{Flags, Kind, Packet};

use crate::Node;
use aggregation::job::{CellIndex, ChunkId, Job, JobConfig, JobError, WorkerId, WorkerSet};
use aggregation::server::Part;
use aggregation::slot::{CellView, SlotTable};

/// Content of a cell, in a form that any switch can provide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellState {
    /// The chunk that owns the cell.
    pub owner: ChunkId,
    /// Contributors.
    pub contributors: WorkerSet,
    /// The ORed flags; a cell keeps only `NON_FINITE`.
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

/// A switch in the cluster.
pub trait SwitchModel {
    /// Processes a frame, from the aggregation header on, and appends outgoing frames to `out`.
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>);

    /// Content of a cell, counted from the job's base; `None` if there is no such cell.
    fn cell(&self, cell: CellIndex) -> Option<CellState>;

    /// Installs a new plan of parts; ignored by a switch that sums none.
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

/// A switch without aggregation: the server sums.
#[derive(Debug, Clone)]
pub struct Forwarder {
    job: Job,
}

impl Forwarder {
    /// A switch that forwards this job's frames.
    pub fn new(job: Job) -> Self {
        Self { job }
    }

    /// Forwards a frame to the node that its header names.
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

/// Switches that sum a part of a job each ([`Part`]), with the reference slots.
#[derive(Debug, Clone)]
pub struct PartSwitches {
    job: JobConfig,
    forwarder: Forwarder,
    parts: Vec<(Part, SlotTable)>,
    /// Parts of switches that no longer receive plans, but continue to sum.
    cut_off: Vec<(Part, SlotTable)>,
}

impl PartSwitches {
    /// Admits the parts of a job, each with its own number and slots.
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

/// The job that the switch of a part knows.
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

    /// The first part's switch is unreachable and continues with its old part. The new parts take over the other parts' cells
    /// with their content.
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

/// Two switches that process the same frames. The first switch's frames are sent; a difference of the second, in frames or in
/// the frame's cell, is a mismatch.
#[derive(Debug, Clone)]
pub struct Compare<A, B> {
    job: Job,
    /// The switch whose frames are sent.
    pub first: A,
    /// The switch that is compared.
    pub second: B,
    /// Number of packets compared.
    pub compared: u64,
    /// The first mismatches, at most [`Self::MAX_MISMATCHES`].
    pub mismatches: Vec<Mismatch>,
}

/// A difference between two switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Time of the difference.
    pub now_ns: u64,
    /// Sender of the frame that revealed it.
    pub from: Node,
    /// The frame.
    pub payload: Vec<u8>,
    /// Description of the difference.
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
    /// Maximum number of mismatches that are kept.
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
