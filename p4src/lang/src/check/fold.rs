//! Constant folding: each function builds an IR expression, or its value if the operands are constants. Arithmetic is
//! exact, then truncated to the width (P4_16 1.2.5, sections 8.5 to 8.9).

use crate::ir::{BinOp, Const, Expr, ExprKind, Type, UnOp};
use crate::limits::LIMITS;
use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Signed, ToPrimitive, Zero};

/// The reason why a constant expression has no value, such as a division by zero.
pub(crate) type Fault = &'static str;

/// The low `w` bits of a number, in two's complement.
pub(crate) fn wrap(n: &BigInt, w: u32) -> BigUint {
    let modulus = BigInt::one() << w;
    let r = ((n % &modulus) + &modulus) % &modulus;
    r.to_biguint().unwrap_or_default()
}

/// The number that a bit pattern represents in `int<w>`.
pub(crate) fn signed(v: &BigUint, w: u32) -> BigInt {
    if w > 0 && v.bit(u64::from(w) - 1) {
        BigInt::from(v.clone()) - (BigInt::one() << w)
    } else {
        BigInt::from(v.clone())
    }
}

/// Whether a type can represent a number without truncation.
pub(crate) fn fits(n: &BigInt, ty: &Type) -> bool {
    match ty {
        Type::Bit(w) => !n.is_negative() && n.bits() <= u64::from(*w),
        Type::Int(w) => signed(&wrap(n, *w), *w) == *n,
        _ => true,
    }
}

/// The constant `n` of type `bit<W>` or `int<W>`, truncated to W bits.
pub(crate) fn bits(n: &BigInt, ty: &Type) -> Expr {
    let w = match ty {
        Type::Bit(w) | Type::Int(w) => *w,
        _ => 0,
    };
    constant(
        Const::Bits {
            value: wrap(n, w),
            ty: ty.clone(),
        },
        ty.clone(),
    )
}

pub(crate) fn boolean(b: bool) -> Expr {
    constant(Const::Bool(b), Type::Bool)
}

pub(crate) fn constant(c: Const, ty: Type) -> Expr {
    Expr {
        kind: ExprKind::Const(c),
        ty,
    }
}

/// The constant that an expression consists of; `None` if it is no constant.
pub(crate) fn as_const(e: &Expr) -> Option<&Const> {
    match &e.kind {
        ExprKind::Const(c) => Some(c),
        _ => None,
    }
}

/// The number that a constant represents, with its sign; `None` if the constant is no number.
pub(crate) fn number(c: &Const) -> Option<BigInt> {
    match c {
        Const::Bits {
            value,
            ty: Type::Int(w),
        } => Some(signed(value, *w)),
        Const::Bits { value, .. } => Some(BigInt::from(value.clone())),
        Const::Integer(n) => Some(n.clone()),
        Const::Bool(b) => Some(BigInt::from(u8::from(*b))),
        _ => None,
    }
}

/// Evaluates a binary operator on two `int`s of arbitrary precision.
pub(crate) fn integer(op: BinOp, a: &BigInt, b: &BigInt) -> Result<BigInt, Fault> {
    let shift = || match b.to_u64() {
        Some(n) if n <= LIMITS.integer_bits => Ok(n),
        _ if b.is_negative() => Err("shift by a negative number"),
        _ => Err("shift too far: a constant has at most 65536 bits"),
    };
    let n = match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div | BinOp::Mod if b.is_zero() => return Err("division by zero"),
        BinOp::Div | BinOp::Mod if a.is_negative() || b.is_negative() => {
            return Err("P4 does not define division of negative numbers");
        }
        BinOp::Div => a / b,
        BinOp::Mod => a % b,
        BinOp::Shl => a << shift()?,
        BinOp::Shr => a >> shift()?,
        // P4_16 1.2.5 (section 8.9) does not define them, but p4c accepts them.
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        _ => return Err("this operator needs operands with a width"),
    };
    if n.bits() > LIMITS.integer_bits {
        return Err("constant too large: it has more than 65536 bits");
    }
    Ok(n)
}

/// Compares two numbers; `None` if `op` is not a comparison.
pub(crate) fn compare(op: BinOp, a: &BigInt, b: &BigInt) -> Option<bool> {
    Some(match op {
        BinOp::Lt => a < b,
        BinOp::Le => a <= b,
        BinOp::Gt => a > b,
        BinOp::Ge => a >= b,
        BinOp::Eq => a == b,
        BinOp::Ne => a != b,
        _ => return None,
    })
}

/// Folds the unary operation `op e`.
pub(crate) fn unary(op: UnOp, e: Expr) -> Expr {
    let ty = e.ty.clone();
    match (op, as_const(&e)) {
        (UnOp::Not, Some(Const::Bool(b))) => return boolean(!b),
        (UnOp::Neg, Some(c)) => {
            if let Some(n) = number(c) {
                return bits(&-n, &ty);
            }
        }
        (UnOp::BitNot, Some(c)) => {
            if let Some(n) = number(c) {
                return bits(&(-n - 1), &ty);
            }
        }
        _ => {}
    }
    if op == UnOp::Not
        && let ExprKind::Unary(UnOp::Not, inner) = e.kind
    {
        return *inner;
    }
    Expr {
        kind: ExprKind::Unary(op, Box::new(e)),
        ty,
    }
}

