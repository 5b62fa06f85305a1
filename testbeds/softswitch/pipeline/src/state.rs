//! What a program keeps from packet to packet, and what one block leaves for the next.

mod compare;

use crate::bits::{self, limbs};
use crate::externs::filter::{CELL_WORDS, Direct};
use crate::externs::{capture, checksum, counter, filter, meter, random, register};
use crate::limits::LIMITS;
use crate::op::Layout;
use crate::table::profile::Profile;
use crate::table::value_set::ValueSet;
use crate::table::{Index, Table};
use p4lang::runtime::Value;
use std::collections::VecDeque;

/// Digest messages held for the control plane, fewer of long ones; more are counted and lost.
const DIGEST_LIMIT: usize = 4096;

/// A digest message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestMessage {
    /// Fully qualified name of the `Digest`.
    pub name: String,
    /// The fields of its data, in order.
    pub fields: Vec<Value>,
}

/// Tables and externs of a loaded program.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// In order of controls.
    pub tables: Vec<Table>,
    /// What the last packet found in each table; its direct counter or meter may be asked for later.
    pub found: Vec<Option<Index>>,
    /// Value sets of parsers.
    pub value_sets: Vec<ValueSet>,
    /// Action profiles and selectors.
    pub profiles: Vec<Profile>,
    /// What is kept by index.
    pub cells: Cells,
    /// Random number generators.
    pub randoms: Vec<random::Random>,
    /// Messages for the control plane.
    pub digests: Digests,
    /// Checksum units.
    pub checksums: Vec<checksum::Unit>,
    /// For data on its way into a hash.
    pub scratch: Vec<u8>,
    /// What the deparser asked for: see [`capture`].
    pub captures: [capture::Capture; capture::KINDS],
    /// The pass that runs.
    pub pass: Pass,
}

/// Cells of extern objects by index: what each pipe of a Tofino has for itself.
#[derive(Debug, Clone, Default)]
pub struct Cells {
    /// Of registers.
    pub banks: Vec<register::Bank>,
    /// Indexed counters.
    pub counters: Vec<counter::Counter>,
    /// Indexed meters.
    pub meters: Vec<meter::Meter>,
    /// Low-pass filters and random early detection.
    pub filters: Vec<filter::Filter>,
}

/// Digest messages.
#[derive(Debug, Clone, Default)]
pub struct Digests {
    /// Names of the digests.
    pub names: Vec<String>,
    /// Messages not yet fetched.
    pub waiting: VecDeque<DigestMessage>,
    /// Messages lost because too many waited.
    pub lost: u64,
}

/// Of one pass of a packet through a pipeline.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// Which it is: a register is executed once in it.
    pub number: u64,
    /// The pipe that runs, if there are several.
    pub pipe: u32,
    /// Bytes of intrinsic metadata in front of the packet: not counted.
    pub front: usize,
    /// Bytes that the next counter or meter does not count.
    pub adjust: u64,
    /// The last pass in which a register was executed.
    pub executed: Vec<u64>,
    /// Executions beyond the first of a pass.
    pub register_conflicts: u64,
}

impl State {
    /// Bytes of the packet that counters and meters see.
    #[inline(always)]
    pub fn counted(&mut self, length: usize) -> u64 {
        let bytes = (length - self.pass.front.min(length)) as u64;
        bytes.saturating_sub(std::mem::take(&mut self.pass.adjust))
    }

    /// A register is executed in this pass.
    pub fn executed(&mut self, unit: u32) {
        let last = std::mem::replace(&mut self.pass.executed[unit as usize], self.pass.number);
        self.pass.register_conflicts += u64::from(last == self.pass.number);
    }

    /// A sample for a direct filter, at the entry found last; where none was, as if that were not configured.
    pub fn direct_filter(&mut self, filter: u32, value: u64, now_ns: u64) -> u64 {
        let (filter, mut words) = (&mut self.cells.filters[filter as usize], [0; CELL_WORDS]);
        let Some(Direct { table, offset }) = filter.direct else {
            return filter.execute_direct(&mut words, value, now_ns);
        };
        let (found, table) = (self.found[table as usize], &mut self.tables[table as usize]);
        table.read_cell(found, offset, self.pass.pipe, &mut words);
        let before = words;
        let given = filter.execute_direct(&mut words, value, now_ns);
        if words != before {
            table.write_cell(found, offset, self.pass.pipe, &words);
        }
        given
    }

    /// Whether there is room for a digest message whose fields have these widths in bits.
    pub fn takes_digest(&self, widths: impl Iterator<Item = u32>) -> bool {
        let words: u32 = widths.map(limbs).sum();
        self.digests.waiting.len() < DIGEST_LIMIT.min(LIMITS.digest_words / words.max(1) as usize)
    }

    /// Queues a digest message.
    pub fn digest(&mut self, instance: u32, frame: &[u64], layout: &Layout, at: u32) {
        if !self.takes_digest(layout.fields.iter().map(|f| f.width)) {
            self.digests.lost += 1;
            return;
        }
        let value = |slot: u32, width: u32| {
            let slot = (at + slot) as usize;
            match limbs(width) as usize {
                1 => u128::from(frame[slot] & bits::mask(width)).into(),
                n => Value::from_limbs(&frame[slot..slot + n]),
            }
        };
        self.digests.waiting.push_back(DigestMessage {
            name: self.digests.names[instance as usize].clone(),
            fields: layout
                .fields
                .iter()
                .map(|f| value(f.slot, f.width))
                .collect(),
        });
    }
}
