//! Ranks of the all-reduce model and forging nodes outside its job, and the frames that they send.

use aggregation::Destination;
use aggregation::job::{TreePosition, WorkerId, WorkerSet};
use aggregation::rank::{Fallback, Rank, RankError, RankEvent, Setup};
use wire::{Flags, Kind, Packet, Repr};

use super::{AllReduce, DEAD_AFTER_NS, NOW_NS, PATIENT};
use crate::model::{Frame, Outbox, Wrong};
use crate::slots::Rule;

/// A rank, with its progress through the model's operations.
#[derive(Debug, Clone)]
pub struct RankMember {
    pub(super) id: u8,
    pub(super) machine: Rank,
    pub(super) given: usize,
    pub(super) done: usize,
    pub(super) failed: bool,
    pub(super) crashed: bool,
    /// Contributors of the sums that this rank took, by operation and chunk; only filled if chunks may be closed.
    pub(super) taken: Vec<Vec<u64>>,
}

impl AllReduce {
    pub(super) fn rank(&self, id: u8) -> Rank {
        let rank = WorkerId(u16::from(id));
        let asks = self.bounds.asks && self.bounds.without != Some(Rule::Peers);
        Rank::new(Setup {
            job: self.job,
            rank,
            place: match self.is_tree() {
                true => TreePosition {
                    child: WorkerId(u16::from(id % self.in_rack())),
                    siblings: self.in_rack(),
                    top: self.bounds.racks,
                },
                false => TreePosition::under_one_switch(&self.job, rank),
            },
            retransmission: PATIENT,
            dead_after_ns: asks.then_some(DEAD_AFTER_NS),
            lateness: self.lateness,
            fallback: self.bounds.hosts.then_some(Fallback {
                after: match self.bounds.cut {
                    Some(cut) if cut != id => u32::MAX,
                    _ => 1,
                },
                at_once: false,
                retry_ns: 0,
                doubt_after: u32::MAX,
            }),
        })
    }

    /// Outputs a rank's frames. Which ranks it asks, and in which order, depends on time: here it asks all ranks in `may`.
    pub(super) fn pump(&self, member: &mut RankMember, may: WorkerSet, out: &mut Outbox) {
        let switch = self.switch_of(member.id);
        let mut bytes = Vec::new();
        let mut asked = None;
        while let Some(to) = member.machine.poll_packet(NOW_NS, &mut bytes) {
            let kind = Packet::new_unchecked(&bytes[..]).kind();
            match to {
                Destination::Worker(rank) if kind == Kind::Ask => {
                    if !may.contains(rank) {
                        let what = format!("rank {} asks {rank} in vain", member.id);
                        out.wrong(Wrong::Unexpected(what));
                    }
                    asked = Some(bytes.clone());
                }
                Destination::Worker(rank) if kind != Kind::Update => {
                    out.send(member.id, [rank.0 as u8], to, &bytes);
                }
                _ if self.bounds.cut == Some(member.id) => {}
                to => out.send(member.id, [switch], to, &bytes),
            }
        }
        if let Some(ask) = asked {
            let ranks = may.iter().map(|rank| rank.0 as u8);
            out.send(member.id, ranks, Destination::All, &ask);
        }
        while let Some(event) = member.machine.poll_event() {
            match event {
                RankEvent::Done { operation, outcome } => {
                    member.done += 1;
                    let wrong = match outcome {
                        Ok(sums) if self.lateness.is_some() => {
                            self.judge_partial(operation as usize, member, &sums)
                        }
                        Ok(sums) => self.judge(operation as usize, member.id, &sums.values),
                        Err(error) => self.judge_failure(member.id, error),
                    };
                    if let Some(wrong) = wrong {
                        out.wrong(wrong);
                    }
                }
                RankEvent::Failed(error) => {
                    member.failed = true;
                    let what = format!("rank {}: {error}", member.id);
                    // All ranks have the same operations, so the sum that shows a difference is wrong.
                    out.wrong(match error {
                        RankError::Differs { .. } => Wrong::Sum(what),
                        _ => Wrong::Unexpected(what),
                    });
                }
            }
        }
    }

    /// Ranks that a rank may ask for a sum after a frame: the missing ranks, if the frame lists them.
    pub(super) fn may_have_the_sum(&self, rank: u8, frame: &Frame) -> WorkerSet {
        let others = self.others(rank);
        let Ok(packet) = Packet::new_checked(&frame.bytes[..]) else {
            return WorkerSet::EMPTY;
        };
        let missing = self
            .job
            .everyone()
            .without(WorkerSet(packet.contributors()));
        // A switch of a tree reports its children, a host also reports to itself, and if a cell is past the chunk, any rank
        // may have the sum.
        match self.is_tree() || self.bounds.hosts || packet.scale() != 0 {
            true => others,
            false => WorkerSet(missing.0 & others.0),
        }
    }

    /// Frames that a node outside the job forges in the name of the first rank.
    pub(super) fn forged(&self) -> Vec<Vec<u8>> {
        let job = self.switch.job();
        let first = job.first_chunk();
        let chunks = (0..job.cells() as u32).map(|at| first.plus(at));
        let frames = chunks.map(|chunk| {
            let repr = Repr {
                kind: Kind::Update,
                flags: Flags::NONE.with(Flags::VERSION, job.version(chunk).0),
                job: job.id().0,
                chunk: chunk.0,
                slot: job.slot(chunk).0,
                worker: 0,
                transmission: 0,
                contributors: 1,
                scale: 0,
                next_scale: 0,
                count: u16::from(self.bounds.ranks) + 1,
            };
            let mut bytes = vec![0; repr.buffer_len()];
            let mut packet = Packet::new_unchecked(&mut bytes[..]);
            repr.emit(&mut packet);
            packet.write_i32((0..=self.bounds.ranks).map(|_| 3));
            bytes
        });
        frames.collect()
    }
}
