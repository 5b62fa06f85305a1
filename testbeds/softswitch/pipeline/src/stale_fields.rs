//! Makes table keys and hashes use 0 for fields of invalid headers, where these keep values ([`InvalidFields::Kept`]).
//!
//! BMv2 looks up 0 for such a field. So each header field `h.f` in a key or hash becomes `h.isValid() ? h.f : 0`, once, before
//! the program is compiled. Fields that are 0 in every invalid header stay unchanged: those of headers that never become
//! invalid, if the program never writes the field alone.

use crate::rules::{InvalidFields, Rules};
use num_bigint::BigUint;
use p4lang::ast::StructKind;
use p4lang::ir::{
    Access, Arg, BinOp, Const, Expr, ExprKind, ExternFunction, LValue, Program, Stmt, StmtKind,
    Type, TypeId, Var, visit, visit_mut,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Returns the program with a validity check around each header field in a key or hash that may keep a value while invalid.
pub(crate) fn checked(program: &Arc<Program>) -> Arc<Program> {
    if Rules::for_program(program).invalid != InvalidFields::Kept {
        return Arc::clone(program);
    }
    let stale = Stale::from_program(program);
    let mut changed = (**program).clone();
    let mut any = false;
    let Program {
        parsers,
        controls,
        functions,
        ..
    } = &mut changed;
    for parser in parsers {
        let bodies = parser.states.iter_mut().map(|state| &mut state.body);
        for block in bodies.chain([&mut parser.init]) {
            any |= check_calls(program, &stale, &parser.vars, block);
        }
    }
    for control in controls {
        let keys = control.tables.iter_mut().flat_map(|t| &mut t.key);
        for key in keys {
            any |= check(program, &stale, &control.vars, &mut key.expr);
        }
        let bodies = control.actions.iter_mut().map(|action| &mut action.body);
        for block in bodies.chain([&mut control.body]) {
            any |= check_calls(program, &stale, &control.vars, block);
        }
    }
    for function in functions {
        any |= check_calls(program, &stale, &function.vars, &mut function.body);
    }
    match any {
        true => Arc::new(changed),
        false => Arc::clone(program),
    }
}

/// Adds validity checks to the values that the extern calls of a block hash; returns whether the block changed.
fn check_calls(program: &Program, stale: &Stale, vars: &[Var], block: &mut [Stmt]) -> bool {
    let mut any = false;
    visit_mut(block, &mut |stmt| {
        let StmtKind::CallExtern { function, args, .. } = &mut stmt.kind else {
            return;
        };
        let hashes = matches!(
            function,
            ExternFunction::Hash
                | ExternFunction::VerifyChecksum
                | ExternFunction::VerifyChecksumWithPayload
                | ExternFunction::UpdateChecksum
                | ExternFunction::UpdateChecksumWithPayload
        );
        for arg in args.iter_mut().filter(|_| hashes) {
            if let Arg::In(Expr {
                kind: ExprKind::Tuple(data),
                ..
            }) = arg
            {
                for e in data {
                    any |= check(program, stale, vars, e);
                }
            }
        }
    });
    any
}

/// Replaces the field by 0 while its header is invalid, if it might otherwise have another value; returns whether `e` changed.
fn check(program: &Program, stale: &Stale, vars: &[Var], e: &mut Expr) -> bool {
    let Some(lvalue) = field(e) else {
        return false;
    };
    let Some((header, id, i)) = header_of(program, vars, lvalue) else {
        return false;
    };
    let zero = match &e.ty {
        Type::Bool => Const::Bool(false),
        Type::Bit(_) | Type::Int(_) => Const::Bits {
            value: BigUint::ZERO,
            ty: e.ty.clone(),
        },
        Type::Error => Const::Error(0),
        Type::Enum(id) => Const::Enum(*id, 0),
        _ => return false,
    };
    if !stale.holds(id, i) {
        return false;
    }
    let valid = Expr {
        kind: ExprKind::IsValid(header),
        ty: Type::Bool,
    };
    let zero = Expr {
        kind: ExprKind::Const(zero),
        ty: e.ty.clone(),
    };
    e.kind = ExprKind::Mux(Box::new(valid), Box::new(e.clone()), Box::new(zero));
    true
}

/// The l-value of a field that the expression uses directly, in part (a slice), or under a mask; `None` for others.
fn field(e: &Expr) -> Option<&LValue> {
    match &e.kind {
        ExprKind::Read(lvalue) => Some(lvalue),
        ExprKind::Slice(inner, ..) => field(inner),
        ExprKind::Binary(BinOp::And, a, b) => match (&a.kind, &b.kind) {
            (_, ExprKind::Const(_)) => field(a),
            (ExprKind::Const(_), _) => field(b),
            _ => None,
        },
        _ => None,
    }
}

/// The innermost header that contains the l-value, its type, and the index of the header's field that contains it.
fn header_of(program: &Program, vars: &[Var], lvalue: &LValue) -> Option<(LValue, TypeId, u32)> {
    let mut ty = vars.get(lvalue.var.index())?.ty.clone();
    let mut found = None;
    for (at, access) in lvalue.path.iter().enumerate() {
        ty = match (&ty, access) {
            (Type::Struct(id), Access::Field(i)) => {
                let owner = program.types.get(id.index())?;
                if owner.kind == StructKind::Header {
                    let header = LValue {
                        var: lvalue.var,
                        path: lvalue.path[..at].to_vec(),
                        ty: ty.clone(),
                    };
                    found = Some((header, *id, *i));
                }
                owner.fields.get(*i as usize)?.ty.clone()
            }
            (Type::Tuple(types), Access::Field(i)) => types.get(*i as usize)?.clone(),
            (Type::Stack(id, _), Access::Index(_) | Access::Next | Access::Last) => {
                Type::Struct(*id)
            }
            _ => break,
        };
    }
    found
}

/// The fields that may hold a value other than 0 while their header is invalid.
#[derive(Default)]
struct Stale {
    /// Fields that the program writes individually: header type and field index.
    fields: BTreeSet<(TypeId, u32)>,
    /// Types of headers that the program makes invalid.
    headers: BTreeSet<TypeId>,
}

impl Stale {
    fn from_program(program: &Program) -> Stale {
        let mut stale = Stale::default();
        for parser in &program.parsers {
            let bodies = parser.states.iter().map(|state| &state.body);
            for block in bodies.chain([&parser.init]) {
                stale.block(program, &parser.vars, block);
            }
        }
        for control in &program.controls {
            let bodies = control.actions.iter().map(|action| &action.body);
            for block in bodies.chain([&control.body]) {
                stale.block(program, &control.vars, block);
            }
            for offered in control.tables.iter().flat_map(|table| &table.actions) {
                stale.block(program, &control.vars, &offered.calls);
                stale.arguments(program, &control.vars, &offered.args);
            }
        }
        for function in &program.functions {
            stale.block(program, &function.vars, &function.body);
        }
        stale
    }

    fn holds(&self, header: TypeId, field: u32) -> bool {
        self.headers.contains(&header) || self.fields.contains(&(header, field))
    }

    fn block(&mut self, program: &Program, vars: &[Var], block: &[Stmt]) {
        visit(block, &mut |stmt| match &stmt.kind {
            StmtKind::Assign(to, _) => {
                self.written(program, vars, to);
                self.invalidated(program, &to.ty);
            }
            StmtKind::SetInvalid(header) => self.invalidated(program, &header.ty),
            StmtKind::Lookahead { dst, .. } | StmtKind::PacketLength { dst, .. } => {
                self.written(program, vars, dst);
            }
            StmtKind::CallMethod { args, result, .. }
            | StmtKind::CallExtern { args, result, .. } => {
                self.arguments(program, vars, args);
                if let Some(to) = result {
                    self.written(program, vars, to);
                }
            }
            StmtKind::CallAction(_, args)
            | StmtKind::ApplyControl(_, args)
            | StmtKind::ApplyParser(_, args)
            | StmtKind::CallFunction(_, args) => self.arguments(program, vars, args),
            _ => {}
        });
    }

    fn arguments(&mut self, program: &Program, vars: &[Var], args: &[Arg]) {
        for arg in args {
            if let Arg::Out(to) | Arg::InOut(to) | Arg::InOutSaved { to, .. } = arg {
                self.written(program, vars, to);
            }
        }
    }

    fn written(&mut self, program: &Program, vars: &[Var], to: &LValue) {
        if let Some((_, id, field)) = header_of(program, vars, to) {
            self.fields.insert((id, field));
        }
    }

    /// Records that the program replaces a value of this type, possibly by a value with invalid headers.
    fn invalidated(&mut self, program: &Program, ty: &Type) {
        let (Type::Struct(id) | Type::Stack(id, _)) = ty else {
            return;
        };
        let owner = &program.types[id.index()];
        if owner.kind == StructKind::Header {
            self.headers.insert(*id);
            return;
        }
        for field in &owner.fields {
            self.invalidated(program, &field.ty);
        }
    }
}
