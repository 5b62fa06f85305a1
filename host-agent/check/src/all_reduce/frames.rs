//! What a frame may change: fields that nobody reads, frames without an effect, and a stranger's frames.

use aggregation::Destination;
use aggregation::job::WorkerSet;
use wire::{Flags, Kind, Packet, Repr};

use super::AllReduce;
use crate::model::Frame;

impl AllReduce {
    /// Ranks that a rank may ask after a frame: the missing ranks, if the frame lists them.
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

    /// Frames of a stranger in the name of the first rank.
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

    /// [`Model::mask`](crate::Model::mask).
    pub(super) fn masked(&self, frame: &mut Frame) -> Vec<Frame> {
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

    /// [`Model::is_idle`](crate::Model::is_idle): a switch's report of an incomplete chunk makes a rank repeat what it has sent, or wait and
    /// ask others. An asked rank replies that it is alive, which changes nothing, or sends what the switch has sent to all.
    pub(super) fn has_no_effect(&self, frame: &Frame) -> bool {
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
}
