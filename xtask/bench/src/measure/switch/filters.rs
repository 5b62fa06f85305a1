//! `filters_cpu`: CPU time of a thousand overlapping packet filters in one ternary table.

use crate::measure::clock::median_ns;
use crate::measure::row::{Goal, Row};
use crate::measure::support::{Numbers, entry, pass, switch};
use anyhow::{Result, ensure};
use p4lang::runtime::{Match, TableEntry};
use pipeline::Switch;
use std::collections::{BTreeMap, BTreeSet};

pub const NAMES: &[&str] = &["filters_cpu"];

const FILTERS: usize = 1000;
const FRAMES: usize = 4096;

/// Measures the row, and verifies the filters' counters against a plain scan of the filters.
pub fn run() -> Result<Vec<Row>> {
    let mut numbers = Numbers(3);
    let mut switch = program()?;
    let empty = switch.entries(TABLE)?.len();
    ensure!(empty == 0, "{empty} entries before the first");
    let mut masks = BTreeSet::new();
    let mut filters: Vec<Filter> = Vec::new();
    while filters.len() < FILTERS {
        let filter = Filter::seeded(&mut numbers, filters.len());
        if filters
            .iter()
            .all(|f| f.value != filter.value || f.mask != filter.mask)
        {
            masks.insert(filter.mask);
            filters.push(filter);
        }
    }
    ensure!(masks.len() >= 64, "only {} masks", masks.len());
    for filter in &filters {
        switch.insert_entry(&filter.entry())?;
    }
    let frames: Vec<_> = (0..FRAMES)
        .map(|_| filters[numbers.below(FILTERS as u64) as usize].packet(&mut numbers))
        .collect();
    let matching: usize = frames
        .iter()
        .map(|p| filters.iter().filter(|f| f.matches(p)).count())
        .sum();
    let frames: Vec<_> = frames.iter().map(Packet::frame).collect();
    check(&mut switch, &filters, &frames)?;
    let ns = median_ns(41, FRAMES as u64, || {
        pass(&mut switch, &frames);
    });
    let mut bare = program()?;
    let without = median_ns(41, FRAMES as u64, || {
        pass(&mut bare, &frames);
    });
    Ok(vec![Row {
        name: "filters_cpu",
        value: Some(ns / 1000.0),
        unit: "us/packet",
        goal: Goal::AtMost(0.5),
        floor: Some(without / 1000.0),
        note: format!(
            "v1model, {FILTERS} filters with {} masks over addresses, ports, protocol, TCP flags, DSCP and port, a packet fits \
             {:.1} of them; parsed, classified, counted, forwarded, each checked against a scan; floor: the same with an \
             empty table, so that the lookup is {:.0} ns",
            masks.len(),
            matching as f64 / FRAMES as f64,
            ns - without
        ),
    }])
}

/// Name of the table in p4/filters.p4.
pub const TABLE: &str = "FilterIngress.filters";

/// Switch with the program p4/filters.p4, without table entries.
pub fn program() -> Result<Switch> {
    switch(include_str!("../p4/filters.p4"))
}

/// Verifies that each filter has counted the frames for which a scan finds it first.
pub fn check(switch: &mut Switch, filters: &[Filter], frames: &[(u32, Vec<u8>)]) -> Result<()> {
    pass(switch, frames);
    let mut expected: BTreeMap<usize, u64> = BTreeMap::new();
    for frame in frames {
        let packet = Packet::from_frame(frame);
        let fitting = filters
            .iter()
            .enumerate()
            .filter(|(_, f)| f.matches(&packet));
        if let Some((i, _)) = fitting.max_by_key(|(_, f)| f.priority) {
            *expected.entry(i).or_default() += 1;
        }
    }
    for (i, filter) in filters.iter().enumerate() {
        let counted = switch.direct_counter_read(TABLE, Some(&filter.entry()))?;
        let wanted = expected.get(&i).copied().unwrap_or(0);
        ensure!(
            counted.packets == wanted,
            "filter {i} has {} packets instead of {wanted}",
            counted.packets
        );
    }
    Ok(())
}

const FIELDS: [&str; 8] = [
    "hdr.ipv4.src",
    "hdr.ipv4.dst",
    "hdr.ports.src",
    "hdr.ports.dst",
    "hdr.ipv4.protocol",
    "hdr.tcp.flags",
    "hdr.ipv4.dscp",
    "std.ingress_port",
];

/// Packet filter. Priorities differ, so a single filter wins for each packet.
#[derive(Debug, Clone)]
pub struct Filter {
    /// Values that the filter requires of the [`FIELDS`], in the bits of `mask`.
    pub value: [u32; 8],
    /// Masks of the [`FIELDS`]: bits that the filter compares.
    pub mask: [u32; 8],
    /// Priority: of several matching filters, the filter with the greatest priority wins.
    pub priority: i32,
}

/// Packet: values of the [`FIELDS`].
pub struct Packet([u32; 8]);

fn prefix(len: u32) -> u32 {
    u32::MAX.checked_shl(32 - len).unwrap_or(0)
}

