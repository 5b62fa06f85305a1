//! Adds the extern objects of PSA, v1model and TNA to the P4Info.

use super::builder::Builder;
use super::typing::type_name;
use super::*;
use crate::ids::Prefix;
use crate::ir::{self, Const, ExternFunction, ExternId, ExternKind, StmtKind, Type, visit};

/// The P4Info kind of an extern object; `None` if P4Info does not list such objects.
pub(super) fn prefix(kind: &ExternKind) -> Option<Prefix> {
    Some(match kind {
        ExternKind::Counter => Prefix::Counter,
        ExternKind::DirectCounter => Prefix::DirectCounter,
        ExternKind::Meter => Prefix::Meter,
        ExternKind::DirectMeter => Prefix::DirectMeter,
        ExternKind::Register => Prefix::Register,
        ExternKind::ActionProfile | ExternKind::ActionSelector => Prefix::ActionProfile,
        ExternKind::Digest => Prefix::Digest,
        _ => return None,
    })
}

/// A digest and the type of its message.
pub(super) struct DigestSource {
    pub(super) name: String,
    pub(super) ty: Type,
}

/// The digests of v1model's function `digest<T>(…)`, which has no object: each is named after T.
pub(super) fn digest_calls(program: &ir::Program, control: &ir::Control) -> Vec<DigestSource> {
    let mut found = Vec::new();
    if program.arch != ir::Arch::V1model {
        return found;
    }
    let mut see = |stmt: &ir::Stmt| {
        if let StmtKind::CallExtern {
            function: ExternFunction::Digest,
            type_args,
            ..
        } = &stmt.kind
            && let Some(ty) = type_args.first()
        {
            let name = match ty {
                Type::Struct(id) => program.types.get(id.index()).map(type_name),
                _ => None,
            };
            let number = found.len();
            found.push(DigestSource {
                name: name.unwrap_or_else(|| format!("digest_{number}")),
                ty: ty.clone(),
            });
        }
    };
    for action in &control.actions {
        visit(&action.body, &mut see);
    }
    visit(&control.body, &mut see);
    found
}

/// Ids of the objects that belong to a table: its action profile, and its direct counters and meters.
#[derive(Default)]
pub(super) struct Resources {
    pub(super) implementation: u32,
    pub(super) direct: Vec<u32>,
}

/// Table properties that name an action profile, in the order in which P4Info lists them.
const IMPLEMENTATION: [&str; 2] = ["psa_implementation", "implementation"];
const DIRECT: [&str; 4] = [
    "psa_direct_counter",
    "counters",
    "psa_direct_meter",
    "meters",
];

