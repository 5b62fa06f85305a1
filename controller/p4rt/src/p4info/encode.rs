//! Encodes p4lang's P4Info as P4Runtime's message.

mod annotations;
mod types;

use super::MATCH_TYPES;
use crate::config;
use annotations::{documentation, structured};
use p4lang::p4info as model;

/// The P4Info message that describes the same program as `info`.
#[must_use]
pub fn to_proto(info: &model::P4Info) -> config::P4Info {
    config::P4Info {
        pkg_info: Some(package(info)),
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
        type_info: types::type_info(info),
    }
}

fn package(info: &model::P4Info) -> config::PkgInfo {
    let package = &info.package;
    config::PkgInfo {
        arch: info.arch.clone(),
        name: if package.name.is_empty() {
            info.name.clone()
        } else {
            package.name.clone()
        },
        version: package.version.clone(),
        organization: package.organization.clone(),
        contact: package.contact.clone(),
        url: package.url.clone(),
        doc: documentation(&package.brief, &package.description),
        annotations: package.annotations.clone(),
        platform_properties: package.platform.map(|p| config::PlatformProperties {
            multicast_group_table_size: p.multicast_group_table_size,
            multicast_group_table_total_replicas: p.multicast_group_table_total_replicas,
            multicast_group_table_max_replicas_per_entry: p
                .multicast_group_table_max_replicas_per_entry,
        }),
        ..Default::default()
    }
}

fn preamble(preamble: &model::Preamble) -> Option<config::Preamble> {
    Some(config::Preamble {
        id: preamble.id,
        name: preamble.name.clone(),
        alias: preamble.alias.clone(),
        annotations: preamble.annotations.clone(),
        doc: documentation(&preamble.brief, &preamble.description),
        structured_annotations: structured(&preamble.structured),
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
                arguments: arguments(&table.initial_default_args),
            }
        }),
        implementation_id: table.implementation_id,
        direct_resource_ids: table.direct_resource_ids.clone(),
        size: table.size,
        is_const_table: table.is_const_table,
        has_initial_entries: table.has_initial_entries,
        idle_timeout_behavior: if table.idle_timeout {
            config::table::IdleTimeoutBehavior::NotifyControl.into()
        } else {
            config::table::IdleTimeoutBehavior::NoTimeout.into()
        },
        ..Default::default()
    }
}

fn arguments(args: &[(u32, Vec<u8>)]) -> Vec<config::table_action_call::Argument> {
    args.iter()
        .map(|(id, value)| config::table_action_call::Argument {
            param_id: *id,
            value: value.clone(),
        })
        .collect()
}

fn named(name: Option<&String>) -> Option<config::P4NamedType> {
    name.map(|name| config::P4NamedType { name: name.clone() })
}

fn match_field(field: &model::MatchField) -> config::MatchField {
    use config::match_field::{Match, MatchType};
    config::MatchField {
        id: field.id,
        name: field.name.clone(),
        annotations: field.annotations.clone(),
        bitwidth: signed(field.bitwidth),
        r#match: Some(match &field.match_type {
            model::MatchType::Standard(kind) => {
                let named = MATCH_TYPES.iter().find(|(of, _)| of == kind);
                let match_type = named.map_or(MatchType::Unspecified, |(_, name)| *name);
                Match::MatchType(match_type.into())
            }
            model::MatchType::Other(name) => Match::OtherMatchType(name.clone()),
        }),
        type_name: named(field.type_name.as_ref()),
        structured_annotations: structured(&field.structured),
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
        structured_annotations: structured(&action.structured),
        ..Default::default()
    }
}

fn action(action: &model::Action) -> config::Action {
    let param = |param: &model::Param| config::action::Param {
        id: param.id,
        name: param.name.clone(),
        annotations: param.annotations.clone(),
        bitwidth: signed(param.bitwidth),
        type_name: named(param.type_name.as_ref()),
        structured_annotations: structured(&param.structured),
        ..Default::default()
    };
    config::Action {
        preamble: preamble(&action.preamble),
        params: action.params.iter().map(param).collect(),
    }
}

fn action_profile(profile: &model::ActionProfile) -> config::ActionProfile {
    use config::action_profile::{SelectorSizeSemantics, SumOfMembers, SumOfWeights};
    config::ActionProfile {
        preamble: preamble(&profile.preamble),
        table_ids: profile.table_ids.clone(),
        with_selector: profile.with_selector,
        size: profile.size,
        max_group_size: profile.max_group_size,
        selector_size_semantics: profile.selector_size.map(|semantics| match semantics {
            model::SelectorSize::SumOfWeights => {
                SelectorSizeSemantics::SumOfWeights(SumOfWeights {})
            }
            model::SelectorSize::SumOfMembers { max_member_weight } => {
                SelectorSizeSemantics::SumOfMembers(SumOfMembers { max_member_weight })
            }
        }),
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
        index_type_name: named(counter.index_type.as_ref()),
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
        index_type_name: named(meter.index_type.as_ref()),
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
        annotations: field.annotations.clone(),
        type_name: named(field.type_name.as_ref()),
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
        type_spec: types::element(
            register.data_type.as_ref(),
            register.struct_name.as_deref(),
            &register.element,
        ),
        size: i32::try_from(register.size).unwrap_or(i32::MAX),
        index_type_name: named(register.index_type.as_ref()),
    }
}

fn digest(digest: &model::Digest) -> config::Digest {
    config::Digest {
        preamble: preamble(&digest.preamble),
        type_spec: types::element(
            digest.data_type.as_ref(),
            digest.struct_name.as_deref(),
            &digest.element,
        ),
    }
}

/// Converts a bit width to `int32`, the protocol's type for widths; widths are small in any program.
fn signed(bitwidth: u32) -> i32 {
    i32::try_from(bitwidth).unwrap_or(i32::MAX)
}
