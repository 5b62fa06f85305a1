//! The fault engine's decision function: the same bits here, in PSA, in v1model and in TNA.
//!
//! A decision is a function of (seed, fault, flow, ordinal) and of nothing else, so a run can be replayed whatever the
//! interleaving of flows. docs/fault-engine.md gives the formulas, and why a bare CRC is not enough.

/// Key of round 2 is `key ^ ROUND_2`, and so on. Round 1 uses the key itself.
const ROUND_2: u32 = 0x9E37_79B9;
const ROUND_3: u32 = 0x7F4A_7C15;
const ROUND_4: u32 = 0xF39C_C060;

/// Reflected polynomial of IEEE 802.3.
const POLYNOMIAL: u32 = 0xEDB8_8320;

const CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                POLYNOMIAL ^ (crc >> 1)
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// CRC-32 (IEEE 802.3) of two words, each most significant byte first.
#[must_use]
pub fn crc32(first: u32, second: u32) -> u32 {
    let bytes = first.to_be_bytes().into_iter().chain(second.to_be_bytes());
    let register = bytes.fold(u32::MAX, |crc, byte| {
        CRC_TABLE[((crc ^ u32::from(byte)) & 0xFF) as usize] ^ (crc >> 8)
    });
    !register
}

/// A uniformly distributed word for one packet: `ordinal` is its number, from 1, in its (fault, flow).
#[must_use]
pub fn decide(key: u32, flow_key: u32, ordinal: u32) -> u32 {
    let (mut a, mut b) = (flow_key, ordinal);
    a = a.wrapping_add(crc32(key, b));
    b = b.wrapping_add(crc32(key ^ ROUND_2, a));
    a = a.wrapping_add(crc32(key ^ ROUND_3, b));
    b.wrapping_add(crc32(key ^ ROUND_4, a))
}

/// The key of a fault under a seed.
#[must_use]
pub fn fault_key(seed: u64, fault_id: &str) -> u32 {
    (mix(seed ^ mix(fnv1a(fault_id))) >> 32) as u32
}

/// The key of a flow. It does not depend on the seed: the fault's key does.
#[must_use]
pub fn flow_key(name: &str) -> u32 {
    (mix(fnv1a(name)) >> 32) as u32
}

/// The greatest decision that fires, for a probability; `None` where it rounds to never (p < 2⁻³³).
#[must_use]
pub fn limit(probability: f64) -> Option<u32> {
    // f64 carries 53 bits, so the product is exact and the cast cannot lose what matters.
    let scaled = (probability.clamp(0.0, 1.0) * 4_294_967_296.0).round() as u64;
    scaled.checked_sub(1).map(|limit| limit as u32)
}

/// SplitMix64's finaliser.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
