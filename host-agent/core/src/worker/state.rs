//! Serialization of a worker's state for the model checker.

use super::{Worker, WorkerEvent};
use crate::state::Put;

impl Worker {
    /// Appends the fields that determine this worker's further behavior, without times and statistics (`state.rs` of this crate).
    pub fn state(&self, out: &mut Vec<u8>) {
        let Self {
            job: _,
            rank: _,
            sent_as: _,
            sent_so_from: _,
            is_before_move: _,
            config: _,
            phase,
            round,
            start,
            end,
            unanswered,
            values,
            exponents,
            results,
            lanes,
            timed_out_before: _,
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
        lanes.state(out, |_, (), _| ());
        out.put_u8(match event {
            None => 0,
            Some(WorkerEvent::RoundDone { .. }) => 1,
            Some(WorkerEvent::Closed) => 2,
            Some(WorkerEvent::Failed(_)) => 3,
        });
    }
}
