//! Application of tables: looks up the key in the frame, chooses the action, and passes on its parameters.

use super::Machine;
use super::fields::serialise;
use crate::bits::mask;
use crate::externs::hash;
use crate::externs::meter;
use crate::op::{Apply, Code, Target};
use crate::table::profile::Indirect;
use crate::table::{Action, Index};

impl Machine<'_> {
    /// Applies a table: passes the action's parameters on, and returns the position of the action's code.
    #[inline(never)]
    pub(super) fn apply(&mut self, frame: &mut [u64], code: &Code, i: u32) -> Target {
        let apply = &code.applies[i as usize];
        if apply.profile.is_some() || apply.notes {
            return self.apply_any(frame, code, apply);
        }
        let table = &self.state.tables[apply.table as usize];
        let found = table.lookup(frame, &apply.plan);
        self.state.found[apply.table as usize] = found;
        hand_over(frame, apply, found, table.action(found))
    }

    /// Applies a table that has an action profile, a direct counter or meter, or idle timeouts; returns the next position.
    #[inline(never)]
    fn apply_any(&mut self, frame: &mut [u64], code: &Code, apply: &Apply) -> Target {
        let state = &mut *self.state;
        let table = &state.tables[apply.table as usize];
        let found = table.lookup(frame, &apply.plan);
        state.found[apply.table as usize] = found;
        let action = match &apply.profile {
            None => table.action(found),
            Some(plan) => {
                let indirect = table.found_indirect(found);
                let profile = &state.profiles[plan.profile as usize];
                let hash = match (indirect, plan.data, profile.selector) {
                    (
                        Some(Indirect::Group(_) | Indirect::OneShot(_)),
                        Some((layout, s)),
                        Some(selector),
                    ) => {
                        let layout = &code.layouts[layout as usize];
                        let scratch = &mut state.scratch;
                        serialise(frame, scratch, layout, s);
                        let (algorithm, w) = (selector.algorithm, selector.width);
                        hash::compute(algorithm, scratch, w, layout.bits) & mask(w)
                    }
                    _ => 0,
                };
                let place = plan.place as usize;
                match indirect.and_then(|i| profile.action(place, i, hash)) {
                    Some(action) => action.as_action(),
                    // An entry that refers to an empty group does nothing.
                    None => table.action(found),
                }
            }
        };
        let next = hand_over(frame, apply, found, action);
        if apply.notes {
            self.note(frame, apply, found);
        }
        next
    }

    /// Records the packet in the direct counter, direct meter and idle timer of the found table entry.
    #[inline(never)]
    fn note(&mut self, frame: &mut [u64], apply: &Apply, found: Option<Index>) {
        let bytes = self.packet.len() as u64;
        if self.state.tables[apply.table as usize].spec.idle_timeout {
            self.state.tables[apply.table as usize].touch(found, self.now_ns);
        }
        if apply.counts {
            self.state.tables[apply.table as usize].count(found, bytes);
        }
        if let Some(slot) = apply.colour {
            let table = &mut self.state.tables[apply.table as usize];
            frame[slot as usize] = table.mark(found, meter::GREEN, self.now_ns, bytes);
        }
    }
}

/// Stores whether an entry was found, and the action's number and parameters; returns the position of the action's code.
#[inline(always)]
fn hand_over(frame: &mut [u64], apply: &Apply, found: Option<Index>, action: Action<'_>) -> Target {
    if let Some(slot) = apply.hit {
        frame[slot as usize] = found.is_some().into();
    }
    if let Some(slot) = apply.action_run {
        frame[slot as usize] = action.index.unwrap_or(u32::MAX).into();
    }
    let Some(index) = action.index else {
        return apply.end;
    };
    let reached = &apply.actions[index as usize];
    for (slot, value) in reached.params.iter().zip(action.params) {
        frame[*slot as usize] = *value;
    }
    reached.target
}
