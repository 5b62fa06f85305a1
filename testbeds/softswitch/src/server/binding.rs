//! Binds a client's P4Info to the running program: maps ids of P4Info to indices in the program once per pipeline
//! config, so that an update needs no lookup by name.

mod action;
mod cells;
mod data;
mod entry;
mod field;
mod others;
pub(super) mod profiles;
mod sdn;

pub(super) use cells::{
    clears, config_to_proto, counter_to_proto, counter_value, counts_to_proto, meter_config,
};
pub(super) use entry::{DefaultState, ReadFlags};
pub(super) use sdn::{NewName, Sdn};

use field::{Field, Form};
use p4lang::ast::Literal;
use p4lang::ir::Type;
use p4lang::p4info::{ActionScope, ControllerPacketMetadata, PacketMetadata, SdnType, Table};
use p4rt::p4info::Index;
use p4rt::rpc::Code;
use p4rt::status::UpdateError;
use pipeline::Switch;
use std::collections::BTreeMap;

/// core.p4's action that does nothing.
const NO_ACTION: &str = "NoAction";

/// The running program with the ids and names that a client's P4Info gives its objects.
pub(super) struct Binding {
    /// The client's P4Info, indexed by ids and names.
    pub(super) index: Index,
    /// The tables by their ids in P4Info.
    tables: BTreeMap<u32, BoundTable>,
    /// Ids of the tables in P4Info, by their indices in the program.
    by_position: BTreeMap<usize, u32>,
    /// For each register, by id in P4Info: the widths in bits of the scalars in one of its cells.
    register_widths: BTreeMap<u32, Vec<u32>>,
    /// For each value set, by id in P4Info: the key fields of its members.
    value_sets: BTreeMap<u32, Vec<Field>>,
    /// For each controller header (`packet_in`, `packet_out`), by id in P4Info: its fields.
    headers: BTreeMap<u32, Vec<HeaderField>>,
    sdn: Sdn,
}

/// A table of the client's P4Info, and its index in the program.
pub(super) struct BoundTable {
    pub(super) info: Table,
    pub(super) position: usize,
    /// Key fields of the table, in the program's order.
    fields: Vec<Field>,
    /// Actions of the table in the program's order, possibly followed by [`implied_action`].
    actions: Vec<BoundAction>,
    pub(super) has_counter: bool,
    pub(super) has_meter: bool,
}

struct BoundAction {
    id: u32,
    name: String,
    scope: ActionScope,
    /// Parameters of the action, in the program's order.
    params: Vec<BoundParam>,
}

struct BoundParam {
    id: u32,
    name: String,
    /// Width of the parameter's values in the control plane, in bits.
    bitwidth: u32,
    /// Width of the parameter's values in the program, in bits.
    width: u32,
    form: Form,
}

/// A field of a controller header; the fields are in the order in which the frame has them.
struct HeaderField {
    /// Width of the field in the program, in bits: for translated types P4Info only has the client's width.
    width: u32,
    /// Index of the field in P4Info; `None`: P4Info hides the field, which is then 0.
    metadata: Option<usize>,
    /// Whether a client may omit the field from the metadata of a packet-out.
    padding: bool,
    form: Form,
}

impl Binding {
    /// Binds P4Info to a program. The caller has checked that `index` describes the program of `switch`.
    pub(super) fn new(index: Index, switch: &Switch, sdn: Sdn) -> Self {
        let mut tables = BTreeMap::new();
        for info in index.tables.iter() {
            let Some(position) = switch.table_position(&info.preamble.name) else {
                continue;
            };
            let Some(spec) = switch.table_spec(position) else {
                continue;
            };
            let fields = spec.fields.iter().filter_map(|spec| {
                let info = info.match_fields.iter().find(|f| f.name == spec.name)?;
                Some(Field::new(
                    info,
                    spec,
                    form(&index, info.type_name.as_ref()),
                ))
            });
            let actions = spec.actions.iter().map(|spec| {
                let action = index.actions.named(&spec.name);
                let offered =
                    action.and_then(|a| info.action_refs.iter().find(|r| r.id == a.preamble.id));
                let params = spec.params.iter().filter_map(|(name, width)| {
                    let param = action?.params.iter().find(|p| p.name == *name)?;
                    Some(BoundParam {
                        id: param.id,
                        name: name.clone(),
                        bitwidth: param.bitwidth,
                        width: *width,
                        form: form(&index, param.type_name.as_ref()),
                    })
                });
                BoundAction {
                    // An action that P4Info lacks has no id.
                    id: action.map_or(0, |a| a.preamble.id),
                    name: spec.name.clone(),
                    scope: offered.map_or(ActionScope::TableAndDefault, |r| r.scope),
                    params: params.collect(),
                }
            });
            let bound = BoundTable {
                position,
                fields: fields.collect(),
                actions: actions.chain(implied_action(&index, info, spec)).collect(),
                has_counter: spec.direct_counter.is_some(),
                has_meter: spec.direct_meter.is_some(),
                info: info.clone(),
            };
            tables.insert(info.preamble.id, bound);
        }
        let value_sets = index.value_sets.iter().filter_map(|set| {
            let specs = switch.value_set_fields(&set.preamble.name).ok()?;
            // By position, because unnamed fields have no name in the program either.
            let fields = set.match_fields.iter().zip(specs);
            let fields = fields
                .map(|(info, spec)| Field::new(info, spec, form(&index, info.type_name.as_ref())));
            Some((set.preamble.id, fields.collect()))
        });
        let register_widths = index.registers.iter().filter_map(|register| {
            let name = &register.preamble.name;
            let info = switch.registers().iter().find(|info| info.name == *name)?;
            Some((register.preamble.id, info.widths.clone()))
        });
        let headers = index.controller_headers.iter();
        let headers =
            headers.map(|header| (header.preamble.id, header_fields(&index, switch, header)));
        // Collected before the index is moved.
        let headers = headers.collect();
        Self {
            by_position: tables.iter().map(|(id, t)| (t.position, *id)).collect(),
            value_sets: value_sets.collect(),
            register_widths: register_widths.collect(),
            headers,
            tables,
            sdn,
            index,
        }
    }

