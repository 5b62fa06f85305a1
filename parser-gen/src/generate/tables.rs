//! `Classify`: one table per flow, and the entries that its filter becomes.

use std::collections::{BTreeMap, BTreeSet};

use p4lang::runtime::{FieldMatch, Match};

use super::Program;
use super::resp::{command, segment};
use super::writer::Writer;
use crate::filter::typing::max_value;
use crate::library::Body;
use crate::terms::{Constraint, MatchKey, Term};

/// A flow's table: what is matched, how, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlowTable {
    flow: String,
    bit: usize,
    columns: Vec<Column>,
    rows: Vec<Term>,
}

/// One key field.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    key: MatchKey,
    /// What is matched, in P4.
    expression: String,
    /// Its name in P4Info.
    name: String,
    bits: u32,
    kind: MatchKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchKind {
    Exact,
    Ternary,
    Range,
}

impl MatchKind {
    fn text(self) -> &'static str {
        match self {
            MatchKind::Exact => "exact",
            MatchKind::Ternary => "ternary",
            MatchKind::Range => "range",
        }
    }
}

impl FlowTable {
    pub fn new(program: &Program<'_>, flow: String, bit: usize, terms: &[Term]) -> FlowTable {
        let rows: Vec<Term> = terms
            .iter()
            .map(|term| with_segments(program, term))
            .collect();
        let mut keys: BTreeSet<MatchKey> =
            rows.iter().flat_map(|row| row.keys().copied()).collect();
        if keys.is_empty() {
            // Every packet passes; a table wants a key all the same.
            keys.insert(MatchKey::Present(program.library.root));
        }
        let columns = keys
            .into_iter()
            .map(|key| column(program, key, &rows))
            .collect();
        FlowTable {
            flow,
            bit,
            columns,
            rows,
        }
    }

    pub fn name(&self) -> String {
        format!("flow_{}", self.flow)
    }

    pub fn action(&self) -> String {
        format!("hit_{}", self.flow)
    }

    fn all_exact(&self) -> bool {
        self.columns
            .iter()
            .all(|column| column.kind == MatchKind::Exact)
    }

    /// Keys and priorities, the first term highest. Since all do the same, the order only makes lookups definite.
    pub fn entries(&self) -> impl Iterator<Item = (Vec<FieldMatch>, i32)> {
        let exact = self.all_exact();
        self.rows
            .iter()
            .zip((1..=self.rows.len() as i32).rev())
            .map(move |(row, priority)| {
                let key = self
                    .columns
                    .iter()
                    .filter_map(|column| {
                        let value = column.match_of(*row.get(&column.key)?)?;
                        Some(FieldMatch {
                            field: column.name.clone(),
                            value,
                        })
                    })
                    .collect();
                (key, if exact { 0 } else { priority })
            })
    }

    fn write(&self, w: &mut Writer) {
        w.open(format!("action {}()", self.action()));
        w.line(format!(
            "meta.flows = meta.flows | {:#010x};",
            1u32 << self.bit
        ));
        w.close();
        w.open(format!("table {}", self.name()));
        w.open("key =");
        for column in &self.columns {
            w.line(format!(
                "{}: {} @name(\"{}\");",
                column.expression,
                column.kind.text(),
                column.name
            ));
        }
        w.close();
        w.line(format!("actions = {{ {}; NoAction; }}", self.action()));
        w.line("const default_action = NoAction();");
        w.line(format!("size = {};", self.rows.len().next_power_of_two()));
        w.close();
    }
}

impl Column {
    /// `None` for a don't-care, which an entry leaves out.
    fn match_of(&self, constraint: Constraint) -> Option<Match> {
        let full = max_value(self.bits);
        match (self.kind, constraint) {
            (MatchKind::Exact, Constraint::Ternary { value, .. }) => Some(Match::exact(value)),
            (MatchKind::Exact, Constraint::Range { low, .. }) => Some(Match::exact(low)),
            (MatchKind::Ternary, Constraint::Ternary { mask: 0, .. }) => None,
            (MatchKind::Ternary, Constraint::Ternary { value, mask }) => {
                Some(Match::ternary(value, mask))
            }
            (_, Constraint::Range { low, high }) if low == 0 && high == full => None,
            (MatchKind::Ternary, Constraint::Range { low, .. }) => Some(Match::ternary(low, full)),
            (MatchKind::Range, Constraint::Range { low, high }) => Some(Match::range(low, high)),
            // Only ranges make a column a range.
            (MatchKind::Range, Constraint::Ternary { .. }) => None,
        }
    }
}

/// A key's bytes, gathered into the segments that the parser extracts.
fn with_segments(program: &Program<'_>, term: &Term) -> Term {
    let mut gathered = Term::new();
    let mut bytes = BTreeMap::new();
    for (key, constraint) in term {
        match (key, constraint) {
            (MatchKey::KeyByte(index), Constraint::Ternary { value, mask }) => {
                bytes.insert(*index, (*value, *mask));
            }
            _ => {
                gathered.insert(*key, *constraint);
            }
        }
    }
    for (begin, end) in program.reads.segments() {
        let (value, mask) = (begin..end).fold((0, 0), |(value, mask), index| {
            let (v, m) = bytes.get(&index).copied().unwrap_or((0, 0));
            (value << 8 | v, mask << 8 | m)
        });
        if mask != 0 {
            gathered.insert(
                MatchKey::KeySegment(begin, end),
                Constraint::Ternary { value, mask },
            );
        }
    }
    gathered
}

