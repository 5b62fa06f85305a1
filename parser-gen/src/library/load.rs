//! Loads YAML protocol files into a consistent [`Library`].

use std::collections::{BTreeMap, BTreeSet};

use super::carriage::Carriage;
use super::error::{LibraryError, invalid, located, misshapen};
use super::own::{self, ProtocolSource};
use super::payload::{self, PayloadSlice, SliceError};
use super::protocol::Context;
use super::schema::{CarrierFile, EdgeFile, NoteFile, ProtocolFile, WhenFile, parse};
use super::{Library, Note};

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$((
            concat!($name, ".yaml"),
            include_str!(concat!("../../protocols/", $name, ".yaml")),
        )),*]
    };
}

/// Shipped protocol files in wire order: a protocol follows all protocols that can carry it.
const BUILTIN: &[(&str, &str)] = builtin![
    "switch",
    "ethernet",
    "vlan",
    "inner_vlan",
    "arp",
    "ipv4",
    "ipv6",
    "ipv6_hop",
    "ipv6_routing",
    "ipv6_fragment",
    "ipv6_dest",
    "icmp",
    "icmpv6",
    "tcp",
    "udp",
    "agg",
    "roce",
    "roce_data",
    "reth",
    "aeth",
    "vxlan",
    "dns",
    "redis",
    "kafka",
    "http",
    "memcached",
    "postgres",
];
const BUILTIN_NOTES: (&str, &str) = ("notes.yaml", include_str!("../../protocols/notes.yaml"));

/// Number of cells of the switch's counter `notes`; all codes of notes are below it.
const NUM_NOTES: u8 = 64;

impl Library {
    /// Loads the embedded protocol library.
    pub fn builtin() -> Library {
        // The embedded text is constant, and the test `builtin_library_loads` loads it.
        Library::from_sources(BUILTIN, BUILTIN_NOTES)
            .expect("the embedded protocol library is consistent")
    }

    /// Loads the embedded library and a user's protocol files, in any order.
    ///
    /// # Errors
    ///
    /// If a file is invalid, redefines or contradicts the library or another file, or if files carry each other.
    pub fn with(sources: &[ProtocolSource]) -> Result<Library, LibraryError> {
        Library::with_payload(sources, &[])
    }

    /// Loads the embedded library, a user's protocol files, and slices of payloads that filters name.
    ///
    /// # Errors
    ///
    /// Errors of [`Library::with`], and of [`Library::slices_are_readable`].
    pub fn with_payload(
        sources: &[ProtocolSource],
        slices: &[PayloadSlice],
    ) -> Result<Library, LibraryError> {
        let all = own::in_wire_order(BUILTIN, sources)?;
        let payloads = payload::protocols(slices).map_err(|error| LibraryError {
            file: "payload".to_owned(),
            line: 1,
            column: 1,
            message: error.to_string(),
        })?;
        Library::read(&all, BUILTIN_NOTES, payloads)
    }

    /// Checks that a parser can read these payload slices together.
    ///
    /// # Errors
    ///
    /// If slices overlap, are too long, or end too far from the payload's beginning.
    pub fn slices_are_readable(slices: &[PayloadSlice]) -> Result<(), SliceError> {
        payload::protocols(slices).map(|_| ())
    }

    /// Builds a library from protocol files, given as (name, text) in wire order, and the file of notes.
    pub fn from_sources(
        protocols: &[(&str, &str)],
        notes: (&str, &str),
    ) -> Result<Library, LibraryError> {
        Library::read(protocols, notes, Vec::new())
    }

    fn read(
        protocols: &[(&str, &str)],
        notes: (&str, &str),
        payloads: Vec<ProtocolFile>,
    ) -> Result<Library, LibraryError> {
        let text_of = |file: &str| {
            // A user's file may have the name of a shipped one, and comes behind it.
            let mut files = [&notes].into_iter().chain(protocols).rev();
            files
                .find(|(name, _)| *name == file)
                .map_or("", |(_, text)| *text)
        };
        Library::from_files(protocols, notes, payloads).map_err(|error| match error.line {
            0 => located(&error.file, text_of(&error.file), error.message),
            _ => error,
        })
    }

