//! Checks tables: key, actions, properties (P4_16 1.2.5, section 14.2).

use super::Checker;
use super::types::Ty;
use super::unit::{Body, given_name, join};
use super::value::Val;
use crate::ast::{self, ExprKind, TablePropertyKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;

/// A table's rules for entry priorities: whether the largest wins, and the step between computed priorities.
pub(crate) struct EntryRules {
    pub(crate) largest_wins: bool,
    pub(crate) delta: u64,
}

impl<'a> Checker<'a, '_> {
    /// Checks and lowers a table of the current control.
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
        // Key and actions come first, wherever they are written: the other properties refer to them.
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
        // If a property is repeated, one of the two may have been meant as the actions.
        if decls.is_empty() && !repeated {
            self.has_actions(table);
        }
        let rules = self.table_properties(table, &mut t, &decls);
        for p in &table.properties {
            if let TablePropertyKind::Entries(entries) = &p.kind {
                if t.key.is_empty() && !entries.is_empty() {
                    self.entries_without_key(table, p);
                    continue;
                }
                let before = |k: &TablePropertyKind| {
                    matches!(k, TablePropertyKind::Key(_) | TablePropertyKind::Actions(_))
                };
                self.stands_behind(
                    table,
                    p,
                    before,
                    "`entries` must come after the table's `key` and `actions`",
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

    fn has_actions(&mut self, table: &'a ast::TableDecl) {
        let actions = |p: &ast::TableProperty| matches!(p.kind, TablePropertyKind::Actions(_));
        if !table.properties.iter().any(actions) {
            self.push(
                Diagnostic::error(
                    Code::Type,
                    table.name.span,
                    format!("table `{}` has no actions", table.name.name),
                )
                .hint("write `actions = { … }`"),
            );
        }
    }

    fn entries_without_key(&mut self, table: &ast::TableDecl, entries: &ast::TableProperty) {
        let message = "a table without a key cannot have entries";
        self.push(
            Diagnostic::error(Code::Type, table.name.span, message)
                .label(entries.span, "the entries"),
        );
    }

    /// Lowers all properties of a table except key, actions and entries; returns the rules for the priorities of entries.
    fn table_properties(
        &mut self,
        table: &'a ast::TableDecl,
        t: &mut ir::Table,
        decls: &[&'a ast::Decl],
    ) -> EntryRules {
        let mut rules = EntryRules {
            largest_wins: true,
            delta: 1,
        };
        for p in &table.properties {
            if let TablePropertyKind::Other { name, value } = &p.kind {
                if name.name == "default_action" {
                    let actions =
                        |k: &TablePropertyKind| matches!(k, TablePropertyKind::Actions(_));
                    let message = "`default_action` must come after the table's `actions`";
                    self.stands_behind(table, p, actions, message);
                }
                self.table_property(p, name, value, t, decls, &mut rules);
            }
        }
        rules
    }

    /// Checks that `NoAction` is core.p4's action, because a table without a default action runs it.
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
                "`NoAction` must be an action without parameters: it is the implicit default action",
            );
        }
    }

    /// Checks that a table property follows the properties to which it refers (P4_16 1.2.5, sections 14.2.1.3 and 14.2.1.4).
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
                    .label(later.span, "this must come before it"),
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
                    format!("table property `{name}` is set twice"),
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
        let name = decl.name().map_or("action", |n| n.name.as_str());
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
                // An object created in a property is named after its table.
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

    /// Applies the annotations before `implementation = T(…);` to the object created there; `@name` names it, as in p4c.
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
                "a table property must be a compile-time known value",
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
}
