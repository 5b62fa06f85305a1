//! Checks member access and indexing: `e.m` and `e[i]`.

use super::Checker;
use super::fold;
use super::scope::nearest;
use super::types::Ty;
use super::value::{LVal, Val};
use crate::ast::{self, ExprKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{self, Access};
use crate::source::Span;
use num_bigint::BigInt;
use num_traits::ToPrimitive;

impl<'a> Checker<'a, '_> {
    /// Checks the member access `base.member`.
    pub(crate) fn member(
        &mut self,
        base: &'a ast::Expr,
        member: &'a ast::Ident,
        span: Span,
    ) -> Val<'a> {
        if let Some(val) = self.apply_result(base, member) {
            return val;
        }
        match self.expr(base, None) {
            Val::Poison => Val::Poison,
            Val::Place(p) => self.place_member(p, member),
            Val::Type(ty) => self.type_member(&ty, member),
            Val::Expr(ty, e) => self.value_member(ty, e, member, span),
            Val::List(list) => {
                let found = list
                    .items
                    .iter()
                    .find(|i| i.name.is_some_and(|n| n.name == member.name));
                match found {
                    Some(item) => item.val.clone(),
                    None => {
                        self.err(
                            Code::UnknownName,
                            member.span,
                            format!("the list has no field `{}`", member.name),
                        );
                        Val::Poison
                    }
                }
            }
            other => {
                let what = other.what();
                self.err(
                    Code::UnknownName,
                    member.span,
                    format!("{what} has no member `{}`", member.name),
                );
                Val::Poison
            }
        }
    }

    fn place_member(&mut self, p: LVal, member: &ast::Ident) -> Val<'a> {
        let bare = self.types.strip_new(&p.ty).clone();
        match &bare {
            Ty::Struct(i) => {
                let info = &self.types.structs[*i as usize];
                match info.index.get(&member.name) {
                    Some(&n) => {
                        let ty = info.fields[n as usize].1.clone();
                        Val::Place(self.step(p, Access::Field(n), ty))
                    }
                    None => {
                        self.no_field(member, &p.ty);
                        Val::Poison
                    }
                }
            }
            Ty::Stack(elem, n) => {
                let elem = (**elem).clone();
                if !self.types.is_header(&elem) && !self.types.is_union(&elem) {
                    self.no_field(member, &p.ty);
                    return Val::Poison;
                }
                self.stack_member(p, elem, *n, member)
            }
            Ty::Poison => Val::Poison,
            _ => {
                self.no_field(member, &p.ty);
                Val::Poison
            }
        }
    }

    fn stack_member(&mut self, p: LVal, elem: Ty, n: u32, member: &ast::Ident) -> Val<'a> {
        let in_parser = matches!(self.unit.kind, super::unit::UnitKind::Parser);
        match member.name.as_str() {
            "next" | "last" | "lastIndex" if !in_parser => {
                self.push(
                    Diagnostic::error(
                        Code::Placement,
                        member.span,
                        format!("`{}` of a stack exists only in parsers", member.name),
                    )
                    .hint("in a control, use an index: `stack[0]`"),
                );
                Val::Poison
            }
            "next" => Val::Place(self.step(p, Access::Next, elem)),
            "last" => Val::Place(self.step(p, Access::Last, elem)),
            "lastIndex" => {
                let kind = ir::ExprKind::LastIndex(p.lv);
                let ty = ir::Type::Bit(32);
                Val::Expr(Ty::Bit(32), ir::Expr { kind, ty })
            }
            "nextIndex" => {
                self.push(
                    Diagnostic::error(
                        Code::UnknownName,
                        member.span,
                        "a header stack has no readable `nextIndex`",
                    )
                    .hint("use `lastIndex`, the index of the element extracted last"),
                );
                Val::Poison
            }
            "size" => Val::Expr(Ty::Bit(32), size_of_stack(n)),
            _ => {
                self.no_field(member, &p.ty);
                Val::Poison
            }
        }
    }

    fn value_member(&mut self, ty: Ty, e: ir::Expr, member: &ast::Ident, span: Span) -> Val<'a> {
        if let (Some(info), ir::ExprKind::Tuple(parts)) = (self.types.strukt(&ty), &e.kind)
            && let Some(&n) = info.index.get(&member.name)
            && let Some(part) = parts.get(n as usize)
        {
            return Val::Expr(info.fields[n as usize].1.clone(), part.clone());
        }
        if let (Ty::Stack(elem, n), "size") = (self.types.strip_new(&ty), member.name.as_str())
            && (self.types.is_header(elem) || self.types.is_union(elem))
        {
            return Val::Expr(Ty::Bit(32), size_of_stack(*n));
        }
        if ty.is_poison() {
            return Val::Poison;
        }
        if self.types.strukt(self.types.strip_new(&ty)).is_none() {
            self.no_field(member, &ty);
            return Val::Poison;
        }
        let p = self.place_of(ty, e, span);
        self.place_member(p, member)
    }

    /// Checks a member of a type: `E.A` or `error.X`.
    fn type_member(&mut self, ty: &Ty, member: &ast::Ident) -> Val<'a> {
        let name = member.name.as_str();
        let (found, names): (Option<Val<'a>>, Vec<String>) = match ty {
            Ty::Error => {
                let found = self.error_index.get(name).map(|&i| {
                    Val::Expr(
                        Ty::Error,
                        fold::constant(ir::Const::Error(i), ir::Type::Error),
                    )
                });
                (found, self.errors.clone())
            }
            Ty::Enum(i) => {
                let info = &self.types.enums[*i as usize];
                let found = info.members.iter().position(|m| m == name).map(|n| {
                    let id = ir::EnumId(*i);
                    Val::Expr(
                        ty.clone(),
                        fold::constant(ir::Const::Enum(id, n as u32), ir::Type::Enum(id)),
                    )
                });
                (found, info.members.clone())
            }
            Ty::SerEnum(i) => {
                let info = &self.types.ser_enums[*i as usize];
                let lowered = self.types.ir(&info.repr);
                let found = info.members.iter().find(|(m, _)| m == name).map(|(_, v)| {
                    Val::Expr(
                        ty.clone(),
                        fold::constant(
                            ir::Const::Bits {
                                value: v.clone(),
                                ty: lowered.clone(),
                            },
                            lowered,
                        ),
                    )
                });
                let names = info.members.iter().map(|(m, _)| m.clone()).collect();
                (found, names)
            }
            Ty::Poison => return Val::Poison,
            _ => (None, Vec::new()),
        };
        if let Some(val) = found {
            return val;
        }
        let message = format!("{} has no member `{name}`", self.types.show(ty));
        let mut d = Diagnostic::error(Code::UnknownName, member.span, message);
        if let Some(near) = nearest(name, names.iter().map(String::as_str)) {
            d = d.hint(format!("did you mean `{near}`?"));
        }
        self.push(d);
        Val::Poison
    }

    /// Reports `hdr has no field x`, with the nearest field name as a hint.
    pub(crate) fn no_field(&mut self, name: &ast::Ident, ty: &Ty) {
        if ty.is_poison() {
            return;
        }
        let message = format!("{} has no field `{}`", self.types.show(ty), name.name);
        let mut d = Diagnostic::error(Code::UnknownName, name.span, message);
        if let Some(info) = self.types.strukt(self.types.strip_new(ty)) {
            let names = info.fields.iter().map(|(n, _)| n.as_str());
            if let Some(near) = nearest(&name.name, names) {
                d = d.hint(format!("did you mean `{near}`?"));
            }
        }
        self.push(d);
    }

    /// Extends an lvalue by one step, such as a field, which has type `ty`.
    pub(crate) fn step(&self, mut p: LVal, access: Access, ty: Ty) -> LVal {
        p.lv.path.push(access);
        p.lv.ty = self.types.ir(&ty);
        p.ty = ty;
        p
    }

    /// Element `at` of an array, as an lvalue. In the IR, an element that is not a struct is the only field of a struct.
    pub(crate) fn element(&self, array: LVal, at: ir::Expr, elem: &Ty) -> LVal {
        let p = self.step(array, Access::Index(Box::new(at)), elem.clone());
        match self.types.element(elem) {
            Some(_) => self.step(p, Access::Field(0), elem.clone()),
            None => p,
        }
    }

    /// Element `at` of an array given as a list, without the one-field struct around it in the IR; `None` if it is not a list.
    pub(crate) fn written_element(
        &self,
        array: &ir::Expr,
        at: usize,
        elem: &Ty,
    ) -> Option<ir::Expr> {
        let ir::ExprKind::Tuple(parts) = &array.kind else {
            return None;
        };
        let part = parts.get(at)?;
        match (&part.kind, self.types.element(elem)) {
            (ir::ExprKind::Tuple(only), Some(_)) => only.first().cloned(),
            (_, Some(_)) => None,
            (_, None) => Some(part.clone()),
        }
    }

    /// Checks the index expression `base[index]`.
    pub(crate) fn index(
        &mut self,
        base: &'a ast::Expr,
        index: &'a ast::Expr,
        span: Span,
    ) -> Val<'a> {
        let mut val = self.expr(base, None);
        let mark = self.unit.block.len();
        let at = self.expr(index, None);
        let moved = self.unit.block.len() > mark;
        if let (true, Val::Place(p)) = (moved, &mut val) {
            let later = self.writes_from(mark);
            self.freeze(p, mark, &later, base.span);
        }
        if matches!((&val, &at), (Val::Poison, _) | (_, Val::Poison)) {
            return Val::Poison;
        }
        if let Val::List(list) = &val {
            let item = self
                .as_integer(at, index.span)
                .and_then(|n| n.to_usize())
                .and_then(|n| list.items.get(n));
            return match item {
                Some(item) => item.val.clone(),
                None => {
                    self.err(Code::Constant, index.span, "the list has no such element");
                    Val::Poison
                }
            };
        }
        let Some((ty, e)) = self.indexable(val, base.span) else {
            return Val::Poison;
        };
        let bare = self.types.strip_new(&ty).clone();
        match &bare {
            Ty::Tuple(items) => {
                let Some(n) = self.as_integer(at, index.span) else {
                    return Val::Poison;
                };
                let Some((n, item)) = n.to_usize().and_then(|i| Some((i, items.get(i)?))) else {
                    self.err(
                        Code::Constant,
                        index.span,
                        format!("the tuple has only {} elements", items.len()),
                    );
                    return Val::Poison;
                };
                match e {
                    // Like p4c, treat it as a place; P4_16 1.2.5 (section 8.13) forbids assigning to it.
                    Ok(p) => Val::Place(self.step(p, Access::Field(n as u32), item.clone())),
                    Err(value) => {
                        if let ir::ExprKind::Tuple(parts) = &value.kind
                            && let Some(part) = parts.get(n)
                        {
                            return Val::Expr(item.clone(), part.clone());
                        }
                        let p = self.place_of(ty, value, span);
                        Val::Place(self.step(p, Access::Field(n as u32), item.clone()))
                    }
                }
            }
            Ty::Stack(elem, n) => {
                let elem = (**elem).clone();
                let Some(mut at) = self.stack_index(at, *n, index.span) else {
                    return Val::Poison;
                };
                if moved {
                    // Save the index here, because later expressions may change its variables.
                    at = self.place_of(Ty::Bit(32), at, index.span).read().1;
                }
                let p = match e {
                    Ok(p) => p,
                    Err(value) => {
                        let n = fold::as_const(&at).and_then(fold::number);
                        if let Some(part) =
                            n.and_then(|n| self.written_element(&value, n.to_usize()?, &elem))
                        {
                            return Val::Expr(elem, part);
                        }
                        self.place_of(ty, value, span)
                    }
                };
                Val::Place(self.element(p, at, &elem))
            }
            Ty::Poison => Val::Poison,
            _ => {
                let shown = self.types.show(&ty);
                self.err(
                    Code::Type,
                    base.span,
                    format!("only stacks and tuples have an index, not {shown}"),
                );
                Val::Poison
            }
        }
    }

    fn indexable(&mut self, val: Val<'a>, span: Span) -> Option<(Ty, Result<LVal, ir::Expr>)> {
        match val {
            Val::Place(p) => Some((p.ty.clone(), Ok(p))),
            other => {
                let (ty, e) = self.rvalue(other, span)?;
                Some((ty, Err(e)))
            }
        }
    }

    fn stack_index(&mut self, at: Val<'a>, size: u32, span: Span) -> Option<ir::Expr> {
        let e = match at {
            Val::Integer(n) => fold::bits(&n, &ir::Type::Bit(32)),
            other => {
                let (ty, e) = self.rvalue(other, span)?;
                if !matches!(
                    self.types.strip_new(&self.decay(ty.clone())),
                    Ty::Bit(_) | Ty::Int(_) | Ty::Var(_)
                ) {
                    let shown = self.types.show(&ty);
                    self.err(
                        Code::Type,
                        span,
                        format!("an index must be a bit<> or int<>, not {shown}"),
                    );
                    return None;
                }
                e
            }
        };
        if let Some(n) = fold::as_const(&e).and_then(fold::number)
            && n.to_u32().is_none_or(|n| n >= size)
        {
            self.err(
                Code::Constant,
                span,
                format!("index {n} is out of range: the stack has {size} elements"),
            );
            return None;
        }
        Some(e)
    }

    /// Checks `t.apply().hit` and `t.apply().miss`; `None` for other members. `action_run` is only allowed in a `switch`.
    fn apply_result(&mut self, base: &'a ast::Expr, member: &'a ast::Ident) -> Option<Val<'a>> {
        let ExprKind::Call { callee, args, .. } = &base.kind else {
            return None;
        };
        let ExprKind::Member {
            base: table,
            member: method,
        } = &callee.kind
        else {
            return None;
        };
        if method.name != "apply" || !matches!(member.name.as_str(), "hit" | "miss" | "action_run")
        {
            return None;
        }
        let id = match self.expr(table, None) {
            Val::Table(id) => id,
            Val::Poison => return Some(Val::Poison),
            other => {
                let what = other.what();
                self.err(
                    Code::UnknownName,
                    member.span,
                    format!("`apply()` of {what} has no `{}`", member.name),
                );
                return Some(Val::Poison);
            }
        };
        if let Some(arg) = args.first() {
            self.err(
                Code::Type,
                arg.value.span,
                "`apply` of a table takes no arguments",
            );
        }
        if member.name == "action_run" {
            self.err(
                Code::Placement,
                member.span,
                "`action_run` is allowed only in `switch (t.apply().action_run) { … }`",
            );
            return Some(Val::Poison);
        }
        if !self.may_apply(base.span) {
            return Some(Val::Poison);
        }
        let hit = self.temp(&Ty::Bool);
        self.emit_apply(id, Some(hit.lv.var), None, base.span);
        if member.name == "hit" {
            return Some(Val::Place(hit));
        }
        let e = fold::unary(ir::UnOp::Not, hit.read().1);
        Some(Val::Expr(Ty::Bool, e))
    }
}

fn size_of_stack(n: u32) -> ir::Expr {
    fold::bits(&BigInt::from(n), &ir::Type::Bit(32))
}
