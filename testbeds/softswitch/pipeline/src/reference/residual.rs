//! Residual checksums (TNA), computed when a parser ends: without the data that it has read from some position on.

use super::Interpreter;
use super::bits::Bits;
use super::value::{Value, width};
use super::var_path::VarPath;
use p4lang::ir::Method;
use p4lang::source::Span;

/// A call of `subtract_all_and_deposit` whose result is computed at the parser's end.
#[derive(Debug)]
pub(crate) struct Residual<'p> {
    /// Name of the checksum object, for the trace.
    object: &'p str,
    call: Span,
    unit: u32,
    /// Position in the packet, in bits, from which on data is subtracted from the checksum.
    start: usize,
    /// L-value to which the result is written. Its variable belongs to the running parser or function `envs[depth - 1]`.
    pub(crate) to: VarPath,
    pub(crate) depth: usize,
}

impl<'p> Interpreter<'_, 'p> {
    /// Interprets `subtract_all_and_deposit`: at the end of the parser, all data that it extracts from here on will be
    /// subtracted from the checksum, and the rest stored in `to`.
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

    /// When a sub-parser or function ends: results for its parameters will go to the arguments of its call instead.
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

    /// Computes the pending residual checksums at the end of the parser.
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
