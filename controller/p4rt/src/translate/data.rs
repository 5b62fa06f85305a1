//! Translates values of registers and digests (P4Runtime 1.4, section 8.5) between `P4Data` and a flat list of their scalars.
//!
//! A header is represented by its validity (1 or 0) and its fields, which are all 0 while it is invalid; an enum without a
//! representation and an error are represented by the position of their member. Unions are not supported.

use super::TranslateError;
use super::matches::check_width;
use crate::bytes;
use crate::status::excerpt;
use crate::v1;
use crate::v1::p4_data::Data;
use p4lang::p4info::{DataType, Meaning, Members, SdnType, TypeInfo};
use p4lang::runtime::Value;

type Result<T> = std::result::Result<T, TranslateError>;

/// Maximum depth to which nested types are followed, because a P4Info may describe a type that contains itself.
const DEPTH: usize = 32;

/// Maps strings that a control plane uses for values of a translated type to numbers, and back (section 8.5.5).
pub trait Names {
    /// The number for the string `text`. `scalar`: index of this value among the scalars of its digest message or cell, from 0.
    fn value(&self, uri: &str, text: &[u8], scalar: usize) -> Result<Value>;
    /// The string for the number `value`.
    fn text(&self, uri: &str, value: &Value) -> Result<Vec<u8>>;
}

/// Implementation of [`Names`] for a control plane that uses no such strings: each call returns an error.
pub struct NoNames;

impl Names for NoNames {
    fn value(&self, uri: &str, _: &[u8], _: usize) -> Result<Value> {
        Err(unsupported(format!("strings of {uri}")))
    }

    fn text(&self, uri: &str, _: &Value) -> Result<Vec<u8>> {
        Err(unsupported(format!("strings of {uri}")))
    }
}

/// A type, with what is needed to encode and decode its values.
#[derive(Clone, Copy)]
pub struct Typed<'a> {
    /// Name of the register or digest to which the value belongs, for errors.
    pub owner: &'a str,
    /// Type of the value.
    pub ty: &'a DataType,
    /// Definitions of the types that `ty` refers to by name.
    pub types: &'a TypeInfo,
}

impl Typed<'_> {
    /// Encodes the scalars of a value as a P4Runtime value.
    pub fn to_proto(&self, scalars: &[Value], names: &dyn Names) -> Result<v1::P4Data> {
        let mut writer = Writer {
            typed: *self,
            names,
            left: scalars,
        };
        let data = writer.data(self.ty, DEPTH)?;
        match writer.left {
            [] => Ok(data),
            left => Err(self.miscounted(scalars.len() - left.len(), scalars.len())),
        }
    }

    /// Decodes a P4Runtime value into its scalars.
    pub fn from_proto(&self, data: &v1::P4Data, names: &dyn Names) -> Result<Vec<Value>> {
        let mut reader = Reader {
            typed: *self,
            names,
            scalars: Vec::new(),
        };
        reader.data(self.ty, data, DEPTH)?;
        Ok(reader.scalars)
    }

    fn miscounted(&self, declared: usize, given: usize) -> TranslateError {
        let owner = self.owner;
        TranslateError::Malformed(format!(
            "{owner}: an element needs {declared} fields, not {given}"
        ))
    }

    fn mistyped(&self) -> TranslateError {
        let owner = self.owner;
        TranslateError::Malformed(format!(
            "{owner}: the data and the element have different types"
        ))
    }

    fn members(&self, ty: &DataType) -> Result<&Members> {
        let found = match ty {
            DataType::Struct(name) => self.types.structs.get(name),
            DataType::Header(name) | DataType::HeaderStack(name, _) => self.types.headers.get(name),
            _ => None,
        };
        found.ok_or_else(|| self.undescribed(ty))
    }

    fn undescribed(&self, ty: &DataType) -> TranslateError {
        let owner = self.owner;
        unsupported(format!("{owner}: values of {ty:?}, unknown to the P4Info"))
    }
}

