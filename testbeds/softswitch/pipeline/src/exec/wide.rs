//! Operations on values beyond 64 bits: words of 64 bits, the least significant first, in adjacent slots (P4_16 8.6 to 8.11).

use crate::bits::{MAX_BITS, limbs};
use crate::op::{Slot, WideOp, WidePlan};
use p4lang::ir::BinOp;
use std::cmp::Ordering;

const LIMBS: usize = MAX_BITS as usize / 64;

/// Executes the operation of one plan on the frame.
pub fn wide(plan: &WidePlan, frame: &mut [u64]) {
    let w = plan.a.1;
    let a = WideValue::load(frame, plan.a);
    let result = match plan.op {
        WideOp::Binary(op) => {
            let b = WideValue::load(frame, plan.b);
            if plan.signed {
                signed(op, &a, &b, w)
            } else {
                unsigned(op, &a, &b, w)
            }
        }
        WideOp::BitNot => a.inverted(),
        WideOp::Neg => WideValue::ZERO.minus(&a, w).0,
        WideOp::Cast => {
            if plan.signed && a.is_negative(w) {
                a.with_ones_from(w)
            } else {
                a
            }
        }
        WideOp::Slice(lo) => a.shr(lo),
        WideOp::Insert(lo) => {
            let hole = WideValue::ones(plan.b.1).shl(lo);
            let b = WideValue::load(frame, plan.b).shl(lo);
            a.zip(&hole, |x, h| x & !h).zip(&b, |x, y| x | y)
        }
        WideOp::Concat => {
            let b = WideValue::load(frame, plan.b);
            a.shl(plan.b.1).zip(&b, |x, y| x | y)
        }
        WideOp::Saturate if a.0[1..].iter().any(|limb| *limb != 0) => WideValue::ones(64),
        WideOp::Saturate => a,
    };
    result.store(frame, plan.d);
}

/// Applies an operation to `bit<w>` values; for shifts, `b` is below 2⁶⁴. The caller cuts the result to `w` bits.
fn unsigned(op: BinOp, a: &WideValue, b: &WideValue, w: u32) -> WideValue {
    match op {
        BinOp::Add => a.plus(b, w).0,
        BinOp::Sub => a.minus(b, w).0,
        BinOp::Mul => a.times(b, w),
        // Division by zero is undefined in P4; here it gives 0. Wider divisions are refused at compile time, because
        // P4_16 has none.
        BinOp::Div => WideValue::from_u128(a.low128().checked_div(b.low128()).unwrap_or(0)),
        BinOp::Mod => WideValue::from_u128(a.low128().checked_rem(b.low128()).unwrap_or(0)),
        BinOp::AddSat => match a.plus(b, w) {
            (sum, false) if sum.fits(w) => sum,
            _ => WideValue::ones(w),
        },
        BinOp::SubSat => match a.minus(b, w) {
            (difference, false) => difference,
            _ => WideValue::ZERO,
        },
        BinOp::Shl => a.shl(b.distance()),
        BinOp::Shr => a.shr(b.distance()),
        BinOp::And | BinOp::LogAnd => a.zip(b, |x, y| x & y),
        BinOp::Or | BinOp::LogOr => a.zip(b, |x, y| x | y),
        BinOp::Xor => a.zip(b, |x, y| x ^ y),
        BinOp::Eq => WideValue::bool(a.0 == b.0),
        BinOp::Ne => WideValue::bool(a.0 != b.0),
        BinOp::Lt => WideValue::bool(a.order(b).is_lt()),
        BinOp::Le => WideValue::bool(a.order(b).is_le()),
        BinOp::Gt => WideValue::bool(a.order(b).is_gt()),
        BinOp::Ge => WideValue::bool(a.order(b).is_ge()),
        // Has its own widths: `WideOp::Concat`.
        BinOp::Concat => WideValue::ZERO,
    }
}

/// Applies an operation to `int<w>` values in two's complement.
fn signed(op: BinOp, a: &WideValue, b: &WideValue, w: u32) -> WideValue {
    match op {
        // Wrong only if the operands' signs rule out the result's sign; the result then overflows in the direction of
        // `a`.
        BinOp::AddSat | BinOp::SubSat => {
            let (result, same) = if op == BinOp::AddSat {
                (a.plus(b, w).0, true)
            } else {
                (a.minus(b, w).0, false)
            };
            let negative = a.is_negative(w);
            let may_overflow = (negative == b.is_negative(w)) == same;
            if may_overflow && result.is_negative(w) != negative {
                let greatest = WideValue::ones(w.saturating_sub(1));
                return if negative {
                    greatest.inverted()
                } else {
                    greatest
                };
            }
            result
        }
        BinOp::Shr => {
            let by = b.distance().min(w);
            let moved = a.shr(by);
            if a.is_negative(w) {
                moved.with_ones_from(w - by)
            } else {
                moved
            }
        }
        // With an inverted sign bit the order is that of `bit<w>`.
        BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge if w > 0 => {
            unsigned(op, &a.with_other_sign(w), &b.with_other_sign(w), w)
        }
        _ => unsigned(op, a, b, w),
    }
}

/// A value of up to [`MAX_BITS`] bits, in 64-bit words, the least significant first.
#[derive(Clone)]
struct WideValue([u64; LIMBS]);

impl WideValue {
    const ZERO: WideValue = WideValue([0; LIMBS]);

    fn load(frame: &[u64], (slot, w): (Slot, u32)) -> WideValue {
        let mut value = WideValue::ZERO;
        let n = limbs(w) as usize;
        value.0[..n].copy_from_slice(&frame[slot as usize..slot as usize + n]);
        value
    }

