//! Detects that a file is of another kind than the command reads: one sentence then replaces a list of missing keys.

use std::path::Path;

use scenario::Diagnostics;
use scenario::diagnostic::Code;

/// The kinds of YAML files that the commands of weir read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A scenario, with the key `weir: 1`.
    Scenario,
    /// A network, with the keys `switches`, `hosts` and `links`, but no version key.
    Topology,
    /// Trainings for `weir route`, with the key `weir-trainings: 1`.
    Trainings,
    /// A workload that scenarios refer to, with the key `weir-workload: 1`.
    Workload,
}

/// The keys that may be at the top level of a topology file.
const TOPOLOGY_KEYS: [&str; 7] = [
    "switches", "hosts", "links", "rate", "latency", "ecn", "mtu",
];

impl FileKind {
    /// Detects the kind of a file by the top-level keys in its text; `None` if they match no kind.
    fn detect(text: &str) -> Option<FileKind> {
        let is_key = |key: &&str| {
            !key.is_empty()
                && key
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
        };
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        let keys: Vec<&str> = lines
            .map(|(key, _)| key.trim_end())
            .filter(is_key)
            .collect();
        let versions = [
            ("weir", FileKind::Scenario),
            ("weir-trainings", FileKind::Trainings),
            ("weir-workload", FileKind::Workload),
        ];
        let version = versions.iter().find(|(key, _)| keys.contains(key));
        let is_topology =
            keys.contains(&"links") && keys.iter().all(|key| TOPOLOGY_KEYS.contains(key));
        version
            .map(|(_, kind)| *kind)
            .or(is_topology.then_some(FileKind::Topology))
    }
}

/// Message that a file is of another kind than `wanted`, which replaces its diagnostics; `None` if it is of no other kind.
pub fn instead(file: &str, text: &str, wanted: FileKind) -> Option<String> {
    let kind = FileKind::detect(text).filter(|kind| *kind != wanted)?;
    let (is, read_by) = match kind {
        FileKind::Topology => (
            "a topology",
            "`weir route TOPOLOGY TRAININGS` and `weir collectives plan TOPOLOGY` read it; a scenario contains one under \
             `topology`",
        ),
        FileKind::Trainings => (
            "a file of trainings",
            "`weir route TOPOLOGY TRAININGS` reads it",
        ),
        FileKind::Workload => (
            "a workload",
            "a scenario refers to it by `workload: {file: PATH, hosts: …}`",
        ),
        // A scenario contains a topology: commands that read a topology accept it.
        FileKind::Scenario if wanted == FileKind::Topology => return None,
        FileKind::Scenario => ("a scenario", "`weir run SCENARIO` reads it"),
    };
    let not = match wanted {
        FileKind::Scenario => "a scenario",
        FileKind::Topology => "a topology",
        FileKind::Trainings => "a file of trainings",
        FileKind::Workload => "a workload",
    };
    Some(format!("{file} is {is}, not {not}: {read_by}"))
}

/// Hint that a file may be no scenario: it has syntax errors, and its name does not end like that of a YAML or JSON file.
pub fn hint(path: &Path, diagnostics: &Diagnostics) -> Option<String> {
    let is_syntax = diagnostics.0.iter().any(|fault| fault.code == Code::Syntax);
    let extension = path.extension().and_then(|extension| extension.to_str());
    let is_named_so = cli_io::disk::is_stdin(path)
        || extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension));
    (is_syntax && !is_named_so).then(|| {
        format!(
            "is {} a scenario? Scenarios are YAML files, such as testbeds/scenarios/redis-get-loss.yaml",
            path.display()
        )
    })
}
