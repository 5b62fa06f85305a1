//! Lowers parser transitions and keysets (P4_16 1.2.5, sections 13.6 and 8.15).

use super::Checker;
use super::fold;
use super::order::Writes;
use super::types::Ty;
use super::value::Val;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;

impl<'a> Checker<'a, '_> {
    /// Lowers the transition of a parser state.
    pub(crate) fn transition(&mut self, t: &'a ast::Transition) -> ir::Transition {
        let (keys, cases) = match t {
            ast::Transition::Direct(name) => return ir::Transition::Direct(self.target(name)),
            ast::Transition::Select { keys, cases, .. } => (keys, cases),
        };
        let mut types = Vec::with_capacity(keys.len());
        let mut sizes = Vec::with_capacity(keys.len());
        let mut lowered = Vec::with_capacity(keys.len());
        let vals = self.select_values(keys);
        for (key, val) in keys.iter().zip(vals) {
            if let Val::Integer(n) = &val {
                self.push(
                    Diagnostic::error(Code::Type, key.span, "this number needs a width")
                        .hint(format!("write `8w{n}`, `16w{n}` …")),
                );
                types.push(Ty::Poison);
                sizes.push(1);
                continue;
            }
            let Some((ty, e)) = self.rvalue(val, key.span) else {
                types.push(Ty::Poison);
                sizes.push(1);
                continue;
            };
            let before = types.len();
            self.select_key(ty, e, key.span, &mut types, &mut lowered);
            sizes.push(types.len() - before);
        }
        let complete = lowered.len() == types.len();
        let mut parts: Vec<Part> = vec![Part::default()];
        let mut covered: Option<Span> = None;
        for case in cases {
            if let Some(first) = covered {
                self.push(
                    Diagnostic::warning(Code::Unused, case.span, "this case is never reached")
                        .label(first, "this case matches every value"),
                );
            }
            let target = self.target(&case.state);
            let mut sets = None;
            let calls =
                self.block_of(|c| sets = c.case_keys(&case.keys, &types, &sizes, case.span));
            if !calls.is_empty() {
                parts.push(Part {
                    calls,
                    cases: Vec::new(),
                    span: case.span,
                });
            }
            if let Some(sets) = sets {
                if covered.is_none() && sets.iter().all(|k| matches!(k, ir::Keyset::Any)) {
                    covered = Some(case.span);
                }
                if let Some(part) = parts.last_mut() {
                    part.cases.push((sets, target));
                }
            }
        }
        if complete {
            self.select_in_parts(lowered, &types, parts)
        } else {
            ir::Transition::Direct(ir::Target::Reject)
        }
    }

    /// Evaluates the keys of a `select` from left to right; a key keeps its value if a call in a later key changes it.
    fn select_values(&mut self, keys: &'a [ast::Expr]) -> Vec<Val<'a>> {
        let mut marks = Vec::with_capacity(keys.len());
        let mut vals = Vec::with_capacity(keys.len());
        for key in keys {
            vals.push(self.expr(key, None));
            marks.push(self.unit.block.len());
        }
        let (mut later, mut seen) = (Writes::default(), self.unit.block.len());
        for ((val, key), at) in vals.iter_mut().zip(keys).zip(marks).rev() {
            self.add_writes(&mut later, at, seen);
            seen = at;
            *val = self.keep_changed(std::mem::take(val), at, &later, key.span);
        }
        vals
    }

    /// Lowers a `select` whose keysets contain calls. Keysets are evaluated from top to bottom, up to the first match (P4_16
    /// 1.2.5, section 13.6), so a case with a call begins a new state, which is entered if no earlier case matches.
    fn select_in_parts(
        &mut self,
        mut keys: Vec<ir::Expr>,
        types: &[Ty],
        mut parts: Vec<Part>,
    ) -> ir::Transition {
        if parts.len() > 1 {
            // The keys keep their values from before the calls.
            for (key, ty) in keys.iter_mut().zip(types) {
                let end = self.unit.block.len();
                let span = parts[0].span;
                let val = Val::Expr(ty.clone(), key.clone());
                if let Val::Place(kept) = self.keep(val, end, span) {
                    *key = kept.read().1;
                }
            }
        }
        let mut otherwise: Option<ir::Target> = None;
        while let Some(part) = parts.pop() {
            let mut cases = part.cases;
            if let Some(next) = otherwise {
                cases.push((vec![ir::Keyset::Any; keys.len()], next));
            }
            let transition = ir::Transition::Select {
                keys: keys.clone(),
                cases,
            };
            if parts.is_empty() {
                return transition;
            }
            let more = &mut self.unit.more_states;
            let id = ir::StateId(self.unit.written_states + more.len() as u32);
            more.push(ir::State {
                name: format!("select${}", more.len()),
                body: part.calls,
                transition,
                span: part.span,
            });
            otherwise = Some(ir::Target::State(id));
        }
        ir::Transition::Direct(ir::Target::Reject)
    }

    /// Lowers one `select` key; a tuple, list or struct becomes one key per scalar.
    fn select_key(
        &mut self,
        ty: Ty,
        e: ir::Expr,
        span: Span,
        types: &mut Vec<Ty>,
        out: &mut Vec<ir::Expr>,
    ) {
        let bare = self.types.strip_new(&ty).clone();
        match &bare {
            Ty::Bit(_)
            | Ty::Int(_)
            | Ty::Bool
            | Ty::SerEnum(_)
            | Ty::Enum(_)
            | Ty::Error
            | Ty::Var(_) => {
                types.push(ty);
                out.push(e);
            }
            Ty::Tuple(items) => {
                let items = items.clone();
                match e.kind {
                    ir::ExprKind::Tuple(parts) => {
                        for (part, t) in parts.into_iter().zip(items.iter()) {
                            self.select_key(t.clone(), part, span, types, out);
                        }
                    }
                    _ => {
                        let place = self.place_of(ty, e, span);
                        for (n, t) in items.iter().enumerate() {
                            let access = ir::Access::Field(n as u32);
                            let (t, e) = self.step(place.clone(), access, t.clone()).read();
                            self.select_key(t, e, span, types, out);
                        }
                    }
                }
            }
            Ty::Struct(i) if self.types.structs[*i as usize].kind == ast::StructKind::Struct => {
                let fields: Vec<Ty> = self.types.structs[*i as usize]
                    .fields
                    .iter()
                    .map(|(_, t)| t.clone())
                    .collect();
                let place = self.place_of(ty, e, span);
                for (n, t) in fields.into_iter().enumerate() {
                    let part = self.step(place.clone(), ir::Access::Field(n as u32), t);
                    let (t, e) = part.read();
                    self.select_key(t, e, span, types, out);
                }
            }
            Ty::Poison => types.push(Ty::Poison),
            _ => {
                let shown = self.types.show(&ty);
                self.err(
                    Code::Type,
                    span,
                    format!("`select` does not take values of type {shown}"),
                );
                types.push(Ty::Poison);
            }
        }
    }

    /// Checks the keysets of a case against the key types; a value set covers all keys, as the only keyset of its case.
    fn case_keys(
        &mut self,
        keys: &'a [ast::Keyset],
        types: &[Ty],
        sizes: &[usize],
        span: Span,
    ) -> Option<Vec<ir::Keyset>> {
        if let [ast::Keyset::Default(_)] = keys {
            return Some(vec![ir::Keyset::Any; types.len()]);
        }
        if let [ast::Keyset::Expr(e)] = keys
            && let ast::ExprKind::Name { absolute, name } = &e.kind
            && let Some(Val::ValueSet(id, elem)) = self.find(&name.name, name.span, *absolute)
        {
            self.value_set_fits(&elem, types, e.span);
            return Some(vec![ir::Keyset::ValueSet(id)]);
        }
        let keys = grouped_keys(keys, sizes, types.len());
        if keys.len() != types.len() {
            self.err(
                Code::Type,
                span,
                format!(
                    "{} keyset{} for {} selected value{}",
                    keys.len(),
                    if keys.len() == 1 { "" } else { "s" },
                    types.len(),
                    if types.len() == 1 { "" } else { "s" }
                ),
            );
            return None;
        }
        let mut out = Vec::with_capacity(keys.len());
        for (key, ty) in keys.into_iter().zip(types) {
            out.push(self.keyset(key, ty)?);
        }
        Some(out)
    }

    fn value_set_fits(&mut self, elem: &Ty, types: &[Ty], span: Span) {
        if elem.is_poison() {
            return;
        }
        let mut found = Vec::new();
        self.scalars(elem, &mut found);
        let same = found.len() == types.len()
            && found.iter().zip(types).all(|(a, b)| {
                a.is_poison() || b.is_poison() || self.types.ir(a) == self.types.ir(b)
            });
        if !same {
            let shown = self.types.show(elem);
            let selected: Vec<String> = types.iter().map(|t| self.types.show(t)).collect();
            let message = format!(
                "a value set of {shown} does not match the types of `select`: {}",
                selected.join(", ")
            );
            self.err(Code::Type, span, message);
        }
    }

    /// Appends the types of a composite value's scalars to `out`, in order.
    fn scalars(&self, ty: &Ty, out: &mut Vec<Ty>) {
        match ty {
            Ty::Struct(i) => {
                for (_, t) in &self.types.structs[*i as usize].fields {
                    self.scalars(t, out);
                }
            }
            Ty::Tuple(items) => items.iter().for_each(|t| self.scalars(t, out)),
            other => out.push(other.clone()),
        }
    }

    /// Lowers one keyset of a `select` case for a key of type `ty`; `None` after an error.
    pub(crate) fn keyset(&mut self, key: FlatKey<'a>, ty: &Ty) -> Option<ir::Keyset> {
        Some(match key {
            FlatKey::Any => ir::Keyset::Any,
            FlatKey::Value(e) => match &e.kind {
                ast::ExprKind::DontCare => ir::Keyset::Any,
                _ => ir::Keyset::Value(self.keyset_value(e, ty)?),
            },
            FlatKey::Mask(value, mask) => {
                let (v, m) = (self.keyset_value(value, ty), self.keyset_value(mask, ty));
                self.needs_bits(ty, value.span, "a mask");
                ir::Keyset::Mask(v?, m?)
            }
            FlatKey::Range(low, high) => {
                let (a, b) = (self.keyset_value(low, ty), self.keyset_value(high, ty));
                self.needs_bits(ty, low.span, "a range");
                let (a, b) = (a?, b?);
                if let (Some(x), Some(y)) = (
                    fold::as_const(&a).and_then(fold::number),
                    fold::as_const(&b).and_then(fold::number),
                ) && x > y
                {
                    self.warn(
                        Code::Lint,
                        low.span.to(high.span),
                        format!("the range {x}..{y} is empty"),
                    );
                }
                ir::Keyset::Range(a, b)
            }
        })
    }

    fn needs_bits(&mut self, ty: &Ty, span: Span, what: &str) {
        let bare = self.types.strip_new(ty);
        if !matches!(
            bare,
            Ty::Bit(_) | Ty::Int(_) | Ty::SerEnum(_) | Ty::Poison | Ty::Var(_)
        ) {
            let shown = self.types.show(ty);
            self.err(
                Code::Type,
                span,
                format!("{what} needs a bit<> or int<>, not {shown}"),
            );
        }
    }

    fn keyset_value(&mut self, e: &'a ast::Expr, ty: &Ty) -> Option<ir::Expr> {
        let val = self.expr(e, Some(ty));
        if ty.is_poison() {
            return None;
        }
        // A number in a keyset takes the key's width, also if the key is a new type or an enum.
        if let Val::Integer(n) = &val {
            let bare = self.decay(self.types.strip_new(ty).clone());
            return self.coerce(Val::Integer(n.clone()), &bare, e.span);
        }
        self.coerce(val, ty, e.span)
    }
}

