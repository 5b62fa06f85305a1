//! Jobs in parts: several switches each sum a part of the workers, and the server sums the parts.
//!
//! Each part has its own job number on the wire, so that a switch sums its part and passes the frames of others on. At the
//! server, the sum of a part counts as the update of one *child*, and so does the update of a worker in no part.

use wire::{Flags, Kind, Packet};

use crate::job::{Job, JobId, WorkerId, WorkerSet};
use crate::slot::SlotTable;

/// Workers whose updates one switch sums for the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Job number in their updates and in the sum of them.
    pub number: JobId,
    /// The part's workers, in the order of the switch's numbers for them.
    pub workers: Vec<WorkerId>,
}

/// Reason why a division into parts is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// The part has no workers or more than 64.
    #[error("part {0} has {1} workers; a switch sums 1 to 64")]
    Workers(u16, usize),
    /// Two parts, or a part and the job, have the same number.
    #[error("the number {0} occurs twice")]
    NumberTwice(u16),
    /// The job has no worker with this rank.
    #[error("part {0} has {1}, but the job has {2} workers")]
    NoWorker(u16, WorkerId, u16),
    /// A worker is in two parts, so that its values would count twice.
    #[error("{0} is in two parts")]
    WorkerTwice(WorkerId),
    /// More than 64 children: the bitmap has 64 bits.
    #[error("{0} parts and workers in no part: a server sums up to 64")]
    Children(usize),
}

/// The children that the server sums.
#[derive(Debug, Clone)]
pub(super) struct Children {
    parts: Vec<Part>,
    /// Ranks of the workers in no part.
    alone: Vec<WorkerId>,
}

/// Chunks that were in flight when the parts changed: each worker sends its values for them directly to the server.
#[derive(Debug, Clone)]
pub(super) struct Between {
    /// First chunk that the current parts sum: no worker had sent it or a later one.
    pub until: u64,
    pub slots: SlotTable,
}

/// A frame as the update of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Update {
    /// Number of the child.
    pub child: WorkerId,
    /// Worker that sent the update, or the last update of the sum.
    pub sender: WorkerId,
    /// Whether the sender requests the answer, if there is one.
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

    /// The workers whose values the updates of these children include.
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

    /// Reads a frame of a chunk that each worker sends directly; `None` if it is not an update of this job.
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

    /// Reads a frame as a child's update; `None` if it belongs to another job, or is an incomplete sum of a part.
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

    /// Writes the frame of `bytes` in the form of `update`.
    pub(super) fn rewrite(job: &Job, update: Update, bytes: &[u8], frame: &mut Vec<u8>) {
        frame.clear();
        frame.extend_from_slice(bytes);
        let mut packet = Packet::new_unchecked(&mut frame[..]);
        packet.set_kind(Kind::Update);
        packet.set_job(job.id().0);
        packet.set_worker(update.child.0);
    }
}
