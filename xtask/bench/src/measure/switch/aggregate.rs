//! `aggregate_cpu`: CPU time of p4src's aggregation of 256 and of 2,048 values, with the load of workers with full windows.

use crate::measure::clock::median_ns;
use crate::measure::row::{Goal, Row};
use crate::measure::support::{Numbers, entry, pass};
use anyhow::{Result, anyhow, ensure};
use p4lang::runtime::Match;
use parser_gen::FrameValues;
use pipeline::{Config, Switch};
use scenario::plan::names::{aggregate, forward};
use std::sync::Arc;

pub const NAMES: &[&str] = &[
    "aggregate_cpu",
    "aggregate_cpu_by_worker",
    "aggregate_2048_cpu",
    "aggregate_2048_cpu_by_worker",
];

const WORKERS: u32 = 8;
/// Number of bytes of a frame before its values.
const HEADERS: usize = 14 + 20 + 8 + 24;
const JOB: u16 = 7;
const SERVER_MAC: u64 = 0x0200_0000_00aa;

/// Size of the sums: values per frame, and number of slots. All sizes have equally many bytes in frames and in register cells.
#[derive(Debug, Clone, Copy)]
struct SumSize {
    values: FrameValues,
    slots: u32,
    /// Number of chunks in a round; all workers send all chunks of a round.
    round: u32,
}

const SMALL: SumSize = SumSize {
    values: FrameValues::V256,
    slots: 16_384,
    round: 512,
};
const JUMBO: SumSize = SumSize {
    values: FrameValues::V2048,
    slots: 2_048,
    round: 64,
};

impl SumSize {
    fn values(self) -> usize {
        usize::from(self.values.count())
    }
}

/// Order in which the packets of a round arrive at the switch.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// All workers' packets for a chunk arrive, then those for the next chunk: eight successive packets use one cell.
    ByChunk,
    /// All packets of a worker arrive, then those of the next worker, as bursts do: a register cell
    /// is used again after all other cells of the round.
    ByWorker,
}

impl Order {
    /// Worker and chunk number of the n-th packet of a round.
    fn packet(self, n: u32, round: u32) -> (u32, u32) {
        match self {
            Order::ByChunk => (n % WORKERS, n / WORKERS),
            Order::ByWorker => (n / round, n % round),
        }
    }
}

/// Measures all rows. The window is all slots, so rounds cover the memory of both versions. A round starts after the
/// previous round is summed; a worker with a window would overlap rounds, but touches the same amount of memory.
pub fn run() -> Result<Vec<Row>> {
    Ok(vec![
        row(NAMES[0], SMALL, Order::ByChunk, Goal::AtMost(1.0))?,
        row(NAMES[1], SMALL, Order::ByWorker, Goal::Nothing)?,
        row(NAMES[2], JUMBO, Order::ByChunk, Goal::Nothing)?,
        row(NAMES[3], JUMBO, Order::ByWorker, Goal::Nothing)?,
    ])
}

fn row(name: &'static str, size: SumSize, order: Order, goal: Goal) -> Result<Row> {
    let SumSize {
        slots,
        round: chunks,
        ..
    } = size;
    let mut switch = program(size)?;
    let mut numbers = Numbers(2);
    let mut frames: Vec<(u32, Vec<u8>)> = (0..chunks * WORKERS)
        .map(|n| order.packet(n, chunks).0)
        .map(|worker| (worker, update(worker, size, &mut numbers)))
        .collect();
    let mut chunk = 0u32;
    let mut sums = 0;
    let mut round = |switch: &mut Switch| {
        for (n, (_, frame)) in (0..).zip(&mut frames) {
            place(frame, slots, chunk + order.packet(n, chunks).1);
        }
        chunk += chunks;
        sums += pass(switch, &frames);
    };
    // Writing the next chunk numbers into the frames is not the switch's work: its time is measured and subtracted.
    let rounds = 3 * 2 * (slots / chunks) as usize;
    let per_round = u64::from(chunks * WORKERS);
    let with = median_ns(rounds, per_round, || round(&mut switch));
    let made = (rounds as u64 + 1) * u64::from(chunks);
    ensure!(sums == made, "{sums} sums of {made} chunks");
    let mut next = 0u32;
    let without = median_ns(rounds, per_round, || {
        for (n, (_, frame)) in (0..).zip(&mut frames) {
            place(frame, slots, next + order.packet(n, chunks).1);
        }
        next += chunks;
        std::hint::black_box(&frames);
    });
    let floor = floor_ns(&frames, size, order);
    let order = match order {
        Order::ByChunk => "chunk by chunk",
        Order::ByWorker => "worker by worker",
    };
    Ok(Row {
        name,
        value: Some((with - without) / 1000.0),
        unit: "us/packet",
        goal,
        floor: Some(floor / 1000.0),
        note: format!(
            "PSA, {} values, {slots} slots x 2 versions, rounds of {chunks} chunks, {order}: {WORKERS} packets in, one \
             sum out, checked against its count; floor: values swapped and added to a row of the same memory by a loop of Rust",
            size.values()
        ),
    })
}

