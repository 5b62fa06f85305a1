//! `cargo xtask bench quantise`: measures the conversion of values into frames and of sums out of
//! frames, beside memcpy. The tensor is far larger than the caches; its chunks have 256 values. As
//! in a rank, frames are reused and stay in the first-level cache.
//!
//! Rates count the tensor's bytes: binary32 input of `quantise`, output of `dequantise`. Each round first
//! copies the tensor by memcpy, and then runs the measured code; a row is the median of the rounds' ratios.

use std::hint::black_box;

use aggregation::quantise::float::Float;
use aggregation::quantise::rounding::{Draws, Rounding};
use aggregation::quantise::{Exponent, block};
use aggregation::rank::{bf16, f16};
use anyhow::{Result, ensure};

use super::Args;
use super::clock::thread_cpu_ns;
use super::driver::{self, Group};
use super::row::{Goal, Row};
use super::support::Numbers;

const NAMES: &[&str] = &[
    "quantise",
    "dequantise",
    "exponent",
    "quantise_send",
    "quantise_f16",
    "dequantise_f16",
    "quantise_bf16",
    "dequantise_bf16",
    "quantise_drawn",
];

const VALUES: usize = 1 << 24;
const CHUNK: usize = 256;
/// Number of chunks by which reading exponents precedes sending, as in a rank; exponents are read `READ` at a time.
const WINDOW: usize = 256;
const READ: usize = 32;
const ROUNDS: usize = 15;
const RANKS: u16 = 8;
/// Bytes of Ethernet, IPv4, UDP and the aggregation header: the values after these headers are not aligned for vectors.
const HEADERS: usize = 62;

pub fn run(args: &Args) -> Result<bool> {
    let group = Group::new(NAMES, |()| rows());
    driver::measure(args, vec![group], || Ok(()))
}

fn rows() -> Result<Vec<Row>> {
    let mut numbers = Numbers(1);
    let unit = |word: u64| (word >> 40) as f32 / (1 << 23) as f32 - 1.0;
    let values: Vec<f32> = (0..VALUES).map(|_| unit(numbers.next())).collect();
    let halves: Vec<f16> = values.iter().map(|value| f16::from_f32(*value)).collect();
    let brains: Vec<bf16> = values.iter().map(|value| bf16::from_f32(*value)).collect();
    let draws = Rounding::Stochastic { seed: 1 }.draws(1, 1);

    let mut rows = Vec::new();
    let mut copy = values.clone();
    let to_frames = against_memcpy(&values, &mut copy, |values, _| into_frames(values));
    let from_frames = against_memcpy(&values, &mut copy, |_, copy| out_of_frames(copy));
    let goal = Goal::AtLeast(0.9);
    let quantised = against_memcpy(&values, &mut copy, |values, _| quantise(values, None));
    rows.push(row("quantise", &quantised, goal, Some(&to_frames)));
    let dequantised = against_memcpy(&values, &mut copy, |_, copy| dequantise(copy));
    ensure!(
        copy.iter().all(|value| (value - 1.0).abs() < 1e-6),
        "wrong sums"
    );
    rows.push(row("dequantise", &dequantised, goal, Some(&from_frames)));
    let read = against_memcpy(&values, &mut copy, |values, _| exponents(values));
    rows.push(row("exponent", &read, Goal::Nothing, Some(&to_frames)));
    let sent = against_memcpy(&values, &mut copy, |values, _| send(values));
    rows.push(row("quantise_send", &sent, goal, Some(&to_frames)));
    let drawn = against_memcpy(&values, &mut copy, |values, _| quantise(values, draws));
    drop((values, copy));

    for (names, [quantised, dequantised]) in [
        (["quantise_f16", "dequantise_f16"], both_ways(&halves)),
        (["quantise_bf16", "dequantise_bf16"], both_ways(&brains)),
    ] {
        rows.push(row(names[0], &quantised, Goal::Nothing, None));
        rows.push(row(names[1], &dequantised, Goal::Nothing, None));
    }
    rows.push(row("quantise_drawn", &drawn, Goal::Nothing, None));
    Ok(rows)
}

fn both_ways<T: Float>(values: &[T]) -> [Rates; 2] {
    let mut copy = values.to_vec();
    [
        against_memcpy(values, &mut copy, |values, _| quantise(values, None)),
        against_memcpy(values, &mut copy, |_, copy| dequantise(copy)),
    ]
}

/// Medians of all rounds of one measured conversion.
struct Rates {
    /// Time of memcpy over the time of the measured code.
    ratio: f64,
    bytes_per_ns: f64,
    memcpy_bytes_per_ns: f64,
}

