//! `lpm_memory`: memory of a prefix table; other rows: time of a lookup in a prefix table and an exact table, small and large.

use crate::measure::clock::{median_ns, thread_cpu_ns};
use crate::measure::files::memory_kib;
use crate::measure::row::{Goal, Row};
use crate::measure::support::{Numbers, entry, pass, switch, udp_frame};
use anyhow::{Result, ensure};
use p4lang::runtime::{Match, TableEntry};
use pipeline::Switch;
use std::collections::BTreeSet;

pub const NAMES: &[&str] = &[
    "lpm_memory",
    "lpm_lookup",
    "lpm_insert",
    "exact_lookup",
    "exact_insert",
];

const ENTRIES: usize = 1_000_000;
const FRAMES: usize = 4096;

/// Measures all rows. A lookup's time is that of a packet through the program with entries, less that without entries.
pub fn run() -> Result<Vec<Row>> {
    let million = format!("{ENTRIES} entries");
    let mut rows = Vec::new();
    let large = measure(ENTRIES, 8..=32, prefix)?;
    rows.push(Row {
        name: "lpm_memory",
        value: Some(large.grown_mib),
        unit: "MiB",
        goal: Goal::AtMost(1024.0),
        // An address, a length and a parameter of 16 bits.
        floor: Some(ENTRIES as f64 * 7.0 / f64::from(1 << 20)),
        note: format!(
            "{million}, three fifths of them /24 and the others /8 to /32: what the process has grown by; floor: prefixes \
             and parameters alone"
        ),
    });
    rows.push(lookup("lpm_lookup", &large, &million));
    rows.push(insert("lpm_insert", &large));
    let large = measure(ENTRIES, 32..=32, host)?;
    rows.push(lookup("exact_lookup", &large, &million));
    rows.push(insert("exact_insert", &large));
    Ok(rows)
}

struct TableCosts {
    with_ns: f64,
    without_ns: f64,
    grown_mib: f64,
    entries_per_s: f64,
}

fn lookup(name: &'static str, m: &TableCosts, entries: &str) -> Row {
    Row {
        name,
        value: Some(m.with_ns - m.without_ns),
        unit: "ns/lookup",
        goal: Goal::Nothing,
        floor: None,
        note: format!(
            "{entries}, every packet another of {FRAMES} addresses, all hit; a packet with the entries ({:.0} ns) less one \
             without ({:.0} ns)",
            m.with_ns, m.without_ns
        ),
    }
}

fn insert(name: &'static str, m: &TableCosts) -> Row {
    Row {
        name,
        value: Some(m.entries_per_s),
        unit: "entries/s",
        goal: Goal::Nothing,
        floor: None,
        note: format!(
            "by name, one after the other; {:.0} MiB in the end",
            m.grown_mib
        ),
    }
}

fn prefix(address: u32, len: u32) -> TableEntry {
    let lpm = Match::lpm(u128::from(address), len);
    let via = u128::from(address >> 8 & 0xffff);
    let action = "LookupIngress.via";
    entry(
        "LookupIngress.routes",
        &[("hdr.ipv4.dst", lpm)],
        0,
        action,
        &[("next_hop", via)],
    )
}

fn host(address: u32, _: u32) -> TableEntry {
    let key = [("hdr.ipv4.dst", Match::exact(u128::from(address)))];
    let action = "LookupIngress.forward";
    entry(
        "LookupIngress.hosts",
        &key,
        0,
        action,
        &[("port", u128::from(address & 0xff))],
    )
}

/// Fills a table with pseudo-random prefixes, and measures lookups of addresses that the prefixes cover.
fn measure(
    entries: usize,
    lens: std::ops::RangeInclusive<u32>,
    make: fn(u32, u32) -> TableEntry,
) -> Result<TableCosts> {
    let mut numbers = Numbers(5);
    let mut switch: Switch = switch(include_str!("../p4/lookups.p4"))?;
    let mut prefixes = BTreeSet::new();
    while prefixes.len() < entries {
        let n = numbers.next();
        let any = lens.start() + (n >> 32) as u32 % (lens.end() - lens.start() + 1);
        let len = if lens.contains(&24) && lens.contains(&8) && n >> 40 & 7 < 5 {
            24
        } else {
            any
        };
        prefixes.insert((n as u32 & (u32::MAX << (32 - len)), len));
    }
    // An order by addresses would help the caches.
    let mut prefixes: Vec<(u32, u32)> = prefixes.into_iter().collect();
    for i in (1..prefixes.len()).rev() {
        prefixes.swap(i, numbers.below(i as u64 + 1) as usize);
    }
    let frames: Vec<_> = (0..FRAMES)
        .map(|_| {
            let (address, len) = prefixes[numbers.below(entries as u64) as usize];
            let host = numbers.next() as u32 & !(u32::MAX << (32 - len));
            (1, udp_frame(0x0a01_0203, address | host, (1000, 2000)))
        })
        .collect();
    let without_ns = median_ns(41, FRAMES as u64, || {
        pass(&mut switch, &frames);
    });
    let before = memory_kib("VmRSS:")?;
    let start = thread_cpu_ns();
    for (address, len) in &prefixes {
        switch.insert_entry(&make(*address, *len))?;
    }
    let ns = thread_cpu_ns() - start;
    let grown = 1024.0 * (memory_kib("VmRSS:")? as f64 - before as f64);
    let sent = pass(&mut switch, &frames);
    ensure!(
        sent == FRAMES as u64,
        "{sent} of {FRAMES} frames left the switch"
    );
    let with_ns = median_ns(41, FRAMES as u64, || {
        pass(&mut switch, &frames);
    });
    Ok(TableCosts {
        with_ns,
        without_ns,
        grown_mib: grown / f64::from(1 << 20),
        entries_per_s: entries as f64 * 1e9 / ns as f64,
    })
}
