//! Arithmetic on values of `bit<W>` and `int<W>` up to 64 bits, for the fast executor (P4_16 8.6, 8.7).

use crate::bits::mask;

/// Sign-extends the lowest `w` bits of `v` to 64 bits.
#[inline(always)]
pub fn signed(v: u64, w: u32) -> i64 {
    if w == 0 {
        return 0;
    }
    let s = 64 - w;
    ((v << s) as i64) >> s
}

/// Saturating addition (`|+|`) of two `bit<w>` values.
pub fn add_sat(a: u64, b: u64, w: u32) -> u64 {
    a.checked_add(b).map_or(mask(w), |s| s.min(mask(w)))
}

/// Saturating addition (`|+|`) of two `int<w>` values.
pub fn add_sat_signed(a: u64, b: u64, w: u32) -> u64 {
    clamp(i128::from(signed(a, w)) + i128::from(signed(b, w)), w)
}

/// Saturating subtraction (`|-|`) of two `int<w>` values.
pub fn sub_sat_signed(a: u64, b: u64, w: u32) -> u64 {
    clamp(i128::from(signed(a, w)) - i128::from(signed(b, w)), w)
}

fn clamp(v: i128, w: u32) -> u64 {
    if w == 0 {
        return 0;
    }
    let max = (1i128 << (w - 1)) - 1;
    v.clamp(-max - 1, max) as u64 & mask(w)
}

#[inline(always)]
pub fn shl(a: u64, b: u64, w: u32) -> u64 {
    if b >= u64::from(w) {
        0
    } else {
        (a << b) & mask(w)
    }
}

/// Shift to the right (`>>`) of a `bit<W>` value `a` by `b` bits.
#[inline(always)]
pub fn shr(a: u64, b: u64) -> u64 {
    if b >= 64 { 0 } else { a >> b }
}

/// Arithmetic shift to the right (`>>`) of an `int<w>` value `a` by `b` bits.
#[inline(always)]
pub fn sar(a: u64, b: u64, w: u32) -> u64 {
    (signed(a, w) >> b.min(63)) as u64 & mask(w)
}
