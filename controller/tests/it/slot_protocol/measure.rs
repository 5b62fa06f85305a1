//! What the P4 text costs on the embedded switch.

use std::time::Instant;

use aggregation::WorkerId;
use aggregation::job::Job;
use aggregation::server::Mode;
use cluster::{Config, Node};
use host_agent::frames::{build, sum};
use parser_gen::Arch;
use wire::{Flags, Kind, Packet, Repr};

use super::p4_switch::{Admission, FIRST_WORKER_PORT, P4Switch, VALUES, compile, endpoint, frame};
use super::roce_switch::{RoceSwitch, Sent};

/// A worker's update of a chunk.
fn update(job: Job, sequence: u64, rank: u16) -> Vec<u8> {
    let chunk = job.chunk(sequence);
    let header = Repr {
        kind: Kind::Update,
        flags: Flags::NONE.with(Flags::VERSION, job.version(chunk).0),
        job: job.id().0,
        chunk: chunk.0,
        slot: job.slot(chunk).0,
        worker: rank,
        transmission: 0,
        contributors: 1 << rank,
        scale: 127,
        next_scale: 127,
        count: VALUES as u16,
    };
    let mut payload = vec![0; header.buffer_len()];
    let mut packet = Packet::new_unchecked(&mut payload[..]);
    header.emit(&mut packet);
    packet.write_i32(0..VALUES as i32);
    payload
}

/// Nanoseconds that the P4 program takes for an aggregated packet.
#[test]
#[ignore = "a measurement: cargo test --release -p controller --test it measure -- --ignored --nocapture"]
fn nanoseconds_a_packet() {
    for workers in [2, 8] {
        let mut config = Config::new(1, workers, Mode::Switch);
        config.job.window = 64;
        config.job.values_per_packet = VALUES as u16;
        config.job.values_per_round = VALUES;
        let job = config.checked_job().expect("a job");
        let mut p4 = P4Switch::load(compile(Arch::Psa, &[]));
        p4.admit(job, Admission::Cleared);
        let frame_of = |sequence: u64, rank: u16| {
            frame(Node::Worker(WorkerId(rank)), &update(job, sequence, rank))
        };
        let sequences = 4096u64;
        let frames: Vec<(u32, Vec<u8>)> = (0..sequences)
            .flat_map(|sequence| (0..workers).map(move |rank| (sequence, rank)))
            .map(|(sequence, rank)| {
                (
                    FIRST_WORKER_PORT + u32::from(rank),
                    frame_of(sequence, rank),
                )
            })
            .collect();
        let mut sums = 0;
        let since = Instant::now();
        for (port, frame) in &frames {
            p4.switch.handle_packet(0, *port, frame);
            while let Some(transmit) = p4.switch.poll_transmit() {
                sums += 1;
                p4.switch.recycle(transmit.bytes);
            }
        }
        let ns = since.elapsed().as_nanos() as f64 / frames.len() as f64;
        assert_eq!(sums, sequences);
        println!(
            "{workers} workers: {ns:.0} ns a packet of {VALUES} values ({} packets)",
            frames.len()
        );
    }
}

/// The same of an all-reduce of four, by UDP and by RoCEv2: what the switch takes for an update and its share of the four sums.
#[test]
#[ignore = "a measurement: cargo test --release -p controller --test it measure -- --ignored --nocapture"]
fn nanoseconds_an_update_by_either_form() {
    const RANKS: u16 = 4;
    const CHUNKS: u64 = 8192;
    let mut config = Config::new(1, RANKS, Mode::Switch);
    config.job.window = 64;
    config.job.values_per_packet = VALUES as u16;
    config.job.values_per_round = VALUES;
    let job = config.checked_job().expect("a job");
    let by_udp = |rank: u16, payload: &[u8]| {
        let mut frame = Vec::new();
        let from = endpoint(Node::Worker(WorkerId(rank)));
        build(&mut frame, from, sum(job.id().0), payload);
        frame
    };
    let by_roce = |_: u16, payload: &[u8]| Sent::update(payload, false).frame();
    let measure = |name: &str, p4: &mut P4Switch, made: &dyn Fn(u16, &[u8]) -> Vec<u8>| {
        let mut best = f64::INFINITY;
        for round in 0..5 {
            let updates = (round * CHUNKS..(round + 1) * CHUNKS)
                .flat_map(|sequence| (0..RANKS).map(move |rank| (sequence, rank)));
            let frames: Vec<(u32, Vec<u8>)> = updates
                .map(|(sequence, rank)| {
                    let frame = made(rank, &update(job, sequence, rank));
                    (FIRST_WORKER_PORT + u32::from(rank), frame)
                })
                .collect();
            let (mut copies, mut bytes) = (0, 0);
            let since = Instant::now();
            for (port, frame) in &frames {
                p4.switch.handle_packet(0, *port, frame);
                while let Some(transmit) = p4.switch.poll_transmit() {
                    copies += 1;
                    bytes = transmit.bytes.len();
                    p4.switch.recycle(transmit.bytes);
                }
            }
            best = best.min(since.elapsed().as_nanos() as f64 / frames.len() as f64);
            assert_eq!(copies, CHUNKS * u64::from(RANKS), "{name}, {bytes} bytes");
        }
        println!("{name}: {best:.0} ns an update, of which {RANKS} and {RANKS} copies make a sum");
    };
    let mut p4 = P4Switch::load(compile(Arch::Psa, &[]));
    p4.admit(job, Admission::Cleared);
    measure("UDP", &mut p4, &by_udp);
    let mut switch = RoceSwitch::new(Arch::Psa);
    switch.admit(job, 1);
    measure("UDP, where RoCEv2 is summed", &mut switch.p4, &by_udp);
    switch.admit(job, 1);
    measure("RoCEv2", &mut switch.p4, &by_roce);
}
