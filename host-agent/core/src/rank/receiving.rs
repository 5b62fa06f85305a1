//! Reception of frames by a rank: answers to its chunks, and what it does with them.

use wire::{Flags, Kind, Repr, values_i32};

use super::lane::{Attempt, RankLane};
use super::operation::Chunk;
use super::{Rank, RankError, RankFrame};
use crate::congestion::Mark;
use crate::job::{ChunkId, WorkerSet};
use crate::lanes::{LaneState, Send};
use crate::quantise::Exponent;

/// Maximum excess of a guessed exponent over the needed one; beyond it, the chunk is sent again. Up to it, 32-bit sums of few
/// ranks lose no bit that binary32 would keep.
const SPARE_BITS: u8 = 4;

impl Rank {
    /// Processes a frame in one buffer, from the aggregation header on, with the congestion mark of its IP header.
    pub fn handle_packet(&mut self, now_ns: u64, mark: Mark, bytes: &[u8]) -> RankFrame {
        match Repr::parse_frame(bytes) {
            Ok((repr, payload)) => self.handle_frame(now_ns, mark, &repr, payload),
            Err(_) => self.note_malformed(),
        }
    }

    /// Counts received bytes that are not an aggregation frame.
    pub fn note_malformed(&mut self) -> RankFrame {
        self.counters.malformed += 1;
        RankFrame::Malformed
    }

    /// Processes a frame, given as header and payload, with the congestion mark of its IP header.
    pub fn handle_frame(
        &mut self,
        now_ns: u64,
        mark: Mark,
        repr: &Repr,
        payload: &[u8],
    ) -> RankFrame {
        let received = match payload.len() == repr.payload_len() {
            true => self.receive(now_ns, mark, repr, payload),
            false => RankFrame::Malformed,
        };
        match received {
            RankFrame::Answer | RankFrame::Told | RankFrame::Word | RankFrame::Early => {}
            RankFrame::Duplicate => self.counters.duplicates += 1,
            RankFrame::NotOurs => self.counters.not_ours += 1,
            RankFrame::Malformed => self.counters.malformed += 1,
        }
        received
    }

    /// Number of this rank's current chunk in the slot of chunk number `low` (its low 16 bits), and the exponent that the chunk
    /// was sent with. A SUM by RDMA carries neither completely.
    pub fn near(&self, low: u16) -> (ChunkId, Exponent) {
        // A window has at most 15 bits.
        let lane = &self.lanes[self.job.lane(ChunkId(low.into()))];
        (self.job.chunk(lane.sequence), lane.scale)
    }

    pub(super) fn receive(
        &mut self,
        now_ns: u64,
        mark: Mark,
        repr: &Repr,
        payload: &[u8],
    ) -> RankFrame {
        if repr.job != self.job.id().0 {
            return RankFrame::NotOurs;
        }
        match repr.kind {
            Kind::Differ if !self.failed => return self.receive_terms(now_ns, repr, payload),
            _ if self.differing.is_some() => return self.receive_while_differing(repr),
            // A rank that has given up answers nobody: the ranks that wait for it have to notice.
            _ if self.failed => return RankFrame::NotOurs,
            _ => {}
        }
        let chunk = ChunkId(repr.chunk);
        let slot = self.job.lane(chunk);
        match repr.kind {
            Kind::Sum => {
                let is_probe = repr.flags.contains(Flags::PROBE);
                if is_probe && repr.scale != 0 && self.forgets_switch() {
                    return RankFrame::Told;
                }
                // Other ranks also send sums that they kept, marked `AGAIN`.
                if is_probe || !repr.flags.contains(Flags::AGAIN) {
                    self.note_switch(now_ns, is_probe);
                }
            }
            Kind::Given if self.hosts.is_some() => {}
            Kind::Give => return self.receive_give(now_ns, repr, payload),
            Kind::Ask | Kind::Here => return self.receive_word(now_ns, repr),
            Kind::Update | Kind::Result | Kind::Given | Kind::Differ => {
                return RankFrame::NotOurs;
            }
        }
        let lane = &self.lanes[slot];
        let Some(sequence) = self.job.sequence_near(lane.sequence, chunk) else {
            return RankFrame::Malformed;
        };
        if sequence < lane.sequence || sequence == lane.sequence && lane.state == LaneState::Idle {
            return RankFrame::Duplicate;
        }
        // No chunk completes before this rank has sent it, unless other ranks have closed it.
        if sequence > lane.sequence || !lane.is_in_flight() {
            return self.see(slot, sequence);
        }
        let contributors = WorkerSet(repr.contributors);
        let is_of_chunk = repr.slot == self.job.slot(chunk).0
            && repr.flags.contains(Flags::VERSION) == self.job.version(chunk).0;
        if !is_of_chunk {
            return RankFrame::Malformed;
        }
        let by_host = repr.kind == Kind::Given;
        let everyone = match &self.hosts {
            Some(hosts) if by_host => hosts.everyone(),
            _ => self.place.complete(),
        };
        let scale_only = matches!(self.chunk_of(lane.item), Some((_, Chunk::ScaleOnly)));
        if repr.flags.contains(Flags::PROBE) {
            if repr.scale != 0 {
                if self.asks_for_kept(now_ns, slot, repr) {
                    return RankFrame::Told;
                }
                self.fail(RankError::Superseded { chunk });
                return RankFrame::Told;
            }
            if !(repr.flags.contains(Flags::AGAIN) && scale_only) {
                return self.handle_report(now_ns, slot, repr, everyone);
            }
        }
        let is_scale_only = repr.flags.contains(Flags::SCALE_ONLY);
        let count = match is_scale_only {
            true => 0,
            false => self.job.values_per_packet(),
        };
        let Some(is_sum) = self.takes(slot, repr, everyone) else {
            return RankFrame::Duplicate;
        };
        // With a deadline, a sum may lack some ranks.
        let is_of_others = match self.late {
            None => !is_sum,
            Some(_) => !contributors.without(everyone).is_empty(),
        };
        // In a tree, a rank passes on sums made by hosts, whose contributors outnumber the topmost switch's children.
        let is_kept = repr.flags.contains(Flags::AGAIN) && !self.place.is_flat(&self.job);
        if is_of_others && !by_host && !is_kept && usize::from(repr.count) == count {
            return self.doubt_ranks(chunk, contributors, false);
        }
        let is_sum = is_sum && usize::from(repr.count) == count;
        let is_of_chunk = repr.scale == lane.scale.bits() && is_scale_only == scale_only;
        // This rank may not know the exponent of a partial sum.
        let differs = match is_of_chunk {
            true => !self.is_agreed(lane, contributors, payload),
            false => self.late.is_none(),
        };
        if is_sum && differs {
            let operation = self.chunk_of(lane.item).map(|(operation, _)| operation.id);
            self.differ(now_ns, operation.unwrap_or_default());
            return RankFrame::Told;
        }
        let is_answer = is_sum
            && is_of_chunk
            && (Exponent::from_bits(repr.next_scale) >= self.wanted(lane)
                || !self.is_in(contributors));
        if !is_answer {
            return RankFrame::Malformed;
        }
        self.doubts = 0;
        let first_order = lane.first_order;
        // A host answers all ranks at once, and so fills a queue however few chunks are in flight.
        let mark = if by_host { Mark::None } else { mark };
        self.lanes.answered(slot, now_ns, first_order, mark);
        self.counters.by_hosts += u64::from(by_host);
        self.hurry_lowest();
        self.take_answer(slot, repr, payload);
        // Probes and their answers may be lost, too, and a timeout is many windows long. A rank that waits for others probes
        // at decreasing rates.
        let early = self
            .lanes
            .count_overtaken(first_order, Send::Probe, u32::MAX);
        self.counters.early_probes += early;
        if self.shares(contributors) < self.job.workers() {
            self.hurry(now_ns);
        }
        RankFrame::Answer
    }

