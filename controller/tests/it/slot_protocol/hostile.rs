//! A job that forges: whatever it sends, nobody else's cells change, its frames reach nobody else's ranks in another's name,
//! and what it tried is counted by job and port.

use aggregation::Mark;
use aggregation::job::{ChunkId, Job, JobConfig, JobId};
use cluster::drawn::mix;
use controller::jobs::entries::{self, Summed};
use host_agent::frames::{Endpoint, Mac, build, group, mark, open, sum};
use parser_gen::{Arch, FrameValues, Options};
use pipeline::MeterConfig;
use scenario::plan::names::guard::{self, Guarded};
use std::net::Ipv4Addr;
use wire::{Flags, Kind, Packet, Repr};

use super::p4_switch::{ARCHS, CELLS, P4Switch, Patch, VALUES, compile_with};

/// Architectures that ask who may speak for a job.
const GUARDED: [Arch; 2] = [Arch::Psa, Arch::V1model];
const FORGER: u16 = 3;
/// A port that no job is behind.
const OUTSIDE: u32 = 50;

/// Two that are honest, with a slot between them that nobody has, and one that is not.
fn jobs() -> [Summed; 3] {
    let job = |number, base, window, ports: &[u32]| Summed {
        number,
        base,
        window,
        ports: ports.to_vec(),
        up: None,
        closes: false,
    };
    [
        job(1, 0, 8, &[10, 11]),
        job(2, 9, 16, &[20, 21, 22]),
        job(FORGER, 25, 8, &[30, 31]),
    ]
}

fn host(port: u32) -> Endpoint {
    let last = u8::try_from(port).expect("few");
    Endpoint {
        mac: Mac([2, 0, 0, 0, 1, last]),
        ip: Ipv4Addr::new(10, 0, 1, last),
    }
}

/// A switch with all jobs; with the guard, if it has one, and its deadlines.
fn switch_with(arch: Arch, guards: bool, patches: &[Patch], deadline: Option<u64>) -> P4Switch {
    let options = Options {
        aggregate: Some(FrameValues::V256),
        guards_jobs: guards,
        ..Options::default()
    };
    let mut p4 = P4Switch::load(compile_with(arch, &options, patches));
    let mut told = Vec::new();
    for job in jobs() {
        if guards {
            told.push(entries::lease(job.number, deadline));
            told.extend(job.senders());
        }
        told.extend(job.entries());
        told.extend(job.forwarding());
        for port in &job.ports {
            let mac = scenario::model::topology::Mac(host(*port).mac.0);
            told.push(entries::host(mac, *port));
        }
        p4.switch
            .set_multicast_group(&job.group())
            .expect("a group");
    }
    for entry in told {
        let inserted = p4.switch.insert_entry(&entry);
        inserted.unwrap_or_else(|error| panic!("{arch:?}: {entry:?}: {error}"));
    }
    p4
}

fn aggregation_job(of: &Summed) -> Job {
    let config = JobConfig {
        job: JobId(of.number),
        workers: of.ports.len() as u16,
        window: of.window,
        values_per_packet: VALUES as u16,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    };
    Job::new(config).expect("a job")
}

/// What a rank of a job sends of a chunk.
fn update(of: &Summed, rank: u16, chunk: u32) -> Vec<u8> {
    let job = aggregation_job(of);
    let header = Repr {
        kind: Kind::Update,
        flags: Flags::NONE.with(Flags::VERSION, job.version(ChunkId(chunk)).0),
        job: of.number,
        chunk,
        slot: job.slot(ChunkId(chunk)).0,
        worker: rank,
        transmission: 0,
        contributors: 1 << rank,
        scale: 130,
        next_scale: 120,
        count: VALUES as u16,
    };
    frame(
        host(of.ports[usize::from(rank)]),
        sum(of.number),
        &header,
        |i| value(rank, chunk, i),
    )
}

fn value(rank: u16, chunk: u32, index: u64) -> i32 {
    mix(u64::from(rank), u64::from(chunk), index) as i32 >> 4
}

fn frame(from: Endpoint, to: Endpoint, header: &Repr, value: impl Fn(u64) -> i32) -> Vec<u8> {
    let mut payload = vec![0; header.buffer_len()];
    let mut packet = Packet::new_unchecked(&mut payload[..]);
    header.emit(&mut packet);
    packet.write_i32((0..u64::from(header.count)).map(value));
    let mut frame = Vec::new();
    build(&mut frame, from, to, &payload);
    frame
}

