//! The files that a scenario names. The caller reads them and gives their content, because this crate does no I/O.

use std::collections::BTreeMap;

use parser_gen::ProtocolSource;

use crate::diagnostic::{Sink, Source};
use crate::file::yaml::{self, Kind, Node};
use crate::model::topology::TopologySource;
use crate::model::workload::WorkloadSource;

/// Maximum number of protocol files in a scenario. The limit exists because each file may add states to the switch's parser.
pub(super) const MAX_PROTOCOL_FILES: usize = 64;

/// The content of the files that a scenario needs besides its own.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The protocol files that the command line names.
    pub protocols: Vec<ProtocolSource>,
    /// By path: content of each file that [`named_files`] lists, or the reason why the caller cannot read it.
    pub files: BTreeMap<String, Result<ProtocolSource, String>>,
    /// Content of the file that [`named_workload`] names, or why the caller cannot read it; `None` if the scenario names none.
    pub workload: Option<Result<WorkloadSource, String>>,
    /// Content of the file that [`named_topology`] names, or why the caller cannot read it; `None` if the scenario names none.
    pub topology: Option<Result<TopologySource, String>>,
}

impl Given {
    /// Reads all files that a scenario names; `read` returns a file's path and text, or the reason why it cannot be read.
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

/// Path of the workload file that a scenario names, as written there: relative to the scenario. `None` if it names none.
#[must_use]
pub fn named_workload(file: &str, text: &str) -> Option<String> {
    let root = yaml::parse(&mut Sink::new(Source { file, text }))?;
    workload_of(root.get("workload")?).map(str::to_owned)
}

/// Path of the topology file that a scenario or topology file names, relative to this file; `None` if it names none.
#[must_use]
pub fn named_topology(file: &str, text: &str) -> Option<String> {
    let root = yaml::parse(&mut Sink::new(Source { file, text }))?;
    let section = root.get("topology").unwrap_or(&root);
    match &section.get("file")?.kind {
        Kind::Text { value, .. } => Some(value.clone()),
        _ => None,
    }
}

/// Paths of the protocol files that a scenario names, as written there: relative to the scenario.
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
    names.take(MAX_PROTOCOL_FILES).collect()
}

/// Path of the workload file that the section `workload` names, as written; `None` if it names none.
fn workload_of(section: &Node) -> Option<&str> {
    let name = match section.tag.as_deref() {
        Some("file") => section,
        _ => section.get("file")?,
    };
    match &name.kind {
        Kind::Text { value, .. } => Some(value),
        _ => None,
    }
}
