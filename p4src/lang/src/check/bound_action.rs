//! Lowers action references in a table's properties and entries: the action and its arguments.

use super::Checker;
use super::args::Given;
use super::infer::{Infer, Signature};
use super::types::Ty;
use super::unit::Body;
use super::value::Val;
use crate::ast::{self, ExprKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;

impl<'a> Checker<'a, '_> {
    /// Lowers a table's default action or an entry's action, with constants for the control plane's parameters.
    pub(crate) fn bound_action(
        &mut self,
        e: &'a ast::Expr,
        t: &ir::Table,
        decls: &[&'a ast::Decl],
        is_default: bool,
    ) -> Option<ir::BoundAction> {
        let (callee, written): (&'a ast::Expr, &'a [ast::Arg]) = match &e.kind {
            ExprKind::Call { callee, args, .. } => (callee, args),
            _ => (e, &[]),
        };
        if is_default && self.is_unlisted_no_action(callee, t) {
            return Some(ir::BoundAction {
                action: None,
                args: Vec::new(),
            });
        }
        let (action, decl) = self.named_action(callee)?;
        let Some(at) = t.actions.iter().position(|a| a.action == action) else {
            let name = decl.name().map_or("", |n| n.name.as_str());
            self.push(
                Diagnostic::error(
                    Code::Type,
                    e.span,
                    format!("action `{name}` is not listed in the table's `actions`"),
                )
                .hint(format!("add it: `actions = {{ {name}; … }}`")),
            );
            return None;
        };
        let only = if is_default {
            "tableonly"
        } else {
            "defaultonly"
        };
        if t.actions[at].annotations.iter().any(|a| a.name == only) {
            self.err(
                Code::Type,
                e.span,
                format!("this action is marked @{only} in the table"),
            );
        }
        let mut sig = self.action_signature(action, decls.get(at).copied().unwrap_or(decl));
        let directed = sig
            .params
            .iter()
            .take_while(|p| p.direction != ast::Direction::None)
            .count();
        let name = decl.name().map_or("action", |n| n.name.as_str());
        let mut rest = written;
        // The arguments bound in `actions` may be repeated without change.
        if directed > 0 && written.len() == sig.params.len() {
            let (again, after) = written.split_at(directed);
            rest = after;
            let first = Signature {
                params: &sig.params[..directed],
                types: sig.types[..directed].to_vec(),
                ret: Ty::Void,
                ret_span: None,
                generics: Vec::new(),
            };
            self.repeated_args(&first, again, name, (t, at), e.span);
        }
        sig.params = &sig.params[directed..];
        sig.types.drain(..directed);
        let given = self.bind_args(sig.params, rest, name, e.span)?;
        let mut args = Vec::with_capacity(given.len());
        for (g, ty) in given.iter().zip(&sig.types) {
            let e = match g {
                Given::Arg(e) | Given::Default(e) => e,
                Given::Omitted => continue,
            };
            args.push(self.constant(e, ty)?);
        }
        Some(ir::BoundAction {
            action: Some(at),
            args,
        })
    }

    /// Whether the callee is a `NoAction` that the table does not list; a table may still have it as the default action.
    fn is_unlisted_no_action(&mut self, callee: &'a ast::Expr, t: &ir::Table) -> bool {
        let ExprKind::Name { name, absolute } = &callee.kind else {
            return false;
        };
        if name.name != "NoAction" {
            return false;
        }
        let Some(Val::GlobalAction(i)) = self.find("NoAction", name.span, *absolute) else {
            return false;
        };
        let shared = self.unit.shared_actions.get(&i);
        !shared.is_some_and(|id| t.actions.iter().any(|a| a.action == *id))
    }

    /// Checks that the arguments in a default action or entry equal those in the table's `actions` list, at index `at`.
    fn repeated_args(
        &mut self,
        sig: &Signature<'a>,
        written: &'a [ast::Arg],
        name: &str,
        (t, at): (&ir::Table, usize),
        span: Span,
    ) {
        let (again, calls) = self.directed_args(sig, written, name, span);
        // Arguments with calls are compared by their text, because each call's result is a different temporary.
        let same = if calls.is_empty() {
            same_args(&again, &t.actions[at].args)
        } else {
            self.unit.bound_texts.get(at) == Some(&self.texts(written))
        };
        if !same {
            self.err(
                Code::Type,
                span,
                "these arguments differ from those in the table's `actions`",
            );
        }
    }

    /// Lowers the arguments of an action's directional parameters. Also returns the statements for calls within the arguments.
    pub(super) fn directed_args(
        &mut self,
        sig: &Signature<'a>,
        written: &'a [ast::Arg],
        name: &str,
        span: Span,
    ) -> (ir::Args, ir::Block) {
        let Some(given) = self.bind_args(sig.params, written, name, span) else {
            return (ir::Args::default(), Vec::new());
        };
        let body = std::mem::replace(&mut self.unit.body, Body::Apply);
        let mut infer = Infer::default();
        let mut lowered = None;
        let block = self.block_of(|c| {
            let vals = c.eval_args(sig, &given, &mut infer);
            if !super::args::poisoned(&vals) {
                lowered = c.lower_args(sig, &given, vals, &infer);
            }
        });
        self.unit.body = body;
        (lowered.unwrap_or_default(), block)
    }

    /// The source text of each argument, without white space.
    pub(super) fn texts(&self, args: &[ast::Arg]) -> Vec<String> {
        args.iter()
            .map(|a| self.source.slice(a.value.span).split_whitespace().collect())
            .collect()
    }
}

fn same_args(a: &[ir::Arg], b: &[ir::Arg]) -> bool {
    use ir::Arg as A;
    a.len() == b.len()
        && a.iter().zip(b).all(|pair| match pair {
            (A::In(x), A::In(y)) => x == y,
            (A::Out(x), A::Out(y)) | (A::InOut(x), A::InOut(y)) => x == y,
            (A::Object(x), A::Object(y)) => x == y,
            (A::Extern(x), A::Extern(y)) => x == y,
            (A::Ignore, A::Ignore) => true,
            _ => false,
        })
}