/// Where the aggregation header begins.
const AGG: usize = 42;

/// A frame of somebody who means harm, the port that it comes by, and the job that it names.
fn forged(seed: u64, step: u64) -> (u32, u16, Vec<u8>) {
    let pick = |what: u64, options: u64| mix(seed, step, what) % options;
    let all = jobs();
    let job = match pick(1, 8) {
        0..3 => 1,
        3..5 => 2,
        5 => FORGER,
        // The same modulo 256 as a job, or any.
        6 => 257,
        _ => pick(2, 1 << 16) as u16,
    };
    let count = match pick(3, 4) {
        0 => VALUES as u16,
        1 => 0,
        _ => pick(4, VALUES as u64 + 1) as u16,
    };
    let chunk = match pick(5, 3) {
        0 => pick(6, 64) as u32,
        1 => (pick(6, 64) as u32).wrapping_sub(32),
        _ => pick(6, 1 << 32) as u32,
    };
    let window = if pick(7, 2) == 0 { 8 } else { 16 };
    let is_consistent = pick(8, 3) > 0;
    let header = Repr {
        kind: [
            Kind::Update,
            Kind::Update,
            Kind::Sum,
            Kind::Result,
            Kind::Ask,
            Kind::Here,
            Kind::Give,
            Kind::Given,
            Kind::Differ,
        ][pick(9, 9) as usize],
        flags: Flags::from_bits(pick(10, 256) as u8 & 0b0111_0011)
            .with(Flags::SCALE_ONLY, pick(11, 3) == 0)
            .with(Flags::PROBE, pick(12, 4) == 0)
            .with(
                Flags::VERSION,
                match is_consistent {
                    true => chunk / window % 2 == 1,
                    false => pick(13, 2) == 0,
                },
            ),
        job,
        chunk,
        slot: match is_consistent {
            true => (chunk % window) as u16,
            // Beyond its window are the cells of others, and the last of all.
            false => [
                pick(14, 64),
                pick(14, 1 << 16),
                (1 << 16) - 1 - pick(14, 32),
            ][pick(15, 3) as usize] as u16,
        },
        worker: pick(16, 4) as u16,
        transmission: 0,
        contributors: pick(17, 1 << 63),
        scale: pick(18, 256) as u8,
        next_scale: 255,
        count,
    };
    let to = match pick(19, 4) {
        0 => sum(1 + pick(20, 3) as u16),
        1 => group(1 + pick(20, 3) as u16),
        2 => {
            let asked = sum(1 + pick(20, 3) as u16);
            let mut mac = asked.mac;
            mac.0[0] = 0x06;
            Endpoint { mac, ..asked }
        }
        _ => host(all[pick(20, 2) as usize].ports[0]),
    };
    // Sometimes in another's name.
    let from = if pick(21, 3) == 0 { host(10) } else { host(30) };
    let port = [30, 31, OUTSIDE][pick(22, 3) as usize];
    (port, job, frame(from, to, &header, |_| i32::MAX))
}

/// All cells but those of the forger.
fn others(p4: &P4Switch) -> Vec<u128> {
    let cells = jobs().map(|job| 2 * u64::from(job.base)..2 * u64::from(job.base + job.window));
    let own = &cells[2];
    let all = p4.registers().into_iter().enumerate();
    all.filter(|(index, _)| !own.contains(&(*index as u64 % CELLS)))
        .map(|(_, value)| value)
        .collect()
}

/// Leaves each honest job in the middle: every rank but the last has given each of the first chunks.
fn begin(p4: &mut P4Switch) {
    for job in &jobs()[..2] {
        for chunk in 0..12 {
            for rank in 0..job.ports.len() as u16 - 1 {
                let sent = p4.send(0, job.ports[usize::from(rank)], &update(job, rank, chunk));
                assert_eq!(sent, [], "nothing is complete");
            }
        }
    }
}

