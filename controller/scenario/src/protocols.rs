//! The protocols that a scenario's filters and fields may name: those built into weir, and files of the user.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use parser_gen::filter::UNCARRIED;
use parser_gen::{Library, LibraryError, PayloadSlice, ProtocolSource};

use crate::diagnostic::{Code, Related, Sink, Source, Span};
use crate::schema::{self, reader};
use crate::topology::TopologySource;
use crate::workload::WorkloadSource;
use crate::yaml::{self, Kind, Node, locate};

/// Maximum number of protocol files in a scenario: each may use states of the parser.
const MAX_FILES: usize = 64;

/// A protocol library, and the user's additions to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocols {
    library: Library,
    own: Vec<ProtocolSource>,
    slices: Vec<PayloadSlice>,
}

impl Protocols {
    /// The built-in protocols.
    #[must_use]
    pub fn builtin() -> Arc<Protocols> {
        static BUILTIN: LazyLock<Arc<Protocols>> =
            LazyLock::new(|| Arc::new(Protocols::of(Library::builtin(), Vec::new(), Vec::new())));
        Arc::clone(&BUILTIN)
    }

    /// The built-in protocols, these files, and the slices of payloads that filters name.
    ///
    /// # Errors
    ///
    /// The same errors as [`Library::with_payload`].
    pub fn with(
        own: Vec<ProtocolSource>,
        slices: Vec<PayloadSlice>,
    ) -> Result<Arc<Protocols>, LibraryError> {
        if own.is_empty() && slices.is_empty() {
            return Ok(Protocols::builtin());
        }
        let library = Library::with_payload(&own, &slices)?;
        Ok(Arc::new(Protocols::of(library, own, slices)))
    }

    /// The protocols of two scenarios together.
    ///
    /// # Errors
    ///
    /// Returns an error if their files contradict each other.
    pub fn union(&self, other: &Protocols) -> Result<Arc<Protocols>, LibraryError> {
        let mut own = self.own.clone();
        for source in &other.own {
            // The same text may come under another path.
            if own.iter().all(|before| before.text != source.text) {
                own.push(source.clone());
            }
        }
        let slices = self.slices.iter().chain(&other.slices).copied().collect();
        Protocols::with(own, slices)
    }

    fn of(library: Library, own: Vec<ProtocolSource>, slices: Vec<PayloadSlice>) -> Protocols {
        Protocols {
            library,
            own,
            slices,
        }
    }

    /// The user's protocol files.
    #[must_use]
    pub fn own(&self) -> &[ProtocolSource] {
        &self.own
    }
}

impl Deref for Protocols {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.library
    }
}

/// Files that a scenario needs. The caller reads them: this crate does no I/O.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// Protocol files given on the command line.
    pub protocols: Vec<ProtocolSource>,
    /// The files that [`named_files`] lists, or the reason why one cannot be read.
    pub files: BTreeMap<String, Result<ProtocolSource, String>>,
    /// The file that [`named_workload`] names, or the reason why it cannot be read.
    pub workload: Option<Result<WorkloadSource, String>>,
    /// The file that [`named_topology`] names, or the reason why it cannot be read.
    pub topology: Option<Result<TopologySource, String>>,
}

impl Given {
    /// All files that a scenario names; `read` returns a file's path and text, or the reason why it cannot be read.
    pub fn named(
        file: &str,
        text: &str,
        read: impl Fn(&str) -> Result<(String, String), String>,
    ) -> Given {
        let protocol = |name: String| {
            let read = read(&name).map(|(file, text)| ProtocolSource { file, text });
            (name, read)
        };
        let workload = named_workload(file, text).map(|name| read(&name));
        let topology = named_topology(file, text).map(|name| read(&name));
        Given {
            protocols: Vec::new(),
            files: named_files(file, text).into_iter().map(protocol).collect(),
            workload: workload.map(|read| read.map(|(file, text)| WorkloadSource { file, text })),
            topology: topology.map(|read| read.map(|(file, text)| TopologySource { file, text })),
        }
    }
}

/// The workload file that a scenario names, as written: relative to the scenario.
#[must_use]
pub fn named_workload(file: &str, text: &str) -> Option<String> {
    let root = yaml::parse(&mut Sink::new(Source { file, text }))?;
    schema::named_workload(root.get("workload")?).map(str::to_owned)
}

/// The topology file that a scenario or topology file names, as written: relative to the naming file.
#[must_use]
pub fn named_topology(file: &str, text: &str) -> Option<String> {
    let root = yaml::parse(&mut Sink::new(Source { file, text }))?;
    let section = root.get("topology").unwrap_or(&root);
    match &section.get("file")?.kind {
        Kind::Text { value, .. } => Some(value.clone()),
        _ => None,
    }
}

/// The protocol files that a scenario names, as written: relative to the scenario.
#[must_use]
pub fn named_files(file: &str, text: &str) -> Vec<String> {
    // Errors are reported later, when the scenario is read.
    let root = yaml::parse(&mut Sink::new(Source { file, text }));
    let section = root.as_ref().and_then(|root| root.get("protocols"));
    let Some(Kind::List(items)) = section.map(|section| &section.kind) else {
        return Vec::new();
    };
    let names = items.iter().filter_map(|item| match &item.kind {
        Kind::Text { value, .. } => Some(value.clone()),
        _ => None,
    });
    names.take(MAX_FILES).collect()
}

/// Reads `protocols`, and makes them and the payload slices of `flows` available to the rest of the file.
pub(crate) fn read(sink: &mut Sink<'_>, node: Option<&Node>, flows: Option<&Node>, given: &Given) {
    let items = node.and_then(|node| reader::list(sink, node, "`protocols`"));
    let items = items.unwrap_or_default();
    if let Some(beyond) = items.get(MAX_FILES) {
        let message = format!(
            "{} protocol files; there are at most {MAX_FILES}",
            items.len()
        );
        sink.error(Code::Capacity, beyond.span, message);
        return;
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
                let message = format!("protocol file `{}` was not given", name.value);
                sink.error(Code::Protocol, name.span, message);
            }
        }
    }
    if own.len() > MAX_FILES {
        let message = format!(
            "{} protocol files; there are at most {MAX_FILES}",
            own.len()
        );
        sink.error(Code::Capacity, Span::default(), message);
        return;
    }
    let Some(slices) = flows.map_or(Some(Vec::new()), |flows| slices(sink, flows)) else {
        return;
    };
    match Protocols::with(own, slices) {
        Ok(protocols) => {
            tell_uncarried(sink, &protocols);
            sink.set_protocols(protocols);
        }
        Err(error) => report(sink, &places, error),
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
            let message = format!("no packet has `{lost}`: nothing carries it");
            own.warning(Code::Protocol, named.span, message)
                .hint(UNCARRIED);
            sink.adopt(own);
        }
    }
}

/// The payload slices that filters name; `None` if they cannot be read, which is reported.
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

/// All texts in a node, in the order of the file.
fn texts<'n>(node: &'n Node, into: &mut Vec<(&'n Node, &'n str)>) {
    match &node.kind {
        Kind::Text { value, .. } => into.push((node, value)),
        Kind::List(items) => items.iter().for_each(|item| texts(item, into)),
        Kind::Map(entries) => entries.iter().for_each(|entry| texts(&entry.value, into)),
        _ => {}
    }
}

/// Reports an error at the position that names the file, with the position inside the file beside it.
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