/// Describes a type as text, with the contents of named types. Types whose values are encoded alike have equal texts.
#[must_use]
pub fn describe(ty: &DataType, types: &TypeInfo) -> String {
    fn named(members: Option<&Members>, types: &TypeInfo, depth: usize) -> String {
        let members = members.map_or(&[][..], Vec::as_slice).iter();
        let members =
            members.map(|(name, ty)| format!("{name}:{}", describe_within(ty, types, depth)));
        members.collect::<Vec<_>>().join(" ")
    }
    fn describe_within(ty: &DataType, types: &TypeInfo, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            return "…".to_owned();
        };
        match ty {
            DataType::Tuple(items) => {
                let items = items.iter().map(|ty| describe_within(ty, types, depth));
                format!("tuple({})", items.collect::<Vec<_>>().join(" "))
            }
            DataType::Struct(name) => {
                format!("{name}({})", named(types.structs.get(name), types, depth))
            }
            DataType::Header(name) => {
                format!("{name}({})", named(types.headers.get(name), types, depth))
            }
            DataType::HeaderStack(name, size) => format!(
                "{name}[{size}]({})",
                named(types.headers.get(name), types, depth)
            ),
            DataType::Enum(name) => format!("{name}{:?}", types.enums.get(name)),
            DataType::SerializableEnum(name) => {
                let bitwidth = types.serializable_enums.get(name).map_or(0, |e| e.bitwidth);
                format!("{name}:{bitwidth}")
            }
            DataType::NewType(name) => match types.new_types.get(name).map(|new| &new.meaning) {
                Some(Meaning::Original(ty)) => {
                    format!("{name}({})", describe_within(ty, types, depth))
                }
                translated => format!("{name}({translated:?})"),
            },
            plain => format!("{plain:?}"),
        }
    }
    describe_within(ty, types, DEPTH)
}

struct Writer<'a> {
    typed: Typed<'a>,
    names: &'a dyn Names,
    left: &'a [Value],
}

impl<'a> Writer<'a> {
    fn next(&mut self) -> Result<&'a Value> {
        let (first, left) = self
            .left
            .split_first()
            .ok_or_else(|| self.typed.miscounted(self.left.len() + 1, self.left.len()))?;
        self.left = left;
        Ok(first)
    }

    fn data(&mut self, ty: &DataType, depth: usize) -> Result<v1::P4Data> {
        let typed = self.typed;
        let depth = depth.checked_sub(1).ok_or_else(|| typed.undescribed(ty))?;
        let data = match ty {
            DataType::Bool => Data::Bool(!self.next()?.is_zero()),
            DataType::Bit(width) | DataType::Int(width) => Data::Bitstring(self.bits(ty, *width)?),
            DataType::Struct(_) => {
                let members = typed.members(ty)?.iter();
                let members = members.map(|(_, ty)| self.data(ty, depth));
                let members = members.collect::<Result<_>>()?;
                Data::Struct(v1::P4StructLike { members })
            }
            DataType::Tuple(items) => {
                let members = items.iter().map(|ty| self.data(ty, depth));
                let members = members.collect::<Result<_>>()?;
                Data::Tuple(v1::P4StructLike { members })
            }
            DataType::Header(_) => Data::Header(self.header(typed.members(ty)?)?),
            DataType::HeaderStack(_, size) => {
                let members = typed.members(ty)?;
                let entries = (0..*size).map(|_| self.header(members));
                let entries = entries.collect::<Result<_>>()?;
                Data::HeaderStack(v1::P4HeaderStack { entries })
            }
            DataType::Enum(name) => {
                let members = typed.types.enums.get(name);
                Data::Enum(self.member(ty, members.map(Vec::as_slice))?)
            }
            DataType::Error => Data::Error(self.member(ty, Some(&typed.types.errors))?),
            DataType::SerializableEnum(name) => {
                let declared = typed.types.serializable_enums.get(name);
                let width = declared.ok_or_else(|| typed.undescribed(ty))?.bitwidth;
                Data::EnumValue(self.bits(ty, width)?)
            }
            DataType::NewType(name) => {
                let declared = typed.types.new_types.get(name);
                match &declared.ok_or_else(|| typed.undescribed(ty))?.meaning {
                    Meaning::Original(original) => return self.data(original, depth),
                    Meaning::Translated { uri, sdn } => {
                        let value = self.next()?;
                        Data::Bitstring(match sdn {
                            // Values that only the data plane can hold have no counterpart in the control plane.
                            SdnType::Bits(width) => {
                                check_width(typed.owner, value, *width)?;
                                value.to_be_bytes()
                            }
                            SdnType::String => self.names.text(uri, value)?,
                        })
                    }
                }
            }
            DataType::Varbit(_) | DataType::HeaderUnion(_) | DataType::HeaderUnionStack(..) => {
                return Err(typed.undescribed(ty));
            }
        };
        Ok(v1::P4Data { data: Some(data) })
    }

    fn header(&mut self, members: &Members) -> Result<v1::P4Header> {
        let is_valid = !self.next()?.is_zero();
        let mut bitstrings = Vec::with_capacity(members.len());
        for (_, ty) in members {
            match ty {
                DataType::Bit(width) | DataType::Int(width) => {
                    bitstrings.push(self.bits(ty, *width)?);
                }
                _ => return Err(self.typed.undescribed(ty)),
            }
        }
        if !is_valid {
            bitstrings.clear();
        }
        Ok(v1::P4Header {
            is_valid,
            bitstrings,
        })
    }

    fn bits(&mut self, ty: &DataType, width: u32) -> Result<Vec<u8>> {
        let value = self.next()?;
        check_width(self.typed.owner, value, width)?;
        Ok(match ty {
            DataType::Int(_) => bytes::encode_signed(value, width),
            _ => value.to_be_bytes(),
        })
    }

    fn member(&mut self, ty: &DataType, members: Option<&[String]>) -> Result<String> {
        let position = self.next()?.to::<usize>();
        let member = position.and_then(|position| members?.get(position));
        member.cloned().ok_or_else(|| self.typed.undescribed(ty))
    }
}

