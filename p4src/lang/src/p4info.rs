//! P4Info as plain data: the objects of a program that a control plane may address, with the same ids as p4c's.
//!
//! `p4rt` converts it into the P4Runtime message; this module does not depend on protobuf.
//! Source: P4Runtime specification 1.4, section 6; ids: see [`crate::ids`].

mod annotations;
mod build;
mod builder;
mod externs;
mod package;
pub(crate) mod translation;
mod types;
mod typing;
mod walk;

pub use crate::ir::Structured;
use crate::runtime::MatchKind;
pub(crate) use annotations::is_hidden;
pub use build::build;
pub use types::{DataType, Meaning, Members, NewType, SdnType, SerializableEnum, TypeInfo};
pub(crate) use walk::applied_tables;

/// Everything that a control plane can address in one program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct P4Info {
    /// Architecture name as p4c prints it: `psa`, `v1model`, `tna`.
    pub arch: String,
    /// Name of the package instance: `main`, unless an annotation changes it.
    pub name: String,
    /// Tables; like the sections below, in order of declaration.
    pub tables: Vec<Table>,
    /// Actions.
    pub actions: Vec<Action>,
    /// Action profiles and selectors.
    pub action_profiles: Vec<ActionProfile>,
    /// Indirect counters.
    pub counters: Vec<Counter>,
    /// Direct counters.
    pub direct_counters: Vec<DirectCounter>,
    /// Indirect meters.
    pub meters: Vec<Meter>,
    /// Direct meters.
    pub direct_meters: Vec<DirectMeter>,
    /// Controller packet headers (`packet_in`, `packet_out`).
    pub controller_packet_metadata: Vec<ControllerPacketMetadata>,
    /// Parser value sets.
    pub value_sets: Vec<ValueSet>,
    /// Registers.
    pub registers: Vec<Register>,
    /// Digests.
    pub digests: Vec<Digest>,
    /// The program's own description.
    pub package: Package,
    /// Definitions of the types that the sections above name.
    pub types: TypeInfo,
}

/// `@pkginfo(…)`, `@platform_property(…)` and the like before `main`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Organization.
    pub organization: String,
    /// Contact.
    pub contact: String,
    /// URL.
    pub url: String,
    /// `@brief`
    pub brief: String,
    /// `@description`
    pub description: String,
    /// The other annotations, as text.
    pub annotations: Vec<String>,
    /// Capacities that the target needs.
    pub platform: Option<Platform>,
}

/// `@platform_property(…)`; 0 means not given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Platform {
    /// Multicast groups.
    pub multicast_group_table_size: i32,
    /// Replicas over all groups.
    pub multicast_group_table_total_replicas: i32,
    /// Replicas of one group.
    pub multicast_group_table_max_replicas_per_entry: i32,
}

/// `@name[…]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructuredAnnotation {
    /// Name without `@`.
    pub name: String,
    /// Content of the brackets.
    pub body: Structured,
}

/// Id, name, alias and annotations, which every object has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preamble {
    /// `prefix << 24 | suffix`.
    pub id: u32,
    /// Fully qualified name.
    pub name: String,
    /// Shortest suffix of the name that is unique in the program.
    pub alias: String,
    /// Annotations as written, without `@name(...)` and `@id(...)`.
    pub annotations: Vec<String>,
    /// `@brief`
    pub brief: String,
    /// `@description`
    pub description: String,
    /// Structured annotations.
    pub structured: Vec<StructuredAnnotation>,
}

/// The match kind of a key field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchType {
    /// A match kind that P4Runtime defines.
    Standard(MatchKind),
    /// A match kind of the architecture that P4Runtime does not define.
    Other(String),
}

/// A key field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchField {
    /// Id, unique among the fields, from 1.
    pub id: u32,
    /// The text of `@name`, else of the expression.
    pub name: String,
    /// Width in bits.
    pub bitwidth: u32,
    /// Match kind.
    pub match_type: MatchType,
    /// Annotations.
    pub annotations: Vec<String>,
    /// Structured annotations.
    pub structured: Vec<StructuredAnnotation>,
    /// Name of its type in [`P4Info::types`], if it is a newtype.
    pub type_name: Option<String>,
}

/// The positions in which a table may use an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionScope {
    /// In entries and as the default action.
    TableAndDefault,
    /// `@tableonly`: only in entries.
    TableOnly,
    /// `@defaultonly`: only as the default action.
    DefaultOnly,
}

