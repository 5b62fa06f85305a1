//! Adds declared types to [`TypeInfo`]. A type is added once, together with all types that it names.

use super::annotations::{annotation_texts, given_name, structured};
use super::builder::Builder;
use super::translation::{TRANSLATION, translated};
use super::types::{DataType, Meaning, Members, NewType, SdnType, SerializableEnum, TypeInfo};
use crate::ast::StructKind;
use crate::ir::{Annotation, Declared, Type};
use num_bigint::BigUint;

impl Builder<'_> {
    /// Returns a declared type's P4Info type and adds the types that it names to `info`; `None` if P4Info cannot describe it.
    pub(super) fn data_type(&self, ty: &Declared, info: &mut TypeInfo) -> Option<DataType> {
        Some(match ty {
            Declared::New(index) => DataType::NewType(self.new_type(*index, info)?),
            Declared::SerEnum(index) => {
                let declared = self.program.ser_enums.get(*index as usize)?;
                let bitwidth = self.width(&declared.repr);
                let members = declared.members.iter();
                let described = SerializableEnum {
                    bitwidth,
                    members: members
                        .map(|(name, value)| (name.clone(), padded(value, bitwidth)))
                        .collect(),
                };
                info.serializable_enums
                    .insert(declared.name.clone(), described);
                DataType::SerializableEnum(declared.name.clone())
            }
            Declared::Tuple(items) => {
                let items = items.iter().map(|item| self.data_type(item, info));
                DataType::Tuple(items.collect::<Option<_>>()?)
            }
            Declared::Plain(ty) => self.plain_type(ty, info)?,
        })
    }

    fn plain_type(&self, ty: &Type, info: &mut TypeInfo) -> Option<DataType> {
        Some(match ty {
            Type::Bit(w) => DataType::Bit(*w),
            Type::Int(w) => DataType::Int(*w),
            Type::Varbit(w) => DataType::Varbit(*w),
            Type::Bool => DataType::Bool,
            Type::Error => {
                info.errors.clone_from(&self.program.errors);
                DataType::Error
            }
            Type::Enum(id) => {
                let declared = self.program.enums.get(id.index())?;
                info.enums
                    .insert(declared.name.clone(), declared.members.clone());
                DataType::Enum(declared.name.clone())
            }
            Type::Tuple(items) => {
                let items = items.iter().map(|item| self.plain_type(item, info));
                DataType::Tuple(items.collect::<Option<_>>()?)
            }
            Type::Struct(id) => {
                let declared = self.program.types.get(id.index())?;
                let name = type_name(declared);
                let mut members = Members::with_capacity(declared.fields.len());
                if declared.kind == StructKind::Header {
                    self.flat_members(declared, "", &mut members, info)?;
                    info.headers.insert(name.clone(), members);
                    return Some(DataType::Header(name));
                }
                for field in &declared.fields {
                    let name = given_name(&field.name, &field.annotations);
                    members.push((name, self.data_type(&field.declared, info)?));
                }
                match declared.kind {
                    StructKind::Struct | StructKind::Header => {
                        info.structs.insert(name.clone(), members);
                        DataType::Struct(name)
                    }
                    StructKind::Union => {
                        info.header_unions.insert(name.clone(), members);
                        DataType::HeaderUnion(name)
                    }
                }
            }
            Type::Stack(id, size) => match self.plain_type(&Type::Struct(*id), info)? {
                DataType::Header(name) => DataType::HeaderStack(name, *size),
                DataType::HeaderUnion(name) => DataType::HeaderUnionStack(name, *size),
                _ => return None,
            },
            Type::Void | Type::String | Type::Extern(_) => return None,
        })
    }

    /// Adds a header's fields to `members`; the fields of a struct `s` in the header are named `s.f`.
    fn flat_members(
        &self,
        ty: &crate::ir::StructType,
        path: &str,
        members: &mut Members,
        info: &mut TypeInfo,
    ) -> Option<()> {
        for field in &ty.fields {
            let name = format!("{path}{}", given_name(&field.name, &field.annotations));
            match &field.declared {
                Declared::Plain(Type::Struct(id)) => {
                    let inner = self.program.types.get(id.index())?;
                    self.flat_members(inner, &format!("{name}."), members, info)?;
                }
                declared => {
                    let bits = match self.bottom(declared) {
                        Declared::SerEnum(index) => {
                            let repr = &self.program.ser_enums.get(*index as usize)?.repr;
                            self.plain_type(repr, info)?
                        }
                        other => self.data_type(other, info)?,
                    };
                    members.push((name, bits));
                }
            }
        }
        Some(())
    }

    /// Adds a new type (`type T x;`) to `info` and returns its name.
    fn new_type(&self, index: u32, info: &mut TypeInfo) -> Option<String> {
        let declared = self.program.new_types.get(index as usize)?;
        let meaning = match translation(&declared.annotations) {
            Some((uri, sdn)) => Meaning::Translated {
                uri: uri.to_owned(),
                sdn,
            },
            // Only the name of the outermost new type appears, as in p4c.
            None => Meaning::Original(self.data_type(self.bottom(&declared.under), info)?),
        };
        let mut annotations = declared.annotations.clone();
        annotations.retain(|a| a.name != TRANSLATION);
        let described = NewType {
            meaning,
            structured: structured(&annotations),
            annotations: annotation_texts(&annotations),
        };
        info.new_types.insert(declared.name.clone(), described);
        Some(declared.name.clone())
    }

    /// The type at the end of a chain of new types.
    fn bottom<'d>(&'d self, mut ty: &'d Declared) -> &'d Declared {
        while let Declared::New(index) = ty
            && let Some(declared) = self.program.new_types.get(*index as usize)
        {
            ty = &declared.under;
        }
        ty
    }

    /// Name of a value's type, which is added to `info`; `None` if the control plane needs only the value's width.
    pub(super) fn type_name(&self, ty: &Declared, info: &mut TypeInfo) -> Option<String> {
        match ty {
            Declared::New(index) => self.new_type(*index, info),
            // An enum with a representation is added, but its values are sent as plain numbers.
            Declared::SerEnum(_) => {
                self.data_type(ty, info);
                None
            }
            Declared::Plain(Type::Enum(_)) => match self.data_type(ty, info)? {
                DataType::Enum(name) => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Width in bits of a value in P4Runtime messages: 0 for a string.
    pub(super) fn declared_width(&self, ty: &Declared) -> u32 {
        match ty {
            Declared::Plain(ty) => self.width(ty),
            Declared::SerEnum(index) => {
                let declared = self.program.ser_enums.get(*index as usize);
                declared.map_or(0, |e| self.width(&e.repr))
            }
            Declared::Tuple(items) => items.iter().map(|item| self.declared_width(item)).sum(),
            Declared::New(index) => {
                let Some(declared) = self.program.new_types.get(*index as usize) else {
                    return 0;
                };
                match translation(&declared.annotations) {
                    Some((_, SdnType::Bits(width))) => width,
                    Some((_, SdnType::String)) => 0,
                    None => self.declared_width(self.bottom(&declared.under)),
                }
            }
        }
    }
}

fn translation(annotations: &[Annotation]) -> Option<(&str, SdnType)> {
    let annotation = annotations.iter().find(|a| a.name == TRANSLATION)?;
    // The checker reports a malformed annotation.
    translated(annotation).ok()
}

/// The bytes of a value in big-endian order, padded to a width in bits.
pub(super) fn padded(value: &BigUint, width: u32) -> Vec<u8> {
    let bytes = value.to_bytes_be();
    let want = width.div_ceil(8) as usize;
    let mut out = vec![0; want.saturating_sub(bytes.len())];
    out.extend(bytes);
    out
}

/// A struct's name in P4Info: from `@name`, else its own name. A specialization is named as in p4c: `S<bit<8>>` is `S_bit8`.
pub(super) fn type_name(ty: &crate::ir::StructType) -> String {
    let name = given_name(&ty.name, &ty.annotations);
    match name.split_once('<') {
        Some((base, args)) => {
            let args = args.replace(['<', '>', ' '], "").replace([',', '.'], "_");
            format!("{base}_{args}")
        }
        None => name,
    }
}
