//! Turns named filters into one P4 text, `generated.p4`, and the entries of its tables.
//!
//! [`generate`] takes four steps: filters to terms (`crate::terms`); terms to a slice of the protocol library (`crate::slice`);
//! the slice to headers, parsers and deparser (`headers`, `parsers`, `message`); the terms to a decision diagram
//! (`crate::diagram`), which becomes tables and entries (`classify`).

mod classify;
mod headers;
mod message;
mod notes;
mod parsers;
mod roce;
pub(crate) mod writer;

use std::collections::{BTreeMap, BTreeSet};

use p4lang::runtime::{ActionCall, FieldMatch, TableEntry};
use serde::Serialize;

use crate::classes::{self, Classes, LIMIT};
use crate::engine::{self, Action, EngineSpec};
use crate::filter::Filter;
use crate::library::{Library, Note, ProtocolId};
use crate::pace;
use crate::program::Arch;
use crate::reset;
use crate::slice::Slice;
use crate::terms::{MAX_TERMS, Term};
use classify::Table;
use message::Reads;
use writer::Writer;

/// Maximum number of flows in one program.
pub const MAX_FLOWS: usize = 16_384;

/// A declared flow. Its index in the list of flows is its number in [`Classes`].
#[derive(Debug, Clone)]
pub struct Flow {
    /// Name of letters, digits, `_` and `-` (which P4 names write as `_`), not beginning with a digit.
    pub name: String,
    /// Filter that matches the flow's packets.
    pub filter: Filter,
}

/// Features of the program besides classification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Number of values in frames that the program sums. They are parsed, values included, whatever the filters name.
    pub aggregate: Option<FrameValues>,
    /// Forward each packet by the port at which it arrived.
    pub wire: bool,
    /// Packets wait for others of their flow; an extra header holds for how many.
    pub waits: bool,
    /// Before a frame is summed, check which hosts may send for its job, until when, and how much. Not on Tofino.
    pub guards_jobs: bool,
    /// Hosts may have several paths, and a packet's flow decides which it takes: addresses and ports are parsed, whatever the
    /// filters name. Not on Tofino.
    pub multipath: bool,
    /// Sum RoCEv2 frames of 256 values as well: docs/rdma.md, "Sums by the switch". Not on Tofino.
    pub sums_roce: bool,
}

impl Options {
    /// Options that sum frames of the default size, or none.
    #[must_use]
    pub fn aggregating(aggregate: bool) -> Options {
        Options {
            aggregate: aggregate.then(FrameValues::default),
            wire: false,
            waits: false,
            guards_jobs: false,
            multipath: false,
            sums_roce: false,
        }
    }
}

/// Number of values in an aggregation frame that is summed; frames of another size are malformed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "u16")]
pub enum FrameValues {
    /// 32 values: one pass of a Tofino.
    V32,
    /// 64 values: one pass of a Tofino 2.
    V64,
    /// 256 values: the largest power of two that fits a frame of 1,500 bytes.
    #[default]
    V256,
    /// 2,048 values: the largest power of two that fits a frame of 9,000 bytes.
    V2048,
}

impl From<FrameValues> for u16 {
    fn from(values: FrameValues) -> u16 {
        values.count()
    }
}

impl FrameValues {
    /// All sizes, ascending.
    pub const ALL: [FrameValues; 4] = [
        FrameValues::V32,
        FrameValues::V64,
        FrameValues::V256,
        FrameValues::V2048,
    ];

    /// Number of values.
    #[must_use]
    pub fn count(self) -> u16 {
        match self {
            FrameValues::V32 => 32,
            FrameValues::V64 => 64,
            FrameValues::V256 => 256,
            FrameValues::V2048 => 2048,
        }
    }

    /// Number of headers `values32_h` in a frame.
    fn blocks(self) -> u16 {
        self.count() / 32
    }
}

