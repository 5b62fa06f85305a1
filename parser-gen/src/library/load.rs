//! From YAML to a consistent [`Library`].

use std::collections::{BTreeMap, BTreeSet};

use super::message::{self, Kind};
use super::own::{self, ProtocolSource};
use super::schema::{
    CarrierFile, Declared, EdgeFile, ElementFile, FieldFile, NoteFile, ProtocolFile, TypeFile,
    WhenFile,
};
use super::{
    Body, Edge, Element, Field, FieldType, FilterField, Library, Note, Options, PayloadLength,
    Protocol, Target,
};

/// Why a set of protocol files is no library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct LibraryError {
    /// The file's name.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// What is wrong, and with which field or edge.
    pub message: String,
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$((
            concat!($name, ".yaml"),
            include_str!(concat!("../../protocols/", $name, ".yaml")),
        )),*]
    };
}

/// Wire order: a protocol stands after everything that can carry it.
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

/// Cells of the counter `notes`, and so the number of codes.
const NUM_NOTES: u8 = 64;

impl Library {
    /// The library that comes with the crate.
    pub fn builtin() -> Library {
        // The text is part of the program; the test `builtin_library_loads` reads it.
        Library::from_sources(BUILTIN, BUILTIN_NOTES)
            .expect("the embedded protocol library is consistent")
    }

    /// The library with protocol files of a user's. Their order does not matter.
    ///
    /// # Errors
    ///
    /// Files that are wrong, that redefine or contradict the library or each other, or that carry each other.
    pub fn with(sources: &[ProtocolSource]) -> Result<Library, LibraryError> {
        let all = own::in_wire_order(BUILTIN, sources)?;
        Library::from_sources(&all, BUILTIN_NOTES)
    }

    /// Reads protocol files, given as (name, text) in wire order, and the file of notes.
    pub fn from_sources(
        protocols: &[(&str, &str)],
        notes: (&str, &str),
    ) -> Result<Library, LibraryError> {
        let text_of = |file: &str| {
            let mut files = protocols.iter().chain([&notes]);
            files
                .find(|(name, _)| *name == file)
                .map_or("", |(_, text)| *text)
        };
        Library::from_files(protocols, notes).map_err(|error| match error.line {
            0 => located(&error.file, text_of(&error.file), error.message),
            _ => error,
        })
    }

    fn from_files(
        protocols: &[(&str, &str)],
        notes: (&str, &str),
    ) -> Result<Library, LibraryError> {
        let notes = load_notes(notes.0, notes.1)?;
        let mut files = Vec::new();
        for (file, text) in protocols {
            files.push((*file, parse(file, text)?));
        }
        carry(&mut files)?;
        let mut ids = BTreeMap::new();
        for (id, (file, parsed)) in files.iter().enumerate() {
            let context = Context {
                file,
                ids: &ids,
                notes: &notes,
                id,
            };
            context.identifier("name", &parsed.name)?;
            context.identifier("filter", &parsed.filter)?;
            if ids.insert(parsed.name.clone(), id).is_some() {
                return Err(invalid(
                    file,
                    format!("a second protocol is named `{}`", parsed.name),
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
            let protocol = Context {
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
                        format!("filters know another `{name}` already"),
                    ));
                }
            }
            loaded.push(protocol);
        }
        let root = match roots.as_slice() {
            [root] => *root,
            [] => return Err(invalid("library", "no protocol is the root".to_owned())),
            [_, second, ..] => return Err(invalid(files[*second].0, "a second root".to_owned())),
        };
        Ok(Library {
            protocols: loaded,
            notes,
            root,
        })
    }
}

pub(super) fn parse(file: &str, text: &str) -> Result<ProtocolFile, LibraryError> {
    serde_yaml::from_str(text).map_err(|error| misshapen(file, &error))
}

/// What serde_yaml says, with its place in front.
fn misshapen(file: &str, error: &serde_yaml::Error) -> LibraryError {
    let (line, column) = error
        .location()
        .map_or((1, 1), |at| (at.line(), at.column()));
    let message = error.to_string();
    let message = message
        .split(" at line ")
        .next()
        .unwrap_or(&message)
        .to_owned();
    LibraryError {
        file: file.to_owned(),
        line,
        column,
        message,
    }
}

