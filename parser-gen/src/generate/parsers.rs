//! Writes the P4 parsers `FlowParser` and `FlowParserShort`: one state per header of the slice, and states for its options.

use super::Program;
use super::notes::{self, COMPLETE};
use super::roce;
use crate::library::{Body, Edge, HeaderOptions, ProtocolId, Target};
use crate::options::FrameValues;
use crate::writer::{Transition, Writer, extract, extract_values};

pub(super) fn write(program: &Program<'_>, w: &mut Writer) {
    w.line("// Parses the headers that the flows need; if it cannot, meta.parse_note has the reason. A packet that ends");
    w.line("// inside a header sets the parser error PacketTooShort; it keeps the note set before and the headers");
    w.line(
        "// that were complete. Later headers stay invalid, so no flow that needs them matches.",
    );
    parser(program, "FlowParser", true, w);
    w.line("// Like FlowParser, but without the values of aggregation frames, which egress does not need.");
    parser(program, "FlowParserShort", false, w);
}

fn parser(program: &Program<'_>, name: &str, values: bool, w: &mut Writer) {
    w.open(format!(
        "parser {name}(packet_in pkt, inout headers_t hdr, inout metadata_t meta)"
    ));
    let root = &program.library.protocols[program.library.root].name;
    w.state(
        "start",
        &["meta.parse_note = NOTE_TRUNCATED;".to_owned()],
        &Transition::To(format!("parse_{root}")),
    );
    for &id in &program.slice.nodes {
        match &program.library.protocols[id].body {
            Body::Metadata { .. } => {}
            Body::Message(_) => super::message::write_states(program, id, w),
            Body::Header { .. } => header_states(program, id, values, w),
        }
    }
    for note in notes::used(program) {
        // A packet that is cut short has this note from the start.
        if note.name != "truncated" {
            w.state(
                &notes::state(&note.name),
                &[format!(
                    "meta.parse_note = {};",
                    notes::constant(&note.name)
                )],
                &Transition::to("accept"),
            );
        }
    }
    w.state(
        COMPLETE,
        &["meta.parse_note = NOTE_NONE;".to_owned()],
        &Transition::to("accept"),
    );
    w.close();
    w.blank();
}

impl Program<'_> {
    /// Name of the first parser state of a protocol.
    fn entry_state(&self, to: ProtocolId) -> String {
        format!("parse_{}", self.library.protocols[to].name)
    }

    /// Edges that the program follows, in the library's order, and their targets. Edges that end the parse,
    /// with or without a note, are kept only where a filter tests a header behind this one. An edge that
    /// the program does not follow becomes an end if otherwise a later edge would take its packets.
    fn kept(&self, id: ProtocolId) -> impl Iterator<Item = (&Edge, Target)> {
        let next = &self.library.protocols[id].next;
        let follows = move |edge: &Edge| matches!(edge.to, Target::Protocol(to) if self.slice.follows(id, to));
        let is_any = |edge: &Edge| edge.when.iter().all(Option::is_none);
        let any = next
            .iter()
            .position(|edge| is_any(edge) && follows(edge))
            .unwrap_or(0);
        next.iter().enumerate().filter_map(move |(number, edge)| {
            let is_read = match edge.to {
                Target::Protocol(_) => follows(edge),
                Target::Note(_) | Target::End => self.slice.filters_look_beyond(id),
            };
            match is_read {
                true => Some((edge, edge.to)),
                false => (number < any).then_some((edge, Target::End)),
            }
        })
    }

    fn note_state(&self, code: u8) -> String {
        let name = self
            .library
            .notes
            .iter()
            .find(|note| note.code == code)
            .map_or("truncated", |note| &note.name);
        notes::state(name)
    }
}

