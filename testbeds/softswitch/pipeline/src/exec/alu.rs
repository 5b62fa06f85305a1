//! Arithmetic of `bit<W>` and `int<W>` (P4_16 8.6, 8.7), once over 64 bits, once over up to 128 and, for what only
//! moves bits, any width.

use super::bits::mask;
use crate::op::{WideOp, WidePlan};
use p4lang::ir::BinOp;

/// Sign-extends `w` bits.
#[inline(always)]
pub fn signed(v: u64, w: u32) -> i64 {
    if w == 0 {
        return 0;
    }
    let s = 64 - w;
    ((v << s) as i64) >> s
}

/// `|+|` on `bit<W>`
pub fn add_sat(a: u64, b: u64, w: u32) -> u64 {
    a.checked_add(b).map_or(mask(w), |s| s.min(mask(w)))
}

/// `|+|` on `int<W>`
pub fn add_sat_signed(a: u64, b: u64, w: u32) -> u64 {
    clamp(i128::from(signed(a, w)) + i128::from(signed(b, w)), w)
}

/// `|-|` on `int<W>`
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

/// `<<`
#[inline(always)]
pub fn shl(a: u64, b: u64, w: u32) -> u64 {
    if b >= u64::from(w) {
        0
    } else {
        (a << b) & mask(w)
    }
}

/// `>>` on `bit<W>`
#[inline(always)]
pub fn shr(a: u64, b: u64) -> u64 {
    if b >= 64 { 0 } else { a >> b }
}

/// `>>` on `int<W>`
#[inline(always)]
pub fn sar(a: u64, b: u64, w: u32) -> u64 {
    (signed(a, w) >> b.min(63)) as u64 & mask(w)
}

fn mask128(w: u32) -> u128 {
    if w >= 128 { u128::MAX } else { (1 << w) - 1 }
}

fn signed128(v: u128, w: u32) -> i128 {
    if w == 0 {
        return 0;
    }
    let s = 128 - w;
    ((v << s) as i128) >> s
}

/// Binary operation on `w` ≤ 128 bits; comparisons give 0 or 1. `b` of a shift is any number.
pub fn binary128(op: BinOp, a: u128, b: u128, w: u32, sign: bool) -> u128 {
    let m = mask128(w);
    let (sa, sb) = (signed128(a, w), signed128(b, w));
    let (max, min) = ((m >> 1) as i128, !((m >> 1) as i128));
    let wrapped = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        // Division by zero is undefined in P4; here it gives 0.
        BinOp::Div => a.checked_div(b).unwrap_or(0),
        BinOp::Mod => a.checked_rem(b).unwrap_or(0),
        BinOp::AddSat if sign => sa.saturating_add(sb).clamp(min, max) as u128,
        BinOp::SubSat if sign => sa.saturating_sub(sb).clamp(min, max) as u128,
        BinOp::AddSat => a.saturating_add(b).min(m),
        BinOp::SubSat => a.saturating_sub(b),
        BinOp::Shl => u32::try_from(b)
            .ok()
            .and_then(|n| a.checked_shl(n))
            .unwrap_or(0),
        BinOp::Shr if sign => (sa >> b.min(127)) as u128,
        BinOp::Shr => u32::try_from(b)
            .ok()
            .and_then(|n| a.checked_shr(n))
            .unwrap_or(0),
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Eq => u128::from(a == b),
        BinOp::Ne => u128::from(a != b),
        BinOp::Lt if sign => u128::from(sa < sb),
        BinOp::Le if sign => u128::from(sa <= sb),
        BinOp::Gt if sign => u128::from(sa > sb),
        BinOp::Ge if sign => u128::from(sa >= sb),
        BinOp::Lt => u128::from(a < b),
        BinOp::Le => u128::from(a <= b),
        BinOp::Gt => u128::from(a > b),
        BinOp::Ge => u128::from(a >= b),
        BinOp::LogAnd => u128::from(a != 0 && b != 0),
        BinOp::LogOr => u128::from(a != 0 || b != 0),
        BinOp::Concat => 0,
    };
    wrapped & m.max(1)
}

/// Most bits of one value.
pub const MAX_BITS: u32 = 2048;
const LIMBS: usize = MAX_BITS as usize / 64;

/// Slots of a value of `w` bits.
pub fn limbs(w: u32) -> u32 {
    w.div_ceil(64).max(1)
}

