//! Checks calls; the kind of the callee (function, method, action, …) determines the rules.

use super::Checker;
use super::args::accepts;
use super::infer::{Infer, Signature};
use super::types::Ty;
use super::unit::{Body, UnitKind};
use super::value::{DeclRef, Val};
use crate::ast::{self, ExprKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;

/// A call as written in the source.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a, 'e> {
    pub(crate) type_args: &'a [ast::Type],
    pub(crate) args: &'a [ast::Arg],
    /// The type that the expression around the call expects of its result; `None` if any type may follow.
    pub(crate) expected: Option<&'e Ty>,
    /// Whether the program uses the result; if not, the lowered call stores none.
    pub(crate) used: bool,
    pub(crate) span: Span,
}

impl<'a> Checker<'a, '_> {
    /// Checks a call whose value is used.
    pub(crate) fn call_value(
        &mut self,
        callee: &'a ast::Expr,
        type_args: &'a [ast::Type],
        args: &'a [ast::Arg],
        expected: Option<&Ty>,
        span: Span,
    ) -> Val<'a> {
        let call = Call {
            type_args,
            args,
            expected,
            used: true,
            span,
        };
        match self.call(callee, call) {
            Some(val) => val,
            None => {
                self.err(Code::Type, span, "this call returns no value");
                Val::Poison
            }
        }
    }

    /// Checks a call that is a statement.
    pub(crate) fn call_statement(&mut self, e: &'a ast::Expr) {
        let ExprKind::Call {
            callee,
            type_args,
            args,
        } = &e.kind
        else {
            self.err(Code::Placement, e.span, "this statement has no effect");
            return;
        };
        let call = Call {
            type_args,
            args,
            expected: None,
            used: false,
            span: e.span,
        };
        let before = self.unit.block.len();
        if let Some(val) = self.call(callee, call)
            && !matches!(val, Val::Poison)
            && self.unit.block.len() == before
        {
            self.warn(
                Code::Unused,
                e.span,
                "this call has no effect: its result is not used",
            );
        }
    }

    /// Checks a call of any kind; `None` if the callee returns nothing (`void`).
    fn call(&mut self, callee: &'a ast::Expr, call: Call<'a, '_>) -> Option<Val<'a>> {
        if let ExprKind::Member { base, member } = &callee.kind {
            return match self.expr(base, None) {
                Val::Poison => Some(self.poisoned(call)),
                Val::Table(id) if member.name == "apply" => self.apply_table(id, call),
                Val::Control(id, decl) if member.name == "apply" => {
                    self.apply_control(id, decl, call)
                }
                Val::Parser(id, decl) if member.name == "apply" => {
                    self.apply_parser(id, decl, call)
                }
                Val::Decl(DeclRef::Control(decl)) if member.name == "apply" => {
                    let id = self.direct_control(decl, &[], call.span)?;
                    self.apply_control(id, decl, call)
                }
                Val::Decl(DeclRef::Parser(decl)) if member.name == "apply" => {
                    let id = self.direct_parser(decl, &[], call.span)?;
                    self.apply_parser(id, decl, call)
                }
                Val::Extern(id, ty) => self.call_method(id, &ty, member, call),
                Val::Object(var, ty) => self.call_object(var, &ty, member, call),
                Val::This => {
                    let this = self.unit.this.clone()?;
                    self.call_method(this.object, &this.ty, member, call)
                }
                Val::Type(Ty::Control(decl, types)) if member.name == "apply" => {
                    let id = self.direct_control(decl, &types, call.span)?;
                    self.apply_control(id, decl, call)
                }
                Val::Type(Ty::Parser(decl, types)) if member.name == "apply" => {
                    let id = self.direct_parser(decl, &types, call.span)?;
                    self.apply_parser(id, decl, call)
                }
                Val::Type(ty) => self.size_method(&ty, member, call),
                other => self.builtin_method(other, base.span, member, call),
            };
        }
        match self.expr(callee, None) {
            Val::Poison => Some(self.poisoned(call)),
            Val::Functions(list) => self.call_overloaded(&list, call, callee.span),
            Val::Action(id, decl) => self.call_action(id, decl, call),
            Val::GlobalAction(index) => {
                let (id, decl) = self.shared_action(index, call.span)?;
                self.call_action(id, decl, call)
            }
            Val::Decl(decl) => Some(self.constructor_call(decl, None, call)),
            Val::Type(Ty::Extern(i, args)) => {
                Some(self.constructor_call(DeclRef::Extern(i), Some(&args), call))
            }
            Val::Type(Ty::Package(i, args)) => {
                Some(self.constructor_call(DeclRef::Package(i), Some(&args), call))
            }
            Val::Type(Ty::Control(i, args)) => {
                Some(self.constructor_call(DeclRef::Control(i), Some(&args), call))
            }
            Val::Type(Ty::Parser(i, args)) => {
                Some(self.constructor_call(DeclRef::Parser(i), Some(&args), call))
            }
            other => {
                let what = other.what();
                let mut d =
                    Diagnostic::error(Code::Type, callee.span, format!("{what} cannot be called"));
                if matches!(other, Val::Table(_) | Val::Control(..) | Val::Parser(..)) {
                    d = d.hint("`.apply(…)`");
                }
                self.push(d);
                Some(Val::Poison)
            }
        }
    }

    /// Checks the arguments of a call that already has an error, so that errors in them are reported too.
    pub(crate) fn poisoned(&mut self, call: Call<'a, '_>) -> Val<'a> {
        for arg in call.args {
            self.expr(&arg.value, None);
        }
        Val::Poison
    }

    /// Lowers a constructor call `X(…)` in an argument: creates an instance without a name.
    fn constructor_call(
        &mut self,
        decl: DeclRef,
        given: Option<&[Ty]>,
        call: Call<'a, '_>,
    ) -> Val<'a> {
        if self.unit.body != Body::Locals {
            self.push(
                Diagnostic::error(
                    Code::Placement,
                    call.span,
                    "a constructor call is not a statement",
                )
                .hint("declare an instance: `X(…) x;`"),
            );
            return Val::Poison;
        }
        let types: Vec<Ty> = match given {
            Some(list) => list.to_vec(),
            None => call.type_args.iter().map(|t| self.resolve(t)).collect(),
        };
        self.anonymous_instance(decl, &types, call)
    }

    /// Selects the overload that fits the number and names of the arguments, and checks its call.
    fn call_overloaded(&mut self, list: &[u32], call: Call<'a, '_>, at: Span) -> Option<Val<'a>> {
        let fitting = list
            .iter()
            .copied()
            .find(|&i| accepts(&self.functions[i as usize].proto.params, call.args));
        let index = match fitting.or(if list.len() == 1 { Some(list[0]) } else { None }) {
            Some(i) => i,
            None => {
                let name = &self.functions[list[0] as usize].proto.name.name;
                self.err(
                    Code::Type,
                    at,
                    format!("no overload of `{name}` takes these arguments"),
                );
                return Some(self.poisoned(call));
            }
        };
        let def = self.functions[index as usize];
        match (def.body, def.proto.name.name.as_str()) {
            (Some(_), _) => self.call_function(index, call),
            (None, "static_assert") => {
                let held = self.static_assert(call);
                call.used.then_some(held)
            }
            (None, "verify") if matches!(self.unit.kind, UnitKind::Parser) => {
                self.verify(def.proto, call)
            }
            (None, "verify") => {
                self.err(
                    Code::Placement,
                    call.span,
                    "`verify` can be called only in a parser's states",
                );
                Some(Val::Poison)
            }
            (None, _) => self.call_extern_function(def.proto, call),
        }
    }

    /// Checks a call of `proto`: (signature, lowered arguments, type arguments). `outer`: type arguments of its extern.
    pub(crate) fn prepare(
        &mut self,
        proto: &'a ast::FunctionProto,
        outer: &[(&'a [ast::Ident], &[Ty])],
        call: Call<'a, '_>,
    ) -> Option<(Signature<'a>, ir::Args, Vec<Ty>)> {
        let mut infer = Infer::default();
        let given: Vec<Ty> = call.type_args.iter().map(|t| self.resolve(t)).collect();
        let name = &proto.name.name;
        let targs = self.type_arguments(&proto.type_params, &given, name, call.span, &mut infer)?;
        let mut generics = outer.to_vec();
        generics.push((proto.type_params.as_slice(), targs.as_slice()));
        let mut sig = self.signature(&generics, &proto.params, proto.ret.as_ref());
        let Some(bound) = self.bind_args(&proto.params, call.args, name, call.span) else {
            self.poisoned(call);
            return None;
        };
        let vals = self.eval_args(&sig, &bound, &mut infer);
        if super::args::poisoned(&vals) {
            return None;
        }
        if let Some(expected) = call.expected {
            let ret = sig.ret.clone();
            if self.types.has_vars(&ret) {
                self.unify(&ret, &expected.clone(), &mut infer);
            }
        }
        if !self.widths_known(&infer, call.span) {
            return None;
        }
        let omitted = bound
            .iter()
            .any(|g| matches!(g, super::args::Given::Omitted));
        let settled = self.settled(&targs, &mut infer, !omitted, call.span)?;
        if !proto.type_params.is_empty() {
            let types: Vec<Ty> = sig
                .types
                .iter()
                .map(|ty| self.subst(ty, &infer, call.span))
                .collect();
            self.check_params(&proto.params, &types);
        }
        let args = self.lower_args(&sig, &bound, vals, &infer)?;
        sig.ret = self.subst(&sig.ret.clone(), &infer, call.span);
        Some((sig, args, settled))
    }

    /// Lowers a call of an extern function; `None` if it returns nothing.
    fn call_extern_function(
        &mut self,
        proto: &'a ast::FunctionProto,
        call: Call<'a, '_>,
    ) -> Option<Val<'a>> {
        let Some((sig, args, targs)) = self.prepare(proto, &[], call) else {
            return Some(Val::Poison);
        };
        if !self.may_run(call.span) {
            return Some(Val::Poison);
        }
        let (result, val) = self.result_place(&sig.ret, call.used);
        let type_args = targs.iter().map(|t| self.types.ir(t)).collect();
        let (args, behind) = self.args_for_extern(args, call.span);
        self.emit(
            ir::StmtKind::CallExtern {
                function: ir::ExternFunction::named(&proto.name.name),
                type_args,
                args,
                result,
                returns: self.types.ir(&sig.ret),
            },
            call.span,
        );
        self.unit.block.extend(behind);
        val
    }

    /// The temporary that receives a call's result, and the call's value; both `None` if there is no result or no use of it.
    pub(crate) fn result_place(
        &mut self,
        ret: &Ty,
        used: bool,
    ) -> (Option<ir::LValue>, Option<Val<'a>>) {
        if *ret == Ty::Void {
            return (None, None);
        }
        if !used {
            // The call is only made for its side effects.
            return (None, None);
        }
        let temp = self.temp(ret);
        (Some(temp.lv.clone()), Some(Val::Place(temp)))
    }

    /// Checks that the current position is in a parser, control or function, where statements can run.
    pub(crate) fn may_run(&mut self, span: Span) -> bool {
        if self.unit.kind == UnitKind::Top {
            self.err(
                Code::Constant,
                span,
                "a call cannot be evaluated at compile time",
            );
            return false;
        }
        true
    }
}