fn header_states(program: &Program<'_>, id: ProtocolId, values: bool, w: &mut Writer) {
    let protocol = &program.library.protocols[id];
    let name = &protocol.name;
    let state = program.entry_state(id);
    let extracted = [extract(name)];
    let summed = program.options.aggregate.filter(|_| values);
    if let Some(summed) = summed.filter(|_| protocol.has_values()) {
        values_states(summed, &state, &extracted, w);
        return;
    }
    let next = next_transition(program, id);
    if program.options.sums_roce && values && *name == roce::CARRIER {
        roce::write_states(program, "parse_roce_next", w);
        return w.state("parse_roce_next", &[], &next);
    }
    match protocol.options() {
        Some(options) if program.skips_options(id) => {
            let after = format!("parse_{name}_next");
            option_states(program, id, options, &state, &after, w);
            w.state(&after, &[], &next);
        }
        _ => w.state(&state, &extracted, &next),
    }
}

/// Transition from a header's state: a select on the protocol that follows the header.
fn next_transition(program: &Program<'_>, id: ProtocolId) -> Transition {
    let protocol = &program.library.protocols[id];
    let hdr = |index: usize| format!("hdr.{}.{}", protocol.name, protocol.fields[index].name);
    let mut on: Vec<String> = protocol.select.iter().map(|index| hdr(*index)).collect();
    // Without states that skip options, parsing continues only behind a header without options.
    let plain = protocol.options().filter(|_| !program.skips_options(id));
    if let Some(options) = plain {
        on.insert(0, hdr(options.length));
    }
    let mut cases = Vec::new();
    let mut default = COMPLETE.to_owned();
    for (edge, to) in program.kept(id) {
        let state = match to {
            Target::Protocol(to) => program.entry_state(to),
            Target::Note(code) => program.note_state(code),
            Target::End => COMPLETE.to_owned(),
        };
        if edge.when.iter().all(Option::is_none) && plain.is_none() {
            default = state;
            break;
        }
        let mut keys: Vec<String> = edge
            .when
            .iter()
            .zip(&protocol.select)
            .map(|(when, index)| match when {
                None => "_".to_owned(),
                Some(value) => select_value(*value, &protocol.fields[*index].name),
            })
            .collect();
        if let Some(options) = plain {
            keys.insert(0, options.first_word.to_string());
        }
        cases.push((keys, state));
    }
    if cases.is_empty() {
        return Transition::To(default);
    }
    Transition::select(
        &on.iter().map(String::as_str).collect::<Vec<_>>(),
        cases,
        &default,
    )
}

/// Formats a value of a parser's `select`: EtherTypes in hexadecimal, ports and protocol numbers in decimal.
fn select_value(value: u128, field: &str) -> String {
    if field == "ether_type" {
        format!("{value:#06x}")
    } else {
        value.to_string()
    }
}

/// Writes the chain of states that skip options: the state with k words left extracts one word and continues at k - 1.
fn option_states(
    program: &Program<'_>,
    id: ProtocolId,
    options: HeaderOptions,
    state: &str,
    after: &str,
    w: &mut Writer,
) {
    let protocol = &program.library.protocols[id];
    let name = &protocol.name;
    let skip = |words: u32| {
        if words == 0 {
            after.to_owned()
        } else {
            format!("skip_{name}_options_{words}")
        }
    };
    let cases = (options.first_word..=options.max)
        .map(|length| (vec![length.to_string()], skip(length - options.first_word)))
        .collect();
    let length = format!("hdr.{name}.{}", protocol.fields[options.length].name);
    w.state(
        state,
        &[extract(name)],
        &Transition::select(&[&length], cases, &program.note_state(options.malformed)),
    );
    for words in (1..=options.max - options.first_word).rev() {
        w.state(
            &skip(words),
            &[extract(&format!("{name}_options.next"))],
            &Transition::To(skip(words - 1)),
        );
    }
}

fn values_states(summed: FrameValues, state: &str, extracted: &[String], w: &mut Writer) {
    let cases = vec![(
        vec!["AGG_VERSION".to_owned(), summed.count().to_string()],
        "parse_values".to_owned(),
    )];
    w.state(
        state,
        extracted,
        &Transition::select(&["hdr.agg.version", "hdr.agg.count"], cases, COMPLETE),
    );
    w.state(
        "parse_values",
        &extract_values(summed.blocks()),
        &Transition::to(COMPLETE),
    );
}
