//! Notes: data that control plane clients attach to objects, and packets never see. A table entry contains its own note.

use super::Undo;
use crate::switch::{Noted, Switch};
use crate::table::Note;

impl Switch {
    /// The note of a default entry, multicast group or clone session; empty if it has none.
    pub fn note(&self, on: Noted) -> Note {
        self.notes.get(&on).cloned().unwrap_or_default()
    }

    /// Attaches a note to an existing object, until the object is removed. An empty note removes the previous note.
    pub fn set_note(&mut self, on: Noted, note: Note) {
        let old = if note == Note::default() {
            self.notes.remove(&on)
        } else {
            self.notes.insert(on, note)
        };
        self.record(|| Undo::Note(on, old));
    }

    /// Takes over the notes of a switch with another program; tables are identified by name.
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
