//! `workers_gain`: what a second worker brings, both looking at the same tables.

use super::router::{Routing, routing};
use super::row::{Reach, Row};
use super::support::pass;
use anyhow::{Result, anyhow};
use pipeline::Switch;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// What [`run`] measures.
pub const NAMES: &[&str] = &["workers_gain"];

const ROUNDS: usize = 11;
/// Passes of all frames that a worker makes in a round.
const PASSES: usize = 50;

/// The row: the median of rounds in turn.
pub fn run() -> Result<Vec<Row>> {
    let Routing {
        switch: mut first,
        frames,
        ..
    } = routing()?;
    let mut second = first.sibling(1)?;
    let mut pairs = Vec::new();
    for _ in 0..ROUNDS {
        let alone = together(&mut [&mut first], &frames)?;
        first.share(&mut second);
        let both = together(&mut [&mut first, &mut second], &frames)?;
        first.recall(std::iter::once(&mut second));
        pairs.push((2.0 * alone.as_secs_f64() / both.as_secs_f64(), alone));
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (gain, alone) = pairs[ROUNDS / 2];
    let packets = (PASSES * frames.len()) as f64;
    Ok(vec![Row {
        name: "workers_gain",
        value: Some(gain),
        unit: "times",
        reach: Reach::Nothing,
        floor: None,
        note: format!(
            "frames a second by the clock of two workers over one, each with all frames of router_cpu; one: {:.2} million a \
             second; between {:.2} and {:.2} in {ROUNDS} rounds. Two threads of one core are no two cores",
            packets / alone.as_secs_f64() / 1e6,
            pairs[0].0,
            pairs[ROUNDS - 1].0
        ),
    }])
}

/// How long all of them take, each in a thread of its own.
fn together(switches: &mut [&mut Switch], frames: &[(u32, Vec<u8>)]) -> Result<Duration> {
    let (ready, done) = (
        Barrier::new(switches.len() + 1),
        Barrier::new(switches.len() + 1),
    );
    std::thread::scope(|scope| {
        let threads: Vec<_> = switches
            .iter_mut()
            .map(|switch| {
                let (ready, done) = (&ready, &done);
                scope.spawn(move || {
                    ready.wait();
                    let sent: u64 = (0..PASSES).map(|_| pass(switch, frames)).sum();
                    done.wait();
                    sent
                })
            })
            .collect();
        ready.wait();
        let start = Instant::now();
        done.wait();
        let took = start.elapsed();
        for thread in threads {
            let sent = thread.join().map_err(|_| anyhow!("a worker panicked"))?;
            anyhow::ensure!(sent == (PASSES * frames.len()) as u64, "{sent} frames sent");
        }
        Ok(took)
    })
}
