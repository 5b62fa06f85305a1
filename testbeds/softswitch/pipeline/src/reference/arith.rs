//! Operations on scalars (P4_16 8.5 to 8.9, casts 8.11), on integers of any size.
//!
//! Undefined bits of operands make bits of the result undefined: for bitwise operations, comparisons for equality and shifts by
//! a known number exactly those result bits that depend on them, for other operations all result bits.

use super::bits::{Bits, ones};
use num_bigint::{BigInt, BigUint};
use p4lang::ir::{BinOp, UnOp};

pub fn and(a: &Bits, b: &Bits) -> Bits {
    Bits {
        width: a.width,
        value: &a.value & &b.value,
        // A known 0 on one side determines the result.
        undefined: (&a.undefined | &b.undefined)
            & (&a.undefined | &a.value)
            & (&b.undefined | &b.value),
    }
}

pub fn not(a: &Bits) -> Bits {
    Bits {
        value: &a.value ^ ones(a.width),
        ..a.clone()
    }
}

/// `==` of two scalars, as a `bool` whose bit may be undefined.
pub fn equal(a: &Bits, b: &Bits) -> Bits {
    let undefined = &a.undefined | &b.undefined;
    let known = ones(a.width.max(b.width)) ^ &undefined;
    let differ = (&a.value ^ &b.value) & known;
    Bits {
        width: 1,
        value: u8::from(a.value == b.value).into(),
        undefined: u8::from(undefined != BigUint::ZERO && differ == BigUint::ZERO).into(),
    }
}

/// Applies a unary operation to a scalar.
pub fn unary(op: UnOp, a: &Bits) -> Bits {
    match op {
        UnOp::Not | UnOp::BitNot => not(a),
        UnOp::Neg => tainted(Bits::from_int(a.width, &-a.int(false)), &[a]),
    }
}

/// Applies a binary operation to two scalars; `signed` if the operands are `int<W>`.
pub fn binary(op: BinOp, a: &Bits, b: &Bits, signed: bool) -> Bits {
    let (x, y) = (a.int(signed), b.int(signed));
    let zero = BigInt::ZERO;
    let number = |n: BigInt| tainted(Bits::from_int(a.width, &n), &[a, b]);
    let truth = |t: bool| tainted(Bits::bool(t), &[a, b]);
    match op {
        BinOp::And | BinOp::LogAnd => and(a, b),
        BinOp::Or | BinOp::LogOr => not(&and(&not(a), &not(b))),
        BinOp::Xor => Bits {
            width: a.width,
            value: &a.value ^ &b.value,
            undefined: &a.undefined | &b.undefined,
        },
        BinOp::Eq => equal(a, b),
        BinOp::Ne => not(&equal(a, b)),
        BinOp::Concat => a.concat(b),
        BinOp::Shl | BinOp::Shr => shift(op, a, b, signed),
        BinOp::Add => number(x + y),
        BinOp::Sub => number(x - y),
        BinOp::Mul => number(x * y),
        // Undefined in P4; 0 here.
        BinOp::Div | BinOp::Mod if y == zero => number(zero),
        BinOp::Div => number(x / y),
        BinOp::Mod => number(x % y),
        BinOp::AddSat => number(saturated(x + y, a.width, signed)),
        BinOp::SubSat => number(saturated(x - y, a.width, signed)),
        BinOp::Lt => truth(x < y),
        BinOp::Le => truth(x <= y),
        BinOp::Gt => truth(x > y),
        BinOp::Ge => truth(x >= y),
    }
}

/// The value of `bit<width>`, or of `int<width>` if `signed`, that is nearest to `n` (P4_16 8.6: "saturating").
fn saturated(n: BigInt, width: u32, signed: bool) -> BigInt {
    let (low, high) = match (signed, width) {
        (_, 0) => (BigInt::ZERO, BigInt::ZERO),
        (true, w) => {
            let half = BigInt::from(1) << (w - 1);
            (-half.clone(), half - 1)
        }
        (false, w) => (BigInt::ZERO, (BigInt::from(1) << w) - 1),
    };
    n.clamp(low, high)
}

