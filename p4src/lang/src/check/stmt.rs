//! Checks and lowers statements.

use super::Checker;
use super::fold;
use super::types::Ty;
use super::unit::{Body, UnitKind};
use super::value::Val;
use crate::ast::{self, DeclKind, StmtKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;

impl<'a> Checker<'a, '_> {
    /// Checks a block of statements in a new scope and appends it to the current block.
    pub(crate) fn block(&mut self, block: &'a ast::Block) {
        self.push_scope();
        let mut names = block.annotations.iter().map(|a| a.name.name.as_str());
        if names.any(|name| matches!(name, "atomic" | "in_hash")) {
            let annotations = self.annotations(&block.annotations);
            let inner = self.block_of(|c| c.statements(&block.stmts));
            self.emit(ir::StmtKind::Atomic(inner, annotations), block.span);
        } else {
            self.statements(&block.stmts);
        }
        self.pop_scope();
    }

    fn statements(&mut self, stmts: &'a [ast::Stmt]) {
        let mut ended: Option<Span> = None;
        for stmt in stmts {
            if let Some(by) = ended.take() {
                self.push(
                    Diagnostic::warning(Code::Unused, stmt.span, "this statement is never reached")
                        .label(by, "every path leaves the block here"),
                );
            }
            self.statement(stmt);
            if matches!(
                stmt.kind,
                StmtKind::Return(_) | StmtKind::Exit | StmtKind::Break | StmtKind::Continue
            ) {
                ended = Some(stmt.span);
            }
        }
    }

    /// Checks one statement.
    pub(crate) fn statement(&mut self, stmt: &'a ast::Stmt) {
        if !self.enter(stmt.span) {
            return;
        }
        self.statement_inner(stmt);
        self.leave();
    }

    fn statement_inner(&mut self, stmt: &'a ast::Stmt) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Empty => {}
            StmtKind::Assign { lhs, op, rhs } => self.assign(lhs, *op, rhs, span),
            StmtKind::Call(e) => self.call_statement(e),
            StmtKind::Decl(decl) => self.local_decl(decl),
            StmtKind::Block(block) => self.block(block),
            StmtKind::If { arms, otherwise } => self.if_statement(arms, otherwise.as_deref(), span),
            StmtKind::Switch { expr, cases } => self.switch(expr, cases, span),
            StmtKind::For {
                init,
                cond,
                update,
                body,
                ..
            } => self.for_loop(init, cond, update, body, span),
            StmtKind::ForIn {
                var,
                collection,
                body,
                ..
            } => self.for_in(var, collection, body, span),
            StmtKind::Break | StmtKind::Continue => {
                if self.unit.loops == 0 {
                    self.err(
                        Code::Placement,
                        span,
                        "`break` and `continue` are allowed only in loops",
                    );
                }
                let kind = match stmt.kind {
                    StmtKind::Break => ir::StmtKind::Break,
                    _ => ir::StmtKind::Continue,
                };
                self.emit(kind, span);
            }
            StmtKind::Return(value) => self.return_statement(value.as_ref(), span),
            StmtKind::Exit => {
                if matches!(self.unit.kind, UnitKind::Parser) || self.unit.body == Body::Function {
                    self.err(
                        Code::Placement,
                        span,
                        "`exit` is allowed only in controls and actions",
                    );
                }
                self.emit(ir::StmtKind::Exit, span);
            }
        }
    }

    fn assign(
        &mut self,
        lhs: &'a ast::Expr,
        op: Option<ast::BinOp>,
        rhs: &'a ast::Expr,
        span: Span,
    ) {
        let Some(mut place) = self.lvalue(lhs) else {
            self.expr(rhs, None);
            return;
        };
        let expected = place.ty.clone();
        let mark = self.unit.block.len();
        let mut val = self.expr(rhs, Some(&expected));
        // The left side's place is determined before calls in the right side run.
        let mut made = 0;
        let calls = self.unit.block.len() > mark;
        if calls
            && place
                .lv
                .path
                .iter()
                .any(|a| matches!(a, ir::Access::Index(_)))
        {
            let later = self.writes_from(mark);
            made = self.freeze(&mut place, mark, &later, lhs.span);
        }
        if let Some(op) = op {
            // The old value is also read before those calls.
            let mut old = Val::Place(place.clone());
            if calls {
                old = self.keep(old, mark + made, lhs.span);
            }
            val = self.binary_values(op, old, val, (lhs.span, rhs.span, span));
        }
        if let Some(e) = self.coerce(val, &place.ty, rhs.span) {
            self.emit(ir::StmtKind::Assign(place.lv, e), span);
        }
    }

    /// Checks a statement that is the body of another statement, in a new scope and block.
    pub(crate) fn body_of(&mut self, stmt: &'a ast::Stmt) -> ir::Block {
        if let StmtKind::Decl(decl) = &stmt.kind {
            let message = "a declaration cannot be a branch or loop body: nothing could use it";
            let d = Diagnostic::error(Code::Placement, decl.span, message);
            self.push(d.hint("put it in a block: `{ … }`"));
        }
        self.push_scope();
        let block = self.block_of(|c| c.statement(stmt));
        self.pop_scope();
        block
    }

    fn if_statement(
        &mut self,
        arms: &'a [ast::IfArm],
        otherwise: Option<&'a ast::Stmt>,
        span: Span,
    ) {
        let mut made: Vec<ir::Arm> = Vec::with_capacity(arms.len());
        // For arms that are never taken, only the calls in their conditions remain.
        let mut before = ir::Block::new();
        // An arm that is always taken ends the chain; the arms after it are still checked.
        let mut last: Option<ir::Block> = None;
        for (n, arm) in arms.iter().enumerate() {
            let mut cond = None;
            if n == 0 {
                cond = self.condition(&arm.cond);
            } else {
                before.extend(self.block_of(|c| cond = c.condition(&arm.cond)));
            }
            let then = self.body_of(&arm.then);
            if last.is_some() {
                before.clear();
                continue;
            }
            match cond.as_ref().and_then(fold::as_const) {
                Some(ir::Const::Bool(true)) => {
                    before.extend(then);
                    last = Some(std::mem::take(&mut before));
                }
                Some(ir::Const::Bool(false)) => {}
                _ => made.extend(cond.map(|cond| ir::Arm {
                    before: std::mem::take(&mut before),
                    cond,
                    then,
                    span: arm.span,
                })),
            }
        }
        let otherwise = otherwise.map(|s| self.body_of(s)).unwrap_or_default();
        let otherwise = last.unwrap_or_else(|| {
            before.extend(otherwise);
            before
        });
        let Some(first) = made.first_mut() else {
            self.unit.block.extend(otherwise);
            return;
        };
        let calls = std::mem::take(&mut first.before);
        self.unit.block.extend(calls);
        self.emit(ir::StmtKind::If(made, otherwise), span);
    }

    fn return_statement(&mut self, value: Option<&'a ast::Expr>, span: Span) {
        let Some((ty, place)) = self.unit.ret.clone() else {
            self.err(
                Code::Placement,
                span,
                "`return` is allowed only in functions, actions and apply blocks",
            );
            return;
        };
        match (value, &ty) {
            (None, Ty::Void | Ty::Poison) => {}
            (None, _) => {
                let shown = self.types.show(&ty);
                self.err(
                    Code::Type,
                    span,
                    format!("`return` needs a value of type {shown}"),
                );
            }
            (Some(e), Ty::Void) => {
                self.err(Code::Type, e.span, "`return` takes no value here");
            }
            (Some(e), _) => {
                let val = self.expr(e, Some(&ty));
                if let Some(value) = self.coerce(val, &ty, e.span)
                    && let Some(var) = place
                {
                    let lv = ir::LValue {
                        var,
                        path: Vec::new(),
                        ty: self.types.ir(&ty),
                    };
                    self.emit(ir::StmtKind::Assign(lv, value), span);
                }
            }
        }
        self.emit(ir::StmtKind::Return, span);
    }

    /// Declares a constant, variable or instance inside a parser, control or function.
    pub(crate) fn local_decl(&mut self, decl: &'a ast::Decl) {
        match &decl.kind {
            DeclKind::Const { ty, name, init } => {
                let val = self.constant_decl(ty, init);
                self.declare(name, val);
            }
            DeclKind::Var { ty, name, init } => {
                let ty = self.resolve(ty);
                self.local_var(&ty, name, init.as_ref(), decl.span);
            }
            DeclKind::Instance {
                ty,
                args,
                name,
                init,
            } => self.local_instance(decl, ty, args, name, init.as_deref()),
            _ => {
                self.err(Code::Placement, decl.span, "this cannot be declared here");
                if let Some(name) = decl.name() {
                    self.declare(name, Val::Poison);
                }
            }
        }
    }

    fn local_var(
        &mut self,
        ty: &Ty,
        name: &'a ast::Ident,
        init: Option<&'a ast::Expr>,
        span: Span,
    ) {
        let storable = !matches!(ty, Ty::Void | Ty::Integer | Ty::Str | Ty::MatchKind)
            && !ty.is_object()
            && !matches!(ty, Ty::List(_));
        if !storable || ty.is_poison() {
            if !ty.is_poison() {
                let shown = self.types.show(ty);
                let message = format!("a variable cannot have the type {shown}");
                let mut d = Diagnostic::error(Code::Type, name.span, message);
                if *ty == Ty::Integer {
                    d = d.hint("`int` is for constants; write a type with a width: `bit<32>`");
                } else if ty.is_object() {
                    d = d.hint("declare an instance with parentheses: `X(…) x;`");
                }
                self.push(d);
            }
            if let Some(e) = init {
                self.expr(e, None);
            }
            self.declare(name, Val::Poison);
            return;
        }
        // The initializer does not see the variable.
        let value = match init {
            Some(e) => {
                let val = self.expr(e, Some(ty));
                Some((self.coerce(val, ty, e.span), e.span))
            }
            None => None,
        };
        let place = self.variable(&name.name, ty);
        match value {
            Some((Some(e), _)) => self.emit(ir::StmtKind::Assign(place.lv.clone(), e), span),
            Some((None, _)) => {}
            None => self.emit(ir::StmtKind::Reset(place.lv.clone()), span),
        }
        self.declare(name, Val::Place(place));
    }
}
