//! Behavior of a rank while a chunk has no sum: its reaction to the switch's answers, its questions to other ranks, and its
//! replies to theirs.

use wire::{Flags, Kind, Repr};

use super::lane::RankLane;
use super::peers::Word;
use super::sending::Payload;
use super::{Rank, RankError, RankFrame};
use crate::job::{ChunkId, WorkerId, WorkerSet};
use crate::lanes::Send;

/// Number of ranks that are asked for a sum at a time in a tree of switches, where the missing ranks are unknown.
const ASKED_IN_TURN: u16 = 4;
/// Number of successive answers with a wrong set of ranks after which a rank believes that the switch has another set.
const BELIEVED_AFTER: u8 = 3;

impl Rank {
    /// Processes the answer of a switch or host to a probe; `everyone`: the contributor bitmap of a complete chunk there.
    pub(super) fn handle_report(
        &mut self,
        now_ns: u64,
        slot: usize,
        repr: &Repr,
        everyone: WorkerSet,
    ) -> RankFrame {
        let by_host = repr.kind == Kind::Given;
        // This probe only tested whether the switch answers.
        if self.lanes[slot].by_host && !by_host {
            return RankFrame::Told;
        }
        let present = WorkerSet(repr.contributors);
        let asked_by = WorkerId(repr.worker);
        self.lanes[slot].silences = 0;
        if let Some(told) = self.handle_closable(now_ns, slot, repr) {
            return told;
        }
        let lane = &mut self.lanes[slot];
        // The answer carries the transmission number, so it gives a round trip where Karn's rule would not.
        if lane.transmissions <= u32::from(wire::MAX_TRANSMISSION)
            && u32::from(repr.transmission) + 1 == lane.transmissions
        {
            let rtt_ns = now_ns.saturating_sub(lane.sent_at_ns);
            self.lanes.rtt.sample(rtt_ns);
        }
        let lane = &mut self.lanes[slot];
        if repr.flags.contains(Flags::AGAIN) {
            lane.misses = WorkerSet::EMPTY;
            lane.sent_early = 0;
            self.note_loss(slot);
            self.lanes.enqueue(slot, Send::Fetch);
            return RankFrame::Told;
        }
        // In a tree, a rank knows neither which switch answered nor the ranks below that switch.
        if by_host || self.place.is_flat(&self.job) {
            lane.misses = everyone.without(present);
        }
        lane.others_missing = lane.others_missing.saturating_add(1);
        let chunk = self.job.chunk(lane.sequence);
        let is_complete_here = everyone.without(present).is_empty();
        if is_complete_here && !by_host && self.place.is_flat(&self.job) {
            // A switch with the same set of ranks would have answered that the chunk is complete.
            self.doubt_ranks(chunk, present, true);
            if self.failed {
                return RankFrame::Told;
            }
        }
        let lane = &mut self.lanes[slot];
        if !present.contains(asked_by) {
            // All ranks below a switch whose UPDATE was lost get this answer: the first of them sends again, and the others
            // only if that does not help.
            let is_for_others = !by_host && asked_by != self.place.child && self.place.child.0 > 0;
            if !is_for_others || lane.timeouts > 1 {
                lane.sent_early = 0;
                self.note_loss(slot);
                self.lanes.enqueue(slot, Send::Values);
                return RankFrame::Told;
            }
        }
        // Others are missing: probe again at decreasing rates.
        let asks = by_host || lane.others_missing >= self.config.ask_after;
        let deadline_ns = now_ns.saturating_add(self.timeout_ns(slot));
        self.lanes.wait_until(slot, deadline_ns);
        if asks {
            self.ask_others(now_ns, slot);
        }
        RankFrame::Told
    }

    /// Handles an answer with a wrong set of ranks: the switch sums for another set, or the frame is broken. The rank fails
    /// after several such answers without a correct sum in between.
    pub(super) fn doubt_ranks(
        &mut self,
        chunk: ChunkId,
        complete: WorkerSet,
        is_waiting: bool,
    ) -> RankFrame {
        self.doubts += 1;
        if self.doubts >= BELIEVED_AFTER {
            let ranks = self.job.workers();
            self.fail(RankError::OtherRanks {
                chunk,
                ranks,
                complete,
                is_waiting,
            });
        }
        RankFrame::Malformed
    }

