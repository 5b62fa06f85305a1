//! Decodes P4Runtime's P4Info message into p4lang's plain data, so that weir can use a program compiled elsewhere.

mod types;

use super::MATCH_TYPES;
use crate::config;
use crate::status::excerpt;
use p4lang::{LIMITS, p4info as model};

/// Why a P4Info message is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A P4Info object has neither id nor name.
    #[error("{section} {position} has no preamble")]
    NoPreamble {
        /// Kind of the object: `table`, `action`, …
        section: &'static str,
        /// Position of the object in its list of the message, from 0.
        position: usize,
    },
    /// A bit width is out of range.
    #[error("`{}` has bit width {bitwidth}; the maximum is {}", excerpt(name), LIMITS.width)]
    Width {
        /// Name of the field, parameter or object that has the width.
        name: String,
        /// The width in bits that was sent.
        bitwidth: i32,
    },
    /// A key field has no match kind.
    #[error("key field `{}` has no match type", excerpt(field))]
    NoMatchType {
        /// Name of the key field.
        field: String,
    },
    /// Two P4Info objects of one kind have the same id or name.
    #[error("{section} `{}` (id {id}) is declared twice", excerpt(name))]
    Duplicate {
        /// Kind of the objects: `table`, `action`, …
        section: &'static str,
        /// Name of the second of the two objects.
        name: String,
        /// Id of the second of the two objects.
        id: u32,
    },
}

/// Decodes the program that a P4Info message describes.
///
/// Externs of other architectures are left out. `element` is empty for a register or digest whose cells or messages contain
/// header unions or header stacks.
pub fn from_proto(info: &config::P4Info) -> Result<model::P4Info, DecodeError> {
    let package = info.pkg_info.clone().unwrap_or_default();
    let program = self::package(&package);
    let types = info.type_info.as_ref().map(types::type_info).transpose()?;
    let types = types.unwrap_or_default();
    Ok(model::P4Info {
        arch: package.arch,
        name: package.name,
        tables: each("table", &info.tables, |t| &t.preamble, table)?,
        actions: each("action", &info.actions, |a| &a.preamble, action)?,
        action_profiles: each(
            "action profile",
            &info.action_profiles,
            |p| &p.preamble,
            |profile, preamble| Ok(action_profile(profile, preamble)),
        )?,
        counters: each(
            "counter",
            &info.counters,
            |c| &c.preamble,
            |counter, preamble| Ok(self::counter(counter, preamble)),
        )?,
        direct_counters: each(
            "direct counter",
            &info.direct_counters,
            |c| &c.preamble,
            |counter, preamble| Ok(direct_counter(counter, preamble)),
        )?,
        meters: each(
            "meter",
            &info.meters,
            |m| &m.preamble,
            |meter, preamble| Ok(self::meter(meter, preamble)),
        )?,
        direct_meters: each(
            "direct meter",
            &info.direct_meters,
            |m| &m.preamble,
            |meter, preamble| Ok(direct_meter(meter, preamble)),
        )?,
        controller_packet_metadata: each(
            "controller header",
            &info.controller_packet_metadata,
            |h| &h.preamble,
            controller_header,
        )?,
        value_sets: each("value set", &info.value_sets, |s| &s.preamble, value_set)?,
        registers: each(
            "register",
            &info.registers,
            |r| &r.preamble,
            |register, preamble| Ok(self::register(register, preamble, &types)),
        )?,
        digests: each(
            "digest",
            &info.digests,
            |d| &d.preamble,
            |digest, preamble| Ok(self::digest(digest, preamble, &types)),
        )?,
        package: program,
        types,
    })
}

fn each<P, M>(
    section: &'static str,
    objects: &[P],
    preamble: impl Fn(&P) -> &Option<config::Preamble>,
    decode: impl Fn(&P, model::Preamble) -> Result<M, DecodeError>,
) -> Result<Vec<M>, DecodeError> {
    let decode_one = |(position, object): (usize, &P)| {
        let preamble = preamble(object)
            .as_ref()
            .ok_or(DecodeError::NoPreamble { section, position })?;
        let preamble = model::Preamble {
            id: preamble.id,
            name: preamble.name.clone(),
            alias: preamble.alias.clone(),
            annotations: preamble.annotations.clone(),
            brief: preamble.doc.as_ref().map_or("", |d| &d.brief).to_owned(),
            description: preamble
                .doc
                .as_ref()
                .map_or("", |d| &d.description)
                .to_owned(),
            structured: structured(&preamble.structured_annotations),
        };
        decode(object, preamble)
    };
    objects.iter().enumerate().map(decode_one).collect()
}

