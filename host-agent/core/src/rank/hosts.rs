//! Summation by the ranks themselves while no switch answers.
//!
//! Each chunk has a *host*, rank (slot mod n), which keeps slots for it as a switch would. A rank that receives nothing from
//! the switch sends its values to the chunk's host by GIVE. The host answers by GIVEN as a switch answers by SUM, and sends the
//! complete sum to all ranks. So each link carries 2 (n − 1) / n times the values in each direction, as in a ring.
//!
//! Why this is safe, also in the middle of an operation: to a rank, the host is a switch that has forgotten all cells
//! (`docs/protocol.md`, "Ranks ask each other"). A contribution has the same bits wherever it is sent, so the complete sum is
//! the same at the switch and at the host.
//!
//! Why this terminates: a chunk completes where all ranks have contributed. When a host answers that others are missing, the
//! rank sends those others ASK with `AGAIN`, and they give their values to the host as well, whatever they know of the
//! switch. While hosts sum, ranks probe the switch now and then; once it answers, the next chunks go to the switch.

use wire::{Flags, Kind, Repr};

use super::peers::Word;
use super::sending::Payload;
use super::{Rank, RankFrame};
use crate::congestion::Mark;
use crate::job::{CellIndex, ChunkId, Job, WorkerId, WorkerSet};
use crate::lanes::{LaneState, Send};
use crate::slot::{CellView, Outcome, SlotTable};

/// Minimum silence of the switch, in timeouts, before ranks sum instead of it. A shorter one may be the loss of a single chunk.
const SILENCE: u64 = 4;
/// How long a rank still serves others as a host after their last request, once it has all its own sums, in nanoseconds.
const WANTED_NS: u64 = 500_000_000;

/// Settings for summation by the ranks themselves, instead of by the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback {
    /// Number of timeouts of a chunk, without a frame from the switch, after which another rank (the chunk's host) sums it.
    pub after: u32,
    /// Whether the ranks sum the values from the first chunk on, because no switch was found.
    pub at_once: bool,
    /// Interval of probes to the silent switch while the ranks sum the values, in nanoseconds.
    pub retry_ns: u64,
    /// Number of timeouts without a reply from the rank that sums a chunk, after which this rank asks it whether it is alive.
    pub doubt_after: u32,
}

impl Fallback {
    /// The ranks sum the values themselves if the switch falls silent, and only then.
    pub const IF_SILENT: Self = Self {
        after: 3,
        at_once: false,
        retry_ns: 100_000_000,
        doubt_after: 2,
    };
}

/// State of this rank for the time in which ranks sum chunks for each other as hosts, instead of the switch.
#[derive(Debug, Clone)]
pub struct Hosts {
    config: Fallback,
    everyone: WorkerSet,
    /// Whether new chunks go to hosts instead of the switch.
    pub active: bool,
    /// Time at which a frame from a switch was last received.
    heard_ns: u64,
    /// Time of the next probe to the switch; `u64::MAX` (never) if its cells belong to another job of the same number.
    retry_ns: u64,
    /// Whether a probe to the switch is to be sent now.
    pub retries: bool,
    /// Time of the last GIVE or ASK from another rank; `None` before the first.
    wanted_ns: Option<u64>,
    /// The slots in which this rank sums for others as a host; `None` until they are first used.
    pub table: Option<SlotTable>,
}

impl Hosts {
    /// State for a job of up to 64 ranks, the width of the contributor bitmap; `None` for a larger job.
    pub fn new(job: &Job, fallback: Fallback) -> Option<Self> {
        (job.workers() <= u16::from(wire::MAX_CHILDREN)).then(|| Self {
            config: fallback,
            everyone: WorkerSet::first(job.workers()),
            active: fallback.at_once,
            heard_ns: 0,
            retry_ns: 0,
            retries: false,
            wanted_ns: None,
            table: None,
        })
    }

