//! Interprets statements (P4_16 section 12).

use super::bits::Bits;
use super::value::Value;
use super::var_path::{PathStep, invalidate, set_invalid};
use super::{Interpreter, Result, Stop};
use crate::call::{FunctionCall, MethodCall};
use p4lang::ir::{Arm, Block, Const, Expr, LValue, Stmt, StmtKind};

impl<'p> Interpreter<'_, 'p> {
    /// Runs the statements of a block in order.
    pub(crate) fn block(&mut self, block: &'p Block) -> Result<()> {
        for stmt in block {
            let outer = std::mem::replace(&mut self.span, stmt.span);
            self.stmt(stmt)?;
            self.span = outer;
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &'p Stmt) -> Result<()> {
        match &stmt.kind {
            StmtKind::Assign(to, value) => {
                let place = self.resolve(to)?;
                let value = self.expr(value)?;
                self.assign(&place, value);
            }
            StmtKind::Reset(to) => {
                let place = self.resolve(to)?;
                let value = self.undefined(&to.ty);
                self.write(&place, value);
            }
            StmtKind::If(arms, otherwise) => return self.branch(arms, otherwise),
            StmtKind::Switch {
                value,
                cases,
                default,
            } => return self.switch(value, cases, default),
            StmtKind::Loop {
                cond_stmts,
                cond,
                body,
                update,
            } => return self.repeat(cond_stmts, cond, body, update),
            StmtKind::Atomic(body, _) => return self.block(body),
            StmtKind::Break => return Err(Stop::Break),
            StmtKind::Continue => return Err(Stop::Continue),
            StmtKind::Return => return Err(Stop::Return),
            StmtKind::Exit => return Err(Stop::Exit),
            StmtKind::ApplyTable {
                table,
                hit,
                action_run,
            } => return self.apply_table(*table, *hit, *action_run),
            StmtKind::CallAction(id, args) => return self.call_action(*id, args, None),
            StmtKind::ApplyControl(id, args) => return self.call_control(*id, args),
            StmtKind::ApplyParser(id, args) => return self.call_parser(*id, args),
            StmtKind::CallFunction(id, args) => return self.call_function(*id, args),
            StmtKind::CallMethod {
                object,
                method,
                args,
                result,
                ..
            } => {
                return self.call_method(MethodCall {
                    object: *object,
                    method,
                    args,
                    result: result.as_ref(),
                });
            }
            StmtKind::CallExtern {
                function,
                args,
                result,
                ..
            } => {
                let call = FunctionCall {
                    function,
                    args,
                    result: result.as_ref(),
                };
                return self.dialect.call_function(self, call);
            }
            StmtKind::Extract {
                header,
                varbit_bits,
                ..
            } => return self.extract(header, varbit_bits.as_ref()),
            StmtKind::Advance { bits, .. } => return self.advance(bits),
            StmtKind::Lookahead { dst, .. } => return self.lookahead(dst),
            StmtKind::PacketLength { dst, .. } => self.packet_length(dst)?,
            StmtKind::Emit { value, .. } => {
                let place = self.resolve(value)?;
                let value = self.read(&place);
                self.emit(&value, &place);
            }
            StmtKind::Verify(condition, error) => {
                if !self.truth(condition, "the condition of verify")? {
                    let error = self.expr(error)?.bits();
                    return self.fail(error.u64());
                }
            }
            StmtKind::SetValid(header) => self.set_valid(header)?,
            StmtKind::SetInvalid(header) => {
                let place = self.resolve(header)?;
                self.change(place.var, &place.steps, set_invalid);
            }
            StmtKind::Push(stack, n) => {
                let place = self.resolve(stack)?;
                self.shift(place.var, &place.steps, *n, true);
            }
            StmtKind::Pop(stack, n) => {
                let place = self.resolve(stack)?;
                self.shift(place.var, &place.steps, *n, false);
            }
        }
        Ok(())
    }

    fn packet_length(&mut self, dst: &'p LValue) -> Result<()> {
        let place = self.resolve(dst)?;
        let length = Bits::new(32, self.packet.len());
        self.write(&place, Value::Bits(length));
        Ok(())
    }

    fn set_valid(&mut self, header: &'p LValue) -> Result<()> {
        let place = self.resolve(header)?;
        self.change(place.var, &place.steps, |to, _| {
            if let Value::Header { valid, .. } = to {
                *valid = true;
            }
        });
        Ok(())
    }

    fn branch(&mut self, arms: &'p [Arm], otherwise: &'p Block) -> Result<()> {
        for arm in arms {
            self.block(&arm.before)?;
            self.span = arm.span;
            let taken = self.truth(&arm.cond, "a condition")?;
            self.watch.branch(taken, self.program, self.span);
            if taken {
                return self.block(&arm.then);
            }
        }
        self.block(otherwise)
    }

    /// Interprets a `switch` statement (12.7); p4lang has expanded the fall-through.
    fn switch(
        &mut self,
        value: &'p Expr,
        cases: &'p [(Vec<Const>, Block)],
        default: &'p Block,
    ) -> Result<()> {
        let found = self.expr(value)?.bits();
        self.influences(&found, || "the value of a switch".into());
        let chosen = cases.iter().find(|(labels, _)| {
            let mut labels = labels.iter();
            labels.any(|l| Value::constant(self.program, &value.ty, l).bits().value == found.value)
        });
        self.block(chosen.map_or(default, |(_, block)| block))
    }

    /// Interprets a loop (12.8).
    fn repeat(
        &mut self,
        before: &'p Block,
        condition: &'p Expr,
        body: &'p Block,
        update: &'p Block,
    ) -> Result<()> {
        let at = self.span;
        loop {
            self.step(at, Stop::Exit)?;
            self.block(before)?;
            if !self.truth(condition, "the condition of a loop")? {
                return Ok(());
            }
            match self.block(body) {
                Ok(()) | Err(Stop::Continue) => {}
                Err(Stop::Break) => return Ok(()),
                Err(other) => return Err(other),
            }
            self.block(update)?;
        }
    }

    /// Interprets `push_front` and `pop_front` (8.18): moves the elements and `nextIndex`; new elements are invalid.
    fn shift(&mut self, var: p4lang::ir::VarId, steps: &[PathStep], n: u32, push: bool) {
        self.change(var, steps, |stack, fill| {
            let Value::Stack { next, elements } = stack else {
                return;
            };
            let count = elements.len();
            let n = (n as usize).min(count);
            if push {
                elements.rotate_right(n);
                elements[..n].iter_mut().for_each(|e| invalidate(e, fill));
                *next = (*next + n as u32).min(count as u32);
            } else {
                elements.rotate_left(n);
                let new = &mut elements[count - n..];
                new.iter_mut().for_each(|e| invalidate(e, fill));
                *next = next.saturating_sub(n as u32);
            }
        });
    }
}