impl Builder<'_> {
    /// Returns the ids of a table's extern objects, and adds its direct counters and meters to the P4Info.
    pub(super) fn table_resources(
        &self,
        control: &ir::Control,
        table: &ir::Table,
        info: &mut P4Info,
    ) -> Resources {
        let mut resources = Resources::default();
        for instance in self.property_externs(table, &IMPLEMENTATION) {
            if prefix(&instance.kind) == Some(Prefix::ActionProfile) {
                resources.implementation = self.ids.id(Prefix::ActionProfile, &instance.name);
            }
        }
        let mut direct = self.property_externs(table, &DIRECT);
        if matches!(self.program.arch, ir::Arch::Tna | ir::Arch::T2na) {
            self.add_called_by_actions(control, table, &mut direct);
        }
        let table_id = self.ids.id(Prefix::Table, &table.name);
        for instance in direct {
            let kind = prefix(&instance.kind);
            let (Some(kind), Some(unit)) = (kind, self.unit(instance)) else {
                continue;
            };
            let preamble = self.preamble(kind, &instance.name, &instance.annotations);
            let id = preamble.id;
            match kind {
                Prefix::DirectCounter => info.direct_counters.push(DirectCounter {
                    preamble,
                    unit,
                    table_id,
                }),
                Prefix::DirectMeter => info.direct_meters.push(DirectMeter {
                    preamble,
                    unit,
                    table_id,
                }),
                _ => continue,
            }
            resources.direct.push(id);
        }
        resources
    }

    fn property_externs(&self, table: &ir::Table, names: &[&str]) -> Vec<&ir::ExternInstance> {
        let mut found = Vec::new();
        for name in names {
            for (_, value) in table.properties.iter().filter(|(n, _)| n == name) {
                let values = match value {
                    Const::Tuple(values) => values.as_slice(),
                    value => std::slice::from_ref(value),
                };
                for value in values {
                    if let Const::Extern(id) = value {
                        found.extend(self.program.externs.get(id.index()));
                    }
                }
            }
        }
        found
    }

    /// Adds a table's direct counters and meters on Tofino, where they belong to the table whose actions call them.
    fn add_called_by_actions<'s>(
        &'s self,
        control: &ir::Control,
        table: &ir::Table,
        direct: &mut Vec<&'s ir::ExternInstance>,
    ) {
        let mut called: Vec<ExternId> = Vec::new();
        for offered in &table.actions {
            let Some(action) = control.actions.get(offered.action.index()) else {
                continue;
            };
            for block in [&offered.calls, &action.body] {
                visit(block, &mut |stmt| {
                    if let StmtKind::CallMethod { object, .. } = &stmt.kind {
                        called.push(*object);
                    }
                });
            }
        }
        called.sort_unstable();
        called.dedup();
        for id in called {
            if let Some(instance) = self.program.externs.get(id.index())
                && !direct.iter().any(|d| d.name == instance.name)
            {
                direct.push(instance);
            }
        }
    }

    pub(super) fn extern_instance(&self, instance: &ir::ExternInstance, info: &mut P4Info) {
        let Some(kind) = prefix(&instance.kind) else {
            return;
        };
        let preamble = self.preamble(kind, &instance.name, &instance.annotations);
        match kind {
            Prefix::Counter => {
                if let Some(unit) = self.unit(instance) {
                    let index_type = self.index_type(instance, info);
                    info.counters.push(Counter {
                        preamble,
                        unit,
                        size: size(instance),
                        index_type,
                    });
                }
            }
            Prefix::Meter => {
                if let Some(unit) = self.unit(instance) {
                    let index_type = self.index_type(instance, info);
                    info.meters.push(Meter {
                        preamble,
                        unit,
                        size: size(instance),
                        index_type,
                    });
                }
            }
            Prefix::Register => {
                if let Some(ty) = instance.type_args.first() {
                    let (element, struct_name) = self.element(ty);
                    let data_type = self.element_type(instance, info);
                    let index_type = self.index_type(instance, info);
                    info.registers.push(Register {
                        preamble,
                        element,
                        struct_name,
                        size: size(instance),
                        data_type,
                        index_type,
                    });
                }
            }
            Prefix::ActionProfile => info
                .action_profiles
                .push(self.action_profile(preamble, instance)),
            Prefix::Digest => {
                if let Some(ty) = instance.type_args.first() {
                    let (element, struct_name) = self.element(ty);
                    let data_type = self.element_type(instance, info);
                    info.digests.push(Digest {
                        preamble,
                        element,
                        struct_name,
                        data_type,
                    });
                }
            }
            // The tables add their direct resources.
            _ => {}
        }
    }

    fn element_type(&self, instance: &ir::ExternInstance, info: &mut P4Info) -> Option<DataType> {
        self.data_type(instance.declared_args.first()?, &mut info.types)
    }

    /// The name of the type of an extern's index, from its last type argument; `None` if P4Info names no such type.
    fn index_type(&self, instance: &ir::ExternInstance, info: &mut P4Info) -> Option<String> {
        let position = match prefix(&instance.kind)? {
            Prefix::Register => 1,
            // The width of a cell precedes the index, where there is one.
            Prefix::Counter => instance.declared_args.len().saturating_sub(1),
            _ => 0,
        };
        self.type_name(instance.declared_args.get(position)?, &mut info.types)
    }

    fn action_profile(
        &self,
        mut preamble: Preamble,
        instance: &ir::ExternInstance,
    ) -> ActionProfile {
        preamble.annotations.retain(|annotation| {
            let name = annotation.split('(').next().unwrap_or("");
            !matches!(
                name,
                "@max_group_size" | "@selector_size_semantics" | "@max_member_weight"
            )
        });
        // TNA's selector takes the size of its profile.
        let profile = argument(instance, "action_profile").and_then(|value| match value {
            Const::Extern(id) => self.program.externs.get(id.index()),
            _ => None,
        });
        let tables = self.program.controls.iter().flat_map(|c| &c.tables);
        let mut users: Vec<&str> = tables
            .filter(|table| {
                let used = self.property_externs(table, &IMPLEMENTATION);
                used.iter().any(|used| used.name == instance.name)
            })
            .map(|table| table.name.as_str())
            .collect();
        users.sort_unstable();
        users.dedup();
        // Only a selector has groups.
        let with_selector = instance.kind == ExternKind::ActionSelector;
        ActionProfile {
            preamble,
            table_ids: users
                .into_iter()
                .map(|name| self.ids.id(Prefix::Table, name))
                .collect(),
            with_selector,
            size: size(profile.unwrap_or(instance)),
            max_group_size: match with_selector {
                true => annotated_number(instance, "max_group_size"),
                false => 0,
            },
            selector_size: with_selector.then(|| selector_size(instance)).flatten(),
        }
    }

    pub(super) fn digest(&self, source: DigestSource, info: &mut P4Info) {
        if info.digests.iter().any(|d| d.preamble.name == source.name) {
            return;
        }
        let (element, struct_name) = self.element(&source.ty);
        let data_type = self.data_type(&ir::Declared::Plain(source.ty), &mut info.types);
        info.digests.push(Digest {
            preamble: self.preamble(Prefix::Digest, &source.name, &[]),
            element,
            struct_name,
            data_type,
        });
    }

    /// The scalars of a register's or digest's element, and the name of its struct. Fields of inner structs are named `a.b`.
    fn element(&self, ty: &Type) -> (Vec<ElementField>, Option<String>) {
        let mut fields = Vec::new();
        self.flatten(ty, "", &mut fields);
        let name = match ty {
            Type::Struct(id) => self.program.types.get(id.index()).map(type_name),
            _ => None,
        };
        (fields, name)
    }

    fn flatten(&self, ty: &Type, name: &str, fields: &mut Vec<ElementField>) {
        let join = |inner: &str| match name {
            "" => inner.to_owned(),
            outer => format!("{outer}.{inner}"),
        };
        match ty {
            Type::Struct(id) => {
                let inner = self.program.types.get(id.index());
                for field in inner.map(|t| t.fields.as_slice()).unwrap_or_default() {
                    self.flatten(&field.ty, &join(&field.name), fields);
                }
            }
            Type::Tuple(types) => {
                for (index, ty) in types.iter().enumerate() {
                    self.flatten(ty, &join(&format!("f{index}")), fields);
                }
            }
            scalar => fields.push(ElementField {
                name: name.to_owned(),
                bitwidth: self.width(scalar),
                signed: matches!(scalar, Type::Int(_)),
                boolean: matches!(scalar, Type::Bool),
            }),
        }
    }

    /// The unit (bytes, packets or both) in the `type` argument of a counter's or meter's constructor.
    fn unit(&self, instance: &ir::ExternInstance) -> Option<Unit> {
        let Const::Enum(id, member) = argument(instance, "type")? else {
            return None;
        };
        let members = &self.program.enums.get(id.index())?.members;
        match members.get(*member as usize)?.to_ascii_lowercase().as_str() {
            "packets" => Some(Unit::Packets),
            "bytes" => Some(Unit::Bytes),
            "packets_and_bytes" => Some(Unit::Both),
            _ => None,
        }
    }
}