    /// Contributor bitmap of a complete sum: all ranks.
    pub fn everyone(&self) -> WorkerSet {
        self.everyone
    }

    /// Time of the next probe to the silent switch; `None` if the switch sums, or if probing has ended.
    pub fn due_ns(&self) -> Option<u64> {
        (self.active && self.retry_ns != u64::MAX).then_some(self.retry_ns)
    }
}

impl Rank {
    /// The rank that sums a lane's chunks (their host) while no switch sums.
    pub(super) fn host_of(&self, slot: usize) -> WorkerId {
        WorkerId((slot % usize::from(self.job.workers())) as u16)
    }

    /// Whether the ranks sum the values instead of the switch, as far as this rank knows.
    pub fn is_by_hosts(&self) -> bool {
        self.hosts.as_ref().is_some_and(|hosts| hosts.active)
    }

    /// Whether other ranks may still need this rank to sum for them, even if it has all its own sums.
    pub fn is_wanted(&self, now_ns: u64) -> bool {
        let wanted_ns = self.hosts.as_ref().and_then(|hosts| hosts.wanted_ns);
        !self.failed && wanted_ns.is_some_and(|at_ns| now_ns < at_ns.saturating_add(WANTED_NS))
    }

    /// Records a frame from a switch. If it answers a probe, the next chunks go to the switch again.
    pub(super) fn note_switch(&mut self, now_ns: u64, answers: bool) {
        if let Some(hosts) = &mut self.hosts {
            hosts.heard_ns = now_ns;
            if answers && hosts.active && hosts.retry_ns != u64::MAX {
                hosts.active = false;
                self.counters.returns += 1;
            }
        }
    }

    /// Stops probing the switch, whose cells belong to another use of the job's number. `false` if the switch sums at present.
    pub(super) fn forgets_switch(&mut self) -> bool {
        match &mut self.hosts {
            Some(hosts) if hosts.active => {
                hosts.retry_ns = u64::MAX;
                true
            }
            _ => false,
        }
    }

    /// Whether the ranks now replace the silent switch, after a timeout of this lane: then all chunks go to their hosts.
    pub(super) fn falls_back(&mut self, now_ns: u64, slot: usize) -> bool {
        let patience_ns = SILENCE * self.lanes.rtt.base_ns();
        let lane = &self.lanes[slot];
        let Some(hosts) = &mut self.hosts else {
            return false;
        };
        if lane.by_host || lane.silences < hosts.config.after {
            return false;
        }
        if !hosts.active && now_ns.saturating_sub(hosts.heard_ns) < patience_ns {
            return false;
        }
        if !hosts.active {
            hosts.active = true;
            hosts.retry_ns = now_ns.saturating_add(hosts.config.retry_ns);
            self.counters.fallbacks += 1;
        }
        for slot in 0..self.lanes.len() {
            self.give_to_host(slot);
        }
        true
    }

    /// Sends a lane's current chunk to the rank that hosts it.
    fn give_to_host(&mut self, slot: usize) {
        let lane = &mut self.lanes[slot];
        if lane.state == LaneState::Idle || lane.by_host {
            return;
        }
        lane.by_host = true;
        lane.silences = 0;
        if lane.is_in_flight() {
            self.lanes.enqueue(slot, Send::Values);
        }
    }

    /// After `silences` timeouts of a chunk that another rank hosts (sums): asks whether it is alive, if these are too many.
    pub(super) fn doubt_host(&mut self, now_ns: u64, slot: usize, silences: u32) {
        let config = self.hosts.as_ref().map(|hosts| hosts.config);
        if config.is_none_or(|config| silences < config.doubt_after) {
            return;
        }
        let host = self.host_of(slot);
        let chunk = self.job.chunk(self.lanes[slot].sequence);
        if let Some(peers) = &mut self.peers {
            let lane = &mut self.lanes[slot];
            lane.others_missing = lane.others_missing.max(1);
            lane.misses = lane.misses.union(WorkerSet::only(host));
            peers.ask(now_ns, host, chunk);
        }
    }

