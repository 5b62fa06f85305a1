//! Encodes the P4Info types of registers, digests and newtypes.

use super::signed;
use crate::config::{self, p4_data_type_spec::TypeSpec};
use p4lang::p4info as model;
use p4lang::p4info::DataType;

/// The type of a register's cells or a digest's messages: the declared type if it is known, else a type built from the scalars.
pub(super) fn element(
    declared: Option<&DataType>,
    struct_name: Option<&str>,
    fields: &[model::ElementField],
) -> Option<config::P4DataTypeSpec> {
    if let Some(declared) = declared {
        return Some(data_type(declared));
    }
    Some(spec(match (struct_name, fields) {
        (Some(name), _) => TypeSpec::Struct(named(name)),
        (None, [field]) => scalar(field),
        (None, fields) => TypeSpec::Tuple(config::P4TupleTypeSpec {
            members: fields.iter().map(|field| spec(scalar(field))).collect(),
        }),
    }))
}

fn spec(type_spec: TypeSpec) -> config::P4DataTypeSpec {
    config::P4DataTypeSpec {
        type_spec: Some(type_spec),
    }
}

fn named(name: &str) -> config::P4NamedType {
    config::P4NamedType {
        name: name.to_owned(),
    }
}

fn scalar(field: &model::ElementField) -> TypeSpec {
    match (field.boolean, field.signed) {
        (true, _) => TypeSpec::Bool(config::P4BoolType {}),
        (false, true) => TypeSpec::Bitstring(bits(&DataType::Int(field.bitwidth))),
        (false, false) => TypeSpec::Bitstring(bits(&DataType::Bit(field.bitwidth))),
    }
}

/// Encodes `bit`, `int` and `varbit`; the result is empty for any other type.
fn bits(ty: &DataType) -> config::P4BitstringLikeTypeSpec {
    use config::p4_bitstring_like_type_spec::TypeSpec as Bits;
    let type_spec = match ty {
        DataType::Bit(w) => Some(Bits::Bit(config::P4BitTypeSpec {
            bitwidth: signed(*w),
        })),
        DataType::Int(w) => Some(Bits::Int(config::P4IntTypeSpec {
            bitwidth: signed(*w),
        })),
        DataType::Varbit(w) => Some(Bits::Varbit(config::P4VarbitTypeSpec {
            max_bitwidth: signed(*w),
        })),
        _ => None,
    };
    config::P4BitstringLikeTypeSpec {
        type_spec,
        ..Default::default()
    }
}

fn data_type(ty: &DataType) -> config::P4DataTypeSpec {
    spec(match ty {
        DataType::Bit(_) | DataType::Int(_) | DataType::Varbit(_) => TypeSpec::Bitstring(bits(ty)),
        DataType::Bool => TypeSpec::Bool(config::P4BoolType {}),
        DataType::Error => TypeSpec::Error(config::P4ErrorType {}),
        DataType::Tuple(items) => TypeSpec::Tuple(config::P4TupleTypeSpec {
            members: items.iter().map(data_type).collect(),
        }),
        DataType::Struct(name) => TypeSpec::Struct(named(name)),
        DataType::Header(name) => TypeSpec::Header(named(name)),
        DataType::HeaderUnion(name) => TypeSpec::HeaderUnion(named(name)),
        DataType::HeaderStack(name, size) => TypeSpec::HeaderStack(config::P4HeaderStackTypeSpec {
            header: Some(named(name)),
            size: signed(*size),
        }),
        DataType::HeaderUnionStack(name, size) => {
            TypeSpec::HeaderUnionStack(config::P4HeaderUnionStackTypeSpec {
                header_union: Some(named(name)),
                size: signed(*size),
            })
        }
        DataType::Enum(name) => TypeSpec::Enum(named(name)),
        DataType::SerializableEnum(name) => TypeSpec::SerializableEnum(named(name)),
        DataType::NewType(name) => TypeSpec::NewType(named(name)),
    })
}

