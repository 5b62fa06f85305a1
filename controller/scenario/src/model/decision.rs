//! The fault engine's decision function: it computes a packet's random words from the packet's number in its flow. It gives the
//! same bits here, in PSA, in v1model and in TNA.
//!
//! A decision depends only on (seed, fault, flow, ordinal), so a run can be replayed however the packets of its flows
//! interleave. The function is mixed tabulation (Dahlgaard, Knudsen, Rotenberg, Thorup: Hashing for Statistics over
//! k-Partitions, 2015) with two derived characters: docs/fault-engine.md gives the formulas, docs/decisions/0010 says why
//! simple tabulation is not enough.

/// Number of hash tables that are indexed by a byte of the hashed number: one table per byte, for the lowest byte first.
pub const INPUT_TABLES: usize = 4;
/// Number of hash tables that are indexed by a derived byte, which the first tables compute.
pub const DERIVED_TABLES: usize = 2;
/// Number of all hash tables of the decision function.
pub const TABLES: usize = INPUT_TABLES + DERIVED_TABLES;
/// Number of rows of each hash table.
pub const ROWS: usize = 256;

/// Increment of the random number generator SplitMix64, which fills the hash tables.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The three independent, uniform random words that decide what a fault does to one packet of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Words {
    /// Decides whether a random selection selects the packet; in a Gilbert-Elliott channel, whether the channel changes state.
    pub u: u32,
    /// Only for a Gilbert-Elliott channel (a model of bursty loss): decides whether the channel's state selects the packet.
    pub v: u32,
    /// Determines the effect: which bits change, or for how long the packet is held.
    pub w: u32,
}

/// A row of one of the decision function's hash tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Row {
    /// The row's part of the three words. The words of a packet are the XOR of the rows that it looks up.
    pub words: Words,
    /// The row's part of the two derived bytes, which are the indexes of the last two tables. Unused in these two tables.
    pub derived: u16,
}

/// The hash tables of the decision function for one seed. All fault units of all switches use the same tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draws {
    /// The rows, each packed into one number so that one XOR combines two rows: u, v, w, 16 unused bits, derived bytes.
    tables: Box<[[u128; ROWS]; TABLES]>,
}

impl Draws {
    /// Fills the tables from a seed: row after row, table after table, with two numbers of SplitMix64 per row.
    #[must_use]
    pub fn of_seed(seed: u64) -> Draws {
        let start = mix(seed);
        let number = |n: usize| mix(start.wrapping_add(GOLDEN.wrapping_mul(n as u64)));
        let mut tables = Box::new([[0; ROWS]; TABLES]);
        for (position, row) in tables.iter_mut().flatten().enumerate() {
            let (first, second) = (number(2 * position), number(2 * position + 1));
            let (w, derived) = (second >> 32 << 32, second >> 16 & 0xFFFF);
            *row = u128::from(first) << 64 | u128::from(w | derived);
        }
        Draws { tables }
    }

    /// The row of a table at an index byte. `table` counts from 0 and is less than [`TABLES`].
    #[must_use]
    pub fn row(&self, table: usize, byte: u8) -> Row {
        Row::from_bits(self.tables[table][usize::from(byte)])
    }

    /// The random words of one packet. `key` is the decision key of fault and flow, `index` the packet's ordinal less one.
    #[must_use]
    #[inline]
    pub fn words(&self, key: u32, index: u32) -> Words {
        let at = |table: usize, word: u32| self.tables[table][(word & 0xFF) as usize];
        let x = index ^ key;
        let first = at(0, x) ^ at(1, x >> 8) ^ at(2, x >> 16) ^ at(3, x >> 24);
        let derived = first as u32;
        Row::from_bits(first ^ at(4, derived) ^ at(5, derived >> 8)).words
    }
}

impl Row {
    #[inline]
    fn from_bits(row: u128) -> Row {
        Row {
            words: Words {
                u: (row >> 96) as u32,
                v: (row >> 64) as u32,
                w: (row >> 32) as u32,
            },
            derived: row as u16,
        }
    }
}

/// The fault's part of the decision key. It follows from the seed and the fault's name.
#[must_use]
pub fn fault_key(seed: u64, fault_id: &str) -> u64 {
    mix(seed ^ mix(fnv1a(fault_id)))
}

/// The flow's part of the decision key. It follows from the flow's name, and does not depend on the seed.
#[must_use]
pub fn flow_key(name: &str) -> u64 {
    mix(fnv1a(name))
}

/// The decision key of a fault on a flow. Together with a packet's ordinal, it determines the packet's random words.
#[must_use]
pub fn key(fault_key: u64, flow_key: u64) -> u32 {
    (mix(fault_key ^ flow_key) >> 32) as u32
}

/// The greatest random draw with which a selection of this probability fires; `None` if the probability rounds to 0 (< 2⁻³³).
#[must_use]
pub fn limit(probability: f64) -> Option<u32> {
    // f64 carries 53 bits, so the product is exact and the cast loses nothing that matters.
    let scaled = (probability.clamp(0.0, 1.0) * 4_294_967_296.0).round() as u64;
    scaled.checked_sub(1).map(|limit| limit as u32)
}

/// The probability that a random draw of 32 bits is at most `limit`.
#[must_use]
pub fn probability(limit: u32) -> f64 {
    (f64::from(limit) + 1.0) / 4_294_967_296.0
}

/// The nearest limit for a switch whose random draws have only `bits` bits; `None` if no draw would be at most this limit. A
/// 32-bit draw is at most the returned limit exactly if its upper `bits` bits are at most those of the limit.
#[must_use]
pub fn coarse(limit: u32, bits: u32) -> Option<u32> {
    let step = 1_u64 << (32 - bits.clamp(1, 32));
    let steps = (u64::from(limit) + 1 + step / 2) / step;
    (steps * step).checked_sub(1).map(|limit| limit as u32)
}

/// Mixes the bits of a number: the last step of SplitMix64.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
