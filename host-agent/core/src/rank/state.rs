//! A rank as bytes.

use super::operation::Chunk;
use super::{Event, Operation, Rank, Values};
use crate::quantise::Exponent;
use crate::rank::lane::Lane;
use crate::state::Put;

impl Rank {
    /// Appends what decides what this rank does from now on, without time and statistics (`state.rs` of this crate).
    pub fn state(&self, out: &mut Vec<u8>) {
        let Self {
            job: _,
            rank: _,
            config: _,
            rtt: _,
            operations,
            submitted,
            items,
            lanes,
            queue,
            next_order: _,
            earliest_ns: _,
            events,
            failed,
            counters: _,
        } = self;
        out.put_u64(*submitted);
        out.put_u64(*items);
        out.put_u8(u8::from(*failed));
        out.put_len(operations.len());
        operations.iter().for_each(|operation| put(operation, out));
        lanes.iter().for_each(|lane| put_lane(lane, out));
        out.put_len(queue.len());
        queue.iter().for_each(|lane| out.put(&lane.to_le_bytes()));
        out.put_len(events.len());
        for event in events {
            match event {
                Event::Done { operation, values } => {
                    out.put_u8(0);
                    out.put_u64(*operation);
                    put_values(values, out);
                }
                Event::Failed(_) => out.put_u8(1),
            }
        }
    }
}

fn put(operation: &Operation, out: &mut Vec<u8>) {
    out.put_u64(operation.id);
    out.put_u64(operation.first);
    out.put_u64(operation.unanswered);
    put_values(&operation.values, out);
    for item in 0..operation.items() {
        match operation.chunk(item) {
            Chunk::ScaleOnly => out.put_u8(0),
            // The exponents are those of the values before they were summed.
            Chunk::Values(index) => match operation.exponent(index) {
                Some(exponent) => out.put(&[1, exponent.bits()]),
                None => out.put_u8(2),
            },
        }
    }
}

fn put_values(values: &Values, out: &mut Vec<u8>) {
    out.put_len(values.len());
    match values {
        Values::Floats(values) => {
            out.put_u8(0);
            values.iter().for_each(|value| out.put_u32(value.to_bits()));
        }
        Values::Integers(values) => {
            out.put_u8(1);
            values.iter().for_each(|value| out.put_u32(*value as u32));
        }
    }
}

fn put_lane(lane: &Lane, out: &mut Vec<u8>) {
    let Lane {
        state,
        item,
        sequence,
        scale,
        attempt,
        agreed,
        last,
        sends,
        // How often is said in the frame, and read by nobody.
        transmissions: _,
        timeouts: _,
        silences: _,
        sent_at_ns: _,
        deadline_ns: _,
        first_order: _,
        last_order: _,
        overtaken: _,
        asked_early: _,
        // Told to people, and used for nothing.
        misses: _,
    } = lane;
    out.put(&[*state as u8, *attempt as u8]);
    out.put_u8(sends.map_or(0, |sends| sends as u8 + 1));
    out.put_u64(*item);
    out.put_u64(*sequence);
    out.put(&[scale, agreed, last].map(|exponent: &Exponent| exponent.bits()));
}