/// An action that a table offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRef {
    /// Id of the action.
    pub id: u32,
    /// Positions in which the table may use it.
    pub scope: ActionScope,
    /// Annotations.
    pub annotations: Vec<String>,
    /// Structured annotations.
    pub structured: Vec<StructuredAnnotation>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Id and names.
    pub preamble: Preamble,
    /// Key, in order.
    pub match_fields: Vec<MatchField>,
    /// Actions that the table offers.
    pub action_refs: Vec<ActionRef>,
    /// Id of the default action if it is const, else 0.
    pub const_default_action_id: u32,
    /// Id of the initial default action (0 = an implied `NoAction`).
    pub initial_default_action_id: u32,
    /// Arguments of that action: parameter id, and the value in as many bytes as its width needs.
    pub initial_default_args: Vec<(u32, Vec<u8>)>,
    /// Id of the action profile or selector, else 0.
    pub implementation_id: u32,
    /// Ids of direct counters and meters.
    pub direct_resource_ids: Vec<u32>,
    /// Number of entries.
    pub size: i64,
    /// Whether the entries are `const`: the control plane cannot write to the table.
    pub is_const_table: bool,
    /// Whether the program contains `entries` for the table.
    pub has_initial_entries: bool,
    /// Whether the control plane is notified of entries that time out.
    pub idle_timeout: bool,
}

/// A run-time parameter of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Id, unique among the parameters, from 1.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Width in bits.
    pub bitwidth: u32,
    /// Annotations.
    pub annotations: Vec<String>,
    /// Structured annotations.
    pub structured: Vec<StructuredAnnotation>,
    /// Name of its type in [`P4Info::types`], if it is a newtype.
    pub type_name: Option<String>,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Id and names.
    pub preamble: Preamble,
    /// Directionless parameters.
    pub params: Vec<Param>,
}

/// An action profile or selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionProfile {
    /// Id and names.
    pub preamble: Preamble,
    /// Ids of the tables that use it.
    pub table_ids: Vec<u32>,
    /// Whether it has groups (is a selector).
    pub with_selector: bool,
    /// Number of members.
    pub size: i64,
    /// `@max_group_size`; 0 if not given.
    pub max_group_size: i32,
    /// `@selector_size_semantics`
    pub selector_size: Option<SelectorSize>,
}

/// The quantity that a selector's size and its groups' sizes limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectorSize {
    /// The sum of all members' weights.
    SumOfWeights,
    /// The number of members, each with a weight up to `max_member_weight`.
    SumOfMembers {
        /// Maximum weight of a member; 0: no limit.
        max_member_weight: i32,
    },
}

/// The unit of a counter or meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Packets.
    Packets,
    /// Both (counters only).
    Both,
}

/// An indirect counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Id and names.
    pub preamble: Preamble,
    /// Unit.
    pub unit: Unit,
    /// Number of cells.
    pub size: i64,
    /// Name of the index's type in [`P4Info::types`], if it is a newtype.
    pub index_type: Option<String>,
}

/// A direct counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectCounter {
    /// Id and names.
    pub preamble: Preamble,
    /// Unit.
    pub unit: Unit,
    /// Id of its table.
    pub table_id: u32,
}

/// An indirect meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    /// Id and names.
    pub preamble: Preamble,
    /// Unit.
    pub unit: Unit,
    /// Number of cells.
    pub size: i64,
    /// Name of the index's type in [`P4Info::types`], if it is a newtype.
    pub index_type: Option<String>,
}

/// A direct meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectMeter {
    /// Id and names.
    pub preamble: Preamble,
    /// Unit.
    pub unit: Unit,
    /// Id of its table.
    pub table_id: u32,
}

/// A field of a controller header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketMetadata {
    /// Id, unique among the fields, from 1.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Width in bits.
    pub bitwidth: u32,
    /// Annotations.
    pub annotations: Vec<String>,
    /// Name of its type in [`P4Info::types`], if it is a newtype.
    pub type_name: Option<String>,
}

/// `packet_in` or `packet_out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerPacketMetadata {
    /// Id and names.
    pub preamble: Preamble,
    /// Fields.
    pub metadata: Vec<PacketMetadata>,
}

/// A parser value set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSet {
    /// Id and names.
    pub preamble: Preamble,
    /// Fields.
    pub match_fields: Vec<MatchField>,
    /// Number of members.
    pub size: i64,
}

/// A register array. Elements that are structs are described field by field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// Id and names.
    pub preamble: Preamble,
    /// Fields of the element: one unnamed scalar, or a struct's fields.
    pub element: Vec<ElementField>,
    /// Name of the element's struct type, if it is one.
    pub struct_name: Option<String>,
    /// Number of cells.
    pub size: i64,
    /// The element's type; more detailed than `element`, which is for targets.
    pub data_type: Option<DataType>,
    /// Name of the index's type in [`P4Info::types`], if it is a newtype.
    pub index_type: Option<String>,
}

/// A scalar in a register's or digest's element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementField {
    /// Field name, empty for a bare scalar.
    pub name: String,
    /// Width in bits (bool = 1).
    pub bitwidth: u32,
    /// Whether it is `int<W>` and not `bit<W>`.
    pub signed: bool,
    /// Whether it is `bool`.
    pub boolean: bool,
}

/// A digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Id and names.
    pub preamble: Preamble,
    /// Fields of the message.
    pub element: Vec<ElementField>,
    /// Name of the message's struct type.
    pub struct_name: Option<String>,
    /// The message's type; more detailed than `element`, which is for targets.
    pub data_type: Option<DataType>,
}
