//! Programs, table entries and frames for benchmarks of a switch whose ports are in memory.

use anyhow::{Result, anyhow};
pub use p4lang::runtime::entry;
use pipeline::{Config, Switch};
use std::sync::Arc;

/// Pseudo-random numbers that are the same in every run (splitmix64).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A pseudo-random number less than `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Creates an embedded switch with this P4 program.
pub fn switch(text: &str) -> Result<Switch> {
    let mut files = p4lang::Files::new();
    files.insert("bench.p4", text.to_owned());
    let compiled = p4lang::compile(&files, "bench.p4", &p4lang::Options::default())
        .map_err(|e| anyhow!("{e}"))?;
    Ok(Switch::new(Arc::new(compiled.program), Config::default())?)
}

/// A UDP frame of 60 bytes: 64 bytes with the FCS, which software never sees.
pub fn udp_frame(src: u32, dst: u32, ports: (u16, u16)) -> Vec<u8> {
    let mut f = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let mut ip = vec![0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0];
    ip.extend(src.to_be_bytes());
    ip.extend(dst.to_be_bytes());
    let sum: u32 = ip
        .chunks(2)
        .map(|b| u32::from(u16::from_be_bytes([b[0], b[1]])))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16 + (folded >> 16) as u16)).to_be_bytes());
    f.extend(ip);
    f.extend(ports.0.to_be_bytes());
    f.extend(ports.1.to_be_bytes());
    f.extend([0, 26, 0, 0]);
    f.resize(60, 0xa5);
    f
}

/// Sends all frames, (input port, bytes), through the switch once; returns the number of transmitted frames.
pub fn pass(switch: &mut Switch, frames: &[(u32, Vec<u8>)]) -> u64 {
    let mut sent = 0;
    for (port, frame) in frames {
        switch.handle_packet(0, *port, std::hint::black_box(frame));
        while let Some(t) = switch.poll_transmit() {
            sent += 1;
            switch.recycle(t.bytes);
        }
    }
    sent
}