    fn from_files(
        protocols: &[(&str, &str)],
        notes: (&str, &str),
        payloads: Vec<ProtocolFile>,
    ) -> Result<Library, LibraryError> {
        let notes = load_notes(notes.0, notes.1)?;
        let mut files = Vec::new();
        for (file, text) in protocols {
            files.push((*file, parse(file, text)?));
        }
        files.extend(payloads.into_iter().map(|file| ("payload", file)));
        carry(&mut files)?;
        let uncarried = uncarried(&files);
        let displaced = displace(&mut files);
        let mut ids = BTreeMap::new();
        for (id, (file, parsed)) in files.iter().enumerate() {
            let context = Context {
                file,
                ids: &ids,
                notes: &notes,
                id,
            };
            context.identifier("name", &parsed.name)?;
            if parsed.payload_of.is_none() {
                context.identifier("filter", &parsed.filter)?;
            }
            if ids.insert(parsed.name.clone(), id).is_some() {
                return Err(invalid(
                    file,
                    format!("two protocols are named `{}`", parsed.name),
                ));
            }
        }
        let mut roots = Vec::new();
        let mut loaded = Vec::new();
        let mut filter_names = BTreeSet::new();
        for (id, (file, parsed)) in files.iter().enumerate() {
            if parsed.root {
                roots.push(id);
            }
            let mut protocol = Context {
                file,
                ids: &ids,
                notes: &notes,
                id,
            }
            .protocol(parsed)?;
            let names = protocol
                .fields
                .iter()
                .filter_map(|field| field.filter.as_ref())
                .map(|f| &f.name);
            for name in names.chain([&protocol.filter]) {
                if !filter_names.insert(name.clone()) {
                    return Err(invalid(
                        file,
                        format!("the filter name `{name}` is declared twice"),
                    ));
                }
            }
            let mut begin = 0;
            for field in &mut protocol.fields {
                field.begin = begin;
                begin += field.bits;
            }
            loaded.push(protocol);
        }
        let root = match roots.as_slice() {
            [root] => *root,
            [] => return Err(invalid("library", "no protocol has `root`".to_owned())),
            [_, second, ..] => return Err(invalid(files[*second].0, "a second root".to_owned())),
        };
        let mut library = Library {
            carriage: Carriage::new(&loaded, root),
            protocols: loaded,
            notes,
            root,
            hidden: Vec::new(),
            uncarried,
        };
        if displaced {
            library.hidden = library.unreachable();
            library
                .hidden
                .retain(|name| !library.uncarried.contains(name));
        }
        Ok(library)
    }
}

/// Adds each `carried_by` of a file to the `next` edges of the carrier's file.
fn carry(files: &mut [(&str, ProtocolFile)]) -> Result<(), LibraryError> {
    for index in 0..files.len() {
        let (file, name) = (files[index].0, files[index].1.name.clone());
        let carriers: Vec<CarrierFile> = files[index].1.carried_by.drain(..).collect();
        for CarrierFile { by, when } in carriers {
            let carrier = files.iter().position(|(_, other)| other.name == by);
            let Some(carrier) = carrier else {
                return Err(invalid(
                    file,
                    format!("carried_by: protocol `{by}` does not exist"),
                ));
            };
            if carrier >= index {
                return Err(invalid(
                    file,
                    format!(
                        "carried_by: `{by}` does not come before `{name}`: a parser would loop"
                    ),
                ));
            }
            fits(&files[carrier].1, &when)
                .map_err(|why| invalid(file, format!("carried_by: {why}")))?;
            let next = &mut files[carrier].1.next;
            if let Some(taken) = next.iter().find(|edge| edge.when == when) {
                let what = taken.to.as_deref().unwrap_or("a note");
                return Err(invalid(
                    file,
                    format!("carried_by: with these values `{by}` carries `{what}` already"),
                ));
            }
            // Specific edges precede one that matches all values.
            next.insert(
                0,
                EdgeFile {
                    when,
                    to: Some(name.clone()),
                    note: None,
                },
            );
        }
    }
    Ok(())
}

