//! Parse notes (`meta.parse_note`, why a packet was not parsed further): the codes that a program sets, and their P4 names.

use super::Program;
use crate::library::{Note, Target};
use crate::writer::Writer;

/// Name of the parser state that accepts a packet which was read as deep as the filters need.
pub(super) const COMPLETE: &str = "complete";

/// Parse notes that the program's parser or classifier can set, by ascending code.
pub(super) fn used(program: &Program<'_>) -> Vec<Note> {
    let library = program.library;
    let mut codes = Vec::new();
    codes.extend(library.note_code("truncated"));
    for &id in &program.slice.nodes {
        let protocol = &library.protocols[id];
        if program.slice.filters_look_beyond(id) {
            codes.extend(protocol.options().map(|options| options.malformed));
            codes.extend(protocol.next.iter().filter_map(|edge| match edge.to {
                Target::Note(code) => Some(code),
                _ => None,
            }));
        }
        codes.extend(&protocol.notes);
    }
    library
        .notes
        .iter()
        .filter(|note| codes.contains(&note.code))
        .cloned()
        .collect()
}

/// Name of the P4 constant for the code of the parse note `name`.
pub(super) fn constant(name: &str) -> String {
    format!("NOTE_{}", name.to_ascii_uppercase())
}

/// Name of the parser state that sets the code of the parse note `name` and stops parsing.
pub(super) fn state(name: &str) -> String {
    format!("note_{name}")
}

pub(super) fn write(program: &Program<'_>, w: &mut Writer) {
    w.line("// Values of meta.parse_note.");
    w.line("const bit<8> NOTE_NONE = 0;");
    for note in used(program) {
        w.line(format!("// {}.", capitalised(&note.about)));
        w.line(format!(
            "const bit<8> {} = {};",
            constant(&note.name),
            note.code
        ));
    }
    w.blank();
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
