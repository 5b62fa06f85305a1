//! p4lang's P4Info as the protocol's message.

use crate::config;
use p4lang::p4info as model;

/// The message that describes the same program.
#[must_use]
pub fn to_proto(info: &model::P4Info) -> config::P4Info {
    config::P4Info {
        pkg_info: Some(config::PkgInfo {
            arch: info.arch.clone(),
            name: info.name.clone(),
            ..Default::default()
        }),
        tables: info.tables.iter().map(table).collect(),
        actions: info.actions.iter().map(action).collect(),
        action_profiles: info.action_profiles.iter().map(action_profile).collect(),
        counters: info.counters.iter().map(counter).collect(),
        direct_counters: info.direct_counters.iter().map(direct_counter).collect(),
        meters: info.meters.iter().map(meter).collect(),
        direct_meters: info.direct_meters.iter().map(direct_meter).collect(),
        controller_packet_metadata: info
            .controller_packet_metadata
            .iter()
            .map(controller_header)
            .collect(),
        value_sets: info.value_sets.iter().map(value_set).collect(),
        registers: info.registers.iter().map(register).collect(),
        digests: info.digests.iter().map(digest).collect(),
        externs: Vec::new(),
        type_info: type_info(info),
    }
}

fn preamble(preamble: &model::Preamble) -> Option<config::Preamble> {
    Some(config::Preamble {
        id: preamble.id,
        name: preamble.name.clone(),
        alias: preamble.alias.clone(),
        annotations: preamble.annotations.clone(),
        ..Default::default()
    })
}

fn table(table: &model::Table) -> config::Table {
    config::Table {
        preamble: preamble(&table.preamble),
        match_fields: table.match_fields.iter().map(match_field).collect(),
        action_refs: table.action_refs.iter().map(action_ref).collect(),
        const_default_action_id: table.const_default_action_id,
        initial_default_action: (table.initial_default_action_id != 0).then(|| {
            config::TableActionCall {
                action_id: table.initial_default_action_id,
                arguments: Vec::new(),
            }
        }),
        implementation_id: table.implementation_id,
        direct_resource_ids: table.direct_resource_ids.clone(),
        size: table.size,
        is_const_table: table.is_const_table,
        has_initial_entries: table.has_initial_entries,
        ..Default::default()
    }
}

fn match_field(field: &model::MatchField) -> config::MatchField {
    use config::match_field::{Match, MatchType};
    let kind = |kind: MatchType| Match::MatchType(kind.into());
    config::MatchField {
        id: field.id,
        name: field.name.clone(),
        annotations: field.annotations.clone(),
        bitwidth: signed(field.bitwidth),
        r#match: Some(match &field.match_type {
            model::MatchType::Exact => kind(MatchType::Exact),
            model::MatchType::Lpm => kind(MatchType::Lpm),
            model::MatchType::Ternary => kind(MatchType::Ternary),
            model::MatchType::Range => kind(MatchType::Range),
            model::MatchType::Optional => kind(MatchType::Optional),
            model::MatchType::Other(name) => Match::OtherMatchType(name.clone()),
        }),
        ..Default::default()
    }
}

fn action_ref(action: &model::ActionRef) -> config::ActionRef {
    use config::action_ref::Scope;
    let scope = match action.scope {
        model::ActionScope::TableAndDefault => Scope::TableAndDefault,
        model::ActionScope::TableOnly => Scope::TableOnly,
        model::ActionScope::DefaultOnly => Scope::DefaultOnly,
    };
    config::ActionRef {
        id: action.id,
        scope: scope.into(),
        annotations: action.annotations.clone(),
        ..Default::default()
    }
}

fn action(action: &model::Action) -> config::Action {
    let param = |param: &model::Param| config::action::Param {
        id: param.id,
        name: param.name.clone(),
        annotations: param.annotations.clone(),
        bitwidth: signed(param.bitwidth),
        ..Default::default()
    };
    config::Action {
        preamble: preamble(&action.preamble),
        params: action.params.iter().map(param).collect(),
    }
}

fn action_profile(profile: &model::ActionProfile) -> config::ActionProfile {
    config::ActionProfile {
        preamble: preamble(&profile.preamble),
        table_ids: profile.table_ids.clone(),
        with_selector: profile.with_selector,
        size: profile.size,
        ..Default::default()
    }
}

fn counter_spec(unit: model::Unit) -> Option<config::CounterSpec> {
    use config::counter_spec::Unit;
    let unit = match unit {
        model::Unit::Bytes => Unit::Bytes,
        model::Unit::Packets => Unit::Packets,
        model::Unit::Both => Unit::Both,
    };
    Some(config::CounterSpec { unit: unit.into() })
}

fn meter_spec(unit: model::Unit) -> Option<config::MeterSpec> {
    use config::meter_spec::Unit;
    let unit = match unit {
        model::Unit::Bytes => Unit::Bytes,
        model::Unit::Packets => Unit::Packets,
        model::Unit::Both => Unit::Unspecified,
    };
    Some(config::MeterSpec {
        unit: unit.into(),
        ..Default::default()
    })
}

