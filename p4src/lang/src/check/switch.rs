//! Lowers `switch` on the action that a table ran, and on values. Fall-through becomes several labels of one block.

use super::Checker;
use super::fold;
use super::types::Ty;
use super::unit::Body;
use super::value::Val;
use crate::ast::{self, ExprKind, SwitchLabel};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{self, Const};
use crate::source::Span;
use hashbrown::HashMap;

impl<'a> Checker<'a, '_> {
    pub(crate) fn switch(&mut self, expr: &'a ast::Expr, cases: &'a [ast::SwitchCase], span: Span) {
        if self.unit.body == Body::State {
            let message = "a parser cannot contain a `switch`";
            let hint = "use `transition select(…)` or `if`";
            self.push(Diagnostic::error(Code::Placement, expr.span, message).hint(hint));
            return;
        }
        if let Some(table) = self.action_run(expr) {
            self.switch_action(table, expr.span, cases, span);
        } else {
            self.switch_value(expr, cases, span);
        }
    }

    /// The table in a `switch` on `t.apply().action_run`; `None` if the expression has another form.
    fn action_run(&mut self, expr: &'a ast::Expr) -> Option<ir::TableId> {
        let ExprKind::Member { base, member } = &expr.kind else {
            return None;
        };
        let ExprKind::Call { callee, .. } = &base.kind else {
            return None;
        };
        let ExprKind::Member {
            base: table,
            member: method,
        } = &callee.kind
        else {
            return None;
        };
        if member.name != "action_run" || method.name != "apply" {
            return None;
        }
        match self.expr(table, None) {
            Val::Table(id) => Some(id),
            _ => None,
        }
    }

    fn switch_action(
        &mut self,
        table: ir::TableId,
        at: Span,
        cases: &'a [ast::SwitchCase],
        span: Span,
    ) {
        let allowed = self.may_apply(at);
        let run = self.temp(&Ty::Bit(32));
        if allowed {
            self.emit_apply(table, None, Some(run.lv.var), at);
        }
        let label = |c: &mut Self, e: &'a ast::Expr| -> Option<Const> {
            if !matches!(e.kind, ExprKind::Name { .. } | ExprKind::Member { .. }) {
                c.err(
                    Code::Type,
                    e.span,
                    "a label for `action_run` must be an action or `default`",
                );
                return None;
            }
            let (action, _) = c.named_action(e)?;
            let offered = c.unit.tables.get(table.index()).map(|t| &t.actions);
            match offered.and_then(|list| list.iter().position(|a| a.action == action)) {
                Some(n) => Some(number(n)),
                None => {
                    let name = c.unit.tables[table.index()].name.clone();
                    c.err(
                        Code::Type,
                        e.span,
                        format!("this is not an action of table `{name}`"),
                    );
                    None
                }
            }
        };
        let value = run.read().1;
        self.cases(value, cases, span, label);
    }

    fn switch_value(&mut self, expr: &'a ast::Expr, cases: &'a [ast::SwitchCase], span: Span) {
        let val = self.expr(expr, None);
        let value = match val {
            Val::Integer(n) => {
                self.push(
                    Diagnostic::error(Code::Type, expr.span, "this number needs a width")
                        .hint(format!("write `8w{n}`, `16w{n}` …")),
                );
                None
            }
            other => self.rvalue(other, expr.span),
        };
        let ty = match &value {
            Some((ty, _)) => ty.clone(),
            None => Ty::Poison,
        };
        let bare = self.types.strip_new(&ty).clone();
        let ok = matches!(
            bare,
            Ty::Bit(_)
                | Ty::Int(_)
                | Ty::Enum(_)
                | Ty::SerEnum(_)
                | Ty::Error
                | Ty::Poison
                | Ty::Var(_)
        );
        if !ok {
            let shown = self.types.show(&ty);
            let message = format!("`switch` does not take values of type {shown}");
            let mut d = Diagnostic::error(Code::Type, expr.span, message);
            if bare == Ty::Bool {
                d = d.hint("use `if` for a bool");
            }
            self.push(d);
        }
        let label = |c: &mut Self, e: &'a ast::Expr| -> Option<Const> {
            if ty.is_poison() {
                return None;
            }
            c.constant(e, &ty)
        };
        let placeholder = fold::boolean(false);
        let value = value.map_or(placeholder, |(_, e)| e);
        self.cases(value, cases, span, label);
    }

    fn cases(
        &mut self,
        value: ir::Expr,
        cases: &'a [ast::SwitchCase],
        span: Span,
        mut label: impl FnMut(&mut Self, &'a ast::Expr) -> Option<Const>,
    ) {
        let mut out: Vec<(Vec<Const>, ir::Block)> = Vec::new();
        let mut default = Vec::new();
        let mut default_at: Option<Span> = None;
        let mut seen: HashMap<String, Span> = HashMap::new();
        let mut group: Vec<Const> = Vec::new();
        let mut group_default = false;
        for (i, case) in cases.iter().enumerate() {
            match &case.label {
                SwitchLabel::Default => {
                    if let Some(first) = default_at.replace(case.span) {
                        self.push(
                            Diagnostic::error(Code::Duplicate, case.span, "`default` occurs twice")
                                .label(first, "first here"),
                        );
                    }
                    let next = cases.get(i + 1);
                    if next.is_some_and(|c| matches!(c.label, SwitchLabel::Expr(_))) {
                        self.push(
                            Diagnostic::error(
                                Code::Placement,
                                cases[i + 1].span,
                                "`default` must be the last label",
                            )
                            .label(case.span, "`default`"),
                        );
                    }
                    group_default = true;
                }
                SwitchLabel::Expr(e) => {
                    if let Some(c) = label(self, e) {
                        if let Some(first) = seen.insert(format!("{c:?}"), e.span) {
                            self.push(
                                Diagnostic::error(Code::Duplicate, e.span, "duplicate label")
                                    .label(first, "first here"),
                            );
                        }
                        group.push(c);
                    }
                }
            }
            let Some(block) = &case.block else { continue };
            let block = self.block_of(|c| c.block(block));
            let labels = std::mem::take(&mut group);
            if std::mem::take(&mut group_default) {
                if !labels.is_empty() {
                    out.push((labels, block.clone()));
                }
                default = block;
            } else {
                out.push((labels, block));
            }
        }
        if !group.is_empty() {
            out.push((group, Vec::new()));
        }
        self.emit(
            ir::StmtKind::Switch {
                value,
                cases: out,
                default,
            },
            span,
        );
    }
}

fn number(n: usize) -> Const {
    Const::Bits {
        value: n.into(),
        ty: ir::Type::Bit(32),
    }
}
