//! Batches of the control plane's writes that can be rolled back as a whole.

use super::Undo;
use crate::switch::Switch;

/// Ignores the result of undoing a write: since the write succeeded, undoing it cannot fail.
fn discard<T, E>(_: Result<T, E>) {}

impl Switch {
    /// Commits any open batch, and starts one: records how to undo writes, until [`Switch::commit`] or [`Switch::rollback`].
    pub fn begin(&mut self) {
        self.undo = Some(Vec::new());
    }

    /// Commits the open batch: its writes can no longer be rolled back.
    pub fn commit(&mut self) {
        self.undo = None;
    }

    /// Rolls back the writes of the open batch, the last write first. No packet has seen them unless the caller processed one
    /// since.
    pub fn rollback(&mut self) {
        for undo in self.undo.take().unwrap_or_default().into_iter().rev() {
            match undo {
                Undo::Inserted(table, key) => self.core.state.tables[table].take_back(&key),
                Undo::Deleted(table, removed) => self.core.state.tables[table].restore(removed),
                Undo::Whole(table, priority, key) => {
                    self.core.state.tables[table].undo_insert(priority, key)
                }
                Undo::DefaultDirect(table, counter, meter) => {
                    self.core.state.tables[table].restore_default_direct(counter, meter)
                }
                Undo::OneShot(profile, id, Some(old)) => {
                    self.core.state.profiles[profile].restore_one_shot(id, old)
                }
                Undo::OneShot(profile, id, None) => {
                    self.core.state.profiles[profile].delete_one_shot(id);
                }
                Undo::Default(table, action, written) => {
                    self.core.state.tables[table].restore_default(action, written)
                }
                Undo::Note(on, old) => self.set_note(on, old.unwrap_or_default()),
                Undo::Group(id, None) => discard(self.delete_multicast_group(id)),
                Undo::Group(_, Some(group)) => discard(self.set_multicast_group(&group)),
                Undo::Session(id, None) => discard(self.delete_clone_session(id)),
                Undo::Session(_, Some(session)) => discard(self.set_clone_session(&session)),
                Undo::Cells(old) => self.restore_cells(old),
                Undo::DirectCounter(table, key, value) => {
                    if let Ok(cell) = self.core.state.tables[table].counter(key.as_ref()) {
                        *cell = value;
                    }
                }
                Undo::DirectMeter(table, key, old) => {
                    if let Ok(cell) = self.core.state.tables[table].meter(key.as_ref()) {
                        *cell = old;
                    }
                }
                Undo::ValueSet(set, members) => self.core.state.value_sets[set].members = members,
                Undo::Member(profile, id, old) => {
                    self.core.state.profiles[profile].restore_member(id, old)
                }
                Undo::ProfileGroup(profile, id, old) => {
                    self.core.state.profiles[profile].restore_group(id, old)
                }
            }
        }
    }

    /// Runs the closure `batch`, and rolls back all its writes if it returns an error.
    pub fn atomically<T, E>(
        &mut self,
        batch: impl FnOnce(&mut Switch) -> Result<T, E>,
    ) -> Result<T, E> {
        self.begin();
        let result = batch(self);
        if result.is_ok() {
            self.commit();
        } else {
            self.rollback();
        }
        result
    }
}
