//! Interprets PSA's functions that determine which headers a deparser may write (PSA 6.8), and `assert`.

use super::RECIRCULATE_PORT;
use crate::call::FunctionCall;
use crate::reference::bits::Bits;
use crate::reference::dialect::Interpreted;
use crate::reference::value::Value;
use crate::reference::{Interpreter, Result};
use p4lang::ir::{Arg, ExternFunction, Type};

/// The interpreter's implementation of PSA's externs.
#[derive(Debug)]
pub(crate) struct PsaReference;

impl Interpreted for PsaReference {
    fn call_function<'p>(
        &self,
        interpreter: &mut Interpreter<'_, 'p>,
        call: FunctionCall<'p>,
    ) -> Result<()> {
        interpreter.call_psa(call)
    }
}

impl<'p> Interpreter<'_, 'p> {
    fn call_psa(&mut self, call: FunctionCall<'p>) -> Result<()> {
        let FunctionCall { function, args, .. } = call;
        let (values, _) = self.extern_args(args)?;
        let field = |i: usize, field: &str| -> Bits {
            let (Some(Arg::In(e)), Some(Value::Struct(fields))) = (args.get(i), values.get(i))
            else {
                return Bits::bool(false);
            };
            let Type::Struct(id) = &e.ty else {
                return Bits::bool(false);
            };
            let declared = &self.program.types[id.index()].fields;
            let at = declared.iter().position(|f| f.name == field);
            at.map_or(Bits::bool(false), |at| fields[at].bits())
        };
        let is = |bits: &Bits| bits.is_true();
        let (value, read) = match function {
            ExternFunction::PsaCloneI2e | ExternFunction::PsaCloneE2e => {
                let clone = field(0, "clone");
                (is(&clone), vec![clone])
            }
            ExternFunction::PsaResubmit => {
                let (drop, resubmit) = (field(0, "drop"), field(0, "resubmit"));
                (!is(&drop) && is(&resubmit), vec![drop, resubmit])
            }
            ExternFunction::PsaNormal => {
                let (drop, resubmit) = (field(0, "drop"), field(0, "resubmit"));
                (!is(&drop) && !is(&resubmit), vec![drop, resubmit])
            }
            ExternFunction::PsaRecirculate => {
                let (drop, port) = (field(0, "drop"), field(1, "egress_port"));
                let there = port.u64() == u64::from(RECIRCULATE_PORT);
                (!is(&drop) && there, vec![drop, port])
            }
            _ => {
                let holds = values.first().is_some_and(|v| v.bits().is_true());
                if !holds {
                    self.counts.failed_assertions += 1;
                    let span = self.span;
                    self.watch
                        .assertion_failed(function.name(), self.program, span);
                }
                self.trace_method("", function.name(), args, &values, (&Type::Void, None));
                return Ok(());
            }
        };
        for bits in read {
            self.influences(&bits, || format!("the argument of {function}"));
        }
        let value = Value::Bits(Bits::bool(value));
        self.trace_method(
            "",
            function.name(),
            args,
            &values,
            (&Type::Bool, Some(&value)),
        );
        if let Some(lvalue) = call.result {
            let place = self.resolve(lvalue)?;
            self.write(&place, value);
        }
        Ok(())
    }
}