struct Reader<'a> {
    typed: Typed<'a>,
    names: &'a dyn Names,
    scalars: Vec<Value>,
}

impl Reader<'_> {
    fn data(&mut self, ty: &DataType, given: &v1::P4Data, depth: usize) -> Result<()> {
        let typed = self.typed;
        let depth = depth.checked_sub(1).ok_or_else(|| typed.undescribed(ty))?;
        let unset = TranslateError::Unset { what: "data" };
        match (ty, given.data.as_ref().ok_or(unset)?) {
            (DataType::Bool, Data::Bool(value)) => self.scalars.push(u128::from(*value).into()),
            (DataType::Bit(width) | DataType::Int(width), Data::Bitstring(value)) => {
                self.bits(ty, *width, value)?;
            }
            (DataType::Struct(_), Data::Struct(given)) => {
                let members = typed.members(ty)?;
                self.count(members.len(), given.members.len())?;
                for ((_, ty), given) in members.iter().zip(&given.members) {
                    self.data(ty, given, depth)?;
                }
            }
            (DataType::Tuple(items), Data::Tuple(given)) => {
                self.count(items.len(), given.members.len())?;
                for (ty, given) in items.iter().zip(&given.members) {
                    self.data(ty, given, depth)?;
                }
            }
            (DataType::Header(_), Data::Header(given)) => self.header(typed.members(ty)?, given)?,
            (DataType::HeaderStack(_, size), Data::HeaderStack(given)) => {
                self.count(*size as usize, given.entries.len())?;
                for entry in &given.entries {
                    self.header(typed.members(ty)?, entry)?;
                }
            }
            (DataType::Enum(name), Data::Enum(member)) => {
                let members = typed.types.enums.get(name).map_or(&[][..], Vec::as_slice);
                self.member(members, member)?;
            }
            (DataType::Error, Data::Error(member)) => self.member(&typed.types.errors, member)?,
            (DataType::SerializableEnum(name), Data::EnumValue(value)) => {
                let declared = typed.types.serializable_enums.get(name);
                let width = declared.ok_or_else(|| typed.undescribed(ty))?.bitwidth;
                self.bits(ty, width, value)?;
            }
            (DataType::NewType(name), data) => {
                let declared = typed.types.new_types.get(name);
                match &declared.ok_or_else(|| typed.undescribed(ty))?.meaning {
                    Meaning::Original(original) => return self.data(original, given, depth),
                    Meaning::Translated { uri, sdn } => {
                        let Data::Bitstring(value) = data else {
                            return Err(typed.mistyped());
                        };
                        match sdn {
                            SdnType::Bits(width) => self.bits(ty, *width, value)?,
                            SdnType::String => {
                                let value = self.names.value(uri, value, self.scalars.len())?;
                                self.scalars.push(value);
                            }
                        }
                    }
                }
            }
            (
                DataType::Varbit(_) | DataType::HeaderUnion(_) | DataType::HeaderUnionStack(..),
                _,
            ) => return Err(typed.undescribed(ty)),
            _ => return Err(typed.mistyped()),
        }
        Ok(())
    }

    fn header(&mut self, members: &Members, given: &v1::P4Header) -> Result<()> {
        self.scalars.push(u128::from(given.is_valid).into());
        if !given.is_valid {
            if !given.bitstrings.is_empty() {
                return Err(TranslateError::Malformed(format!(
                    "{}: an invalid header cannot have fields",
                    self.typed.owner
                )));
            }
            self.scalars.extend(members.iter().map(|_| Value::ZERO));
            return Ok(());
        }
        self.count(members.len(), given.bitstrings.len())?;
        for ((_, ty), value) in members.iter().zip(&given.bitstrings) {
            match ty {
                DataType::Bit(width) | DataType::Int(width) => self.bits(ty, *width, value)?,
                _ => return Err(self.typed.undescribed(ty)),
            }
        }
        Ok(())
    }

    fn bits(&mut self, ty: &DataType, width: u32, value: &[u8]) -> Result<()> {
        let value = match ty {
            DataType::Int(_) => bytes::decode_signed(value, width),
            _ => bytes::decode(value, width),
        };
        let value = value.map_err(|source| TranslateError::Value {
            field: self.typed.owner.to_owned(),
            source,
        })?;
        self.scalars.push(value);
        Ok(())
    }

    fn member(&mut self, members: &[String], name: &str) -> Result<()> {
        let position = members.iter().position(|member| member == name);
        let position = position.ok_or_else(|| {
            let (owner, name) = (self.typed.owner, excerpt(name));
            TranslateError::Malformed(format!("{owner}: member `{name}` does not exist"))
        })?;
        self.scalars.push((position as u128).into());
        Ok(())
    }

    fn count(&self, declared: usize, given: usize) -> Result<()> {
        if declared == given {
            return Ok(());
        }
        Err(self.typed.miscounted(declared, given))
    }
}