/// What the last rank's updates make is the sum of all.
fn complete(p4: &mut P4Switch, arch: Arch) {
    for job in &jobs()[..2] {
        let ranks = job.ports.len() as u16;
        // A window has two versions of each slot: all of these are there still.
        for chunk in 0..12 {
            let last = ranks - 1;
            let sent = p4.send(0, job.ports[usize::from(last)], &update(job, last, chunk));
            let at: Vec<u32> = sent.iter().map(|(port, _)| *port).collect();
            assert_eq!(at, job.ports, "{arch:?}: the sum goes to all ranks");
            let packet = Packet::new_checked(&sent[0].1[AGG..]).expect("a SUM");
            let wanted = (0..VALUES as u64).map(|i| {
                (0..ranks).fold(0_i32, |sum, rank| sum.wrapping_add(value(rank, chunk, i)))
            });
            assert!(
                packet.values_i32().eq(wanted),
                "{arch:?}: chunk {chunk} is another sum"
            );
        }
    }
}

fn counted(p4: &P4Switch, job: u16, outcome: Guarded) -> u64 {
    let cell = guard::outcome_cell(job, outcome);
    let count = p4.switch.counter_read(guard::OUTCOMES, cell);
    count.expect("it counts").packets
}

const STEPS: u64 = 4000;

/// How often a cell of others differs after so many forged frames.
fn harm(mut p4: P4Switch, seed: u64) -> (P4Switch, bool) {
    begin(&mut p4);
    let before = others(&p4);
    for step in 0..STEPS {
        let (port, _, frame) = forged(seed, step);
        p4.send(0, port, &frame);
    }
    let differs = others(&p4) != before;
    (p4, differs)
}

/// The partition alone keeps slots apart, on every architecture: that needs no guard.
#[test]
fn no_cell_of_others_changes_whatever_is_forged() {
    for arch in ARCHS {
        for seed in 0..3 {
            let (mut p4, differs) = harm(switch_with(arch, false, &[], None), seed);
            assert!(
                !differs,
                "{arch:?}, seed {seed}: a cell of others has changed"
            );
            complete(&mut p4, arch);
        }
    }
}

/// Without any one of what keeps them apart, the same frames do harm: or the test before would prove nothing.
#[test]
fn the_frames_do_harm_where_a_rule_is_missing() {
    const AGGREGATE: &str = "common/aggregate.p4";
    let rules: [(&str, Patch); 2] = [
        (
            "slots beyond the window",
            (AGGREGATE, "if (hdr.agg.slot != slot) {", "if (false) {"),
        ),
        (
            "strangers",
            (
                AGGREGATE,
                "} else if (is_member == 0) {",
                "} else if (false) {",
            ),
        ),
    ];
    for (rule, patch) in rules {
        let does_harm =
            (0..3).any(|seed| harm(switch_with(Arch::Psa, false, &[patch], None), seed).1);
        assert!(does_harm, "{rule}: nothing was harmed");
    }
}

/// Frames of a guarded switch that reach a rank of others in its job's name.
fn deceived(arch: Arch, patches: &[Patch], seed: u64) -> (P4Switch, u64, [u64; 3]) {
    let mut p4 = switch_with(arch, true, patches, None);
    begin(&mut p4);
    let before = others(&p4);
    let (mut deceived, mut tried) = (0, [0; 3]);
    for step in 0..STEPS {
        let (port, job, frame) = forged(seed, step);
        let is_tried = matches!(job, 1 | 2) || (job == FORGER && port == OUTSIDE);
        if is_tried {
            tried[usize::from(job) - 1] += 1;
        }
        for (at, bytes) in p4.send(0, port, &frame) {
            let victim = jobs()[..2]
                .iter()
                .find(|job| job.ports.contains(&at))
                .map(|job| job.number);
            let named = u16::from_be_bytes([bytes[AGG + 2], bytes[AGG + 3]]);
            deceived += u64::from(victim == Some(named));
        }
    }
    assert!(
        others(&p4) == before,
        "{arch:?}, seed {seed}: a cell of others has changed"
    );
    (p4, deceived, tried)
}

