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

use std::collections::BTreeMap;

use p4lang::runtime::{ActionCall, FieldMatch, TableEntry};

use crate::arch::Arch;
use crate::classes::{self, Classes};
use crate::engine::{self, Action, EngineSpec};
use crate::flow::{Flow, GenerateError, check_names};
use crate::key::PacketKey;
use crate::library::{Library, Note, ProtocolId};
use crate::options::Options;
use crate::pace;
use crate::reset;
use crate::slice::Slice;
use crate::terms::Term;
use crate::writer::Writer;
use classify::Table;
use message::Reads;

/// Generated P4 program for a set of flows, and its table entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generated {
    /// P4 text of `generated.p4`.
    pub p4: String,
    /// Values of `meta.parse_note` that this program can set; they index the counter `notes`.
    pub notes: Vec<Note>,
    classes: Classes,
    tables: Vec<Table>,
    engine: EngineSpec,
    /// P4 text of `engine.p4` for each architecture.
    engines: Vec<(Arch, String)>,
}

impl Generated {
    /// P4 text of `engine.p4` for an architecture.
    #[must_use]
    pub fn engine(&self, arch: Arch) -> &str {
        let engine = self.engines.iter().find(|(other, _)| *other == arch);
        engine.map_or("", |(_, text)| text)
    }

    /// Table entries of one instance of `Classify`, such as `SwitchIngress.classify` or `SwitchEgress.classify`.
    pub fn entries_for(&self, control: &str) -> Vec<TableEntry> {
        // Egress without faults classifies nothing.
        if control.starts_with("SwitchEgress.") && self.engine.egress.is_empty() {
            return Vec::new();
        }
        classify::entries(&self.tables, control)
    }

    /// Table entries in `table` of the unit of [`EngineSpec::early`], which apply to packets that
    /// match `also`. `action` returns the action for a class.
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
    let units = engine.ingress.iter().chain(&engine.egress);
    for unit in units.clone() {
        match &unit.action {
            Action::Rewrite(rewrite) => {
                let protocols = rewrite.protocols(library).into_iter();
                protocols.for_each(|id| slice.add_protocol(library, id));
            }
            Action::Pace(_) => slice.add_named(library, &pace::PROTOCOLS),
            Action::Reset => slice.add_named(library, &reset::PROTOCOLS),
            _ => {}
        }
    }
    let keys = units.map(|unit| &unit.key);
    let keys = keys.chain(engine.triggers.iter().map(|trigger| &trigger.key));
    for id in keys.flatten().flat_map(PacketKey::protocols) {
        slice.add_protocol(library, id);
    }
    if options.multipath {
        slice.add_ports(library);
    }
    if options.sums_roce {
        slice.add_roce(library);
    }
    let diagram = classes::diagram(library, flows, &terms)?;
    let classes = Classes::from_diagram(&diagram, flows.len());
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
    let text = |arch| engine::text(arch, library, engine, options, key.as_ref());
    Ok(Generated {
        p4: w.finish(),
        notes: notes::used(&program),
        classes,
        tables,
        engine: engine.clone(),
        engines: Arch::ALL.map(|arch| (arch, text(arch))).to_vec(),
    })
}

/// Parts that the terms of all flows need of each message that the program parses.
fn reads(library: &Library, slice: &Slice, terms: &[Vec<Term>]) -> BTreeMap<ProtocolId, Reads> {
    let messages = slice
        .nodes
        .iter()
        .filter(|id| !library.protocols[**id].elements().is_empty());
    messages
        .map(|id| (*id, Reads::new(library, *id, terms.iter().flatten())))
        .collect()
}

/// Context that the writers of all parts of a program share.
struct Program<'a> {
    library: &'a Library,
    slice: Slice,
    /// Parts of each message that the program reads.
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
