//! Writes the control `Classify`, which finds the class of a packet by one table or a chain of tables, and the tables' entries.

mod columns;
mod pieces;
mod rows;

use p4lang::runtime::{ActionCall, FieldMatch, Match, MatchKind, TableEntry};

use super::Program;
use crate::diagram::Diagram;
use crate::writer::Writer;
use columns::{Cell, Column};
use rows::{LevelRun, Path, Step};

/// Names of the action that sets a packet's class, and of its parameter.
const SET_CLASS: (&str, &str) = ("set_class", "class");
/// Names of the action that sets the state for the next table, and of its parameter.
const STEP: (&str, &str) = ("step", "next_state");
/// Match key of the next table for the state that [`STEP`] sets.
const STATE: &str = "state";

/// Match table of the control `Classify`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    name: String,
    columns: Vec<TableColumn>,
    has_state: bool,
    rows: Vec<Path>,
}

/// Key field of a table, and the index of its value in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TableColumn {
    column: Column,
    cell: usize,
    kind: MatchKind,
}

/// Tables that find a packet's class by the decision diagram.
pub(super) fn tables(program: &Program<'_>, diagram: &Diagram) -> Vec<Table> {
    let (columns, places) = columns::assign(program, &diagram.levels);
    let runs = rows::cut(diagram, &places, columns.len());
    let is_chain = runs.len() > 1;
    let named = runs.into_iter().enumerate().map(|(number, run)| {
        let name = if is_chain {
            format!("flows{number}")
        } else {
            "flows".to_owned()
        };
        Table::new(name, run, &columns, program)
    });
    named.collect()
}

impl Table {
    fn new(name: String, run: LevelRun, columns: &[Column], program: &Program<'_>) -> Table {
        let used = columns.iter().enumerate().filter_map(|(cell, column)| {
            let kind = kind(column, run.rows.iter().map(|row| row.cells[cell]))?;
            Some(TableColumn {
                column: column.clone(),
                cell,
                kind,
            })
        });
        let mut used: Vec<TableColumn> = used.collect();
        let mut rows = run.rows;
        if used.is_empty() && !run.has_state {
            // Every packet matches, but a table needs a key.
            used.push(TableColumn {
                column: columns::presence(program, program.library.root),
                cell: columns.len(),
                kind: MatchKind::Ternary,
            });
            rows.iter_mut().for_each(|row| row.cells.push(Cell::Any));
        }
        Table {
            name,
            columns: used,
            has_state: run.has_state,
            rows,
        }
    }

    fn is_exact(&self) -> bool {
        self.columns
            .iter()
            .all(|column| column.kind == MatchKind::Exact)
    }

    /// Table entries of the table; the entry of the first row has the highest priority.
    fn entries(&self, control: &str) -> impl Iterator<Item = TableEntry> {
        let exact = self.is_exact();
        let priorities = (1..=self.rows.len() as i32).rev();
        self.rows
            .iter()
            .zip(priorities)
            .map(move |(row, priority)| {
                let state = self.has_state.then(|| FieldMatch {
                    field: STATE.to_owned(),
                    value: Match::exact(u128::from(row.from)),
                });
                let fields = self.columns.iter().filter_map(|column| {
                    Some(FieldMatch {
                        field: column.column.name.clone(),
                        value: column.match_of(row.cells[column.cell])?,
                    })
                });
                let ((action, param), value) = match row.to {
                    Step::Class(class) => (SET_CLASS, class),
                    Step::State(state) => (STEP, state),
                };
                TableEntry {
                    table: format!("{control}.{}", self.name),
                    key: state.into_iter().chain(fields).collect(),
                    priority: if exact { 0 } else { priority },
                    action: ActionCall {
                        name: format!("{control}.{action}"),
                        params: vec![(param.to_owned(), u128::from(value).into())],
                    },
                }
            })
    }

    fn hands_on(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.to, Step::State(_)))
    }

    fn write_key(&self, w: &mut Writer) {
        for TableColumn { column, kind, .. } in &self.columns {
            w.line(format!(
                "{}: {} @name(\"{}\");",
                column.expression,
                kind.name(),
                column.name
            ));
        }
    }

    fn write(&self, w: &mut Writer) {
        w.open(format!("table {}", self.name));
        w.open("key =");
        if self.has_state {
            w.line(format!("state: exact @name(\"{STATE}\");"));
        }
        self.write_key(w);
        w.close();
        let step = if self.hands_on() { "step; " } else { "" };
        w.line(format!("actions = {{ set_class; {step}NoAction; }}"));
        w.line("const default_action = NoAction();");
        w.line(format!("size = {};", self.rows.len().next_power_of_two()));
        w.close();
    }
}

