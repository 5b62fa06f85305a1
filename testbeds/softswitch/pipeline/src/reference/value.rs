//! Values of P4's types (P4_16 section 7) while the interpreter runs.

use super::arith;
use super::bits::Bits;
use super::poison::Fill;
use crate::rules::Rules;
use num_bigint::BigUint;
use p4lang::ast::StructKind;
use p4lang::ir::{Const, FieldType, Program, Type};

/// A value of any type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A scalar: `bool`, `bit<W>`, `int<W>`, `error` or an enum.
    Bits(Bits),
    /// A scalar field of TNA's intrinsic metadata with a validity of its own: its validity, its bits.
    Own(bool, Bits),
    /// A `varbit`: its maximum width in bits, and its current bits.
    Varbit(u32, Bits),
    /// A struct or tuple: its fields, in order.
    Struct(Vec<Value>),
    /// A header. The fields of an invalid header may hold any value.
    Header {
        /// Whether the header is valid.
        valid: bool,
        fields: Vec<Value>,
    },
    /// A header union: its members, of which at most one is valid.
    Union(Vec<Value>),
    /// A header stack.
    Stack {
        next: u32,
        /// Elements of the stack: headers or unions.
        elements: Vec<Value>,
    },
    /// A value of a type without run-time values, such as an extern object.
    Nothing,
}

/// Width of a scalar type, in bits.
pub fn width(ty: &Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bit(w) | Type::Int(w) => *w,
        Type::Error | Type::Enum(_) => 32,
        _ => 0,
    }
}

impl Value {
    /// A value that the specification leaves undefined: headers and union members are invalid, `nextIndex` is 0, other
    /// bits come from `fill`.
    pub fn undefined(program: &Program, ty: &Type, fill: &mut Fill) -> Value {
        let mut of = |ty: &Type| Value::undefined(program, ty, fill);
        match ty {
            Type::Bool | Type::Bit(_) | Type::Int(_) | Type::Error | Type::Enum(_) => {
                Value::Bits(fill.bits(width(ty)))
            }
            Type::Varbit(most) => Value::Varbit(*most, Bits::new(0, 0u8)),
            Type::Struct(id) => {
                let ty = &program.types[id.index()];
                let field = |f: &FieldType| match of(&f.ty) {
                    Value::Bits(bits) if Rules::for_program(program).own_validity(ty, f) => {
                        Value::Own(false, bits)
                    }
                    other => other,
                };
                let fields = ty.fields.iter().map(field).collect();
                match ty.kind {
                    StructKind::Struct => Value::Struct(fields),
                    StructKind::Header => Value::Header {
                        valid: false,
                        fields,
                    },
                    StructKind::Union => Value::Union(fields),
                }
            }
            Type::Stack(id, n) => Value::Stack {
                next: 0,
                elements: (0..*n).map(|_| of(&Type::Struct(*id))).collect(),
            },
            Type::Tuple(types) => Value::Struct(types.iter().map(of).collect()),
            Type::Void | Type::String | Type::Extern(_) => Value::Nothing,
        }
    }

    /// Converts a constant to a value of this type.
    pub fn constant(program: &Program, ty: &Type, value: &Const) -> Value {
        match value {
            Const::Bits { value, .. } => Value::Bits(Bits::new(width(ty), value.clone())),
            Const::Integer(value) => Value::Bits(Bits::from_int(width(ty), value)),
            Const::Bool(b) => Value::Bits(Bits::bool(*b)),
            Const::Enum(_, i) | Const::Error(i) => Value::Bits(Bits::new(32, *i)),
            Const::Tuple(values) => {
                let types = field_types(program, ty);
                let fields = types.iter().zip(values);
                Value::composed(
                    program,
                    ty,
                    fields
                        .map(|(ty, v)| Value::constant(program, ty, v))
                        .collect(),
                )
            }
            Const::Str(_) | Const::Extern(_) => Value::Nothing,
        }
    }

    /// Creates a struct, tuple or valid header with these fields, or a stack with these elements and `nextIndex` 0 (8.20.1).
    pub fn composed(program: &Program, ty: &Type, fields: Vec<Value>) -> Value {
        match ty {
            Type::Struct(id) if program.types[id.index()].kind == StructKind::Header => {
                Value::Header {
                    valid: true,
                    fields,
                }
            }
            Type::Struct(id) => {
                let ty = &program.types[id.index()];
                let own = |(value, f): (Value, &FieldType)| match value {
                    Value::Bits(bits) if Rules::for_program(program).own_validity(ty, f) => {
                        Value::Own(true, bits)
                    }
                    other => other,
                };
                Value::Struct(fields.into_iter().zip(&ty.fields).map(own).collect())
            }
            Type::Stack(..) => Value::Stack {
                next: 0,
                elements: fields,
            },
            _ => Value::Struct(fields),
        }
    }