/// Applies `<<` or `>>` (P4_16 8.6, 8.7): bits beyond the width are lost, `>>` of `int<W>` copies the sign.
fn shift(op: BinOp, a: &Bits, b: &Bits, signed: bool) -> Bits {
    let w = a.width;
    // Distances beyond the width count as the width.
    let n = u32::try_from(&b.value).unwrap_or(w).min(w);
    let moved = |bits: &BigUint| match op {
        BinOp::Shl => (bits << n) & ones(w),
        _ => {
            let bits = Bits::new(w, bits.clone());
            Bits::from_int(w, &(bits.int(signed) >> n)).value
        }
    };
    let shifted = Bits {
        width: w,
        value: moved(&a.value),
        undefined: moved(&a.undefined),
    };
    tainted(shifted, &[b])
}

/// Casts a scalar to another width: cuts it, or extends it by zeroes, by its sign if `signed` (`int<W>`).
pub fn cast(a: &Bits, width: u32, signed: bool) -> Bits {
    if width <= a.width {
        let cut = |n: &BigUint| n & ones(width);
        return Bits {
            width,
            value: cut(&a.value),
            undefined: cut(&a.undefined),
        };
    }
    let extended = |n: &BigUint| Bits::from_int(width, &Bits::new(a.width, n.clone()).int(signed));
    Bits {
        width,
        value: extended(&a.value).value,
        undefined: extended(&a.undefined).value,
    }
}

/// The result, with all bits undefined if any bit of an operand is undefined.
fn tainted(result: Bits, operands: &[&Bits]) -> Bits {
    if operands.iter().all(|o| o.undefined == BigUint::ZERO) {
        return result;
    }
    Bits {
        undefined: ones(result.width),
        ..result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(width: u32, value: u32) -> Bits {
        Bits::new(width, value)
    }

    #[test]
    fn examples_of_the_specification() {
        let signed = |op, a, b| binary(op, &bits(4, a), &bits(4, b), true).value;
        assert_eq!(signed(BinOp::AddSat, 7, 1), 7u8.into());
        assert_eq!(signed(BinOp::SubSat, 8, 1), 8u8.into());
        assert_eq!(signed(BinOp::Shr, 0b1000, 2), 0b1110u8.into());
        assert_eq!(signed(BinOp::Shr, 0b1000, 9), 0b1111u8.into());
        let unsigned = |op, a, b| binary(op, &bits(4, a), &bits(4, b), false).value;
        assert_eq!(unsigned(BinOp::AddSat, 15, 1), 15u8.into());
        assert_eq!(unsigned(BinOp::SubSat, 3, 5), 0u8.into());
        assert_eq!(unsigned(BinOp::Sub, 3, 5), 14u8.into());
        assert_eq!(unsigned(BinOp::Div, 3, 0), 0u8.into());
        assert_eq!(cast(&bits(4, 8), 8, true).value, 0xf8u8.into());
        assert_eq!(cast(&bits(4, 8), 8, false).value, 8u8.into());
    }

    #[test]
    fn results_decided_by_known_bits_are_defined() {
        let unknown = Bits {
            undefined: 0b0011u8.into(),
            ..bits(4, 0b0110)
        };
        assert_eq!(and(&unknown, &bits(4, 0b1100)).undefined, BigUint::ZERO);
        assert_eq!(and(&unknown, &bits(4, 0b0001)).undefined, 1u8.into());
        assert_eq!(equal(&unknown, &bits(4, 0b1000)).undefined, BigUint::ZERO);
        assert_eq!(equal(&unknown, &bits(4, 0b0100)).undefined, 1u8.into());
        let sum = binary(BinOp::Add, &unknown, &bits(4, 1), false);
        assert_eq!(sum.undefined, 15u8.into());
    }
}