#[test]
fn nobody_is_deceived_and_what_was_tried_is_counted_by_job_and_port() {
    for arch in GUARDED {
        for seed in 10..12 {
            let (mut p4, deceived, tried) = deceived(arch, &[], seed);
            assert_eq!(deceived, 0, "{arch:?}, seed {seed}");
            for (job, tried) in jobs().iter().zip(tried) {
                assert!(tried > 100, "{arch:?}: hardly tried on job {}", job.number);
                let strangers = counted(&p4, job.number, Guarded::Stranger);
                assert_eq!(strangers, tried, "{arch:?}, job {}", job.number);
                assert_eq!(counted(&p4, job.number, Guarded::Lapsed), 0);
                assert_eq!(counted(&p4, job.number, Guarded::OverRate), 0);
            }
            let by_port = |port| {
                p4.switch
                    .counter_read(guard::STRANGERS, port)
                    .expect("it counts")
                    .packets
            };
            let ports: Vec<u64> = (0..1024).filter(|port| by_port(*port) > 0).collect();
            assert_eq!(ports, [30, 31, u64::from(OUTSIDE)], "{arch:?}");
            assert_eq!(
                ports.into_iter().map(by_port).sum::<u64>(),
                tried.iter().sum::<u64>()
            );
            complete(&mut p4, arch);
        }
    }
}

/// The same datagram as the guard's parser may not know it: behind an option of IP, as a first fragment, as a later one.
fn disguised(frame: &[u8]) -> [Vec<u8>; 3] {
    let mut optioned = frame.to_vec();
    // No operation, four times.
    optioned.splice(34..34, [1; 4]);
    optioned[14] = 0x46;
    let length = u16::from_be_bytes([frame[16], frame[17]]) + 4;
    optioned[16..18].copy_from_slice(&length.to_be_bytes());
    let [mut first, mut later] = [frame.to_vec(), frame.to_vec()];
    first[20] = 0x20;
    later[21] = 3;
    let mut all = [optioned, first, later];
    for frame in &mut all {
        let end = 14 + 4 * usize::from(frame[14] & 0xf);
        frame[24..26].fill(0);
        let words = frame[14..end].as_chunks().0.iter().copied();
        let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(word))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
    all
}

/// What passes the guard in such a form is no frame to a rank, whose own `open` would take it else.
#[test]
fn what_is_disguised_deceives_nobody() {
    for arch in GUARDED {
        let mut p4 = switch_with(arch, true, &[], None);
        begin(&mut p4);
        let before = others(&p4);
        let (mut passed, mut plain) = (0, 0);
        for step in 0..STEPS {
            let (port, _, frame) = forged(20, step);
            for frame in disguised(&frame) {
                for (at, bytes) in p4.send(0, port, &frame) {
                    let victim = jobs()[..2].iter().any(|job| job.ports.contains(&at));
                    passed += u32::from(victim);
                    let taken = victim && open(&bytes, host(at)).is_some();
                    assert!(!taken, "{arch:?}, step {step}: {bytes:02x?}");
                }
            }
            // As it is a rank would take it, if it is for one.
            let at = jobs()[0].ports[0];
            plain += u32::from(open(&frame, host(at)).is_some());
        }
        assert!(passed > 100 && plain > 100, "{passed} {plain}");
        assert!(others(&p4) == before, "{arch:?}: a cell has changed");
        complete(&mut p4, arch);
    }
}

#[test]
fn without_the_guard_ranks_are_deceived() {
    let patch = (
        "common/job_guard.p4",
        "if (is_sender == 0) {",
        "if (false) {",
    );
    for arch in GUARDED {
        let (_, deceived, _) = deceived(arch, &[patch], 10);
        assert!(deceived > 100, "{arch:?}: {deceived}");
    }
}

/// How long a tick of its clock is, of a program that counts time.
fn tick_ns(arch: Arch) -> u64 {
    if arch == Arch::V1model { 1000 } else { 1 }
}

#[test]
fn a_lease_ends_on_the_switchs_clock() {
    for arch in GUARDED {
        let second = 1_000_000_000;
        let mut p4 = switch_with(arch, true, &[], Some(second / tick_ns(arch)));
        let [one, ..] = jobs();
        for (now_ns, chunk, outcome) in [
            (second - 2000, 0, Guarded::Passed),
            (second + 2000, 1, Guarded::Lapsed),
        ] {
            let before = counted(&p4, 1, outcome);
            let registers = p4.registers();
            assert_eq!(p4.send(now_ns, 10, &update(&one, 0, chunk)), []);
            assert_eq!(
                counted(&p4, 1, outcome),
                before + 1,
                "{arch:?}: {outcome:?}"
            );
            let is_summed = p4.registers() != registers;
            assert_eq!(is_summed, outcome == Guarded::Passed, "{arch:?}");
        }
    }
}