    /// Schedules a probe to the switch, if one is due.
    pub(super) fn retry_switch(&mut self, now_ns: u64) {
        if let Some(hosts) = &mut self.hosts
            && hosts.due_ns().is_some_and(|due_ns| due_ns <= now_ns)
        {
            hosts.retry_ns = now_ns.saturating_add(hosts.config.retry_ns);
            hosts.retries = self.lanes.in_flight().next().is_some();
        }
    }

    /// Index of the lane that sends its chunk as the probe to the switch; `None` if no probe is due.
    pub(super) fn retried(&mut self) -> Option<usize> {
        let hosts = self.hosts.as_mut()?;
        if !std::mem::take(&mut hosts.retries) {
            return None;
        }
        let lanes = self.lanes.iter().enumerate();
        let under_way = lanes.filter(|(_, lane)| lane.is_in_flight());
        Some(under_way.min_by_key(|(_, lane)| lane.sequence)?.0)
    }

    /// Processes another rank's ASK for a chunk. If `given`, that rank gave its values to the chunk's host: so does this rank.
    pub(super) fn is_asked(&mut self, now_ns: u64, slot: usize, sequence: u64, given: bool) {
        let Some(hosts) = &mut self.hosts else {
            return;
        };
        hosts.wanted_ns = Some(now_ns);
        if given && sequence == self.lanes[slot].sequence {
            self.give_to_host(slot);
        }
    }

    /// Processes a GIVE: values or a probe from another rank, for a chunk that this rank hosts (sums).
    pub(super) fn receive_give(&mut self, now_ns: u64, repr: &Repr, payload: &[u8]) -> RankFrame {
        let chunk = ChunkId(repr.chunk);
        let slot = self.job.lane(chunk);
        let from = WorkerId(repr.worker);
        let Some(hosts) = &mut self.hosts else {
            return RankFrame::NotOurs;
        };
        if from.0 >= self.job.workers()
            || slot % usize::from(self.job.workers()) != usize::from(self.rank.0)
        {
            return RankFrame::Malformed;
        }
        // No rank is ahead of this one by more than a window: a wild number would take over a cell that is still needed.
        let own = self.lanes[slot].sequence;
        let window = u64::from(self.job.window());
        let sequence = self.job.sequence_near(own, chunk);
        if sequence.is_none_or(|sequence| sequence > own + window) {
            return RankFrame::Malformed;
        }
        hosts.wanted_ns = Some(now_ns);
        // This rank contributes, too: one rank alone completes no sum.
        if sequence == Some(own) {
            self.give_to_host(slot);
        }
        self.sum_here(now_ns, repr, payload);
        RankFrame::Word
    }

    /// Processes this rank's own GIVE for a chunk that it hosts.
    pub(super) fn sum_own(&mut self, now_ns: u64, repr: &Repr, payload: Payload) {
        let mut own = std::mem::take(&mut self.own);
        own.resize(repr.payload_len(), 0);
        self.write(payload, &mut own);
        self.sum_here(now_ns, repr, &own);
        self.own = own;
    }

