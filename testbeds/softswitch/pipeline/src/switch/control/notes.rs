//! What clients attach, for themselves, to things that a packet never sees it on. An entry's note lies with the entry.

use super::Undo;
use crate::switch::Switch;
use crate::table::Note;

/// What a note hangs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Noted {
    /// The default entry of the table at this position.
    Default(usize),
    /// A multicast group.
    Group(u32),
    /// A clone session.
    Session(u32),
}

impl Switch {
    /// What is attached; the empty note if nothing is.
    pub fn note(&self, on: Noted) -> Note {
        self.notes.get(&on).cloned().unwrap_or_default()
    }

    /// Attaches a note; an empty one takes the old one away. What it hangs on has to be there: it goes with that.
    pub fn set_note(&mut self, on: Noted, note: Note) {
        let old = if note == Note::default() {
            self.notes.remove(&on)
        } else {
            self.notes.insert(on, note)
        };
        self.record(|| Undo::Note(on, old));
    }

    /// Takes over the notes of another program, tables by name.
    pub(crate) fn take_notes(&mut self, old: &Switch) {
        for (on, note) in &old.notes {
            let on = match *on {
                Noted::Default(table) => {
                    let name = &old.core.state.tables[table].spec.name;
                    let Ok(table) = self.table_index(name) else {
                        continue;
                    };
                    Noted::Default(table)
                }
                replication => replication,
            };
            self.notes.insert(on, note.clone());
        }
    }
}
