//! Builds P4Info from the IR.
//!
//! The order is p4c's: the package's controls one by one; within a control, its tables, actions and inner instances in source
//! order. P4Info omits what the control plane cannot reach: `@hidden` objects, and actions that no table offers.

use super::annotations::{
    annotation_texts, field_ids, given_name, integer, is_hidden, param_ids, scope, structured,
};
use super::builder::Builder;
use super::externs;
use super::typing::padded;
use super::walk::{Blocks, NO_ACTION, Visible, VisibleAction, listed_no_action};
use super::*;
use crate::diagnostics::{Code, Sink};
use crate::ids::{Names, Prefix};
use crate::ir::{self, Type};
use crate::source::Span;

/// Size in P4Info of a table without a `size` property.
const DEFAULT_TABLE_SIZE: i64 = 1024;

/// Builds the P4Info of a program. Errors in `@id` annotations go to the sink.
pub fn build(program: &ir::Program, sink: &mut Sink) -> P4Info {
    let blocks = Blocks::new(program);
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

    fn collect(&mut self, blocks: &Blocks<'_>) {
        let program = self.program;
        for visible in &blocks.controls {
            for action in &visible.actions {
                let (name, annotations, span) = match action {
                    VisibleAction::Offered(a) | VisibleAction::Called(a) => {
                        (a.name.as_str(), a.annotations.as_slice(), a.span)
                    }
                    VisibleAction::Implied => (NO_ACTION, &[][..], Span::default()),
                };
                self.add(Prefix::Action, name, annotations, span);
            }
            for (_, table) in &visible.tables {
                self.add(Prefix::Table, &table.name, &table.annotations, table.span);
            }
            for control in &visible.controls {
                for digest in externs::digest_calls(program, control) {
                    self.add(Prefix::Digest, &digest.name, &[], control.span);
                }
            }
        }
        for instance in &program.externs {
            if let Some(prefix) = externs::prefix(&instance.kind) {
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

/// The header name in `@controller_header("packet_in")`; `None` without such an annotation.
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

impl Builder<'_> {
    fn build(&self, blocks: &Blocks<'_>) -> P4Info {
        let mut info = P4Info {
            arch: arch_name(&self.program.arch),
            package: super::package::package(&self.program.main.annotations),
            ..P4Info::default()
        };
        for visible in &blocks.controls {
            self.actions(visible, &mut info);
        }
        for visible in &blocks.controls {
            for (control, table) in &visible.tables {
                self.table(control, table, &mut info);
            }
            for control in &visible.controls {
                for digest in externs::digest_calls(self.program, control) {
                    self.digest(digest, &mut info);
                }
            }
        }
        for id in &blocks.externs {
            if let Some(instance) = self.program.externs.get(id.index()) {
                self.extern_instance(instance, &mut info);
            }
        }
        for id in &blocks.parsers {
            if let Some(parser) = self.program.parsers.get(id.index()) {
                info.value_sets.extend(
                    parser
                        .value_sets
                        .iter()
                        .map(|set| self.value_set(set, &mut info.types)),
                );
            }
        }
        for ty in &self.program.types {
            if let Some(name) = controller_header(ty) {
                let header = self.controller_header(ty, name, &mut info.types);
                info.controller_packet_metadata.push(header);
            }
        }
        info
    }

    fn actions(&self, visible: &Visible<'_>, info: &mut P4Info) {
        let listed =
            |info: &P4Info, name: &str| info.actions.iter().any(|a| a.preamble.name == name);
        for action in &visible.actions {
            let (action, offered) = match action {
                VisibleAction::Offered(action) => (action, true),
                VisibleAction::Called(action) => (action, false),
                VisibleAction::Implied if listed(info, NO_ACTION) => continue,
                VisibleAction::Implied => {
                    let unused = ir::Annotation {
                        name: "noWarn".to_owned(),
                        text: "\"unused\"".to_owned(),
                        literals: Vec::new(),
                        structured: None,
                    };
                    info.actions.push(Action {
                        preamble: self.preamble(Prefix::Action, NO_ACTION, &[unused]),
                        params: Vec::new(),
                    });
                    continue;
                }
            };
            if listed(info, &action.name) {
                continue;
            }
            let data = action
                .params
                .iter()
                .filter(|p| offered && p.direction == crate::ast::Direction::None);
            let ids = param_ids(data.clone());
            let params = data.zip(ids).map(|(param, id)| Param {
                id,
                name: given_name(&param.name, &param.annotations),
                bitwidth: self.declared_width(&param.declared),
                annotations: annotation_texts(&param.annotations),
                structured: structured(&param.annotations),
                type_name: self.type_name(&param.declared, &mut info.types),
            });
            let params = params.collect();
            info.actions.push(Action {
                preamble: self.preamble(Prefix::Action, &action.name, &action.annotations),
                params,
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
                structured: structured(&offered.annotations),
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
                    structured: Vec::new(),
                });
                id
            }
        };
        let size = table.size.and_then(|s| i64::try_from(s).ok());
        let resources = self.table_resources(control, table, info);
        info.tables.push(Table {
            preamble: self.preamble(Prefix::Table, &table.name, &table.annotations),
            match_fields: self.match_fields(&table.key, &mut info.types),
            action_refs,
            const_default_action_id: if table.const_default { default_id } else { 0 },
            initial_default_action_id: default_id,
            initial_default_args: self.default_args(control, table),
            implementation_id: resources.implementation,
            direct_resource_ids: resources.direct,
            size: size.filter(|s| *s > 0).unwrap_or(DEFAULT_TABLE_SIZE),
            is_const_table: table.const_entries,
            has_initial_entries: !table.entries.is_empty(),
            idle_timeout: self.idle_timeout(table),
        });
    }

    /// Arguments of the default action: (parameter id, value in as many bytes as its type needs).
    fn default_args(&self, control: &ir::Control, table: &ir::Table) -> Vec<(u32, Vec<u8>)> {
        let action = table.default_action.action.and_then(|index| {
            control
                .actions
                .get(table.actions.get(index)?.action.index())
        });
        let Some(action) = action else {
            return Vec::new();
        };
        let params = action
            .params
            .iter()
            .filter(|p| p.direction == crate::ast::Direction::None);
        let ids = param_ids(params.clone());
        params
            .zip(ids)
            .zip(&table.default_action.args)
            .filter_map(|((param, id), arg)| {
                let width = self.declared_width(&param.declared);
                let value = match arg {
                    ir::Const::Bits { value, .. } => value.clone(),
                    ir::Const::Bool(b) => u8::from(*b).into(),
                    _ => return None,
                };
                Some((id, padded(&value, width)))
            })
            .collect()
    }

    /// Whether the switch reports idle entries: `psa_idle_timeout = NOTIFY_CONTROL`, or v1model's `support_timeout`.
    fn idle_timeout(&self, table: &ir::Table) -> bool {
        table
            .properties
            .iter()
            .any(|(name, value)| match (name.as_str(), value) {
                ("support_timeout", ir::Const::Bool(on)) => *on,
                ("psa_idle_timeout", ir::Const::Enum(id, member)) => self
                    .program
                    .enums
                    .get(id.index())
                    .and_then(|e| e.members.get(*member as usize))
                    .is_some_and(|name| name == "NOTIFY_CONTROL"),
                _ => false,
            })
    }

    fn match_fields(&self, key: &[ir::Key], types: &mut TypeInfo) -> Vec<MatchField> {
        let given: Vec<Option<u32>> = key.iter().map(|k| integer(&k.annotations, "id")).collect();
        let ids = field_ids(&given);
        key.iter()
            .zip(ids)
            .filter(|(k, _)| !matches!(k.match_kind.as_str(), "selector" | "dleft_hash"))
            .map(|(k, id)| MatchField {
                id,
                name: k.name.clone(),
                bitwidth: self.declared_width(&k.declared),
                match_type: match_type(&k.match_kind),
                annotations: annotation_texts(&k.annotations),
                structured: structured(&k.annotations),
                type_name: self.type_name(&k.declared, types),
            })
            .collect()
    }

    fn value_set(&self, set: &ir::ValueSet, types: &mut TypeInfo) -> ValueSet {
        let fields = set.fields.iter().zip(&set.declared).enumerate();
        ValueSet {
            preamble: self.preamble(Prefix::ValueSet, &set.name, &set.annotations),
            match_fields: fields
                .map(|(index, ((name, _, kind), declared))| MatchField {
                    id: index as u32 + 1,
                    name: name.clone(),
                    bitwidth: self.declared_width(declared),
                    match_type: match_type(kind),
                    annotations: Vec::new(),
                    structured: Vec::new(),
                    type_name: self.type_name(declared, types),
                })
                .collect(),
            size: i64::try_from(set.size).unwrap_or(i64::MAX),
        }
    }

    fn controller_header(
        &self,
        ty: &ir::StructType,
        name: &str,
        types: &mut TypeInfo,
    ) -> ControllerPacketMetadata {
        let mut fields = Vec::new();
        self.flat_fields(ty, "", &mut fields);
        let given: Vec<Option<u32>> = fields
            .iter()
            .map(|(_, f)| integer(&f.annotations, "id"))
            .collect();
        let metadata = fields
            .into_iter()
            .zip(field_ids(&given))
            .map(|((name, field), id)| PacketMetadata {
                id,
                name,
                bitwidth: self.declared_width(&field.declared),
                annotations: annotation_texts(&field.annotations),
                type_name: self.type_name(&field.declared, types),
            });
        let metadata = metadata.collect();
        ControllerPacketMetadata {
            // The name comes from the annotation, the id from the type's name.
            preamble: Preamble {
                id: self.ids.id(Prefix::ControllerHeader, &ty.name),
                name: name.to_owned(),
                alias: name.to_owned(),
                annotations: annotation_texts(&ty.annotations),
                structured: structured(&ty.annotations),
                ..Preamble::default()
            },
            metadata,
        }
    }

    /// The fields of a header as the control plane sees them; the fields of a struct `s` in the header are named `s.f`.
    fn flat_fields<'t>(
        &'t self,
        ty: &'t ir::StructType,
        path: &str,
        fields: &mut Vec<(String, &'t ir::FieldType)>,
    ) {
        for field in ty.fields.iter().filter(|f| !is_hidden(&f.annotations)) {
            let name = format!("{path}{}", given_name(&field.name, &field.annotations));
            match &field.ty {
                Type::Struct(id) => {
                    if let Some(inner) = self.program.types.get(id.index()) {
                        self.flat_fields(inner, &format!("{name}."), fields);
                    }
                }
                _ => fields.push((name, field)),
            }
        }
    }
}

fn match_type(kind: &str) -> MatchType {
    let other = || MatchType::Other(kind.to_owned());
    MatchKind::named(kind).map_or_else(other, MatchType::Standard)
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
