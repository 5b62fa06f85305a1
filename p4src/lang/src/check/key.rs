//! Lowers the key fields of tables: checks which expressions can be matched, and names them for the control plane.

use super::Checker;
use super::order::Writes;
use super::types::Ty;
use super::unit::Body;
use super::value::Val;
use crate::ast::{self, ExprKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::lexer::is_hexadecimal;
use crate::source::SourceMap;

impl<'a> Checker<'a, '_> {
    /// Lowers a table's key fields from left to right; a field keeps its value if a call in a later field changes it.
    pub(crate) fn table_keys(
        &mut self,
        keys: &'a [ast::KeyElement],
        t: &mut ir::Table,
        types: &mut Vec<Ty>,
    ) {
        let mut marks = Vec::with_capacity(keys.len());
        for k in keys {
            self.table_key(k, t, types);
            marks.push(self.unit.block.len());
        }
        let (mut later, mut seen) = (Writes::default(), self.unit.block.len());
        for (i, at) in marks.into_iter().enumerate().rev() {
            self.add_writes(&mut later, at, seen);
            seen = at;
            let (Some(field), Some(ty), Some(k)) = (t.key.get_mut(i), types.get(i), keys.get(i))
            else {
                continue;
            };
            if later.reach(&field.expr) {
                let val = Val::Expr(ty.clone(), field.expr.clone());
                if let Val::Place(kept) = self.keep(val, at, k.expr.span) {
                    field.expr = kept.read().1;
                }
            }
        }
    }

    /// Lowers one key field and appends it to the table.
    fn table_key(&mut self, k: &'a ast::KeyElement, t: &mut ir::Table, types: &mut Vec<Ty>) {
        if !self.match_kinds.contains(&k.kind.name) {
            let mut d = Diagnostic::error(
                Code::UnknownName,
                k.kind.span,
                format!("unknown match kind `{}`", k.kind.name),
            );
            let known = self.match_kinds.iter().map(String::as_str);
            if let Some(near) = super::scope::nearest(&k.kind.name, known) {
                d = d.hint(format!("did you mean `{near}`?"));
            }
            self.push(d);
        }
        // Calls in a key run at each application of the table, just before the lookup.
        self.unit.body = Body::Apply;
        let val = self.expr(&k.expr, None);
        let lowered = self.rvalue(val, k.expr.span);
        self.unit.body = Body::Locals;
        let renamed = lowered.as_ref().and_then(|(_, e)| self.renamed_key(e));
        let (ty, expr) = match lowered {
            Some(x) => x,
            None => (Ty::Poison, super::fold::boolean(false)),
        };
        let bare = self.decay(self.types.strip_new(&ty).clone());
        let numeric = matches!(bare, Ty::Bit(_) | Ty::Int(_) | Ty::Var(_) | Ty::Poison);
        let scalar = numeric || matches!(bare, Ty::Bool | Ty::Enum(_) | Ty::Error | Ty::Varbit(_));
        if !scalar {
            let shown = self.types.show(&ty);
            self.err(
                Code::Type,
                k.expr.span,
                format!("a key field of type {shown} cannot be matched"),
            );
        } else if !numeric && matches!(k.kind.name.as_str(), "lpm" | "range") {
            let shown = self.types.show(&ty);
            self.err(
                Code::Type,
                k.expr.span,
                format!("`{}` needs a bit<> or int<>, not {shown}", k.kind.name),
            );
        }
        let written = renamed.unwrap_or_else(|| key_name(&self.source, &k.expr));
        if needs_name(&k.expr) && !k.annotations.iter().any(|a| a.name.name == "name") {
            self.push(
                Diagnostic::error(
                    Code::Type,
                    k.expr.span,
                    "this key expression needs a control-plane name",
                )
                .hint("write it after the match kind: `@name(\"…\")`"),
            );
        }
        let name = super::unit::given_name(&written, &k.annotations);
        let annotations = self.annotations(&k.annotations);
        use crate::p4info::is_hidden;
        // The control plane does not see the fields that a selector hashes.
        let shown = |kind: &str, annotations: &[ir::Annotation]| {
            kind != "selector" && !is_hidden(annotations)
        };
        let twice =
            |other: &ir::Key| other.name == name && shown(&other.match_kind, &other.annotations);
        if shown(&k.kind.name, &annotations) && t.key.iter().any(twice) {
            let message = format!("two fields of this key have the control-plane name `{name}`");
            // p4c accepts it: the control plane can use the ids.
            self.push(
                Diagnostic::warning(Code::Lint, k.expr.span, message)
                    .hint("rename one of them with `@name(\"…\")` after its match kind"),
            );
        }
        t.key.push(ir::Key {
            expr,
            match_kind: k.kind.name.clone(),
            name,
            declared: self.types.declared(&ty),
            annotations,
        });
        types.push(ty);
    }

    /// The name of a key field such as `h.a.b` if one of these fields has a `@name`: it replaces the field's own name, or with
    /// a leading dot the whole path up to the field. `None` without a `@name`.
    fn renamed_key(&self, e: &ir::Expr) -> Option<String> {
        let (lv, valid) = match &e.kind {
            ir::ExprKind::Read(lv) => (lv, false),
            ir::ExprKind::IsValid(lv) => (lv, true),
            _ => return None,
        };
        let var = self.unit.vars.get(lv.var.index())?;
        let (mut name, mut ty) = (var.name.clone(), var.ty.clone());
        let mut renamed = false;
        for step in &lv.path {
            match (step, &ty) {
                (ir::Access::Field(0), ir::Type::Struct(id))
                    if self.types.elements.values().any(|e| e == id) =>
                {
                    ty = self.types.ir.get(id.index())?.fields.first()?.ty.clone();
                }
                (ir::Access::Field(n), ir::Type::Struct(id)) => {
                    let field = self.types.ir.get(id.index())?.fields.get(*n as usize)?;
                    let given = field.annotations.iter().find(|a| a.name == "name");
                    let own = match given.map(|a| a.literals.as_slice()) {
                        Some([ast::Literal::Str(s)]) => {
                            renamed = true;
                            s
                        }
                        _ => &field.name,
                    };
                    name = super::unit::join(&name, own);
                    ty = field.ty.clone();
                }
                (ir::Access::Index(i), ir::Type::Stack(id, _)) => {
                    let n = super::fold::as_const(i).and_then(super::fold::number)?;
                    name = format!("{name}[{n}]");
                    ty = ir::Type::Struct(*id);
                }
                (ir::Access::Slice(hi, lo), _) => name = format!("{name}[{hi}:{lo}]"),
                _ => return None,
            }
        }
        if valid {
            name.push_str(".$valid$");
        }
        renamed.then_some(name)
    }
}

