//! Reads the section `protocols` with its protocol files, and the ranges of payload bytes (slices) that filters test.

use std::sync::Arc;

use parser_gen::filter::UNCARRIED;
use parser_gen::{Library, LibraryError, PayloadSlice, ProtocolSource};

use super::given::{Given, MAX_PROTOCOL_FILES};
use super::reader;
use crate::diagnostic::{Code, Related, Sink, Source, Span};
use crate::file::yaml::{self, Kind, Node, locate};
use crate::model::protocols::Protocols;

/// Reads `protocols`, the given protocol files and the payload bytes that filters test into one library. `None`: refused.
pub(super) fn read(
    sink: &mut Sink<'_>,
    node: Option<&Node>,
    flows: Option<&Node>,
    given: &Given,
) -> Option<Arc<Protocols>> {
    let items = node.and_then(|node| reader::list(sink, node, "`protocols`"));
    let items = items.unwrap_or_default();
    if let Some(beyond) = items.get(MAX_PROTOCOL_FILES) {
        let message = format!(
            "{} protocol files; there are at most {MAX_PROTOCOL_FILES}",
            items.len()
        );
        sink.error(Code::Capacity, beyond.span, message);
        return None;
    }
    let mut own = given.protocols.clone();
    let mut places: Vec<(String, Span)> = Vec::new();
    for item in items {
        let Some(name) = reader::text(sink, item, "a protocol file") else {
            continue;
        };
        match given.files.get(&name.value) {
            Some(Ok(source)) if own.iter().any(|before| before.file == source.file) => {
                let message = format!("`{}` is given twice", name.value);
                sink.error(Code::Duplicate, name.span, message);
            }
            Some(Ok(source)) => {
                places.push((source.file.clone(), name.span));
                own.push(source.clone());
            }
            Some(Err(why)) => {
                let message = format!("cannot read protocol file `{}`: {why}", name.value);
                sink.error(Code::Protocol, name.span, message)
                    .hint("the path is relative to the scenario");
            }
            None => {
                let message = format!(
                    "protocol file `{}` is missing from the given files",
                    name.value
                );
                sink.error(Code::Protocol, name.span, message);
            }
        }
    }
    if own.len() > MAX_PROTOCOL_FILES {
        let message = format!(
            "{} protocol files; there are at most {MAX_PROTOCOL_FILES}",
            own.len()
        );
        sink.error(Code::Capacity, Span::default(), message);
        return None;
    }
    let slices = flows.map_or(Some(Vec::new()), |flows| slices(sink, flows))?;
    match Protocols::with(own, slices) {
        Ok(protocols) => {
            tell_uncarried(sink, &protocols);
            Some(protocols)
        }
        Err(error) => {
            report(sink, &places, error);
            None
        }
    }
}

/// Warns, in the protocol file, of protocols that no packet can carry: the file of a lower protocol may be missing.
fn tell_uncarried(sink: &mut Sink<'_>, protocols: &Protocols) {
    for lost in protocols.uncarried() {
        for ProtocolSource { file, text } in protocols.own() {
            let source = Source { file, text };
            let mut own = Sink::new(source);
            // The reader of the file has already reported its errors.
            let root = yaml::parse(&mut Sink::new(source));
            let named = root.as_ref().and_then(|root| root.get("filter"));
            let Some(named) = named
                .filter(|node| matches!(&node.kind, Kind::Text { value, .. } if value == lost))
            else {
                continue;
            };
            let message = format!("no packet has `{lost}`: no protocol carries it");
            own.warning(Code::Protocol, named.span, message)
                .hint(UNCARRIED);
            sink.adopt(own);
        }
    }
}

/// The ranges of payload bytes (slices) that filters test; `None` if the parser cannot read them, which is reported.
fn slices(sink: &mut Sink<'_>, flows: &Node) -> Option<Vec<PayloadSlice>> {
    let mut filters = Vec::new();
    texts(flows, &mut filters);
    let mut all = Vec::new();
    for (node, text) in filters {
        for (slice, place) in PayloadSlice::named_in(text) {
            all.push(slice);
            if let Err(error) = Library::slices_are_readable(&all) {
                let span = locate(sink.source().text, node, place.start, place.end);
                sink.error(Code::Filter, span, error.to_string());
                return None;
            }
        }
    }
    Some(all)
}

/// Collects all texts in a node and below it, in the order of the file.
fn texts<'n>(node: &'n Node, into: &mut Vec<(&'n Node, &'n str)>) {
    match &node.kind {
        Kind::Text { value, .. } => into.push((node, value)),
        Kind::List(items) => items.iter().for_each(|item| texts(item, into)),
        Kind::Map(entries) => entries.iter().for_each(|entry| texts(&entry.value, into)),
        _ => {}
    }
}

/// Reports an error in a protocol file at the position where the scenario names the file, with the position in the file.
fn report(sink: &mut Sink<'_>, places: &[(String, Span)], error: LibraryError) {
    let span = places.iter().find(|(file, _)| *file == error.file);
    let span = span.map_or(Span::default(), |(_, span)| *span);
    let diagnostic = sink.error(Code::Protocol, span, error.to_string());
    diagnostic.hint("docs/protocols.md has the format");
    diagnostic.related.push(Related {
        file: error.file,
        line: error.line,
        column: error.column,
        span: Span::default(),
        message: "here".to_owned(),
    });
}