fn against_memcpy<T: Copy>(
    values: &[T],
    copy: &mut [T],
    mut run: impl FnMut(&[T], &mut [T]),
) -> Rates {
    let bytes = size_of_val(values) as f64;
    let mut measured = Vec::new();
    // The first round warms up and does not count.
    for round in 0..=ROUNDS {
        let start = thread_cpu_ns();
        black_box(&mut *copy).copy_from_slice(black_box(values));
        let copied = thread_cpu_ns();
        run(black_box(values), black_box(&mut *copy));
        let ended = thread_cpu_ns();
        if round > 0 {
            measured.push(((copied - start) as f64, (ended - copied) as f64));
        }
    }
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut all: Vec<f64> = measured.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Rates {
        ratio: median(|(memcpy, run)| memcpy / run),
        bytes_per_ns: bytes / median(|(_, run)| *run),
        memcpy_bytes_per_ns: bytes / median(|(memcpy, _)| *memcpy),
    }
}

fn row(name: &'static str, measured: &Rates, goal: Goal, frames: Option<&Rates>) -> Row {
    let Rates {
        bytes_per_ns,
        memcpy_bytes_per_ns,
        ..
    } = measured;
    let mut note = format!(
        "{bytes_per_ns:.1} GB/s, memcpy from tensor to tensor {memcpy_bytes_per_ns:.1} GB/s"
    );
    if let Some(frames) = frames {
        note.push_str(&format!(
            "; memcpy between the tensor and a frame in the cache {:.1} GB/s, of which this is {:.0} %",
            frames.bytes_per_ns,
            100.0 * bytes_per_ns / frames.bytes_per_ns
        ));
    }
    if name == "quantise_send" {
        note.push_str(
            "; exponents a window ahead, then the integers: all that a rank does with values that it sends",
        );
    }
    Row {
        name,
        value: Some(measured.ratio),
        unit: "memcpy",
        goal,
        floor: None,
        note,
    }
}

fn frame() -> Vec<u8> {
    vec![0; HEADERS + 4 * CHUNK]
}

fn quantise<T: Float>(values: &[T], draws: Option<Draws>) {
    let mut frame = frame();
    // The values are about 1.
    let exponent = Exponent::from_bits(Exponent::BIAS as u8);
    for chunk in values.chunks(CHUNK) {
        block::encode(chunk, exponent, RANKS, draws, &mut frame[HEADERS..]);
        black_box(&mut frame);
    }
}

fn exponents(values: &[f32]) {
    for chunk in values.chunks(CHUNK) {
        black_box(block::exponent(chunk));
    }
}

/// Quantizes values in the order in which a rank sends: reads some exponents at a time, a window before their chunks.
fn send(values: &[f32]) {
    let mut frame = frame();
    let chunks: Vec<&[f32]> = values.chunks(CHUNK).collect();
    let mut exponents: Vec<Option<Exponent>> = Vec::with_capacity(chunks.len());
    for (index, chunk) in chunks.iter().enumerate() {
        let announced = (index + WINDOW).min(chunks.len() - 1);
        if announced >= exponents.len() {
            let read = &chunks[exponents.len()..(announced + READ).min(chunks.len())];
            exponents.extend(read.iter().map(|chunk| block::exponent(chunk)));
        }
        let exponent = exponents[index].unwrap_or_default();
        block::encode(chunk, exponent, RANKS, None, &mut frame[HEADERS..]);
        black_box(&mut frame);
    }
}

fn dequantise<T: Float>(values: &mut [T]) {
    let mut frame = frame();
    // All sums are 1.
    let exponent = Exponent::from_bits(Exponent::BIAS as u8);
    let one = aggregation::quantise::limit(RANKS).to_be_bytes();
    frame[HEADERS..].as_chunks_mut().0.fill(one);
    for chunk in values.chunks_mut(CHUNK) {
        let words = &black_box(&frame)[HEADERS..];
        black_box(block::decode(words, exponent, RANKS, 1, chunk));
    }
}

fn into_frames(values: &[f32]) {
    let mut frame = vec![0.0_f32; CHUNK];
    for chunk in values.chunks(CHUNK) {
        frame[..chunk.len()].copy_from_slice(chunk);
        black_box(&mut frame);
    }
}

fn out_of_frames(values: &mut [f32]) {
    let frame = vec![0.0_f32; CHUNK];
    for chunk in values.chunks_mut(CHUNK) {
        chunk.copy_from_slice(&black_box(&frame)[..chunk.len()]);
    }
}
