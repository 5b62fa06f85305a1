//! `ternary`: time of a lookup among 100,000 table entries with 64 different masks.

use super::filters::{Filter, Packet, check, program};
use crate::measure::clock::{median_ns, thread_cpu_ns};
use crate::measure::row::{Goal, Row};
use crate::measure::support::{Numbers, pass};
use anyhow::Result;
use std::collections::BTreeSet;

pub const NAMES: &[&str] = &["ternary", "ternary_insert"];

const ENTRIES: usize = 100_000;
const MASKS: usize = 64;
const FRAMES: usize = 4096;

/// Measures the row. A lookup's time is that of a packet through the program with entries, less that without entries.
pub fn run() -> Result<Vec<Row>> {
    let mut numbers = Numbers(4);
    let mut masks = BTreeSet::new();
    while masks.len() < MASKS {
        // The masks keep most bits of the addresses: otherwise there would not be 100,000 different entries.
        let mut mask = Filter::seeded(&mut numbers, 0).mask;
        mask[0] = u32::MAX;
        mask[1] |= 0xffff_ff00;
        mask[2] |= (numbers.next() as u32 & 15) << 4;
        masks.insert(mask);
    }
    let masks: Vec<[u32; 8]> = masks.into_iter().collect();
    let mut seen = BTreeSet::new();
    let mut filters: Vec<Filter> = Vec::new();
    while filters.len() < ENTRIES {
        let mask = masks[filters.len() % MASKS];
        let filter = Filter::with_mask(&mut numbers, filters.len(), mask);
        if seen.insert((filter.value, filter.mask)) {
            filters.push(filter);
        }
    }
    drop(seen);
    let frames: Vec<_> = (0..FRAMES)
        .map(|i| match i % 2 {
            0 => filters[numbers.below(ENTRIES as u64) as usize].packet(&mut numbers),
            _ => Packet::seeded(&mut numbers),
        })
        .collect();
    // A scan of all entries is slow; 512 frames suffice to rule out an agreement by chance.
    let scanned = 512;
    let hits = frames[..scanned]
        .iter()
        .filter(|p| filters.iter().any(|f| f.matches(p)))
        .count();
    let frames: Vec<_> = frames.iter().map(Packet::frame).collect();
    let mut switch = program()?;
    let without = median_ns(21, FRAMES as u64, || {
        pass(&mut switch, &frames);
    });
    let entries: Vec<_> = filters.iter().map(Filter::entry).collect();
    let start = thread_cpu_ns();
    for entry in &entries {
        switch.insert_entry(entry)?;
    }
    let inserted_ns = thread_cpu_ns() - start;
    check(&mut switch, &filters, &frames[..scanned])?;
    let with = median_ns(21, FRAMES as u64, || {
        pass(&mut switch, &frames);
    });
    let lookup = Row {
        name: "ternary",
        value: Some((with - without) / 1000.0),
        unit: "us/lookup",
        goal: Goal::AtMost(2.0),
        floor: None,
        note: format!(
            "{ENTRIES} entries, {MASKS} masks of 127 bits, all priorities different, {:.0} % hits; a packet with the entries \
             ({:.3} us) less one without ({:.3} us); {scanned} answers checked against a scan",
            100.0 * hits as f64 / scanned as f64,
            with / 1000.0,
            without / 1000.0
        ),
    };
    let insert = Row {
        name: "ternary_insert",
        value: Some(ENTRIES as f64 * 1e9 / inserted_ns as f64),
        unit: "entries/s",
        goal: Goal::Nothing,
        floor: None,
        note: "into the same table, by name".into(),
    };
    Ok(vec![lookup, insert])
}