/// A value of up to [`MAX_BITS`] bits on the stack, little-endian limbs.
#[derive(Clone)]
struct Value([u64; LIMBS]);

impl Value {
    fn load(frame: &[u64], (slot, w): (u32, u32)) -> Value {
        let mut v = Value([0; LIMBS]);
        let n = limbs(w) as usize;
        v.0[..n].copy_from_slice(&frame[slot as usize..slot as usize + n]);
        v
    }

    fn store(mut self, frame: &mut [u64], (slot, w): (u32, u32)) {
        self.cut(w);
        let n = limbs(w) as usize;
        frame[slot as usize..slot as usize + n].copy_from_slice(&self.0[..n]);
    }

    fn cut(&mut self, w: u32) {
        for (i, limb) in self.0.iter_mut().enumerate() {
            let below = (i as u32) * 64;
            *limb &= if w <= below {
                0
            } else {
                mask((w - below).min(64))
            };
        }
    }

    fn low128(&self) -> u128 {
        u128::from(self.0[0]) | u128::from(self.0[1]) << 64
    }

    fn of128(v: u128) -> Value {
        let mut out = Value([0; LIMBS]);
        out.0[0] = v as u64;
        out.0[1] = (v >> 64) as u64;
        out
    }

    fn shr(&self, n: u32) -> Value {
        let (words, bits) = ((n / 64) as usize, n % 64);
        let mut out = Value([0; LIMBS]);
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

    fn shl(&self, n: u32) -> Value {
        let (words, bits) = ((n / 64) as usize, n % 64);
        let mut out = Value([0; LIMBS]);
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

    fn zip(mut self, other: &Value, f: impl Fn(u64, u64) -> u64) -> Value {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a = f(*a, *b);
        }
        self
    }

    fn bit(&self, i: u32) -> bool {
        self.0[(i / 64) as usize] >> (i % 64) & 1 == 1
    }
}

/// Executes one plan.
pub fn wide(plan: &WidePlan, frame: &mut [u64]) {
    let a = Value::load(frame, plan.a);
    let result = match plan.op {
        WideOp::Binary(op) => {
            let b = Value::load(frame, plan.b);
            match op {
                BinOp::And => a.zip(&b, |x, y| x & y),
                BinOp::Or => a.zip(&b, |x, y| x | y),
                BinOp::Xor => a.zip(&b, |x, y| x ^ y),
                BinOp::Eq => Value::of128(u128::from(a.0 == b.0)),
                BinOp::Ne => Value::of128(u128::from(a.0 != b.0)),
                BinOp::Shl if plan.a.1 > 128 => a.shl(b.0[0].min(u64::from(MAX_BITS)) as u32),
                BinOp::Shr if plan.a.1 > 128 => a.shr(b.0[0].min(u64::from(MAX_BITS)) as u32),
                _ => Value::of128(binary128(op, a.low128(), b.low128(), plan.a.1, plan.signed)),
            }
        }
        WideOp::BitNot => a.zip(&Value([0; LIMBS]), |x, _| !x),
        WideOp::Neg => Value::of128(a.low128().wrapping_neg()),
        WideOp::Cast => {
            let mut v = a;
            let (from, to) = (plan.a.1, plan.d.1);
            if plan.signed && to > from && from > 0 && v.bit(from - 1) {
                let mut ones = Value([u64::MAX; LIMBS]);
                ones.cut(from);
                v = v.zip(&ones, |x, keep| x | !keep);
            }
            v
        }
        WideOp::Slice(lo) => a.shr(lo),
        WideOp::Insert(lo) => {
            let mut hole = Value([u64::MAX; LIMBS]);
            hole.cut(plan.b.1);
            let hole = hole.shl(lo);
            let b = Value::load(frame, plan.b).shl(lo).zip(&hole, |x, h| x & h);
            a.zip(&hole, |x, h| x & !h).zip(&b, |x, y| x | y)
        }
        WideOp::Concat => {
            let b = Value::load(frame, plan.b);
            a.shl(plan.b.1).zip(&b, |x, y| x | y)
        }
        WideOp::Saturate => {
            let high = a.0[1..].iter().any(|l| *l != 0);
            Value::of128(if high {
                u128::from(u64::MAX)
            } else {
                u128::from(a.0[0])
            })
        }
    };
    result.store(frame, plan.d);
}
