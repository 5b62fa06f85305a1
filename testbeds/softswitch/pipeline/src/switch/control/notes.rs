//! Notes: client data attached to objects, which packets never see. The note of an entry is part of the entry.

use super::Undo;
use crate::switch::{Noted, Switch};
use crate::table::Note;

impl Switch {
    /// The note of an object; empty if it has none.
    pub fn note(&self, on: Noted) -> Note {
        self.notes.get(&on).cloned().unwrap_or_default()
    }

    /// Attaches a note; an empty one removes the previous note. The object must exist; the note is removed with it.
    pub fn set_note(&mut self, on: Noted, note: Note) {
        let old = if note == Note::default() {
            self.notes.remove(&on)
        } else {
            self.notes.insert(on, note)
        };
        self.record(|| Undo::Note(on, old));
    }

    /// Takes over the notes of another program; tables are identified by name.
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