    /// Records, for congestion control, that this rank's values or the chunk's sum were lost; counts once per chunk.
    fn note_loss(&mut self, slot: usize) {
        if self.lanes[slot].transmissions == 2 {
            self.lanes.window.lost();
        }
    }

    /// Asks the missing ranks whether they have the chunk's sum; in a tree of switches they are unknown, so asks a few ranks.
    fn ask_others(&mut self, now_ns: u64, slot: usize) {
        let Some(peers) = &mut self.peers else {
            return;
        };
        let lane = &self.lanes[slot];
        let chunk = self.job.chunk(lane.sequence);
        let is_known = lane.by_host || self.place.is_flat(&self.job);
        let oldest = self
            .lanes
            .iter()
            .filter(|lane| lane.waits())
            .map(|lane| lane.first_order)
            .min();
        let misses = lane.misses.without(WorkerSet::only(self.rank));
        if !is_known {
            for _ in 0..ASKED_IN_TURN.min(self.job.workers() - 1) {
                // A rank that does not answer may have left, with all its sums.
                let peer = peers.in_turn();
                peers.queue(peer, Word::Ask(chunk));
            }
        } else if oldest == Some(lane.first_order) {
            for peer in misses.iter() {
                peers.ask(now_ns, peer, chunk);
            }
        } else if let Some(peer) = misses
            .iter()
            .nth(lane.timeouts as usize % misses.len().max(1))
        {
            peers.ask(now_ns, peer, chunk);
        }
    }

    /// Processes a question or reply from another rank.
    pub(super) fn receive_word(&mut self, now_ns: u64, repr: &Repr) -> RankFrame {
        let (from, chunk) = (WorkerId(repr.worker), ChunkId(repr.chunk));
        let slot = self.job.lane(chunk);
        let near = self.lanes[slot].sequence;
        let asked = self.job.sequence_near(near, chunk);
        let kept = asked.map(|asked| self.kept_at(asked));
        let Some(peers) = &mut self.peers else {
            return RankFrame::NotOurs;
        };
        if repr.kind == Kind::Here {
            peers.note_reply(from);
            return RankFrame::Word;
        }
        peers.queue(from, Word::Here(chunk));
        let (Some(asked), Some(at)) = (asked, kept) else {
            return RankFrame::Word;
        };
        if self.kept.get(at).and_then(|kept| kept.sequence) == Some(asked) {
            peers.queue(from, Word::Sum(at));
        }
        self.is_asked(now_ns, slot, asked, repr.flags.contains(Flags::AGAIN));
        RankFrame::Word
    }

    /// Processes the report of another rank's host that no process there receives frames. This rank fails at once if it waits
    /// for that rank; it ignores a report about a rank that it has not asked.
    pub fn peer_gone(&mut self, rank: WorkerId) {
        let waits = |lane: &&RankLane| lane.waits() && lane.misses.contains(rank);
        let is_asked = self
            .peers
            .as_ref()
            .is_some_and(|peers| peers.is_asked(rank));
        // In a tree the missing ranks are unknown, and a rank that has all its sums may leave.
        if !self.place.is_flat(&self.job) || self.failed || !is_asked {
            return;
        }
        if let Some(lane) = self.lanes.iter().find(waits) {
            let chunk = self.job.chunk(lane.sequence);
            let is_silent = false;
            self.fail(RankError::Gone {
                rank,
                chunk,
                is_silent,
            });
        }
    }

    /// Repeats unanswered questions to missing ranks, and fails if a missing rank is dead.
    pub(super) fn check_peers(&mut self, now_ns: u64) {
        let Some(peers) = &mut self.peers else {
            return;
        };
        if peers.due_ns().is_none_or(|due_ns| now_ns < due_ns) {
            return;
        }
        if !self.lanes.iter().any(RankLane::waits) {
            peers.forget();
        } else if let Some((rank, chunk)) = peers.check(now_ns) {
            let is_silent = true;
            self.fail(RankError::Gone {
                rank,
                chunk,
                is_silent,
            });
        }
    }