fn column(program: &Program<'_>, key: MatchKey, rows: &[Term]) -> Column {
    let (expression, name, bits) = describe(program, key);
    let full = max_value(bits);
    let is_single = |constraint: &Constraint| match constraint {
        Constraint::Ternary { mask, .. } => *mask == full,
        Constraint::Range { low, high } => low == high,
    };
    let is_open_range = |constraint: &Constraint| match constraint {
        Constraint::Ternary { .. } => false,
        Constraint::Range { low, high } => low != high && !(*low == 0 && *high == full),
    };
    let constraints: Vec<&Constraint> = rows.iter().filter_map(|row| row.get(&key)).collect();
    let kind = if constraints
        .iter()
        .any(|constraint| is_open_range(constraint))
    {
        MatchKind::Range
    } else if constraints.len() == rows.len()
        && constraints.iter().all(|constraint| is_single(constraint))
    {
        MatchKind::Exact
    } else {
        MatchKind::Ternary
    };
    Column {
        key,
        expression,
        name,
        bits,
        kind,
    }
}

/// Expression, name and width of a key.
fn describe(program: &Program<'_>, key: MatchKey) -> (String, String, u32) {
    let valid = |instance: &str| format!("hdr.{instance}.isValid()");
    match key {
        MatchKey::Present(id) => {
            let protocol = &program.library.protocols[id];
            let expression = match protocol.body {
                Body::Resp(_) => "redis".to_owned(),
                _ => valid(&protocol.name),
            };
            (expression, protocol.filter.clone(), 1)
        }
        MatchKey::Field(id, index) => {
            let protocol = &program.library.protocols[id];
            let field = &protocol.fields[index];
            let name = field
                .filter
                .as_ref()
                .map_or(&field.name, |filter| &filter.name);
            let instance = match &protocol.body {
                Body::Metadata { instance } => instance.clone(),
                _ => format!("hdr.{}", protocol.name),
            };
            (
                format!("{instance}.{}", field.name),
                name.clone(),
                field.bits,
            )
        }
        MatchKey::CommandLength(length) => (
            valid(&command(length)),
            format!("redis.command.has_{length}"),
            1,
        ),
        MatchKey::Command(length) => (
            format!("hdr.{}.text", command(length)),
            format!("redis.command.text_{length}"),
            8 * length as u32,
        ),
        MatchKey::KeyPresent => ("redis_key".to_owned(), "redis.key".to_owned(), 1),
        MatchKey::KeyAtLeast(length) => {
            // Segments end where filters' texts do, so there is one that ends here.
            let begin = program
                .reads
                .segments()
                .find(|(_, end)| *end == length)
                .map_or(0, |(begin, _)| begin);
            (
                valid(&segment((begin, length))),
                format!("redis.key.has_{length}"),
                1,
            )
        }
        MatchKey::KeyLengthByte(index) => {
            let field = ["first", "second", "third"][index.min(2)];
            (
                format!("hdr.redis_key_length.{field}"),
                format!("redis.key.length_{field}"),
                8,
            )
        }
        MatchKey::KeyByte(index) => (String::new(), format!("redis.key.byte_{index}"), 8),
        MatchKey::KeySegment(begin, end) => (
            format!("hdr.{}.text", segment((begin, end))),
            format!("redis.key.text_{begin}_{end}"),
            8 * (end - begin) as u32,
        ),
    }
}

pub(super) fn write_classify(program: &Program<'_>, tables: &[FlowTable], w: &mut Writer) {
    w.line(
        "// Which flows the packet belongs to. Every table is looked up; each sets its own bit.",
    );
    w.open("control Classify(in headers_t hdr, inout metadata_t meta)");
    w.line("// Packets by parse note.");
    w.line("Tally() notes;");
    let resp = program.reads_resp();
    if resp {
        w.line("RedisSegment() redis_segment;");
        w.line("// A command is there, and its key; not if the segment turned out to be something else.");
        w.line("bool redis = false;");
        w.line("bool redis_key = false;");
    }
    w.blank();
    for table in tables {
        table.write(w);
        w.blank();
    }
    w.open("apply");
    w.line("// The counter has 64 cells; an architecture may mark parser errors above them.");
    w.line("bit<8> note = meta.parse_note & 0x3f;");
    if resp {
        w.open("if (hdr.redis_elements.isValid() || note == NOTE_REDIS_TRUNCATED)");
        w.line("bool empty;");
        w.line("redis_segment.apply(hdr, note, empty);");
        w.line(
            "redis = !empty && hdr.redis_command_end.isValid() && note != NOTE_REDIS_UNPARSEABLE;",
        );
        w.line("redis_key = redis && hdr.redis_key_length.isValid() && note != NOTE_REDIS_UNREAD;");
        w.close();
    }
    w.open("if (note != NOTE_NONE)");
    w.line("notes.apply(note);");
    w.close();
    w.line("meta.parse_note = note;");
    for table in tables {
        w.line(format!("{}.apply();", table.name()));
    }
    w.close();
    w.close();
}
