//! PSA's extern functions.

use super::{Compiler, Result};
use crate::op::{Op, Slot, T3};
use p4lang::ir::{Arch, Arg, ExternFunction, LValue};

impl Compiler<'_> {
    /// PSA's functions on the metadata that decide what a deparser may write.
    pub(super) fn call_extern(
        &mut self,
        function: &ExternFunction,
        args: &[Arg],
        result: Option<&LValue>,
    ) -> Result<()> {
        if self.tofino.is_tofino {
            return self.call_tofino(function, args, result);
        }
        if self.program.arch == Arch::V1model {
            return self.call_v1model(function, args);
        }
        let mut flag = |i: usize, field: &str| -> Result<Slot> {
            let Some(Arg::In(e)) = args.get(i) else {
                return self.unsupported(format!("function {function}"));
            };
            let base = self.expr(e)?;
            match self.named_field(&e.ty, field)? {
                Some((offset, _)) => Ok(base + offset),
                None => self.unsupported(format!("function {function} on this type")),
            }
        };
        match function {
            ExternFunction::PsaCloneI2e | ExternFunction::PsaCloneE2e => {
                let clone = flag(0, "clone")?;
                self.write_result(result, |c, d| c.op(Op::Mov { d, s: clone }))
            }
            ExternFunction::PsaResubmit | ExternFunction::PsaNormal => {
                let (drop, resubmit) = (flag(0, "drop")?, flag(0, "resubmit")?);
                self.write_result(result, |c, d| {
                    let keep = c.alloc(1)?;
                    c.op(Op::Not { d: keep, a: drop })?;
                    if *function == ExternFunction::PsaResubmit {
                        c.op(Op::And(T3 {
                            w: 1,
                            d,
                            a: keep,
                            b: resubmit,
                        }))
                    } else {
                        let once = c.alloc(1)?;
                        c.op(Op::Not {
                            d: once,
                            a: resubmit,
                        })?;
                        c.op(Op::And(T3 {
                            w: 1,
                            d,
                            a: keep,
                            b: once,
                        }))
                    }
                })
            }
            ExternFunction::PsaRecirculate => {
                let (drop, port) = (flag(0, "drop")?, flag(1, "egress_port")?);
                self.write_result(result, |c, d| {
                    let recirculate = c.constant(crate::arch::psa::RECIRCULATE_PORT.into())?;
                    let keep = c.alloc(1)?;
                    c.op(Op::Not { d: keep, a: drop })?;
                    c.op(Op::Eq(T3 {
                        w: 32,
                        d,
                        a: port,
                        b: recirculate,
                    }))?;
                    c.op(Op::And(T3 {
                        w: 1,
                        d,
                        a: d,
                        b: keep,
                    }))
                })
            }
            ExternFunction::Assert | ExternFunction::Assume => match args {
                [Arg::In(e)] => {
                    let c = self.expr(e)?;
                    self.op(Op::Assert { c })
                }
                _ => self.unsupported(format!("function {function}")),
            },
            _ => self.unsupported(format!("function {function}")),
        }
    }
}
