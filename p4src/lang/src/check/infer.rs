//! Infers type arguments: a generic's type parameters become fresh variables, and the call's arguments bind them to types.

use super::Checker;
use super::types::Ty;
use super::value::Val;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use std::rc::Rc;

/// The type variables of one inference.
#[derive(Debug, Default, Clone)]
pub(crate) struct Infer {
    /// Number of each type variable, and the type it is bound to; `None` while it is unbound.
    vars: Vec<(u32, Option<Ty>)>,
}

impl Infer {
    fn slot(&self, var: u32) -> Option<usize> {
        self.vars.iter().position(|(v, _)| *v == var)
    }

    /// Accepts any type for a type argument that is written as `_` and that no argument of the call determines.
    pub(crate) fn leave_open(&mut self, given: &[Ty], args: &[Ty]) {
        for (given, arg) in given.iter().zip(args) {
            if let (Ty::DontCare, Ty::Var(var)) = (given, arg)
                && let Some((_, bound @ None)) = self.vars.iter_mut().find(|(v, _)| v == var)
            {
                *bound = Some(Ty::DontCare);
            }
        }
    }
}

/// Parameter types and result type of a function, method, action, parser or control.
#[derive(Debug, Clone)]
pub(crate) struct Signature<'a> {
    pub(crate) params: &'a [ast::Param],
    pub(crate) types: Vec<Ty>,
    pub(crate) ret: Ty,
    /// Span of the result type in the source; `None` if none is written.
    pub(crate) ret_span: Option<Span>,
    /// Type parameters and their type arguments, for the evaluation of default values.
    pub(crate) generics: Vec<(&'a ast::Ident, Ty)>,
}

