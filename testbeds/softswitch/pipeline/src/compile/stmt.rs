//! Compiles statements.

use super::layout::width;
use super::location::Location;
use super::{Compiler, Result};
use crate::call::{FunctionCall, MethodCall};
use crate::op::{Op, Slot};
use crate::rules::InvalidFields;
use p4lang::ir::{Arm, Block, Const, Expr, ExprKind, LValue, Stmt, StmtKind, Type};

/// Number of arms of an `else if` chain after which the conditions of further arms reuse the slots of earlier ones.
const TURN: usize = 64;

impl<'p> Compiler<'p> {
    pub(crate) fn block(&mut self, block: &'p Block) -> Result<()> {
        for stmt in block {
            let (top, span) = (self.frame.top, self.span);
            self.span = stmt.span;
            self.stmt(stmt)?;
            self.frame.top = top;
            self.span = span;
            self.frame.dead.push((self.code.ops.len() as u32, top));
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &'p Stmt) -> Result<()> {
        match &stmt.kind {
            StmtKind::Assign(to, value) => self.assign(to, value),
            StmtKind::Reset(to) => self.reset(to),
            StmtKind::If(arms, otherwise) => self.branch(arms, otherwise),
            StmtKind::Switch {
                value,
                cases,
                default,
            } => self.switch(value, cases, default),
            StmtKind::Loop {
                cond_stmts,
                cond,
                body,
                update,
            } => self.repeat(cond_stmts, cond, body, update),
            StmtKind::Atomic(body, _) => self.block(body),
            StmtKind::Break => match self.scope.loops.last() {
                Some((end, _)) => self.op(Op::Jump(*end)),
                None => self.unsupported("break outside a loop"),
            },
            StmtKind::Continue => match self.scope.loops.last() {
                Some((_, next)) => self.op(Op::Jump(*next)),
                None => self.unsupported("continue outside a loop"),
            },
            StmtKind::Return => self.op(Op::Jump(self.scope.ret)),
            StmtKind::Exit => {
                let exit = self.exit();
                self.op(Op::Jump(exit))
            }
            StmtKind::ApplyTable {
                table,
                hit,
                action_run,
            } => self.apply_table(*table, *hit, *action_run),
            StmtKind::CallAction(id, args) => self.call_action(*id, args),
            StmtKind::ApplyControl(id, args) => self.call_control(*id, args),
            StmtKind::ApplyParser(id, args) => self.call_parser(*id, args),
            StmtKind::CallFunction(id, args) => self.call_function(*id, args),
            StmtKind::CallMethod {
                object,
                method,
                args,
                result,
                ..
            } => {
                let call = MethodCall {
                    object: *object,
                    method,
                    args,
                    result: result.as_ref(),
                };
                self.dialect.call_method(self, call)
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
                self.dialect.call_function(self, call)
            }
            StmtKind::Extract {
                header,
                varbit_bits,
                ..
            } => self.extract(header, varbit_bits.as_ref()),
            StmtKind::Advance { bits, .. } => self.advance(bits),
            StmtKind::Lookahead { dst, .. } => self.lookahead(dst),
            StmtKind::PacketLength { dst, .. } => self.packet_length(dst),
            StmtKind::Emit { value, .. } => {
                let place = self.locate(value)?;
                let s = self.load(&place)?;
                self.emit(&place.ty, s)
            }
            StmtKind::Verify(c, error) => self.verify(c, error),
            StmtKind::SetValid(header) => self.set_valid(header),
            StmtKind::SetInvalid(header) => {
                let place = self.locate(header)?;
                // The fields after the validity bit stay where they are kept.
                let n = match self.rules.invalid {
                    InvalidFields::Kept => 1,
                    _ => self.size(&header.ty)?,
                };
                self.in_place(&place, |c, d| c.op(Op::Zero { d, n }))
            }
            StmtKind::Push(stack, n) => self.shift_stack(stack, |e| Op::Push { e, n: *n }),
            StmtKind::Pop(stack, n) => self.shift_stack(stack, |e| Op::Pop { e, n: *n }),
        }
    }

    fn reset(&mut self, to: &LValue) -> Result<()> {
        let place = self.locate(to)?;
        let n = self.size(&place.ty)?;
        if place.is_plain() {
            return self.op(Op::Zero { d: place.slot, n });
        }
        let zeroes = self.alloc(n)?;
        self.op(Op::Zero { d: zeroes, n })?;
        self.store(&place, zeroes)
    }

    fn branch(&mut self, arms: &'p [Arm], otherwise: &'p Block) -> Result<()> {
        let (top, end) = (self.frame.top, self.label());
        for (n, arm) in arms.iter().enumerate() {
            self.block(&arm.before)?;
            self.span = arm.span;
            let next = self.label();
            self.unless(&arm.cond, next)?;
            self.block(&arm.then)?;
            if n + 1 < arms.len() || !otherwise.is_empty() {
                self.op(Op::Jump(end))?;
            }
            self.place(next);
            // Conditions of neighboring arms keep their own slots; a long chain reuses them.
            if n % TURN == TURN - 1 {
                self.frame.top = top;
            }
        }
        self.block(otherwise)?;
        self.place(end);
        Ok(())
    }

    fn repeat(
        &mut self,
        before: &'p Block,
        condition: &'p Expr,
        body: &'p Block,
        update: &'p Block,
    ) -> Result<()> {
        let (head, next, end) = (self.label(), self.label(), self.label());
        self.place(head);
        let exit = self.exit();
        self.round(exit, |c| {
            c.block(before)?;
            c.unless(condition, end)?;
            c.scope.loops.push((end, next));
            c.block(body)?;
            c.scope.loops.pop();
            c.place(next);
            c.block(update)
        })?;
        self.op(Op::Jump(head))?;
        self.place(end);
        Ok(())
    }

    fn advance(&mut self, bits: &Expr) -> Result<()> {
        let (wide, to) = (width(&bits.ty), self.scope.reject);
        let bits = self.expr(bits)?;
        let bits = if wide > 64 {
            self.saturate(bits, wide)?
        } else {
            bits
        };
        self.op(Op::Advance { bits, to })
    }

    fn verify(&mut self, condition: &Expr, error: &Expr) -> Result<()> {
        let (good, to) = (self.label(), self.scope.reject);
        self.when(condition, good)?;
        let error = self.expr(error)?;
        self.op(Op::Fail { error, to })?;
        self.place(good);
        Ok(())
    }

    fn packet_length(&mut self, dst: &LValue) -> Result<()> {
        let place = self.locate(dst)?;
        let d = self.alloc(1)?;
        self.op(Op::PacketLength { d })?;
        self.store(&place, d)
    }

    fn lookahead(&mut self, dst: &LValue) -> Result<()> {
        let place = self.locate(dst)?;
        let ty = dst.ty.clone();
        let (layout, n, to) = (self.layout(&ty)?, self.size(&ty)?, self.scope.reject);
        let d = self.alloc(n)?;
        // Initializes the state beside the bits: headers are valid (P4_16 13.8.3), a stack's `nextIndex` is 0.
        let mut headers = Vec::new();
        if !self.is_header(&ty) && self.holds_states(&ty) {
            self.op(Op::Zero { d, n })?;
            self.headers_in(&ty, d, &mut headers)?;
        }
        self.op(Op::Lookahead { layout, d, to })?;
        for (d, _) in headers {
            let s = self.constant(1)?;
            self.op(Op::Mov { d, s })?;
        }
        self.store(&place, d)
    }

    fn assign(&mut self, to: &LValue, value: &Expr) -> Result<()> {
        let place = self.locate(to)?;
        let mut headers = Vec::new();
        if self.rules.invalid == InvalidFields::Kept {
            self.headers_in(&to.ty, 0, &mut headers)?;
        }
        if !headers.is_empty() {
            return self.assign_valid(&place, value, &headers);
        }
        if place.is_plain() {
            return self.expr_into(value, place.slot);
        }
        let s = self.expr(value)?;
        self.store(&place, s)
    }

    /// Compiles the copy of a value with headers: each header's validity, and its fields only if the header is valid.
    /// `headers`: first slot and number of slots of each.
    fn assign_valid(&mut self, to: &Location, value: &Expr, headers: &[(u32, u32)]) -> Result<()> {
        let s = self.expr(value)?;
        let size = self.size(&to.ty)?;
        self.in_place(to, |c, d| {
            let mut copied = 0;
            for &(header, n) in headers {
                c.copy(d + copied, s + copied, header - copied)?;
                if n > 1 {
                    c.op(Op::CopyIf {
                        g: s + header,
                        d: d + header + 1,
                        s: s + header + 1,
                        n: n - 1,
                    })?;
                }
                c.copy(d + header, s + header, 1)?;
                copied = header + n;
            }
            c.copy(d + copied, s + copied, size - copied)
        })
    }

    fn switch(
        &mut self,
        value: &'p Expr,
        cases: &'p [(Vec<Const>, Block)],
        default: &'p Block,
    ) -> Result<()> {
        // The value may be in a variable that the blocks change, so all labels are compared before any block runs.
        let a = self.expr(value)?;
        let end = self.label();
        let mut blocks = Vec::new();
        for (labels, block) in cases {
            let start = self.label();
            for label in labels {
                let e = Expr {
                    kind: ExprKind::Const(label.clone()),
                    ty: value.ty.clone(),
                };
                let b = self.expr(&e)?;
                if width(&value.ty) > 64 {
                    let (n, same) = (self.size(&value.ty)?, self.alloc(1)?);
                    self.op(Op::EqRange { d: same, a, b, n })?;
                    self.op(Op::JumpIf { c: same, to: start })?;
                } else {
                    self.op(Op::JumpEq { a, b, to: start })?;
                }
            }
            blocks.push((start, block));
        }
        self.block(default)?;
        self.op(Op::Jump(end))?;
        for (start, block) in blocks {
            self.place(start);
            self.block(block)?;
            self.op(Op::Jump(end))?;
        }
        self.place(end);
        Ok(())
    }

    fn set_valid(&mut self, header: &LValue) -> Result<()> {
        let place = self.locate(header)?;
        let one = self.constant(1)?;
        self.in_place(&place, |c, d| c.op(Op::Mov { d, s: one }))
    }

    fn shift_stack(&mut self, stack: &LValue, op: impl FnOnce(u32) -> Op) -> Result<()> {
        let place = self.locate(stack)?;
        let Type::Stack(id, count) = place.ty else {
            return self.unsupported("push or pop on this type");
        };
        if !place.elements.is_empty() {
            return self.unsupported("push or pop of a stack inside a stack element");
        }
        let stride = self.size(&Type::Struct(id))?;
        let e = self.element(crate::op::Element {
            stack: place.slot,
            count,
            stride,
            index: place.slot,
        });
        self.op(op(e))
    }

    fn extract(&mut self, header: &LValue, varbit_bits: Option<&Expr>) -> Result<()> {
        let place = self.locate(header)?;
        let (layout, to) = (self.layout(&header.ty)?, self.scope.reject);
        if !self.code.layouts[layout as usize].bits.is_multiple_of(8) {
            return self.unsupported("a header whose size is not a multiple of 8 bits");
        }
        let bits = match varbit_bits {
            None => None,
            Some(e) => {
                let bits = self.expr(e)?;
                Some(if width(&e.ty) > 64 {
                    self.saturate(bits, width(&e.ty))?
                } else {
                    bits
                })
            }
        };
        let next = self.next_of(&place);
        self.in_place(&place, |c, d| match bits {
            None => c.op(Op::Extract { layout, d, to }),
            Some(bits) => c.op(Op::ExtractVarbit {
                layout,
                d,
                bits,
                to,
            }),
        })?;
        if let Some(next) = next {
            let one = self.constant(1)?;
            self.op(Op::Add(crate::op::T3 {
                w: 32,
                d: next,
                a: next,
                b: one,
            }))?;
        }
        Ok(())
    }

    /// Slot of the stack's `nextIndex` that an extract to this location advances; `None` if it advances none.
    fn next_of(&self, place: &super::location::Location) -> Option<Slot> {
        place.next.or_else(|| {
            // A member of `stack.next` in a stack of unions.
            let element = place.elements.last()?;
            (place.union.is_some() && element.index == element.stack).then_some(element.stack)
        })
    }

    fn emit(&mut self, ty: &Type, s: Slot) -> Result<()> {
        match ty {
            Type::Struct(_) if self.is_header(ty) => {
                let layout = self.layout(ty)?;
                if !self.code.layouts[layout as usize].bits.is_multiple_of(8) {
                    return self.unsupported("a header whose size is not a multiple of 8 bits");
                }
                self.op(Op::Emit { layout, s })
            }
            Type::Struct(_) | Type::Stack(..) | Type::Tuple(_) => {
                let parts = self.parts(ty)?;
                let mut parts = parts.iter();
                parts.try_for_each(|part| self.emit(&part.ty, s + part.at))
            }
            _ => self.unsupported("emit of this type"),
        }
    }
}