/// Consecutive `select` cases that become one parser state, and the calls that run before the first of them.
#[derive(Default)]
struct Part {
    calls: ir::Block,
    cases: Vec<(Vec<ir::Keyset>, ir::Target)>,
    span: Span,
}

/// A keyset of one scalar key.
#[derive(Clone, Copy)]
pub(crate) enum FlatKey<'a> {
    Any,
    Value(&'a ast::Expr),
    Mask(&'a ast::Expr, &'a ast::Expr),
    Range(&'a ast::Expr, &'a ast::Expr),
}

/// Flattens keysets like [`flat_keys`], but a `_` for a key of several scalars stands for all of them.
fn grouped_keys<'a>(keys: &'a [ast::Keyset], sizes: &[usize], limit: usize) -> Vec<FlatKey<'a>> {
    if keys.len() != sizes.len() {
        return flat_keys(keys, limit);
    }
    let mut out = Vec::with_capacity(limit);
    for (key, size) in keys.iter().zip(sizes) {
        let any = match key {
            ast::Keyset::Default(_) => true,
            ast::Keyset::Expr(e) => matches!(e.kind, ast::ExprKind::DontCare),
            _ => false,
        };
        if any {
            out.extend(std::iter::repeat_n(FlatKey::Any, *size));
        } else {
            out.extend(flat_keys(std::slice::from_ref(key), *size));
        }
    }
    out
}

/// Flattens lists in keysets: `{ 1, 2 }` for a struct of two scalars, or for two keys. Returns at most `limit` + 1 keysets.
pub(crate) fn flat_keys<'a>(keys: &'a [ast::Keyset], limit: usize) -> Vec<FlatKey<'a>> {
    fn values<'a>(e: &'a ast::Expr, limit: usize, out: &mut Vec<FlatKey<'a>>) {
        match &e.kind {
            ast::ExprKind::List(items) => {
                for item in items {
                    if out.len() > limit {
                        return;
                    }
                    values(&item.value, limit, out);
                }
            }
            _ => out.push(FlatKey::Value(e)),
        }
    }
    let mut out = Vec::with_capacity(keys.len());
    for key in keys {
        match key {
            ast::Keyset::Default(_) => out.push(FlatKey::Any),
            ast::Keyset::Expr(e) => values(e, limit, &mut out),
            ast::Keyset::Mask(a, b) => out.push(FlatKey::Mask(a, b)),
            ast::Keyset::Range(a, b) => out.push(FlatKey::Range(a, b)),
        }
    }
    out
}
