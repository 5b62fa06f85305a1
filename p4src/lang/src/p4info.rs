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

/// The P4Info of a program: everything that a control plane can address in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct P4Info {
    /// Architecture name as p4c prints it: `psa`, `v1model`, `tna`.
    pub arch: String,
    /// Name of the package instance: `main`, unless an annotation changes it.
    pub name: String,
    /// Tables, in order of declaration.
    pub tables: Vec<Table>,
    /// Actions; as in all other sections, in order of declaration.
    pub actions: Vec<Action>,
    /// Action profiles and selectors.
    pub action_profiles: Vec<ActionProfile>,
    /// Indirect counters: arrays of cells that the program indexes.
    pub counters: Vec<Counter>,
    /// Direct counters: one cell per table entry.
    pub direct_counters: Vec<DirectCounter>,
    /// Indirect meters: arrays of cells that the program indexes.
    pub meters: Vec<Meter>,
    /// Direct meters: one cell per table entry.
    pub direct_meters: Vec<DirectMeter>,
    /// Controller packet headers (`packet_in`, `packet_out`).
    pub controller_packet_metadata: Vec<ControllerPacketMetadata>,
    /// Parser value sets.
    pub value_sets: Vec<ValueSet>,
    /// Register arrays.
    pub registers: Vec<Register>,
    /// Digests: messages to the controller.
    pub digests: Vec<Digest>,
    /// Description of the program, from its annotations.
    pub package: Package,
    /// Definitions of the types that the sections above name.
    pub types: TypeInfo,
}

/// Description of a program: `@pkginfo(…)`, `@platform_property(…)` and other annotations before `main`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// Name of the program, from `@pkginfo`; empty if not given.
    pub name: String,
    /// Version of the program, from `@pkginfo`; empty if not given.
    pub version: String,
    /// Organization that publishes the program, from `@pkginfo`; empty if not given.
    pub organization: String,
    /// Contact address for the program, from `@pkginfo`; empty if not given.
    pub contact: String,
    /// URL of the program, from `@pkginfo`; empty if not given.
    pub url: String,
    /// Short description of the program, from `@brief`; empty if not given.
    pub brief: String,
    /// Long description of the program, from `@description`; empty if not given.
    pub description: String,
    /// Annotations of the package instance `main` that have no field of their own here, as text.
    pub annotations: Vec<String>,
    /// Capacities that the program needs, from `@platform_property`; `None` if not given.
    pub platform: Option<Platform>,
}

/// Capacities that a program needs, from `@platform_property(…)`; 0 means not given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Platform {
    /// Number of multicast groups.
    pub multicast_group_table_size: i32,
    /// Number of replicas over all multicast groups.
    pub multicast_group_table_total_replicas: i32,
    /// Number of replicas of one multicast group.
    pub multicast_group_table_max_replicas_per_entry: i32,
}

/// A structured annotation: `@name[…]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructuredAnnotation {
    /// Name of the annotation, without `@`.
    pub name: String,
    /// Content of the annotation's brackets.
    pub body: Structured,
}

/// Id, name, alias and annotations, which every P4Info object has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preamble {
    /// Id of the object: `prefix << 24 | suffix`, where the prefix is the kind of object.
    pub id: u32,
    /// Fully qualified name of the object.
    pub name: String,
    /// Shortest suffix of the object's name that is unique in the program.
    pub alias: String,
    /// Annotations of the object as written, without `@name(...)` and `@id(...)`.
    pub annotations: Vec<String>,
    /// Short description of the object, from `@brief`; empty if not given.
    pub brief: String,
    /// Long description of the object, from `@description`; empty if not given.
    pub description: String,
    /// Structured annotations (`@name[…]`) of the object.
    pub structured: Vec<StructuredAnnotation>,
}

/// The match kind of a table's key field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchType {
    /// A match kind that P4Runtime defines.
    Standard(MatchKind),
    /// A match kind of the architecture that P4Runtime does not define.
    Other(String),
}

