//! Changes one value register of the aggregating switch while a sum is under way: what the demo must notice.

use std::time::{Duration, Instant};

use p4lang::runtime::Value;
use scenario::workload::Training;

use crate::experiment::fleet::{Fleet, FleetError};
use crate::experiment::training::{Turn, chunks_per_iteration};
use controller::target::{Item, Query, Target, UpdateType};

const OWNERS: &str = "SwitchIngress.aggregate.owner.owners";
const BITMAPS: &str = "SwitchIngress.aggregate.bitmap.bitmaps";
const VALUES: &str = "SwitchIngress.aggregate.sum0.s0.sums";
/// What is added to the value: a quarter of what one of eight workers may send, so that no rounding hides it.
const CHANGE: u128 = 1 << 26;
/// How long the last worker is stopped at most; well below the agents' timeouts.
const STOPPED: Duration = Duration::from_millis(60);

/// Tries until a change has met an unfinished sum.
///
/// Sums are under way for a millisecond only, so the last worker is stopped for a moment: what the others have sent then waits for it.
pub struct Register {
    switch: String,
    workers: u32,
    window: u64,
    after_rounds: u64,
    stopped_at: Option<Instant>,
    done: bool,
}

impl Register {
    /// Of a job on a switch.
    pub fn new(switch: &str, training: &Training) -> Register {
        Register {
            switch: switch.to_owned(),
            workers: training.workers.len() as u32,
            window: training.window.into(),
            after_rounds: u64::from(training.iterations) / 3,
            stopped_at: None,
            done: false,
        }
    }

    /// Called often while the job runs.
    pub fn turn(&mut self, turn: &mut Turn<'_>, fleet: &mut Fleet) -> Result<(), FleetError> {
        if self.done || turn.rounds_done() < self.after_rounds {
            return Ok(());
        }
        let Some(last) = turn.worker(self.workers as usize - 1) else {
            return Ok(());
        };
        match self.stopped_at {
            None => {
                last.suspend();
                self.stopped_at = Some(Instant::now());
            }
            Some(stopped_at) => {
                self.attempt(fleet)?;
                // It may have been stopped where only exponents were under way: then at another moment.
                if self.done || stopped_at.elapsed() > STOPPED {
                    last.resume();
                    self.stopped_at = None;
                }
            }
        }
        Ok(())
    }

    /// Looks for a cell that some workers have contributed to and others have not, and adds to its first value. It is done
    /// if the cell is still unfinished afterwards: then the change is in the sum.
    fn attempt(&mut self, fleet: &mut Fleet) -> Result<(), FleetError> {
        let Some(target) = fleet.target(&self.switch) else {
            return Ok(());
        };
        let candidates = self.unfinished(target)?;
        let values = read(target, &[VALUES], 0..2 * self.window)?;
        // A block of zeros has no exponent, so nothing in it counts: pixels that are always blank.
        let value_of = |cell: u64| values.get(cell as usize).copied().unwrap_or_default();
        let Some((cell, owner)) = candidates
            .into_iter()
            .find(|(cell, _)| value_of(*cell) != 0)
        else {
            return Ok(());
        };
        let value = value_of(cell);
        let changed = (value + CHANGE) & u128::from(u32::MAX);
        let write = Item::Register {
            name: VALUES.to_owned(),
            index: Some(cell),
            fields: vec![changed.into()],
        };
        target.write(&[(UpdateType::Modify, write)])?;
        self.done = self.unfinished(target)?.contains(&(cell, owner));
        Ok(())
    }

    /// Whether a change has met an unfinished sum.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Cells whose sum has values and is under way, the latest chunk first, with the chunk that owns each.
    fn unfinished(&self, target: &mut dyn Target) -> Result<Vec<(u64, u128)>, FleetError> {
        // One read: the switch answers it between two packets.
        let state = read(target, &[BITMAPS, OWNERS], 0..2 * self.window)?;
        let (bitmaps, owners) = state.split_at(state.len() / 2);
        let round = u128::from(self.window) + chunks_per_iteration() as u128;
        let is_unfinished = |bitmap: u128, owner: u128| {
            (1..self.workers).contains(&bitmap.count_ones())
                && owner % round >= u128::from(self.window)
        };
        let mut cells: Vec<(u64, u128)> = (0..)
            .zip(bitmaps.iter().zip(owners))
            .filter(|(_, (bitmap, owner))| is_unfinished(**bitmap, **owner))
            .map(|(cell, (_, owner))| (cell, *owner))
            .collect();
        cells.sort_by_key(|cell| std::cmp::Reverse(cell.1));
        Ok(cells)
    }
}

/// The cells of some registers, one register after the other.
fn read(
    target: &mut dyn Target,
    names: &[&str],
    cells: std::ops::Range<u64>,
) -> Result<Vec<u128>, FleetError> {
    let query = |name: &&str| {
        let name = (*name).to_owned();
        cells.clone().map(move |cell| Query::Register {
            name: name.clone(),
            index: Some(cell),
        })
    };
    let queries: Vec<Query> = names.iter().flat_map(query).collect();
    let value = |item: Item| match item {
        Item::Register { fields, .. } => {
            fields.first().and_then(Value::to_u128).unwrap_or_default()
        }
        _ => 0,
    };
    Ok(target.read(&queries)?.into_iter().map(value).collect())
}
