//! Nanoseconds a packet on one core: `cargo run --release -p pipeline --example bench`.
// Measuring wants a clock; the crate itself has none.
#![allow(clippy::disallowed_methods)]

#[path = "../tests/support/aggregate.rs"]
mod aggregate;

use aggregate::{SERVER_PORT, VALUES, WORKERS, switch, update, values};
use pipeline::{Config, Switch};
use std::hint::black_box;
use std::time::Instant;

/// Runs every frame `rounds` times; buffers go back, so that nothing is allocated.
fn measure(name: &str, switch: &mut Switch, frames: &[(u32, Vec<u8>)], rounds: u32) {
    let mut run = |rounds: u32| {
        let mut sent = 0u32;
        for _ in 0..rounds {
            for (port, frame) in frames {
                switch.handle_packet(0, *port, black_box(frame));
                while let Some(t) = switch.poll_transmit() {
                    sent += 1;
                    switch.recycle(t.bytes);
                }
            }
        }
        sent
    };
    run(rounds / 10 + 1);
    let start = Instant::now();
    let sent = run(rounds);
    let n = rounds * frames.len() as u32;
    let ns = start.elapsed().as_nanos() as f64 / f64::from(n);
    println!("{name}: {ns:.0} ns a packet ({n} in, {sent} out)");
}

fn main() {
    let start = Instant::now();
    let mut switch = switch(Config::default());
    let (ops, slots) = switch.code_size();
    println!(
        "load: {} ms, {ops} instructions, {slots} slots",
        start.elapsed().as_millis()
    );

    let absorbed: Vec<_> = (0..512)
        .flat_map(|chunk| (0..WORKERS).map(move |w| (w, update(w, chunk, &values(w, chunk)))))
        .collect();
    // Each round's chunks are older than the cells' owners from the second on, so the chunk number moves on.
    let mut frames = absorbed;
    let mut total = 0u128;
    let mut count = 0u32;
    for round in 0..20u32 {
        for (_, frame) in &mut frames {
            let chunk = u32::from_be_bytes([frame[46], frame[47], frame[48], frame[49]])
                + if round == 0 { 0 } else { 512 };
            frame[46..50].copy_from_slice(&chunk.to_be_bytes());
        }
        let start = Instant::now();
        for (port, frame) in &frames {
            switch.handle_packet(0, *port, frame);
            while let Some(t) = switch.poll_transmit() {
                assert_eq!(t.port, SERVER_PORT);
                switch.recycle(t.bytes);
                count += 1;
            }
        }
        if round > 0 {
            total += start.elapsed().as_nanos();
        }
    }
    let n = 19 * frames.len() as u128;
    println!(
        "aggregate, {VALUES} values, {WORKERS} workers: {} ns a packet ({count} sums)",
        total / n
    );

    // Not an aggregation frame: forwarded by its MAC.
    let mut plain = update(0, 0, &[]);
    plain[36..38].copy_from_slice(&80u16.to_be_bytes());
    measure("forward, 62 bytes", &mut switch, &[(0, plain)], 200_000);
}
