//! Named filters to one P4 text, `generated.p4`, and the entries of its tables.
//!
//! [`generate`] in four steps: filters to terms (`crate::terms`), terms to a slice of the protocol library
//! (`crate::slice`), the slice to headers, parsers and deparser (`headers`, `parsers`, `resp`), the terms to
//! tables and entries (`tables`).

mod headers;
mod notes;
mod parsers;
mod resp;
mod resp_segment;
mod tables;
pub(crate) mod writer;

use std::collections::BTreeSet;

use p4lang::runtime::{ActionCall, TableEntry};

use crate::engine::EngineSpec;
use crate::filter::Filter;
use crate::library::{Library, Note};
use crate::slice::Slice;
use crate::terms::{MAX_TERMS, TermError, terms};
use resp::KeyReads;
use tables::FlowTable;
use writer::Writer;

/// Bits of `flow_set_t`.
pub const MAX_FLOWS: usize = 32;

/// A declared flow. Its index among the flows is its bit in `meta.flows`.
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
    /// The program sums: aggregation frames are parsed, values included, whatever the filters name.
    pub aggregate: bool,
}

/// Why no program comes of a set of flows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// More flows than `meta.flows` has bits.
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
    /// The filter unfolds into too many entries.
    #[error(
        "flow `{flow}`: the filter needs more than {MAX_TERMS} table entries; split it into several flows"
    )]
    TooManyTerms {
        /// The flow.
        flow: String,
    },
    /// Nothing passes the filter.
    #[error("flow `{flow}`: no packet can pass the filter `{filter}`")]
    NeverMatches {
        /// The flow.
        flow: String,
        /// Its filter.
        filter: String,
    },
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
    /// Name and bit in `meta.flows` of every flow, in declared order.
    pub flow_bits: Vec<(String, u32)>,
    /// Values of `meta.parse_note`, which are the indexes of the counter `notes`, that this program can set.
    pub notes: Vec<Note>,
    tables: Vec<FlowTable>,
    /// The fault engine, which each architecture spells for itself.
    pub(crate) engine: EngineSpec,
    pub(crate) options: Options,
}

impl Generated {
    /// The entries of one instance of `Classify`, such as `SwitchIngress.classify` or `SwitchEgress.classify`.
    pub fn entries_for(&self, control: &str) -> Vec<TableEntry> {
        // Without faults there, egress classifies nothing.
        if control.starts_with("SwitchEgress.") && self.engine.egress.is_empty() {
            return Vec::new();
        }
        let mut entries = Vec::new();
        for table in &self.tables {
            for (key, priority) in table.entries() {
                entries.push(TableEntry {
                    table: format!("{control}.{}", table.name()),
                    key,
                    priority,
                    action: ActionCall {
                        name: format!("{control}.{}", table.action()),
                        params: Vec::new(),
                    },
                });
            }
        }
        entries
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
    let names = p4_names(flows)?;
    let mut flow_terms = Vec::new();
    for flow in flows {
        flow_terms.push(
            terms(library, flow.filter.root()).map_err(|error| match error {
                TermError::TooMany => GenerateError::TooManyTerms {
                    flow: flow.name.clone(),
                },
                TermError::Unknown(name) => GenerateError::ForeignFilter {
                    flow: flow.name.clone(),
                    name,
                },
            })?,
        );
    }
    let slice = Slice::new(library, flow_terms.iter_mut(), options.aggregate);
    for (flow, terms) in flows.iter().zip(&flow_terms) {
        if terms.is_empty() {
            return Err(GenerateError::NeverMatches {
                flow: flow.name.clone(),
                filter: flow.filter.text().to_owned(),
            });
        }
    }

    let program = Program {
        library,
        slice,
        reads: KeyReads::of(&flow_terms),
        options: *options,
    };
    let tables: Vec<FlowTable> = names
        .into_iter()
        .zip(&flow_terms)
        .enumerate()
        .map(|(bit, (name, terms))| FlowTable::new(&program, name, bit, terms))
        .collect();

    let mut w = Writer::default();
    program.preamble(&mut w, flows);
    headers::write(&program, &mut w);
    parsers::write(&program, &mut w);
    headers::write_deparser(&program, &mut w);
    resp_segment::write(&program, &mut w);
    tables::write_classify(&program, &tables, &mut w);
    Ok(Generated {
        p4: w.finish(),
        flow_bits: flows
            .iter()
            .zip(0..)
            .map(|(flow, bit)| (flow.name.clone(), bit))
            .collect(),
        notes: notes::used(&program),
        tables,
        engine: engine.clone(),
        options: *options,
    })
}

/// What the writers of the text's parts share.
struct Program<'a> {
    library: &'a Library,
    slice: Slice,
    reads: KeyReads,
    options: Options,
}

impl Program<'_> {
    fn preamble(&self, w: &mut Writer, flows: &[Flow]) {
        w.line("// Generated by parser-gen: do not edit. docs/filters.md describes filters, fields and limits.");
        w.line("//");
        if flows.is_empty() {
            w.line("// No flows are declared.");
        } else {
            w.line("// Flows, by their bit in meta.flows:");
        }
        for (bit, flow) in flows.iter().enumerate() {
            // A filter may span lines; a comment may not.
            let text = flow
                .filter
                .text()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            w.line(format!("//   {bit:2}  {}: {text}", flow.name));
        }
        if self.options.aggregate {
            w.line("// Aggregation frames are parsed with their values.");
        }
        w.blank();
        notes::write(self, w);
    }
}

fn p4_names(flows: &[Flow]) -> Result<Vec<String>, GenerateError> {
    if flows.len() > MAX_FLOWS {
        return Err(GenerateError::TooManyFlows { count: flows.len() });
    }
    let mut names = Vec::new();
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
        let name = flow.name.replace('-', "_");
        if !seen.insert(name.clone()) {
            return Err(GenerateError::DuplicateName {
                flow: flow.name.clone(),
            });
        }
        names.push(name);
    }
    Ok(names)
}
