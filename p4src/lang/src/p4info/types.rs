//! Types that P4Info names: those of registers, digests, keys and parameters (P4Runtime specification 1.4, section 6.5).

use std::collections::BTreeMap;

/// A data type; it refers to named types by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DataType {
    /// `bit<W>`
    Bit(u32),
    /// `int<W>`
    Int(u32),
    /// `varbit<W>`
    Varbit(u32),
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `tuple<…>`
    Tuple(Vec<DataType>),
    /// Name in [`TypeInfo::structs`].
    Struct(String),
    /// Name in [`TypeInfo::headers`].
    Header(String),
    /// Name in [`TypeInfo::header_unions`].
    HeaderUnion(String),
    /// A stack of headers: the header's name and the number of elements.
    HeaderStack(String, u32),
    /// A stack of header unions: the union's name and the number of elements.
    HeaderUnionStack(String, u32),
    /// Name in [`TypeInfo::enums`].
    Enum(String),
    /// Name in [`TypeInfo::serializable_enums`].
    SerializableEnum(String),
    /// Name in [`TypeInfo::new_types`].
    NewType(String),
}

/// Fields with their names and types.
pub type Members = Vec<(String, DataType)>;

/// Every type that another part of a P4Info names, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeInfo {
    /// Structs.
    pub structs: BTreeMap<String, Members>,
    /// Headers; members are `bit`, `int`, `varbit`.
    pub headers: BTreeMap<String, Members>,
    /// Header unions; members are headers.
    pub header_unions: BTreeMap<String, Members>,
    /// Enums without a representation, with their members.
    pub enums: BTreeMap<String, Vec<String>>,
    /// Enums with a representation.
    pub serializable_enums: BTreeMap<String, SerializableEnum>,
    /// Members of `error`, if a type uses it.
    pub errors: Vec<String>,
    /// The `type T x;` declarations.
    pub new_types: BTreeMap<String, NewType>,
}

/// An enum with a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerializableEnum {
    /// Width of the representation.
    pub bitwidth: u32,
    /// Members with their values, as bytes in the representation's width.
    pub members: Vec<(String, Vec<u8>)>,
}

/// `type T x;`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewType {
    /// Its type in the control plane.
    pub meaning: Meaning,
    /// Annotations as text.
    pub annotations: Vec<String>,
    /// Structured annotations.
    pub structured: Vec<super::StructuredAnnotation>,
}

/// The type of a `type T x;` in the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// The control plane uses the type of the data plane.
    Original(DataType),
    /// `@p4runtime_translation(uri, type)`: the control plane uses its own type.
    Translated {
        /// URI of the translation.
        uri: String,
        /// The control plane's type.
        sdn: SdnType,
    },
}

/// The control plane's type in a translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdnType {
    /// A number of this many bits.
    Bits(u32),
    /// A string.
    String,
}