fn table(table: &config::Table, preamble: model::Preamble) -> Result<model::Table, DecodeError> {
    Ok(model::Table {
        preamble,
        match_fields: table
            .match_fields
            .iter()
            .map(match_field)
            .collect::<Result<_, _>>()?,
        action_refs: table.action_refs.iter().map(action_ref).collect(),
        const_default_action_id: table.const_default_action_id,
        initial_default_action_id: table
            .initial_default_action
            .as_ref()
            .map_or(0, |call| call.action_id),
        initial_default_args: table
            .initial_default_action
            .iter()
            .flat_map(|call| &call.arguments)
            .map(|arg| (arg.param_id, arg.value.clone()))
            .collect(),
        implementation_id: table.implementation_id,
        direct_resource_ids: table.direct_resource_ids.clone(),
        size: table.size,
        is_const_table: table.is_const_table,
        has_initial_entries: table.has_initial_entries,
        idle_timeout: table.idle_timeout_behavior()
            == config::table::IdleTimeoutBehavior::NotifyControl,
    })
}

fn match_field(field: &config::MatchField) -> Result<model::MatchField, DecodeError> {
    use config::match_field::Match;
    let unset = || DecodeError::NoMatchType {
        field: field.name.clone(),
    };
    let match_type = match field.r#match.as_ref().ok_or_else(unset)? {
        Match::OtherMatchType(name) => model::MatchType::Other(name.clone()),
        Match::MatchType(number) => {
            let named = MATCH_TYPES.iter().find(|(_, name)| *name as i32 == *number);
            model::MatchType::Standard(named.ok_or_else(unset)?.0)
        }
    };
    Ok(model::MatchField {
        id: field.id,
        name: field.name.clone(),
        bitwidth: width(&field.name, field.bitwidth)?,
        match_type,
        annotations: field.annotations.clone(),
        structured: structured(&field.structured_annotations),
        type_name: named(field.type_name.as_ref()),
    })
}

fn action_ref(action: &config::ActionRef) -> model::ActionRef {
    use config::action_ref::Scope;
    let scope = match action.scope() {
        Scope::TableAndDefault => model::ActionScope::TableAndDefault,
        Scope::TableOnly => model::ActionScope::TableOnly,
        Scope::DefaultOnly => model::ActionScope::DefaultOnly,
    };
    model::ActionRef {
        id: action.id,
        scope,
        annotations: action.annotations.clone(),
        structured: structured(&action.structured_annotations),
    }
}

fn action(
    action: &config::Action,
    preamble: model::Preamble,
) -> Result<model::Action, DecodeError> {
    let param = |param: &config::action::Param| {
        Ok(model::Param {
            id: param.id,
            name: param.name.clone(),
            bitwidth: width(&param.name, param.bitwidth)?,
            annotations: param.annotations.clone(),
            structured: structured(&param.structured_annotations),
            type_name: named(param.type_name.as_ref()),
        })
    };
    Ok(model::Action {
        preamble,
        params: action.params.iter().map(param).collect::<Result<_, _>>()?,
    })
}

fn controller_header(
    header: &config::ControllerPacketMetadata,
    preamble: model::Preamble,
) -> Result<model::ControllerPacketMetadata, DecodeError> {
    let field = |field: &config::controller_packet_metadata::Metadata| {
        Ok(model::PacketMetadata {
            id: field.id,
            name: field.name.clone(),
            bitwidth: width(&field.name, field.bitwidth)?,
            annotations: field.annotations.clone(),
            type_name: named(field.type_name.as_ref()),
        })
    };
    let metadata = header
        .metadata
        .iter()
        .map(field)
        .collect::<Result<_, _>>()?;
    Ok(model::ControllerPacketMetadata { preamble, metadata })
}

fn action_profile(
    profile: &config::ActionProfile,
    preamble: model::Preamble,
) -> model::ActionProfile {
    model::ActionProfile {
        preamble,
        table_ids: profile.table_ids.clone(),
        with_selector: profile.with_selector,
        size: profile.size,
        max_group_size: profile.max_group_size,
        selector_size: selector_size(profile),
    }
}

fn counter(counter: &config::Counter, preamble: model::Preamble) -> model::Counter {
    model::Counter {
        preamble,
        unit: counter_unit(counter.spec.as_ref()),
        size: counter.size,
        index_type: named(counter.index_type_name.as_ref()),
    }
}

fn direct_counter(
    counter: &config::DirectCounter,
    preamble: model::Preamble,
) -> model::DirectCounter {
    model::DirectCounter {
        preamble,
        unit: counter_unit(counter.spec.as_ref()),
        table_id: counter.direct_table_id,
    }
}

fn meter(meter: &config::Meter, preamble: model::Preamble) -> model::Meter {
    model::Meter {
        preamble,
        unit: meter_unit(meter.spec.as_ref()),
        size: meter.size,
        index_type: named(meter.index_type_name.as_ref()),
    }
}

fn direct_meter(meter: &config::DirectMeter, preamble: model::Preamble) -> model::DirectMeter {
    model::DirectMeter {
        preamble,
        unit: meter_unit(meter.spec.as_ref()),
        table_id: meter.direct_table_id,
    }
}