    /// Assigns a value to this variable or field; a field with a validity of its own becomes valid.
    pub fn assign(&mut self, value: Value) {
        match (&mut *self, value) {
            (Value::Own(valid, bits), Value::Bits(value)) => (*valid, *bits) = (true, value),
            (_, value) => *self = value,
        }
    }

    /// Sets to 0 the fields that are invalid by their own validity.
    pub fn clear_invalid_fields(&mut self) {
        match self {
            Value::Own(false, bits) => *bits = Bits::new(bits.width, 0u8),
            Value::Struct(fields) => fields.iter_mut().for_each(Value::clear_invalid_fields),
            _ => {}
        }
    }

    /// The bits of a scalar; no bits for other values.
    pub fn bits(&self) -> Bits {
        match self {
            Value::Bits(bits) | Value::Own(_, bits) | Value::Varbit(_, bits) => bits.clone(),
            _ => Bits::new(0, 0u8),
        }
    }

    /// `isValid()` of a header or union (P4_16 8.17, 8.20), or a field's own validity.
    pub fn is_valid(&self) -> bool {
        match self {
            Value::Header { valid, .. } | Value::Own(valid, _) => *valid,
            Value::Union(members) => members.iter().any(Value::is_valid),
            _ => false,
        }
    }

    /// Compares two values by `==` (P4_16 8.17: headers are equal if both are invalid, or both valid with equal fields; 8.18:
    /// stacks, element by element; 8.20: unions, if no member or the same one is valid, and equal). Returns a `bool`.
    pub fn equal(&self, other: &Value) -> Bits {
        let all = |a: &[Value], b: &[Value]| {
            let mut both = Bits::bool(a.len() == b.len());
            for (a, b) in a.iter().zip(b) {
                both = arith::and(&both, &a.equal(b));
            }
            both
        };
        match (self, other) {
            (Value::Bits(a), Value::Bits(b)) => arith::equal(a, b),
            // The validity of a field is not part of its value.
            (Value::Own(_, a), Value::Own(_, b)) => arith::equal(a, b),
            (Value::Varbit(_, a), Value::Varbit(_, b)) if a.width != b.width => Bits::bool(false),
            (Value::Varbit(_, a), Value::Varbit(_, b)) => arith::equal(a, b),
            (Value::Struct(a), Value::Struct(b)) | (Value::Union(a), Value::Union(b)) => all(a, b),
            (
                Value::Header {
                    valid: v,
                    fields: a,
                },
                Value::Header {
                    valid: w,
                    fields: b,
                },
            ) => match (v, w) {
                (false, false) => Bits::bool(true),
                (true, true) => all(a, b),
                _ => Bits::bool(false),
            },
            (Value::Stack { elements: a, .. }, Value::Stack { elements: b, .. }) => all(a, b),
            _ => Bits::bool(true),
        }
    }

    /// All bits of the value in order, most significant first, as in packets, hashes and checksums.
    pub fn flat(&self) -> Bits {
        let fields: &[Value] = match self {
            Value::Bits(bits) | Value::Own(_, bits) | Value::Varbit(_, bits) => {
                return bits.clone();
            }
            Value::Struct(fields) | Value::Union(fields) | Value::Header { fields, .. } => fields,
            Value::Stack { elements, .. } => elements,
            Value::Nothing => &[],
        };
        let empty = Bits::new(0, 0u8);
        fields.iter().fold(empty, |all, f| all.concat(&f.flat()))
    }

    pub fn scalars(&self) -> Vec<Bits> {
        match self {
            Value::Bits(bits) | Value::Own(_, bits) | Value::Varbit(_, bits) => vec![bits.clone()],
            Value::Struct(fields) | Value::Union(fields) | Value::Header { fields, .. } => {
                fields.iter().flat_map(Value::scalars).collect()
            }
            Value::Stack { elements, .. } => elements.iter().flat_map(Value::scalars).collect(),
            Value::Nothing => Vec::new(),
        }
    }

    /// Whether any bits of the value are undefined, except in invalid headers.
    pub fn has_undefined(&self) -> bool {
        match self {
            Value::Bits(bits) | Value::Own(true, bits) | Value::Varbit(_, bits) => {
                bits.undefined != BigUint::ZERO
            }
            Value::Header { valid: false, .. } | Value::Own(false, _) | Value::Nothing => false,
            Value::Struct(fields) | Value::Union(fields) | Value::Header { fields, .. } => {
                fields.iter().any(Value::has_undefined)
            }
            Value::Stack { elements, .. } => elements.iter().any(Value::has_undefined),
        }
    }
}

/// The types of the fields of a struct or tuple.
pub fn field_types(program: &Program, ty: &Type) -> Vec<Type> {
    match ty {
        Type::Struct(id) => {
            let fields = &program.types[id.index()].fields;
            fields.iter().map(|f| f.ty.clone()).collect()
        }
        Type::Tuple(types) => types.clone(),
        Type::Stack(id, n) => vec![Type::Struct(*id); *n as usize],
        _ => Vec::new(),
    }
}