/// Folds `a op b`. The operands have the same type (the right operand of a shift: any type); the result has type `ty`.
pub(crate) fn binary(op: BinOp, a: Expr, b: Expr, ty: Type) -> Result<Expr, Fault> {
    if let (Some(x), Some(y)) = (as_const(&a), as_const(&b))
        && let Some(e) = binary_const(op, x, y, &ty)?
    {
        return Ok(e);
    }
    if let (BinOp::Div | BinOp::Mod, Some(c)) = (op, as_const(&b))
        && number(c).is_some_and(|n| n.is_zero())
    {
        return Err("division by zero");
    }
    Ok(match op {
        BinOp::LogAnd => and(a, b),
        BinOp::LogOr => or(a, b),
        _ => pair(op, a, b, ty),
    })
}

/// Folds `a && b` if one operand is constant, which keeps conditions readable; the executor handles the rest. Expressions
/// have no side effects, so an operand that cannot change the result need not be evaluated.
pub(crate) fn and(a: Expr, b: Expr) -> Expr {
    match (as_const(&a), as_const(&b)) {
        (Some(Const::Bool(true)), _) => b,
        (_, Some(Const::Bool(true))) => a,
        (Some(Const::Bool(false)), _) | (_, Some(Const::Bool(false))) => boolean(false),
        _ => pair(BinOp::LogAnd, a, b, Type::Bool),
    }
}

/// Folds `a || b` if one operand is constant.
pub(crate) fn or(a: Expr, b: Expr) -> Expr {
    match (as_const(&a), as_const(&b)) {
        (Some(Const::Bool(false)), _) => b,
        (_, Some(Const::Bool(false))) => a,
        (Some(Const::Bool(true)), _) | (_, Some(Const::Bool(true))) => boolean(true),
        _ => pair(BinOp::LogOr, a, b, Type::Bool),
    }
}

fn pair(op: BinOp, a: Expr, b: Expr, ty: Type) -> Expr {
    Expr {
        kind: ExprKind::Binary(op, Box::new(a), Box::new(b)),
        ty,
    }
}

fn binary_const(op: BinOp, a: &Const, b: &Const, ty: &Type) -> Result<Option<Expr>, Fault> {
    if let (Const::Bool(x), Const::Bool(y)) = (a, b) {
        let v = match op {
            BinOp::LogAnd => *x && *y,
            BinOp::LogOr => *x || *y,
            BinOp::Eq => x == y,
            BinOp::Ne => x != y,
            _ => return Ok(None),
        };
        return Ok(Some(boolean(v)));
    }
    let (Some(x), Some(y)) = (number(a), number(b)) else {
        let v = match op {
            BinOp::Eq => a == b,
            BinOp::Ne => a != b,
            _ => return Ok(None),
        };
        return Ok(Some(boolean(v)));
    };
    if let Some(v) = compare(op, &x, &y) {
        return Ok(Some(boolean(v)));
    }
    let w = match ty {
        Type::Bit(w) | Type::Int(w) => *w,
        _ => return Ok(None),
    };
    let n = match op {
        BinOp::AddSat => saturate(x + y, ty),
        BinOp::SubSat => saturate(x - y, ty),
        BinOp::Shl | BinOp::Shr => {
            // Shifting by the width or more leaves zeros or copies of the sign.
            let by = y.to_u64().map_or(w, |n| n.min(u64::from(w)) as u32);
            if y.is_negative() {
                return Err("shift by a negative number");
            }
            if op == BinOp::Shl { x << by } else { x >> by }
        }
        _ => integer(op, &x, &y)?,
    };
    Ok(Some(bits(&n, ty)))
}

fn saturate(n: BigInt, ty: &Type) -> BigInt {
    let (min, max) = match ty {
        Type::Bit(w) => (BigInt::zero(), (BigInt::one() << *w) - 1),
        Type::Int(w) => {
            let half = BigInt::one() << w.saturating_sub(1);
            (-half.clone(), half - 1)
        }
        _ => return n,
    };
    n.clamp(min, max)
}

/// Folds the cast `(ty) e` between `bit`, `int` and `bool`.
pub(crate) fn cast(e: Expr, ty: Type) -> Expr {
    if e.ty == ty {
        return e;
    }
    if let Some(n) = as_const(&e).and_then(number) {
        match ty {
            Type::Bool => return boolean(!n.is_zero()),
            Type::Bit(_) | Type::Int(_) => return bits(&n, &ty),
            _ => {}
        }
    }
    Expr {
        kind: ExprKind::Cast(Box::new(e)),
        ty,
    }
}

