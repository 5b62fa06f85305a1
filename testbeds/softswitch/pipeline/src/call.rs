//! Calls of an architecture's objects and functions, as both executors take them from the program.

use p4lang::ir::{Arg, ExternFunction, ExternId, LValue, Method};

/// `object.method(args)`
#[derive(Debug, Clone, Copy)]
pub(crate) struct MethodCall<'p> {
    pub(crate) object: ExternId,
    pub(crate) method: &'p Method,
    pub(crate) args: &'p [Arg],
    pub(crate) result: Option<&'p LValue>,
}

/// `function(args)`
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionCall<'p> {
    pub(crate) function: &'p ExternFunction,
    pub(crate) args: &'p [Arg],
    pub(crate) result: Option<&'p LValue>,
}
