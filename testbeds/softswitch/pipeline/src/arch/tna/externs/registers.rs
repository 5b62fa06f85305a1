//! Compiles stateful ALUs: reads a register cell, runs the body of a register action on it, and writes the cell back.

use crate::call::MethodCall;
use crate::compile::methods::written;
use crate::compile::surroundings::MethodPlan;
use crate::compile::{Compiler, Result, Unit};
use crate::op::bindings::Object;
use crate::op::{Op, Slot, T3};
use p4lang::ir::{
    ActionId, Arg, Arm, Block, Const, Expr, ExternId, ExternInstance, LValue, Method, MethodBody,
    Stmt, StmtKind, Type, VarId,
};

impl<'p> Compiler<'p> {
    /// Compiles `execute` of a register action and related methods.
    pub(crate) fn register_action(&mut self, call: MethodCall<'_>) -> Result<()> {
        let MethodCall {
            object,
            method,
            args,
            result,
        } = call;
        match method {
            Method::Predicate => self.predicate(args, result),
            Method::Min8 | Method::Max8 => self.extreme(method == &Method::Min8, 8, args, result),
            Method::Min16 | Method::Max16 => {
                self.extreme(method == &Method::Min16, 16, args, result)
            }
            Method::Execute => {
                // The index may be missing: a direct register has none, and a register of Tofino 2 may be a single cell.
                let (index, outs) = match args {
                    [Arg::In(index), outs @ ..] => (self.index(index)?, outs),
                    [Arg::Ignore, outs @ ..] if self.is_indexed(object) => {
                        (self.constant(0)?, outs)
                    }
                    _ if self.selector_of(object).is_some() => {
                        return self.unsupported("a SelectorAction without an index");
                    }
                    outs => (self.constant(0)?, outs),
                };
                self.execute(object, index, (outs, result))
            }
            _ => self.unsupported(format!("method {method} of a register action")),
        }
    }

    /// The register or selector that a register action executes.
    pub(crate) fn target(&self, object: ExternId) -> Option<ExternId> {
        executes(&self.program.externs[object.index()])
    }

    pub(crate) fn register_of(&self, object: ExternId) -> Option<u32> {
        match self.bindings.objects.get(self.target(object)?.index())? {
            Object::Register(r) => Some(*r),
            _ => None,
        }
    }

    /// The index of the profile whose selector a `SelectorAction` modifies; `None` for other actions.
    pub(super) fn selector_of(&self, object: ExternId) -> Option<u32> {
        self.bindings.profiles.get(&self.target(object)?).copied()
    }

    fn is_indexed(&self, object: ExternId) -> bool {
        self.register_of(object).is_some()
    }

    /// Compiles the body of `apply` on a cell; a packet may execute it once per register.
    fn execute(
        &mut self,
        object: ExternId,
        index: Slot,
        (outs, result): (&[Arg], Option<&LValue>),
    ) -> Result<()> {
        let Some(target) = self.target(object) else {
            return self.unsupported("a register action without a register");
        };
        self.once(target)?;
        let cell = self.cell_of(object, target, index)?;
        let (control, id) = self.body_of(object)?;
        let action = &control.actions[id.index()];
        let value_ty = match action.params.first() {
            Some(param) => &control.vars[param.var.index()].ty,
            None => return self.unsupported("`apply` without a value parameter"),
        };
        let cell = self.whole_row(cell, target, value_ty)?;
        let words = self.words_of(cell);
        if self.size(value_ty)? != words {
            return self.unsupported("a register action of another type than its register");
        }
        let value = self.alloc(words)?;
        self.read_cell(cell, value)?;
        let mut slots = vec![value];
        for param in &action.params[1..] {
            let n = self.size(&control.vars[param.var.index()].ty)?;
            let slot = self.alloc(n)?;
            self.op(Op::Zero { d: slot, n })?;
            slots.push(slot);
        }
        let method = MethodPlan {
            action: id,
            original: self.original(action, value, words)?,
        };
        let outer = self.tofino.method.replace(method);
        self.method_body(id, &slots)?;
        self.tofino.method = outer;
        if action
            .params
            .first()
            .is_some_and(|p| changes(&action.body, p.var))
        {
            self.write_cell(cell, value)?;
        }
        let mut results = slots[1..].iter();
        if let (Some(lvalue), Some(s)) = (result, results.next()) {
            let place = self.locate(lvalue)?;
            self.store(&place, *s)?;
        }
        for (out, s) in outs.iter().zip(results) {
            if let Some(lvalue) = written(out) {
                let place = self.locate(lvalue)?;
                self.store(&place, *s)?;
            }
        }
        Ok(())
    }

    /// Compiles a count of the register's executions, if a packet may execute the register twice.
    pub(crate) fn once(&mut self, register: ExternId) -> Result<()> {
        match self.bindings.executed_twice.get(&register).copied() {
            Some(unit) => self.op(Op::RegisterOnce { unit }),
            None => Ok(()),
        }
    }

    pub(crate) fn body_of(&self, object: ExternId) -> Result<(&'p p4lang::ir::Control, ActionId)> {
        let program = self.program;
        let instance = &program.externs[object.index()];
        let applied = |m: &&MethodBody| m.method == Method::Apply;
        let found = match self.scope.unit {
            Unit::Control(id, control) => {
                let here = |m: &&MethodBody| m.control == id;
                let mut methods = instance.methods.iter().filter(here);
                methods.find(applied).map(|m| (control, m.action))
            }
            _ => None,
        };
        match found {
            Some(found) => Ok(found),
            None if !instance.methods.iter().any(|m| applied(&m)) => {
                self.unsupported(format!("{} without `apply`", instance.name))
            }
            None => self.unsupported("a register action of another control"),
        }
    }

