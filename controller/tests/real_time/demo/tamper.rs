//! Changes one value register of the aggregating switch while a sum is under way: what the demo must notice.

use std::time::{Duration, Instant};

use controller::experiment::carry_out::Iteration;
use controller::experiment::carry_out::workload::Position;
use controller::experiment::fleet::FleetError;
use controller::experiment::fleet::aggregation::chunks_per_iteration;
use controller::experiment::{ExperimentError, Observer};
use controller::target::{Item, Query, Target, TargetError, UpdateType};
use p4lang::runtime::Value;
use scenario::plan::names::aggregate::{self, BITMAPS, OWNERS};

/// The demo's switch that sums, its workers, and their window.
const SWITCH: &str = "core";
const WORKERS: u32 = 8;
const LAST_WORKER: &str = "w7";
const WINDOW: u64 = 64;

/// What is added to the value: a quarter of what one of eight workers may send, so that no rounding hides it.
const CHANGE: u128 = 1 << 26;
/// How long the last worker is stopped at most; well below the agents' timeouts.
const STOPPED: Duration = Duration::from_millis(60);

/// Tries, in the first run, until a change has met an unfinished sum.
///
/// Sums are under way for a millisecond only, so the last worker is stopped for a moment: what the others have sent then waits for it.
#[derive(Default)]
pub struct Register {
    is_first: bool,
    stopped_at: Option<Instant>,
    done: bool,
}

impl Observer for Register {
    fn begins(&mut self, scenario: &str, _position: &Position) {
        self.is_first = scenario == "aggregated";
    }

    fn iteration(&mut self, turn: &mut Iteration<'_>) -> Result<(), ExperimentError> {
        let is_early = turn.position.done < turn.position.total / 3;
        if self.done || !self.is_first || is_early {
            return Ok(());
        }
        match self.stopped_at {
            None => {
                if let Some(last) = turn.process(LAST_WORKER) {
                    last.suspend();
                    self.stopped_at = Some(Instant::now());
                }
            }
            Some(stopped_at) => {
                if let Some(target) = turn.fleet.target(SWITCH) {
                    self.attempt(target).map_err(FleetError::Target)?;
                }
                // It may have been stopped where only exponents were under way: then at another moment.
                if (self.done || stopped_at.elapsed() > STOPPED)
                    && let Some(last) = turn.process(LAST_WORKER)
                {
                    last.resume();
                    self.stopped_at = None;
                }
            }
        }
        Ok(())
    }
}

impl Register {
    /// Looks for a cell that some workers have contributed to and others have not, and adds to its first value. It is done
    /// if the cell is still unfinished afterwards: then the change is in the sum.
    fn attempt(&mut self, target: &mut dyn Target) -> Result<(), TargetError> {
        let candidates = unfinished(target)?;
        let values = aggregate::sums(0);
        let values = read(target, &[&values], 0..2 * WINDOW)?;
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
            name: aggregate::sums(0),
            index: Some(cell),
            fields: vec![changed.into()],
        };
        target.write(&[(UpdateType::Modify, write)])?;
        self.done = unfinished(target)?.contains(&(cell, owner));
        Ok(())
    }

    /// Whether a change has met an unfinished sum.
    pub fn is_done(&self) -> bool {
        self.done
    }
}

/// Cells whose sum has values and is under way, the latest chunk first, with the chunk that owns each.
fn unfinished(target: &mut dyn Target) -> Result<Vec<(u64, u128)>, TargetError> {
    // One read: the switch answers it between two packets.
    let state = read(target, &[BITMAPS, OWNERS], 0..2 * WINDOW)?;
    let (bitmaps, owners) = state.split_at(state.len() / 2);
    let round = u128::from(WINDOW) + chunks_per_iteration() as u128;
    let is_unfinished = |bitmap: u128, owner: u128| {
        (1..WORKERS).contains(&bitmap.count_ones()) && owner % round >= u128::from(WINDOW)
    };
    let mut cells: Vec<(u64, u128)> = (0..)
        .zip(bitmaps.iter().zip(owners))
        .filter(|(_, (bitmap, owner))| is_unfinished(**bitmap, **owner))
        .map(|(cell, (_, owner))| (cell, *owner))
        .collect();
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.1));
    Ok(cells)
}

/// The cells of some registers, one register after the other.
fn read(
    target: &mut dyn Target,
    names: &[&str],
    cells: std::ops::Range<u64>,
) -> Result<Vec<u128>, TargetError> {
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