/// Adds to each carrier's `next` what says of itself that it is carried by it.
fn carry(files: &mut [(&str, ProtocolFile)]) -> Result<(), LibraryError> {
    for index in 0..files.len() {
        let (file, name) = (files[index].0, files[index].1.name.clone());
        let carriers: Vec<CarrierFile> = files[index].1.carried_by.drain(..).collect();
        for CarrierFile { by, when } in carriers {
            let carrier = files.iter().position(|(_, other)| other.name == by);
            let Some(carrier) = carrier else {
                return Err(invalid(
                    file,
                    format!("carried_by: there is no protocol `{by}`"),
                ));
            };
            if carrier >= index {
                return Err(invalid(
                    file,
                    format!(
                        "carried_by: `{by}` does not stand before `{name}`: a parser would loop"
                    ),
                ));
            }
            fits(&files[carrier].1, &when).map_err(|why| {
                let message = format!("carried_by: `{by}` is followed by {why}");
                invalid(file, message)
            })?;
            let next = &mut files[carrier].1.next;
            if let Some(taken) = next.iter().find(|edge| edge.when == when) {
                let what = taken.to.as_deref().unwrap_or("a note");
                return Err(invalid(
                    file,
                    format!("carried_by: with these values `{by}` carries `{what}` already"),
                ));
            }
            // Before what fits everything.
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

/// Said of the file that is carried: the carrier, which may be a shipped one, is right.
fn fits(carrier: &ProtocolFile, when: &[WhenFile]) -> Result<(), String> {
    if when.len() != carrier.select.len() {
        let fields = carrier.select.iter().map(|name| format!("`{name}`"));
        let fields = fields.collect::<Vec<_>>().join(", ");
        return Err(match fields.as_str() {
            "" => "nothing".to_owned(),
            fields => format!("what {fields} say: {} values for them", when.len()),
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
                    "what `{name}` says, and {value} does not fit its {bits} bits"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The place is found when the error leaves: [`located`].
fn invalid(file: &str, message: String) -> LibraryError {
    LibraryError {
        file: file.to_owned(),
        line: 0,
        column: 0,
        message,
    }
}

/// A message with the place of what it names first: the first word in backticks that stands in the file.
pub(super) fn located(file: &str, text: &str, message: String) -> LibraryError {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let places = |word: &str| {
        let is_whole = |at: &usize| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        };
        let is_said = |at: &usize| {
            let line = text[..*at].rsplit('\n').next().unwrap_or("");
            !line.starts_with('#') && !line.contains(" #")
        };
        let all = text.match_indices(word).map(|(at, _)| at);
        let all = all.filter(is_whole).filter(is_said);
        all.collect::<Vec<usize>>()
    };
    let find = |word: &str| {
        let places = places(word);
        // A whole key or value, rather than a word of a sentence.
        let is_value = |at: &&usize| {
            let before = text[..**at].trim_end_matches([' ', '"']);
            before.is_empty() || before.ends_with([':', '[', '{', ',', '-', '\n'])
        };
        let value = places.iter().find(is_value);
        value.or(places.first()).copied()
    };
    let mut named = message
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| !word.is_empty());
    let at = named.find_map(find).unwrap_or(0);
    let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    LibraryError {
        file: file.to_owned(),
        line: text[..at].matches('\n').count() + 1,
        column: text[line_start..at].chars().count() + 1,
        message,
    }
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
                format!("note `{}`: its code or name is taken", note.name),
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

/// What the checks of one file need to see.
struct Context<'a> {
    file: &'a str,
    ids: &'a BTreeMap<String, usize>,
    notes: &'a [Note],
    id: usize,
}

impl Context<'_> {
    fn error(&self, message: impl Into<String>) -> LibraryError {
        invalid(self.file, message.into())
    }

    fn identifier(&self, what: &str, name: &str) -> Result<(), LibraryError> {
        let mut chars = name.chars();
        let starts = chars.next().is_some_and(|c| c.is_ascii_lowercase());
        if starts && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            Ok(())
        } else {
            Err(self.error(format!("{what} `{name}` is not a lower-case identifier")))
        }
    }

    fn protocol(&self, file: &ProtocolFile) -> Result<Protocol, LibraryError> {
        let mut fields = self.fields(file)?;
        let mut body = self.body(file, &fields)?;
        if let (Body::Message(elements), Some(message)) = (&mut body, &file.message) {
            (*elements, fields) = self.message(file, message)?;
        }
        let select = file
            .select
            .iter()
            .map(|name| self.field_index(&fields, "select", name))
            .collect::<Result<Vec<_>, _>>()?;
        let next = file
            .next
            .iter()
            .enumerate()
            .map(|(n, edge)| self.edge(n + 1, edge, &fields, &select))
            .collect::<Result<Vec<_>, _>>()?;
        let notes = file.notes.iter().map(|name| self.note(name));
        let notes = notes.collect::<Result<Vec<_>, _>>()?;
        Ok(Protocol {
            name: file.name.clone(),
            filter: file.filter.clone(),
            about: file.about.clone(),
            body,
            fields,
            notes,
            select,
            next,
        })
    }

    fn fields(&self, file: &ProtocolFile) -> Result<Vec<Field>, LibraryError> {
        let mut names = BTreeSet::new();
        let mut fields = Vec::new();
        for field in &file.fields {
            self.identifier("field", &field.name)?;
            if !names.insert(&field.name) {
                return Err(self.error(format!("field `{}` is there twice", field.name)));
            }
            if !(1..=128).contains(&field.bits) {
                return Err(self.error(format!(
                    "field `{}`: 1 to 128 bits, not {}",
                    field.name, field.bits
                )));
            }
            fields.push(self.field(file, field)?);
        }
        Ok(fields)
    }

    /// The elements of a message, and each as a field.
    fn message(
        &self,
        file: &ProtocolFile,
        message: &[ElementFile],
    ) -> Result<(Vec<Element>, Vec<Field>), LibraryError> {
        let mut elements: Vec<Element> = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        if message.is_empty() {
            return Err(self.error("a message has elements"));
        }
        for (index, element) in message.iter().enumerate() {
            let mut before = elements.iter().zip(&fields).rev();
            let before = before.find(|(element, _)| !matches!(element.kind, Kind::Literal(_)));
            let before = before.map(|(element, field)| (field.name.as_str(), &element.kind));
            let is_last = index + 1 == message.len();
            let (name, parsed, ty) = message::element(element, before, is_last)
                .map_err(|error| self.error(format!("message: {error}")))?;
            if element.literal.is_none() {
                self.identifier("field", &name)?;
                if fields.iter().any(|field| field.name == name) {
                    return Err(self.error(format!("field `{name}` is there twice")));
                }
            }
            if let Some(filter) = &element.filter {
                if element.literal.is_some() {
                    return Err(self.error(format!("message: a literal has no filter `{filter}`")));
                }
                self.filter_name(&file.filter, filter)?;
            }
            fields.push(Field {
                name,
                bits: parsed.kind.bits(),
                filter: element.filter.as_ref().map(|filter| FilterField {
                    name: filter.clone(),
                    ty,
                    about: element.about.clone(),
                }),
            });
            elements.push(parsed);
        }
        Ok((elements, fields))
    }

    fn field(&self, file: &ProtocolFile, field: &FieldFile) -> Result<Field, LibraryError> {
        let (ty, width) = match field.ty {
            TypeFile::Unsigned => (FieldType::Unsigned, None),
            TypeFile::Flag => (FieldType::Flag, Some(1)),
            TypeFile::Ipv4 => (FieldType::Ipv4, Some(32)),
            TypeFile::Ipv6 => (FieldType::Ipv6, Some(128)),
            TypeFile::Mac => (FieldType::Mac, Some(48)),
        };
        if let Some(width) = width.filter(|width| *width != field.bits) {
            return Err(self.error(format!(
                "field `{}`: {} has {width} bits, not {}",
                field.name,
                ty.describe(),
                field.bits
            )));
        }
        let filter = match &field.filter {
            None => None,
            Some(name) => {
                self.filter_name(&file.filter, name)?;
                Some(FilterField {
                    name: name.clone(),
                    ty,
                    about: field.about.clone(),
                })
            }
        };
        Ok(Field {
            name: field.name.clone(),
            bits: field.bits,
            filter,
        })
    }

    /// A field's name begins with its protocol's, so that its presence follows from the name.
    fn filter_name(&self, protocol: &str, name: &str) -> Result<(), LibraryError> {
        let rest = name
            .strip_prefix(protocol)
            .and_then(|rest| rest.strip_prefix('.'));
        match rest {
            Some(rest) if !rest.is_empty() => rest
                .split('.')
                .try_for_each(|part| self.identifier("filter", part)),
            _ => Err(self.error(format!(
                "filter name `{name}` must begin with `{protocol}.`"
            ))),
        }
    }

    fn body(&self, file: &ProtocolFile, fields: &[Field]) -> Result<Body, LibraryError> {
        match (&file.metadata, &file.header, &file.message) {
            (Some(instance), None, None) => Ok(Body::Metadata {
                instance: instance.clone(),
            }),
            (None, None, Some(_)) if !file.select.is_empty() || !file.next.is_empty() => {
                Err(self.error("nothing follows a message: it has no `select` and no `next`"))
            }
            (None, None, Some(_)) if !file.fields.is_empty() || file.options.is_some() => {
                Err(self.error("a message has elements, and neither `fields` nor `options`"))
            }
            // `message` fills it in.
            (None, None, Some(_)) => Ok(Body::Message(Vec::new())),
            (None, Some(header), None) => {
                let bits: u32 = fields.iter().map(|field| field.bits).sum();
                if bits == 0 || !bits.is_multiple_of(8) {
                    return Err(self.error(format!(
                        "the fields sum to {bits} bits, which is not whole bytes"
                    )));
                }
                let options = match &file.options {
                    None => None,
                    Some(options) => {
                        let length = self.field_index(fields, "options", &options.length)?;
                        if options.first_word > options.max || bits != options.first_word * 32 {
                            return Err(self.error(format!(
                                "options: a header of {bits} bits ends at word {}, not {}",
                                bits / 32,
                                options.first_word
                            )));
                        }
                        Some(Options {
                            length,
                            first_word: options.first_word,
                            max: options.max,
                            malformed: self.note(&options.malformed)?,
                        })
                    }
                };
                let payload = match &file.payload {
                    None => None,
                    Some(payload) => Some(match (&payload.total, &payload.after_header) {
                        (Some(name), None) => {
                            PayloadLength::Total(self.field_index(fields, "payload", name)?)
                        }
                        (None, Some(name)) => {
                            PayloadLength::AfterHeader(self.field_index(fields, "payload", name)?)
                        }
                        _ => return Err(self.error("payload: one of `total` and `after_header`")),
                    }),
                };
                Ok(Body::Header {
                    type_name: header.type_name.clone(),
                    common: header.declared == Declared::Common,
                    values: header.values,
                    options,
                    payload,
                })
            }
            _ => Err(self.error("a protocol is one of `metadata`, `header` and `message`")),
        }
    }

    fn edge(
        &self,
        n: usize,
        edge: &EdgeFile,
        fields: &[Field],
        select: &[usize],
    ) -> Result<Edge, LibraryError> {
        if edge.when.len() != select.len() {
            return Err(self.error(format!(
                "next {n}: {} values for {} select fields",
                edge.when.len(),
                select.len()
            )));
        }
        let mut when = Vec::new();
        for (value, index) in edge.when.iter().zip(select) {
            when.push(match value {
                WhenFile::Word(word) if word == "any" => None,
                WhenFile::Word(word) => {
                    return Err(
                        self.error(format!("next {n}: `{word}` is neither a number nor `any`"))
                    );
                }
                WhenFile::Value(value) => {
                    let field = &fields[*index];
                    if field.bits < 64 && *value >> field.bits != 0 {
                        return Err(self.error(format!(
                            "next {n}: {value} does not fit the {} bits of `{}`",
                            field.bits, field.name
                        )));
                    }
                    Some(u128::from(*value))
                }
            });
        }
        let to = match (&edge.to, &edge.note) {
            (Some(to), None) if to == "end" => Target::End,
            (Some(to), None) => match self.ids.get(to) {
                // Wire order also keeps the graph free of cycles.
                Some(id) if *id > self.id => Target::Protocol(*id),
                Some(_) => {
                    return Err(self.error(format!("next {n}: `{to}` stands before this protocol")));
                }
                None => return Err(self.error(format!("next {n}: there is no protocol `{to}`"))),
            },
            (None, Some(note)) => Target::Note(self.note(note)?),
            _ => return Err(self.error(format!("next {n}: one of `to` and `note`"))),
        };
        Ok(Edge { when, to })
    }

    fn field_index(&self, fields: &[Field], what: &str, name: &str) -> Result<usize, LibraryError> {
        fields
            .iter()
            .position(|field| field.name == name)
            .ok_or_else(|| self.error(format!("{what}: there is no field `{name}`")))
    }

    fn note(&self, name: &str) -> Result<u8, LibraryError> {
        self.notes
            .iter()
            .find(|note| note.name == name)
            .map(|note| note.code)
            .ok_or_else(|| self.error(format!("there is no note `{name}`")))
    }
}
