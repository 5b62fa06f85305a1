//! Transmission by a rank: the frames of its chunks, and messages to other ranks.

use wire::{Flags, Kind, MAX_TRANSMISSION, Repr, write_i32};

use super::operation::Chunk;
use super::{Rank, late};
use crate::Destination;
use crate::job::{CellIndex, WorkerSet};
use crate::lanes::Send;
use crate::quantise::Exponent;

/// A frame that a rank sends, without its payload, which [`Rank::write_payload`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Destination of the frame.
    pub to: Destination,
    /// Header of the frame; [`Repr::payload_len`] is the length of the payload.
    pub repr: Repr,
    pub(super) payload: Payload,
}

/// Source of an outgoing frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// The frame is a header alone.
    Nothing,
    /// The values of the chunk in this slot.
    Values(usize),
    /// The sum that this rank has kept at this index.
    Kept(usize),
    /// The sum that this rank has made in this register cell, as a host.
    Cell(CellIndex),
    /// This rank's terms (description of its operations).
    Terms,
}

impl Rank {
    /// The next frame to send; `None` if there is none. Its payload must be written before any other change to this rank.
    pub fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit> {
        if self.differing.is_some() {
            if let Some(transmit) = self.poll_differing() {
                return Some(self.count_word(transmit));
            }
        } else if let Some(slot) = self.retried() {
            let transmissions = self.lanes[slot].transmissions;
            let transmit = self.frame(slot, Send::Probe, transmissions, false);
            self.counters.sent.count(transmit.repr.buffer_len(), true);
            self.counters.probes += 1;
            return Some(transmit);
        }
        while self.differing.is_none()
            && let Some((slot, what)) = self.lanes.next_send()
        {
            let deadline_ns = now_ns.saturating_add(self.timeout_ns(slot));
            let previous = self.lanes.sent(slot, now_ns, deadline_ns);
            self.plan_closing(now_ns, slot, previous == 0);
            let by_host = self.lanes[slot].by_host;
            let transmit = self.frame(slot, what, previous, by_host);
            if by_host && self.host_of(slot) == self.rank {
                self.sum_own(now_ns, &transmit);
                continue;
            }
            let len = transmit.repr.buffer_len();
            self.counters.sent.count(len, previous > 0);
            self.counters.probes += u64::from(what == Send::Probe);
            self.counters.closes += u64::from(what == Send::Close);
            return Some(transmit);
        }
        loop {
            let (to, word) = self.peers.as_mut()?.next_word()?;
            if let Some((repr, payload)) = self.word(word) {
                let to = Destination::Worker(to);
                return Some(self.count_word(Transmit { to, repr, payload }));
            }
        }
    }

    fn count_word(&mut self, transmit: Transmit) -> Transmit {
        self.counters.sent.count(transmit.repr.buffer_len(), false);
        self.counters.words += 1;
        transmit
    }

    /// The frame that a lane sends, to the chunk's host (`by_host`) or to the switch.
    fn frame(&self, slot: usize, what: Send, previous: u32, by_host: bool) -> Transmit {
        let lane = &self.lanes[slot];
        let (operation, chunk) = match self.chunk_of(lane.item) {
            Some((operation, chunk)) => (Some(operation), chunk),
            None => (None, Chunk::ScaleOnly),
        };
        let is_probe = what == Send::Probe;
        let scale_only = chunk == Chunk::ScaleOnly;
        let (kind, child) = match by_host {
            true => (Kind::Give, self.rank),
            false => (Kind::Update, self.place.child),
        };
        let mut repr = self.job.header(kind, lane.sequence, scale_only);
        let wants = match (operation, chunk) {
            (Some(operation), Chunk::Values(index)) => operation.exponent(index),
            _ => Some(Exponent::ZERO),
        };
        repr.flags = repr
            .flags
            .with(Flags::NON_FINITE, wants.is_none() && !is_probe)
            .with(Flags::AGAIN, previous > 0)
            .with(Flags::PROBE, is_probe)
            .with(Flags::TIMED, lane.is_timed)
            .with(Flags::CLOSE, what == Send::Close);
        repr.worker = child.0;
        repr.transmission = previous.min(MAX_TRANSMISSION.into()) as u8;
        if is_probe {
            repr.count = 0;
        } else {
            repr.scale = lane.scale.bits();
            repr.contributors = WorkerSet::only(child).0;
            repr.next_scale = self.wanted(lane).bits();
        }
        Transmit {
            to: match what {
                _ if by_host => Destination::Worker(self.host_of(slot)),
                Send::Values | Send::Close => Destination::All,
                Send::Probe | Send::Fetch => Destination::Worker(self.rank),
            },
            repr,
            payload: match repr.count {
                0 => Payload::Nothing,
                _ => Payload::Values(slot),
            },
        }
    }

    /// Writes the payload of a frame from [`poll_transmit`](Self::poll_transmit): replaces all bytes of `room`.
    ///
    /// # Panics
    /// If `room` does not have [`Repr::payload_len`] bytes.
    pub fn write_payload(&self, transmit: &Transmit, room: &mut [u8]) {
        assert_eq!(room.len(), transmit.repr.payload_len(), "payload's length");
        match transmit.payload {
            Payload::Nothing => {}
            Payload::Values(slot) => self.write_values(slot, room),
            Payload::Kept(at) => {
                write_i32(room, self.kept[at].values.iter().copied());
            }
            Payload::Cell(cell) => self.write_sum(cell, room),
            Payload::Terms => self.write_terms(room),
        }
    }

    fn write_values(&self, slot: usize, room: &mut [u8]) {
        let lane = &self.lanes[slot];
        let Some((operation, Chunk::Values(index))) = self.chunk_of(lane.item) else {
            return room.fill(0);
        };
        // If the values exceed the guess, `next_scale` reports it, and all ranks send the chunk again.
        let draws = operation.draws(self.rank.0, lane.item);
        let words = operation.begin(&self.job, index, room);
        let wants = operation.exponent(index);
        if wants.is_some_and(|wants| wants <= lane.scale) {
            operation.encode(&self.job, index, lane.scale, draws, words);
        } else if self.late.is_some() && late::clips(lane, operation, index) {
            operation.encode_clipped(&self.job, index, lane.scale, draws, words);
        } else {
            words.fill(0);
        }
    }

    /// Writes the next frame to `buffer`, replacing its content, and returns its destination; `None` if there is none.
    pub fn poll_packet(&mut self, now_ns: u64, buffer: &mut Vec<u8>) -> Option<Destination> {
        let transmit = self.poll_transmit(now_ns)?;
        buffer.resize(transmit.repr.buffer_len(), 0);
        let write = |room: &mut [u8]| self.write_payload(&transmit, room);
        transmit.repr.emit_frame(buffer, write);
        Some(transmit.to)
    }
}
