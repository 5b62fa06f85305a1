//! Changes one value register of the aggregating switch while a sum is under way: what the demo must notice.

use scenario::workload::Training;

use crate::experiment::fleet::{Fleet, FleetError};
use crate::experiment::training::chunks_per_iteration;
use crate::target::{Item, Query, Target, UpdateType};

const OWNERS: &str = "SwitchIngress.aggregate.owner.owners";
const BITMAPS: &str = "SwitchIngress.aggregate.bitmap.bitmaps";
const VALUES: &str = "SwitchIngress.aggregate.sum0.s0.sums";
/// What is added to the value.
const CHANGE: u128 = 1 << 20;

/// Tries until a change has met an unfinished sum.
pub struct Register {
    switch: String,
    workers: u32,
    window: u64,
    done: bool,
}

impl Register {
    /// Of a job on a switch.
    pub fn new(switch: &str, training: &Training) -> Register {
        Register {
            switch: switch.to_owned(),
            workers: training.workers.len() as u32,
            window: training.window.into(),
            done: false,
        }
    }

    /// Looks for a cell that some workers have contributed to and others have not, and adds to its first value. It is done
    /// once the cell is still unfinished afterwards: then the change is in the sum.
    pub fn attempt(&mut self, fleet: &mut Fleet) -> Result<(), FleetError> {
        let Some(target) = fleet.target(&self.switch).filter(|_| !self.done) else { return Ok(()) };
        for cell in 0..2 * self.window {
            let before = self.unfinished(target, cell)?;
            let Some(owner) = before else { continue };
            let value = read(target, VALUES, cell)?;
            let changed = (value + CHANGE) & u128::from(u32::MAX);
            let write = Item::Register { name: VALUES.to_owned(), index: Some(cell), fields: vec![changed] };
            target.write(&[(UpdateType::Modify, write)])?;
            if self.unfinished(target, cell)? == Some(owner) {
                self.done = true;
                return Ok(());
            }
        }
        Ok(())
    }

    /// The chunk that owns a cell, if its sum has values and is under way.
    fn unfinished(&self, target: &mut dyn Target, cell: u64) -> Result<Option<u128>, FleetError> {
        let bitmap = read(target, BITMAPS, cell)?;
        let contributors = bitmap.count_ones();
        if contributors == 0 || contributors == self.workers {
            return Ok(None);
        }
        let owner = read(target, OWNERS, cell)?;
        let round = u128::from(self.window) + chunks_per_iteration() as u128;
        Ok((owner % round >= u128::from(self.window)).then_some(owner))
    }
}

fn read(target: &mut dyn Target, name: &str, index: u64) -> Result<u128, FleetError> {
    let items = target.read(&[Query::Register { name: name.to_owned(), index: Some(index) }])?;
    Ok(items.iter().find_map(|item| match item {
        Item::Register { fields, .. } => fields.first().copied(),
        _ => None,
    }).unwrap_or_default())
}
