//! Jobs in parts: several switches each sum a part of the workers, and the server sums the parts.
//!
//! Each part has its own job number on the wire, so that a switch sums its part and passes the frames of others on. At the
//! server, the sum of a part counts as the update of one *child*, and so does the update of a worker in no part.

use wire::{Flags, Kind, Packet};

use crate::job::{Job, JobId, WorkerId, WorkerSet};
use crate::slot::SlotTable;

/// A set of workers whose updates one switch sums for the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Job number on the wire of the workers' updates, and of the switch's sum of them.
    pub number: JobId,
    /// Ranks of the part's workers. A worker's number at the switch is its index in this list.
    pub workers: Vec<WorkerId>,
}

/// Reason why a division of the workers into parts is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// A part has no workers or more than 64: its job number, and its number of workers.
    #[error("part {0} has {1} workers; a switch sums 1 to 64")]
    Workers(u16, usize),
    /// Two parts, or a part and the whole job, have the same job number.
    #[error("the number {0} occurs twice")]
    NumberTwice(u16),
    /// The job has no worker with a part's rank: the part's job number, the rank, and the job's number of workers.
    #[error("part {0} has {1}, but the job has {2} workers")]
    NoWorker(u16, WorkerId, u16),
    /// A worker is in two parts, so that its values would count twice.
    #[error("{0} is in two parts")]
    WorkerTwice(WorkerId),
    /// The server would sum more than 64 children (parts, and workers in no part): the bitmap has 64 bits.
    #[error("{0} parts and workers in no part: a server sums up to 64")]
    Children(usize),
}

/// The children whose updates the server sums: parts first, then workers in no part.
#[derive(Debug, Clone)]
pub(super) struct Children {
    parts: Vec<Part>,
    /// Ranks of the workers that are in no part.
    alone: Vec<WorkerId>,
}

/// Chunks that were in flight when the division into parts changed: workers send their values for them directly to the server.
#[derive(Debug, Clone)]
pub(super) struct Between {
    /// Position of the first chunk that the current parts sum: no worker had sent it or a later chunk when they were installed.
    pub until: u64,
    pub slots: SlotTable,
}

/// A received frame, understood as the update of one of the server's children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Update {
    /// Number of the child (a part, or a worker in no part).
    pub child: WorkerId,
    /// Rank of the worker that sent the update, or that completed the part's sum.
    pub sender: WorkerId,
    /// Whether the sender requests the answer, if the chunk has been answered.
    pub asks: bool,
}

impl Children {
    pub(super) fn new(job: &Job, parts: Vec<Part>) -> Result<Self, PartsError> {
        // Worker sets have 64 bits.
        if job.workers() > u16::from(wire::MAX_CHILDREN) {
            return Err(PartsError::Children(usize::from(job.workers())));
        }
        let mut in_part = vec![false; usize::from(job.workers())];
        for (index, part) in parts.iter().enumerate() {
            if !(1..=usize::from(wire::MAX_CHILDREN)).contains(&part.workers.len()) {
                return Err(PartsError::Workers(part.number.0, part.workers.len()));
            }
            let mut others = parts[..index].iter().map(|other| other.number);
            if part.number == job.id() || others.any(|other| other == part.number) {
                return Err(PartsError::NumberTwice(part.number.0));
            }
            for worker in &part.workers {
                match in_part.get_mut(usize::from(worker.0)) {
                    None => {
                        let workers = job.workers();
                        return Err(PartsError::NoWorker(part.number.0, *worker, workers));
                    }
                    Some(true) => return Err(PartsError::WorkerTwice(*worker)),
                    Some(seen) => *seen = true,
                }
            }
        }
        let ranks = (0..job.workers()).map(WorkerId);
        let alone = ranks.filter(|rank| !in_part[usize::from(rank.0)]);
        let children = Self {
            alone: alone.collect(),
            parts,
        };
        match children.len() <= usize::from(wire::MAX_CHILDREN) {
            true => Ok(children),
            false => Err(PartsError::Children(children.len())),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len() + self.alone.len()
    }

    /// The workers whose values are in the updates of these children.
    pub(super) fn workers(&self, children: WorkerSet) -> WorkerSet {
        let parts = self.parts.iter().map(|part| part.workers.as_slice());
        let all = parts.chain(self.alone.iter().map(std::slice::from_ref));
        let numbered = (0..).map(WorkerId).zip(all);
        let there = numbered.filter(|(child, _)| children.contains(*child));
        let workers = there.flat_map(|(_, workers)| workers);
        workers.fold(WorkerSet::EMPTY, |set, worker| {
            set.union(WorkerSet::only(*worker))
        })
    }

    /// For a chunk that all workers send directly to the server: reads a worker's update; `None` for any other frame.
    pub(super) fn update_alone(job: &Job, packet: &Packet<&[u8]>) -> Option<Update> {
        let sender = WorkerId(packet.worker());
        let is_ours =
            packet.kind() == Kind::Update && packet.job() == job.id().0 && sender.0 < job.workers();
        is_ours.then_some(Update {
            child: sender,
            sender,
            asks: true,
        })
    }

    /// Reads a frame as the update of a child; `None` if it belongs to another job, or is an incomplete sum of a part.
    pub(super) fn update(&self, job: &Job, packet: &Packet<&[u8]>) -> Option<Update> {
        let number = JobId(packet.job());
        if packet.kind() == Kind::Update && number == job.id() {
            let sender = WorkerId(packet.worker());
            let place = self.alone.iter().position(|worker| *worker == sender)?;
            return Some(Update {
                child: WorkerId((self.parts.len() + place) as u16),
                sender,
                asks: true,
            });
        }
        let place = self.parts.iter().position(|part| part.number == number)?;
        let part = &self.parts[place];
        let all = WorkerSet::first(part.workers.len() as u16);
        if packet.kind() != Kind::Sum || WorkerSet(packet.contributors()) != all {
            return None;
        }
        Some(Update {
            child: WorkerId(place as u16),
            sender: *part.workers.get(usize::from(packet.worker()))?,
            asks: packet.flags().contains(Flags::AGAIN),
        })
    }

    /// Writes a received frame to `frame`, rewritten as an UPDATE of the child in `update`.
    pub(super) fn rewrite(job: &Job, update: Update, bytes: &[u8], frame: &mut Vec<u8>) {
        frame.clear();
        frame.extend_from_slice(bytes);
        let mut packet = Packet::new_unchecked(&mut frame[..]);
        packet.set_kind(Kind::Update);
        packet.set_job(job.id().0);
        packet.set_worker(update.child.0);
    }
}
