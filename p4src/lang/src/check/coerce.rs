//! Converts a value to the type of its destination: implicit casts (P4_16 1.2.5, section 8.11.2) and initializers.

use super::Checker;
use super::fold;
use super::types::Ty;
use super::unit::UnitKind;
use super::value::{ListVal, Val};
use crate::ast::StructKind;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{self, Const, Expr, ExprKind};
use crate::source::Span;
use num_bigint::BigInt;

impl<'a> Checker<'a, '_> {
    /// Converts a value to a run-time expression of the type `ty`; `None` after an error.
    pub(crate) fn coerce(&mut self, val: Val<'a>, ty: &Ty, span: Span) -> Option<Expr> {
        match val {
            Val::Poison => None,
            Val::Integer(n) => self.integer_as(&n, ty, span),
            Val::Expr(from, e) => self.convert(from, e, ty, span),
            Val::Place(p) => {
                let (from, e) = p.read();
                self.convert(from, e, ty, span)
            }
            Val::List(list) => {
                if !self.enter(span) {
                    return None;
                }
                let e = self.list_as(&list, ty, span);
                self.leave();
                e
            }
            Val::Invalid => {
                if self.types.is_header(ty) || self.types.is_union(ty) {
                    Some(self.invalid(ty))
                } else {
                    if !ty.is_poison() {
                        let shown = self.types.show(ty);
                        self.err(
                            Code::Type,
                            span,
                            format!("expected {shown}, found {{#}}, an invalid header"),
                        );
                    }
                    None
                }
            }
            Val::Ellipsis => self.default_value(ty, span),
            other => {
                if !ty.is_poison() {
                    let message = format!(
                        "expected a value of type {}, found {}",
                        self.types.show(ty),
                        other.what()
                    );
                    let mut d = Diagnostic::error(Code::Type, span, message);
                    if matches!(other, Val::Functions(_) | Val::Action(..) | Val::Table(_)) {
                        d = d.hint("add `(…)` to call it");
                    }
                    self.push(d);
                }
                None
            }
        }
    }

    fn invalid(&self, ty: &Ty) -> Expr {
        Expr {
            kind: ExprKind::InvalidHeader,
            ty: self.types.ir(ty),
        }
    }

    /// Converts an `int` constant to the type `ty`.
    fn integer_as(&mut self, n: &BigInt, ty: &Ty, span: Span) -> Option<Expr> {
        match ty {
            Ty::Bit(_) | Ty::Int(_) => {
                let lowered = self.types.ir(ty);
                if !fold::fits(n, &lowered) {
                    let shown = self.types.show(ty);
                    let cut = fold::bits(n, &lowered);
                    let cut = fold::as_const(&cut)
                        .and_then(fold::number)
                        .unwrap_or_default();
                    self.warn(
                        Code::Constant,
                        span,
                        format!("{n} does not fit into {shown}: it is truncated to {cut}"),
                    );
                }
                Some(fold::bits(n, &lowered))
            }
            Ty::Integer => Some(fold::constant(Const::Integer(n.clone()), ir::Type::Bit(32))),
            // Section 8.11.2 names only `bit` and `int`, but p4c accepts a new type too.
            Ty::New(_) if self.types.strip_new(ty).width().is_some() => {
                let bare = self.types.strip_new(ty).clone();
                self.integer_as(n, &bare, span)
            }
            // A type parameter of a generic declaration that is checked without an instance.
            Ty::Var(_) => Some(fold::bits(n, &ir::Type::Bit(1))),
            // A type argument left open with `_`.
            Ty::DontCare => Some(fold::bits(n, &ir::Type::Bit(32))),
            Ty::Poison => None,
            _ => {
                self.mismatch(span, ty, &Ty::Integer);
                None
            }
        }
    }

    /// Converts a value of type `from` to the type `ty`.
    fn convert(&mut self, from: Ty, e: Expr, ty: &Ty, span: Span) -> Option<Expr> {
        if from == *ty {
            return Some(e);
        }
        match (&from, ty) {
            (Ty::Poison, _) | (_, Ty::Poison) => None,
            (Ty::SerEnum(i), _) if self.types.ser_enums[*i as usize].repr == *ty => Some(e),
            (_, Ty::DontCare) => Some(e),
            (Ty::Bit(_) | Ty::Int(_) | Ty::SerEnum(_), Ty::Integer) if fold::is_constant(&e) => {
                let n = fold::as_const(&e).and_then(fold::number)?;
                Some(fold::constant(Const::Integer(n), ir::Type::Bit(32)))
            }
            (Ty::Tuple(items), Ty::Tuple(wanted)) if items.len() == wanted.len() => {
                // Convert element by element if the tuple is a list of expressions.
                let (items, wanted) = (items.clone(), wanted.clone());
                match e.kind {
                    ExprKind::Tuple(parts) => {
                        let parts: Option<Vec<_>> = parts
                            .into_iter()
                            .zip(items.iter().zip(wanted.iter()))
                            .map(|(p, (f, t))| self.convert(f.clone(), p, t, span))
                            .collect();
                        Some(Expr {
                            kind: ExprKind::Tuple(parts?),
                            ty: self.types.ir(ty),
                        })
                    }
                    _ => {
                        self.mismatch(span, ty, &from);
                        None
                    }
                }
            }
            _ => {
                self.mismatch(span, ty, &from);
                None
            }
        }
    }

    /// Converts a list `{ … }` to a struct, header, tuple, stack or list.
    fn list_as(&mut self, list: &ListVal<'a>, ty: &Ty, span: Span) -> Option<Expr> {
        if list.rest && !self.write_out(1, span) {
            return None;
        }
        let bare = self.types.strip_new(ty).clone();
        let named = list.items.iter().find(|item| item.name.is_some());
        if let (Ty::Tuple(_) | Ty::Stack(..) | Ty::List(_), Some(item)) = (&bare, named) {
            let message = format!("{} has no named fields", self.types.show(ty));
            let hint = "write the elements in order, without names";
            self.push(Diagnostic::error(Code::Type, item.span, message).hint(hint));
            return None;
        }
        let parts = match &bare {
            Ty::Struct(i) => self.list_as_struct(list, *i, ty, span)?,
            Ty::Tuple(items) => {
                let types: Vec<&Ty> = items.iter().collect();
                self.by_position(list, &types, ty, span)?
            }
            Ty::Stack(elem, n) => self.list_as_stack(list, elem, *n, ty, span)?,
            Ty::List(elem) => {
                let mut parts = Vec::with_capacity(list.items.len());
                for item in &list.items {
                    parts.push(self.coerce(item.val.clone(), elem, item.span)?);
                }
                let ty = ir::Type::Tuple(parts.iter().map(|p| p.ty.clone()).collect());
                return Some(Expr {
                    kind: ExprKind::Tuple(parts),
                    ty,
                });
            }
            Ty::Poison => return None,
            // `{ x }` where a scalar is expected: v1model programs pass `{}` for unused arguments of type T.
            Ty::Var(_) => return Some(fold::bits(&BigInt::from(0), &ir::Type::Bit(1))),
            _ => {
                let shown = self.types.show(ty);
                self.err(Code::Type, span, format!("expected {shown}, found a list"));
                return None;
            }
        };
        Some(Expr {
            kind: ExprKind::Tuple(parts),
            ty: self.types.ir(ty),
        })
    }

    /// Converts a list to the struct or header with this `index` in [`super::types::Types`], whose type is `ty`.
    fn list_as_struct(
        &mut self,
        list: &ListVal<'a>,
        index: u32,
        ty: &Ty,
        span: Span,
    ) -> Option<Vec<Expr>> {
        let info = &self.types.structs[index as usize];
        if info.kind == StructKind::Union {
            let member = info.fields.first().map_or("h", |(name, _)| name.as_str());
            let hint =
                format!("assign to one of its headers, `u.{member} = {{ … }};`, or assign `{{#}}`");
            let message = "a header union cannot be made from a list";
            self.push(Diagnostic::error(Code::Type, span, message).hint(hint));
            return None;
        }
        let fields = info.fields.clone();
        if list.items.iter().any(|item| item.name.is_some()) {
            return self.by_name(list, index, &fields, span);
        }
        let types: Vec<&Ty> = fields.iter().map(|(_, t)| t).collect();
        self.by_position(list, &types, ty, span)
    }

    /// Converts a list to a stack of `n` elements, whose type is `ty`.
    fn list_as_stack(
        &mut self,
        list: &ListVal<'a>,
        elem: &Ty,
        n: u32,
        ty: &Ty,
        span: Span,
    ) -> Option<Vec<Expr>> {
        let n = n as usize;
        let given = list.items.len();
        if given > n {
            self.err(
                Code::Type,
                span,
                format!("the list has {given} elements, the stack only {n}"),
            );
            return None;
        }
        let mut parts = Vec::with_capacity(n);
        for item in &list.items {
            let part = self.coerce(item.val.clone(), elem, item.span)?;
            parts.push(self.element_value(elem, part));
        }
        if given < n && !list.rest {
            let shown = self.types.show(ty);
            let message = format!("{shown} has {n} elements, the list has {given}");
            let hint = "end the list with `...` to set the others to default values";
            self.push(Diagnostic::error(Code::Type, span, message).hint(hint));
            return None;
        }
        while parts.len() < n {
            let part = self.default_value(elem, span)?;
            parts.push(self.element_value(elem, part));
        }
        Some(parts)
    }

    /// An element of an array as the IR represents it: a value that is not a struct becomes a one-field struct.
    fn element_value(&self, elem: &Ty, value: Expr) -> Expr {
        match self.types.element(elem) {
            Some(id) => Expr {
                kind: ExprKind::Tuple(vec![value]),
                ty: ir::Type::Struct(id),
            },
            None => value,
        }
    }

    fn by_position(
        &mut self,
        list: &ListVal<'a>,
        types: &[&Ty],
        whole: &Ty,
        span: Span,
    ) -> Option<Vec<Expr>> {
        let wrong = if list.rest {
            list.items.len() > types.len()
        } else {
            list.items.len() != types.len()
        };
        if wrong {
            let message = format!(
                "{} has {} field{}, the list has {}",
                self.types.show(whole),
                types.len(),
                if types.len() == 1 { "" } else { "s" },
                list.items.len()
            );
            let mut d = Diagnostic::error(Code::Type, span, message);
            if list.items.len() < types.len() {
                d = d.hint("end the list with `...` to set the other fields to default values");
            }
            self.push(d);
            return None;
        }
        let mut parts = Vec::with_capacity(types.len());
        let mut ok = true;
        for (i, ty) in types.iter().enumerate() {
            let part = match list.items.get(i) {
                Some(item) => self.coerce(item.val.clone(), ty, item.span),
                None => self.default_value(ty, span),
            };
            match part {
                Some(p) => parts.push(p),
                None => ok = false,
            }
        }
        ok.then_some(parts)
    }

    fn by_name(
        &mut self,
        list: &ListVal<'a>,
        index: u32,
        fields: &[(String, Ty)],
        span: Span,
    ) -> Option<Vec<Expr>> {
        let mut parts: Vec<Option<Expr>> = vec![None; fields.len()];
        let mut given = vec![false; fields.len()];
        let mut ok = true;
        for item in &list.items {
            let Some(name) = item.name else {
                self.err(Code::Type, item.span, "name all fields or none");
                ok = false;
                continue;
            };
            let at = self.types.structs[index as usize]
                .index
                .get(&name.name)
                .copied();
            let Some(at) = at.map(|n| n as usize) else {
                self.no_field(name, &Ty::Struct(index));
                ok = false;
                continue;
            };
            if std::mem::replace(&mut given[at], true) {
                self.err(
                    Code::Duplicate,
                    name.span,
                    format!("field `{}` is given twice", name.name),
                );
            }
            parts[at] = self.coerce(item.val.clone(), &fields[at].1, item.span);
            ok &= parts[at].is_some();
        }
        for (i, (name, ty)) in fields.iter().enumerate() {
            if given[i] {
                continue;
            }
            if list.rest {
                parts[i] = self.default_value(ty, span);
                ok &= parts[i].is_some();
            } else {
                self.push(
                    Diagnostic::error(Code::Type, span, format!("field `{name}` is missing"))
                        .hint("end the list with `...` to set missing fields to default values"),
                );
                ok = false;
            }
        }
        if ok {
            parts.into_iter().collect()
        } else {
            None
        }
    }

    /// The default value of a type (P4_16 1.2.5, section 7.3).
    pub(crate) fn default_value(&mut self, ty: &Ty, span: Span) -> Option<Expr> {
        if !self.write_out(1, span) {
            return None;
        }
        let lowered = self.types.ir(ty);
        let bare = self.types.strip_new(ty).clone();
        Some(match &bare {
            Ty::Bit(_) | Ty::Int(_) | Ty::SerEnum(_) => fold::bits(&BigInt::from(0), &lowered),
            Ty::Bool => fold::boolean(false),
            Ty::Error => fold::constant(Const::Error(0), lowered),
            Ty::Enum(i) => fold::constant(Const::Enum(ir::EnumId(*i), 0), lowered),
            Ty::Struct(i) => {
                let info = &self.types.structs[*i as usize];
                if info.kind != StructKind::Struct {
                    return Some(self.invalid(ty));
                }
                let fields = info.fields.clone();
                if !self.enter(span) {
                    return None;
                }
                let parts: Option<Vec<_>> = fields
                    .iter()
                    .map(|(_, t)| self.default_value(t, span))
                    .collect();
                self.leave();
                Expr {
                    kind: ExprKind::Tuple(parts?),
                    ty: lowered,
                }
            }
            Ty::Tuple(items) => {
                let parts: Option<Vec<_>> =
                    items.iter().map(|t| self.default_value(t, span)).collect();
                Expr {
                    kind: ExprKind::Tuple(parts?),
                    ty: lowered,
                }
            }
            Ty::Stack(elem, n) => {
                let part = self.default_value(elem, span)?;
                if !self.write_out(*n as usize, span) {
                    return None;
                }
                let parts = vec![self.element_value(elem, part); *n as usize];
                Expr {
                    kind: ExprKind::Tuple(parts),
                    ty: lowered,
                }
            }
            Ty::Integer => fold::constant(Const::Integer(BigInt::from(0)), lowered),
            // A varbit of length 0. It has no literal, so use a freshly reset variable.
            Ty::Varbit(_) if self.unit.kind != UnitKind::Top => {
                let fresh = self.temp(ty);
                self.emit(ir::StmtKind::Reset(fresh.lv.clone()), span);
                fresh.read().1
            }
            Ty::Poison => return None,
            _ => {
                let shown = self.types.show(ty);
                self.err(Code::Type, span, format!("{shown} has no default value"));
                return None;
            }
        })
    }

    /// The type that a value has by itself; the type of a list is a tuple. `None` for a value without a type, such as `...`.
    pub(crate) fn type_of(&self, val: &Val<'a>) -> Option<Ty> {
        Some(match val {
            Val::Integer(_) => Ty::Integer,
            Val::Expr(ty, _) => ty.clone(),
            Val::Place(p) => p.ty.clone(),
            Val::Extern(_, ty) | Val::Object(_, ty) | Val::Package(_, ty) => ty.clone(),
            // A list with names is the value of a struct, but its type is unknown.
            Val::List(list) if list.items.iter().any(|i| i.name.is_some()) => return None,
            Val::List(list) => {
                let items: Option<Vec<Ty>> =
                    list.items.iter().map(|i| self.type_of(&i.val)).collect();
                Ty::Tuple(items?.into())
            }
            Val::Parser(_, i) => Ty::Parser(*i, [].into()),
            Val::Control(_, i) => Ty::Control(*i, [].into()),
            _ => return None,
        })
    }
}
