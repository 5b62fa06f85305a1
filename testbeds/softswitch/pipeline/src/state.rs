//! The mutable state of a program: tables and externs, which last between packets, and the data of a packet's pass.

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

/// Maximum number of digest messages that wait for the control plane (fewer if they are long); more are counted as lost.
const DIGEST_LIMIT: usize = 4096;

/// A message from the data plane to the control plane by a `Digest` extern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestMessage {
    /// Fully qualified name of the `Digest` extern.
    pub name: String,
    /// The fields of the message, in order.
    pub fields: Vec<Value>,
}

/// Tables and extern objects of a loaded program.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The program's tables, control by control.
    pub tables: Vec<Table>,
    /// For each table, the entry that the last packet found: its direct counter or meter may be called later.
    pub found: Vec<Option<Index>>,
    pub value_sets: Vec<ValueSet>,
    /// Action profiles and selectors of the program.
    pub profiles: Vec<Profile>,
    /// Cells of registers, counters, meters and filters that are addressed by index.
    pub cells: Cells,
    /// Random number generators of the `Random` externs.
    pub randoms: Vec<random::Random>,
    /// Digest messages for the control plane.
    pub digests: Digests,
    pub checksums: Vec<checksum::ChecksumUnit>,
    /// Buffer that is reused for data to be hashed.
    pub scratch: Vec<u8>,
    /// Requests of the deparser for further packets, by kind: see [`capture`].
    pub captures: [capture::Capture; capture::KINDS],
    pub pass: Pass,
}

/// Cells of extern objects that are addressed by index: each pipe of a Tofino has its own copy.
#[derive(Debug, Clone, Default)]
pub struct Cells {
    pub banks: Vec<register::Bank>,
    /// Indexed counters.
    pub counters: Vec<counter::Counter>,
    /// Indexed meters.
    pub meters: Vec<meter::Meter>,
    /// Cells of Tofino's low-pass filters and random early detection.
    pub filters: Vec<filter::Filter>,
}

/// Digest messages, in the order in which packets sent them.
#[derive(Debug, Clone, Default)]
pub struct Digests {
    /// Names of the `Digest` externs, by digest instance.
    pub names: Vec<String>,
    /// Messages that the control plane has not yet fetched.
    pub waiting: VecDeque<DigestMessage>,
    /// Number of messages lost because too many waited for the control plane.
    pub lost: u64,
}

/// Counts and positions that belong to one pass of a packet through a pipeline.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// Number of the pass, to detect a register that a packet executes twice in one pass.
    pub number: u64,
    /// Number of the pipe that the packet passes, on a Tofino.
    pub pipe: u32,
    /// Bytes of intrinsic metadata in front of the packet, which counters and meters do not count.
    pub front: usize,
    /// Number of bytes that the next counter or meter does not count, as the program requested.
    pub adjust: u64,
    /// For each register that a packet may execute twice, the number of the pass that executed it last.
    pub executed: Vec<u64>,
    /// Number of executions of a register beyond its first in a pass, over all passes.
    pub register_conflicts: u64,
}

impl State {
    /// Number of bytes that counters and meters count of a packet whose length is `length` bytes.
    #[inline(always)]
    pub fn counted(&mut self, length: usize) -> u64 {
        let bytes = (length - self.pass.front.min(length)) as u64;
        bytes.saturating_sub(std::mem::take(&mut self.pass.adjust))
    }

    /// Records the execution of a register in this pass; `unit`: index into [`Pass::executed`].
    pub fn executed(&mut self, unit: u32) {
        let last = std::mem::replace(&mut self.pass.executed[unit as usize], self.pass.number);
        self.pass.register_conflicts += u64::from(last == self.pass.number);
    }

    /// Adds a sample to a direct filter's cell in the table entry found last. Without an entry, the filter is unconfigured.
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

    /// Whether the digest queue takes a message with fields of these widths, in bits.
    pub fn takes_digest(&self, widths: impl Iterator<Item = u32>) -> bool {
        let words: u32 = widths.map(limbs).sum();
        self.digests.waiting.len() < DIGEST_LIMIT.min(LIMITS.digest_words / words.max(1) as usize)
    }

    /// Queues a digest message with the values from slot `at` of the frame on; counts it as lost if the queue is full.
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
