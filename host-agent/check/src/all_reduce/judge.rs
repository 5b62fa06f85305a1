//! Input values of the ranks in the all-reduce model, and verification of their sums.

use aggregation::job::WorkerId;
use aggregation::rank::{NonFinite, Partial, Sums, Values};

use super::{AllReduce, Operation, RankMember};
use crate::model::Wrong;

impl AllReduce {
    /// The values of operation `at`: those of one rank, or with `None` their sum over all ranks.
    pub(super) fn values(&self, at: usize, of: Option<u8>) -> Values {
        let chunks_before: usize = (0..at).map(|before| self.operation(before).chunks()).sum();
        let ranks = self.bounds.ranks;
        let is_of = |rank: u8| rank < ranks && of.is_none_or(|of| of == rank);
        let operation = self.operation(at);
        let values = operation.chunks() * self.job.values_per_packet() - 1;
        let places = (0..values).map(|value| {
            let (chunk, rank) = self.place(value);
            ((chunks_before + chunk) as u32, rank)
        });
        match operation {
            // Between a thousand and two thousand: no sum of several values equals one of them.
            Operation::Integers(_) => Values::Integers(
                places
                    .map(|(chunk, rank)| if is_of(rank) { 1000 + chunk as i32 } else { 0 })
                    .collect(),
            ),
            // Between one and two: no sum of several values equals one of them.
            Operation::Floats(_, exponents) => Values::Floats(
                places
                    .map(|(chunk, rank)| match is_of(rank) {
                        true => {
                            let exponent = exponents.get(usize::from(rank)).copied().unwrap_or(0);
                            (1.0 + chunk as f32 / 256.0) * 2f32.powi(i32::from(exponent))
                        }
                        false => 0.0,
                    })
                    .collect(),
            ),
            Operation::NotFinite => Values::Floats(
                places
                    .map(|(_, rank)| match (is_of(rank), rank) {
                        (true, 0) => f32::NAN,
                        (true, _) => 1.0,
                        (false, _) => 0.0,
                    })
                    .collect(),
            ),
        }
    }

    /// Index of the chunk that has this value of an operation, and the rank that contributes to it; `u8::MAX` if none does.
    fn place(&self, value: usize) -> (usize, u8) {
        let words = self.job.values_per_packet();
        let (chunk, word) = ((value + 1) / words, (value + 1) % words);
        (
            chunk,
            word.checked_sub(1).map_or(u8::MAX, |rank| rank as u8),
        )
    }

    /// The error in partial sums of an operation, or `None`. Another check compares the sums of different ranks.
    pub(super) fn judge_partial(
        &self,
        at: usize,
        member: &mut RankMember,
        sums: &Sums,
    ) -> Option<Wrong> {
        let everyone = self.job.everyone();
        let contributors = |chunk: usize| {
            let is_of = |partial: &&Partial| partial.index == chunk;
            let partial = sums.partial.iter().find(is_of);
            partial.map_or(everyone, |partial| partial.contributors)
        };
        let Values::Integers(mut right) = self.values(at, None) else {
            let what = "deadlines are explored with integers".to_owned();
            return Some(Wrong::Unexpected(what));
        };
        for (value, right) in right.iter_mut().enumerate() {
            let (chunk, rank) = self.place(value);
            if !contributors(chunk).contains(WorkerId(rank.into())) {
                *right = 0;
            }
        }
        let chunks = 0..(right.len() + 1) / self.job.values_per_packet();
        member.taken.resize(at, Vec::new());
        member
            .taken
            .push(chunks.map(|chunk| contributors(chunk).0).collect());
        let right = Values::Integers(right);
        (sums.values != right).then(|| {
            let what = format!(
                "rank {} has {:?} where {right:?} is right",
                member.id, sums.values
            );
            Wrong::Sum(what)
        })
    }

    /// The error in the sums that a rank has for operation `at`; `None` if they are correct.
    pub(super) fn judge(&self, at: usize, rank: u8, sums: &Values) -> Option<Wrong> {
        let bits: Vec<u32> = match sums {
            Values::Floats(sums) => sums.iter().map(|sum| sum.to_bits()).collect(),
            Values::Integers(sums) => sums.iter().map(|sum| *sum as u32).collect(),
            other => {
                let what = format!("rank {rank} has sums of another type: {other:?}");
                return Some(Wrong::Unexpected(what));
            }
        };
        let right = self.values(at, None);
        let is_right = match (&right, sums) {
            (Values::Floats(right), Values::Floats(sums)) => right
                .iter()
                .zip(sums)
                .all(|(right, sum)| (right - sum).abs() <= right / 2048.0),
            (right, sums) => right == sums,
        };
        if !is_right {
            let what = format!("rank {rank} has {sums:?} where {right:?} is right");
            return Some(Wrong::Sum(what));
        }
        let mut known = self.sums.borrow_mut();
        if known.entry(at).or_insert_with(|| bits.clone()) == &bits {
            return None;
        }
        let what = format!("rank {rank} has other bits than another rank: {sums:?}");
        Some(Wrong::Sum(what))
    }

    /// The error if a rank wrongly reports that an operation has no sums; `None` if the report is correct.
    pub(super) fn judge_failure(&self, rank: u8, error: NonFinite) -> Option<Wrong> {
        let is_told = self.operation(error.operation as usize) == Operation::NotFinite;
        (!is_told).then(|| Wrong::Unexpected(format!("rank {rank}: {error}")))
    }
}