/// Folds a slice: bits `hi ..= lo` of the value of `e`.
pub(crate) fn slice(e: Expr, hi: u32, lo: u32) -> Expr {
    let ty = Type::Bit(hi - lo + 1);
    if let Some(Const::Bits { value, .. }) = as_const(&e) {
        let n = BigInt::from_biguint(Sign::Plus, value >> lo);
        return bits(&n, &ty);
    }
    Expr {
        kind: ExprKind::Slice(Box::new(e), hi, lo),
        ty,
    }
}

/// Folds the concatenation `a ++ b`.
pub(crate) fn concat(a: Expr, b: Expr, ty: Type) -> Expr {
    let width = match b.ty {
        Type::Bit(w) | Type::Int(w) => w,
        _ => 0,
    };
    if let (Some(Const::Bits { value: x, .. }), Some(Const::Bits { value: y, .. })) =
        (as_const(&a), as_const(&b))
    {
        let n = BigInt::from_biguint(Sign::Plus, (x << width) | y);
        return bits(&n, &ty);
    }
    Expr {
        kind: ExprKind::Concat(Box::new(a), Box::new(b)),
        ty,
    }
}

/// Folds the conditional expression `c ? a : b`.
pub(crate) fn mux(c: Expr, a: Expr, b: Expr) -> Expr {
    match as_const(&c) {
        Some(Const::Bool(true)) => return a,
        Some(Const::Bool(false)) => return b,
        _ => {}
    }
    let ty = a.ty.clone();
    Expr {
        kind: ExprKind::Mux(Box::new(c), Box::new(a), Box::new(b)),
        ty,
    }
}

/// Whether the expression consists only of constants.
pub(crate) fn is_constant(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Const(_) | ExprKind::InvalidHeader => true,
        ExprKind::Tuple(items) => items.iter().all(is_constant),
        _ => false,
    }
}

/// Converts an expression to a constant; `None` if it does not consist only of constants.
pub(crate) fn into_const(e: Expr) -> Option<Const> {
    match e.kind {
        ExprKind::Const(c) => Some(c),
        ExprKind::Tuple(items) => items
            .into_iter()
            .map(into_const)
            .collect::<Option<Vec<_>>>()
            .map(Const::Tuple),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(n: i64, ty: Type) -> Expr {
        bits(&BigInt::from(n), &ty)
    }

    fn value(e: &Expr) -> BigInt {
        as_const(e).and_then(number).expect("a constant")
    }

    #[test]
    fn arithmetic_wraps_at_the_width() {
        let sum = binary(
            BinOp::Add,
            c(250, Type::Bit(8)),
            c(10, Type::Bit(8)),
            Type::Bit(8),
        );
        assert_eq!(value(&sum.expect("folds")), BigInt::from(4));
        let neg = unary(UnOp::Neg, c(1, Type::Bit(8)));
        assert_eq!(value(&neg), BigInt::from(255));
        let not = unary(UnOp::BitNot, c(0, Type::Int(8)));
        assert_eq!(value(&not), BigInt::from(-1));
    }

    #[test]
    fn saturating_arithmetic_stops_at_the_ends() {
        let ty = Type::Int(8);
        let e = binary(
            BinOp::AddSat,
            c(100, ty.clone()),
            c(100, ty.clone()),
            ty.clone(),
        );
        assert_eq!(value(&e.expect("folds")), BigInt::from(127));
        let e = binary(BinOp::SubSat, c(-100, ty.clone()), c(100, ty.clone()), ty);
        assert_eq!(value(&e.expect("folds")), BigInt::from(-128));
        let ty = Type::Bit(8);
        let e = binary(BinOp::SubSat, c(1, ty.clone()), c(2, ty.clone()), ty);
        assert_eq!(value(&e.expect("folds")), BigInt::from(0));
    }

    #[test]
    fn shifting_by_the_width_or_more() {
        let e = binary(
            BinOp::Shl,
            c(1, Type::Bit(8)),
            c(200, Type::Bit(32)),
            Type::Bit(8),
        );
        assert_eq!(value(&e.expect("folds")), BigInt::zero());
        let e = binary(
            BinOp::Shr,
            c(-2, Type::Int(8)),
            c(200, Type::Bit(32)),
            Type::Int(8),
        );
        assert_eq!(value(&e.expect("folds")), BigInt::from(-1));
    }

    #[test]
    fn slices_and_concatenation() {
        let e = slice(c(0xABCD, Type::Bit(16)), 11, 4);
        assert_eq!(value(&e), BigInt::from(0xBC));
        let e = concat(c(0xA, Type::Bit(4)), c(0xBC, Type::Bit(8)), Type::Bit(12));
        assert_eq!(value(&e), BigInt::from(0xABC));
    }

    #[test]
    fn hostile_constants_are_refused() {
        let big = BigInt::one() << 60_000u32;
        assert!(integer(BinOp::Mul, &big, &big).is_err());
        assert!(integer(BinOp::Shl, &BigInt::one(), &BigInt::from(1_000_000_000u64)).is_err());
        assert!(integer(BinOp::Div, &BigInt::one(), &BigInt::zero()).is_err());
    }
}
