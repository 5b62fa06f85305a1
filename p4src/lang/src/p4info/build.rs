//! IR → P4Info.
//!
//! The order is p4c's: blocks breadth first from the package down, actions and tables of a control as they stand in it. What the
//! control plane cannot reach (`@hidden`, actions that nothing offers) is left out.

use super::externs;
use super::walk::{Blocks, NO_ACTION, Visible, VisibleAction, implies_no_action, listed_no_action};
use super::*;
use crate::diagnostics::{Code, Sink};
use crate::ids::{Ids, Names, Prefix};
use crate::ir::{self, Type};
use crate::source::Span;
use std::collections::BTreeSet;

/// Size of a table that gives none.
const DEFAULT_TABLE_SIZE: i64 = 1024;

/// Describes a program to its control plane. Faults of `@id` annotations go to the sink.
pub fn build(program: &ir::Program, sink: &mut Sink) -> P4Info {
    let blocks = Blocks::of(program);
    let mut names = Names::default();
    let mut collector = Collector {
        program,
        names: &mut names,
        sink,
    };
    collector.collect(&blocks);
    let ids = names.number();
    let builder = Builder { program, ids };
    builder.build(&blocks)
}

pub(super) fn is_hidden(annotations: &[ir::Annotation]) -> bool {
    annotations.iter().any(|a| a.name == "hidden")
}

/// The integer of an annotation.
fn integer(annotations: &[ir::Annotation], name: &str) -> Option<u32> {
    let annotation = annotations.iter().find(|a| a.name == name)?;
    match annotation.literals.first()? {
        crate::ast::Literal::Int(value) => u32::try_from(value).ok(),
        _ => None,
    }
}

/// Annotations as text, without those that P4Info says otherwise.
pub(super) fn annotation_texts(annotations: &[ir::Annotation]) -> Vec<String> {
    let said = ["name", "id", "brief", "description"];
    annotations
        .iter()
        .filter(|a| !said.contains(&a.name.as_str()))
        .map(|a| {
            if a.text.is_empty() {
                format!("@{}", a.name)
            } else {
                format!("@{}({})", a.name, a.text)
            }
        })
        .collect()
}

struct Collector<'p, 'n> {
    program: &'p ir::Program,
    names: &'n mut Names,
    sink: &'n mut Sink,
}

impl Collector<'_, '_> {
    fn add(&mut self, prefix: Prefix, name: &str, annotations: &[ir::Annotation], span: Span) {
        let id = integer(annotations, "id");
        if let Err(error) = self.names.add(prefix, name, id) {
            self.sink
                .error(Code::Architecture, span, format!("`{name}`: {error}"));
        }
    }

    fn collect(&mut self, blocks: &Blocks) {
        let program = self.program;
        for control in blocks
            .controls
            .iter()
            .filter_map(|id| program.controls.get(id.index()))
        {
            let visible = Visible::of(control);
            for VisibleAction { action, .. } in &visible.actions {
                self.add(
                    Prefix::Action,
                    &action.name,
                    &action.annotations,
                    action.span,
                );
            }
            for table in visible.tables {
                self.add(Prefix::Table, &table.name, &table.annotations, table.span);
                if implies_no_action(control, table) {
                    self.add(Prefix::Action, NO_ACTION, &[], table.span);
                }
            }
            for digest in externs::digest_calls(program, control) {
                self.add(Prefix::Digest, &digest.name, &[], control.span);
            }
        }
        for instance in &program.externs {
            if let Some(prefix) = externs::prefix(&instance.type_name) {
                self.add(prefix, &instance.name, &instance.annotations, instance.span);
            }
        }
        for parser in &program.parsers {
            for set in &parser.value_sets {
                self.add(Prefix::ValueSet, &set.name, &set.annotations, parser.span);
            }
        }
        for ty in &program.types {
            if controller_header(ty).is_some() {
                let nowhere = Span::default();
                self.add(Prefix::ControllerHeader, &ty.name, &ty.annotations, nowhere);
            }
        }
    }
}

/// `@controller_header("packet_in")`
fn controller_header(ty: &ir::StructType) -> Option<&str> {
    let annotation = ty
        .annotations
        .iter()
        .find(|a| a.name == "controller_header")?;
    match annotation.literals.first()? {
        crate::ast::Literal::Str(name) if !is_hidden(&ty.annotations) => Some(name),
        _ => None,
    }
}

pub(super) struct Builder<'p> {
    pub(super) program: &'p ir::Program,
    pub(super) ids: Ids,
}

