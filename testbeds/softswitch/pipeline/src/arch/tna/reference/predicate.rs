//! The predicate of a stateful ALU, interpreted: see [`crate::arch::tna::externs::predicate`].

use crate::arch::tna::externs::predicate::comparisons;
use crate::reference::bits::Bits;
use crate::reference::value::{Value, width};
use crate::reference::{Interpreter, Result};
use p4lang::ir::{Arg, Expr, LValue};

impl<'p> Interpreter<'_, 'p> {
    /// Interprets a predicate: the comparison results form a number n, the first result in the lowest bit, and only bit n of
    /// the predicate is set. Uses the comparisons in the arguments, or all of the method, on the cell's original value.
    pub(crate) fn predicate(&mut self, args: &'p [Arg], result: Option<&'p LValue>) -> Result<()> {
        let Some(method) = self.method.clone() else {
            return Ok(());
        };
        let written = args.iter().filter_map(|arg| match arg {
            Arg::In(e) => Some(e),
            _ => None,
        });
        let mut compared: Vec<&Expr> = written.collect();
        if compared.is_empty() {
            compared = comparisons(method.action);
        }
        let mut n = 0;
        for (i, e) in compared.into_iter().enumerate() {
            let cell = method.action.params[0].var.index();
            let now = std::mem::replace(&mut self.env().vars[cell], method.original.clone());
            let bit = self.truth(e, "a comparison");
            self.env().vars[cell] = now;
            n |= u32::from(bit?) << i;
        }
        self.returned(result, |ty| {
            Value::Bits(Bits::new(width(ty), 1u64.checked_shl(n).unwrap_or(0)))
        })
    }
}
