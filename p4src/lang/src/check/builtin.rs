//! Lowers built-in methods of headers, unions, stacks and types, and the functions `verify` and `static_assert`.

use super::Checker;
use super::call::Call;
use super::fold;
use super::types::Ty;
use super::value::{LVal, Val};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;
use num_bigint::BigInt;

impl<'a> Checker<'a, '_> {
    /// Lowers a built-in method of a value, `value.method(…)`.
    pub(crate) fn builtin_method(
        &mut self,
        base: Val<'a>,
        at: Span,
        method: &'a ast::Ident,
        call: Call<'a, '_>,
    ) -> Option<Val<'a>> {
        if is_size(&method.name) {
            return match self.type_of(&base) {
                Some(ty) => self.size_method(&ty, method, call),
                None => {
                    let what = base.what();
                    self.err(Code::Type, at, format!("{what} has no size"));
                    Some(Val::Poison)
                }
            };
        }
        let (ty, place) = match base {
            Val::Place(p) => (p.ty.clone(), Some(p)),
            Val::Expr(ty, e) => {
                let place = match method.name.as_str() {
                    "isValid" => Some(self.place_of(ty.clone(), e, at)),
                    _ => None,
                };
                (ty, place)
            }
            other => {
                self.no_methods(&other, method);
                return Some(self.poisoned(call));
            }
        };
        let bare = self.types.strip_new(&ty).clone();
        let header = self.types.is_header(&bare) || self.types.is_union(&bare);
        match (method.name.as_str(), &bare, place) {
            ("isValid", _, Some(p)) if header => {
                self.no_args(call);
                Some(Val::Expr(
                    Ty::Bool,
                    ir::Expr {
                        kind: ir::ExprKind::IsValid(p.lv),
                        ty: ir::Type::Bool,
                    },
                ))
            }
            ("setValid" | "setInvalid", _, Some(p)) if self.types.is_header(&bare) => {
                self.no_args(call);
                if self.writable(&p, at) {
                    let kind = if method.name == "setValid" {
                        ir::StmtKind::SetValid(p.lv)
                    } else {
                        ir::StmtKind::SetInvalid(p.lv)
                    };
                    self.emit(kind, call.span);
                }
                None
            }
            ("push_front" | "pop_front", Ty::Stack(elem, _), Some(p))
                if self.types.holds_validity(elem) =>
            {
                self.shift_elements(&p, at, method, call);
                None
            }
            (_, Ty::Poison, _) => Some(self.poisoned(call)),
            _ => {
                let message = format!("{} has no method `{}`", self.types.show(&ty), method.name);
                let mut d = Diagnostic::error(Code::UnknownName, method.span, message);
                if let Some(hint) = self.method_hint(&method.name, &bare) {
                    d = d.hint(hint);
                }
                self.push(d);
                Some(self.poisoned(call))
            }
        }
    }

    /// Lowers `stack.push_front(n)` and `stack.pop_front(n)`.
    fn shift_elements(&mut self, stack: &LVal, at: Span, method: &ast::Ident, call: Call<'a, '_>) {
        let [arg] = call.args else {
            let message = format!("`{}` takes one argument, a constant", method.name);
            return self.err(Code::Type, call.span, message);
        };
        let count = self.small_constant::<u32>(&arg.value);
        if count == Some(0) {
            let message = format!("the argument of `{}` must be positive", method.name);
            self.err(Code::Constant, arg.value.span, message);
        } else if let Some(n) = count
            && self.writable(stack, at)
        {
            let kind = match method.name.as_str() {
                "push_front" => ir::StmtKind::Push(stack.lv.clone(), n),
                _ => ir::StmtKind::Pop(stack.lv.clone(), n),
            };
            self.emit(kind, call.span);
        }
    }

    /// Reports a call of a method that a table, control, parser or similar object does not have.
    fn no_methods(&mut self, of: &Val<'a>, method: &ast::Ident) {
        let message = format!("{} has no method `{}`", of.what(), method.name);
        let mut d = Diagnostic::error(Code::UnknownName, method.span, message);
        let applied = matches!(of, Val::Table(_) | Val::Control(..) | Val::Parser(..));
        let methods = applied.then_some("apply").into_iter();
        if let Some(near) = super::scope::nearest(&method.name, methods) {
            d = d.hint(format!("did you mean `{near}`?"));
        }
        self.push(d);
    }

    /// A hint for a method that values of type `ty` do not have: the similar method that they do have.
    fn method_hint(&self, name: &str, ty: &Ty) -> Option<String> {
        let known: &[&str] = match ty {
            Ty::Stack(elem, _) if self.types.holds_validity(elem) => &["push_front", "pop_front"],
            _ if self.types.is_header(ty) => &["isValid", "setValid", "setInvalid"],
            _ if self.types.is_union(ty) => &["isValid"],
            _ => &[],
        };
        if let Some(near) = super::scope::nearest(name, known.iter().copied()) {
            return Some(format!("did you mean `{near}`?"));
        }
        let owners = match name {
            "isValid" => "only headers and header unions have",
            "setValid" | "setInvalid" => "only headers have",
            "push_front" | "pop_front" => "only header stacks have",
            _ => return None,
        };
        let mut hint = format!("{owners} `{name}`");
        match (name, ty) {
            ("isValid" | "setValid" | "setInvalid", Ty::Stack(..)) => {
                hint.push_str(&format!(": call it on an element, `…[0].{name}()`"));
            }
            _ => {
                let fits = |t: &Ty| match name {
                    "isValid" => self.types.is_header(t) || self.types.is_union(t),
                    "setValid" | "setInvalid" => self.types.is_header(t),
                    _ => matches!(t, Ty::Stack(..)),
                };
                let fields = self.types.strukt(ty).map_or(&[][..], |info| &info.fields);
                if let Some((field, _)) = fields.iter().find(|(_, t)| fits(t)) {
                    hint.push_str(&format!(": call it on a member, `….{field}.{name}()`"));
                }
            }
        }
        Some(hint)
    }

    fn writable(&mut self, p: &LVal, span: Span) -> bool {
        match p.read_only {
            Some(why) => {
                self.err(
                    Code::Placement,
                    span,
                    format!("this cannot be changed: {why}"),
                );
                false
            }
            None => self.may_run(span),
        }
    }

    pub(crate) fn no_args(&mut self, call: Call<'a, '_>) {
        if let Some(arg) = call.args.first() {
            self.err(Code::Type, arg.value.span, "this method takes no arguments");
        }
    }

    /// Evaluates `T.minSizeInBits()` and similar methods of a type (P4_16 1.2.5, section 9).
    pub(crate) fn size_method(
        &mut self,
        ty: &Ty,
        method: &ast::Ident,
        call: Call<'a, '_>,
    ) -> Option<Val<'a>> {
        if ty.is_poison() {
            return Some(Val::Poison);
        }
        if !is_size(&method.name) {
            let message = format!("{} has no method `{}`", self.types.show(ty), method.name);
            self.err(Code::UnknownName, method.span, message);
            return Some(self.poisoned(call));
        }
        self.no_args(call);
        let Some((min, max)) = self.types.bits(ty) else {
            let shown = self.types.show(ty);
            self.err(Code::Type, method.span, format!("{shown} has no size"));
            return Some(Val::Poison);
        };
        let n = match method.name.as_str() {
            "minSizeInBits" => min,
            "maxSizeInBits" => max,
            "minSizeInBytes" => min.div_ceil(8),
            _ => max.div_ceil(8),
        };
        Some(Val::Integer(BigInt::from(n)))
    }

    /// Evaluates `static_assert(condition, message)`.
    pub(crate) fn static_assert(&mut self, call: Call<'a, '_>) -> Val<'a> {
        let Some(cond) = call.args.first() else {
            self.err(Code::Type, call.span, "`static_assert` needs a condition");
            return Val::Poison;
        };
        let message = call.args.get(1).map(|a| &a.value.kind);
        let held = self.constant(&cond.value, &Ty::Bool);
        match held {
            Some(ir::Const::Bool(false)) if !self.assumed => {
                let text = match message {
                    Some(ast::ExprKind::Str(s)) => format!("static assertion failed: {s}"),
                    _ => "static assertion failed".to_owned(),
                };
                self.err(Code::Constant, call.span, text);
                Val::Poison
            }
            Some(ir::Const::Bool(_)) => Val::Expr(Ty::Bool, fold::boolean(true)),
            _ => Val::Poison,
        }
    }

    /// Lowers `verify(condition, error)`.
    pub(crate) fn verify(
        &mut self,
        proto: &'a ast::FunctionProto,
        call: Call<'a, '_>,
    ) -> Option<Val<'a>> {
        let (_, args, _) = self.prepare(proto, &[], call)?;
        let mut values = args.into_list().into_iter().filter_map(|a| match a {
            ir::Arg::In(e) => Some(e),
            _ => None,
        });
        if let (Some(cond), Some(error)) = (values.next(), values.next()) {
            self.emit(ir::StmtKind::Verify(cond, error), call.span);
        }
        None
    }

    /// Removes `verify` from all parsers: Tofino's parser does not have it, and Tofino's compiler ignores it as well.
    pub(crate) fn leave_out_verify(&mut self) {
        let mut left_out = Vec::new();
        for parser in self.out.parsers.iter_mut().flatten() {
            for state in &mut parser.states {
                ir::visit_mut(&mut state.body, &mut |stmt| {
                    if let ir::StmtKind::Verify(..) = stmt.kind {
                        stmt.kind = ir::StmtKind::Atomic(Vec::new(), Vec::new());
                        left_out.push(stmt.span);
                    }
                });
            }
        }
        for span in left_out {
            let message = "Tofino's parsers do not support `verify`: this one is left out";
            self.push(
                Diagnostic::warning(Code::Architecture, span, message)
                    .hint("check the condition in ingress, or select on the field"),
            );
        }
    }
}

fn is_size(name: &str) -> bool {
    matches!(
        name,
        "minSizeInBits" | "minSizeInBytes" | "maxSizeInBits" | "maxSizeInBytes"
    )
}