fn value_set(
    set: &config::ValueSet,
    preamble: model::Preamble,
) -> Result<model::ValueSet, DecodeError> {
    let fields = set.r#match.iter().map(match_field);
    Ok(model::ValueSet {
        preamble,
        match_fields: fields.collect::<Result<_, _>>()?,
        size: set.size.into(),
    })
}

fn register(
    register: &config::Register,
    preamble: model::Preamble,
    types: &model::TypeInfo,
) -> model::Register {
    let data_type = register.type_spec.as_ref().and_then(types::data_type);
    let (element, struct_name) = types::element(data_type.as_ref(), types);
    model::Register {
        preamble,
        element,
        struct_name,
        size: register.size.into(),
        data_type,
        index_type: named(register.index_type_name.as_ref()),
    }
}

fn digest(
    digest: &config::Digest,
    preamble: model::Preamble,
    types: &model::TypeInfo,
) -> model::Digest {
    let data_type = digest.type_spec.as_ref().and_then(types::data_type);
    let (element, struct_name) = types::element(data_type.as_ref(), types);
    model::Digest {
        preamble,
        element,
        struct_name,
        data_type,
    }
}

fn package(info: &config::PkgInfo) -> model::Package {
    let doc = info.doc.clone().unwrap_or_default();
    model::Package {
        name: info.name.clone(),
        version: info.version.clone(),
        organization: info.organization.clone(),
        contact: info.contact.clone(),
        url: info.url.clone(),
        brief: doc.brief,
        description: doc.description,
        annotations: info.annotations.clone(),
        platform: info.platform_properties.map(|p| model::Platform {
            multicast_group_table_size: p.multicast_group_table_size,
            multicast_group_table_total_replicas: p.multicast_group_table_total_replicas,
            multicast_group_table_max_replicas_per_entry: p
                .multicast_group_table_max_replicas_per_entry,
        }),
    }
}

fn named(name: Option<&config::P4NamedType>) -> Option<String> {
    name.map(|named| named.name.clone())
}

fn selector_size(profile: &config::ActionProfile) -> Option<model::SelectorSize> {
    use config::action_profile::SelectorSizeSemantics as Semantics;
    Some(match profile.selector_size_semantics.as_ref()? {
        Semantics::SumOfWeights(_) => model::SelectorSize::SumOfWeights,
        Semantics::SumOfMembers(members) => model::SelectorSize::SumOfMembers {
            max_member_weight: members.max_member_weight,
        },
    })
}

/// Decodes structured annotations (`@name[…]`); an annotation without a body has no content here and is left out.
fn structured(list: &[config::StructuredAnnotation]) -> Vec<model::StructuredAnnotation> {
    use config::structured_annotation::Body;
    list.iter()
        .filter_map(|annotation| {
            let body = match annotation.body.as_ref()? {
                Body::ExpressionList(list) => {
                    let items = list.expressions.iter().map(literal);
                    model::Structured::List(items.collect::<Option<_>>()?)
                }
                Body::KvPairList(list) => {
                    let pairs = list
                        .kv_pairs
                        .iter()
                        .map(|pair| Some((pair.key.clone(), literal(pair.value.as_ref()?)?)));
                    model::Structured::Map(pairs.collect::<Option<_>>()?)
                }
            };
            Some(model::StructuredAnnotation {
                name: annotation.name.clone(),
                body,
            })
        })
        .collect()
}

fn literal(expression: &config::Expression) -> Option<p4lang::ast::Literal> {
    use config::expression::Value;
    use p4lang::ast::Literal;
    Some(match expression.value.as_ref()? {
        Value::Int64Value(n) => Literal::Int((*n).into()),
        Value::StringValue(s) => Literal::Str(s.clone()),
        Value::BoolValue(b) => Literal::Bool(*b),
    })
}

fn counter_unit(spec: Option<&config::CounterSpec>) -> model::Unit {
    use config::counter_spec::Unit;
    match spec.map(config::CounterSpec::unit) {
        Some(Unit::Bytes) => model::Unit::Bytes,
        Some(Unit::Packets) => model::Unit::Packets,
        Some(Unit::Both | Unit::Unspecified) | None => model::Unit::Both,
    }
}

fn meter_unit(spec: Option<&config::MeterSpec>) -> model::Unit {
    use config::meter_spec::Unit;
    match spec.map(config::MeterSpec::unit) {
        Some(Unit::Bytes) => model::Unit::Bytes,
        Some(Unit::Packets) => model::Unit::Packets,
        Some(Unit::Unspecified) | None => model::Unit::Both,
    }
}

/// Checks a bit width: values and masks get this many bits, so it must not exceed the limit for programs.
fn width(name: &str, bitwidth: i32) -> Result<u32, DecodeError> {
    let width = u32::try_from(bitwidth).ok();
    let width = width.filter(|width| *width <= LIMITS.width);
    width.ok_or_else(|| DecodeError::Width {
        name: name.to_owned(),
        bitwidth,
    })
}
