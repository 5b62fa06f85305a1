//! The training data set: 1,797 handwritten digits of 8 × 8 pixels.
//!
//! "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, licensed
//! CC BY 4.0: `host-agent/data`. It is part of the program; nothing is downloaded at run time.

use std::collections::VecDeque;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Number of pixels per sample of the data set.
pub const FEATURES: usize = 64;
/// Number of classes: the digits 0 to 9.
pub const CLASSES: usize = 10;
const DIGITS: &str = include_str!("../../data/optdigits.csv");
/// The largest value of a pixel in the data set's file.
const LEVELS: u8 = 16;
/// One in this many samples, the last of each such sequence, is held out from training.
const HELD_OUT: usize = 5;

/// A sample of the data set: the image of one handwritten digit.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Brightness of the image's pixels, from 0 to 1.
    pub pixels: [f32; FEATURES],
    /// The digit that the image shows, from 0 to 9.
    pub digit: usize,
}

/// The data set, split into training and held-out samples.
#[derive(Debug, Clone)]
pub struct Digits {
    /// Samples for training.
    pub training: Vec<Sample>,
    /// Samples that are never used for training.
    pub held_out: Vec<Sample>,
}

/// Reason why the data set cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// A line of the data set's file has an unexpected form.
    #[error("line {line} of the digits data set is not 64 pixels of 0 to 16 and a digit of 0 to 9")]
    Shape {
        /// Number of that line, from 1.
        line: usize,
    },
    /// There are more workers than samples.
    #[error("worker {rank} of {workers} has no sample")]
    EmptyShard {
        /// Rank of a worker that would have no sample.
        rank: u16,
        /// Number of workers in the job.
        workers: u16,
    },
    /// The batch size is 0.
    #[error("a batch needs at least one sample")]
    EmptyBatch,
}

impl Digits {
    /// Reads and splits the data set: every fifth sample is held out.
    pub fn load() -> Result<Digits, DataError> {
        let mut digits = Digits {
            training: Vec::new(),
            held_out: Vec::new(),
        };
        for (index, line) in DIGITS.lines().enumerate() {
            let sample = Sample::read(line).ok_or(DataError::Shape { line: index + 1 })?;
            let part = if index % HELD_OUT == HELD_OUT - 1 {
                &mut digits.held_out
            } else {
                &mut digits.training
            };
            part.push(sample);
        }
        Ok(digits)
    }
}

impl Sample {
    /// Parses 64 pixels and the digit, separated by commas; `None` if the line has another form.
    fn read(line: &str) -> Option<Sample> {
        let mut numbers = line.split(',').map(|number| number.parse::<u8>().ok());
        let mut pixels = [0.0; FEATURES];
        for pixel in &mut pixels {
            let level = numbers.next()??;
            *pixel = (level <= LEVELS).then(|| f32::from(level) / f32::from(LEVELS))?;
        }
        let digit = usize::from(numbers.next()??);
        (digit < CLASSES && numbers.next().is_none()).then_some(Sample { pixels, digit })
    }
}

/// A worker's mini-batches, drawn from its shard (every n-th training sample), which is reshuffled each time it is used up.
#[derive(Debug, Clone)]
pub struct Batches {
    shard: Vec<usize>,
    waiting: VecDeque<usize>,
    size: usize,
    random: ChaCha8Rng,
}

impl Batches {
    /// Prepares the mini-batches of one worker.
    pub fn new(
        training_samples: usize,
        rank: u16,
        workers: u16,
        size: usize,
        seed: u64,
    ) -> Result<Batches, DataError> {
        if size == 0 {
            return Err(DataError::EmptyBatch);
        }
        let shard: Vec<usize> = (usize::from(rank)..training_samples)
            .step_by(usize::from(workers.max(1)))
            .collect();
        if shard.is_empty() || rank >= workers {
            return Err(DataError::EmptyShard { rank, workers });
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // Stream 0 generates the initial weights.
        random.set_stream(u64::from(rank) + 1);
        Ok(Batches {
            shard,
            waiting: VecDeque::new(),
            size,
            random,
        })
    }

    /// The indices of the training samples in the next mini-batch.
    pub fn next_batch(&mut self) -> Vec<usize> {
        while self.waiting.len() < self.size {
            self.shuffle();
            self.waiting.extend(&self.shard);
        }
        self.waiting.drain(..self.size).collect()
    }

    /// Reorders the worker's shard at random, by a Fisher–Yates shuffle.
    fn shuffle(&mut self) {
        for last in (1..self.shard.len()).rev() {
            // The bias of the remainder is below 2^-50 for such lengths, which training cannot notice.
            let other = (self.random.next_u64() % (last as u64 + 1)) as usize;
            self.shard.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_set_has_its_documented_sizes() {
        let digits = Digits::load().unwrap();
        assert_eq!((digits.training.len(), digits.held_out.len()), (1438, 359));
        for digit in 0..CLASSES {
            for part in [&digits.training, &digits.held_out] {
                assert!(
                    part.iter().filter(|sample| sample.digit == digit).count() >= 20,
                    "{digit}"
                );
            }
        }
        assert!(
            digits
                .training
                .iter()
                .flat_map(|s| s.pixels)
                .all(|pixel| (0.0..=1.0).contains(&pixel))
        );
    }

    #[test]
    fn an_invalid_line_is_refused() {
        let blank = "0,".repeat(FEATURES);
        assert_eq!(Sample::read(&format!("{blank}9")).map(|s| s.digit), Some(9));
        for bad in ["10", "", "x", "1,2"] {
            assert_eq!(Sample::read(&format!("{blank}{bad}")), None, "{bad}");
        }
        assert_eq!(
            Sample::read(&format!("17,{}1", "0,".repeat(FEATURES - 1))),
            None
        );
    }

    #[test]
    fn shards_are_disjoint_and_each_epoch_takes_every_sample_once() {
        let mut seen = vec![0; 1438];
        for rank in 0..8 {
            let size = (1438_usize - usize::from(rank)).div_ceil(8);
            let mut batches = Batches::new(1438, rank, 8, size, 7).unwrap();
            let (first, second) = (batches.next_batch(), batches.next_batch());
            assert_ne!(first, second);
            for index in first.into_iter().chain(second) {
                assert_eq!(index % 8, usize::from(rank));
                seen[index] += 1;
            }
        }
        assert!(seen.iter().all(|&times| times == 2));
    }

    #[test]
    fn batches_depend_on_seed_and_rank_alone() {
        let first = |rank, seed| Batches::new(1438, rank, 8, 32, seed).unwrap().next_batch();
        assert_eq!(first(0, 1), first(0, 1));
        assert_ne!(first(0, 1), first(0, 2));
        assert_eq!(
            Batches::new(1438, 8, 8, 32, 1).err(),
            Some(DataError::EmptyShard {
                rank: 8,
                workers: 8
            })
        );
        assert_eq!(
            Batches::new(3, 0, 8, 0, 1).err(),
            Some(DataError::EmptyBatch)
        );
    }

    #[test]
    fn a_batch_may_be_longer_than_the_shard() {
        assert_eq!(Batches::new(8, 1, 8, 3, 1).unwrap().next_batch(), [1, 1, 1]);
    }
}
