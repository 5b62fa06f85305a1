//! A worker as bytes.

use super::lane::Lane;
use super::{Event, Worker};
use crate::state::Put;

impl Worker {
    /// Appends what decides what this worker does from now on, without time and statistics (`state.rs` of this crate).
    pub fn state(&self, out: &mut Vec<u8>) {
        let Self {
            job: _,
            rank: _,
            sent_as: _,
            sent_so_from: _,
            is_before_move: _,
            config: _,
            rtt: _,
            phase,
            round,
            start,
            end,
            unanswered,
            values,
            exponents,
            results,
            lanes,
            // Decides how soon is sent.
            in_flight: _,
            // Which lanes have something to send is said by them; of two, that of the lower chunk is sent first.
            queue: _,
            // What it holds back is sent in the end (`congestion/queue.rs`), so it decides *when*.
            window: _,
            next_order: _,
            timed_out_before: _,
            earliest_ns: _,
            event,
            counters: _,
        } = self;
        out.put_u8(*phase as u8);
        [round, start, end, unanswered]
            .iter()
            .for_each(|number| out.put_u64(**number));
        out.put_len(values.len());
        values.iter().for_each(|value| out.put_u32(value.to_bits()));
        out.put_len(exponents.len());
        for exponent in exponents {
            match exponent {
                Some(exponent) => out.put(&[1, exponent.bits()]),
                None => out.put_u8(0),
            }
        }
        results.iter().for_each(|result| out.put_u32(*result));
        lanes.iter().for_each(|lane| put_lane(lane, out));
        out.put_u8(match event {
            None => 0,
            Some(Event::RoundDone { .. }) => 1,
            Some(Event::Closed) => 2,
            Some(Event::Failed(_)) => 3,
        });
    }
}

fn put_lane(lane: &Lane, out: &mut Vec<u8>) {
    let Lane {
        state,
        sequence,
        scale,
        queued,
        // How often is said in the frame, and read by nobody.
        transmissions: _,
        timeouts: _,
        sent_at_ns: _,
        first_sent_ns: _,
        deadline_ns: _,
        first_order: _,
        last_order: _,
        overtaken: _,
        fast_retransmitted: _,
    } = lane;
    out.put(&[*state as u8, u8::from(*queued), scale.bits()]);
    out.put_u64(*sequence);
}
