//! The seam between the language and an architecture's own: its extern objects, their methods, its functions.

use super::{Compiler, Result};
use crate::call::{FunctionCall, MethodCall};
use crate::op::bindings::Object;
use p4lang::ir::ExternId;

/// What an architecture adds to the language. One implementation in each folder of `arch`.
pub(crate) trait Dialect: std::fmt::Debug + Sync {
    /// Before anything is declared.
    fn begin(&self, _: &mut Compiler<'_>) {}

    /// What an extern instance becomes; `registers`: how many there are before it.
    fn object(
        &self,
        compiler: &mut Compiler<'_>,
        id: ExternId,
        registers: &mut u32,
    ) -> Result<Object> {
        compiler.plain_object(id, registers)
    }

    /// A table names the object in a property.
    fn table_object(
        &self,
        compiler: &mut Compiler<'_>,
        property: &str,
        object: ExternId,
        table: u32,
    ) -> Result<()>;

    /// A call of a method.
    fn call_method(&self, compiler: &mut Compiler<'_>, call: MethodCall<'_>) -> Result<()> {
        compiler.plain_method(call)
    }

    /// A call of an extern function.
    fn call_function(&self, compiler: &mut Compiler<'_>, call: FunctionCall<'_>) -> Result<()>;

    /// A parser that stands on its own ends here.
    fn parser_ends(&self, _: &mut Compiler<'_>) -> Result<()> {
        Ok(())
    }
}