/// Lower bound in nanoseconds per frame: byte-swaps and adds each frame's values into the sums of its slot.
fn floor_ns(frames: &[(u32, Vec<u8>)], size: SumSize, order: Order) -> f64 {
    let (cells, chunks) = (2 * size.slots as usize, size.round);
    let mut rows = vec![0u32; cells * size.values()];
    let mut at = 0usize;
    median_ns(3 * cells / chunks as usize, frames.len() as u64, || {
        for (n, (_, frame)) in (0..).zip(frames) {
            let row = (at + order.packet(n, chunks).1 as usize) % cells * size.values();
            let values = frame[HEADERS..].chunks_exact(4);
            for (sum, value) in rows[row..row + size.values()].iter_mut().zip(values) {
                *sum =
                    sum.wrapping_add(u32::from_be_bytes([value[0], value[1], value[2], value[3]]));
            }
        }
        at += chunks as usize;
        std::hint::black_box(&rows);
    })
}

fn program(SumSize { values, slots, .. }: SumSize) -> Result<Switch> {
    let library = parser_gen::Library::builtin();
    let options = parser_gen::Options {
        aggregate: Some(values),
        ..Default::default()
    };
    let generated = parser_gen::generate(&library, &[], &options)?;
    let mut files = p4lang::Files::new();
    for (path, text) in parser_gen::program(parser_gen::Arch::Psa, &generated) {
        files.insert(&path, text);
    }
    let options = p4lang::Options {
        defines: vec![("NUM_SLOTS".into(), slots.to_string())],
        ..Default::default()
    };
    let compiled = p4lang::compile(&files, &parser_gen::Arch::Psa.main_path(), &options)
        .map_err(|e| anyhow!("{e}"))?;
    let mut switch = Switch::new(Arc::new(compiled.program), Config::default())?;
    let job = (aggregate::KEY_JOB, Match::exact(u128::from(JOB)));
    switch.insert_entry(&entry(
        aggregate::JOBS,
        std::slice::from_ref(&job),
        0,
        aggregate::AGGREGATE_JOB,
        &[
            (aggregate::ALL_WORKERS, (1u128 << WORKERS) - 1),
            (aggregate::BASE, 0),
            (aggregate::WINDOW, slots.into()),
            (aggregate::SLOT_MASK, u128::from(slots) - 1),
        ],
    ))?;
    for w in 0..u128::from(WORKERS) {
        let key = [
            job.clone(),
            (aggregate::KEY_WORKER, Match::exact(w)),
            (aggregate::KEY_PROBE, Match::exact(0)),
            (aggregate::KEY_PORT, Match::exact(w)),
        ];
        switch.insert_entry(&entry(
            aggregate::MEMBERS,
            &key,
            0,
            aggregate::MEMBER,
            &[(aggregate::WORKER_BIT, 1 << w)],
        ))?;
    }
    switch.insert_entry(&entry(
        forward::TABLE,
        &[(forward::KEY, Match::exact(u128::from(SERVER_MAC)))],
        0,
        forward::UNICAST,
        &[(forward::PORT, 100)],
    ))?;
    Ok(switch)
}

/// Writes the chunk number into a frame, and the slot and version that follow from it.
fn place(frame: &mut [u8], slots: u32, chunk: u32) {
    frame[43] = if chunk / slots % 2 == 1 { 0x80 } else { 0 };
    frame[46..50].copy_from_slice(&chunk.to_be_bytes());
    frame[50..52].copy_from_slice(&((chunk % slots) as u16).to_be_bytes());
}

/// UPDATE frame of a worker for chunk 0 (docs/protocol.md), with random values.
fn update(worker: u32, size: SumSize, numbers: &mut Numbers) -> Vec<u8> {
    let values = size.values.count();
    let payload = 24 + 4 * values;
    let w = worker as u8;
    let mut f = SERVER_MAC.to_be_bytes()[2..].to_vec();
    f.extend([2, 0, 0, 0, 0, w, 0x08, 0x00, 0x45, 0]);
    f.extend((28 + payload).to_be_bytes());
    f.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, w, 10, 0, 1, 1]);
    f.extend([0x30, 0x39, 0x57, 0x45]);
    f.extend((8 + payload).to_be_bytes());
    f.extend([0xbe, 0xef, 0x21, 0]);
    f.extend(JOB.to_be_bytes());
    f.extend([0, 0, 0, 0, 0, 0]);
    f.extend((worker as u16 * 64).to_be_bytes());
    f.extend((1u64 << worker).to_be_bytes());
    f.extend([128, 120 + w]);
    f.extend(values.to_be_bytes());
    for _ in 0..values {
        f.extend((numbers.next() as u32).to_be_bytes());
    }
    f
}