    /// Whether the digest of the terms in a lane's sum shows that all contributors to it submitted the same operation.
    fn is_agreed(&self, lane: &RankLane, contributors: WorkerSet, payload: &[u8]) -> bool {
        let shares = self.shares(contributors);
        match self.chunk_of(lane.item) {
            Some((operation, Chunk::Values(index))) => operation.is_agreed(index, shares, payload),
            _ => true,
        }
    }

    /// Processes the sum of a complete chunk: takes it, or sends the chunk again with the exponent that the ranks agreed on.
    fn take_answer(&mut self, slot: usize, repr: &Repr, payload: &[u8]) {
        let lane = &self.lanes[slot];
        let (scale, item, attempt) = (lane.scale, lane.item, lane.attempt);
        let told = Exponent::from_bits(repr.next_scale);
        let Some((at, index)) = self.locate(item) else {
            return;
        };
        let operation = &self.operations[at];
        let chunk = operation.chunk(index);
        let (is_integer, is_long) = (operation.is_integer(), operation.is_long());
        let window = u64::from(self.job.window());
        let contributors = WorkerSet(repr.contributors);
        let at_kept = self.kept_at(lane.sequence);
        if let Some(kept) = self.kept.get_mut(at_kept) {
            kept.sequence = Some(lane.sequence);
            kept.contributors = repr.contributors;
            let told = Flags::PROBE | Flags::TIMED | Flags::KEPT;
            kept.flags = repr.flags.with(told, false).bits();
            kept.scale = scale.bits();
            kept.next_scale = repr.next_scale;
            kept.values.clear();
            kept.values.extend(values_i32(payload));
        }
        self.note_contributors(slot, contributors);
        let Chunk::Values(index) = chunk else {
            let lane = &mut self.lanes[slot];
            lane.agreed = told;
            lane.finish(window);
            self.close_item(at);
            self.begin(slot);
            return;
        };
        let is_finite = !repr.flags.contains(Flags::NON_FINITE);
        if !is_integer && !is_long && attempt == Attempt::Guess {
            if told != Exponent::ZERO {
                self.lanes[slot].last = told;
            }
            let fits = told <= scale
                && (told == Exponent::ZERO || scale.bits() - told.bits() <= SPARE_BITS);
            if !fits && is_finite {
                self.counters.repeated_guesses += 1;
                let by_host = self.is_by_hosts();
                self.lanes[slot].repeat(window, told, by_host);
                let what = self.first_send(slot);
                self.lanes.enqueue(slot, what);
                return;
            }
        }
        // A sum of zeros was not rounded, whatever the guess was.
        let is_zero = !is_long && attempt == Attempt::Guess && told == Exponent::ZERO;
        let scale = if is_zero { Exponent::ZERO } else { scale };
        self.set_aside(slot, at, index, contributors);
        let shares = self.shares(contributors);
        let operation = &mut self.operations[at];
        match is_finite {
            true => operation.decode(&self.job, index, scale, shares, payload),
            // All ranks receive the same flag, so all continue without these sums.
            false => operation.fail(index, ChunkId(repr.chunk)),
        }
        let lane = &mut self.lanes[slot];
        if is_long {
            lane.agreed = told;
            if scale != Exponent::ZERO {
                lane.last = scale;
            }
        }
        lane.finish(window);
        self.close_item(at);
        self.begin(slot);
    }
}