/// A key field of a table, or a field of a value set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchField {
    /// Id of the field, unique among the fields of its table or value set, from 1.
    pub id: u32,
    /// Name of the field: the text of `@name`, else of the key expression.
    pub name: String,
    /// Width of the field in bits.
    pub bitwidth: u32,
    /// Match kind of the field.
    pub match_type: MatchType,
    /// Annotations of the field, as written.
    pub annotations: Vec<String>,
    /// Structured annotations (`@name[…]`) of the field.
    pub structured: Vec<StructuredAnnotation>,
    /// Name of the field's type in [`P4Info::types`], if it is a newtype; else `None`.
    pub type_name: Option<String>,
}

/// The positions in which a table may use an action: entries, default action or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionScope {
    /// In table entries and as the default action.
    TableAndDefault,
    /// `@tableonly`: only in table entries.
    TableOnly,
    /// `@defaultonly`: only as the default action.
    DefaultOnly,
}

/// An action that a table offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRef {
    /// Id of the action.
    pub id: u32,
    /// Positions in which the table may use the action.
    pub scope: ActionScope,
    /// Annotations of the action in the table's `actions` list, as written.
    pub annotations: Vec<String>,
    /// Structured annotations (`@name[…]`) of the action in the table's `actions` list.
    pub structured: Vec<StructuredAnnotation>,
}

/// A match-action table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Id and names of the table.
    pub preamble: Preamble,
    /// Key fields, in order.
    pub match_fields: Vec<MatchField>,
    /// Actions that the table offers.
    pub action_refs: Vec<ActionRef>,
    /// Id of the default action if it is const, else 0.
    pub const_default_action_id: u32,
    /// Id of the initial default action (0 = an implied `NoAction`).
    pub initial_default_action_id: u32,
    /// Arguments of the initial default action: (parameter id, value in as many bytes as its width needs).
    pub initial_default_args: Vec<(u32, Vec<u8>)>,
    /// Id of the table's action profile or selector; 0 if it has none.
    pub implementation_id: u32,
    /// Ids of the direct counters and meters attached to the table.
    pub direct_resource_ids: Vec<u32>,
    /// Maximum number of entries of the table.
    pub size: i64,
    /// Whether the entries are `const`: the control plane cannot write to the table.
    pub is_const_table: bool,
    /// Whether the program contains `entries` for the table.
    pub has_initial_entries: bool,
    /// Whether the switch notifies the control plane of table entries that time out.
    pub idle_timeout: bool,
}

/// A run-time parameter of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// Id of the parameter, unique among the parameters of its action, from 1.
    pub id: u32,
    /// Name of the parameter.
    pub name: String,
    /// Width of the parameter in bits.
    pub bitwidth: u32,
    /// Annotations of the parameter, as written.
    pub annotations: Vec<String>,
    /// Structured annotations (`@name[…]`) of the parameter.
    pub structured: Vec<StructuredAnnotation>,
    /// Name of the parameter's type in [`P4Info::types`], if it is a newtype; else `None`.
    pub type_name: Option<String>,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    /// Id and names of the action.
    pub preamble: Preamble,
    /// Parameters that the control plane supplies (without direction in the source).
    pub params: Vec<Param>,
}

/// An action profile or action selector, which holds the actions of table entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionProfile {
    /// Id and names of the action profile.
    pub preamble: Preamble,
    /// Ids of the tables that use the action profile.
    pub table_ids: Vec<u32>,
    /// Whether the profile is a selector: it has groups of members.
    pub with_selector: bool,
    /// Maximum number of members; for a selector, the limit that `selector_size` explains.
    pub size: i64,
    /// Maximum size of a group, from `@max_group_size`; 0 if not given.
    pub max_group_size: i32,
    /// Meaning of a selector's size, from `@selector_size_semantics`; `None` if not given.
    pub selector_size: Option<SelectorSize>,
}

/// The quantity that an action selector's `size` and `max_group_size` limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectorSize {
    /// The sum of the weights of all members.
    SumOfWeights,
    /// The number of members, each with a weight up to `max_member_weight`.
    SumOfMembers {
        /// Maximum weight of a member; 0 means no limit.
        max_member_weight: i32,
    },
}

