//! The interface between the compiler and an architecture: its extern objects, their methods, its extern functions.

use super::{Compiler, Result};
use crate::call::{FunctionCall, MethodCall};
use crate::op::bindings::Object;
use p4lang::ir::ExternId;

/// The externs of an architecture, for the compiler. Each folder of `arch` has one implementation.
pub(crate) trait Dialect: std::fmt::Debug + Sync {
    /// Prepares the compilation, before any declaration is compiled.
    fn begin(&self, _: &mut Compiler<'_>) {}

    /// Compiles an extern instance. `registers`: number of registers so far; increased if the instance is one.
    fn object(
        &self,
        compiler: &mut Compiler<'_>,
        id: ExternId,
        registers: &mut u32,
    ) -> Result<Object> {
        compiler.plain_object(id, registers)
    }

    /// Handles an extern object that a table names in a property, such as a direct counter.
    fn table_object(
        &self,
        compiler: &mut Compiler<'_>,
        property: &str,
        object: ExternId,
        table: u32,
    ) -> Result<()>;

    fn call_method(&self, compiler: &mut Compiler<'_>, call: MethodCall<'_>) -> Result<()> {
        compiler.plain_method(call)
    }

    /// Compiles a call of an extern function.
    fn call_function(&self, compiler: &mut Compiler<'_>, call: FunctionCall<'_>) -> Result<()>;

    /// Compiles what the architecture does at the end of a top-level parser.
    fn parser_ends(&self, _: &mut Compiler<'_>) -> Result<()> {
        Ok(())
    }
}
