//! The interface between the language and an architecture: its extern objects, their methods, its functions.

use super::{Compiler, Result};
use crate::call::{FunctionCall, MethodCall};
use crate::op::bindings::Object;
use p4lang::ir::ExternId;

/// The language extensions of an architecture. Each folder of `arch` has one implementation.
pub(crate) trait Dialect: std::fmt::Debug + Sync {
    /// Called before any declaration.
    fn begin(&self, _: &mut Compiler<'_>) {}

    /// Compiles an extern instance; `registers`: number of registers declared before it.
    fn object(
        &self,
        compiler: &mut Compiler<'_>,
        id: ExternId,
        registers: &mut u32,
    ) -> Result<Object> {
        compiler.plain_object(id, registers)
    }

    /// Handles an object that a table names in a property.
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

    /// Called at the end of a top-level parser.
    fn parser_ends(&self, _: &mut Compiler<'_>) -> Result<()> {
        Ok(())
    }
}
