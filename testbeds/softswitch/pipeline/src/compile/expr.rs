//! Compiles expressions: each operation becomes one instruction, each operand a slot.

use super::layout::{Part, width};
use super::{Compiler, Result, const_u64};
use crate::bits::limbs;
use crate::op::{Op, Slot, T3, Target, WideOp, WidePlan};
use num_bigint::{BigInt, BigUint};
use p4lang::ir::{BinOp, Const, Expr, ExprKind, Type, UnOp};
use std::rc::Rc;

/// The value of a constant expression, if it fits 64 bits; otherwise `None`.
pub(crate) fn literal(e: &Expr) -> Option<u64> {
    match &e.kind {
        ExprKind::Const(c) => const_u64(c),
        _ => None,
    }
}

/// The 64-bit limbs of a constant scalar in `w` bits, in two's complement, the lowest first; `None` for other constants.
pub fn const_limbs(value: &Const, w: u32) -> Option<Vec<u64>> {
    let n = limbs(w) as usize;
    let mut words = match value {
        Const::Bits { value, .. } => value.to_u64_digits(),
        Const::Integer(value) => {
            let modulus = BigInt::from(BigUint::from(1u8) << w);
            let positive = ((value % &modulus) + &modulus) % &modulus;
            positive.magnitude().to_u64_digits()
        }
        other => vec![const_u64(other)?],
    };
    words.resize(n, 0);
    Some(words)
}