/// Why flows give no program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// More than [`MAX_FLOWS`] flows.
    #[error("{count} flows are declared, but a switch tells at most {MAX_FLOWS} apart")]
    TooManyFlows {
        /// Number of flows.
        count: usize,
    },
    /// A flow's name is no identifier.
    #[error(
        "flow `{flow}`: a name is made of letters, digits, `_` and `-`, and begins with a letter or `_`"
    )]
    BadName {
        /// The name.
        flow: String,
    },
    /// Two flows with one name.
    #[error("flow `{flow}` is declared twice (`-` and `_` are the same in P4)")]
    DuplicateName {
        /// Name of the second one.
        flow: String,
    },
    /// The filter unfolds into too many alternatives.
    #[error(
        "flow `{flow}`: the filter unfolds into more than {MAX_TERMS} alternatives; split it into several flows"
    )]
    TooManyTerms {
        /// The flow.
        flow: String,
    },
    /// Packets can be in too many different sets of flows.
    #[error("the filters overlap in more than {LIMIT} ways, above all {}", overlapping(.flows))]
    TooManyClasses {
        /// Names and filters of the flows that are in most of these sets, at most six.
        flows: Vec<(String, String)>,
    },
    /// No packet can match the filter.
    #[error("flow `{flow}`: no packet can pass the filter `{filter}`")]
    NeverMatches {
        /// The flow.
        flow: String,
        /// Its filter.
        filter: String,
    },
    /// The filters take several tables, but a fault before a sum has one table to find its packets.
    #[error("the filters take more than one table, and before a sum there is room for one")]
    TooDeepForSum,
    /// The filter was parsed with a library that has other names.
    #[error("flow `{flow}`: the protocol library has no `{name}`")]
    ForeignFilter {
        /// The flow.
        flow: String,
        /// The unknown name.
        name: String,
    },
}

/// Program of a set of flows, and its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// Text of `generated.p4`.
    pub p4: String,
    /// Values of `meta.parse_note` that this program can set; they index the counter `notes`.
    pub notes: Vec<Note>,
    classes: Classes,
    tables: Vec<Table>,
    engine: EngineSpec,
    /// Text of `engine.p4` for each architecture.
    engines: Vec<(Arch, String)>,
}

fn overlapping(flows: &[(String, String)]) -> String {
    let shown = flows
        .iter()
        .map(|(name, filter)| format!("`{name}` (`{filter}`)"));
    shown.collect::<Vec<_>>().join(", ")
}

impl Generated {
    /// Text of `engine.p4` for an architecture.
    #[must_use]
    pub fn engine(&self, arch: Arch) -> &str {
        let engine = self.engines.iter().find(|(other, _)| *other == arch);
        engine.map_or("", |(_, text)| text)
    }

    /// Entries of one instance of `Classify`, such as `SwitchIngress.classify` or `SwitchEgress.classify`.
    pub fn entries_for(&self, control: &str) -> Vec<TableEntry> {
        // Egress without faults classifies nothing.
        if control.starts_with("SwitchEgress.") && self.engine.egress.is_empty() {
            return Vec::new();
        }
        classify::entries(&self.tables, control)
    }

    /// Entries of [`EngineSpec::early`]'s unit in `table`, which apply to packets that match `also`. `action` returns the
    /// action for a class.
    pub fn early_entries(
        &self,
        table: &str,
        also: &FieldMatch,
        action: impl Fn(u32) -> ActionCall,
    ) -> Vec<TableEntry> {
        classify::entries_of_classes(&self.tables, also, table, action)
    }

    /// Values of `meta.class`, and the flows of each.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }
}

/// Generates the parser, the match tables and their entries for these flows, in this order, without faults.
pub fn generate(
    library: &Library,
    flows: &[Flow],
    options: &Options,
) -> Result<Generated, GenerateError> {
    generate_with(library, flows, options, &EngineSpec::default())
}

