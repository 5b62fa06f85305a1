//! PSA's extern functions, compiled: the deparser's questions about resubmission and clones, and `assert`.

use super::RECIRCULATE_PORT;
use crate::call::FunctionCall;
use crate::compile::dialect::Dialect;
use crate::compile::{Compiler, Result};
use crate::op::{Op, Slot, T3};
use p4lang::ir::{Arg, ExternFunction, ExternId};

/// The compiler's implementation of PSA's externs.
#[derive(Debug)]
pub(crate) struct PsaFunctions;

impl Dialect for PsaFunctions {
    fn table_object(
        &self,
        compiler: &mut Compiler<'_>,
        property: &str,
        object: ExternId,
        table: u32,
    ) -> Result<()> {
        if matches!(property, "psa_direct_counter" | "psa_direct_meter") {
            compiler.bindings.direct.insert(object, table);
        }
        Ok(())
    }

    fn call_function(&self, compiler: &mut Compiler<'_>, call: FunctionCall<'_>) -> Result<()> {
        compiler.call_psa(call)
    }
}

impl Compiler<'_> {
    /// Compiles a PSA function by which a deparser asks whether to write certain headers, such as `psa_resubmit`.
    fn call_psa(&mut self, call: FunctionCall<'_>) -> Result<()> {
        let FunctionCall {
            function,
            args,
            result,
        } = call;
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
                    let recirculate = c.constant(RECIRCULATE_PORT.into())?;
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
