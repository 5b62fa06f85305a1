//! UPDATEs that no worker would send, through both.

use std::time::Instant;

use aggregation::{Job, WorkerId};
use cluster::drawn::mix;
use cluster::{Compare, Node, SlotSwitch, SwitchModel};
use parser_gen::Arch;
use wire::{Flags, Kind, Packet, Repr};

use super::p4_switch::{Admission, Outcome, P4Switch, VALUES, compile};
use super::runs::chaotic;

/// UPDATEs that no worker would send: any chunk near the owner, any flags, values that make sums wrap, other ports,
/// fields that are not the chunk's, bytes after the values.
fn wild(job: &Job, seed: u64, step: u64) -> (Node, Vec<u8>) {
    let pick = |what: u64, options: u64| mix(seed, step, what) % options;
    let window = u64::from(job.window());
    // On so slowly that chunks complete, with a reach of a window back and two forth.
    let sequence = step / (8 * u64::from(job.workers())) + pick(1, 3 * window);
    let chunk = job
        .first_chunk()
        .plus((sequence as u32).wrapping_sub(window as u32));
    let worker = pick(2, u64::from(job.workers()) + 1) as u16;
    let from = if pick(3, 20) == 0 {
        pick(4, u64::from(job.workers())) as u16
    } else {
        worker
    };
    let scale_only = pick(5, 4) == 0;
    let probe = pick(16, 6) == 0;
    let mut header = Repr {
        kind: Kind::Update,
        flags: Flags::from_bits((pick(6, 256) as u8) & 0b0111_0010)
            .with(Flags::PROBE, probe)
            .with(Flags::NON_FINITE, pick(7, 10) == 0)
            .with(Flags::SCALE_ONLY, scale_only)
            .with(Flags::VERSION, job.version(chunk).0),
        job: job.id().0,
        chunk: chunk.0,
        slot: job.slot(chunk).0,
        worker,
        transmission: pick(8, 64) as u8,
        contributors: pick(9, 1 << 63),
        scale: pick(10, 256) as u8,
        next_scale: pick(11, 256) as u8,
        count: if scale_only || probe {
            0
        } else {
            VALUES as u16
        },
    };
    match pick(12, 60) {
        0 => header.slot ^= 1 << pick(13, 16),
        1 => header.flags = header.flags.with(Flags::VERSION, !job.version(chunk).0),
        2 => header.count = pick(13, 300) as u16,
        3 => header.flags = header.flags.with(Flags::SCALE_ONLY, !scale_only),
        5 => header.flags = header.flags.with(Flags::PROBE, !probe),
        // Half of all numbers away. A cell that such a chunk takes over finds all others stale: in some jobs only.
        4 if seed.is_multiple_of(5) => header.chunk ^= 1 << 31,
        _ => {}
    }
    let trailing = if pick(14, 8) == 0 {
        pick(15, 50) as usize
    } else {
        0
    };
    let mut payload = vec![0x5A; header.buffer_len() + trailing];
    let mut packet = Packet::new_unchecked(&mut payload[..]);
    header.emit(&mut packet);
    packet.write_i32((0..u64::from(header.count)).map(|i| mix(seed, step, 1000 + i) as i32));
    (Node::Worker(WorkerId(from)), payload)
}

/// How many of a wild job's packets the switches disagree on.
pub fn wild_differences(p4: P4Switch, seed: u64, steps: u64) -> (P4Switch, u64) {
    let config = chaotic(seed);
    let job = config.checked_job().expect("a job");
    let mut p4 = p4;
    p4.admit(job, Admission::Cleared);
    let mut both = Compare::new(job, p4, SlotSwitch::new(job));
    for step in 0..steps {
        let (from, payload) = wild(&job, seed, step);
        both.handle(step, from, &payload, &mut Vec::new());
    }
    both.first.assert_neighbours_untouched();
    let differences = both.mismatches.len() as u64;
    (both.first, differences)
}

#[test]
fn p4_and_rust_slots_agree_on_wild_updates() {
    for (arch, jobs) in [(Arch::Psa, 60), (Arch::V1model, 20), (Arch::Tna, 20)] {
        agree(arch, jobs);
    }
}

fn agree(arch: Arch, jobs: u64) {
    let since = Instant::now();
    let mut p4 = P4Switch::load(compile(arch, &[]));
    let steps = 600;
    for seed in 300_000..300_000 + jobs {
        let differences;
        (p4, differences) = wild_differences(p4, seed, steps);
        assert_eq!(differences, 0, "seed {seed}");
    }
    let counts = Outcome::ALL.map(|outcome| (outcome, p4.outcomes(outcome)));
    println!(
        "wild on {arch:?}: {counts:?}; {:.1} s",
        since.elapsed().as_secs_f64()
    );
    for (outcome, count) in counts {
        assert!(
            count > 15 || outcome == Outcome::Passed || outcome.is_of_deadlines(),
            "{outcome:?} is hardly met"
        );
    }
    let counted: u64 = counts.iter().map(|(_, count)| count).sum();
    assert_eq!(counted, jobs * steps, "each UPDATE has one outcome");
}
