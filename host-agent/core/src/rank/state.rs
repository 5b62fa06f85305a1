//! Serialization of a rank's state for the model checker.

use super::lane::{RankLane, RankLaneFields};
use super::late::{Late, TOLD_BEFORE_HELPING};
use super::operation::Chunk;
use super::peers::{Kept, Peers, Word};
use super::{Operation, Partial, Rank, RankEvent, Reduction, Rounding, Share, Values};
use crate::quantise::Exponent;
use crate::state::Put;
use wire::{Flags, HEADER_LEN, Packet};

impl Rank {
    /// Appends the fields that determine this rank's further behavior, without times and statistics (`state.rs` of this crate).
    pub fn state(&self, out: &mut Vec<u8>) {
        let Self {
            job: _,
            rank: _,
            place: _,
            config: _,
            peers,
            hosts,
            own: _,
            answer: _,
            kept,
            late,
            operations,
            submitted,
            items,
            lanes,
            is_backed_off: _,
            events,
            failed,
            differing,
            doubts,
            counters: _,
        } = self;
        out.put_u64(*submitted);
        out.put_u64(*items);
        out.put_u8(u8::from(*failed));
        out.put_u8(*doubts);
        // The end of the wait is a time.
        if let Some(differing) = differing {
            // The operations that it announces follow from `operations`.
            out.put_u64(u64::from(differing.next));
            out.put_u8(u8::from(differing.again));
        }
        out.put_len(operations.len());
        operations.iter().for_each(|operation| put(operation, out));
        lanes.state(out, put_lane);
        out.put_len(events.len());
        for event in events {
            match event {
                RankEvent::Done { operation, outcome } => {
                    out.put_u8(0);
                    out.put_u64(*operation);
                    match outcome {
                        Ok(sums) => {
                            put_values(&sums.values, out);
                            put_partial(&sums.partial, out);
                        }
                        Err(not_finite) => out.put_len(not_finite.index),
                    }
                }
                RankEvent::Failed(_) => out.put_u8(1),
            }
        }
        kept.iter().for_each(|kept| put_kept(kept, out));
        if let Some(late) = late {
            put_late(late, out);
        }
        if let Some(peers) = peers {
            put_peers(peers, out);
        }
        if let Some(hosts) = hosts {
            // The times of fallback and retry are left out.
            out.put_u8(u8::from(hosts.active));
            if let Some(table) = &hosts.table {
                table.state(out);
            }
        }
    }
}

fn put(operation: &Operation, out: &mut Vec<u8>) {
    out.put_u64(operation.id);
    out.put_u64(operation.first);
    out.put_u64(operation.unanswered);
    put_values(&operation.values, out);
    let Reduction {
        average,
        // Follows from the terms, which all ranks have in common.
        exact: _,
        rounding,
        key,
        share,
        // The operation's own terms are compared.
        terms: _,
    } = operation.reduction;
    let words = operation.terms.words();
    words.iter().for_each(|word| out.put_u32(*word));
    out.put_u64(key.map_or(u64::MAX, |key| key));
    put_partial(&operation.partial, out);
    if let Some(residual) = &operation.residual {
        put_values(residual, out);
    }
    out.put_u8(u8::from(average));
    out.put_u8(match share {
        Share::GivesAndTakes => 0,
        Share::Gives => 1,
        Share::Takes => 2,
        Share::Compares => 3,
    });
    match rounding {
        Rounding::Nearest => out.put_u8(0),
        Rounding::Stochastic { seed } => {
            out.put_u8(1);
            out.put_u64(seed);
        }
    }
    // The error bound follows from the exponents sent.
    out.put_len(operation.non_finite().map_or(usize::MAX, |index| index));
    for item in 0..operation.items() {
        match operation.chunk(item) {
            Chunk::ScaleOnly => out.put_u8(0),
            // The exponents belong to the values before they were summed.
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
        Values::Float16s(values) => {
            out.put_u8(2);
            let bits = values.iter().map(|value| value.to_bits());
            bits.for_each(|bits| out.put(&bits.to_le_bytes()));
        }
        Values::Bfloat16s(values) => {
            out.put_u8(3);
            let bits = values.iter().map(|value| value.to_bits());
            bits.for_each(|bits| out.put(&bits.to_le_bytes()));
        }
        Values::Int8s(values) => {
            out.put_u8(4);
            values.iter().for_each(|value| out.put_u8(*value as u8));
        }
    }
}

fn put_partial(partial: &[Partial], out: &mut Vec<u8>) {
    out.put_len(partial.len());
    for Partial {
        index,
        contributors,
    } in partial
    {
        out.put_len(*index);
        out.put_u64(contributors.0);
    }
}

fn put_late(late: &Late, out: &mut Vec<u8>) {
    out.put_u8(u8::from(late.is_opened));
    late.needs_from
        .iter()
        .for_each(|sequence| out.put_u64(*sequence));
    for (key, values) in &late.residuals {
        out.put_u64(*key);
        put_values(values, out);
    }
}

fn put_kept(kept: &Kept, out: &mut Vec<u8>) {
    let Kept {
        sequence,
        contributors,
        flags,
        scale,
        next_scale,
        values,
    } = kept;
    out.put_u64(sequence.map_or(u64::MAX, |sequence| sequence));
    out.put_u64(*contributors);
    // A kept sum is sent with `AGAIN`, however it arrived.
    let flags = Flags::from_bits(*flags) | Flags::AGAIN;
    out.put(&[flags.bits(), *scale, *next_scale]);
    out.put_len(values.len());
    values.iter().for_each(|value| out.put_u32(*value as u32));
}

fn put_peers(peers: &Peers, out: &mut Vec<u8>) {
    let words = peers.words();
    out.put_len(words.len());
    for (to, word) in words {
        out.put(&to.0.to_le_bytes());
        match word {
            Word::Ask(chunk) => {
                out.put_u8(0);
                out.put_u32(chunk.0);
            }
            Word::Here(chunk) => {
                out.put_u8(1);
                out.put_u32(chunk.0);
            }
            Word::Differ => out.put_u8(4),
            Word::Sum(lane) => {
                out.put_u8(2);
                out.put_len(*lane);
            }
            Word::Given(answer, _) => {
                out.put_u8(3);
                let mut bytes = vec![0; HEADER_LEN];
                answer.emit(&mut Packet::new_unchecked(&mut bytes[..]));
                out.put(&bytes);
            }
        }
    }
}

fn put_lane(lane: &RankLane, own: &RankLaneFields, out: &mut Vec<u8>) {
    let RankLaneFields {
        attempt,
        agreed,
        last,
        silences: _,
        // An answer repeats the missing ranks before they decide anything. One lane asks all of the missing, the others one
        // after the other: that is *when*.
        misses: _,
        // If the first answer is not enough to ask others, this only decides when.
        others_missing: _,
        by_host,
        is_timed,
        closable_ns: _,
        closing_ns: _,
        asks,
        seen,
    } = own;
    out.put_u8(u8::from(*is_timed));
    // From that number on, this rank closes what others have not closed.
    out.put_u8((*asks).min(TOLD_BEFORE_HELPING) as u8);
    // Relevant only if it is ahead of the next chunk.
    out.put_u64(seen.saturating_sub(lane.sequence));
    out.put(&[*attempt as u8, u8::from(*by_host)]);
    out.put(&[agreed, last].map(|exponent: &Exponent| exponent.bits()));
}