/// Generates a program as [`generate`] does, with faults.
pub fn generate_with(
    library: &Library,
    flows: &[Flow],
    options: &Options,
    engine: &EngineSpec,
) -> Result<Generated, GenerateError> {
    check_names(flows)?;
    let (terms, mut slice) = classes::flow_terms(library, flows, options.aggregate.is_some())?;
    for unit in engine.ingress.iter().chain(&engine.egress) {
        if let Action::Rewrite(rewrite) = &unit.action {
            let protocols = rewrite.protocols(library).into_iter();
            protocols.for_each(|id| slice.add_protocol(library, id));
        }
        if let Action::Pace(_) = unit.action {
            pace::protocols(library).for_each(|id| slice.add_protocol(library, id));
        }
        if let Some(key) = &unit.key {
            key.protocols()
                .for_each(|id| slice.add_protocol(library, id));
        }
        if unit.action == Action::Reset {
            reset::protocols(library).for_each(|id| slice.add_protocol(library, id));
        }
    }
    for key in engine.triggers.iter().filter_map(|t| t.key.as_ref()) {
        key.protocols()
            .for_each(|id| slice.add_protocol(library, id));
    }
    if options.multipath {
        slice.add_ports(library);
    }
    if options.sums_roce {
        slice.add_roce(library);
    }
    let diagram = classes::diagram(library, flows, &terms)?;
    let classes = Classes::of(&diagram, flows.len());
    for (index, flow) in flows.iter().enumerate() {
        if classes.containing(index).is_empty() {
            return Err(GenerateError::NeverMatches {
                flow: flow.name.clone(),
                filter: flow.filter.text().to_owned(),
            });
        }
    }
    let program = Program {
        library,
        reads: reads(library, &slice, &terms),
        slice,
        options: *options,
    };
    let tables = classify::tables(&program, &diagram);
    let key = classify::key_of_all(&tables);
    if engine.early.is_some() && key.is_none() {
        return Err(GenerateError::TooDeepForSum);
    }

    let mut w = Writer::default();
    program.preamble(&mut w);
    headers::write(&program, &mut w);
    parsers::write(&program, &mut w);
    headers::write_deparser(&program, &mut w);
    classify::write(&tables, &mut w);
    Ok(Generated {
        p4: w.finish(),
        notes: notes::used(&program),
        classes,
        tables,
        engine: engine.clone(),
        engines: Arch::ALL
            .iter()
            .map(|arch| {
                (
                    *arch,
                    engine::text(*arch, library, engine, options, key.as_ref()),
                )
            })
            .collect(),
    })
}

/// Parts that the terms need of each message that is parsed.
fn reads(library: &Library, slice: &Slice, terms: &[Vec<Term>]) -> BTreeMap<ProtocolId, Reads> {
    let messages = slice
        .nodes
        .iter()
        .filter(|id| !library.protocols[**id].elements().is_empty());
    messages
        .map(|id| (*id, Reads::of(library, *id, terms.iter().flatten())))
        .collect()
}

/// State that the writers of all parts share.
struct Program<'a> {
    library: &'a Library,
    slice: Slice,
    /// Parts of each message that are read.
    reads: BTreeMap<ProtocolId, Reads>,
    options: Options,
}

impl Program<'_> {
    fn preamble(&self, w: &mut Writer) {
        w.line("// Generated by parser-gen: do not edit. docs/filters.md describes filters, fields and limits.");
        if self.options.aggregate.is_some() {
            w.line("// Aggregation frames are parsed with their values.");
        }
        w.blank();
        notes::write(self, w);
    }
}

fn check_names(flows: &[Flow]) -> Result<(), GenerateError> {
    if flows.len() > MAX_FLOWS {
        return Err(GenerateError::TooManyFlows { count: flows.len() });
    }
    let mut seen = BTreeSet::new();
    for flow in flows {
        let begins = flow
            .name
            .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !begins
            || !flow
                .name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        {
            return Err(GenerateError::BadName {
                flow: flow.name.clone(),
            });
        }
        if !seen.insert(flow.name.replace('-', "_")) {
            return Err(GenerateError::DuplicateName {
                flow: flow.name.clone(),
            });
        }
    }
    Ok(())
}
