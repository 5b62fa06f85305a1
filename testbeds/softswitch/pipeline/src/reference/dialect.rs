//! The interface between the interpreter and an architecture, like [`crate::compile::dialect`] for the compiler.

use super::value::Value;
use super::var_path::VarPath;
use super::{Interpreter, Result};
use crate::call::{FunctionCall, MethodCall};
use p4lang::ir::{ExternId, Type};

/// The externs of an architecture, for the interpreter. Each folder of `arch` has one implementation.
pub(crate) trait Interpreted: std::fmt::Debug + Sync {
    /// Interprets a method call completely, if the method evaluates its arguments itself; returns false for other methods.
    fn call_whole<'p>(&self, _: &mut Interpreter<'_, 'p>, _: MethodCall<'p>) -> Result<bool> {
        Ok(false)
    }

    /// Changes the argument values of a method call to the values that the method works with.
    fn arguments(&self, _: &mut Interpreter<'_, '_>, _: MethodCall<'_>, _: &mut [Value]) {}

    /// Whether a method call in a deparser has an effect, because the packet's metadata requests it.
    fn is_requested(&self, _: &mut Interpreter<'_, '_>, _: MethodCall<'_>) -> bool {
        true
    }

    /// Performs a method call on its argument values; returns the result as a value of type `ty`.
    fn perform(
        &self,
        interpreter: &mut Interpreter<'_, '_>,
        call: MethodCall<'_>,
        values: &[Value],
        (_, ty): (Option<&VarPath>, &Type),
    ) -> Result<Performed> {
        Ok(Performed::Now(interpreter.perform(call, values, ty)))
    }

    /// The previous color, if a meter's arguments after its index contain it.
    fn colour_so_far(&self, _: &mut Interpreter<'_, '_>, _: &[Value]) -> Option<u64> {
        None
    }

    /// The number that a meter's constructor gives for a color.
    fn coloured(&self, _: &Interpreter<'_, '_>, _: ExternId, colour: u64) -> u64 {
        colour
    }

    /// Interprets a call of an extern function.
    fn call_function<'p>(
        &self,
        interpreter: &mut Interpreter<'_, 'p>,
        call: FunctionCall<'p>,
    ) -> Result<()>;
}

/// The result of a method call.
pub(crate) enum Performed {
    /// The result is known now; `None`: the method has none.
    Now(Option<Value>),
    /// The result is known only at the end of the parser.
    Later,
}