    /// Processes a GIVE (of another rank or of this one) in this rank's slots as a host, and queues the answer.
    fn sum_here(&mut self, now_ns: u64, repr: &Repr, payload: &[u8]) {
        let job = self.job;
        let chunk = ChunkId(repr.chunk);
        // No rank gives chunks beyond this one before this rank has reached it.
        let own = self.lanes[self.job.lane(chunk)].sequence;
        let newest = job.chunk(own.saturating_add(u64::from(job.window())));
        let Some(hosts) = &mut self.hosts else {
            return;
        };
        let everyone = hosts.everyone;
        let children = job.workers() as u8;
        let table = hosts
            .table
            .get_or_insert_with(|| SlotTable::with_children(job, children));
        // A host's cells are frozen while the switch sums: an owner that seems newer is half of all chunk numbers old,
        // and would make every chunk count as stale.
        let owner = table.cell(job.cell(chunk)).map(|cell| cell.owner);
        if owner.is_some_and(|owner| newest.is_older_than(owner)) {
            table.forget(chunk);
        }
        let asker = WorkerId(repr.worker);
        let update = Repr {
            kind: Kind::Update,
            ..*repr
        };
        let (cell, again, to) = match table.handle_update(&update, payload) {
            Outcome::Completed(cell) => (cell, false, everyone),
            Outcome::Again(cell) => (cell, true, WorkerSet::only(asker)),
            Outcome::Probed(cell) => {
                let told = table.cell(cell).map(|cell| cell.contributors);
                (cell, told == Some(everyone), WorkerSet::only(asker))
            }
            _ => return,
        };
        let Some(view) = table.cell(cell) else {
            return;
        };
        let of_chunk = Flags::SCALE_ONLY | Flags::VERSION | Flags::PROBE;
        let answer = Repr {
            kind: Kind::Given,
            flags: ((repr.flags & of_chunk) | view.flags).with(Flags::AGAIN, again),
            contributors: view.contributors.0,
            next_scale: view.next_scale,
            ..*repr
        };
        for rank in to.without(WorkerSet::only(self.rank)).iter() {
            if let Some(peers) = &mut self.peers {
                peers.queue(rank, Word::Given(answer, cell));
            }
        }
        if to.contains(self.rank) {
            let mut payload = std::mem::take(&mut self.answer);
            payload.resize(answer.payload_len(), 0);
            self.write(Payload::Cell(cell), &mut payload);
            self.receive(now_ns, Mark::None, &answer, &payload);
            self.answer = payload;
        }
    }

    /// The content of a register cell in which this rank sums as a host.
    pub(super) fn cell(&self, cell: CellIndex) -> Option<CellView<'_>> {
        self.hosts.as_ref()?.table.as_ref()?.cell(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::{RankEvent, Setup, Values};
    use crate::{Destination, Retransmission};

    /// A rank whose cells, as a host, were last used `ago` chunks ago.
    fn rank(number: u16, ago: u32) -> Rank {
        let mut rank = Rank::new(Setup {
            dead_after_ns: Some(1_000_000_000),
            fallback: Some(Fallback {
                at_once: true,
                ..Fallback::IF_SILENT
            }),
            ..Setup::under_one_switch(Job::of_two(0), WorkerId(number), Retransmission::default())
        });
        let table = SlotTable::with_children(Job::of_two(0u32.wrapping_sub(ago)), 2);
        rank.hosts.as_mut().unwrap().table = Some(table);
        rank.submit(Values::Integers(vec![i32::from(number) + 1; 40]))
            .unwrap();
        rank
    }

    #[test]
    fn old_cells_accept_new_chunks() {
        for ago in [
            1,
            1 << 30,
            (1 << 31) - 1,
            1 << 31,
            (1 << 31) + 1,
            3 << 30,
            u32::MAX - 20,
        ] {
            let mut ranks = [rank(0, ago), rank(1, ago)];
            let (mut sums, mut frame) = (Vec::new(), Vec::new());
            for step in 1..1000 {
                let now_ns = step * 1_000_000;
                for me in 0..2 {
                    ranks[me].handle_timeout(now_ns);
                    while let Some(to) = ranks[me].poll_packet(now_ns, &mut frame) {
                        // Frames to the switch get no answer.
                        if to == Destination::Worker(WorkerId(1 - me as u16)) {
                            ranks[1 - me].handle_packet(now_ns, Mark::None, &frame);
                        }
                    }
                    if let Some(RankEvent::Done { outcome, .. }) = ranks[me].poll_event() {
                        sums.push(outcome.unwrap().values);
                    }
                }
            }
            let right = Values::Integers(vec![3; 40]);
            assert_eq!(sums, [right.clone(), right], "{ago} chunks ago");
        }
    }
}
