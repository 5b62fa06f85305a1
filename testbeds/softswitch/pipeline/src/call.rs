//! Calls of extern methods and functions in a P4 program, in the form that both executors pass to an architecture.

use p4lang::ir::{Arg, ExternFunction, ExternId, LValue, Method};

/// A call `object.method(args)` of an extern object's method in the P4 program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodCall<'p> {
    pub(crate) object: ExternId,
    pub(crate) method: &'p Method,
    pub(crate) args: &'p [Arg],
    pub(crate) result: Option<&'p LValue>,
}

/// A call `function(args)` of an extern function in the P4 program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionCall<'p> {
    pub(crate) function: &'p ExternFunction,
    pub(crate) args: &'p [Arg],
    pub(crate) result: Option<&'p LValue>,
}
