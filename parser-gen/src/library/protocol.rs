//! Converts one protocol file into a [`Protocol`], and checks it against the other files and the notes.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{LibraryError, invalid};
use super::message::{self, Kind};
use super::schema::{Declared, EdgeFile, ElementFile, FieldFile, ProtocolFile, TypeFile, WhenFile};
use super::{
    Body, Edge, Element, Field, FieldType, FilterField, HeaderOptions, Note, PayloadLength,
    Protocol, Target,
};

/// Context in which one protocol file is checked: the other files and the notes.
pub(super) struct Context<'a> {
    pub file: &'a str,
    pub ids: &'a BTreeMap<String, usize>,
    pub notes: &'a [Note],
    pub id: usize,
}

impl Context<'_> {
    fn error(&self, message: impl Into<String>) -> LibraryError {
        invalid(self.file, message.into())
    }

    pub fn identifier(&self, what: &str, name: &str) -> Result<(), LibraryError> {
        let mut chars = name.chars();
        let starts = chars.next().is_some_and(|c| c.is_ascii_lowercase());
        if starts && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            Ok(())
        } else {
            Err(self.error(format!("{what} `{name}` is not a lower-case identifier")))
        }
    }

    pub fn protocol(&self, file: &ProtocolFile) -> Result<Protocol, LibraryError> {
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
                return Err(self.error(format!("field `{}` is declared twice", field.name)));
            }
            if !(1..=128).contains(&field.bits) {
                return Err(self.error(format!(
                    "field `{}`: use 1 to 128 bits, not {}",
                    field.name, field.bits
                )));
            }
            fields.push(self.field(file, field)?);
        }
        Ok(fields)
    }

    /// Builds the elements of a message, and the field of each element.
    fn message(
        &self,
        file: &ProtocolFile,
        message: &[ElementFile],
    ) -> Result<(Vec<Element>, Vec<Field>), LibraryError> {
        let mut elements: Vec<Element> = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        if message.is_empty() {
            return Err(self.error("a message needs elements"));
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
                    return Err(self.error(format!("field `{name}` is declared twice")));
                }
            }
            if let Some(filter) = element
                .filter
                .as_ref()
                .filter(|_| file.payload_of.is_none())
            {
                if element.literal.is_some() {
                    return Err(self.error(format!("message: a literal has no filter `{filter}`")));
                }
                self.filter_name(&file.filter, filter)?;
            }
            fields.push(Field {
                name,
                bits: parsed.kind.bits(),
                begin: 0,
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
            begin: 0,
            filter,
        })
    }

    /// Checks that a field's name begins with its protocol's name, so that a test of the field implies the protocol.
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
                Err(self.error("remove `select` and `next`: nothing follows a message"))
            }
            (None, None, Some(_)) if !file.fields.is_empty() || file.options.is_some() => {
                Err(self.error("remove `fields` and `options`: a message has elements"))
            }
            // `message` adds the elements.
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
                        Some(HeaderOptions {
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
                        _ => return Err(self.error("payload: use `total` or `after_header`")),
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
            _ => Err(self.error("write one of `metadata`, `header` and `message`")),
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
                // The order of the files also keeps the graph free of cycles.
                Some(id) if *id > self.id => Target::Protocol(*id),
                Some(_) => {
                    return Err(self.error(format!("next {n}: `{to}` comes before this protocol")));
                }
                None => return Err(self.error(format!("next {n}: protocol `{to}` does not exist"))),
            },
            (None, Some(note)) => Target::Note(self.note(note)?),
            _ => return Err(self.error(format!("next {n}: write one of `to` and `note`"))),
        };
        Ok(Edge { when, to })
    }

    fn field_index(&self, fields: &[Field], what: &str, name: &str) -> Result<usize, LibraryError> {
        fields
            .iter()
            .position(|field| field.name == name)
            .ok_or_else(|| self.error(format!("{what}: field `{name}` does not exist")))
    }

    fn note(&self, name: &str) -> Result<u8, LibraryError> {
        self.notes
            .iter()
            .find(|note| note.name == name)
            .map(|note| note.code)
            .ok_or_else(|| self.error(format!("note `{name}` does not exist")))
    }
}