fn annotated_number(instance: &ir::ExternInstance, name: &str) -> i32 {
    let annotation = instance.annotations.iter().find(|a| a.name == name);
    match annotation.and_then(|a| a.literals.first()) {
        Some(crate::ast::Literal::Int(n)) => i32::try_from(n).unwrap_or(i32::MAX),
        _ => 0,
    }
}

fn selector_size(instance: &ir::ExternInstance) -> Option<SelectorSize> {
    let annotation = instance
        .annotations
        .iter()
        .find(|a| a.name == "selector_size_semantics")?;
    let said = match annotation.literals.first() {
        Some(crate::ast::Literal::Str(said)) => said.as_str(),
        _ => annotation.text.trim(),
    };
    match said {
        "sum_of_weights" => Some(SelectorSize::SumOfWeights),
        "sum_of_members" => Some(SelectorSize::SumOfMembers {
            max_member_weight: annotated_number(instance, "max_member_weight"),
        }),
        _ => None,
    }
}

fn argument<'i>(instance: &'i ir::ExternInstance, name: &str) -> Option<&'i Const> {
    let mut args = instance.args.iter();
    args.find(|(n, _)| n == name).map(|(_, value)| value)
}

/// Number of cells of an extern array, or of members of an action profile, from its constructor arguments.
fn size(instance: &ir::ExternInstance) -> i64 {
    let value = ["size", "n_counters", "n_meters"]
        .iter()
        .find_map(|name| argument(instance, name));
    match value {
        Some(Const::Bits { value, .. }) => i64::try_from(value).unwrap_or(i64::MAX),
        Some(Const::Integer(value)) => i64::try_from(value).unwrap_or(i64::MAX),
        _ => 0,
    }
}
