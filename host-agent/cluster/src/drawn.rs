//! Draws random configurations and inputs of simulated trainings; each follows from a seed, so that it can be repeated.

use aggregation::WorkerId;
use aggregation::job::{ChunkId, JobConfig};

use crate::{Config, Death, Faults, Node};

/// Mixes a seed with two numbers to a random-looking number (splitmix64's finalizer): equal arguments give equal results.
pub fn mix(seed: u64, a: u64, b: u64) -> u64 {
    let mut x =
        seed ^ a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A random number below `options` that follows from the seed. `salt` tells callers apart; `what` tells a caller's draws apart.
pub fn pick(seed: u64, salt: u64, what: u64, options: u64) -> u64 {
    mix(seed, what, salt) % options
}

/// Salt that separates the choices of [`chaotic`] from those of other functions.
const CHAOS: u64 = 0xC0FFEE;
/// Salt that separates the choices of [`deadly`] from those of other functions.
const DEATH: u64 = 0xDEAD;

/// Replaces rounds, first chunk, timing and network faults of a configuration by random ones, which follow from its seed.
pub fn chaotic(mut config: Config) -> Config {
    let pick = |what: u64, options: u64| pick(config.seed, CHAOS, what, options);
    config.rounds = 1 + pick(1, 3);
    config.job.first_chunk = match pick(2, 4) {
        0 => ChunkId(0),
        1 => ChunkId(u32::MAX - pick(3, 40) as u32),
        2 => ChunkId((1 << 31) - pick(3, 40) as u32),
        _ => ChunkId(pick(3, 1 << 32) as u32),
    };
    let share = |what: u64, percent: u64| {
        (pick(what, 4) != 0) as u64 as f64 * pick(what + 1, percent + 1) as f64 / 100.0
    };
    config.faults = Faults {
        loss: share(20, 30),
        duplicate: share(22, 20),
        reorder: share(24, 50),
        // From a few frames to many windows.
        reorder_ns: 10_000 << pick(26, 9),
    };
    config.retransmission.fast_threshold = [0, 2, 8][pick(27, 3) as usize];
    config.compute_ns = 1000 << pick(28, 10);
    config
}

/// Adds to a configuration the death of one random node at a random time, from its seed.
pub fn deadly(mut config: Config) -> Config {
    let pick = |what: u64, options: u64| pick(config.seed, DEATH, what, options);
    config.retransmission.max_timeouts = 12;
    let node = match pick(1, 8) {
        0 => Node::Server,
        _ => Node::Worker(WorkerId(pick(2, u64::from(config.job.workers)) as u16)),
    };
    let at_ns = pick(3, 200_000 << pick(4, 6));
    config.deaths.push(Death { node, at_ns });
    config
}

/// Returns a function that draws a worker's values for a round, from the seed; their magnitudes differ widely.
pub fn inputs(config: &Config) -> impl Fn(u64, WorkerId) -> Vec<f32> + Copy + use<> {
    let seed = config.seed;
    let JobConfig {
        values_per_round,
        values_per_packet,
        ..
    } = config.job;
    move |round, worker| {
        let value = |index: usize| {
            let block = (index / usize::from(values_per_packet)) as u64;
            let magnitude = mix(seed, block, round);
            // Workers need different exponents; a block may be zero for one worker, or for all.
            let own = mix(magnitude, u64::from(worker.0), 1) % 9;
            if magnitude.is_multiple_of(7) || own == 8 {
                return 0.0;
            }
            let bits = mix(seed, round << 8 | u64::from(worker.0), index as u64);
            let unit = (bits >> 40) as f32 / (1u64 << 24) as f32 - 0.5;
            unit * 2f32.powi((magnitude % 40 + own) as i32 - 24)
        };
        (0..values_per_round).map(value).collect()
    }
}
