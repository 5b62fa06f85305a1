//! Properties of expressions and types that the resource analysis needs: width, constancy, kind of operator.

use crate::ir::{BinOp, Expr, ExprKind, Type, UnOp};

/// Number of bits of a value of the type; 0 for a type without a fixed width.
pub(super) fn width(ty: &Type) -> u64 {
    match ty {
        Type::Bit(w) | Type::Int(w) | Type::Varbit(w) => u64::from(*w),
        Type::Bool => 1,
        Type::Error => 16,
        Type::Enum(_) => 8,
        _ => 0,
    }
}

/// Whether an expression has the same value for every packet.
pub(super) fn is_const(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Const(_) => true,
        ExprKind::Cast(e) | ExprKind::Unary(UnOp::Neg | UnOp::BitNot, e) => is_const(e),
        _ => false,
    }
}

/// Whether an operator compares two values.
pub(super) fn is_comparison(op: BinOp) -> bool {
    matches!(
        op,
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge
    )
}
