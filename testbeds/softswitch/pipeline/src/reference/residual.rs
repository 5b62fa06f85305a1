//! Checksums of the data that a parser reads from some position on, computed at its end.

use super::Interpreter;
use super::bits::Bits;
use super::value::{Value, width};
use super::var_path::VarPath;
use p4lang::ir::Method;
use p4lang::source::Span;

/// A call of `subtract_all_and_deposit` that waits for the parser's end.
#[derive(Debug)]
pub(crate) struct Residual<'p> {
    /// Name of the checksum.
    object: &'p str,
    call: Span,
    unit: u32,
    /// Position of the parser, in bits.
    start: usize,
    /// Destination, in the unit at this depth.
    pub(crate) to: VarPath,
    pub(crate) depth: usize,
}

impl<'p> Interpreter<'_, 'p> {
    /// `subtract_all_and_deposit`: subtracts all data extracted from here on, and stores the rest at the end of the
    /// parser.
    pub(crate) fn deposit(&mut self, object: &'p str, unit: u32, to: VarPath) {
        let residual = Residual {
            object,
            call: self.span,
            unit,
            start: self.cursor,
            to,
            depth: self.envs.len(),
        };
        self.residuals.retain(|r| r.call != residual.call);
        self.residuals.push(residual);
    }

    /// At the end of a unit, redirects pending results from its parameters to the arguments.
    pub(crate) fn hand_residuals(&mut self, copied: impl Fn(&VarPath) -> Option<VarPath>) {
        let depth = self.envs.len();
        self.residuals.retain_mut(|residual| {
            if residual.depth <= depth {
                return true;
            }
            residual.depth = depth;
            match copied(&residual.to) {
                Some(mut outer) => {
                    outer.steps.append(&mut residual.to.steps);
                    outer.ty = residual.to.ty.clone();
                    residual.to = outer;
                    true
                }
                None => false,
            }
        });
    }

    /// Computes the pending results at the end of the parser.
    pub(crate) fn settle_residuals(&mut self) {
        for residual in std::mem::take(&mut self.residuals) {
            let read = residual.start / 8..self.cursor / 8;
            let unit = &mut self.state.checksums[residual.unit as usize];
            unit.subtract(self.packet.get(read).unwrap_or_default());
            let sum = Value::Bits(Bits::new(width(&residual.to.ty), unit.sum));
            let (object, method) = (residual.object, Method::SubtractAllAndDeposit);
            self.span = residual.call;
            self.trace_method(
                object,
                method.name(),
                &[],
                &[],
                (&residual.to.ty, Some(&sum)),
            );
            self.write(&residual.to, sum);
        }
    }
}
