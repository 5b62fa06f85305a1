//! Tables: key, actions, properties (P4_16 1.2.5, section 14.2).

use super::Checker;
use super::infer::Signature;
use super::types::Ty;
use super::unit::{Body, given_name, join};
use super::value::Val;
use crate::ast::{self, ExprKind, TablePropertyKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;

/// Values that a table's entries are read with.
pub(crate) struct EntryRules {
    pub(crate) largest_wins: bool,
    pub(crate) delta: u64,
}

impl<'a> Checker<'a, '_> {
    /// A table of the current control.
    pub(crate) fn table(&mut self, decl: &'a ast::Decl, table: &'a ast::TableDecl) -> Val<'a> {
        let body = std::mem::replace(&mut self.unit.body, Body::Locals);
        self.unit.bound_texts.clear();
        let mut t = ir::Table {
            name: self.full_name(&table.name.name, &decl.annotations),
            key: Vec::new(),
            actions: Vec::new(),
            default_action: ir::BoundAction {
                action: None,
                args: Vec::new(),
            },
            const_default: false,
            empty_group_action: None,
            entries: Vec::new(),
            const_entries: false,
            size: None,
            properties: Vec::new(),
            annotations: self.annotations(&decl.annotations),
            span: decl.span,
        };
        let errors = self.sink.error_count();
        self.once_each(table);
        let repeated = self.sink.error_count() > errors;
        // Key and actions first: the other properties refer to them, in whatever order they are written.
        let mut key_types = Vec::new();
        let mut decls = Vec::new();
        let mut key_block = Vec::new();
        for p in &table.properties {
            match &p.kind {
                TablePropertyKind::Key(keys) => {
                    key_block.extend(self.block_of(|c| c.table_keys(keys, &mut t, &mut key_types)));
                }
                TablePropertyKind::Actions(actions) => {
                    for a in actions {
                        self.table_action(a, &mut t, &mut decls);
                    }
                }
                _ => {}
            }
        }
        // Where a property stands twice, one of them may be meant to be the actions.
        if decls.is_empty()
            && !repeated
            && !table
                .properties
                .iter()
                .any(|p| matches!(p.kind, TablePropertyKind::Actions(_)))
        {
            self.push(
                Diagnostic::error(
                    Code::Type,
                    table.name.span,
                    format!("table `{}` has no actions", table.name.name),
                )
                .hint("`actions = { … }`"),
            );
        }
        let mut rules = EntryRules {
            largest_wins: true,
            delta: 1,
        };
        for p in &table.properties {
            if let TablePropertyKind::Other { name, value } = &p.kind {
                if name.name == "default_action" {
                    let actions =
                        |k: &TablePropertyKind| matches!(k, TablePropertyKind::Actions(_));
                    let message = "the default action stands behind the table's actions";
                    self.stands_behind(table, p, actions, message);
                }
                self.table_property(p, name, value, &mut t, &decls, &mut rules);
            }
        }
        for p in &table.properties {
            if let TablePropertyKind::Entries(entries) = &p.kind {
                if t.key.is_empty() && !entries.is_empty() {
                    self.push(
                        Diagnostic::error(
                            Code::Type,
                            table.name.span,
                            "a table without a key has no entries",
                        )
                        .label(p.span, "the entries"),
                    );
                    continue;
                }
                let before = |k: &TablePropertyKind| {
                    matches!(k, TablePropertyKind::Key(_) | TablePropertyKind::Actions(_))
                };
                self.stands_behind(
                    table,
                    p,
                    before,
                    "entries stand behind the table's key and actions",
                );
                t.const_entries = p.is_const;
                self.table_entries(p, &mut t, &key_types, &decls, &rules);
            }
        }
        if t.default_action.action.is_none() {
            self.check_no_action();
        }
        self.unit.body = body;
        let id = ir::TableId(self.unit.tables.len() as u32);
        self.unit.tables.push(t);
        self.unit.key_blocks.push(key_block);
        Val::Table(id)
    }

    /// Arguments as written, without white space.
    fn texts(&self, args: &[ast::Arg]) -> Vec<String> {
        args.iter()
            .map(|a| self.source.slice(a.value.span).split_whitespace().collect())
            .collect()
    }

    /// A table without a default action runs core.p4's `NoAction`, so that must be what it is there.
    fn check_no_action(&mut self) {
        let Some(entry) = self.globals.get("NoAction") else {
            return;
        };
        let fits = match &entry.val {
            Val::GlobalAction(i) => {
                super::action::action_params(self.actions[*i as usize].decl).is_empty()
            }
            Val::Poison => true,
            _ => false,
        };
        let span = entry.span;
        if !fits {
            self.err(
                Code::Type,
                span,
                "`NoAction` must be an action without parameters: tables fall back on it",
            );
        }
    }

    /// What refers to other properties stands behind them (P4_16 1.2.5, sections 14.2.1.3 and 14.2.1.4).
    fn stands_behind(
        &mut self,
        table: &'a ast::TableDecl,
        property: &'a ast::TableProperty,
        others: impl Fn(&TablePropertyKind) -> bool,
        message: &str,
    ) {
        let behind =
            |p: &&ast::TableProperty| others(&p.kind) && p.span.start > property.span.start;
        if let Some(later) = table.properties.iter().find(behind) {
            self.push(
                Diagnostic::error(Code::Placement, property.span, message)
                    .label(later.span, "this comes first"),
            );
        }
    }

    fn once_each(&mut self, table: &'a ast::TableDecl) {
        let mut seen: Vec<&str> = Vec::new();
        for p in &table.properties {
            let name = match &p.kind {
                TablePropertyKind::Key(_) => "key",
                TablePropertyKind::Actions(_) => "actions",
                TablePropertyKind::Entries(_) => "entries",
                TablePropertyKind::Other { name, .. } => &name.name,
            };
            if seen.contains(&name) {
                self.err(
                    Code::Duplicate,
                    p.span,
                    format!("table property `{name}` is given twice"),
                );
            }
            seen.push(name);
        }
    }

    fn table_action(
        &mut self,
        a: &'a ast::TableAction,
        t: &mut ir::Table,
        decls: &mut Vec<&'a ast::Decl>,
    ) {
        let (callee, written): (&'a ast::Expr, &'a [ast::Arg]) = match &a.expr.kind {
            ExprKind::Call { callee, args, .. } => (callee, args),
            _ => (&a.expr, &[]),
        };
        let Some((action, decl)) = self.named_action(callee) else {
            return;
        };
        if t.actions.iter().any(|x| x.action == action) {
            self.err(Code::Duplicate, a.expr.span, "this action is listed twice");
            return;
        }
        let mut sig = self.action_signature(action, decl);
        let bound = sig
            .params
            .iter()
            .take_while(|p| p.direction != ast::Direction::None)
            .count();
        sig.params = &sig.params[..bound];
        sig.types.truncate(bound);
        let name = super::decls::decl_name(decl).map_or("action", |n| n.name.as_str());
        let (args, calls) = self.directed_args(&sig, written, name, a.expr.span);
        let applies = |s: &ir::Stmt| {
            matches!(
                s.kind,
                ir::StmtKind::ApplyTable { .. } | ir::StmtKind::ApplyControl(..)
            )
        };
        if calls.iter().any(applies) {
            self.err(
                Code::Placement,
                a.expr.span,
                "a table cannot be applied in an argument of a table's action",
            );
        }
        self.unit.bound_texts.push(self.texts(written));
        let annotations = self.annotations(&a.annotations);
        t.actions.push(ir::TableAction {
            action,
            args,
            calls,
            annotations,
        });
        decls.push(decl);
    }

    /// Arguments of an action's directional parameters, as bound in `actions`.
    fn directed_args(
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
        let mut infer = super::infer::Infer::default();
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

    fn table_property(
        &mut self,
        p: &'a ast::TableProperty,
        name: &'a ast::Ident,
        value: &'a ast::Expr,
        t: &mut ir::Table,
        decls: &[&'a ast::Decl],
        rules: &mut EntryRules,
    ) {
        match name.name.as_str() {
            "default_action" => {
                t.const_default = p.is_const;
                if let Some(bound) = self.bound_action(value, t, decls, true) {
                    t.default_action = bound;
                }
            }
            "psa_empty_group_action" => {
                t.empty_group_action = self.bound_action(value, t, decls, true);
            }
            "size" => t.size = self.small_constant::<u64>(value),
            "largest_priority_wins" => {
                if let Some(ir::Const::Bool(b)) = self.constant(value, &Ty::Bool) {
                    rules.largest_wins = b;
                }
            }
            "priority_delta" => {
                if let Some(n) = self.small_constant::<u64>(value) {
                    if n == 0 {
                        self.err(
                            Code::Constant,
                            value.span,
                            "`priority_delta` must be positive",
                        );
                    }
                    rules.delta = n;
                }
            }
            _ => {
                // An object made in place is named after its table.
                let outer = std::mem::replace(&mut self.unit.name, t.name.clone());
                let val = self.property_value(value);
                self.unit.name = outer;
                if let Some(c) = val {
                    self.annotate_in_place(p, value, &c);
                    t.properties.push((name.name.clone(), c));
                }
            }
        }
    }

    /// `@name("x") @a implementation = T(…);` names the object, and its annotations are the object's, as p4c has it.
    fn annotate_in_place(
        &mut self,
        p: &'a ast::TableProperty,
        value: &ast::Expr,
        made: &ir::Const,
    ) {
        let (ExprKind::Call { .. }, ir::Const::Extern(id)) = (&value.kind, made) else {
            return;
        };
        let annotations = self.annotations(&p.annotations);
        if let Some(instance) = self.out.externs.get_mut(id.index()) {
            if p.annotations.iter().any(|a| a.name.name == "name") {
                instance.name = join("", &given_name(&instance.name, &p.annotations));
            }
            instance.annotations.extend(annotations);
        }
    }

    fn property_value(&mut self, value: &'a ast::Expr) -> Option<ir::Const> {
        let mut val = Val::Poison;
        let block = self.block_of(|c| val = c.expr(value, None));
        if !block.is_empty() {
            self.err(
                Code::Constant,
                value.span,
                "a table property must be known at compile time",
            );
            return None;
        }
        match val {
            Val::Integer(n) => Some(ir::Const::Integer(n)),
            Val::Extern(id, _) => Some(ir::Const::Extern(id)),
            Val::Poison => None,
            other => {
                let ty = match self.type_of(&other) {
                    Some(ty) => ty,
                    None => {
                        let what = other.what();
                        self.err(
                            Code::Type,
                            value.span,
                            format!("{what} cannot be a table property"),
                        );
                        return None;
                    }
                };
                self.constant_of(other, &ty, value.span)
            }
        }
    }

    /// A default action or an entry's action, with constants for the control plane's parameters.
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
        // `NoAction` need not be listed to be the default.
        if is_default
            && let ExprKind::Name { name, absolute } = &callee.kind
            && name.name == "NoAction"
            && let Some(Val::GlobalAction(i)) = self.find("NoAction", name.span, *absolute)
            && !self
                .unit
                .shared_actions
                .get(&i)
                .is_some_and(|id| t.actions.iter().any(|a| a.action == *id))
        {
            return Some(ir::BoundAction {
                action: None,
                args: Vec::new(),
            });
        }
        let (action, decl) = self.named_action(callee)?;
        let Some(at) = t.actions.iter().position(|a| a.action == action) else {
            let name = super::decls::decl_name(decl).map_or("", |n| n.name.as_str());
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
        // The arguments bound in `actions` may be repeated, unchanged.
        let name = super::decls::decl_name(decl).map_or("action", |n| n.name.as_str());
        let repeated = directed > 0 && written.len() == sig.params.len();
        let written = if repeated {
            let (bound, rest) = written.split_at(directed);
            let first = Signature {
                params: &sig.params[..directed],
                types: sig.types[..directed].to_vec(),
                ret: Ty::Void,
                ret_span: None,
                generics: Vec::new(),
            };
            let (again, calls) = self.directed_args(&first, bound, name, e.span);
            // What calls something is compared as it is written: each call's result is a temporary of its own.
            let same = if calls.is_empty() {
                same_args(&again, &t.actions[at].args)
            } else {
                self.unit.bound_texts.get(at) == Some(&self.texts(bound))
            };
            if !same {
                self.err(
                    Code::Type,
                    e.span,
                    "these arguments differ from those bound in the table's `actions`",
                );
            }
            rest
        } else {
            written
        };
        sig.params = &sig.params[directed..];
        sig.types.drain(..directed);
        let given = self.bind_args(sig.params, written, name, e.span)?;
        let mut args = Vec::with_capacity(given.len());
        for (g, ty) in given.iter().zip(&sig.types) {
            let e = match g {
                super::args::Given::Arg(e) | super::args::Given::Default(e) => e,
                super::args::Given::Omitted => continue,
            };
            args.push(self.constant(e, ty)?);
        }
        Some(ir::BoundAction {
            action: Some(at),
            args,
        })
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