/// Unit that a counter or meter counts in: bytes, packets or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes only.
    Bytes,
    /// Packets only.
    Packets,
    /// Bytes and packets (counters only).
    Both,
}

/// An indirect counter: an array of cells that the program indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Id and names of the counter.
    pub preamble: Preamble,
    /// Unit that the counter counts in.
    pub unit: Unit,
    /// Number of cells of the counter.
    pub size: i64,
    /// Name of the type of the counter's index in [`P4Info::types`], if it is a newtype; else `None`.
    pub index_type: Option<String>,
}

/// A direct counter: one cell per entry of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectCounter {
    /// Id and names of the counter.
    pub preamble: Preamble,
    /// Unit that the counter counts in.
    pub unit: Unit,
    /// Id of the counter's table.
    pub table_id: u32,
}

/// An indirect meter: an array of cells that the program indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    /// Id and names of the meter.
    pub preamble: Preamble,
    /// Unit of the meter's rates and bursts.
    pub unit: Unit,
    /// Number of cells of the meter.
    pub size: i64,
    /// Name of the type of the meter's index in [`P4Info::types`], if it is a newtype; else `None`.
    pub index_type: Option<String>,
}

/// A direct meter: one cell per entry of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectMeter {
    /// Id and names of the meter.
    pub preamble: Preamble,
    /// Unit of the meter's rates and bursts.
    pub unit: Unit,
    /// Id of the meter's table.
    pub table_id: u32,
}

/// A field of a controller packet header (`packet_in` or `packet_out`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketMetadata {
    /// Id of the field, unique in its header, from 1.
    pub id: u32,
    /// Name of the field.
    pub name: String,
    /// Width of the field in bits.
    pub bitwidth: u32,
    /// Annotations of the field, as written.
    pub annotations: Vec<String>,
    /// Name of the field's type in [`P4Info::types`], if it is a newtype; else `None`.
    pub type_name: Option<String>,
}

/// The header of packets to or from the controller: `packet_in` or `packet_out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerPacketMetadata {
    /// Id and names of the controller packet header.
    pub preamble: Preamble,
    /// Fields of the controller packet header, in order.
    pub metadata: Vec<PacketMetadata>,
}

/// A parser value set, whose members the control plane writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSet {
    /// Id and names of the value set.
    pub preamble: Preamble,
    /// Fields of each member of the value set.
    pub match_fields: Vec<MatchField>,
    /// Maximum number of members of the value set.
    pub size: i64,
}

/// A register array. Elements that are structs are described field by field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// Id and names of the register.
    pub preamble: Preamble,
    /// Scalars of one array element: one unnamed scalar, or the fields of a struct.
    pub element: Vec<ElementField>,
    /// Name of the array element's struct type; `None` if the element is no struct.
    pub struct_name: Option<String>,
    /// Number of cells of the register array.
    pub size: i64,
    /// Full type of one array element; `None` if unknown. Execution of the program needs only the scalars in `element`.
    pub data_type: Option<DataType>,
    /// Name of the type of the register's index in [`P4Info::types`], if it is a newtype; else `None`.
    pub index_type: Option<String>,
}

/// A scalar in a register's array element or a digest's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElementField {
    /// Field name of the scalar; empty if the element is the scalar itself.
    pub name: String,
    /// Width of the scalar in bits; 1 for `bool`.
    pub bitwidth: u32,
    /// Whether the scalar is `int<W>`, not `bit<W>`.
    pub signed: bool,
    /// Whether the scalar is a `bool`.
    pub boolean: bool,
}

/// A digest: messages of one type that the program sends to the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Id and names of the digest.
    pub preamble: Preamble,
    /// Scalars of the digest's message.
    pub element: Vec<ElementField>,
    /// Name of the message's struct type; `None` if the message is no struct.
    pub struct_name: Option<String>,
    /// Full type of a message; `None` if unknown. Execution of the program needs only the scalars in `element`.
    pub data_type: Option<DataType>,
}