impl<'a> Checker<'a, '_> {
    /// The type arguments of a call: those written, else new type variables, which are added to `infer`. `None` after an error.
    pub(crate) fn type_arguments(
        &mut self,
        params: &'a [ast::Ident],
        given: &[Ty],
        what: &str,
        span: Span,
        infer: &mut Infer,
    ) -> Option<Vec<Ty>> {
        if !given.is_empty() && given.len() != params.len() {
            self.err(
                Code::Type,
                span,
                format!(
                    "`{what}` takes {} type argument{}, {} given",
                    params.len(),
                    if params.len() == 1 { "" } else { "s" },
                    given.len()
                ),
            );
            return None;
        }
        let mut out = Vec::with_capacity(params.len());
        for (i, p) in params.iter().enumerate() {
            match given.get(i) {
                Some(ty) if *ty != Ty::DontCare => out.push(ty.clone()),
                _ => {
                    let var = self.types.fresh(&p.name);
                    if let Ty::Var(n) = var {
                        infer.vars.push((n, None));
                    }
                    out.push(var);
                }
            }
        }
        Some(out)
    }

    /// Resolves parameter and result types with the type arguments substituted. The types can name only top-level declarations.
    pub(crate) fn signature(
        &mut self,
        generics: &[(&'a [ast::Ident], &[Ty])],
        params: &'a [ast::Param],
        ret: Option<&'a ast::Type>,
    ) -> Signature<'a> {
        let scopes = std::mem::take(&mut self.unit.scopes);
        for (names, types) in generics {
            self.push_scope();
            for (name, ty) in names.iter().zip(*types) {
                self.declare(name, Val::Type(ty.clone()));
            }
        }
        if self.unit.scopes.is_empty() {
            self.push_scope();
        }
        let types: Vec<Ty> = params.iter().map(|p| self.resolve(&p.ty)).collect();
        self.check_params(params, &types);
        let ret_written = ret;
        let ret = match ret {
            Some(ty) => self.resolve(ty),
            None => Ty::Void,
        };
        self.unit.scopes = scopes;
        let generics = generics
            .iter()
            .flat_map(|(names, types)| names.iter().zip(types.iter().cloned()))
            .collect();
        Signature {
            params,
            types,
            ret_span: ret_written.map(|ty| ty.span),
            ret,
            generics,
        }
    }

    /// Makes the types `param` and `found` equal by binding type variables; `false` if that is impossible.
    pub(crate) fn unify(&mut self, param: &Ty, found: &Ty, infer: &mut Infer) -> bool {
        if let Ty::Var(v) = param
            && let Some(slot) = infer.slot(*v)
        {
            return match infer.vars[slot].1.clone() {
                None => {
                    if param != found {
                        infer.vars[slot].1 = Some(found.clone());
                    }
                    true
                }
                // A type with a width replaces `int`.
                Some(Ty::Integer) if self.types.strip_new(found).width().is_some() => {
                    infer.vars[slot].1 = Some(found.clone());
                    true
                }
                Some(bound) => bound == *found || *found == Ty::Integer || found.is_poison(),
            };
        }
        match (param, found) {
            (Ty::Poison | Ty::DontCare, _) | (_, Ty::Poison | Ty::DontCare) => true,
            (Ty::Stack(a, n), Ty::Stack(b, m)) => n == m && self.unify(a, b, infer),
            (Ty::List(a), Ty::List(b)) => self.unify(a, b, infer),
            (Ty::Tuple(a), Ty::Tuple(b)) => self.unify_all(a, b, infer),
            (Ty::Extern(i, a), Ty::Extern(j, b))
            | (Ty::Package(i, a), Ty::Package(j, b))
            | (Ty::Parser(i, a), Ty::Parser(j, b))
            | (Ty::Control(i, a), Ty::Control(j, b)) => i == j && self.unify_all(a, b, infer),
            (Ty::Struct(i), Ty::Struct(j)) if i != j => {
                let (d1, a) = self.types.structs[*i as usize].origin.clone();
                let (d2, b) = self.types.structs[*j as usize].origin.clone();
                d1 == d2 && self.unify_all(&a, &b, infer)
            }
            _ => param == found,
        }
    }

    fn unify_all(&mut self, a: &[Ty], b: &[Ty], infer: &mut Infer) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| self.unify(x, y, infer))
    }

    /// Replaces the bound type variables in a type by their types.
    pub(crate) fn subst(&mut self, ty: &Ty, infer: &Infer, span: Span) -> Ty {
        if infer.vars.is_empty() || !self.types.has_vars(ty) {
            return ty.clone();
        }
        match ty {
            Ty::Var(v) => match infer.slot(*v).and_then(|s| infer.vars[s].1.clone()) {
                Some(bound) => bound,
                None => ty.clone(),
            },
            Ty::Stack(elem, n) => Ty::Stack(Rc::new(self.subst(elem, infer, span)), *n),
            Ty::List(elem) => Ty::List(Rc::new(self.subst(elem, infer, span))),
            Ty::Tuple(items) => Ty::Tuple(self.subst_all(items, infer, span)),
            Ty::Extern(i, args) => Ty::Extern(*i, self.subst_all(args, infer, span)),
            Ty::Parser(i, args) => Ty::Parser(*i, self.subst_all(args, infer, span)),
            Ty::Control(i, args) => Ty::Control(*i, self.subst_all(args, infer, span)),
            Ty::Package(i, args) => Ty::Package(*i, self.subst_all(args, infer, span)),
            Ty::Struct(i) => {
                let (decl, args) = self.types.structs[*i as usize].origin.clone();
                let args = self.subst_all(&args, infer, span);
                self.struct_instance(decl, &args, span)
            }
            _ => ty.clone(),
        }
    }

    fn subst_all(&mut self, list: &[Ty], infer: &Infer, span: Span) -> Rc<[Ty]> {
        list.iter().map(|t| self.subst(t, infer, span)).collect()
    }

    /// Reports an error for a type parameter bound to `int`: a run-time value needs a width.
    pub(crate) fn widths_known(&mut self, infer: &Infer, span: Span) -> bool {
        let known = infer.vars.iter().all(|(_, ty)| *ty != Some(Ty::Integer));
        if !known {
            self.push(
                Diagnostic::error(Code::Type, span, "a number in this call needs a width")
                    .hint("write `8w1`, `16w1` …"),
            );
        }
        known
    }

    /// The inferred type arguments. A bare `int` becomes `bit<32>`; an unbound variable is an error, except if `strict` is
    /// false.
    pub(crate) fn settled(
        &mut self,
        args: &[Ty],
        infer: &mut Infer,
        strict: bool,
        span: Span,
    ) -> Option<Vec<Ty>> {
        let mut missing = None;
        for (var, bound) in &mut infer.vars {
            match bound {
                Some(ty) => *ty = sized(ty),
                None => {
                    missing.get_or_insert(*var);
                    *bound = Some(if strict { Ty::Poison } else { Ty::Void });
                }
            }
        }
        if let (Some(var), true) = (missing, strict) {
            let name = self.types.vars[var as usize].clone();
            self.push(
                Diagnostic::error(
                    Code::Type,
                    span,
                    format!("the type argument `{name}` cannot be inferred"),
                )
                .hint("write the type arguments: `f<bit<32>>(…)`"),
            );
            return None;
        }
        Some(args.iter().map(|a| self.subst(a, infer, span)).collect())
    }
}

fn sized(ty: &Ty) -> Ty {
    match ty {
        Ty::Integer => Ty::Bit(32),
        Ty::Tuple(items) => Ty::Tuple(items.iter().map(sized).collect()),
        _ => ty.clone(),
    }
}
