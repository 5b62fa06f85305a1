//! Transmission by a rank: the frames of its chunks, and messages to other ranks.

use wire::{Flags, HEADER_LEN, Kind, MAX_TRANSMISSION, Packet, Repr, write_i32};

use super::operation::Chunk;
use super::{Rank, late};
use crate::Destination;
use crate::job::{CellIndex, WorkerSet};
use crate::lanes::Send;
use crate::quantise::Exponent;

/// A frame to send: its payload is written where the frame leaves from.
#[derive(Debug, Clone, Copy)]
pub struct Transmit<'a> {
    /// Destination of the frame.
    pub to: Destination,
    /// Header of the frame; [`Repr::payload_len`] is the length of the payload.
    pub header: Repr,
    payload: Option<(&'a Rank, Payload)>,
}

impl Transmit<'_> {
    /// A frame without values.
    pub fn without_values(to: Destination, header: Repr) -> Self {
        Self {
            to,
            header,
            payload: None,
        }
    }

    /// Writes the payload: replaces all bytes of `room`, which must have [`Repr::payload_len`] bytes.
    pub fn write_payload(&self, room: &mut [u8]) {
        if let Some((rank, payload)) = self.payload {
            rank.write(payload, room);
        }
    }

    /// Writes header and payload: replaces all bytes of `frame`, which must have [`Repr::buffer_len`] bytes.
    pub fn write_frame(&self, frame: &mut [u8]) {
        self.header.emit(&mut Packet::new_unchecked(&mut *frame));
        self.write_payload(&mut frame[HEADER_LEN..]);
    }
}

/// Source of an outgoing frame's payload.
#[derive(Debug, Clone, Copy)]
pub enum Payload {
    /// There is no payload.
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
    /// The next frame to send; `None` if there is none.
    pub fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        let (to, header, payload) = self.next_frame(now_ns)?;
        Some(Transmit {
            to,
            header,
            payload: Some((&*self, payload)),
        })
    }

    /// Writes the next frame to `buffer`, replacing its content, and returns its destination; `None` if there is none.
    pub fn poll_packet(&mut self, now_ns: u64, buffer: &mut Vec<u8>) -> Option<Destination> {
        let transmit = self.poll_transmit(now_ns)?;
        buffer.resize(transmit.header.buffer_len(), 0);
        transmit.write_frame(buffer);
        Some(transmit.to)
    }

    fn next_frame(&mut self, now_ns: u64) -> Option<(Destination, Repr, Payload)> {
        let differing = self.poll_differing();
        if self.differing.is_none()
            && let Some(slot) = self.retried()
        {
            let transmissions = self.lanes[slot].transmissions;
            let (repr, payload) = self.frame(slot, Send::Probe, transmissions, false);
            self.counters.sent.count(repr.buffer_len(), true);
            self.counters.probes += 1;
            return Some((Destination::Worker(self.rank), repr, payload));
        }
        while self.differing.is_none()
            && let Some((slot, what)) = self.lanes.next_send()
        {
            let deadline_ns = now_ns.saturating_add(self.timeout_ns(slot));
            let previous = self.lanes.sent(slot, now_ns, deadline_ns);
            self.plan_closing(now_ns, slot, previous == 0);
            let by_host = self.lanes[slot].by_host;
            let (repr, payload) = self.frame(slot, what, previous, by_host);
            let host = self.host_of(slot);
            if by_host && host == self.rank {
                self.sum_own(now_ns, &repr, payload);
                continue;
            }
            self.counters.sent.count(repr.buffer_len(), previous > 0);
            self.counters.probes += u64::from(what == Send::Probe);
            self.counters.closes += u64::from(what == Send::Close);
            let to = match what {
                _ if by_host => Destination::Worker(host),
                Send::Values | Send::Close => Destination::All,
                Send::Probe | Send::Fetch => Destination::Worker(self.rank),
            };
            return Some((to, repr, payload));
        }
        let (to, (repr, payload)) = match differing {
            Some(differing) => differing,
            None => loop {
                let (to, word) = self.peers.as_mut()?.next_word()?;
                if let Some(frame) = self.word(word) {
                    break (to, frame);
                }
            },
        };
        self.counters.sent.count(repr.buffer_len(), false);
        self.counters.words += 1;
        Some((Destination::Worker(to), repr, payload))
    }

    /// The frame that a lane sends, to the chunk's host (`by_host`) or to the switch.
    fn frame(&self, slot: usize, what: Send, previous: u32, by_host: bool) -> (Repr, Payload) {
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
        let payload = match repr.count {
            0 => Payload::Nothing,
            _ => Payload::Values(slot),
        };
        (repr, payload)
    }

    /// Writes a frame's payload: replaces all bytes of `room`.
    pub(super) fn write(&self, payload: Payload, room: &mut [u8]) {
        let words = match payload {
            Payload::Nothing => None,
            Payload::Values(slot) => return self.write_values(slot, room),
            Payload::Kept(at) => Some(&self.kept[at].values[..]),
            Payload::Cell(cell) => self.cell(cell).map(|view| view.values),
            Payload::Terms => self.differing.as_ref().map(|told| &told.words[..]),
        };
        write_i32(room, words.unwrap_or_default().iter().copied());
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Retransmission;
    use crate::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
    use crate::rank::{Reduction, Setup, Share, Values};

    #[test]
    fn a_payload_replaces_all_bytes() {
        let job = Job::under_one_switch(JobConfig {
            job: JobId(1),
            workers: 2,
            window: 64,
            values_per_packet: 32,
            values_per_round: 0,
            first_chunk: ChunkId(0),
        });
        let job = job.unwrap();
        for (exact, share) in [
            (false, Share::default()),
            (true, Share::default()),
            (false, Share::Takes),
        ] {
            let setup = Setup::under_one_switch(job, WorkerId(0), Retransmission::default());
            let mut rank = Rank::new(setup);
            let reduction = Reduction {
                exact,
                share,
                ..Reduction::default()
            };
            // Zeros, values that fit no guess, NaN, and a chunk that is not full.
            for value in [0.0, 1.0, 1e30, f32::NAN] {
                let values = Values::Floats(vec![value; 16]);
                rank.submit_as(values, reduction).unwrap();
            }
            let mut frames = 0;
            while let Some(frame) = rank.poll_transmit(0) {
                let rooms = [0, 0xAA].map(|byte| {
                    let mut room = vec![byte; frame.header.payload_len()];
                    frame.write_payload(&mut room);
                    room
                });
                assert_eq!(rooms[0], rooms[1], "{:?}", frame.header);
                frames += 1;
            }
            assert_eq!(frames, if exact { 24 } else { 4 });
        }
    }
}