    /// Compiles the body of a method that the program implements; `slots`: slots of its parameters.
    pub(crate) fn method_body(&mut self, id: ActionId, slots: &[Slot]) -> Result<()> {
        let Unit::Control(_, control) = self.scope.unit else {
            return self.unsupported("a method outside a control");
        };
        let action = &control.actions[id.index()];
        for (param, slot) in action.params.iter().zip(slots) {
            self.scope.slots[param.var.index()] = *slot;
        }
        let end = self.label();
        let ret = std::mem::replace(&mut self.scope.ret, end);
        let loops = std::mem::take(&mut self.scope.loops);
        let done = self.block(&action.body);
        self.scope.ret = ret;
        self.scope.loops = loops;
        done?;
        self.place(end);
        Ok(())
    }

    /// Compiles `Register.clear`, which writes `value` to all cells at once.
    fn clear(&mut self, register: ExternId, r: u32, value: &Expr) -> Result<()> {
        self.once(register)?;
        let s = self.expr(value)?;
        let size = self.registers[r as usize].size;
        // An internal loop, which does not count as steps.
        self.moves(size.saturating_mul(self.code.registers[r as usize].words.into()));
        let (index, size, one) = (self.alloc(1)?, self.constant(size)?, self.constant(1)?);
        let (head, end) = (self.label(), self.label());
        self.op(Op::Zero { d: index, n: 1 })?;
        self.place(head);
        self.op(Op::JumpEq {
            a: index,
            b: size,
            to: end,
        })?;
        self.op(Op::RegisterWrite { r, index, s })?;
        self.op(Op::Add(T3 {
            w: 64,
            d: index,
            a: index,
            b: one,
        }))?;
        self.op(Op::Jump(head))?;
        self.place(end);
        Ok(())
    }

    /// Compiles `Register.read` and `Register.write` outside of an action; a write returns the written value.
    pub(crate) fn register_method(&mut self, r: u32, call: MethodCall<'_>) -> Result<()> {
        let (object, result) = (call.object, call.result);
        match (call.method, call.args) {
            (Method::Read, [Arg::In(index)]) => {
                self.once(object)?;
                let index = self.index(index)?;
                self.write_result(result, |c, d| c.op(Op::RegisterRead { r, d, index }))
            }
            (Method::Write, [Arg::In(index), Arg::In(value)]) => {
                self.once(object)?;
                let (index, s) = (self.index(index)?, self.expr(value)?);
                self.op(Op::RegisterWrite { r, index, s })?;
                self.returned(result, value, s)
            }
            (Method::Clear, [Arg::In(value), ..]) => self.clear(object, r, value),
            (method, _) => self.unsupported(format!("method {method} of a register")),
        }
    }

    pub(crate) fn direct_register_method(&mut self, call: MethodCall<'_>) -> Result<()> {
        let MethodCall {
            object,
            method,
            args,
            result,
        } = call;
        let found = self.bindings.direct_registers.get(&object).copied();
        let Some((table, offset, words)) = found else {
            return self.unsupported("a direct register that no table uses");
        };
        self.once(object)?;
        match (method, args) {
            (Method::Read, []) => self.write_result(result, |c, d| {
                c.op(Op::DirectRead {
                    table,
                    offset,
                    words,
                    d,
                })
            }),
            // `clear` takes a further argument for Tofino 2's busy bit.
            (Method::Write, [Arg::In(value)]) | (Method::Clear, [Arg::In(value), ..]) => {
                let s = self.expr(value)?;
                self.op(Op::DirectWrite {
                    every: method == &Method::Clear,
                    table,
                    offset,
                    words,
                    s,
                })?;
                self.returned(result, value, s)
            }
            _ => self.unsupported(format!("method {method} of a direct register")),
        }
    }

    fn returned(&mut self, result: Option<&LValue>, value: &Expr, s: Slot) -> Result<()> {
        match result {
            Some(lvalue) if !matches!(lvalue.ty, Type::Void) => {
                let place = self.locate(lvalue)?;
                debug_assert_eq!(place.ty, value.ty);
                self.store(&place, s)
            }
            _ => Ok(()),
        }
    }
}

pub fn executes(action: &ExternInstance) -> Option<ExternId> {
    match action.args.first() {
        Some((_, Const::Extern(id))) => Some(*id),
        _ => None,
    }
}

/// Whether a body may write the variable; statements of unknown effect count as writing it.
fn changes(block: &Block, var: VarId) -> bool {
    let place = |lvalue: &LValue| lvalue.var == var;
    let arg = |arg: &Arg| matches!(arg, Arg::Out(to) | Arg::InOut(to) if place(to));
    block.iter().any(|stmt: &Stmt| match &stmt.kind {
        StmtKind::Assign(to, _) | StmtKind::Reset(to) => place(to),
        StmtKind::If(arms, otherwise) => {
            let one = |arm: &Arm| changes(&arm.before, var) || changes(&arm.then, var);
            arms.iter().any(one) || changes(otherwise, var)
        }
        StmtKind::Switch { cases, default, .. } => {
            cases.iter().any(|(_, b)| changes(b, var)) || changes(default, var)
        }
        StmtKind::Atomic(body, _) => changes(body, var),
        StmtKind::Return | StmtKind::Exit => false,
        StmtKind::CallMethod { args, result, .. } | StmtKind::CallExtern { args, result, .. } => {
            args.iter().any(arg)
                || result.as_ref().is_some_and(place)
                || super::rows::is_modified(args, var)
        }
        _ => true,
    })
}
