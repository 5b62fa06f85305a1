//! A vector file: a scenario, entries beyond its plan, and steps.
//!
//! ```json
//! {"what": "…", "scenario": ["weir: 1", "…"], "entries": [{"table": "…"}], "not_on": {"psa_switch": "why"},
//!  "steps": [{"what": "…", "at": "a", "frame": "0200…", "times": 20, "lost": [3], "leaves": {"s": ["same"]}}]}
//! ```
//!
//! Frames are hexadecimal; `00000001*256` repeats a group of digits, `same` is the frame as it came in. With `times`, the
//! frame is sent so often with its number, from 1, in 4 bytes behind it; of those whose number is in `lost`, nothing
//! leaves. The switch is `sw`; hosts stand for the ports that lead to them. The plan's first epoch is in force.
// No test program uses all of it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use controller::target::{Item, Kind, UpdateType};
use p4lang::p4info::P4Info;
use p4lang::runtime::{ActionCall, MulticastGroup, TableEntry};
use scenario::plan::names::classify;
use serde::Deserialize;

use crate::support::repository;

/// A file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name, without its folder.
    #[serde(skip)]
    pub path: String,
    #[allow(dead_code)]
    what: String,
    scenario: Vec<String>,
    #[serde(default)]
    entries: serde_json::Value,
    /// Kinds of switches that cannot, and why.
    #[serde(default)]
    pub not_on: BTreeMap<String, String>,
    /// In order.
    pub steps: Vec<Step>,
}

/// Frames that are sent and what becomes of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What it shows.
    pub what: String,
    /// Where the frame comes in.
    pub at: String,
    frame: String,
    times: Option<u32>,
    #[serde(default)]
    lost: Vec<u32>,
    #[serde(default)]
    leaves: BTreeMap<String, Vec<String>>,
}

/// A case for one kind of switch.
pub struct Loaded {
    /// For control planes.
    pub p4info: P4Info,
    /// For compilers.
    pub sources: BTreeMap<String, String>,
    /// For the embedded switch.
    pub preprocessed: String,
    /// For the pipeline.
    pub program: Arc<p4lang::ir::Program>,
    /// The classifier's, the plan's, the file's.
    pub entries: Vec<TableEntry>,
    /// The plan's.
    pub groups: Vec<MulticastGroup>,
    /// Put the first epoch in force.
    pub defaults: Vec<(String, ActionCall)>,
    /// Of each host.
    pub ports: BTreeMap<String, u32>,
    /// Of each host.
    pub macs: BTreeMap<String, [u8; 6]>,
}

/// Whether a kind of switch can carry a case out.
pub enum Plannable {
    /// It can.
    Yes(Box<Loaded>),
    /// The planner's words.
    No(String),
}

