//! Adds a variable for each call result that a program discards, because a trace prints these results too.

use p4lang::ir::{LValue, Program, Stmt, StmtKind, Type, Var, VarId, visit, visit_mut};
use std::sync::Arc;

/// The program with a variable for each discarded result; unchanged if it discards none.
pub(crate) fn kept(program: &Arc<Program>) -> Arc<Program> {
    if !blocks(program).any(discards) {
        return Arc::clone(program);
    }
    let mut changed = (**program).clone();
    for parser in &mut changed.parsers {
        for state in &mut parser.states {
            keep(&mut parser.vars, &mut state.body);
        }
        keep(&mut parser.vars, &mut parser.init);
    }
    for control in &mut changed.controls {
        for action in &mut control.actions {
            keep(&mut control.vars, &mut action.body);
        }
        keep(&mut control.vars, &mut control.body);
    }
    for function in &mut changed.functions {
        keep(&mut function.vars, &mut function.body);
    }
    Arc::new(changed)
}

fn blocks(program: &Program) -> impl Iterator<Item = &[Stmt]> {
    let parsers = program.parsers.iter().flat_map(|parser| {
        let states = parser.states.iter().map(|state| &state.body[..]);
        states.chain([&parser.init[..]])
    });
    let controls = program.controls.iter().flat_map(|control| {
        let actions = control.actions.iter().map(|action| &action.body[..]);
        actions.chain([&control.body[..]])
    });
    let functions = program.functions.iter().map(|function| &function.body[..]);
    parsers.chain(controls).chain(functions)
}

fn discards(block: &[Stmt]) -> bool {
    let mut found = false;
    visit(block, &mut |stmt| {
        found |= match &stmt.kind {
            StmtKind::CallMethod {
                result, returns, ..
            }
            | StmtKind::CallExtern {
                result, returns, ..
            } => result.is_none() && *returns != Type::Void,
            _ => false,
        }
    });
    found
}

fn keep(vars: &mut Vec<Var>, block: &mut [Stmt]) {
    visit_mut(block, &mut |stmt| {
        let (StmtKind::CallMethod {
            result, returns, ..
        }
        | StmtKind::CallExtern {
            result, returns, ..
        }) = &mut stmt.kind
        else {
            return;
        };
        if result.is_some() || *returns == Type::Void {
            return;
        }
        let var = VarId(vars.len() as u32);
        vars.push(Var {
            name: format!("discarded_{}", var.0),
            ty: returns.clone(),
        });
        *result = Some(LValue {
            var,
            path: Vec::new(),
            ty: returns.clone(),
        });
    });
}