/// Encodes the types that registers, digests, keys and parameters refer to by name; `None` if there are none.
pub(super) fn type_info(info: &model::P4Info) -> Option<config::P4TypeInfo> {
    let types = &info.types;
    let mut out = config::P4TypeInfo {
        structs: flat_structs(info),
        error: (!types.errors.is_empty()).then(|| config::P4ErrorTypeSpec {
            members: types.errors.clone(),
        }),
        ..Default::default()
    };
    for (name, members) in &types.structs {
        let members = members
            .iter()
            .map(|(name, ty)| config::p4_struct_type_spec::Member {
                name: name.clone(),
                type_spec: Some(data_type(ty)),
            });
        let spec = config::P4StructTypeSpec {
            members: members.collect(),
            ..Default::default()
        };
        out.structs.insert(name.clone(), spec);
    }
    for (name, members) in &types.headers {
        let members = members
            .iter()
            .map(|(name, ty)| config::p4_header_type_spec::Member {
                name: name.clone(),
                type_spec: Some(bits(ty)),
            });
        let spec = config::P4HeaderTypeSpec {
            members: members.collect(),
            ..Default::default()
        };
        out.headers.insert(name.clone(), spec);
    }
    for (name, members) in &types.header_unions {
        let members = members.iter().filter_map(|(name, ty)| match ty {
            DataType::Header(header) => Some(config::p4_header_union_type_spec::Member {
                name: name.clone(),
                header: Some(named(header)),
            }),
            _ => None,
        });
        let spec = config::P4HeaderUnionTypeSpec {
            members: members.collect(),
            ..Default::default()
        };
        out.header_unions.insert(name.clone(), spec);
    }
    for (name, members) in &types.enums {
        let members = members
            .iter()
            .map(|name| config::p4_enum_type_spec::Member {
                name: name.clone(),
                ..Default::default()
            });
        let spec = config::P4EnumTypeSpec {
            members: members.collect(),
            ..Default::default()
        };
        out.enums.insert(name.clone(), spec);
    }
    for (name, declared) in &types.serializable_enums {
        let members = declared.members.iter().map(|(name, value)| {
            config::p4_serializable_enum_type_spec::Member {
                name: name.clone(),
                value: value.clone(),
                ..Default::default()
            }
        });
        let spec = config::P4SerializableEnumTypeSpec {
            underlying_type: Some(config::P4BitTypeSpec {
                bitwidth: signed(declared.bitwidth),
            }),
            members: members.collect(),
            ..Default::default()
        };
        out.serializable_enums.insert(name.clone(), spec);
    }
    for (name, declared) in &types.new_types {
        out.new_types.insert(name.clone(), new_type(declared));
    }
    (out != config::P4TypeInfo::default()).then_some(out)
}

fn new_type(declared: &model::NewType) -> config::P4NewTypeSpec {
    use config::p4_new_type_spec::Representation;
    use config::p4_new_type_translation::{SdnString, SdnType};
    let representation = match &declared.meaning {
        model::Meaning::Original(ty) => Representation::OriginalType(data_type(ty)),
        model::Meaning::Translated { uri, sdn } => {
            Representation::TranslatedType(config::P4NewTypeTranslation {
                uri: uri.clone(),
                sdn_type: Some(match sdn {
                    model::SdnType::Bits(width) => SdnType::SdnBitwidth(signed(*width)),
                    model::SdnType::String => SdnType::SdnString(SdnString {}),
                }),
            })
        }
    };
    config::P4NewTypeSpec {
        representation: Some(representation),
        annotations: declared.annotations.clone(),
        structured_annotations: super::structured(&declared.structured),
        ..Default::default()
    }
}

/// Struct types of the registers and digests whose declared type is unknown, built from their scalars; by struct name.
fn flat_structs(
    info: &model::P4Info,
) -> std::collections::BTreeMap<String, config::P4StructTypeSpec> {
    let registers = info
        .registers
        .iter()
        .filter(|r| r.data_type.is_none())
        .map(|r| (&r.struct_name, &r.element));
    let digests = info
        .digests
        .iter()
        .filter(|d| d.data_type.is_none())
        .map(|d| (&d.struct_name, &d.element));
    registers
        .chain(digests)
        .filter_map(|(name, fields)| {
            let members = fields
                .iter()
                .map(|field| config::p4_struct_type_spec::Member {
                    name: field.name.clone(),
                    type_spec: Some(spec(scalar(field))),
                });
            let spec = config::P4StructTypeSpec {
                members: members.collect(),
                ..Default::default()
            };
            name.clone().map(|name| (name, spec))
        })
        .collect()
}
