//! Checks actions and lowers them to the IR: those of a control, and copies of top-level actions.

use super::Checker;
use super::args::Given;
use super::call::Call;
use super::infer::{Infer, Signature};
use super::types::Ty;
use super::unit::{Body, UnitKind, given_name};
use super::value::Val;
use crate::ast::{self, DeclKind, Direction};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;
use std::rc::Rc;

/// Parameters in an action's declaration; empty if the declaration is no action.
pub(crate) fn action_params(decl: &ast::Decl) -> &[ast::Param] {
    match &decl.kind {
        DeclKind::Action { params, .. } => params,
        _ => &[],
    }
}

impl<'a> Checker<'a, '_> {
    /// Checks an action, lowers it into the current control, and returns its id there; `None` after an error.
    pub(crate) fn action(&mut self, decl: &'a ast::Decl, full: String) -> Option<ir::ActionId> {
        let DeclKind::Action { params, body, .. } = &decl.kind else {
            return None;
        };
        let types: Vec<Ty> = params.iter().map(|p| self.resolve(&p.ty)).collect();
        self.no_optional_params(params);
        self.no_objects(params, &types, "an action");
        let mut directionless = false;
        for p in params {
            match p.direction {
                Direction::None => directionless = true,
                _ if directionless => self.push(
                    Diagnostic::error(
                        Code::Placement,
                        p.span,
                        "a parameter with a direction cannot follow one without",
                    )
                    .hint("move it before the parameters that the control plane supplies"),
                ),
                _ => {}
            }
        }
        for (p, ty) in params.iter().zip(&types) {
            if *ty == Ty::Integer && p.direction == Direction::None {
                self.push(
                    Diagnostic::error(
                        Code::Type,
                        p.name.span,
                        "an action's parameter cannot be an `int`",
                    )
                    .hint("give it a width: `bit<32>`"),
                );
            }
        }
        let (lowered, block) = self.with_body(Body::Action, |c| {
            let lowered = c.bind_params(params, &types);
            c.unit.ret = Some((Ty::Void, None));
            (lowered, c.block_of(|c| c.block(body)))
        });
        let action = ir::Action {
            name: full,
            params: lowered,
            body: block,
            annotations: self.annotations(&decl.annotations),
            span: decl.span,
        };
        Some(self.add_action(action, types))
    }

    /// Returns the current control's copy of a top-level action, and makes the copy at its first use.
    pub(crate) fn shared_action(
        &mut self,
        index: u32,
        span: Span,
    ) -> Option<(ir::ActionId, &'a ast::Decl)> {
        let decl = self.actions[index as usize].decl;
        if !matches!(self.unit.kind, UnitKind::Control(_)) {
            self.err(
                Code::Placement,
                span,
                "actions can be called only in controls",
            );
            return None;
        }
        if let Some(&id) = self.unit.shared_actions.get(&index) {
            return Some((id, decl));
        }
        if !self.enter(span) {
            return None;
        }
        self.seen_actions.insert(index);
        let name = match &decl.kind {
            DeclKind::Action { name, .. } => given_name(&name.name, &decl.annotations),
            _ => String::new(),
        };
        let name = name.strip_prefix('.').map(str::to_owned).unwrap_or(name);
        // The action sees the top level, not the control that uses it.
        let scopes = std::mem::take(&mut self.unit.scopes);
        self.push_scope();
        let id = self.action(decl, name);
        self.unit.scopes = scopes;
        self.leave();
        let id = id?;
        self.unit.shared_actions.insert(index, id);
        Some((id, decl))
    }

    /// An action's parameters and their types.
    pub(crate) fn action_signature(&self, id: ir::ActionId, decl: &'a ast::Decl) -> Signature<'a> {
        let types: Rc<[Ty]> = self
            .unit
            .action_types
            .get(id.index())
            .cloned()
            .unwrap_or_default();
        Signature {
            params: action_params(decl),
            types: types.to_vec(),
            ret: Ty::Void,
            ret_span: None,
            generics: Vec::new(),
        }
    }

    /// Checks a direct call of an action, in which every argument is given.
    pub(crate) fn call_action(
        &mut self,
        id: ir::ActionId,
        decl: &'a ast::Decl,
        call: Call<'a, '_>,
    ) -> Option<Val<'a>> {
        if !matches!(self.unit.body, Body::Apply | Body::Action) {
            self.err(
                Code::Placement,
                call.span,
                "actions can be called only in apply blocks and actions",
            );
            return None;
        }
        if let Some(ty) = call.type_args.first() {
            self.err(Code::Type, ty.span, "an action takes no type arguments");
        }
        let sig = self.action_signature(id, decl);
        let name = decl.name().map_or("action", |n| n.name.as_str());
        let bound: Vec<Given<'a>> = match self.bind_args(sig.params, call.args, name, call.span) {
            Some(bound) => bound,
            None => {
                self.poisoned(call);
                return None;
            }
        };
        let mut infer = Infer::default();
        let vals = self.eval_args(&sig, &bound, &mut infer);
        if let Some(args) = self.lower_args(&sig, &bound, vals, &infer) {
            self.emit(ir::StmtKind::CallAction(id, args), call.span);
        }
        None
    }

    /// The action that an expression names; `None` after an error.
    pub(crate) fn named_action(
        &mut self,
        e: &'a ast::Expr,
    ) -> Option<(ir::ActionId, &'a ast::Decl)> {
        match self.expr(e, None) {
            Val::Action(id, decl) => Some((id, decl)),
            Val::GlobalAction(index) => self.shared_action(index, e.span),
            Val::Poison => None,
            other => {
                let what = other.what();
                self.err(
                    Code::Type,
                    e.span,
                    format!("expected an action, found {what}"),
                );
                None
            }
        }
    }
}