    /// The frame of a message to another rank; `None` if the content that it should carry is gone.
    pub(super) fn word(&self, word: Word) -> Option<(Repr, Payload)> {
        let mut payload = Payload::Nothing;
        let (kind, chunk, kept) = match word {
            Word::Ask(chunk) => (Kind::Ask, chunk, None),
            Word::Here(chunk) => (Kind::Here, chunk, None),
            Word::Differ => return self.terms_frame(false),
            Word::Given(answer, cell) => {
                let owner = self.cell(cell).map(|view| view.owner.0);
                let is_there = owner == Some(answer.chunk);
                return is_there.then_some((answer, Payload::Cell(cell)));
            }
            Word::Sum(at) => {
                let kept = &self.kept[at];
                payload = Payload::Kept(at);
                (
                    Kind::Sum,
                    self.job.chunk(kept.sequence.unwrap_or_default()),
                    Some(kept),
                )
            }
        };
        let near = self.lanes[self.job.lane(chunk)].sequence;
        let sequence = self.job.sequence_near(near, chunk).unwrap_or_default();
        let mut repr = self.job.header(kind, sequence, true);
        repr.flags = repr.flags.with(Flags::SCALE_ONLY, false);
        repr.worker = self.rank.0;
        let lane = &self.lanes[self.job.lane(chunk)];
        let gives = lane.by_host && self.job.chunk(lane.sequence) == chunk;
        repr.flags = repr.flags.with(Flags::AGAIN, kind == Kind::Ask && gives);
        if let Some(kept) = kept {
            repr.flags = (Flags::from_bits(kept.flags) | Flags::AGAIN)
                .with(Flags::KEPT, self.late.is_some());
            repr.scale = kept.scale;
            repr.next_scale = kept.next_scale;
            repr.contributors = kept.contributors;
            repr.count = kept.values.len() as u16;
        }
        Some((repr, payload))
    }
}

#[cfg(test)]
mod tests {
    use wire::Packet;

    use super::*;
    use crate::job::Job;
    use crate::rank::{RankEvent, Setup, Values};
    use crate::{Mark, Retransmission};

    /// The switch's answer to a probe: only this rank's values are there.
    fn told(frame: &[u8]) -> Option<Vec<u8>> {
        let mut frame = frame.to_vec();
        let mut packet = Packet::new_checked(&mut frame[..]).unwrap();
        if packet.kind() == Kind::Ask || !packet.flags().contains(Flags::PROBE) {
            return None;
        }
        packet.set_kind(Kind::Sum);
        packet.set_contributors(0b01);
        // `AGAIN` in an answer means that the chunk is complete.
        packet.set_flags(packet.flags().with(Flags::AGAIN, false));
        Some(frame)
    }

    #[test]
    fn only_an_asked_rank_is_reported_unreachable() {
        let mut rank = Rank::new(Setup {
            dead_after_ns: Some(1_000_000_000),
            ..Setup::under_one_switch(Job::of_two(0), WorkerId(0), Retransmission::default())
        });
        rank.submit(Values::Integers(vec![1; 8])).unwrap();
        let (mut now_ns, mut frame, mut is_asked) = (0, Vec::new(), false);
        while !is_asked {
            now_ns += 5_000_000;
            assert!(now_ns < 60_000_000_000, "nobody was asked");
            rank.handle_timeout(now_ns);
            let mut answers = Vec::new();
            while rank.poll_packet(now_ns, &mut frame).is_some() {
                let kind = Packet::new_checked(&frame[..]).unwrap().kind();
                is_asked |= kind == Kind::Ask;
                answers.extend(told(&frame));
            }
            if !is_asked {
                rank.peer_gone(WorkerId(1));
                assert!(rank.poll_event().is_none(), "after {now_ns} ns");
            }
            for answer in answers {
                rank.handle_packet(now_ns, Mark::None, &answer);
            }
        }
        rank.peer_gone(WorkerId(1));
        let gone = rank.poll_event();
        let Some(RankEvent::Failed(error)) = gone else {
            panic!("{gone:?}");
        };
        // The rank's own host reported it, so the error names no switch.
        let text = error.to_string();
        assert!(text.starts_with("rank 1 is unreachable: it does not answer, and chunk #"));
        assert!(text.ends_with(" waits for it"), "{text}");
        let silent = RankError::Gone {
            rank: WorkerId(1),
            chunk: ChunkId(4711),
            is_silent: true,
        };
        let hint = "waits for it; if its process is alive, a switch drops a rank's frames if";
        assert!(silent.to_string().contains(hint), "{silent}");
    }
}