impl TableColumn {
    /// P4Runtime match of a row's cell; `None` for a don't-care, which a table entry leaves out.
    fn match_of(&self, cell: Cell) -> Option<Match> {
        let bits = self.column.bits;
        match (self.kind, cell) {
            (_, Cell::Any) => None,
            (MatchKind::Exact, Cell::Mask(value, _) | Cell::Range(value, _)) => {
                Some(Match::exact(value))
            }
            (MatchKind::Range, Cell::Range(low, high)) => Some(Match::range(low, high)),
            (MatchKind::Range, Cell::Mask(value, _)) => Some(Match::range(value, value)),
            (_, Cell::Mask(value, mask)) => Some(Match::ternary(value, mask)),
            (_, Cell::Range(value, _)) => Some(Match::ternary(value, columns::all_ones(bits))),
        }
    }
}

/// P4 match kind of a column, by its cells in all rows; `None` if no row tests the column.
fn kind(column: &Column, cells: impl Iterator<Item = Cell>) -> Option<MatchKind> {
    let (mut all_single, mut any) = (true, false);
    for cell in cells {
        let single = cell.is_single(column.bits);
        if matches!(cell, Cell::Range(..)) && !single {
            return Some(MatchKind::Range);
        }
        all_single &= single;
        any |= cell != Cell::Any;
    }
    match (any, all_single) {
        (false, _) => None,
        (true, true) => Some(MatchKind::Exact),
        (true, false) => Some(MatchKind::Ternary),
    }
}

/// Table entries of all tables in one instance of `Classify`.
pub(super) fn entries(tables: &[Table], control: &str) -> Vec<TableEntry> {
    tables
        .iter()
        .flat_map(|table| table.entries(control))
        .collect()
}

/// Match key by which another table can distinguish the classes, and the number of rows that this
/// takes; `None` if classifying takes several tables.
pub(super) fn key_of_all(tables: &[Table]) -> Option<(String, usize)> {
    let [table] = tables else {
        return None;
    };
    let mut w = Writer::default();
    table.write_key(&mut w);
    Some((w.finish(), table.rows.len()))
}

/// Table entries, one or more for each class, for a table with the match key of [`key_of_all`]; `also` is an additional match.
pub(super) fn entries_of_classes(
    tables: &[Table],
    also: &FieldMatch,
    table: &str,
    action: impl Fn(u32) -> ActionCall,
) -> Vec<TableEntry> {
    let rows = tables.iter().flat_map(|of| of.entries("").zip(&of.rows));
    let entries = rows.filter_map(|(entry, row)| {
        let Step::Class(class) = row.to else {
            return None;
        };
        Some(TableEntry {
            table: table.to_owned(),
            key: entry.key.into_iter().chain([also.clone()]).collect(),
            priority: entry.priority,
            action: action(class),
        })
    });
    entries.collect()
}

pub(super) fn write(tables: &[Table], w: &mut Writer) {
    w.line("// The set of declared flows to which the packet belongs, as a number; 0 is the empty set.");
    w.open("control Classify(in headers_t hdr, inout metadata_t meta)");
    w.line("// Packets by parse note.");
    w.line("Tally() notes;");
    w.blank();
    write_actions(tables, w);
    for table in tables {
        table.write(w);
        w.blank();
    }
    w.open("apply");
    w.open("if (meta.parse_note != NOTE_NONE)");
    w.line("notes.apply(meta.parse_note);");
    w.close();
    for table in tables {
        w.line(format!("{}.apply();", table.name));
    }
    w.close();
    w.close();
}

fn write_actions(tables: &[Table], w: &mut Writer) {
    let is_chain = tables.len() > 1;
    if is_chain {
        w.line("// State between the tables; 0 once the class is known.");
        w.line("bit<32> state = 0;");
        w.blank();
    }
    if !tables.is_empty() {
        let (action, param) = SET_CLASS;
        w.open(format!("action {action}(class_t {param})"));
        w.line(format!("meta.class = {param};"));
        if is_chain {
            w.line("state = 0;");
        }
        w.close();
    }
    if is_chain {
        let (action, param) = STEP;
        w.open(format!("action {action}(bit<32> {param})"));
        w.line(format!("state = {param};"));
        w.close();
    }
}
