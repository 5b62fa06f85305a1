//! Named filters to one P4 text, `generated.p4`, and the entries of its tables.
//!
//! [`generate`] in four steps: filters to terms (`crate::terms`), terms to a slice of the protocol library
//! (`crate::slice`), the slice to headers, parsers and deparser (`headers`, `parsers`, `resp`); and the terms to a
//! diagram of decisions (`crate::diagram`), which becomes tables and entries (`classify`).

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

/// The most flows that one program tells apart.
pub const MAX_FLOWS: usize = 16_384;

/// A declared flow. Its index among the flows is its number in [`Classes`].
#[derive(Debug, Clone)]
pub struct Flow {
    /// Letters, digits, `_` and `-` (which P4 names write as `_`), not beginning with a digit.
    pub name: String,
    /// Which packets belong to it.
    pub filter: Filter,
}

/// What the program does besides classifying.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// The program sums frames of so many values: they are parsed, values included, whatever the filters name.
    pub aggregate: Option<FrameValues>,
    /// The program forwards by the port that a packet came in by.
    pub wire: bool,
    /// Packets wait for others: a header says for how many.
    pub waits: bool,
    /// Before frames are summed it is asked who may speak for their job, until when, and how much. Tofino has no text of it.
    pub guards_jobs: bool,
    /// Several ways lead to some hosts, and a packet's flow says which it takes: addresses and ports are parsed, whatever the
    /// filters name. Tofino has no text of it.
    pub multipath: bool,
    /// Frames of RoCEv2 are summed as well, of 256 values: docs/rdma.md, "Sums by the switch". Tofino has no text of it.
    pub sums_roce: bool,
}

impl Options {
    /// Frames of the usual size are summed, or none.
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

/// How many values an aggregation frame has that is summed; frames of another size are malformed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "u16")]
pub enum FrameValues {
    /// As many as one pass of a Tofino sums.
    V32,
    /// As many as one pass of a Tofino 2 sums.
    V64,
    /// As many as a frame of 1,500 bytes has room for, as a power of two.
    #[default]
    V256,
    /// As many as a frame of 9,000 bytes has room for, as a power of two.
    V2048,
}

impl From<FrameValues> for u16 {
    fn from(values: FrameValues) -> u16 {
        values.count()
    }
}

impl FrameValues {
    /// All, from the smallest on.
    pub const ALL: [FrameValues; 4] = [
        FrameValues::V32,
        FrameValues::V64,
        FrameValues::V256,
        FrameValues::V2048,
    ];

    /// The number.
    #[must_use]
    pub fn count(self) -> u16 {
        match self {
            FrameValues::V32 => 32,
            FrameValues::V64 => 64,
            FrameValues::V256 => 256,
            FrameValues::V2048 => 2048,
        }
    }

    /// Headers `values32_h` of a frame.
    fn blocks(self) -> u16 {
        self.count() / 32
    }
}

/// Why no program comes of a set of flows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// More than [`MAX_FLOWS`].
    #[error("{count} flows are declared, but a switch tells at most {MAX_FLOWS} apart")]
    TooManyFlows {
        /// How many there are.
        count: usize,
    },
    /// A name that is no identifier.
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
        /// The second one.
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
    /// Packets can be in too many sets of flows.
    #[error("the filters overlap in more than {LIMIT} ways, above all {}", overlapping(.flows))]
    TooManyClasses {
        /// Names and filters of the flows that are in most of these sets, at most six.
        flows: Vec<(String, String)>,
    },
    /// Nothing passes the filter.
    #[error("flow `{flow}`: no packet can pass the filter `{filter}`")]
    NeverMatches {
        /// The flow.
        flow: String,
        /// Its filter.
        filter: String,
    },
    /// A fault that stands before a sum has one table to find its packets.
    #[error("the filters take more than one table, and before a sum there is room for one")]
    TooDeepForSum,
    /// The filter was parsed against a library that has other names.
    #[error("flow `{flow}`: the protocol library has no `{name}`")]
    ForeignFilter {
        /// The flow.
        flow: String,
        /// The name.
        name: String,
    },
}

/// What the generator makes of a set of flows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// The text of `generated.p4`.
    pub p4: String,
    /// Values of `meta.parse_note`, which are the indexes of the counter `notes`, that this program can set.
    pub notes: Vec<Note>,
    classes: Classes,
    tables: Vec<Table>,
    engine: EngineSpec,
    /// The texts of `engine.p4`, which each architecture spells for itself.
    engines: Vec<(Arch, String)>,
}

fn overlapping(flows: &[(String, String)]) -> String {
    let shown = flows
        .iter()
        .map(|(name, filter)| format!("`{name}` (`{filter}`)"));
    shown.collect::<Vec<_>>().join(", ")
}

impl Generated {
    /// The text of `engine.p4` for an architecture.
    #[must_use]
    pub fn engine(&self, arch: Arch) -> &str {
        let engine = self.engines.iter().find(|(other, _)| *other == arch);
        engine.map_or("", |(_, text)| text)
    }

    /// The entries of one instance of `Classify`, such as `SwitchIngress.classify` or `SwitchEgress.classify`.
    pub fn entries_for(&self, control: &str) -> Vec<TableEntry> {
        // Without faults there, egress classifies nothing.
        if control.starts_with("SwitchEgress.") && self.engine.egress.is_empty() {
            return Vec::new();
        }
        classify::entries(&self.tables, control)
    }

    /// The entries of the unit of [`EngineSpec::early`] in `table`, which looks at packets while `also` holds: `action` is what
    /// it does with a class.
    pub fn early_entries(
        &self,
        table: &str,
        also: &FieldMatch,
        action: impl Fn(u32) -> ActionCall,
    ) -> Vec<TableEntry> {
        classify::entries_of_classes(&self.tables, also, table, action)
    }

    /// The values of `meta.class`: which flows each stands for.
    pub fn classes(&self) -> &Classes {
        &self.classes
    }
}

/// Makes the parser, the match tables and their entries for these flows, in this order; no fault acts on them.
pub fn generate(
    library: &Library,
    flows: &[Flow],
    options: &Options,
) -> Result<Generated, GenerateError> {
    generate_with(library, flows, options, &EngineSpec::default())
}

/// The same, with faults.
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

/// What the terms ask of each message that is parsed.
fn reads(library: &Library, slice: &Slice, terms: &[Vec<Term>]) -> BTreeMap<ProtocolId, Reads> {
    let messages = slice
        .nodes
        .iter()
        .filter(|id| !library.protocols[**id].elements().is_empty());
    messages
        .map(|id| (*id, Reads::of(library, *id, terms.iter().flatten())))
        .collect()
}

/// What the writers of the text's parts share.
struct Program<'a> {
    library: &'a Library,
    slice: Slice,
    /// What of each message is read.
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
