//! The state of a program between packets, and between the blocks of a pass.

mod compare;

use crate::bits::{self, limbs};
use crate::externs::filter::{CELL_WORDS, DirectCells};
use crate::externs::{capture, checksum, counter, filter, meter, random, register};
use crate::limits::LIMITS;
use crate::op::Layout;
use crate::table::profile::Profile;
use crate::table::value_set::ValueSet;
use crate::table::{Index, Table};
use p4lang::runtime::Value;
use std::collections::VecDeque;

/// Maximum number of digest messages held for the control plane, fewer of long ones; further ones are counted and lost.
const DIGEST_LIMIT: usize = 4096;

/// A digest message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestMessage {
    /// Fully qualified name of the `Digest`.
    pub name: String,
    /// The fields of the message, in order.
    pub fields: Vec<Value>,
}

/// Tables and externs of a loaded program.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Tables, in order of controls.
    pub tables: Vec<Table>,
    /// The entry that the last packet found in each table, for a later call of its direct counter or meter.
    pub found: Vec<Option<Index>>,
    pub value_sets: Vec<ValueSet>,
    /// Action profiles and selectors.
    pub profiles: Vec<Profile>,
    /// Cells that are addressed by index.
    pub cells: Cells,
    /// Random number generators.
    pub randoms: Vec<random::Random>,
    /// Messages for the control plane.
    pub digests: Digests,
    pub checksums: Vec<checksum::ChecksumUnit>,
    /// Buffer for data to be hashed.
    pub scratch: Vec<u8>,
    /// Requests of the deparser: see [`capture`].
    pub captures: [capture::Capture; capture::KINDS],
    pub pass: Pass,
}

/// Cells of extern objects by index: each pipe of a Tofino has its own.
#[derive(Debug, Clone, Default)]
pub struct Cells {
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

/// State of one pass of a packet through a pipeline.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// Number of the pass: a register is executed at most once in it.
    pub number: u64,
    /// The current pipe, if there are several.
    pub pipe: u32,
    /// Bytes of intrinsic metadata in front of the packet, which are not counted.
    pub front: usize,
    /// Number of bytes that the next counter or meter does not count.
    pub adjust: u64,
    /// For each unit, the last pass in which the register was executed.
    pub executed: Vec<u64>,
    /// Number of executions beyond the first in a pass.
    pub register_conflicts: u64,
}

impl State {
    /// Number of bytes of the packet that counters and meters count.
    #[inline(always)]
    pub fn counted(&mut self, length: usize) -> u64 {
        let bytes = (length - self.pass.front.min(length)) as u64;
        bytes.saturating_sub(std::mem::take(&mut self.pass.adjust))
    }

    /// Records that a register is executed in this pass.
    pub fn executed(&mut self, unit: u32) {
        let last = std::mem::replace(&mut self.pass.executed[unit as usize], self.pass.number);
        self.pass.register_conflicts += u64::from(last == self.pass.number);
    }

    /// Adds a sample to a direct filter, at the entry found last; without an entry, the filter counts as unconfigured.
    pub fn direct_filter(&mut self, filter: u32, value: u64, now_ns: u64) -> u64 {
        let (filter, mut words) = (&mut self.cells.filters[filter as usize], [0; CELL_WORDS]);
        let Some(DirectCells { table, offset }) = filter.direct else {
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

    /// Whether a digest message with fields of these widths in bits fits.
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