    fn store(mut self, frame: &mut [u64], (slot, w): (Slot, u32)) {
        let n = limbs(w) as usize;
        self.0[n - 1] &= top(w);
        frame[slot as usize..slot as usize + n].copy_from_slice(&self.0[..n]);
    }

    fn from_u128(number: u128) -> WideValue {
        let mut value = WideValue::ZERO;
        value.0[0] = number as u64;
        value.0[1] = (number >> 64) as u64;
        value
    }

    fn bool(truth: bool) -> WideValue {
        WideValue::from_u128(u128::from(truth))
    }

    /// A value whose lowest `w` bits are 1, and all others 0.
    fn ones(w: u32) -> WideValue {
        let mut value = WideValue::ZERO;
        let n = limbs(w) as usize;
        value.0[..n].fill(u64::MAX);
        value.0[n - 1] &= top(w);
        value
    }

    fn low128(&self) -> u128 {
        u128::from(self.0[0]) | u128::from(self.0[1]) << 64
    }

    /// The value as a shift distance in bits: anything beyond the maximum width counts as the maximum width.
    fn distance(&self) -> u32 {
        self.0[0].min(u64::from(MAX_BITS)) as u32
    }

    fn fits(&self, w: u32) -> bool {
        let n = limbs(w) as usize;
        self.0[n - 1] & !top(w) == 0 && self.0[n..].iter().all(|limb| *limb == 0)
    }

    fn is_negative(&self, w: u32) -> bool {
        w > 0 && self.0[(w as usize - 1) / 64] >> ((w - 1) % 64) & 1 == 1
    }

    fn with_other_sign(&self, w: u32) -> WideValue {
        let mut value = self.clone();
        value.0[(w as usize - 1) / 64] ^= 1 << ((w - 1) % 64);
        value
    }

    fn with_ones_from(&self, w: u32) -> WideValue {
        self.zip(&WideValue::ones(w), |x, below| x | !below)
    }

    fn inverted(&self) -> WideValue {
        self.zip(&WideValue::ZERO, |x, _| !x)
    }

    fn zip(&self, other: &WideValue, f: impl Fn(u64, u64) -> u64) -> WideValue {
        let mut value = self.clone();
        for (a, b) in value.0.iter_mut().zip(&other.0) {
            *a = f(*a, *b);
        }
        value
    }

    fn order(&self, other: &WideValue) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }

    /// The sum of two values of `w` bits, computed in whole 64-bit words, and whether the sum exceeds these words.
    fn plus(&self, other: &WideValue, w: u32) -> (WideValue, bool) {
        self.word_by_word(other, w, |a, b, carry| {
            let (sum, over) = a.overflowing_add(b);
            let (sum, again) = sum.overflowing_add(u64::from(carry));
            (sum, over || again)
        })
    }

    /// The difference of two values, and whether it is negative.
    fn minus(&self, other: &WideValue, w: u32) -> (WideValue, bool) {
        self.word_by_word(other, w, |a, b, borrow| {
            let (difference, under) = a.overflowing_sub(b);
            let (difference, again) = difference.overflowing_sub(u64::from(borrow));
            (difference, under || again)
        })
    }

    fn word_by_word(
        &self,
        other: &WideValue,
        w: u32,
        step: impl Fn(u64, u64, bool) -> (u64, bool),
    ) -> (WideValue, bool) {
        let n = limbs(w) as usize;
        let (mut out, mut carry) = (WideValue::ZERO, false);
        for ((out, a), b) in out.0[..n].iter_mut().zip(&self.0).zip(&other.0) {
            (*out, carry) = step(*a, *b, carry);
        }
        (out, carry)
    }

    fn times(&self, other: &WideValue, w: u32) -> WideValue {
        let n = limbs(w) as usize;
        let mut product = WideValue::ZERO;
        for (i, a) in self.0[..n].iter().enumerate() {
            let mut carry = 0;
            for (sum, b) in product.0[i..n].iter_mut().zip(&other.0) {
                // (2⁶⁴ - 1)² + 2 (2⁶⁴ - 1) = 2¹²⁸ - 1
                let whole = u128::from(*a) * u128::from(*b) + u128::from(*sum) + u128::from(carry);
                *sum = whole as u64;
                carry = (whole >> 64) as u64;
            }
        }
        product
    }

    fn shr(&self, by: u32) -> WideValue {
        let (words, bits) = ((by / 64) as usize, by % 64);
        let mut out = WideValue::ZERO;
        for i in 0..LIMBS.saturating_sub(words) {
            let low = self.0[i + words] >> bits;
            let high = if bits == 0 {
                0
            } else {
                self.0.get(i + words + 1).map_or(0, |h| h << (64 - bits))
            };
            out.0[i] = low | high;
        }
        out
    }

    fn shl(&self, by: u32) -> WideValue {
        let (words, bits) = ((by / 64) as usize, by % 64);
        let mut out = WideValue::ZERO;
        for i in words..LIMBS {
            let high = self.0[i - words] << bits;
            let low = if bits == 0 || i == words {
                0
            } else {
                self.0[i - words - 1] >> (64 - bits)
            };
            out.0[i] = low | high;
        }
        out
    }
}

/// Mask of the used bits in the uppermost 64-bit word of a value of `w` bits.
fn top(w: u32) -> u64 {
    match w {
        0 => 0,
        w => u64::MAX >> (63 - (w - 1) % 64),
    }
}
