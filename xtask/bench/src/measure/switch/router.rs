//! `router_cpu`: CPU time of an IPv4 router of three tables, frames of 64 bytes, memory to memory.

use crate::measure::clock::median_ns;
use crate::measure::row::{Goal, Row};
use crate::measure::support::{Numbers, entry, pass, switch, udp_frame};
use anyhow::{Result, ensure};
use p4lang::runtime::Match;
use pipeline::Switch;

pub const NAMES: &[&str] = &["router_cpu"];

const PREFIXES: u64 = 1000;
const NEXT_HOPS: u64 = 64;
const FRAMES: usize = 4096;

pub fn run() -> Result<Vec<Row>> {
    let Routing {
        mut switch,
        frames,
        prefixes,
    } = routing()?;
    let ns = median_ns(41, FRAMES as u64, || {
        pass(&mut switch, &frames);
    });
    let floor = median_ns(41, FRAMES as u64, || copy(&frames));
    Ok(vec![Row {
        name: "router_cpu",
        value: Some(ns / 1000.0),
        unit: "us/packet",
        goal: Goal::AtMost(0.25),
        floor: Some(floor / 1000.0),
        note: format!(
            "v1model, {prefixes} prefixes of /16 to /28, {NEXT_HOPS} next hops, checksum verified and updated, {FRAMES} different \
             frames in turn; floor: the same frames copied once"
        ),
    }])
}

/// An IPv4 router with table entries, and frames for it.
pub struct Routing {
    pub switch: Switch,
    /// Frames that the router forwards: (input port, bytes).
    pub frames: Vec<(u32, Vec<u8>)>,
    prefixes: usize,
}

pub fn routing() -> Result<Routing> {
    let mut numbers = Numbers(1);
    let mut switch = switch(include_str!("../p4/router.p4"))?;
    let mut destinations = Vec::new();
    for i in 0..PREFIXES {
        // Lengths 16 to 28, as in a small site; the counter in the upper bits makes the prefixes distinct.
        let len = 16 + numbers.below(13) as u32;
        let prefix = (0x0a00_0000 + ((i as u32) << 14)) & (u32::MAX << (32 - len));
        let lpm = Match::lpm(u128::from(prefix), len);
        let via = u128::from(numbers.below(NEXT_HOPS));
        let route = entry(
            "RouterIngress.routes",
            &[("hdr.ipv4.dst", lpm)],
            0,
            "RouterIngress.via",
            &[("next_hop", via)],
        );
        // Prefixes of different lengths may be equal; the first one stays.
        if switch.insert_entry(&route).is_ok() {
            destinations.push(prefix | (numbers.next() as u32 & !(u32::MAX << (32 - len))));
        }
    }
    for hop in 0..u128::from(NEXT_HOPS) {
        switch.insert_entry(&entry(
            "RouterIngress.next_hops",
            &[("meta.next_hop", Match::exact(hop))],
            0,
            "RouterIngress.forward",
            &[("mac", 0x0200_0000_0100 + hop), ("port", hop)],
        ))?;
        switch.insert_entry(&entry(
            "RouterEgress.interfaces",
            &[("std.egress_port", Match::exact(hop))],
            0,
            "RouterEgress.own_mac",
            &[("mac", 0x0200_0000_0200 + hop)],
        ))?;
    }
    let frames: Vec<_> = (0..FRAMES)
        .map(|_| {
            let to = destinations[numbers.below(destinations.len() as u64) as usize];
            (
                numbers.below(64) as u32,
                udp_frame(0x0a01_0203, to, (1000, 2000)),
            )
        })
        .collect();
    let sent = pass(&mut switch, &frames);
    ensure!(sent == FRAMES as u64, "{sent} of {FRAMES} frames routed");
    Ok(Routing {
        switch,
        frames,
        prefixes: destinations.len(),
    })
}

/// Lower bound of forwarding: copies each frame once.
fn copy(frames: &[(u32, Vec<u8>)]) {
    let mut out = Vec::with_capacity(2048);
    for (_, frame) in frames {
        out.clear();
        out.extend_from_slice(std::hint::black_box(frame));
        std::hint::black_box(&out);
    }
}