/// Whether a key expression needs a `@name`, because it is more than a field, slice, mask or validity.
fn needs_name(e: &ast::Expr) -> bool {
    match &e.kind {
        ExprKind::Name { .. } | ExprKind::Int { .. } | ExprKind::This | ExprKind::Type(_) => false,
        ExprKind::Member { base, .. } | ExprKind::Slice { base, .. } => needs_name(base),
        ExprKind::PartSelect { base, from, .. } => needs_name(base) || needs_name(from),
        ExprKind::Index { base, index } => needs_name(base) || needs_name(index),
        ExprKind::Cast { expr, .. } => needs_name(expr),
        ExprKind::Binary { first, rest } => {
            let masks =
                |next: &ast::Operation| next.op == ast::BinOp::And && !needs_name(&next.rhs);
            needs_name(first) || !rest.iter().all(masks)
        }
        ExprKind::Call { callee, .. } => match &callee.kind {
            ExprKind::Member { base, member } => member.name != "isValid" || needs_name(base),
            _ => true,
        },
        _ => true,
    }
}

/// A key field's name in P4Info: its expression as written, with `h.isValid()` as `h.$valid$`.
fn key_name(source: &SourceMap, e: &ast::Expr) -> String {
    let key_name = |e| key_name(source, e);
    match &e.kind {
        ExprKind::Name { name, .. } => name.name.clone(),
        ExprKind::Member { base, member } => format!("{}.{}", key_name(base), member.name),
        ExprKind::Index { base, index } => format!("{}[{}]", key_name(base), key_name(index)),
        ExprKind::Slice { base, hi, lo } => {
            format!("{}[{}:{}]", key_name(base), key_name(hi), key_name(lo))
        }
        ExprKind::PartSelect {
            base,
            from,
            width,
            upwards,
        } => {
            let sign = if *upwards { '+' } else { '-' };
            let (base, from, width) = (key_name(base), key_name(from), key_name(width));
            format!("{base}[{from}{sign}:{width}]")
        }
        ExprKind::Call { callee, .. } => match &callee.kind {
            ExprKind::Member { base, member } if member.name == "isValid" => {
                format!("{}.$valid$", key_name(base))
            }
            _ => format!("{}()", key_name(callee)),
        },
        ExprKind::Int { value, .. } => {
            // In the base of the source, as in p4c.
            match is_hexadecimal(source.slice(e.span)) {
                true => format!("{value:#x}"),
                false => value.to_string(),
            }
        }
        ExprKind::Bool(b) => b.to_string(),
        ExprKind::Binary { first, rest } => {
            let mut name = key_name(first);
            for next in rest {
                name += &format!(" {} {}", symbol(next.op), key_name(&next.rhs));
            }
            name
        }
        ExprKind::Unary { op, expr } => {
            let sign = match op {
                ast::UnOp::Not => "!",
                ast::UnOp::BitNot => "~",
                ast::UnOp::Neg => "-",
                ast::UnOp::Plus => "+",
            };
            format!("{sign}{}", key_name(expr))
        }
        ExprKind::Cast { expr, .. } => key_name(expr),
        ExprKind::This => "this".to_owned(),
        _ => "expression".to_owned(),
    }
}

fn symbol(op: ast::BinOp) -> &'static str {
    use ast::BinOp as B;
    match op {
        B::Mul => "*",
        B::Div => "/",
        B::Mod => "%",
        B::Add => "+",
        B::Sub => "-",
        B::AddSat => "|+|",
        B::SubSat => "|-|",
        B::Shl => "<<",
        B::Shr => ">>",
        B::Le => "<=",
        B::Ge => ">=",
        B::Lt => "<",
        B::Gt => ">",
        B::Ne => "!=",
        B::Eq => "==",
        B::And => "&",
        B::Xor => "^",
        B::Or => "|",
        B::Concat => "++",
        B::LogAnd => "&&",
        B::LogOr => "||",
    }
}
