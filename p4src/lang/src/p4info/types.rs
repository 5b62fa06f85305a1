//! Data types that P4Info describes: those of registers, digests, keys and parameters (P4Runtime 1.4, section 6.5).

use std::collections::BTreeMap;

/// A data type in P4Info; it refers to structs, headers, enums and new types by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataType {
    /// An unsigned integer, `bit<W>`.
    Bit(u32),
    /// A signed integer, `int<W>`.
    Int(u32),
    /// A bit string of variable length, `varbit<W>`; W is the maximum length in bits.
    Varbit(u32),
    /// The type `bool`.
    Bool,
    /// The type `error`.
    Error,
    /// A tuple, `tuple<…>`, with the types of its elements.
    Tuple(Vec<DataType>),
    /// A struct, by its name in [`TypeInfo::structs`].
    Struct(String),
    /// A header, by its name in [`TypeInfo::headers`].
    Header(String),
    /// A header union, by its name in [`TypeInfo::header_unions`].
    HeaderUnion(String),
    /// A stack of headers: the header's name and the number of elements.
    HeaderStack(String, u32),
    /// A stack of header unions: the union's name and the number of elements.
    HeaderUnionStack(String, u32),
    /// An enum without a representation, by its name in [`TypeInfo::enums`].
    Enum(String),
    /// An enum with a representation, by its name in [`TypeInfo::serializable_enums`].
    SerializableEnum(String),
    /// A new type (`type T x;`), by its name in [`TypeInfo::new_types`].
    NewType(String),
}

/// Fields of a struct, header or union: (name, type), in order.
pub type Members = Vec<(String, DataType)>;

/// Every type that tables, actions, registers or digests of a P4Info refer to, by type name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeInfo {
    /// Structs, by name.
    pub structs: BTreeMap<String, Members>,
    /// Headers by name; the types of their fields are `bit`, `int` or `varbit`.
    pub headers: BTreeMap<String, Members>,
    /// Header unions by name; the types of their fields are headers.
    pub header_unions: BTreeMap<String, Members>,
    /// Enums without a representation: member names by enum name.
    pub enums: BTreeMap<String, Vec<String>>,
    /// Enums with a representation, by name.
    pub serializable_enums: BTreeMap<String, SerializableEnum>,
    /// Members of `error` in order, if a type uses `error`; else empty.
    pub errors: Vec<String>,
    /// New types (`type T x;`), by name.
    pub new_types: BTreeMap<String, NewType>,
}

/// An enum with a representation, such as `enum bit<8> E`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerializableEnum {
    /// Width of the enum's representation in bits.
    pub bitwidth: u32,
    /// Members of the enum: (name, value as bytes in the representation's width).
    pub members: Vec<(String, Vec<u8>)>,
}

/// A new type, `type T x;`, as the control plane sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewType {
    /// The type that the control plane uses for values of the new type.
    pub meaning: Meaning,
    /// Annotations of the new type, as text.
    pub annotations: Vec<String>,
    /// Structured annotations (`@name[…]`) of the new type.
    pub structured: Vec<super::StructuredAnnotation>,
}

/// The type that the control plane uses for values of a `type T x;`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// The control plane uses the data plane's type.
    Original(DataType),
    /// `@p4runtime_translation(uri, type)`: the control plane uses a type of its own.
    Translated {
        /// URI that identifies the translation between the two types.
        uri: String,
        /// The type that the control plane uses.
        sdn: SdnType,
    },
}

/// The control plane's type in a `@p4runtime_translation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdnType {
    /// A number with this width in bits.
    Bits(u32),
    /// A string of any length.
    String,
}