/// Random IPv4 address in nested networks: a /8, one of four /16 in it, and so on, so that filters overlap.
fn address(numbers: &mut Numbers) -> u32 {
    let of = |n: u64, i: u64| (n >> (i * 8)) as u32;
    let n = numbers.next();
    10 << 24 | (of(n, 0) & 3) << 16 | (of(n, 1) & 15) << 8 | of(n, 2) & 255
}

impl Filter {
    /// A random filter; `n` determines its priority.
    pub fn seeded(numbers: &mut Numbers, n: usize) -> Filter {
        let mut one_of = |choice: &[u32]| choice[numbers.below(choice.len() as u64) as usize];
        let mask = [
            prefix(one_of(&[0, 8, 16, 24, 32])),
            prefix(one_of(&[8, 16, 20, 24, 28, 32])),
            one_of(&[0, 0, 0xffff]),
            one_of(&[0, 0xffff, 0xfc00]),
            one_of(&[0, 0xff, 0xff]),
            one_of(&[0, 0, 0, 0x12]),
            one_of(&[0, 0, 0, 0x3f]),
            one_of(&[0, 0, 0, 0x1ff]),
        ];
        Filter::with_mask(numbers, n, mask)
    }

    /// A random filter that compares the bits of this mask; `n` determines its priority.
    pub fn with_mask(numbers: &mut Numbers, n: usize, mask: [u32; 8]) -> Filter {
        let packet = Packet::seeded(numbers);
        let mut value = packet.0;
        for (v, m) in value.iter_mut().zip(mask) {
            *v &= m;
        }
        // The factor is odd, so different `n` below 2^20 have different priorities, in no order.
        let priority = 1 + ((n as u64 * 0x9_e3b1) & 0xf_ffff) as i32;
        Filter {
            value,
            mask,
            priority,
        }
    }

    /// Table entry for the filter.
    pub fn entry(&self) -> TableEntry {
        let fields = FIELDS.iter().zip(self.value.iter().zip(self.mask));
        let key: Vec<(&str, Match)> = fields
            .filter(|(_, (_, mask))| *mask != 0)
            .map(|(field, (value, mask))| {
                let (value, mask) = (u128::from(*value), u128::from(mask));
                (*field, Match::ternary(value, mask))
            })
            .collect();
        let class = u128::from(self.priority as u32 & 0xffff);
        let params = [("class", class), ("port", 1 + class % 16)];
        let action = "FilterIngress.classify";
        entry(TABLE, &key, self.priority, action, &params)
    }

    /// Whether the filter matches a packet.
    pub fn matches(&self, packet: &Packet) -> bool {
        let fields = packet.0.iter().zip(self.value.iter().zip(self.mask));
        fields.fold(0, |different, (p, (v, m))| different | (p ^ v) & m) == 0
    }

    /// A packet that the filter matches, random in the bits that the filter does not compare.
    pub fn packet(&self, numbers: &mut Numbers) -> Packet {
        let mut packet = Packet::seeded(numbers);
        for (p, (v, m)) in packet.0.iter_mut().zip(self.value.iter().zip(self.mask)) {
            *p = *p & !m | v;
        }
        // A protocol without flags has 0 there.
        if packet.0[5] != 0 && packet.0[4] != 6 {
            packet.0[5] = 0;
        }
        packet
    }
}

impl Packet {
    /// A random packet for the filters.
    pub fn seeded(numbers: &mut Numbers) -> Packet {
        let (src, dst) = (address(numbers), address(numbers));
        let mut below = |n: u64| numbers.below(n) as u32;
        let protocol = if below(2) == 0 { 6 } else { 17 };
        let flags = if protocol == 6 { below(32) } else { 0 };
        let ports = (
            1024 + below(64) * 997,
            [80, 443, 53, 6379][below(4) as usize] + below(3),
        );
        Packet([
            src,
            dst,
            ports.0,
            ports.1,
            protocol,
            flags,
            below(8),
            below(16),
        ])
    }

    /// Input port, and frame of 60 bytes: 64 bytes with the FCS.
    pub fn frame(&self) -> (u32, Vec<u8>) {
        let [src, dst, sport, dport, protocol, flags, dscp, port] = self.0;
        let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        f.extend([
            0x45,
            (dscp as u8) << 2,
            0,
            46,
            0,
            0,
            0x40,
            0,
            64,
            protocol as u8,
            0,
            0,
        ]);
        f.extend(src.to_be_bytes());
        f.extend(dst.to_be_bytes());
        f.extend((sport as u16).to_be_bytes());
        f.extend((dport as u16).to_be_bytes());
        f.resize(60, 0);
        f[47] = flags as u8;
        (port, f)
    }

    fn from_frame((port, f): &(u32, Vec<u8>)) -> Packet {
        let word = |at: usize| u32::from_be_bytes([f[at], f[at + 1], f[at + 2], f[at + 3]]);
        let ports = word(34);
        let flags = if f[23] == 6 { f[47] } else { 0 };
        let rest = [u32::from(f[23]), flags.into(), u32::from(f[15] >> 2), *port];
        Packet([
            word(26),
            word(30),
            ports >> 16,
            ports & 0xffff,
            rest[0],
            rest[1],
            rest[2],
            rest[3],
        ])
    }
}
