//! Binds arguments to parameters: by position or by name, with defaults, `@optional` and directions (P4_16 1.2.5, section 6.8).

use super::Checker;
use super::fold;
use super::infer::{Infer, Signature};
use super::order::Writes;
use super::scope::nearest;
use super::types::Ty;
use super::value::Val;
use crate::ast::{self, Direction};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;

/// The argument to which a parameter is bound.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Given<'a> {
    Arg(&'a ast::Expr),
    /// The parameter's default value, because the call omits the argument.
    Default(&'a ast::Expr),
    /// No value: the call omits the argument of an `@optional` parameter.
    Omitted,
}

/// An argument after its evaluation, before it is lowered to the IR.
#[derive(Default)]
pub(crate) struct Evaluated<'a> {
    pub(crate) val: Val<'a>,
    pub(crate) span: Span,
    /// Saved value of an `inout` argument that later arguments may change; `None` if nothing had to be saved.
    saved: Option<ir::Expr>,
}

/// Whether evaluating one of the arguments has reported an error.
pub(crate) fn poisoned(vals: &[Evaluated<'_>]) -> bool {
    vals.iter().any(|v| matches!(v.val, Val::Poison))
}

pub(crate) fn is_optional(p: &ast::Param) -> bool {
    p.annotations.iter().any(|a| a.name.name == "optional")
}

/// Position of each argument in the call, from 0, if the order of named arguments differs from the parameters'; else empty.
fn written_order(given: &[Given<'_>]) -> Vec<u32> {
    let order = in_order_of_call(given);
    if order.is_sorted() {
        return Vec::new();
    }
    let mut written = vec![0; order.len()];
    for (at, &i) in order.iter().enumerate() {
        written[i] = at as u32;
    }
    written
}

/// Indices of the parameters in the order of their arguments in the call; parameters with default values come last.
fn in_order_of_call(given: &[Given<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..given.len()).collect();
    order.sort_by_key(|&i| match given[i] {
        Given::Arg(e) => (false, e.span.start),
        Given::Default(_) | Given::Omitted => (true, 0),
    });
    order
}

/// Whether the number and names of the arguments fit the parameters, by which overloads are resolved.
pub(crate) fn accepts(params: &[ast::Param], args: &[ast::Arg]) -> bool {
    if args.len() > params.len() {
        return false;
    }
    let named = args.first().is_some_and(|a| a.name.is_some());
    let given = |i: usize, p: &ast::Param| {
        if named {
            args.iter()
                .any(|a| a.name.as_ref().is_some_and(|n| n.name == p.name.name))
        } else {
            i < args.len()
        }
    };
    let names_known = args.iter().all(|a| match &a.name {
        Some(n) => params.iter().any(|p| p.name.name == n.name),
        None => true,
    });
    names_known
        && params
            .iter()
            .enumerate()
            .all(|(i, p)| given(i, p) || p.default.is_some() || is_optional(p))
}

impl<'a> Checker<'a, '_> {
    /// Determines the argument of each parameter; `None` after an error.
    pub(crate) fn bind_args(
        &mut self,
        params: &'a [ast::Param],
        args: &'a [ast::Arg],
        what: &str,
        span: Span,
    ) -> Option<Vec<Given<'a>>> {
        if !self.args_match_params(params, args, what) {
            return None;
        }
        let mut given: Vec<Option<Given<'a>>> = vec![None; params.len()];
        let mut ok = true;
        for (i, arg) in args.iter().enumerate() {
            let at = match &arg.name {
                None => Some(i),
                Some(name) => self.param_named(params, name, what),
            };
            let Some(at) = at else {
                ok = false;
                continue;
            };
            if given[at].is_some() {
                let name = &params[at].name.name;
                self.err(
                    Code::Duplicate,
                    arg.value.span,
                    format!("parameter `{name}` is given twice"),
                );
                ok = false;
            }
            given[at] = Some(Given::Arg(&arg.value));
        }
        let mut missing = Vec::new();
        for (slot, p) in given.iter_mut().zip(params) {
            if slot.is_some() {
                continue;
            }
            *slot = match &p.default {
                Some(e) => Some(Given::Default(e)),
                None if is_optional(p) => Some(Given::Omitted),
                None => {
                    missing.push(p);
                    None
                }
            };
        }
        // A misspelled argument name is not also reported as a missing argument.
        if let (true, Some(first)) = (ok, missing.first()) {
            let names: Vec<String> = missing
                .iter()
                .map(|p| format!("`{}`", p.name.name))
                .collect();
            let text = format!(
                "missing argument{} {} of `{what}`",
                if missing.len() == 1 { "" } else { "s" },
                names.join(", ")
            );
            self.push(Diagnostic::error(Code::Type, span, text).label(first.span, "declared here"));
            return None;
        }
        if ok {
            given.into_iter().collect()
        } else {
            None
        }
    }

    /// Checks that the arguments are all named or all positional, as the parameters require, and that there are not too many.
    fn args_match_params(
        &mut self,
        params: &'a [ast::Param],
        args: &'a [ast::Arg],
        what: &str,
    ) -> bool {
        let by_place = args.iter().find(|arg| arg.name.is_none());
        if let Some(arg) = by_place
            && params.iter().any(is_optional)
            && let Some(default) = params.iter().find(|p| p.default.is_some())
        {
            let text = format!(
                "`{what}` has `@optional` parameters and default values: name its arguments"
            );
            self.push(
                Diagnostic::error(Code::Type, arg.value.span, text)
                    .label(default.span, "declared here"),
            );
            return false;
        }
        let by_name = args.iter().find(|arg| arg.name.is_some());
        if let (Some(by_name), Some(by_place)) = (by_name, by_place) {
            let message = "name all arguments or none";
            self.push(
                Diagnostic::error(Code::Type, by_place.value.span, message)
                    .label(by_name.value.span, "this one is named"),
            );
            return false;
        }
        let Some(extra) = args.get(params.len()).filter(|arg| arg.name.is_none()) else {
            return true;
        };
        let text = format!(
            "`{what}` takes {} argument{}, {} given",
            params.len(),
            if params.len() == 1 { "" } else { "s" },
            args.len()
        );
        let mut d = Diagnostic::error(Code::Type, extra.value.span, text);
        if let (Some(first), Some(last)) = (params.first(), params.last()) {
            d = d.label(first.span.to(last.span), "declared here");
        }
        self.push(d);
        false
    }

    /// Index of the parameter that a named argument names; reports an error if there is none.
    fn param_named(
        &mut self,
        params: &[ast::Param],
        name: &ast::Ident,
        what: &str,
    ) -> Option<usize> {
        let at = params.iter().position(|p| p.name.name == name.name);
        if at.is_none() {
            let mut d = Diagnostic::error(
                Code::UnknownName,
                name.span,
                format!("`{what}` has no parameter `{}`", name.name),
            );
            let names = params.iter().map(|p| p.name.name.as_str());
            if let Some(near) = nearest(&name.name, names) {
                d = d.hint(format!("did you mean `{near}`?"));
            }
            self.push(d);
        }
        at
    }

    /// Evaluates arguments in the order of the call, default values last, and infers type arguments from them.
    pub(crate) fn eval_args(
        &mut self,
        sig: &Signature<'a>,
        given: &[Given<'a>],
        infer: &mut Infer,
    ) -> Vec<Evaluated<'a>> {
        let mut vals: Vec<Evaluated<'a>> = given.iter().map(|_| Evaluated::default()).collect();
        let mut marks = vec![0; given.len()];
        // The order of named arguments may differ from that of the parameters.
        let order = in_order_of_call(given);
        for &i in &order {
            let (val, span) = match &given[i] {
                Given::Arg(e) => {
                    let hint = sig.types[i].clone();
                    (self.expr(e, Some(&hint)), e.span)
                }
                Given::Default(e) => {
                    // A default value is evaluated in the declaration's scope.
                    let scopes = std::mem::take(&mut self.unit.scopes);
                    self.push_scope();
                    for (name, ty) in &sig.generics {
                        self.declare(name, Val::Type(ty.clone()));
                    }
                    let ty = sig.types[i].clone();
                    let val = self.expr(e, Some(&ty));
                    self.unit.scopes = scopes;
                    (val, e.span)
                }
                Given::Omitted => (Val::DontCare, sig.params[i].span),
            };
            if let Some(found) = self.type_of(&val) {
                let param = sig.types[i].clone();
                self.unify(&param, &found, infer);
            }
            vals[i] = Evaluated {
                val,
                span,
                saved: None,
            };
            marks[i] = self.unit.block.len();
        }
        let end = self.unit.block.len();
        let (mut later, mut seen) = (Writes::default(), end);
        for &i in order.iter().rev() {
            let at = marks[i];
            if at == end {
                continue;
            }
            self.add_writes(&mut later, at, seen);
            seen = at;
            let span = vals[i].span;
            let direction = sig.params[i].direction;
            vals[i].val = match (std::mem::take(&mut vals[i].val), direction) {
                (Val::Place(mut place), Direction::Out | Direction::InOut) => {
                    let copied_in = direction == Direction::InOut;
                    vals[i].saved = self.hold_place(&mut place, copied_in, at, &later, span);
                    Val::Place(place)
                }
                (val, Direction::Out | Direction::InOut) => val,
                (val, _) => self.keep(val, at, span),
            };
        }
        vals
    }

    /// Lowers evaluated arguments to the IR, once the type arguments are inferred; `None` after an error.
    pub(crate) fn lower_args(
        &mut self,
        sig: &Signature<'a>,
        given: &[Given<'a>],
        vals: Vec<Evaluated<'a>>,
        infer: &Infer,
    ) -> Option<ir::Args> {
        let mut out = Vec::with_capacity(vals.len());
        let mut ok = true;
        let mut places: Vec<(ir::LValue, Span)> = Vec::new();
        for (i, Evaluated { val, span, saved }) in vals.into_iter().enumerate() {
            let p = &sig.params[i];
            if matches!(given[i], Given::Omitted) {
                out.push(ir::Arg::Ignore);
                continue;
            }
            let ty = self.subst(&sig.types[i].clone(), infer, span);
            let arg = match p.direction {
                Direction::Out | Direction::InOut => self.place_arg(p, val, &ty, span),
                Direction::None | Direction::In => self.value_arg(val, &ty, span),
            };
            if let Some(ir::Arg::Out(lv) | ir::Arg::InOut(lv)) = &arg {
                if places.iter().any(|(other, _)| other == lv) {
                    self.push(
                        Diagnostic::warning(
                            Code::Lint,
                            span,
                            "two `out` or `inout` arguments are the same variable or field",
                        )
                        .hint("it keeps the value of the argument that is copied out last"),
                    );
                }
                places.push((lv.clone(), span));
            }
            match (arg, saved) {
                (Some(ir::Arg::InOut(to)), Some(value)) => {
                    out.push(ir::Arg::InOutSaved { value, to });
                }
                (Some(arg), _) => out.push(arg),
                (None, _) => ok = false,
            }
        }
        // Trailing omitted optional arguments are not passed.
        while matches!(out.last(), Some(ir::Arg::Ignore))
            && matches!(given.get(out.len() - 1), Some(Given::Omitted))
        {
            out.pop();
        }
        ok.then(|| ir::Args::in_order(out, written_order(given)))
    }

    fn place_arg(&mut self, p: &ast::Param, val: Val<'a>, ty: &Ty, span: Span) -> Option<ir::Arg> {
        let out = p.direction == Direction::Out;
        match val {
            Val::DontCare if out => Some(ir::Arg::Ignore),
            Val::Place(place) => {
                if let Some(why) = place.read_only {
                    self.err(
                        Code::Placement,
                        span,
                        format!(
                            "the argument for `{}` must be assignable: {why}",
                            p.name.name
                        ),
                    );
                    return None;
                }
                if place.ty != *ty {
                    if place.ty.is_poison() || ty.is_poison() {
                        return None;
                    }
                    self.mismatch(span, ty, &place.ty);
                    return None;
                }
                Some(if out {
                    ir::Arg::Out(place.lv)
                } else {
                    ir::Arg::InOut(place.lv)
                })
            }
            Val::Poison => None,
            other => {
                let what = other.what();
                self.err(
                    Code::Placement,
                    span,
                    format!(
                        "the argument for `{}` must be an l-value, found {what}",
                        p.name.name
                    ),
                );
                None
            }
        }
    }

    fn value_arg(&mut self, val: Val<'a>, ty: &Ty, span: Span) -> Option<ir::Arg> {
        match val {
            Val::Extern(id, found) => {
                if found != *ty && !matches!(ty, Ty::Var(_)) {
                    self.mismatch(span, ty, &found);
                    return None;
                }
                Some(ir::Arg::Extern(id))
            }
            Val::Object(var, found) => {
                if found != *ty && !matches!(ty, Ty::Var(_)) {
                    self.mismatch(span, ty, &found);
                    return None;
                }
                Some(ir::Arg::Object(var))
            }
            other => self.coerce(other, ty, span).map(ir::Arg::In),
        }
    }

    /// Converts evaluated constructor arguments to constants and objects; `None` after an error.
    pub(crate) fn constructor_args(
        &mut self,
        sig: &Signature<'a>,
        given: &[Given<'a>],
        vals: Vec<Evaluated<'a>>,
        infer: &Infer,
    ) -> Option<Vec<Val<'a>>> {
        let mut out = Vec::with_capacity(vals.len());
        let mut ok = true;
        for (i, Evaluated { val, span, .. }) in vals.into_iter().enumerate() {
            if matches!(given[i], Given::Omitted) {
                out.push(Val::DontCare);
                continue;
            }
            let ty = self.subst(&sig.types[i].clone(), infer, span);
            let val = match val {
                Val::Poison => None,
                Val::Integer(n) if ty == Ty::Integer => Some(Val::Integer(n)),
                Val::Extern(_, ref found) | Val::Package(_, ref found) => {
                    if *found != ty && !self.types.has_vars(&ty) {
                        let found = found.clone();
                        self.mismatch(span, &ty, &found);
                        None
                    } else {
                        Some(val)
                    }
                }
                Val::Control(..) | Val::Parser(..) if ty.is_object() => Some(val),
                other => match self.coerce(other, &ty, span) {
                    Some(e) if fold::is_constant(&e) => Some(Val::Expr(ty, e)),
                    Some(_) => {
                        self.err(
                            Code::Constant,
                            span,
                            "constructor arguments must be compile-time known values",
                        );
                        None
                    }
                    None => None,
                },
            };
            match val {
                Some(v) => out.push(v),
                None => ok = false,
            }
        }
        ok.then_some(out)
    }
}
