//! The seam between the interpreter and an architecture's own, as [`crate::compile::dialect`] is the compiler's.

use super::place::Place;
use super::value::Value;
use super::{Interpreter, Result};
use crate::call::{FunctionCall, MethodCall};
use p4lang::ir::{ExternId, Type};

/// What an architecture adds to the language. One implementation in each folder of `arch`.
pub(crate) trait Interpreted: std::fmt::Debug + Sync {
    /// A call that evaluates its arguments itself. False: this is none.
    fn call_whole<'p>(&self, _: &mut Interpreter<'_, 'p>, _: MethodCall<'p>) -> Result<bool> {
        Ok(false)
    }

    /// Changes a call's values to what the method takes.
    fn arguments(&self, _: &mut Interpreter<'_, '_>, _: MethodCall<'_>, _: &mut [Value]) {}

    /// Whether the packet has asked for what this method makes.
    fn is_asked(&self, _: &mut Interpreter<'_, '_>, _: MethodCall<'_>) -> bool {
        true
    }

    /// Does it; gives the result as a value of type `ty`.
    fn perform(
        &self,
        interpreter: &mut Interpreter<'_, '_>,
        call: MethodCall<'_>,
        values: &[Value],
        (_, ty): (Option<&Place>, &Type),
    ) -> Result<Performed> {
        Ok(Performed::Now(interpreter.perform(call, values, ty)))
    }

    /// The colour that a meter's arguments behind its index say, if they do.
    fn colour_so_far(&self, _: &mut Interpreter<'_, '_>, _: &[Value]) -> Option<u64> {
        None
    }

    /// A meter's colour as its constructor names it.
    fn coloured(&self, _: &Interpreter<'_, '_>, _: ExternId, colour: u64) -> u64 {
        colour
    }

    /// A call of an extern function.
    fn call_function<'p>(
        &self,
        interpreter: &mut Interpreter<'_, 'p>,
        call: FunctionCall<'p>,
    ) -> Result<()>;
}

/// What a method gives.
pub(crate) enum Performed {
    /// Its result, if it has one.
    Now(Option<Value>),
    /// Nothing before the parser ends.
    Later,
}
