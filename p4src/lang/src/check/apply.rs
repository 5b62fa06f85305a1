//! Lowers calls of `apply` on controls, parsers and tables.

use super::Checker;
use super::call::Call;
use super::generic::Instantiation;
use super::generic::Wanted;
use super::types::Ty;
use super::unit::{Body, UnitKind, join};
use super::value::Val;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;

impl<'a> Checker<'a, '_> {
    /// Lowers `C.apply(…)` on a control type: makes an instance named after the type.
    pub(crate) fn direct_control(
        &mut self,
        index: u32,
        types: &[Ty],
        span: Span,
    ) -> Option<ir::ControlId> {
        let own = self.controls[index as usize].decl.name.name.clone();
        let again = self.unit.direct_instances.contains(&own);
        let full = self.direct_name(&own);
        let wanted = Wanted {
            types,
            expected: None,
        };
        let before = self.out.controls.len();
        let val = self.direct(
            |c, made| c.control_instance(index, wanted, full, made),
            span,
        );
        let mut made = self.out.controls[before..].iter().flatten();
        if again && made.any(|c| !c.tables.is_empty()) {
            let message = format!(
                "`{own}` is invoked by type name twice: its tables would have the same names"
            );
            self.push(
                Diagnostic::error(Code::Duplicate, span, message)
                    .hint(format!("declare two instances: `{own}() a; {own}() b;`")),
            );
        }
        match val {
            Val::Control(id, _) => Some(id),
            _ => None,
        }
    }

    /// Lowers `P.apply(…)` on a parser type: makes an instance named after the type.
    pub(crate) fn direct_parser(
        &mut self,
        index: u32,
        types: &[Ty],
        span: Span,
    ) -> Option<ir::ParserId> {
        let own = self.parsers[index as usize].name.name.clone();
        let full = self.direct_name(&own);
        let wanted = Wanted {
            types,
            expected: None,
        };
        let val = self.direct(|c, made| c.parser_instance(index, wanted, full, made), span);
        match val {
            Val::Parser(id, _) => Some(id),
            _ => None,
        }
    }

    fn direct(
        &mut self,
        make: impl FnOnce(&mut Self, Instantiation<'a>) -> Val<'a>,
        span: Span,
    ) -> Val<'a> {
        let made = Instantiation {
            args: &[],
            annotations: &[],
            init: None,
            span,
        };
        let body = std::mem::replace(&mut self.unit.body, Body::Locals);
        let val = make(self, made);
        self.unit.body = body;
        val
    }

    /// The name of an instance made by `C.apply(…)` on a type: the type's name, with a number from the second instance on.
    pub(crate) fn direct_name(&mut self, own: &str) -> String {
        let mut name = own.to_owned();
        let mut n = 0u32;
        while !self.unit.direct_instances.insert(name.clone()) {
            n += 1;
            name = format!("{own}_{n}");
        }
        join(&self.unit.name, &name)
    }

    /// Lowers `apply(…)` on a control instance.
    pub(crate) fn apply_control(
        &mut self,
        id: ir::ControlId,
        index: u32,
        call: Call<'a, '_>,
    ) -> Option<Val<'a>> {
        if !self.may_apply(call.span) {
            return None;
        }
        let def = self.controls[index as usize];
        let name = &def.decl.name.name;
        let types = self.control_types.get(&id).cloned().unwrap_or_default();
        let generics = (def.decl.type_params.as_slice(), &*types);
        if let Some(args) = self.plain_args(generics, &def.decl.params, name, call) {
            self.emit(ir::StmtKind::ApplyControl(id, args), call.span);
        }
        None
    }

    /// Lowers `apply(…)` on a parser instance.
    pub(crate) fn apply_parser(
        &mut self,
        id: ir::ParserId,
        index: u32,
        call: Call<'a, '_>,
    ) -> Option<Val<'a>> {
        if !matches!(self.unit.kind, UnitKind::Parser) {
            self.err(
                Code::Placement,
                call.span,
                "a parser can be applied only in a parser",
            );
            return None;
        }
        let decl = self.parsers[index as usize];
        let types = self.parser_types.get(&id).cloned().unwrap_or_default();
        let generics = (decl.type_params.as_slice(), &*types);
        if let Some(args) = self.plain_args(generics, &decl.params, &decl.name.name, call) {
            self.emit(ir::StmtKind::ApplyParser(id, args), call.span);
        }
        None
    }

    /// Lowers `apply()` on a table, as a statement without a use of its result.
    pub(crate) fn apply_table(
        &mut self,
        table: ir::TableId,
        call: Call<'a, '_>,
    ) -> Option<Val<'a>> {
        self.no_args(call);
        if self.may_apply(call.span) {
            self.emit_apply(table, None, None, call.span);
        }
        None
    }

    /// Emits the calls in the table's key, then the table lookup.
    pub(crate) fn emit_apply(
        &mut self,
        table: ir::TableId,
        hit: Option<ir::VarId>,
        action_run: Option<ir::VarId>,
        span: Span,
    ) {
        if let Some(block) = self.unit.key_blocks.get(table.index()) {
            let block = block.clone();
            self.work += block.len() as u64;
            self.unit.block.extend(block);
        }
        self.emit(
            ir::StmtKind::ApplyTable {
                table,
                hit,
                action_run,
            },
            span,
        );
    }

    /// Checks that the `apply` of a table or control is called in a control's apply block.
    pub(crate) fn may_apply(&mut self, span: Span) -> bool {
        let ok = matches!(self.unit.kind, UnitKind::Control(_)) && self.unit.body == Body::Apply;
        if !ok {
            self.err(
                Code::Placement,
                span,
                "tables and controls can be applied only in a control's apply block",
            );
        }
        ok
    }
}