fn unsupported(what: String) -> TranslateError {
    TranslateError::Unsupported { what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn types() -> TypeInfo {
        let members = |fields: &[(&str, DataType)]| -> Members {
            let fields = fields.iter();
            fields
                .map(|(name, ty)| ((*name).to_owned(), ty.clone()))
                .collect()
        };
        let inner = members(&[("a", DataType::Bit(9)), ("b", DataType::Int(8))]);
        let outer = members(&[
            ("inner", DataType::Struct("inner_t".into())),
            ("head", DataType::Header("head_t".into())),
            ("on", DataType::Bool),
            ("kind", DataType::Enum("kind_t".into())),
            (
                "pair",
                DataType::Tuple(vec![DataType::Bit(1), DataType::Bit(300)]),
            ),
            ("stack", DataType::HeaderStack("head_t".into(), 2)),
        ]);
        TypeInfo {
            structs: BTreeMap::from([("inner_t".into(), inner), ("outer_t".into(), outer)]),
            headers: BTreeMap::from([("head_t".into(), members(&[("x", DataType::Bit(16))]))]),
            enums: BTreeMap::from([("kind_t".into(), vec!["A".into(), "B".into()])]),
            ..TypeInfo::default()
        }
    }

    fn typed<'a>(ty: &'a DataType, types: &'a TypeInfo) -> Typed<'a> {
        Typed {
            owner: "r",
            ty,
            types,
        }
    }

    #[test]
    fn what_lies_within_each_other_is_scalars_in_order() {
        let (types, ty) = (types(), DataType::Struct("outer_t".into()));
        let typed = typed(&ty, &types);
        let scalars = [511, 0xff, 1, 7, 1, 1, 0, u128::MAX, 0, 0, 1, 9];
        let mut scalars = scalars.map(Value::from);
        scalars[7] = Value::ones(300);
        let data = typed.to_proto(&scalars, &NoNames).unwrap();
        assert_eq!(typed.from_proto(&data, &NoNames), Ok(scalars.to_vec()));
        let Some(Data::Struct(outer)) = &data.data else {
            panic!("{data:?}")
        };
        let head = v1::P4Header {
            is_valid: true,
            bitstrings: vec![vec![7]],
        };
        assert_eq!(outer.members[1].data, Some(Data::Header(head)));
        assert_eq!(outer.members[3].data, Some(Data::Enum("B".into())));
        let invalid = v1::P4Header::default();
        let Some(Data::HeaderStack(stack)) = &outer.members[5].data else {
            panic!("{data:?}")
        };
        assert_eq!(stack.entries[0], invalid, "without fields");
    }

    #[test]
    fn data_of_another_shape_is_refused() {
        let (types, ty) = (types(), DataType::Struct("inner_t".into()));
        let typed = typed(&ty, &types);
        assert!(
            typed.to_proto(&[1.into()], &NoNames).is_err(),
            "one too few"
        );
        assert!(
            typed
                .to_proto(&[1, 2, 3].map(Value::from), &NoNames)
                .is_err(),
            "one too many"
        );
        assert!(
            typed
                .to_proto(&[512, 0].map(Value::from), &NoNames)
                .is_err(),
            "too wide"
        );
        let bits = |value: u8| v1::P4Data {
            data: Some(Data::Bitstring(vec![value])),
        };
        let of = |members| v1::P4Data {
            data: Some(Data::Struct(v1::P4StructLike { members })),
        };
        assert_eq!(
            typed.from_proto(&of(vec![bits(1), bits(0xff)]), &NoNames),
            Ok(vec![1.into(), 0xff.into()])
        );
        assert!(typed.from_proto(&of(vec![bits(1)]), &NoNames).is_err());
        assert!(typed.from_proto(&bits(1), &NoNames).is_err());
    }

    /// Otherwise the value would be written back as it was read, and refused.
    #[test]
    fn what_the_control_plane_has_no_value_for_is_not_sent() {
        let mut types = types();
        let meaning = Meaning::Translated {
            uri: "u".into(),
            sdn: SdnType::Bits(32),
        };
        let declared = p4lang::p4info::NewType {
            meaning,
            annotations: vec![],
            structured: vec![],
        };
        types.new_types.insert("far_t".into(), declared);
        let ty = DataType::NewType("far_t".into());
        let typed = typed(&ty, &types);
        let most = Value::ones(32);
        let data = typed
            .to_proto(std::slice::from_ref(&most), &NoNames)
            .unwrap();
        assert_eq!(typed.from_proto(&data, &NoNames), Ok(vec![most]));
        let error = typed
            .to_proto(&[Value::prefix(129, 1)], &NoNames)
            .unwrap_err();
        assert_eq!(error.code(), crate::rpc::Code::OutOfRange);
        assert_eq!(
            error.to_string(),
            "`r`: the value does not fit into 32 bits"
        );
    }

    #[test]
    fn a_member_that_is_not_there_is_quoted_briefly() {
        let (types, ty) = (types(), DataType::Enum("kind_t".into()));
        let member = |name: &str| v1::P4Data {
            data: Some(Data::Enum(name.into())),
        };
        let typed = typed(&ty, &types);
        assert_eq!(typed.from_proto(&member("B"), &NoNames), Ok(vec![1.into()]));
        let error = typed.from_proto(&member(&"c".repeat(100_000)), &NoNames);
        let expected = format!("r: member `{}…` does not exist", "c".repeat(40));
        assert_eq!(error.unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_type_that_contains_itself_ends() {
        let mut types = types();
        let ty = DataType::Struct("inner_t".into());
        let members = vec![("self".to_owned(), ty.clone())];
        types.structs.insert("inner_t".into(), members);
        assert!(typed(&ty, &types).to_proto(&[1.into()], &NoNames).is_err());
        assert!(describe(&ty, &types).contains('…'));
    }
}
