//! TNA's extern functions, compiled: `invalidate`, `is_validated`, `sizeInBytes`, `port_metadata_unpack` and others.

use crate::call::FunctionCall;
use crate::compile::layout::width;
use crate::compile::methods::written;
use crate::compile::{Compiler, Result};
use crate::op::{Op, Slot, T3};
use p4lang::ir::{Arg, Expr, ExprKind, ExternFunction, LValue, Type};

impl Compiler<'_> {
    pub(crate) fn call_tofino(&mut self, call: FunctionCall<'_>) -> Result<()> {
        let FunctionCall {
            function,
            args,
            result,
        } = call;
        match (function, args) {
            (ExternFunction::Max | ExternFunction::Min, [Arg::In(a), Arg::In(b)]) => {
                let w = width(&a.ty);
                if w > 64 {
                    return self.unsupported(format!("{function} of more than 64 bits"));
                }
                let (left, right) = (self.expr(a)?, self.expr(b)?);
                let (first, second) = if *function == ExternFunction::Max {
                    (left, right)
                } else {
                    (right, left)
                };
                let less = self.alloc(1)?;
                let t3 = T3 {
                    w: w as u8,
                    d: less,
                    a: first,
                    b: second,
                };
                let signed = matches!(a.ty, Type::Int(_));
                self.op(if signed { Op::LtS(t3) } else { Op::Lt(t3) })?;
                self.write_result(result, |c, d| {
                    let take = c.alloc(1)?;
                    c.op(Op::Mov { d: take, s: left })?;
                    c.op(Op::MovIf {
                        g: less,
                        d: take,
                        s: right,
                    })?;
                    c.op(Op::Mov { d, s: take })
                })
            }
            (ExternFunction::Invalidate, [Arg::In(field)]) => self.invalidate(field),
            (ExternFunction::IsValidated, [Arg::In(field)]) => {
                let valid = self.validity(field)?;
                self.write_result(result, |c, d| c.op(Op::Mov { d, s: valid }))
            }
            (ExternFunction::SizeInBytes | ExternFunction::SizeInBits, [Arg::In(header)]) => {
                let layout = self.layout(&header.ty)?;
                let bits = self.code.layouts[layout as usize].bits;
                let unit = if *function == ExternFunction::SizeInBytes {
                    8
                } else {
                    1
                };
                let size = self.constant((bits / unit).into())?;
                self.write_result(result, |c, d| c.op(Op::Mov { d, s: size }))
            }
            (ExternFunction::PortMetadataUnpack, [Arg::Object(_)]) => self.port_metadata(result),
            (
                ExternFunction::FunnelShiftRight,
                [to, Arg::In(high), Arg::In(low), Arg::In(shift)],
            ) => self.funnel_shift(to, high, low, shift),
            _ => self.unsupported(format!("function {function}")),
        }
    }

    /// Compiles `port_metadata_unpack`: reads the port's metadata, left-aligned, and skips all of its bytes.
    fn port_metadata(&mut self, result: Option<&LValue>) -> Result<()> {
        let to = self.scope.reject;
        let bits = u64::from(crate::arch::tna::port_metadata_bytes(self.program)) * 8;
        if let Some(lvalue) = result {
            let place = self.locate(lvalue)?;
            let (layout, n) = (self.layout(&lvalue.ty)?, self.size(&lvalue.ty)?);
            if u64::from(self.code.layouts[layout as usize].bits) > bits {
                return self.unsupported(format!("port metadata of more than {bits} bits"));
            }
            let d = self.alloc(n)?;
            self.op(Op::Lookahead { layout, d, to })?;
            self.store(&place, d)?;
        }
        let bits = self.constant(bits)?;
        self.op(Op::Advance { bits, to })
    }

    fn invalidate(&mut self, field: &Expr) -> Result<()> {
        let ExprKind::Read(lvalue) = &field.kind else {
            return self.unsupported("`invalidate` of something other than a field");
        };
        let place = self.locate(lvalue)?;
        if place.slice.is_some() {
            return self.unsupported("`invalidate` of a part of a field");
        }
        let n = self.size(&place.ty)?;
        self.in_place(&place, |c, d| {
            c.op(Op::Zero { d, n })?;
            // The field's validity follows it.
            match place.validates {
                Some(_) => c.op(Op::Zero { d: d + n, n: 1 }),
                None => Ok(()),
            }
        })
    }

    /// The slot of a metadata field's own validity, or else of its header's validity; if it has neither, the constant 1.
    fn validity(&mut self, field: &Expr) -> Result<Slot> {
        let ExprKind::Read(lvalue) = &field.kind else {
            return self.constant(1);
        };
        let mut place = self.locate(lvalue)?;
        let bit = match (place.validates, place.guard) {
            (Some(validity), _) => validity,
            (None, Some(guard)) => {
                place.elements.truncate(guard.around);
                guard.slot
            }
            (None, None) if self.is_header(&place.ty) => place.slot,
            (None, None) => return self.constant(1),
        };
        (place.slot, place.ty, place.slice) = (bit, Type::Bool, None);
        self.load(&place)
    }

    /// Compiles `funnel_shift_right`: dst = (high ++ low) >> shift.
    fn funnel_shift(&mut self, to: &Arg, high: &Expr, low: &Expr, shift: &Expr) -> Result<()> {
        let w = width(&high.ty);
        if w > 32 {
            return self.unsupported("funnel_shift_right of more than 32 bits");
        }
        let (a, b, by) = (self.expr(high)?, self.expr(low)?, self.index(shift)?);
        let wide = self.alloc(1)?;
        self.op(Op::Concat {
            wb: w as u8,
            d: wide,
            a,
            b,
        })?;
        self.op(Op::Shr(T3 {
            w: 64,
            d: wide,
            a: wide,
            b: by,
        }))?;
        self.write_result(written(to), |c, d| {
            c.op(Op::Slice {
                lo: 0,
                w: w as u8,
                d,
                a: wide,
            })
        })
    }
}
