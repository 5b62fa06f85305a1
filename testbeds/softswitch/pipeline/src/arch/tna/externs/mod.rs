//! TNA's extern objects, their methods and TNA's extern functions, compiled.

mod cell;
mod functions;
mod methods;
mod objects;
pub(crate) mod parser_counter;
pub(crate) mod predicate;
pub(crate) mod registers;
pub(crate) mod rows;

pub(crate) use objects::{COLOURS, own_colours};

use crate::call::{FunctionCall, MethodCall};
use crate::compile::dialect::Dialect;
use crate::compile::layout::width;
use crate::compile::{Compiler, Result};
use crate::op::bindings::Object;
use p4lang::ir::{Access, Expr, ExprKind, ExternId, Program, Type, Var};

/// The compiler's implementation of TNA's externs.
#[derive(Debug)]
pub(crate) struct TofinoExterns;

impl Dialect for TofinoExterns {
    fn begin(&self, compiler: &mut Compiler<'_>) {
        let twice = super::once::executed_twice(compiler.program);
        compiler.bindings.executed_twice = twice.into_iter().zip(0..).collect();
    }

    fn object(
        &self,
        compiler: &mut Compiler<'_>,
        id: ExternId,
        registers: &mut u32,
    ) -> Result<Object> {
        let instance = &compiler.program.externs[id.index()];
        compiler.tofino_object(id, instance, registers)
    }

    fn table_object(
        &self,
        compiler: &mut Compiler<'_>,
        _: &str,
        object: ExternId,
        table: u32,
    ) -> Result<()> {
        compiler.bindings.direct.insert(object, table);
        compiler.direct_cell(object, table)
    }

    fn call_method(&self, compiler: &mut Compiler<'_>, call: MethodCall<'_>) -> Result<()> {
        compiler.call_tofino_method(call)
    }

    fn call_function(&self, compiler: &mut Compiler<'_>, call: FunctionCall<'_>) -> Result<()> {
        compiler.call_tofino(call)
    }

    fn parser_ends(&self, compiler: &mut Compiler<'_>) -> Result<()> {
        compiler.residuals()
    }
}

/// Number of bits behind a header field in its byte, if one byte contains the field: a parser counter loads the whole byte.
pub fn bits_behind(program: &Program, vars: &[Var], field: &Expr) -> u32 {
    let ExprKind::Read(lvalue) = &field.kind else {
        return 0;
    };
    let (mut ty, mut end) = (vars[lvalue.var.index()].ty.clone(), 0);
    for access in &lvalue.path {
        ty = match (access, &ty) {
            (Access::Field(i), Type::Struct(id)) => {
                let fields = &program.types[id.index()].fields;
                let up_to = fields.iter().take(*i as usize + 1);
                end = up_to.map(|f| width(&f.ty)).sum();
                fields[*i as usize].ty.clone()
            }
            (Access::Slice(_, lo), _) => {
                end -= lo;
                ty
            }
            (_, Type::Stack(id, _)) => Type::Struct(*id),
            _ => return 0,
        };
    }
    let behind = (8 - end % 8) % 8;
    if width(&field.ty) + behind <= 8 {
        behind
    } else {
        0
    }
}
