//! From YAML to a consistent [`Library`].

use std::collections::{BTreeMap, BTreeSet};

use super::schema::{Declared, EdgeFile, FieldFile, NoteFile, ProtocolFile, TypeFile, WhenFile};
use super::{
    Body, Edge, Field, FieldType, FilterField, Library, Note, Options, PayloadLength, Protocol,
    Resp, Target,
};

/// Why a set of protocol files is no library.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// Not YAML, or not of the schema's shape; serde_yaml's message has the line and column.
    #[error("{file}: {source}")]
    Yaml {
        /// The file's name.
        file: String,
        /// What serde_yaml says.
        source: serde_yaml::Error,
    },
    /// The files' contents contradict themselves or each other.
    #[error("{file}: {message}")]
    Invalid {
        /// The file's name.
        file: String,
        /// What is wrong, and with which field or edge.
        message: String,
    },
}

/// Wire order: a protocol stands after everything that can carry it.
const BUILTIN: &[(&str, &str)] = &[
    ("switch.yaml", include_str!("../../protocols/switch.yaml")),
    (
        "ethernet.yaml",
        include_str!("../../protocols/ethernet.yaml"),
    ),
    ("vlan.yaml", include_str!("../../protocols/vlan.yaml")),
    (
        "inner_vlan.yaml",
        include_str!("../../protocols/inner_vlan.yaml"),
    ),
    ("ipv4.yaml", include_str!("../../protocols/ipv4.yaml")),
    ("ipv6.yaml", include_str!("../../protocols/ipv6.yaml")),
    ("tcp.yaml", include_str!("../../protocols/tcp.yaml")),
    ("udp.yaml", include_str!("../../protocols/udp.yaml")),
    ("agg.yaml", include_str!("../../protocols/agg.yaml")),
    ("roce.yaml", include_str!("../../protocols/roce.yaml")),
    ("redis.yaml", include_str!("../../protocols/redis.yaml")),
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

    /// Reads protocol files, given as (name, text) in wire order, and the file of notes.
    pub fn from_sources(
        protocols: &[(&str, &str)],
        notes: (&str, &str),
    ) -> Result<Library, LibraryError> {
        let notes = load_notes(notes.0, notes.1)?;
        let mut files = Vec::new();
        for (file, text) in protocols {
            let parsed: ProtocolFile =
                serde_yaml::from_str(text).map_err(|source| LibraryError::Yaml {
                    file: (*file).to_owned(),
                    source,
                })?;
            files.push((*file, parsed));
        }
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

fn invalid(file: &str, message: String) -> LibraryError {
    LibraryError::Invalid {
        file: file.to_owned(),
        message,
    }
}

fn load_notes(file: &str, text: &str) -> Result<Vec<Note>, LibraryError> {
    let parsed: Vec<NoteFile> =
        serde_yaml::from_str(text).map_err(|source| LibraryError::Yaml {
            file: file.to_owned(),
            source,
        })?;
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
            pipelined: n.pipelined,
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
        let fields = self.fields(file)?;
        let body = self.body(file, &fields)?;
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
        if let Some(resp) = &file.resp {
            if !file.fields.is_empty() {
                return Err(self.error("a RESP protocol has no `fields`"));
            }
            let mut fields = Vec::new();
            for (name, field, ty) in [
                ("command", &resp.command, FieldType::Name),
                ("key", &resp.key, FieldType::Text),
            ] {
                // Texts are matched as one P4 value, which holds 128 bits.
                if !(1..=16).contains(&field.max) {
                    return Err(self.error(format!("{name}: `max` must be 1 to 16 bytes")));
                }
                self.filter_name(&file.filter, &field.filter)?;
                fields.push(Field {
                    name: name.to_owned(),
                    bits: 0,
                    filter: Some(FilterField {
                        name: field.filter.clone(),
                        ty,
                        about: field.about.clone(),
                    }),
                });
            }
            return Ok(fields);
        }
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
        match (&file.metadata, &file.header, &file.resp) {
            (Some(instance), None, None) => Ok(Body::Metadata {
                instance: instance.clone(),
            }),
            (None, None, Some(resp)) => Ok(Body::Resp(Resp {
                max_command: resp.command.max,
                max_key: resp.key.max,
            })),
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
            _ => Err(self.error("a protocol is one of `metadata`, `header` and `resp`")),
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
        Ok(Edge {
            when,
            to,
            needs_payload: edge.needs_payload,
        })
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
