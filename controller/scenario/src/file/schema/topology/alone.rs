//! Reads a topology without a scenario, for planners: a topology section, a scenario's topology, or a file of another tool.

use super::super::reader;
use super::super::shape::{Object, Shape, needed};
use super::{For, file, section};
use crate::diagnostic::{Diagnostics, Sink, Source, Span};
use crate::file::schema::Given;
use crate::file::yaml;
use crate::model::topology::{Link, Topology};

static ALONE: Object = Object {
    what: "a file of a topology",
    keys: &[needed(
        "topology",
        Shape::At(&super::TOPOLOGY),
        "the network",
    )],
};

/// Reads a network for planners: hosts may have several links, and the network may be larger than a testbed.
///
/// The suffix of `file` determines the format: `.graphml`, `.json` (node-link), else YAML: the value of `topology` in a
/// scenario, a mapping with that key, or a whole scenario, of which only the topology is read. `given` has the file that the
/// topology names ([`crate::named_topology`]). Warnings are returned with the network.
///
/// # Errors
///
/// Returns all errors, with positions.
pub fn load_topology(
    file: &str,
    text: &str,
    given: &Given,
) -> Result<(Topology, Diagnostics), Diagnostics> {
    let mut sink = Sink::new(Source { file, text });
    let read = match file::reader_of(file) {
        Some(read) => from_tool(&mut sink, read),
        None => from_yaml(&mut sink, given),
    };
    match read {
        Some(topology) if !sink.has_errors() => Ok((topology, sink.into_diagnostics())),
        _ => Err(sink.into_diagnostics()),
    }
}

fn from_tool(sink: &mut Sink<'_>, read: file::ReadNetwork) -> Option<Topology> {
    let network = file::import(sink, read, &file::by_default())?;
    let network = file::plain(sink, &network, Span::default())?;
    Some(Topology::from_network(&network, &Link::new("", "")))
}

fn from_yaml(sink: &mut Sink<'_>, given: &Given) -> Option<Topology> {
    let root = yaml::parse(sink)?;
    let node = match root.get("topology") {
        None => &root,
        Some(section) if root.get("weir").is_some() => section,
        Some(_) => reader::fields(sink, &root, &ALONE)?.get("topology")?,
    };
    section(sink, node, given, For::Planning).map(|(topology, _)| topology)
}