    /// The table with this id in P4Info, or an error.
    pub(super) fn table(&self, id: u32) -> Result<&BoundTable, UpdateError> {
        let unknown = || p4rt::translate::TranslateError::unknown_id::<Table>(id).into();
        self.tables.get(&id).ok_or_else(unknown)
    }

    /// Ids and tables, in the order of P4Info.
    pub(super) fn tables(&self) -> impl Iterator<Item = (u32, &BoundTable)> {
        let ids = self.index.tables.iter().map(|table| table.preamble.id);
        ids.filter_map(|id| Some((id, self.tables.get(&id)?)))
    }

    /// The table with this index in the program.
    pub(super) fn table_at(&self, position: usize) -> Option<&BoundTable> {
        self.tables.get(self.by_position.get(&position)?)
    }
}

/// `NoAction`, which a table without a default action falls back to: P4Info lists it (P4Runtime 1.4, section 9.1) even
/// if the program's table does not. It comes after the program's actions, none of which has this name.
fn implied_action(index: &Index, info: &Table, spec: &pipeline::TableSpec) -> Option<BoundAction> {
    if spec.actions.iter().any(|action| action.name == NO_ACTION) {
        return None;
    }
    let id = index.actions.named(NO_ACTION)?.preamble.id;
    let offered = info.action_refs.iter().any(|action| action.id == id);
    offered.then(|| BoundAction {
        id,
        name: NO_ACTION.to_owned(),
        scope: ActionScope::DefaultOnly,
        params: Vec::new(),
    })
}

/// Whether clients write the values of a type as numbers or as strings that the switch translates.
fn form(index: &Index, type_name: Option<&String>) -> Form {
    match type_name.and_then(|name| index.translation(name)) {
        Some((uri, SdnType::String)) => Form::Text(uri.to_owned()),
        Some((_, SdnType::Bits(_))) | None => Form::Number,
    }
}

fn header_fields(
    index: &Index,
    switch: &Switch,
    header: &ControllerPacketMetadata,
) -> Vec<HeaderField> {
    let is = |literal: &Literal, name: &str| matches!(literal, Literal::Str(s) if s == name);
    let declared = switch.program().types.iter().find(|ty| {
        let mut annotations = ty.annotations.iter();
        annotations.any(|a| {
            let named = a
                .literals
                .first()
                .is_some_and(|l| is(l, &header.preamble.name));
            a.name == "controller_header" && named
        })
    });
    let Some(declared) = declared else {
        // For a program without the header, P4Info's fields are used.
        let fields = header.metadata.iter().enumerate();
        let field = |(at, field): (usize, &PacketMetadata)| HeaderField {
            width: field.bitwidth,
            metadata: Some(at),
            padding: false,
            form: Form::Number,
        };
        return fields.map(field).collect();
    };
    let field = |field: &p4lang::ir::FieldType| {
        let mut names = field.annotations.iter().filter(|a| a.name == "name");
        let renamed = names.find_map(|a| match a.literals.first() {
            Some(Literal::Str(name)) => Some(name.as_str()),
            _ => None,
        });
        let name = renamed.unwrap_or(&field.name);
        let metadata = header.metadata.iter().position(|m| m.name == name);
        let type_name = metadata.and_then(|at| header.metadata[at].type_name.as_ref());
        HeaderField {
            width: match field.ty {
                Type::Bit(width) | Type::Int(width) => width,
                Type::Bool => 1,
                _ => 0,
            },
            metadata,
            padding: field.annotations.iter().any(|a| a.name == "padding"),
            form: form(index, type_name),
        }
    };
    declared.fields.iter().map(field).collect()
}

fn invalid(message: impl Into<String>) -> UpdateError {
    UpdateError::new(Code::InvalidArgument, message)
}

/// The error of an update or read that names a table entry which does not exist.
pub(super) fn no_entry() -> UpdateError {
    UpdateError::new(Code::NotFound, "no such entry")
}
