//! Values of Thrift's type system, with code that writes them to a Thrift protocol and reads them without generated types.

use ::thrift::protocol::{
    TFieldIdentifier, TInputProtocol, TListIdentifier, TOutputProtocol, TStructIdentifier, TType,
};
use ::thrift::{ProtocolErrorKind, Result, new_protocol_error};

/// Maximum nesting of structs, lists and maps in a received value; BMv2's own values are 4 deep.
const MAX_DEPTH: usize = 16;

/// A value of Thrift's type system.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Thrift's type `bool`
    Bool(bool),
    /// Thrift's type `i8`
    I8(i8),
    /// Thrift's type `i16`
    I16(i16),
    /// Thrift's type `i32`, also used for enums
    I32(i32),
    /// Thrift's type `i64`
    I64(i64),
    /// Thrift's type `double`
    Double(f64),
    /// Thrift's type `binary`, also used for strings
    Binary(Vec<u8>),
    /// A struct: number and value of each field that is set.
    Struct(Vec<(i16, Value)>),
    /// A list or a set: kind of the elements, and the elements.
    List(Kind, Vec<Value>),
    /// A map: pairs of key and value.
    Map(Vec<(Value, Value)>),
}

/// Type of a Thrift value, without the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Thrift's type `bool`
    Bool,
    /// Thrift's type `i8`
    I8,
    /// Thrift's type `i16`
    I16,
    /// Thrift's type `i32`
    I32,
    /// Thrift's type `i64`
    I64,
    /// Thrift's type `double`
    Double,
    /// Thrift's types `binary` and `string`
    Binary,
    /// A Thrift struct.
    Struct,
    /// A Thrift list or set.
    List,
    /// A Thrift map.
    Map,
}

impl Kind {
    fn wire(self) -> TType {
        match self {
            Kind::Bool => TType::Bool,
            Kind::I8 => TType::I08,
            Kind::I16 => TType::I16,
            Kind::I32 => TType::I32,
            Kind::I64 => TType::I64,
            Kind::Double => TType::Double,
            Kind::Binary => TType::String,
            Kind::Struct => TType::Struct,
            Kind::List => TType::List,
            Kind::Map => TType::Map,
        }
    }

