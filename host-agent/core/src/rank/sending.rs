//! Transmission by a rank: the frames of its chunks, and messages to other ranks.

use wire::{Flags, Kind, Packet};

use super::operation::Chunk;
use super::{Rank, late};
use crate::Destination;
use crate::job::WorkerSet;
use crate::lanes::Send;
use crate::quantise::Exponent;

impl Rank {
    /// Writes the next frame to `buffer`, replacing its content, and returns the destination; `None`: nothing to send.
    pub fn poll_transmit(&mut self, now_ns: u64, buffer: &mut Vec<u8>) -> Option<Destination> {
        if self.differing.is_some() {
            if let Some(to) = self.poll_differing(buffer) {
                self.counters.sent.count(buffer.len(), false);
                self.counters.words += 1;
                return Some(to);
            }
        } else if let Some(slot) = self.retried() {
            let transmissions = self.lanes[slot].transmissions;
            self.write(slot, Send::Probe, transmissions, false, buffer);
            self.counters.sent.count(buffer.len(), true);
            self.counters.probes += 1;
            return Some(Destination::Worker(self.rank));
        }
        while self.differing.is_none()
            && let Some((slot, what)) = self.lanes.next_send()
        {
            let deadline_ns = now_ns.saturating_add(self.timeout_ns(slot));
            let previous = self.lanes.sent(slot, now_ns, deadline_ns);
            self.plan_closing(now_ns, slot, previous == 0);
            let by_host = self.lanes[slot].by_host;
            self.write(slot, what, previous, by_host, buffer);
            let host = self.host_of(slot);
            if by_host && host == self.rank {
                self.sum_here(now_ns, buffer);
                continue;
            }
            self.counters.sent.count(buffer.len(), previous > 0);
            self.counters.probes += u64::from(what == Send::Probe);
            self.counters.closes += u64::from(what == Send::Close);
            return Some(match what {
                _ if by_host => Destination::Worker(host),
                Send::Values | Send::Close => Destination::All,
                Send::Probe | Send::Fetch => Destination::Worker(self.rank),
            });
        }
        let to = loop {
            let (to, word) = self.peers.as_mut()?.next_word()?;
            if self.write_word(word, buffer) {
                break to;
            }
        };
        self.counters.sent.count(buffer.len(), false);
        self.counters.words += 1;
        Some(Destination::Worker(to))
    }

    fn write(&self, slot: usize, what: Send, previous: u32, by_host: bool, buffer: &mut Vec<u8>) {
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
        repr.transmission = u8::try_from(previous).unwrap_or(u8::MAX);
        if is_probe {
            repr.count = 0;
        } else {
            repr.scale = lane.scale.bits();
            repr.contributors = WorkerSet::only(child).0;
            repr.next_scale = self.wanted(lane).bits();
        }
        buffer.clear();
        buffer.resize(repr.buffer_len(), 0);
        let mut packet = Packet::new_unchecked(&mut buffer[..]);
        repr.emit(&mut packet);
        let (Some(operation), Chunk::Values(index), false) = (operation, chunk, is_probe) else {
            return;
        };
        // If the values exceed the guess, `next_scale` reports it, and all ranks send the chunk again.
        let draws = operation.draws(self.rank.0, lane.item);
        let words = operation.begin(index, packet.payload_mut());
        if wants.is_some_and(|wants| wants <= lane.scale) {
            operation.encode(&self.job, index, lane.scale, draws, words);
        } else if self.late.is_some() && late::clips(lane, operation, index) {
            operation.encode_clipped(&self.job, index, lane.scale, draws, words);
        }
    }
}