impl Builder<'_> {
    fn build(&self, blocks: &Blocks) -> P4Info {
        let mut info = P4Info {
            arch: arch_name(&self.program.arch),
            ..P4Info::default()
        };
        let controls = || {
            let ids = blocks.controls.iter();
            ids.filter_map(|id| self.program.controls.get(id.index()))
        };
        for control in controls() {
            self.actions(control, &mut info);
        }
        for control in controls() {
            for table in Visible::of(control).tables {
                self.table(control, table, &mut info);
            }
            for digest in externs::digest_calls(self.program, control) {
                self.digest(digest, &mut info);
            }
        }
        for id in &blocks.externs {
            if let Some(instance) = self.program.externs.get(id.index()) {
                self.extern_instance(instance, &mut info);
            }
        }
        for id in &blocks.parsers {
            if let Some(parser) = self.program.parsers.get(id.index()) {
                info.value_sets
                    .extend(parser.value_sets.iter().map(|set| self.value_set(set)));
            }
        }
        for ty in &self.program.types {
            if let Some(name) = controller_header(ty) {
                info.controller_packet_metadata
                    .push(self.controller_header(ty, name));
            }
        }
        info
    }

    pub(super) fn preamble(
        &self,
        prefix: Prefix,
        name: &str,
        annotations: &[ir::Annotation],
    ) -> Preamble {
        Preamble {
            id: self.ids.id(prefix, name),
            name: name.to_owned(),
            alias: self.ids.alias(name),
            annotations: annotation_texts(annotations),
        }
    }

    fn actions(&self, control: &ir::Control, info: &mut P4Info) {
        let Visible {
            tables,
            actions: visible,
        } = Visible::of(control);
        let implied = tables.iter().any(|table| implies_no_action(control, table));
        let listed =
            |info: &P4Info, name: &str| info.actions.iter().any(|a| a.preamble.name == name);
        if implied
            && !listed(info, NO_ACTION)
            && !visible.iter().any(|v| v.action.name == NO_ACTION)
        {
            let unused = ir::Annotation {
                name: "noWarn".to_owned(),
                text: "\"unused\"".to_owned(),
                literals: Vec::new(),
            };
            info.actions.push(Action {
                preamble: self.preamble(Prefix::Action, NO_ACTION, &[unused]),
                params: Vec::new(),
            });
        }
        for VisibleAction { action, offered } in visible {
            if listed(info, &action.name) {
                continue;
            }
            let data = action
                .params
                .iter()
                .filter(|p| offered && p.direction == crate::ast::Direction::None)
                .filter_map(|p| control.vars.get(p.var.index()));
            let params = data.enumerate().map(|(index, var)| Param {
                id: index as u32 + 1,
                name: local_name(&var.name).to_owned(),
                bitwidth: self.width(&var.ty),
                annotations: Vec::new(),
            });
            info.actions.push(Action {
                preamble: self.preamble(Prefix::Action, &action.name, &action.annotations),
                params: params.collect(),
            });
        }
    }

    fn table(&self, control: &ir::Control, table: &ir::Table, info: &mut P4Info) {
        let action_id = |index: usize| {
            let action = control.actions.get(index);
            action.map_or(0, |a| self.ids.id(Prefix::Action, &a.name))
        };
        let mut action_refs: Vec<ActionRef> = table
            .actions
            .iter()
            .map(|offered| ActionRef {
                id: action_id(offered.action.index()),
                scope: scope(&offered.annotations),
                annotations: annotation_texts(&offered.annotations),
            })
            .collect();
        let default = table.default_action.action;
        let default_id = match default.or_else(|| listed_no_action(control, table)) {
            Some(index) => action_refs.get(index).map_or(0, |r| r.id),
            None => {
                let id = self.ids.id(Prefix::Action, NO_ACTION);
                action_refs.push(ActionRef {
                    id,
                    scope: ActionScope::DefaultOnly,
                    annotations: vec!["@defaultonly".to_owned()],
                });
                id
            }
        };
        let size = table.size.and_then(|s| i64::try_from(s).ok());
        let resources = self.table_resources(control, table, info);
        info.tables.push(Table {
            preamble: self.preamble(Prefix::Table, &table.name, &table.annotations),
            match_fields: self.match_fields(&table.key),
            action_refs,
            const_default_action_id: if table.const_default { default_id } else { 0 },
            initial_default_action_id: default_id,
            implementation_id: resources.implementation,
            direct_resource_ids: resources.direct,
            size: size.filter(|s| *s > 0).unwrap_or(DEFAULT_TABLE_SIZE),
            is_const_table: table.const_entries,
            has_initial_entries: !table.entries.is_empty(),
        });
    }

    fn match_fields(&self, key: &[ir::Key]) -> Vec<MatchField> {
        let given: Vec<Option<u32>> = key.iter().map(|k| integer(&k.annotations, "id")).collect();
        let ids = field_ids(&given);
        key.iter()
            .zip(ids)
            .filter(|(k, _)| k.match_kind != "selector")
            .map(|(k, id)| MatchField {
                id,
                name: k.name.clone(),
                bitwidth: self.width(&k.expr.ty),
                match_type: match_type(&k.match_kind),
                annotations: annotation_texts(&k.annotations),
            })
            .collect()
    }

    fn value_set(&self, set: &ir::ValueSet) -> ValueSet {
        let fields = set.fields.iter().enumerate();
        ValueSet {
            preamble: self.preamble(Prefix::ValueSet, &set.name, &set.annotations),
            match_fields: fields
                .map(|(index, (name, ty, kind))| MatchField {
                    id: index as u32 + 1,
                    name: name.clone(),
                    bitwidth: self.width(ty),
                    match_type: match_type(kind),
                    annotations: Vec::new(),
                })
                .collect(),
            size: i64::try_from(set.size).unwrap_or(i64::MAX),
        }
    }

    fn controller_header(&self, ty: &ir::StructType, name: &str) -> ControllerPacketMetadata {
        let visible = ty.fields.iter().filter(|f| !is_hidden(&f.annotations));
        let given: Vec<Option<u32>> = visible
            .clone()
            .map(|f| integer(&f.annotations, "id"))
            .collect();
        let metadata = visible
            .zip(field_ids(&given))
            .map(|(field, id)| PacketMetadata {
                id,
                name: field.name.clone(),
                bitwidth: self.width(&field.ty),
            });
        ControllerPacketMetadata {
            // Named by the annotation, numbered by the type's name.
            preamble: Preamble {
                id: self.ids.id(Prefix::ControllerHeader, &ty.name),
                name: name.to_owned(),
                alias: name.to_owned(),
                annotations: annotation_texts(&ty.annotations),
            },
            metadata: metadata.collect(),
        }
    }

    /// Bits that a value takes in the protocol.
    pub(super) fn width(&self, ty: &Type) -> u32 {
        match ty {
            Type::Bit(w) | Type::Int(w) | Type::Varbit(w) => *w,
            Type::Bool => 1,
            Type::Struct(id) => {
                let fields = self.program.types.get(id.index()).map(|t| t.fields.iter());
                fields.map_or(0, |f| f.map(|f| self.width(&f.ty)).sum())
            }
            Type::Tuple(types) => types.iter().map(|t| self.width(t)).sum(),
            _ => 0,
        }
    }
}

