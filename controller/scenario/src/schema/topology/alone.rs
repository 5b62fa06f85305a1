//! A topology on its own, for planners: a section without a scenario, a scenario's, or a file of another tool.

use super::super::reader;
use super::super::shape::{Object, Shape, needed};
use super::{For, file, section};
use crate::diagnostic::{Diagnostics, Sink, Source, Span};
use crate::protocols::Given;
use crate::topology::{Link, Topology};
use crate::yaml;

static ALONE: Object = Object {
    what: "a file of a topology",
    keys: &[needed(
        "topology",
        Shape::At(&super::TOPOLOGY),
        "the network",
    )],
};

/// Reads a network that planners look at: hosts may have several links, and there may be more of them than run.
///
/// By what `file` ends in: `.graphml`, `.json` (node-link), else YAML: what stands behind `topology` in a scenario, the
/// same under that key, or a whole scenario, of which only that is read. `given` has the file that it names
/// ([`crate::named_topology`]). Warnings come beside the network.
///
/// # Errors
///
/// All that is wrong, with places.
pub fn load_topology(
    file: &str,
    text: &str,
    given: &Given,
) -> Result<(Topology, Diagnostics), Diagnostics> {
    let mut sink = Sink::new(Source { file, text });
    let read = match file::reader_of(file) {
        Some(read) => of_tool(&mut sink, read),
        None => of_yaml(&mut sink, given),
    };
    match read {
        Some(topology) if !sink.has_errors() => Ok((topology, sink.into_diagnostics())),
        _ => Err(sink.into_diagnostics()),
    }
}

fn of_tool(sink: &mut Sink<'_>, read: file::Read) -> Option<Topology> {
    let network = file::import(sink, read, &file::by_default())?;
    let network = file::plain(sink, &network, Span::default())?;
    Some(Topology::of_network(&network, &Link::new("", "")))
}

fn of_yaml(sink: &mut Sink<'_>, given: &Given) -> Option<Topology> {
    let root = yaml::parse(sink)?;
    let node = match root.get("topology") {
        None => &root,
        Some(section) if root.get("weir").is_some() => section,
        Some(_) => reader::fields(sink, &root, &ALONE)?.get("topology")?,
    };
    section(sink, node, given, For::Planning).map(|(topology, _)| topology)
}
