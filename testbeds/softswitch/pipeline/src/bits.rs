//! Reads and writes bits of packets, most significant first, and converts them to 64-bit slots of an executor's frame.

/// Index of a 64-bit slot in the frame, the array that holds the values of a program's variables while a packet passes.
pub type Slot = u32;

/// Maximum width of a value, in bits.
pub const MAX_BITS: u32 = 2048;

/// Number of 64-bit slots that a value of `w` bits takes.
pub fn limbs(w: u32) -> u32 {
    w.div_ceil(64).max(1)
}

/// A mask of the lowest `w` bits; `w` ≤ 64.
#[inline(always)]
pub fn mask(w: u32) -> u64 {
    if w >= 64 { u64::MAX } else { (1u64 << w) - 1 }
}

/// Reads `w` ≤ 64 bits of `bytes` from bit number `at` on. The caller guarantees that these bits are within `bytes`.
#[inline(always)]
pub fn read(bytes: &[u8], at: usize, w: u32) -> u64 {
    let (byte, shift) = (at >> 3, (at & 7) as u32);
    if shift + w <= 64
        && let Some(chunk) = bytes.get(byte..byte + 8)
        && let Ok(chunk) = <[u8; 8]>::try_from(chunk)
    {
        let word = u64::from_be_bytes(chunk) << shift;
        return if w == 0 { 0 } else { word >> (64 - w) };
    }
    read_slow(bytes, at, w)
}

#[cold]
fn read_slow(bytes: &[u8], at: usize, w: u32) -> u64 {
    let (byte, shift) = (at >> 3, (at & 7) as u32);
    let mut word = 0u128;
    let n = (shift + w).div_ceil(8);
    for i in 0..n as usize {
        word = word << 8 | u128::from(bytes.get(byte + i).copied().unwrap_or(0));
    }
    (word >> (n * 8 - shift - w)) as u64 & mask(w)
}

/// Writes `value` to `w` ≤ 64 bits of `bytes`, from bit `at` on. The caller guarantees that they are within `bytes` and 0.
#[inline(always)]
pub fn write(bytes: &mut [u8], at: usize, w: u32, value: u64) {
    let byte = at >> 3;
    if at & 7 == 0
        && w == 32
        && let Some(to) = bytes.get_mut(byte..byte + 4)
    {
        to.copy_from_slice(&(value as u32).to_be_bytes());
        return;
    }
    write_slow(bytes, at, w, value);
}

fn write_slow(bytes: &mut [u8], at: usize, w: u32, value: u64) {
    let (byte, shift) = (at >> 3, (at & 7) as u32);
    let n = (shift + w).div_ceil(8);
    let word = u128::from(value & mask(w)) << (n * 8 - shift - w);
    for i in 0..n {
        if let Some(b) = bytes.get_mut(byte + i as usize) {
            *b |= (word >> ((n - 1 - i) * 8)) as u8;
        }
    }
}

/// Reads `w` bits of `bytes`, from bit `at` on, into 64-bit words, the lowest word first; `w` may exceed 64.
pub fn read_limbs(bytes: &[u8], at: usize, w: u32, limbs: &mut [u64]) {
    let mut left = w;
    for limb in limbs.iter_mut() {
        let n = left.min(64);
        *limb = read(bytes, at + (left - n) as usize, n);
        left -= n;
    }
}

/// Writes 64-bit words, the lowest first, to `w` bits of `bytes` from bit `at` on; these bits must be 0 before.
pub fn write_limbs(bytes: &mut [u8], at: usize, w: u32, limbs: &[u64]) {
    let mut left = w;
    for limb in limbs {
        let n = left.min(64);
        write(bytes, at + (left - n) as usize, n, *limb);
        left -= n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn written_bits_are_read_again(at in 0usize..40, w in 0u32..=64, value: u64) {
            let mut bytes = [0u8; 16];
            write(&mut bytes, at, w, value);
            prop_assert_eq!(read(&bytes, at, w), value & mask(w));
            prop_assert_eq!(read_slow(&bytes, at, w), value & mask(w));
            let set: u32 = bytes.iter().map(|b| b.count_ones()).sum();
            prop_assert_eq!(set, (value & mask(w)).count_ones());
        }

        #[test]
        fn limbs_round_trip(at in 0usize..9, w in 65u32..=256, value: [u64; 4]) {
            let n = w.div_ceil(64) as usize;
            let mut limbs = value[..n].to_vec();
            if w % 64 != 0 {
                limbs[n - 1] &= mask(w % 64);
            }
            let mut bytes = [0u8; 40];
            write_limbs(&mut bytes, at, w, &limbs);
            let mut back = vec![0; n];
            read_limbs(&bytes, at, w, &mut back);
            prop_assert_eq!(back, limbs);
        }
    }
}
