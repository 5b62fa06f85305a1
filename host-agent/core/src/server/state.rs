//! Serialization of a server's state for the model checker.

use super::{Answer, Outgoing, Server};
use crate::Destination;
use crate::state::Put;

impl<A> Server<A> {
    /// Appends the fields that determine this server's further behavior, without times and statistics (`state.rs` of this
    /// crate), and without the application of the sums.
    pub fn state(&self, out: &mut Vec<u8>) {
        let Self {
            job: _,
            config: _,
            rounds,
            apply: _,
            slots,
            // The model explores jobs with a single plan.
            children: _,
            between: _,
            // Scratch buffer.
            update: _,
            // Only reported to the user.
            reported: _,
            answers,
            // Congestion marks for the workers, which only decide when they send.
            marks: _,
            sums: _,
            words: _,
            queue,
            newest,
            progress_ns: _,
            ended,
            event,
            counters,
        } = self;
        out.put_u64(rounds.map_or(u64::MAX, |rounds| rounds));
        if let Some(slots) = slots {
            slots.state(out);
        }
        for answer in answers {
            let Answer {
                sequence,
                next_scale,
                // The frame carries this number, but no receiver reads it.
                transmissions: _,
                frame,
            } = answer;
            out.put_u64(sequence.map_or(u64::MAX, |sequence| sequence));
            out.put_u8(*next_scale);
            out.put_len(frame.len());
            out.put(frame);
        }
        out.put_len(queue.len());
        for outgoing in queue {
            let Outgoing {
                cell,
                sequence,
                to,
                again,
            } = outgoing;
            out.put_u32(cell.0);
            out.put_u64(*sequence);
            out.put_u8(u8::from(*again));
            out.put_u32(match to {
                Destination::Server => 0,
                Destination::All => 1,
                Destination::Worker(worker) => 2 + u32::from(worker.0),
            });
        }
        out.put_u64(*newest);
        out.put(&[u8::from(*ended), u8::from(event.is_some())]);
        // The server detects the end of the job by this counter.
        out.put_u64(counters.completed);
    }
}