/// Filter names of protocols that no packet has: no path leads to them from a root.
fn uncarried(files: &[(&str, ProtocolFile)]) -> Vec<String> {
    let mut reached = BTreeSet::new();
    let files = files.iter().map(|(_, file)| file);
    let roots = files
        .clone()
        .filter(|file| file.root || file.metadata.is_some());
    let mut waiting: Vec<&str> = roots.map(|file| file.name.as_str()).collect();
    while let Some(name) = waiting.pop() {
        if !reached.insert(name) {
            continue;
        }
        let named = files.clone().filter(|file| file.name == name);
        let next = named.flat_map(|file| &file.next);
        waiting.extend(next.filter_map(|edge| edge.to.as_deref()));
    }
    let lost = files.filter(|file| !reached.contains(file.name.as_str()));
    lost.map(|file| file.filter.clone()).collect()
}

/// Removes the edges from a payload's carrier to other protocols if filters read slices of that payload; returns whether
/// there are slices. Edges to weir's own frames stay: these have a port of their own, and their edge comes first.
fn displace(files: &mut [(&str, ProtocolFile)]) -> bool {
    let payloads: Vec<(String, String)> = files
        .iter()
        .filter_map(|(_, file)| Some((file.payload_of.clone()?, file.name.clone())))
        .collect();
    for (carrier, payload) in &payloads {
        for (_, file) in files.iter_mut().filter(|(_, file)| file.name == *carrier) {
            let stays = |edge: &EdgeFile| {
                let to = edge.to.as_deref();
                to == Some(payload) || to == Some("agg")
            };
            file.next.retain(stays);
            // Edges with a port come before the slices, which match all values.
            file.next
                .sort_by_key(|edge| edge.to.as_deref() == Some(payload));
        }
    }
    !payloads.is_empty()
}

/// Checks a file's `carried_by` against its carrier's file. Errors are about the file with
/// `carried_by`, not about the carrier's, which may be shipped.
fn fits(carrier: &ProtocolFile, when: &[WhenFile]) -> Result<(), String> {
    let by = &carrier.name;
    if when.len() != carrier.select.len() {
        let fields = carrier.select.iter().map(|name| format!("`{name}`"));
        let fields = fields.collect::<Vec<_>>().join(", ");
        return Err(match fields.as_str() {
            "" => format!("`{by}` carries no protocol"),
            fields => format!(
                "`{by}` selects what follows by {fields}: give one value for each, not {}",
                when.len()
            ),
        });
    }
    for (value, name) in when.iter().zip(&carrier.select) {
        let field = carrier.fields.iter().find(|field| field.name == *name);
        let Some(bits) = field.map(|field| field.bits) else {
            continue;
        };
        match value {
            WhenFile::Value(value) if bits < 64 && *value >> bits != 0 => {
                return Err(format!(
                    "`{value}` does not fit the {bits} bits of `{name}`, which selects what follows `{by}`"
                ));
            }
            WhenFile::Word(word) if word != "any" => {
                return Err(format!(
                    "`{word}` is neither a number nor `any`; `{name}`, a number, selects what follows `{by}`"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn load_notes(file: &str, text: &str) -> Result<Vec<Note>, LibraryError> {
    let parsed: Vec<NoteFile> =
        serde_yaml::from_str(text).map_err(|error| misshapen(file, &error))?;
    let mut codes = BTreeSet::new();
    let mut names = BTreeSet::new();
    for note in &parsed {
        if note.code == 0 || note.code >= NUM_NOTES {
            return Err(invalid(
                file,
                format!(
                    "note `{}`: the code must be 1 to {}",
                    note.name,
                    NUM_NOTES - 1
                ),
            ));
        }
        if !codes.insert(note.code) || !names.insert(&note.name) {
            return Err(invalid(
                file,
                format!("note `{}`: another note has its code or name", note.name),
            ));
        }
    }
    Ok(parsed
        .into_iter()
        .map(|n| Note {
            code: n.code,
            name: n.name,
            about: n.about,
        })
        .collect())
}