fn counter(counter: &model::Counter) -> config::Counter {
    config::Counter {
        preamble: preamble(&counter.preamble),
        spec: counter_spec(counter.unit),
        size: counter.size,
        index_type_name: None,
    }
}

fn direct_counter(counter: &model::DirectCounter) -> config::DirectCounter {
    config::DirectCounter {
        preamble: preamble(&counter.preamble),
        spec: counter_spec(counter.unit),
        direct_table_id: counter.table_id,
    }
}

fn meter(meter: &model::Meter) -> config::Meter {
    config::Meter {
        preamble: preamble(&meter.preamble),
        spec: meter_spec(meter.unit),
        size: meter.size,
        index_type_name: None,
    }
}

fn direct_meter(meter: &model::DirectMeter) -> config::DirectMeter {
    config::DirectMeter {
        preamble: preamble(&meter.preamble),
        spec: meter_spec(meter.unit),
        direct_table_id: meter.table_id,
    }
}

fn controller_header(header: &model::ControllerPacketMetadata) -> config::ControllerPacketMetadata {
    let field = |field: &model::PacketMetadata| config::controller_packet_metadata::Metadata {
        id: field.id,
        name: field.name.clone(),
        bitwidth: signed(field.bitwidth),
        ..Default::default()
    };
    config::ControllerPacketMetadata {
        preamble: preamble(&header.preamble),
        metadata: header.metadata.iter().map(field).collect(),
    }
}

fn value_set(set: &model::ValueSet) -> config::ValueSet {
    config::ValueSet {
        preamble: preamble(&set.preamble),
        r#match: set.match_fields.iter().map(match_field).collect(),
        size: i32::try_from(set.size).unwrap_or(i32::MAX),
    }
}

fn register(register: &model::Register) -> config::Register {
    config::Register {
        preamble: preamble(&register.preamble),
        type_spec: element(register.struct_name.as_deref(), &register.element),
        size: i32::try_from(register.size).unwrap_or(i32::MAX),
        index_type_name: None,
    }
}

fn digest(digest: &model::Digest) -> config::Digest {
    config::Digest {
        preamble: preamble(&digest.preamble),
        type_spec: element(digest.struct_name.as_deref(), &digest.element),
    }
}

fn element(
    struct_name: Option<&str>,
    fields: &[model::ElementField],
) -> Option<config::P4DataTypeSpec> {
    use config::p4_data_type_spec::TypeSpec;
    let type_spec = match (struct_name, fields) {
        (Some(name), _) => TypeSpec::Struct(config::P4NamedType {
            name: name.to_owned(),
        }),
        (None, [field]) => scalar(field),
        (None, fields) => TypeSpec::Tuple(config::P4TupleTypeSpec {
            members: fields
                .iter()
                .map(|field| config::P4DataTypeSpec {
                    type_spec: Some(scalar(field)),
                })
                .collect(),
        }),
    };
    Some(config::P4DataTypeSpec {
        type_spec: Some(type_spec),
    })
}

fn scalar(field: &model::ElementField) -> config::p4_data_type_spec::TypeSpec {
    use config::p4_bitstring_like_type_spec::TypeSpec as Bits;
    use config::p4_data_type_spec::TypeSpec;
    let bitwidth = signed(field.bitwidth);
    let bits = match (field.boolean, field.signed) {
        (true, _) => return TypeSpec::Bool(config::P4BoolType {}),
        (false, true) => Bits::Int(config::P4IntTypeSpec { bitwidth }),
        (false, false) => Bits::Bit(config::P4BitTypeSpec { bitwidth }),
    };
    TypeSpec::Bitstring(config::P4BitstringLikeTypeSpec {
        type_spec: Some(bits),
        ..Default::default()
    })
}

/// The struct types that registers and digests refer to by name.
fn type_info(info: &model::P4Info) -> Option<config::P4TypeInfo> {
    let registers = info.registers.iter().map(|r| (&r.struct_name, &r.element));
    let digests = info.digests.iter().map(|d| (&d.struct_name, &d.element));
    let structs: std::collections::BTreeMap<_, _> = registers
        .chain(digests)
        .filter_map(|(name, fields)| {
            let members = fields
                .iter()
                .map(|field| config::p4_struct_type_spec::Member {
                    name: field.name.clone(),
                    type_spec: Some(config::P4DataTypeSpec {
                        type_spec: Some(scalar(field)),
                    }),
                });
            let spec = config::P4StructTypeSpec {
                members: members.collect(),
                ..Default::default()
            };
            name.clone().map(|name| (name, spec))
        })
        .collect();
    (!structs.is_empty()).then(|| config::P4TypeInfo {
        structs,
        ..Default::default()
    })
}

/// Widths are `int32` in the protocol and small in any program.
fn signed(bitwidth: u32) -> i32 {
    i32::try_from(bitwidth).unwrap_or(i32::MAX)
}