/// What passes is the burst and the rate, no more and, to a frame, no less; a job without a rate beside it loses nothing, and
/// strangers take none of it.
#[test]
fn a_job_is_held_to_its_rate_and_no_other() {
    const BYTES_A_SECOND: u64 = 1_000_000;
    const BURST: u64 = 20_000;
    for arch in GUARDED {
        let mut p4 = switch_with(arch, true, &[], None);
        let config = MeterConfig {
            cir: BYTES_A_SECOND,
            cburst: BURST,
            pir: BYTES_A_SECOND,
            pburst: BURST,
        };
        let set = p4
            .switch
            .meter_configure(guard::METERS, guard::cell(1), Some(config), 0);
        set.expect("a meter");
        let [one, two, _] = jobs();
        let frame = update(&one, 0, 0);
        let of_others = update(&two, 0, 0);
        // Ten times the rate, for a fifth of a second.
        let step_ns = frame.len() as u64 * 1_000_000_000 / (10 * BYTES_A_SECOND);
        let steps = 200_000_000 / step_ns;
        for step in 0..steps {
            p4.send(step * step_ns, 10, &frame);
            p4.send(step * step_ns, 20, &of_others);
            p4.send(step * step_ns, OUTSIDE, &frame);
        }
        let passed = counted(&p4, 1, Guarded::Passed);
        assert_eq!(
            passed + counted(&p4, 1, Guarded::OverRate),
            steps,
            "{arch:?}"
        );
        assert_eq!(counted(&p4, 1, Guarded::Stranger), steps, "{arch:?}");
        let allowed = (BURST + BYTES_A_SECOND / 5) / frame.len() as u64;
        assert!(
            passed.abs_diff(allowed) <= 1,
            "{arch:?}: {passed} of {allowed}"
        );
        assert_eq!(counted(&p4, 2, Guarded::Passed), steps, "{arch:?}");
    }
}

/// What is above the rate for a while is let through with a mark, in a header that is right; so the ranks, to whom the sum goes
/// by that header, send less before anything is dropped. What cannot be marked is not.
#[test]
fn what_is_near_the_rate_is_marked() {
    const UNMARKED: u64 = 5_000;
    const BURST: u64 = 20_000;
    for arch in GUARDED {
        for is_capable in [true, false] {
            let mut p4 = switch_with(arch, true, &[], None);
            let config = MeterConfig {
                cir: 1000,
                cburst: UNMARKED,
                pir: 1000,
                pburst: BURST,
            };
            let set = p4
                .switch
                .meter_configure(guard::METERS, guard::cell(1), Some(config), 0);
            set.expect("a meter");
            let [one, ..] = jobs();
            let mut frame = update(&one, 0, 0);
            p4.send(0, 11, &update(&one, 1, 0));
            // Every checksum comes up, and with it the one that has none below.
            let mut marks = [0, 0];
            let mut is_marked_before = false;
            for identification in 0..=u16::MAX {
                frame[18..20].copy_from_slice(&identification.to_be_bytes());
                if !is_capable {
                    frame[15] &= !3;
                }
                set_checksum(&mut frame);
                if identification % 50 == 0 {
                    let refilled =
                        p4.switch
                            .meter_configure(guard::METERS, guard::cell(1), Some(config), 0);
                    refilled.expect("a meter");
                    is_marked_before = false;
                }
                let sent = p4.send(0, 10, &frame);
                for (port, bytes) in sent {
                    open(&bytes, host(port)).expect("a header with a right checksum");
                    let is_marked = mark(&bytes) == Mark::Congested;
                    assert!(is_marked || !is_marked_before || !is_capable, "{arch:?}");
                    is_marked_before = is_marked;
                    marks[usize::from(is_marked)] += 1;
                }
            }
            assert!(marks[0] > 10_000, "{arch:?}: {marks:?}");
            assert_eq!(marks[1] > 10_000, is_capable, "{arch:?}: {marks:?}");
            assert!(counted(&p4, 1, Guarded::OverRate) > 1000, "{arch:?}");
        }
    }
}

/// That of the IPv4 header of a frame.
fn set_checksum(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let words = frame[14..34].as_chunks::<2>().0.iter();
    let mut sum: u32 = words.map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}