    fn of_wire(wire: TType) -> Result<Kind> {
        Ok(match wire {
            TType::Bool => Kind::Bool,
            TType::I08 => Kind::I8,
            TType::I16 => Kind::I16,
            TType::I32 => Kind::I32,
            TType::I64 => Kind::I64,
            TType::Double => Kind::Double,
            TType::String => Kind::Binary,
            TType::Struct => Kind::Struct,
            TType::List => Kind::List,
            TType::Map => Kind::Map,
            other => {
                return Err(new_protocol_error(
                    ProtocolErrorKind::InvalidData,
                    format!("a value of type {other:?}"),
                ));
            }
        })
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::I32(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::I64(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Binary(value.as_bytes().to_vec())
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Value {
        Value::Binary(value.to_vec())
    }
}

impl Value {
    /// Builds a Thrift list of byte strings.
    #[must_use]
    pub fn binaries(values: &[Vec<u8>]) -> Value {
        Value::List(
            Kind::Binary,
            values.iter().cloned().map(Value::Binary).collect(),
        )
    }

    /// Builds a Thrift list of structs from the fields of each struct: field number and value.
    #[must_use]
    pub fn structs(values: Vec<Vec<(i16, Value)>>) -> Value {
        Value::List(
            Kind::Struct,
            values.into_iter().map(Value::Struct).collect(),
        )
    }

    /// Type of this value.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Value::Bool(_) => Kind::Bool,
            Value::I8(_) => Kind::I8,
            Value::I16(_) => Kind::I16,
            Value::I32(_) => Kind::I32,
            Value::I64(_) => Kind::I64,
            Value::Double(_) => Kind::Double,
            Value::Binary(_) => Kind::Binary,
            Value::Struct(_) => Kind::Struct,
            Value::List(..) => Kind::List,
            Value::Map(_) => Kind::Map,
        }
    }

    /// Value of a struct's field, by field number; `None` if the field is not set, or this value is no struct.
    #[must_use]
    pub fn field(&self, number: i16) -> Option<&Value> {
        match self {
            Value::Struct(fields) => fields
                .iter()
                .find(|(own, _)| *own == number)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    /// The number, if this value is an `i32`.
    #[must_use]
    pub fn i32(&self) -> Option<i32> {
        match self {
            Value::I32(value) => Some(*value),
            _ => None,
        }
    }

    /// The number, if this value is an `i64`.
    #[must_use]
    pub fn i64(&self) -> Option<i64> {
        match self {
            Value::I64(value) => Some(*value),
            _ => None,
        }
    }

    /// The bytes, if this value is a byte string.
    #[must_use]
    pub fn binary(&self) -> Option<&[u8]> {
        match self {
            Value::Binary(value) => Some(value),
            _ => None,
        }
    }

    /// The text, if this value is a UTF-8 string.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(self.binary()?).ok()
    }

    /// The elements, if this value is a list.
    #[must_use]
    pub fn list(&self) -> Option<&[Value]> {
        match self {
            Value::List(_, values) => Some(values),
            _ => None,
        }
    }

    pub(super) fn write(&self, to: &mut impl TOutputProtocol) -> Result<()> {
        match self {
            Value::Bool(value) => to.write_bool(*value),
            Value::I8(value) => to.write_i8(*value),
            Value::I16(value) => to.write_i16(*value),
            Value::I32(value) => to.write_i32(*value),
            Value::I64(value) => to.write_i64(*value),
            Value::Double(value) => to.write_double(*value),
            Value::Binary(value) => to.write_bytes(value),
            Value::Struct(fields) => {
                to.write_struct_begin(&TStructIdentifier::new(""))?;
                for (number, value) in fields {
                    let wire = value.kind().wire();
                    to.write_field_begin(&TFieldIdentifier::new("", wire, *number))?;
                    value.write(to)?;
                    to.write_field_end()?;
                }
                to.write_field_stop()?;
                to.write_struct_end()
            }
            Value::List(kind, values) => {
                to.write_list_begin(&TListIdentifier::new(kind.wire(), count(values)?))?;
                for value in values {
                    value.write(to)?;
                }
                to.write_list_end()
            }
            // BMv2 takes no map, so none is ever sent.
            Value::Map(_) => Err(new_protocol_error(
                ProtocolErrorKind::NotImplemented,
                "a map is only read",
            )),
        }
    }

    /// Reads a struct with its fields from a Thrift protocol.
    pub(super) fn read_struct(from: &mut impl TInputProtocol) -> Result<Value> {
        read(from, Kind::Struct, 0)
    }
}

fn count(values: &[Value]) -> Result<i32> {
    i32::try_from(values.len())
        .map_err(|_| new_protocol_error(ProtocolErrorKind::SizeLimit, "a list is too long"))
}

fn read(from: &mut impl TInputProtocol, kind: Kind, depth: usize) -> Result<Value> {
    if depth > MAX_DEPTH {
        let kind = ProtocolErrorKind::DepthLimit;
        return Err(new_protocol_error(kind, "values too deep in one another"));
    }
    Ok(match kind {
        Kind::Bool => Value::Bool(from.read_bool()?),
        Kind::I8 => Value::I8(from.read_i8()?),
        Kind::I16 => Value::I16(from.read_i16()?),
        Kind::I32 => Value::I32(from.read_i32()?),
        Kind::I64 => Value::I64(from.read_i64()?),
        Kind::Double => Value::Double(from.read_double()?),
        Kind::Binary => Value::Binary(from.read_bytes()?),
        Kind::Struct => {
            from.read_struct_begin()?;
            let mut fields = Vec::new();
            loop {
                let field = from.read_field_begin()?;
                let Some(number) = field.id.filter(|_| field.field_type != TType::Stop) else {
                    break;
                };
                let value = read(from, Kind::of_wire(field.field_type)?, depth + 1)?;
                fields.push((number, value));
                from.read_field_end()?;
            }
            from.read_struct_end()?;
            Value::Struct(fields)
        }
        Kind::List => {
            let list = from.read_list_begin()?;
            let kind = Kind::of_wire(list.element_type)?;
            let mut values = Vec::new();
            for _ in 0..list.size {
                values.push(read(from, kind, depth + 1)?);
            }
            from.read_list_end()?;
            Value::List(kind, values)
        }
        Kind::Map => {
            let map = from.read_map_begin()?;
            let mut pairs = Vec::new();
            if let (Some(key), Some(value)) = (map.key_type, map.value_type) {
                let (key, value) = (Kind::of_wire(key)?, Kind::of_wire(value)?);
                for _ in 0..map.size {
                    let key = read(from, key, depth + 1)?;
                    pairs.push((key, read(from, value, depth + 1)?));
                }
            }
            from.read_map_end()?;
            Value::Map(pairs)
        }
    })
}
