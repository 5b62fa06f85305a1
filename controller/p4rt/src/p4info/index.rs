//! Finds the objects of a P4Info by name, alias or id.

use super::{DecodeError, P4Info, from_proto};
use crate::config;
use p4lang::p4info::{
    Action, ActionProfile, ControllerPacketMetadata, Counter, Digest, DirectCounter, DirectMeter,
    Meaning, Meter, Preamble, Register, SdnType, Table, TypeInfo, ValueSet,
};
use std::collections::BTreeMap;

/// A P4Info object, such as a table or register, which has an id and a name.
pub trait Object {
    /// Name of the object's kind in error messages: `table`, `action`, …
    const KIND: &'static str;
    /// The object's id, name and alias.
    fn preamble(&self) -> &Preamble;
}

macro_rules! objects {
    ($($object:ty: $kind:literal),* $(,)?) => {
        $(impl Object for $object {
            const KIND: &'static str = $kind;
            fn preamble(&self) -> &Preamble {
                &self.preamble
            }
        })*
    };
}

objects! {
    Table: "table",
    Action: "action",
    ActionProfile: "action profile",
    Counter: "counter",
    DirectCounter: "direct counter",
    Meter: "meter",
    DirectMeter: "direct meter",
    ControllerPacketMetadata: "controller header",
    ValueSet: "value set",
    Register: "register",
    Digest: "digest",
}

/// The P4Info objects of one kind, such as all tables.
#[derive(Debug, Clone)]
pub struct Section<T> {
    objects: Vec<T>,
    by_id: BTreeMap<u32, usize>,
    by_name: BTreeMap<String, usize>,
}

impl<T: Object> Section<T> {
    fn new(objects: Vec<T>) -> Result<Self, DecodeError> {
        let (mut by_id, mut by_name) = (BTreeMap::new(), BTreeMap::new());
        for (position, object) in objects.iter().enumerate() {
            let Preamble { id, name, .. } = object.preamble();
            let id_is_new = by_id.insert(*id, position).is_none();
            let name_is_new = by_name.insert(name.clone(), position).is_none();
            if !(id_is_new && name_is_new) {
                return Err(DecodeError::Duplicate {
                    section: T::KIND,
                    name: name.clone(),
                    id: *id,
                });
            }
        }
        // After all names, so that an alias never hides another object's name.
        for (position, object) in objects.iter().enumerate() {
            by_name
                .entry(object.preamble().alias.clone())
                .or_insert(position);
        }
        Ok(Self {
            objects,
            by_id,
            by_name,
        })
    }

    /// The object with this id; `None` if there is none.
    #[must_use]
    pub fn with_id(&self, id: u32) -> Option<&T> {
        self.by_id.get(&id).map(|&position| &self.objects[position])
    }

    /// The object with this fully qualified name, else the object with this alias.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&T> {
        self.by_name
            .get(name)
            .map(|&position| &self.objects[position])
    }

    /// Iterates over all objects of this kind, in P4Info's order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.objects.iter()
    }
}

/// The P4Info objects of a program, by id, name and alias.
#[derive(Debug, Clone)]
pub struct Index {
    /// Tables of the program.
    pub tables: Section<Table>,
    /// Actions of the program.
    pub actions: Section<Action>,
    /// Action profiles and selectors.
    pub action_profiles: Section<ActionProfile>,
    /// Indirect counters: arrays of cells that the program indexes.
    pub counters: Section<Counter>,
    /// Direct counters: one cell per table entry.
    pub direct_counters: Section<DirectCounter>,
    /// Indirect meters: arrays of cells that the program indexes.
    pub meters: Section<Meter>,
    /// Direct meters: one cell per table entry.
    pub direct_meters: Section<DirectMeter>,
    /// Headers of packets from and to the controller: `packet_in` and `packet_out`.
    pub controller_headers: Section<ControllerPacketMetadata>,
    /// Parser value sets.
    pub value_sets: Section<ValueSet>,
    /// Register arrays.
    pub registers: Section<Register>,
    /// Digests: messages of the program to the controller.
    pub digests: Section<Digest>,
    /// Definitions of the types that objects refer to by name.
    types: TypeInfo,
}

impl Index {
    /// Builds the index of a program from p4lang's P4Info.
    pub fn new(info: P4Info) -> Result<Self, DecodeError> {
        Ok(Self {
            tables: Section::new(info.tables)?,
            actions: Section::new(info.actions)?,
            action_profiles: Section::new(info.action_profiles)?,
            counters: Section::new(info.counters)?,
            direct_counters: Section::new(info.direct_counters)?,
            meters: Section::new(info.meters)?,
            direct_meters: Section::new(info.direct_meters)?,
            controller_headers: Section::new(info.controller_packet_metadata)?,
            value_sets: Section::new(info.value_sets)?,
            registers: Section::new(info.registers)?,
            digests: Section::new(info.digests)?,
            types: info.types,
        })
    }

    /// How the control plane sees a translated type: (URI of the translation, type that it uses); `None` if not translated.
    #[must_use]
    pub fn translation(&self, type_name: &str) -> Option<(&str, SdnType)> {
        match &self.types.new_types.get(type_name)?.meaning {
            Meaning::Translated { uri, sdn } => Some((uri, *sdn)),
            Meaning::Original(_) => None,
        }
    }

    /// Definitions of the types that the program's objects refer to by name.
    #[must_use]
    pub fn types(&self) -> &TypeInfo {
        &self.types
    }

    /// Builds the index of a program from its P4Info message.
    pub fn from_proto(info: &config::P4Info) -> Result<Self, DecodeError> {
        Self::new(from_proto(info)?)
    }
}
