//! The interface between the interpreter and an architecture, the counterpart of [`crate::compile::dialect`].

use super::value::Value;
use super::var_path::VarPath;
use super::{Interpreter, Result};
use crate::call::{FunctionCall, MethodCall};
use p4lang::ir::{ExternId, Type};

/// The language extensions of an architecture. Each folder of `arch` has one implementation.
pub(crate) trait Interpreted: std::fmt::Debug + Sync {
    /// Interprets a call that evaluates its arguments itself. False: the method is not one of these.
    fn call_whole<'p>(&self, _: &mut Interpreter<'_, 'p>, _: MethodCall<'p>) -> Result<bool> {
        Ok(false)
    }

    /// Converts the values of a call to those that the method takes.
    fn arguments(&self, _: &mut Interpreter<'_, '_>, _: MethodCall<'_>, _: &mut [Value]) {}

    /// Whether the packet has requested this method's result.
    fn is_requested(&self, _: &mut Interpreter<'_, '_>, _: MethodCall<'_>) -> bool {
        true
    }

    /// Performs the call; returns the result as a value of type `ty`.
    fn perform(
        &self,
        interpreter: &mut Interpreter<'_, '_>,
        call: MethodCall<'_>,
        values: &[Value],
        (_, ty): (Option<&VarPath>, &Type),
    ) -> Result<Performed> {
        Ok(Performed::Now(interpreter.perform(call, values, ty)))
    }

    /// The color that a meter's arguments after its index give, if any.
    fn colour_so_far(&self, _: &mut Interpreter<'_, '_>, _: &[Value]) -> Option<u64> {
        None
    }

    /// A meter's color under the name given in its constructor.
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

/// The result of a method.
pub(crate) enum Performed {
    /// The result, if the method has one.
    Now(Option<Value>),
    /// The result is available only at the end of the parser.
    Later,
}
