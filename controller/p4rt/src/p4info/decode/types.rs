//! Decodes the P4Info types of registers, digests and newtypes.

use super::DecodeError;
use crate::config::{self, p4_data_type_spec::TypeSpec};
use p4lang::p4info as model;
use p4lang::p4info::{DataType, ElementField, Meaning, TypeInfo};

/// Maximum depth to which nested types are followed, because a message may describe a type that contains itself.
const DEPTH: usize = 32;

/// Decodes all named types. Invalid types are left out: objects that refer to them cannot be read or written.
pub(super) fn type_info(types: &config::P4TypeInfo) -> Result<TypeInfo, DecodeError> {
    let named = |name: &String| name.clone();
    let new_types = types.new_types.iter().filter_map(|(name, spec)| {
        let declared = new_type(name, spec).transpose()?;
        Some(declared.map(|declared| (named(name), declared)))
    });
    Ok(TypeInfo {
        structs: types
            .structs
            .iter()
            .filter_map(|(name, spec)| {
                let members = spec.members.iter();
                let members =
                    members.map(|m| Some((m.name.clone(), data_type(m.type_spec.as_ref()?)?)));
                Some((named(name), members.collect::<Option<_>>()?))
            })
            .collect(),
        headers: types
            .headers
            .iter()
            .filter_map(|(name, spec)| {
                let members = spec.members.iter();
                let members = members.map(|m| Some((m.name.clone(), bits(m.type_spec.as_ref()?)?)));
                Some((named(name), members.collect::<Option<_>>()?))
            })
            .collect(),
        header_unions: types
            .header_unions
            .iter()
            .filter_map(|(name, spec)| {
                let members = spec.members.iter();
                let members = members.map(|m| {
                    let header = m.header.as_ref()?.name.clone();
                    Some((m.name.clone(), DataType::Header(header)))
                });
                Some((named(name), members.collect::<Option<_>>()?))
            })
            .collect(),
        enums: types
            .enums
            .iter()
            .map(|(name, spec)| {
                let members = spec.members.iter().map(|m| m.name.clone());
                (named(name), members.collect())
            })
            .collect(),
        serializable_enums: types
            .serializable_enums
            .iter()
            .filter_map(|(name, spec)| {
                let bitwidth = spec.underlying_type.as_ref()?.bitwidth;
                let members = spec.members.iter();
                let declared = model::SerializableEnum {
                    bitwidth: u32::try_from(bitwidth).ok()?,
                    members: members.map(|m| (m.name.clone(), m.value.clone())).collect(),
                };
                Some((named(name), declared))
            })
            .collect(),
        errors: types
            .error
            .as_ref()
            .map(|error| error.members.clone())
            .unwrap_or_default(),
        new_types: new_types.collect::<Result<_, _>>()?,
    })
}

fn new_type(
    name: &str,
    spec: &config::P4NewTypeSpec,
) -> Result<Option<model::NewType>, DecodeError> {
    use config::p4_new_type_spec::Representation;
    use config::p4_new_type_translation::SdnType;
    let meaning = match &spec.representation {
        Some(Representation::OriginalType(original)) => data_type(original).map(Meaning::Original),
        Some(Representation::TranslatedType(translated)) => {
            let sdn = match &translated.sdn_type {
                Some(SdnType::SdnBitwidth(width)) => {
                    Some(model::SdnType::Bits(super::width(name, *width)?))
                }
                Some(SdnType::SdnString(_)) => Some(model::SdnType::String),
                None => None,
            };
            let uri = translated.uri.clone();
            sdn.map(|sdn| Meaning::Translated { uri, sdn })
        }
        None => None,
    };
    Ok(meaning.map(|meaning| model::NewType {
        meaning,
        annotations: spec.annotations.clone(),
        structured: super::structured(&spec.structured_annotations),
    }))
}