/// A variable's name in the source: the lowering adds `$n` or the like where names collide.
fn local_name(name: &str) -> &str {
    name.split('$').next().unwrap_or(name)
}

/// Numbers from 1 for what has no `@id`, past those that are given.
fn field_ids(given: &[Option<u32>]) -> Vec<u32> {
    let mut taken: BTreeSet<u32> = given.iter().flatten().copied().collect();
    let mut next = 1u32;
    let number = |id: &Option<u32>| match id {
        Some(id) => {
            next += 1;
            *id
        }
        None => {
            while !taken.insert(next) {
                next += 1;
            }
            next
        }
    };
    given.iter().map(number).collect()
}

fn match_type(kind: &str) -> MatchType {
    match kind {
        "exact" => MatchType::Exact,
        "lpm" => MatchType::Lpm,
        "ternary" => MatchType::Ternary,
        "range" => MatchType::Range,
        "optional" => MatchType::Optional,
        other => MatchType::Other(other.to_owned()),
    }
}

fn scope(annotations: &[ir::Annotation]) -> ActionScope {
    let has = |name: &str| annotations.iter().any(|a| a.name == name);
    if has("tableonly") {
        ActionScope::TableOnly
    } else if has("defaultonly") {
        ActionScope::DefaultOnly
    } else {
        ActionScope::TableAndDefault
    }
}

fn arch_name(arch: &ir::Arch) -> String {
    match arch {
        ir::Arch::Psa => "psa",
        ir::Arch::V1model => "v1model",
        ir::Arch::Tna => "tna",
        ir::Arch::T2na => "t2na",
        ir::Arch::Other(name) => name,
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_ids_go_round_those_given() {
        assert_eq!(field_ids(&[None, None]), [1, 2]);
        assert_eq!(field_ids(&[None, Some(1), None]), [2, 1, 3]);
        assert_eq!(field_ids(&[Some(7), None]), [7, 2]);
    }
}
