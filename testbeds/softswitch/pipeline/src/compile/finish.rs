//! Turns compiled blocks into runnable code: phase after phase, each with its postcondition.

use super::{CONSTANT_SLOTS, Compiler, coalesce, flow, roll, tidy};
use crate::externs::register::Info;
use crate::op::{Code, Op, Target};
use crate::state::State;

/// Maximum number of jumps in a chain that is replaced by one jump. A limit is needed, for loops that only jump.
const JUMPS: usize = 16;

impl Compiler<'_> {
    /// Runs all phases; returns the code, the program's initial state, and its registers.
    pub fn finish(mut self) -> (Code, State, Vec<Info>) {
        self.place_jumps();
        self.price_rounds();
        self.bind_code();
        self.roll_up();
        self.tidy_up();
        self.move_together();
        self.seal_plans();
        self.plan_keys();
        (self.code, self.state, self.registers)
    }

    /// Places jumps: afterwards, every jump target is a position in the code, and none of these is itself a jump.
    fn place_jumps(&mut self) {
        let labels = &self.labels.positions;
        let jump = |op: &Op| match op {
            Op::Jump(to) => Some(labels[*to as usize]),
            _ => None,
        };
        let jumps: Vec<Option<Target>> = self.code.ops.iter().map(jump).collect();
        let at = |to: &mut Target| {
            *to = labels[*to as usize];
            for _ in 0..JUMPS {
                match jumps.get(*to as usize) {
                    Some(Some(next)) => *to = *next,
                    _ => break,
                }
            }
        };
        for op in &mut self.code.ops {
            if let Some(to) = op.target_mut() {
                at(to);
            }
        }
        for apply in &mut self.code.applies {
            apply.targets_mut().for_each(at);
        }
    }

    /// Binds code: afterwards, it has the positions of tables and objects, and marks of the blocks without further effects.
    fn bind_code(&mut self) {
        self.bindings.registers.clone_from(&self.code.registers);
        self.code.bindings = std::mem::take(&mut self.bindings);
        self.code.note_quiet();
    }

    /// Rolls up: afterwards, instructions that are repeated for consecutive values are executed in lanes.
    fn roll_up(&mut self) {
        roll::roll(&mut self.code, &self.frame.dead);
    }

    /// Tidies up: afterwards, no slot is written without being read, and no value is copied that can be read at its source.
    fn tidy_up(&mut self) {
        let facts = tidy::Facts {
            max_steps: self.wanted.max_steps,
            zero: self.frame.single.get(&0).copied(),
            slots: flow::Slots {
                first: CONSTANT_SLOTS,
                own: &self.frame.own,
            },
        };
        tidy::tidy(&mut self.code, &facts);
    }

    /// Joins fields that are only moved, and notes which blocks are empty. Afterwards, no instruction changes its position.
    fn move_together(&mut self) {
        coalesce::coalesce(&mut self.code, &self.frame.pinned);
        self.code.note_empty();
    }

    /// Seals plans: afterwards, layouts and hashes have their precomputed data.
    fn seal_plans(&mut self) {
        for layout in &mut self.code.layouts {
            layout.seal();
        }
        for hash in &mut self.code.hashes {
            hash.seal(&self.code.layouts[hash.layout as usize]);
        }
    }

    /// Plans keys: afterwards, table lookups take their keys from the final slots of fields.
    fn plan_keys(&mut self) {
        for apply in &mut self.code.applies {
            apply.plan = self.state.tables[apply.table as usize].key_plan(&apply.key);
        }
    }
}
