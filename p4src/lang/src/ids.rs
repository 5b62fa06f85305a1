//! P4Info ids and aliases, computed as p4c computes them: a control plane written against p4c's P4Info works with ours.
//!
//! An id is a prefix (8 bits, the kind of object) and a hash of the fully qualified name (24 bits). If two hashes collide, the
//! second name gets the next free number. Names are numbered in sorted order, so nothing else affects the ids.

use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a P4Info object, which is the upper 8 bits of its id: P4Runtime's `P4Ids.Prefix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Prefix {
    /// An action.
    Action = 0x01,
    /// A table.
    Table = 0x02,
    /// A parser value set.
    ValueSet = 0x03,
    /// A header of packets to or from the controller.
    ControllerHeader = 0x04,
    /// An action profile or action selector.
    ActionProfile = 0x11,
    /// An indirect counter: an array of cells.
    Counter = 0x12,
    /// A direct counter: one cell per table entry.
    DirectCounter = 0x13,
    /// An indirect meter: an array of cells.
    Meter = 0x14,
    /// A direct meter: one cell per table entry.
    DirectMeter = 0x15,
    /// A register array.
    Register = 0x16,
    /// A digest: messages to the controller.
    Digest = 0x17,
}

/// Why an `@id` annotation was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The upper 8 bits of the id are the prefix of another kind of P4Info object.
    #[error("the upper 8 bits of this @id denote another kind of object")]
    Prefix,
    /// Another object of the program already has this id.
    #[error("more than one object has this @id")]
    Taken,
}

/// Jenkins' one-at-a-time hash, from which p4c computes ids.
pub fn jenkins(text: &str) -> u32 {
    let mut hash = 0u32;
    for byte in text.bytes() {
        hash = hash.wrapping_add(byte.into());
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// Names of a program's objects, to which [`Names::number`] gives P4Info ids and aliases.
#[derive(Debug, Default)]
pub struct Names {
    names: BTreeMap<(Prefix, String), Option<u32>>,
    taken: BTreeSet<u32>,
}

impl Names {
    /// Adds an object; adding the same kind and name twice has no effect. `id` is the program's `@id`, with or without prefix.
    pub fn add(&mut self, prefix: Prefix, name: &str, id: Option<u32>) -> Result<(), IdError> {
        let key = (prefix, name.to_owned());
        if self.names.contains_key(&key) {
            return Ok(());
        }
        let (id, result) = match id {
            None => (None, Ok(())),
            Some(id) => {
                let own = u32::from(prefix as u8) << 24;
                let full = own | (id & 0x00ff_ffff);
                if id >> 24 != 0 && id & 0xff00_0000 != own {
                    (None, Err(IdError::Prefix))
                } else if !self.taken.insert(full) {
                    (None, Err(IdError::Taken))
                } else {
                    (Some(full), Ok(()))
                }
            }
        };
        self.names.insert(key, id);
        result
    }

    /// Gives a P4Info id to each object without `@id`, and an alias to each object.
    pub fn number(self) -> Ids {
        let Names { names, mut taken } = self;
        let mut ids: HashMap<(Prefix, String), u32> = HashMap::new();
        let mut distinct = BTreeSet::new();
        for ((prefix, name), id) in names {
            distinct.insert(name.clone());
            let id = id.unwrap_or_else(|| {
                let own = u32::from(prefix as u8) << 24;
                let mut suffix = jenkins(&name);
                while !taken.insert(own | (suffix & 0x00ff_ffff)) {
                    suffix = suffix.wrapping_add(1);
                }
                own | (suffix & 0x00ff_ffff)
            });
            ids.insert((prefix, name), id);
        }
        Ids {
            ids,
            aliases: aliases(&distinct),
        }
    }
}

/// P4Info ids and aliases of all objects of a program.
#[derive(Debug, Default)]
pub struct Ids {
    ids: HashMap<(Prefix, String), u32>,
    aliases: HashMap<String, String>,
}

impl Ids {
    /// The P4Info id of an object; 0 if the program has no object of this kind and name.
    pub fn id(&self, prefix: Prefix, name: &str) -> u32 {
        self.ids
            .get(&(prefix, name.to_owned()))
            .copied()
            .unwrap_or(0)
    }

    /// The object's alias: the shortest suffix of its name, in whole components, that no other object's name has.
    pub fn alias(&self, name: &str) -> String {
        self.aliases
            .get(name)
            .map_or(name, String::as_str)
            .to_owned()
    }
}

fn aliases(names: &BTreeSet<String>) -> HashMap<String, String> {
    let mut suffixes: HashMap<&str, u32> = HashMap::new();
    for name in names {
        for suffix in suffixes_of(name) {
            *suffixes.entry(suffix).or_default() += 1;
        }
    }
    names
        .iter()
        .map(|name| {
            let alias = suffixes_of(name).find(|s| suffixes.get(s) == Some(&1));
            (name.clone(), alias.unwrap_or(name).to_owned())
        })
        .collect()
}

/// The dotted suffixes of a name, shortest first: `a.b.c` → `c`, `b.c`, `a.b.c`
fn suffixes_of(name: &str) -> impl Iterator<Item = &str> {
    name.rmatch_indices('.')
        .map(move |(at, _)| &name[at + 1..])
        .chain(std::iter::once(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(prefix: Prefix, name: &str) -> u32 {
        let mut names = Names::default();
        names.add(prefix, name, None).expect("no @id given");
        names.number().id(prefix, name)
    }

    /// The expected ids come from P4Info files that p4c wrote.
    #[test]
    fn ids_are_those_of_p4c() {
        assert_eq!(id(Prefix::Action, "NoAction"), 21257015);
        assert_eq!(id(Prefix::Action, "MyIC.a1"), 21832421);
        assert_eq!(id(Prefix::Table, "ingress.ipv4_da_lpm"), 35996228);
        assert_eq!(id(Prefix::Register, "cIngress.regfile"), 376043845);
        assert_eq!(id(Prefix::ActionProfile, "MyIC.as"), 294316857);
    }

    #[test]
    fn an_id_annotation_wins_over_a_hash() {
        let mut names = Names::default();
        let hashed = jenkins("NoAction") & 0xff_ffff;
        names.add(Prefix::Action, "a", Some(hashed)).expect("free");
        names.add(Prefix::Action, "NoAction", None).expect("no @id");
        assert_eq!(
            names.add(Prefix::Action, "b", Some(hashed)),
            Err(IdError::Taken)
        );
        assert_eq!(
            names.add(Prefix::Action, "c", Some(0x0200_0001)),
            Err(IdError::Prefix)
        );
        let ids = names.number();
        assert_eq!(ids.id(Prefix::Action, "a"), 0x0100_0000 | hashed);
        assert_eq!(
            ids.id(Prefix::Action, "NoAction"),
            0x0100_0000 | (hashed + 1)
        );
    }

    #[test]
    fn aliases_are_the_shortest_unique_suffixes() {
        let mut names = Names::default();
        for name in ["d.a.c", "e.b.c", "x", "y.x", "f.g"] {
            names.add(Prefix::Table, name, None).expect("no @id");
        }
        names.add(Prefix::Counter, "f.g", None).expect("no @id");
        let ids = names.number();
        assert_eq!(ids.alias("d.a.c"), "a.c");
        assert_eq!(ids.alias("e.b.c"), "b.c");
        assert_eq!(ids.alias("x"), "x");
        assert_eq!(ids.alias("y.x"), "y.x");
        assert_eq!(ids.alias("f.g"), "g");
    }
}
