//! Types that a P4Info names: what registers, digests, keys and parameters are made of (P4Runtime specification 1.4, section 6.5).

use std::collections::BTreeMap;

/// A data type, named types by their names.
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
    /// In [`TypeInfo::structs`].
    Struct(String),
    /// In [`TypeInfo::headers`].
    Header(String),
    /// In [`TypeInfo::header_unions`].
    HeaderUnion(String),
    /// A stack of headers.
    HeaderStack(String, u32),
    /// A stack of header unions.
    HeaderUnionStack(String, u32),
    /// In [`TypeInfo::enums`].
    Enum(String),
    /// In [`TypeInfo::serializable_enums`].
    SerializableEnum(String),
    /// In [`TypeInfo::new_types`].
    NewType(String),
}

/// Fields with their types.
pub type Members = Vec<(String, DataType)>;

/// Every type that something in a P4Info names, by name.
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
    /// Enums with one.
    pub serializable_enums: BTreeMap<String, SerializableEnum>,
    /// Members of `error`, if something uses it.
    pub errors: Vec<String>,
    /// `type T x;`
    pub new_types: BTreeMap<String, NewType>,
}

/// An enum with a representation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerializableEnum {
    /// Width of the representation.
    pub bitwidth: u32,
    /// Members and their values' bytes, the representation's width.
    pub members: Vec<(String, Vec<u8>)>,
}

/// `type T x;`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewType {
    /// What it means to a control plane.
    pub meaning: Meaning,
    /// Annotations as text.
    pub annotations: Vec<String>,
    /// Structured annotations.
    pub structured: Vec<super::StructuredAnnotation>,
}

/// What `type T x;` means to a control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// As the data plane has it.
    Original(DataType),
    /// `@p4runtime_translation(uri, type)`: the control plane has a type of its own.
    Translated {
        /// Names the translation.
        uri: String,
        /// The control plane's type.
        sdn: SdnType,
    },
}

/// The control plane's side of a translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SdnType {
    /// A number of so many bits.
    Bits(u32),
    /// A string.
    String,
}