impl Compiler<'_> {
    /// Compiles an expression; its value can be read in the returned slot until the statement ends.
    pub(crate) fn expr(&mut self, e: &Expr) -> Result<Slot> {
        match &e.kind {
            ExprKind::Const(c) if !matches!(c, Const::Tuple(_)) => {
                let Some(words) = const_limbs(c, width(&e.ty)) else {
                    return self.unsupported("a constant of this type as a run-time value");
                };
                if let [word] = words[..] {
                    self.constant(word)
                } else {
                    self.constants(&words)
                }
            }
            ExprKind::Read(lvalue) => {
                let place = self.locate(lvalue)?;
                self.load(&place)
            }
            ExprKind::IsValid(lvalue) => {
                let place = self.locate(lvalue)?;
                let slot = self.load(&place)?;
                if self.is_union(&place.ty) {
                    self.union_valid(slot, &place.ty)
                } else {
                    Ok(slot)
                }
            }
            _ => {
                let n = self.size(&e.ty)?;
                let d = self.alloc(n)?;
                self.expr_into(e, d)?;
                Ok(d)
            }
        }
    }

    fn union_valid(&mut self, slot: Slot, ty: &Type) -> Result<Slot> {
        let d = self.alloc(1)?;
        self.op(Op::Zero { d, n: 1 })?;
        for member in self.parts(ty)?.iter() {
            self.op(Op::Or(T3 {
                w: 1,
                d,
                a: d,
                b: slot + member.at,
            }))?;
        }
        Ok(d)
    }

    /// Compiles an expression so that its value is written to `d` after all operands have been read.
    pub(crate) fn expr_into(&mut self, e: &Expr, d: Slot) -> Result<()> {
        let top = self.frame.top;
        self.expr_into_kept(e, d)?;
        self.frame.top = top;
        Ok(())
    }

    fn expr_into_kept(&mut self, e: &Expr, d: Slot) -> Result<()> {
        let w = width(&e.ty);
        match &e.kind {
            ExprKind::Const(Const::Tuple(values)) => self.const_tuple(values, &e.ty, d),
            ExprKind::Const(_) | ExprKind::Read(_) | ExprKind::IsValid(_) => {
                let (s, n) = (self.expr(e)?, self.size(&e.ty)?);
                self.copy(d, s, n)
            }
            ExprKind::LastIndex(lvalue) => {
                let place = self.locate(lvalue)?;
                let (a, b) = (self.load(&place)?, self.constant(1)?);
                self.op(Op::Sub(T3 { w: 32, d, a, b }))
            }
            ExprKind::Unary(op, a) => {
                let s = self.expr(a)?;
                match op {
                    UnOp::Not => self.op(Op::Not { d, a: s }),
                    UnOp::BitNot if w <= 64 => self.op(Op::BitNot {
                        w: w as u8,
                        d,
                        a: s,
                    }),
                    UnOp::Neg if w <= 64 => self.op(Op::Neg {
                        w: w as u8,
                        d,
                        a: s,
                    }),
                    _ => {
                        let op = if *op == UnOp::Neg {
                            WideOp::Neg
                        } else {
                            WideOp::BitNot
                        };
                        self.wide(WidePlan {
                            op,
                            d: (d, w),
                            a: (s, w),
                            b: (s, w),
                            signed: false,
                        })
                    }
                }
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, d, w),
            ExprKind::Cast(a) => self.cast(a, &e.ty, d),
            ExprKind::Slice(a, hi, lo) => {
                let s = self.expr(a)?;
                self.slice(d, s, width(&a.ty), *hi, *lo)
            }
            ExprKind::Concat(a, b) => self.concat(a, b, d, w),
            ExprKind::Mux(c, a, b) => {
                let (no, end) = (self.label(), self.label());
                self.unless(c, no)?;
                self.expr_into(a, d)?;
                self.op(Op::Jump(end))?;
                self.place(no);
                self.expr_into(b, d)?;
                self.place(end);
                Ok(())
            }
            ExprKind::Tuple(values) => {
                // Gathered first, because the destination may be among the sources.
                let n = self.size(&e.ty)?;
                let t = self.alloc(n)?;
                let parts = self.list_parts(&e.ty, t)?;
                for (value, part) in values.iter().zip(parts.iter()) {
                    self.expr_into(value, t + part.at)?;
                }
                self.copy(d, t, n)
            }
            ExprKind::InvalidHeader => {
                let n = self.size(&e.ty)?;
                self.op(Op::Zero { d, n })
            }
        }
    }

    /// Compiles the initialization of a value that is built from a list; returns the value's parts. Headers, and fields with a
    /// validity of their own, become valid; a stack's `nextIndex` becomes 0, as before any extraction (P4_16 8.20.1).
    fn list_parts(&mut self, ty: &Type, d: Slot) -> Result<Rc<[Part]>> {
        let parts = self.parts(ty)?;
        let head = match ty {
            Type::Stack(..) => Some((d, 0)),
            _ if self.is_header(ty) => Some((d, 1)),
            _ => None,
        };
        let own = parts.iter().filter_map(|part| part.validity);
        for (d, value) in head.into_iter().chain(own.map(|own| (d + own, 1))) {
            let s = self.constant(value)?;
            self.op(Op::Mov { d, s })?;
        }
        Ok(parts)
    }

    fn const_tuple(&mut self, values: &[Const], ty: &Type, d: Slot) -> Result<()> {
        let parts = self.list_parts(ty, d)?;
        if parts.len() != values.len() {
            return self.unsupported("a list of this type");
        }
        for (value, part) in values.iter().zip(parts.iter()) {
            let e = Expr {
                kind: ExprKind::Const(value.clone()),
                ty: part.ty.clone(),
            };
            self.expr_into(&e, d + part.at)?;
        }
        Ok(())
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr, d: Slot, w: u32) -> Result<()> {
        let scalar = matches!(
            a.ty,
            Type::Bool | Type::Bit(_) | Type::Int(_) | Type::Error | Type::Enum(_)
        );
        let (sa, sb) = (self.expr(a)?, self.expr(b)?);
        if !scalar {
            return self.compare(op, &a.ty, sa, sb, d);
        }
        let shift = matches!(op, BinOp::Shl | BinOp::Shr);
        let wa = width(&a.ty);
        let sb = if shift && width(&b.ty) > 64 {
            self.saturate(sb, width(&b.ty))?
        } else {
            sb
        };
        let signed = matches!(a.ty, Type::Int(_));
        if op == BinOp::Concat {
            return self.concat_slots((sa, wa), (sb, width(&b.ty)), d, w);
        }
        if wa > 64 {
            let division = matches!(op, BinOp::Div | BinOp::Mod);
            if division && (signed || wa > 128) {
                let name = if signed { "int" } else { "bit" };
                return self.unsupported(format!("division of {name}<{wa}>"));
            }
            let wb = if shift { 64 } else { wa };
            return self.wide(WidePlan {
                op: WideOp::Binary(op),
                d: (d, w),
                a: (sa, wa),
                b: (sb, wb),
                signed,
            });
        }
        let t = T3 {
            w: wa as u8,
            d,
            a: sa,
            b: sb,
        };
        let swapped = T3 { a: sb, b: sa, ..t };
        let op = match (op, signed) {
            (BinOp::Add, _) => Op::Add(t),
            (BinOp::Sub, _) => Op::Sub(t),
            (BinOp::Mul, _) => Op::Mul(t),
            (BinOp::Div | BinOp::Mod, true) => {
                return self.unsupported("division of signed values");
            }
            (BinOp::Div, _) => Op::Div(t),
            (BinOp::Mod, _) => Op::Mod(t),
            (BinOp::AddSat, false) => Op::AddSat(t),
            (BinOp::SubSat, false) => Op::SubSat(t),
            (BinOp::AddSat, true) => Op::AddSatS(t),
            (BinOp::SubSat, true) => Op::SubSatS(t),
            (BinOp::And | BinOp::LogAnd, _) => Op::And(t),
            (BinOp::Or | BinOp::LogOr, _) => Op::Or(t),
            (BinOp::Xor, _) => Op::Xor(t),
            (BinOp::Shl, _) => Op::Shl(t),
            (BinOp::Shr, false) => Op::Shr(t),
            (BinOp::Shr, true) => Op::Sar(t),
            (BinOp::Eq, _) => Op::Eq(t),
            (BinOp::Ne, _) => Op::Ne(t),
            (BinOp::Lt, false) => Op::Lt(t),
            (BinOp::Le, false) => Op::Le(t),
            (BinOp::Gt, false) => Op::Lt(swapped),
            (BinOp::Ge, false) => Op::Le(swapped),
            (BinOp::Lt, true) => Op::LtS(t),
            (BinOp::Le, true) => Op::LeS(t),
            (BinOp::Gt, true) => Op::LtS(swapped),
            (BinOp::Ge, true) => Op::LeS(swapped),
            (BinOp::Concat, _) => return self.unsupported("concatenation of these types"),
        };
        self.op(op)
    }

    /// Compiles `==` or `!=` of headers, structs, stacks, tuples or varbits, by comparing slots. Invalid headers are all
    /// zeroes; if their fields can be written, copies are normalized first.
    fn compare(&mut self, op: BinOp, ty: &Type, a: Slot, b: Slot, d: Slot) -> Result<()> {
        if !matches!(op, BinOp::Eq | BinOp::Ne) {
            return self.unsupported("this operation on these types");
        }
        let (a, b) = match self.rules.invalid.are_written() {
            true => (self.without_invalid(ty, a)?, self.without_invalid(ty, b)?),
            false => (a, b),
        };
        let mut ranges = Vec::new();
        self.compared(ty, 0, &mut ranges)?;
        let (one, part, all) = (self.constant(1)?, self.alloc(1)?, self.alloc(1)?);
        self.op(Op::Mov { d: all, s: one })?;
        for (at, n) in ranges {
            self.op(Op::EqRange {
                d: part,
                a: a + at,
                b: b + at,
                n,
            })?;
            self.op(Op::And(T3 {
                w: 1,
                d: all,
                a: all,
                b: part,
            }))?;
        }
        if op == BinOp::Ne {
            self.op(Op::Not { d, a: all })
        } else {
            self.op(Op::Mov { d, s: all })
        }
    }

    /// Copies a value such that invalid headers are all zeroes; returns its slot, or `s` if the value contains no header.
    fn without_invalid(&mut self, ty: &Type, s: Slot) -> Result<Slot> {
        let mut headers = Vec::new();
        self.headers_in(ty, 0, &mut headers)?;
        if headers.is_empty() {
            return Ok(s);
        }
        let n = self.size(ty)?;
        let d = self.alloc(n)?;
        self.copy(d, s, n)?;
        for (at, n) in headers {
            let valid = self.label();
            self.op(Op::JumpIf {
                c: d + at,
                to: valid,
            })?;
            self.op(Op::Zero { d: d + at, n })?;
            self.place(valid);
        }
        Ok(d)
    }

    fn cast(&mut self, a: &Expr, to: &Type, d: Slot) -> Result<()> {
        let s = self.expr(a)?;
        let scalar = |ty: &Type| {
            matches!(
                ty,
                Type::Bool | Type::Bit(_) | Type::Int(_) | Type::Enum(_) | Type::Error
            )
        };
        if !scalar(&a.ty) || !scalar(to) {
            let n = self.size(to)?;
            if self.size(&a.ty)? == n {
                return self.copy(d, s, n);
            }
            return self.unsupported("this cast");
        }
        let (from, w, signed) = (width(&a.ty), width(to), matches!(a.ty, Type::Int(_)));
        if from > 64 || w > 64 {
            return self.wide(WidePlan {
                op: WideOp::Cast,
                d: (d, w),
                a: (s, from),
                b: (s, from),
                signed,
            });
        }
        if w < from {
            self.op(Op::Slice {
                lo: 0,
                w: w as u8,
                d,
                a: s,
            })
        } else if signed && w > from {
            self.op(Op::SignExtend {
                from: from as u8,
                to: w as u8,
                d,
                a: s,
            })
        } else {
            self.copy(d, s, 1)
        }
    }

    fn concat(&mut self, a: &Expr, b: &Expr, d: Slot, w: u32) -> Result<()> {
        let (sa, sb) = (self.expr(a)?, self.expr(b)?);
        self.concat_slots((sa, width(&a.ty)), (sb, width(&b.ty)), d, w)
    }

    fn concat_slots(&mut self, a: (Slot, u32), b: (Slot, u32), d: Slot, w: u32) -> Result<()> {
        if w <= 64 {
            return self.op(Op::Concat {
                wb: b.1 as u8,
                d,
                a: a.0,
                b: b.0,
            });
        }
        self.wide(WidePlan {
            op: WideOp::Concat,
            d: (d, w),
            a,
            b,
            signed: false,
        })
    }

    /// Compiles a jump to `to` that is taken if the condition is false.
    pub(crate) fn unless(&mut self, c: &Expr, to: Target) -> Result<()> {
        match &c.kind {
            ExprKind::Unary(UnOp::Not, a) => return self.when(a, to),
            ExprKind::Binary(BinOp::LogAnd, a, b) => {
                self.unless(a, to)?;
                return self.unless(b, to);
            }
            ExprKind::Binary(BinOp::LogOr, a, b) => {
                let yes = self.label();
                self.when(a, yes)?;
                self.unless(b, to)?;
                self.place(yes);
                return Ok(());
            }
            ExprKind::Binary(op @ (BinOp::Eq | BinOp::Ne), a, b) if is_narrow(&a.ty) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                let eq = *op == BinOp::Eq;
                return self.op(if eq {
                    Op::JumpNe { a, b, to }
                } else {
                    Op::JumpEq { a, b, to }
                });
            }
            _ => {}
        }
        let c = self.expr(c)?;
        self.op(Op::JumpIfNot { c, to })
    }

    /// Compiles a jump to `to` that is taken if the condition is true.
    pub(crate) fn when(&mut self, c: &Expr, to: Target) -> Result<()> {
        match &c.kind {
            ExprKind::Unary(UnOp::Not, a) => return self.unless(a, to),
            ExprKind::Binary(BinOp::LogOr, a, b) => {
                self.when(a, to)?;
                return self.when(b, to);
            }
            ExprKind::Binary(BinOp::LogAnd, a, b) => {
                let no = self.label();
                self.unless(a, no)?;
                self.when(b, to)?;
                self.place(no);
                return Ok(());
            }
            ExprKind::Binary(op @ (BinOp::Eq | BinOp::Ne), a, b) if is_narrow(&a.ty) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                let eq = *op == BinOp::Eq;
                return self.op(if eq {
                    Op::JumpEq { a, b, to }
                } else {
                    Op::JumpNe { a, b, to }
                });
            }
            _ => {}
        }
        let c = self.expr(c)?;
        self.op(Op::JumpIf { c, to })
    }
}

fn is_narrow(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Error | Type::Enum(_) => true,
        Type::Bit(w) | Type::Int(w) => *w <= 64,
        _ => false,
    }
}