/// Decodes a data type; `None` if the message does not specify it.
pub(super) fn data_type(spec: &config::P4DataTypeSpec) -> Option<DataType> {
    Some(match spec.type_spec.as_ref()? {
        TypeSpec::Bitstring(spec) => bits(spec)?,
        TypeSpec::Bool(_) => DataType::Bool,
        TypeSpec::Error(_) => DataType::Error,
        TypeSpec::Tuple(tuple) => {
            let members = tuple.members.iter().map(data_type);
            DataType::Tuple(members.collect::<Option<_>>()?)
        }
        TypeSpec::Struct(named) => DataType::Struct(named.name.clone()),
        TypeSpec::Header(named) => DataType::Header(named.name.clone()),
        TypeSpec::HeaderUnion(named) => DataType::HeaderUnion(named.name.clone()),
        TypeSpec::HeaderStack(stack) => DataType::HeaderStack(
            stack.header.as_ref()?.name.clone(),
            u32::try_from(stack.size).ok()?,
        ),
        TypeSpec::HeaderUnionStack(stack) => DataType::HeaderUnionStack(
            stack.header_union.as_ref()?.name.clone(),
            u32::try_from(stack.size).ok()?,
        ),
        TypeSpec::Enum(named) => DataType::Enum(named.name.clone()),
        TypeSpec::SerializableEnum(named) => DataType::SerializableEnum(named.name.clone()),
        TypeSpec::NewType(named) => DataType::NewType(named.name.clone()),
    })
}

fn bits(spec: &config::P4BitstringLikeTypeSpec) -> Option<DataType> {
    use config::p4_bitstring_like_type_spec::TypeSpec as Bits;
    let width = |width: i32| u32::try_from(width).ok();
    Some(match spec.type_spec.as_ref()? {
        Bits::Bit(bit) => DataType::Bit(width(bit.bitwidth)?),
        Bits::Int(int) => DataType::Int(width(int.bitwidth)?),
        Bits::Varbit(varbit) => DataType::Varbit(width(varbit.max_bitwidth)?),
    })
}

/// The scalars of which a type consists (those of an inner struct `a` are named `a.b`), and the type's name if it is a struct.
/// The list is empty if some field of the type cannot be split into scalars.
pub(super) fn element(
    ty: Option<&DataType>,
    types: &TypeInfo,
) -> (Vec<ElementField>, Option<String>) {
    let mut fields = Vec::new();
    let known = ty.and_then(|ty| flatten(ty, types, "", &mut fields, DEPTH));
    let name = match ty {
        Some(DataType::Struct(name)) => Some(name.clone()),
        _ => None,
    };
    (known.map(|()| fields).unwrap_or_default(), name)
}

fn flatten(
    ty: &DataType,
    types: &TypeInfo,
    name: &str,
    fields: &mut Vec<ElementField>,
    depth: usize,
) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let mut join = |inner: &str, ty: &DataType| match name {
        "" => flatten(ty, types, inner, fields, depth),
        outer => flatten(ty, types, &format!("{outer}.{inner}"), fields, depth),
    };
    let bitwidth = match ty {
        DataType::Struct(named) => {
            let mut members = types.structs.get(named)?.iter();
            return members.try_for_each(|(inner, ty)| join(inner, ty));
        }
        DataType::Header(named) => {
            let mut members = types.headers.get(named)?.iter();
            return members.try_for_each(|(inner, ty)| join(inner, ty));
        }
        DataType::Tuple(members) => {
            let mut members = members.iter().enumerate();
            return members.try_for_each(|(index, ty)| join(&format!("f{index}"), ty));
        }
        DataType::NewType(named) => match &types.new_types.get(named)?.meaning {
            Meaning::Original(original) => return flatten(original, types, name, fields, depth),
            Meaning::Translated {
                sdn: model::SdnType::Bits(width),
                ..
            } => *width,
            Meaning::Translated { .. } => 0,
        },
        DataType::SerializableEnum(named) => types.serializable_enums.get(named)?.bitwidth,
        DataType::Bit(width) | DataType::Int(width) | DataType::Varbit(width) => *width,
        DataType::Bool => 1,
        DataType::Enum(_) | DataType::Error => 32,
        DataType::HeaderUnion(_) | DataType::HeaderStack(..) | DataType::HeaderUnionStack(..) => {
            return None;
        }
    };
    fields.push(ElementField {
        name: name.to_owned(),
        bitwidth,
        signed: matches!(ty, DataType::Int(_)),
        boolean: matches!(ty, DataType::Bool),
    });
    Some(())
}
