//! Parses tables: keys, actions, entries and other properties.

use super::{Parsed, Parser};
use crate::ast::{
    DeclKind, Entry, Expr, ExprKind, KeyElement, Keyset, TableAction, TableDecl, TableProperty,
    TablePropertyKind,
};
use crate::diagnostics::{Code, Diagnostic};
use crate::lexer::Tok;

impl Parser<'_, '_> {
    /// Parses `table t { … }`.
    pub(super) fn table(&mut self) -> Parsed<DeclKind> {
        self.bump();
        let name = self.name("the table's name")?;
        self.declare_object(&name);
        let open = self
            .expect(Tok::LBrace, "before the table's properties")?
            .span;
        let properties = self.nested(|p| p.items(open, "the table", |p| p.table_property()))?;
        Ok(DeclKind::Table(TableDecl { name, properties }))
    }

    fn table_property(&mut self) -> Parsed<TableProperty> {
        let start = self.span();
        let annotations = self.annotations()?;
        let is_const = self.eat(Tok::Const);
        let name = self.name("a table property (`key`, `actions`, `default_action`, `size` …)")?;
        self.expect(Tok::Assign, "after the property's name")?;
        let is_list = self.kind() == Tok::LBrace;
        let kind = match name.name.as_str() {
            "key" if is_list => {
                let open = self.bump().span;
                let elements = self.items(open, "the key", |p| p.key_element())?;
                TablePropertyKind::Key(elements)
            }
            "actions" if is_list => {
                let open = self.bump().span;
                let actions = self.items(open, "the actions", |p| p.table_action())?;
                TablePropertyKind::Actions(actions)
            }
            "entries" if is_list => {
                let open = self.bump().span;
                let entries = self.items(open, "the entries", |p| p.entry())?;
                TablePropertyKind::Entries(entries)
            }
            "key" | "actions" | "entries" => {
                return Err(self.unexpected(&format!("`{{` after `{} =`", name.name)));
            }
            _ => {
                let value = self.expr()?;
                self.expect(Tok::Semi, "after the property")?;
                TablePropertyKind::Other { name, value }
            }
        };
        // `key = { … };` is a frequent mistake, which p4c rejects; the extra semicolon is harmless, so accept it.
        self.eat(Tok::Semi);
        Ok(TableProperty {
            annotations,
            is_const,
            kind,
            span: self.since(start),
        })
    }

    fn key_element(&mut self) -> Parsed<KeyElement> {
        let expr = self.expr()?;
        if self.kind() != Tok::Colon {
            let message = format!(
                "expected `:` and a match kind after the key, found {}",
                self.found()
            );
            let span = self.span();
            return Err(self.fail(
                Diagnostic::error(Code::Syntax, span, message).hint("as in `hdr.ipv4.dst : lpm;`"),
            ));
        }
        self.bump();
        let kind = self.name("a match kind (`exact`, `lpm`, `ternary` …)")?;
        let annotations = self.annotations()?;
        self.expect(Tok::Semi, "after the key element")?;
        Ok(KeyElement {
            expr,
            kind,
            annotations,
        })
    }

    fn table_action(&mut self) -> Parsed<TableAction> {
        let annotations = self.annotations()?;
        let expr = self.action_reference()?;
        self.expect(Tok::Semi, "after the action")?;
        Ok(TableAction { annotations, expr })
    }

    /// Parses a reference to an action: `a`, `.a` or `a(args)`.
    fn action_reference(&mut self) -> Parsed<Expr> {
        if !matches!(self.kind(), Tok::Ident | Tok::Dot) {
            return Err(self.unexpected("an action's name"));
        }
        self.postfix()
    }

    fn entry(&mut self) -> Parsed<Entry> {
        let start = self.span();
        let is_const = self.eat(Tok::Const);
        let priority = if self.is_word("priority") && self.nth(1) == Tok::Assign {
            self.bump();
            self.bump();
            let priority = self.expr()?;
            self.expect(Tok::Colon, "after the priority")?;
            Some(priority)
        } else {
            None
        };
        let keys = self.keysets()?;
        self.expect(Tok::Colon, "between the entry's key and its action")?;
        let action = self.action_reference()?;
        let annotations = self.annotations()?;
        self.expect(Tok::Semi, "after the entry")?;
        Ok(Entry {
            annotations,
            is_const,
            priority,
            keys,
            action,
            span: self.since(start),
        })
    }

    /// Parses one keyset, or a tuple of keysets `(k, k, …)`, which is flattened.
    pub(super) fn keysets(&mut self) -> Parsed<Vec<Keyset>> {
        if self.kind() != Tok::LParen || !self.parenthesis_before_colon() {
            return Ok(vec![self.keyset()?]);
        }
        self.bump();
        let mut keys = Vec::new();
        while self.kind() != Tok::RParen {
            keys.push(self.keyset()?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(Tok::RParen, "after the tuple of keys")?;
        Ok(keys)
    }

    /// Whether the parenthesis at the current token closes just before a `:` and therefore holds a tuple of keysets.
    fn parenthesis_before_colon(&self) -> bool {
        let close = self.partners[self.at] as usize;
        self.tokens
            .get(close.saturating_add(1))
            .is_none_or(|t| t.kind == Tok::Colon)
    }

    fn keyset(&mut self) -> Parsed<Keyset> {
        let start = self.span();
        if matches!(self.kind(), Tok::Default | Tok::DontCare) {
            self.bump();
            return Ok(Keyset::Default(start));
        }
        let first = self.expr()?;
        if self.eat(Tok::Mask) {
            return Ok(Keyset::Mask(first, self.expr()?));
        }
        if self.eat(Tok::Range) {
            return Ok(Keyset::Range(first, self.expr()?));
        }
        Ok(match first.kind {
            ExprKind::DontCare => Keyset::Default(start),
            _ => Keyset::Expr(first),
        })
    }
}