impl Case {
    /// All files, by name.
    pub fn all() -> Vec<Case> {
        let folder = repository("testbeds/vectors");
        let files = std::fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ext| ext == "json"));
        paths.sort();
        paths
            .iter()
            .map(|path| {
                let text = std::fs::read_to_string(path).unwrap();
                let case: Result<Case, _> = serde_json::from_str(&text);
                let mut case = case.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                case.path = path.file_name().unwrap().to_string_lossy().into_owned();
                case
            })
            .collect()
    }

    /// Plans, generates and compiles it.
    pub fn load(&self, kind: Kind) -> Plannable {
        let text = self.scenario.join("\n") + "\n";
        let scenario = scenario::load(&self.path, &text)
            .unwrap_or_else(|errors| panic!("{}: {errors}", self.path));
        let plan = match scenario::plan(&scenario, &kind.model()) {
            Ok(plan) => plan,
            Err(errors) => return Plannable::No(errors.to_string()),
        };
        let planned = plan.switch("sw").unwrap();
        let library = parser_gen::Library::builtin();
        // Vectors may be aggregation frames whatever the scenario's workload is.
        let options = parser_gen::Options {
            multipath: planned.multipath,
            sums_roce: planned.sums_roce,
            ..parser_gen::Options::aggregating(true)
        };
        let (flows, engine) = (planned.classifier(), &planned.engine);
        let generated = parser_gen::generate_with(&library, &flows, &options, engine).unwrap();
        let sources: BTreeMap<_, _> = parser_gen::program(kind.arch(), &generated)
            .into_iter()
            .collect();
        let mut files = p4lang::Files::new();
        for (path, text) in &sources {
            files.insert(path, text.clone());
        }
        let main = kind.arch().main_path();
        let compiled = p4lang::compile(&files, &main, &p4lang::Options::default())
            .unwrap_or_else(|errors| panic!("{errors}"));
        let mut entries = generated.entries_for(classify::INGRESS);
        entries.extend(generated.entries_for(classify::EGRESS));
        entries.extend(planned.entries.iter().cloned());
        if self.entries.is_array() {
            let own = softswitch::p4_run::ControlState::parse(&self.entries.to_string());
            let own = own.unwrap_or_else(|error| panic!("{}: {error}", self.path));
            entries.extend(own.entries);
        }
        let topology = &scenario.topology;
        let port = |host: &str| topology.next_hop("sw", host).unwrap().number;
        // Behind one port there may be several: the one that is declared first stands for it.
        let mut seen = std::collections::BTreeSet::new();
        let hosts = topology.hosts.iter();
        let hosts: Vec<_> = hosts.filter(|host| seen.insert(port(&host.name))).collect();
        Plannable::Yes(Box::new(Loaded {
            p4info: compiled.p4info,
            sources,
            preprocessed: compiled.preprocessed,
            program: Arc::new(compiled.program),
            entries,
            groups: planned.groups.clone(),
            defaults: planned.set_epoch(1),
            ports: hosts
                .iter()
                .map(|host| (host.name.clone(), port(&host.name)))
                .collect(),
            macs: hosts
                .iter()
                .map(|host| (host.name.clone(), host.mac.0))
                .collect(),
        }))
    }
}

impl Loaded {
    /// All that is written, in order.
    pub fn updates(&self) -> Vec<(UpdateType, Item)> {
        let groups = self.groups.iter().cloned().map(Item::MulticastGroup);
        let entries = self.entries.iter().cloned().map(Item::TableEntry);
        let inserted = groups.chain(entries).map(|item| (UpdateType::Insert, item));
        let defaults = self.defaults.iter().cloned().map(|(table, action)| {
            let action = Some(action);
            (UpdateType::Modify, Item::DefaultAction { table, action })
        });
        inserted.chain(defaults).collect()
    }
}

impl Step {
    /// Each frame, and what leaves of it.
    pub fn frames(&self) -> impl Iterator<Item = (Vec<u8>, BTreeMap<String, Vec<Vec<u8>>>)> {
        let frame = hex(&self.frame);
        (1..=self.times.unwrap_or(1)).map(move |number| {
            let mut frame = frame.clone();
            if self.times.is_some() {
                frame.extend(number.to_be_bytes());
            }
            let mut leaves = BTreeMap::new();
            if !self.lost.contains(&number) {
                for (host, frames) in &self.leaves {
                    let bytes = |text: &String| match text.as_str() {
                        "same" => frame.clone(),
                        text => hex(text),
                    };
                    leaves.insert(host.clone(), frames.iter().map(bytes).collect());
                }
            }
            (frame, leaves)
        })
    }
}

fn hex(text: &str) -> Vec<u8> {
    let group = |group: &str| {
        let (digits, times) = group.split_once('*').unwrap_or((group, "1"));
        let bytes =
            softswitch::p4_run::bytes(digits).unwrap_or_else(|error| panic!("{group}: {error}"));
        bytes.repeat(
            times
                .parse()
                .unwrap_or_else(|error| panic!("{group}: {error}")),
        )
    };
    text.split_whitespace().flat_map(group).collect()
}

/// A frame for people: its beginning and its length.
pub fn show(frame: &[u8]) -> String {
    let digits: String = frame
        .iter()
        .take(80)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{digits} ({} bytes)", frame.len())
}

/// Frames for people.
pub fn show_all(frames: &BTreeMap<String, Vec<Vec<u8>>>) -> String {
    let each = frames.iter().flat_map(|(host, frames)| {
        frames
            .iter()
            .map(move |frame| format!("to {host}: {}", show(frame)))
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        return "nothing".to_owned();
    }
    each.join("\n         ")
}
