//! The measured exchanges between four ranks, and their data.

use anyhow::Result;
use collectives::{Algorithm, Collective, Options, Schedule, build};

pub const RANKS: usize = 4;
pub const RATE: &str = "200mbit";
pub const RATE_BPS: f64 = 200e6;
/// Bytes from a rank to each other rank: 64 MB over a link in total.
pub const SHARD: usize = 21_400_000;
const ELEMENT: usize = 4;
pub const ROUNDS: usize = 5;

#[derive(Debug, Clone, Copy)]
pub enum Kind {
    AllGather,
    AllToAll,
}

impl Kind {
    /// Fill bytes of a rank's shards, each unique.
    pub fn input(self, rank: usize) -> Vec<u8> {
        match self {
            Self::AllGather => vec![rank as u8 + 1],
            Self::AllToAll => (0..RANKS).map(|to| (rank * RANKS + to) as u8 + 1).collect(),
        }
    }

    /// Fill bytes of a rank's output after all shards have arrived.
    pub fn output(self, rank: usize) -> Vec<u8> {
        let from = 0..RANKS;
        match self {
            Self::AllGather => from.map(|from| self.input(from)[0]).collect(),
            Self::AllToAll => from.map(|from| self.input(from)[rank]).collect(),
        }
    }

    pub fn schedules(self) -> Result<Vec<(String, Schedule)>> {
        let len = SHARD / ELEMENT;
        let (collective, algorithms) = match self {
            Self::AllGather => (
                Collective::all_gather(RANKS, len),
                vec![Algorithm::Ring, Algorithm::Direct],
            ),
            Self::AllToAll => (
                Collective::all_to_all(RANKS, len),
                vec![Algorithm::Pairwise, Algorithm::Direct],
            ),
        };
        let tiled = Options {
            tile: Some(65536),
            ..Options::default()
        };
        let built = algorithms.into_iter().map(|algorithm| {
            let schedule = build(&collective, algorithm, &tiled)?;
            Ok((algorithm.to_string(), schedule))
        });
        built.collect()
    }
}
