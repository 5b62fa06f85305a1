//! Packets, one by one, through the P4 `Aggregate`: what each outcome does, and what touches nothing.

use super::p4_switch::{
    ARCHS, Admission, BASE, CELLS, FIRST_WORKER_PORT, Outcome, P4Switch, SERVER_PORT, VALUES,
    addressee, compile, endpoint, frame, port,
};
use aggregation::server::Mode;
use aggregation::{ChunkId, Job, JobId, WorkerId};
use cluster::drawn::mix;
use cluster::{Config, Node, SwitchModel};
use parser_gen::Arch;
use proptest::prelude::*;
use wire::{Flags, Kind, Packet, Repr};

const WORKERS: u16 = 3;
/// Bytes before the values.
const HEADERS: usize = 14 + 20 + 8 + wire::HEADER_LEN;

fn job() -> Job {
    let mut config = Config::new(0, WORKERS, Mode::Switch);
    config.job.job = JobId(0x0102);
    config.job.window = 4;
    config.job.values_per_packet = VALUES as u16;
    config.job.first_chunk = ChunkId(0);
    config.checked_job().expect("a job")
}

/// On the program of each architecture, with the job admitted.
fn on_each(test: impl Fn(Arch, P4Switch)) {
    for arch in ARCHS {
        let mut p4 = P4Switch::load(compile(arch, &[]));
        p4.admit(job(), Admission::Cleared);
        test(arch, p4);
    }
}

fn worker(rank: u16) -> Node {
    Node::Worker(WorkerId(rank))
}

fn header(rank: u16, chunk: u32) -> Repr {
    let chunk = ChunkId(chunk);
    Repr {
        kind: Kind::Update,
        flags: Flags::NONE.with(Flags::VERSION, job().version(chunk).0),
        job: job().id().0,
        chunk: chunk.0,
        slot: job().slot(chunk).0,
        worker: rank,
        transmission: 0,
        contributors: 1u64.checked_shl(rank.into()).unwrap_or(0),
        scale: 130,
        next_scale: 120u8.wrapping_add(rank as u8),
        count: VALUES as u16,
    }
}

fn values(rank: u16, chunk: u32) -> impl Iterator<Item = i32> {
    (0..VALUES as u64).map(move |i| mix(u64::from(rank), u64::from(chunk), i) as i32)
}

fn payload(header: Repr) -> Vec<u8> {
    let mut payload = vec![0; header.buffer_len()];
    let mut packet = Packet::new_unchecked(&mut payload[..]);
    header.emit(&mut packet);
    if header.count > 0 {
        packet.write_i32(values(header.worker, header.chunk));
    }
    payload
}

fn update(rank: u16, chunk: u32) -> Vec<u8> {
    frame(worker(rank), &payload(header(rank, chunk)))
}

/// Outcomes so far, by index.
fn counts(p4: &P4Switch) -> [u64; Outcome::ALL.len()] {
    Outcome::ALL.map(|outcome| p4.outcomes(outcome))
}

/// Sends a frame that one outcome counts, and no other.
fn send_counted(
    p4: &mut P4Switch,
    port: u32,
    frame: &[u8],
    outcome: Outcome,
) -> Vec<(u32, Vec<u8>)> {
    let mut expected = counts(p4);
    expected[outcome as usize] += 1;
    let sent = p4.send(0, port, frame);
    assert_eq!(counts(p4), expected, "{outcome:?}");
    sent
}

#[test]
fn each_outcome_is_counted_and_only_sums_leave() {
    on_each(|_, mut p4| {
        let mut send = |rank: u16, chunk: u32, outcome: Outcome| {
            send_counted(&mut p4, port(worker(rank)), &update(rank, chunk), outcome)
        };
        assert_eq!(send(0, 5, Outcome::Absorbed), []);
        assert_eq!(send(0, 5, Outcome::Duplicate), []);
        assert_eq!(send(2, 5, Outcome::Absorbed), []);
        let sum = send(1, 5, Outcome::Completed);
        let again = send(2, 5, Outcome::Again);
        // The next chunk of the cell, and then one before it.
        assert_eq!(send(1, 5 + 8, Outcome::Absorbed), []);
        assert_eq!(send(0, 5, Outcome::Stale), []);

        let expected: Vec<i32> = values(0, 5)
            .zip(values(1, 5))
            .zip(values(2, 5))
            .map(|((a, b), c)| a.wrapping_add(b).wrapping_add(c))
            .collect();
        for (sent, rank, flags) in [(sum, 1, Flags::NONE), (again, 2, Flags::AGAIN)] {
            let [(SERVER_PORT, bytes)] = &sent[..] else {
                panic!("{sent:02x?}")
            };
            let original = update(rank, 5);
            assert_eq!(bytes[..42], original[..42], "Ethernet, IPv4 and UDP stay");
            let payload = host_agent::frames::open(bytes, endpoint(Node::Server)).expect("opens");
            let packet = Packet::new_checked(payload).expect("a SUM");
            let wanted = Repr {
                kind: Kind::Sum,
                flags: flags | Flags::VERSION,
                contributors: 0b111,
                next_scale: 122,
                ..header(rank, 5)
            };
            assert_eq!(Repr::parse(&packet), wanted);
            assert_eq!(packet.values_i32().collect::<Vec<_>>(), expected);
        }
    });
}

#[test]
fn a_sum_leaves_without_a_udp_checksum() {
    on_each(|_, mut p4| {
        for rank in 0..WORKERS {
            let mut update = update(rank, 0);
            update[40..42].copy_from_slice(&[0xbe, 0xef]);
            for (_, sum) in p4.send(0, port(worker(rank)), &update) {
                assert_eq!(sum[40..42], [0, 0]);
            }
        }
        assert_eq!(p4.outcomes(Outcome::Completed), 1);
    });
}

#[test]
fn nobody_speaks_for_another_ports_worker() {
    on_each(|_, mut p4| {
        let before = p4.registers();
        let strangers = [
            SERVER_PORT,
            0,
            511,
            port(worker(1)),
            port(worker(2)),
            port(worker(9)),
        ];
        for at in strangers {
            assert_eq!(
                send_counted(&mut p4, at, &update(0, 0), Outcome::Foreign),
                []
            );
        }
        // A rank that the job does not have, from the port where it would be.
        let beyond = frame(worker(WORKERS), &payload(header(WORKERS, 0)));
        let at = port(worker(WORKERS));
        assert_eq!(send_counted(&mut p4, at, &beyond, Outcome::Foreign), []);
        assert!(
            p4.registers() == before,
            "a stranger's frame has touched a register"
        );
    });
}

#[test]
fn malformed_updates_touch_nothing() {
    let good = header(1, 6);
    let with = |change: fn(&mut Repr)| {
        let mut header = good;
        change(&mut header);
        payload(header)
    };
    let version = {
        let mut payload = payload(good);
        payload[0] = 1 << 4 | 1;
        payload
    };
    let cases = [
        ("slot", with(|h| h.slot ^= 1)),
        ("a slot beyond the window", with(|h| h.slot += 4)),
        (
            "version of the slot",
            with(|h| h.flags = h.flags.with(Flags::VERSION, false)),
        ),
        (
            "scale-only with values",
            with(|h| h.flags |= Flags::SCALE_ONLY),
        ),
        ("no values, but not scale-only", with(|h| h.count = 0)),
        ("255 values", with(|h| h.count = 255)),
        ("257 values", with(|h| h.count = 257)),
        ("protocol version 1", version),
        (
            "one byte short",
            payload(good)[..wire::FULL_LEN - 1].to_vec(),
        ),
        (
            "no byte of its values",
            payload(good)[..wire::HEADER_LEN].to_vec(),
        ),
    ];
    on_each(|_, mut p4| {
        let before = p4.registers();
        for (what, payload) in &cases {
            let sent = send_counted(
                &mut p4,
                port(worker(1)),
                &frame(worker(1), payload),
                Outcome::Malformed,
            );
            assert_eq!(sent, [], "{what}");
        }
        assert!(
            p4.registers() == before,
            "a malformed frame has touched a register"
        );
        // The one that they were made of is none of them.
        send_counted(
            &mut p4,
            port(worker(1)),
            &frame(worker(1), &payload(good)),
            Outcome::Absorbed,
        );
    });
}

/// To the server by its MAC, as they came, whoever sends them.
#[test]
fn what_is_not_a_known_jobs_update_passes() {
    on_each(|_, mut p4| {
        let before = p4.registers();
        let sum = payload(Repr {
            kind: Kind::Sum,
            ..header(1, 0)
        });
        let mut other_udp = update(1, 0);
        other_udp[36..38].copy_from_slice(&53u16.to_be_bytes());
        let mut tcp = update(1, 0);
        tcp[23] = 6;
        let mut fragment = update(1, 0);
        fragment[21] = 3;
        let mut unknown_kind = update(1, 0);
        unknown_kind[42] = 0x1f;
        let cases = [
            ("a SUM", frame(worker(1), &sum)),
            ("another UDP port", other_udp),
            ("TCP", tcp),
            ("a later fragment", fragment),
            ("an unknown kind", unknown_kind),
        ];
        for (what, frame) in cases {
            for at in [port(worker(1)), port(worker(7))] {
                assert_eq!(
                    p4.send(0, at, &frame),
                    [(SERVER_PORT, frame.clone())],
                    "{what}"
                );
            }
        }
        assert_eq!(counts(&p4), [0; Outcome::ALL.len()]);
        // Other jobs' UPDATEs are counted.
        for job in [0x0101, 0x0103, 0x0202, 0] {
            let frame = frame(
                worker(1),
                &payload(Repr {
                    job,
                    ..header(1, 0)
                }),
            );
            let sent = send_counted(&mut p4, port(worker(1)), &frame, Outcome::Passed);
            assert_eq!(sent, [(SERVER_PORT, frame)]);
        }
        assert!(
            p4.registers() == before,
            "a frame that passes has touched a register"
        );
    });
}

#[test]
fn results_reach_one_or_all_and_nobody_else() {
    on_each(|_, mut p4| {
        let result = |to: u16| {
            payload(Repr {
                kind: Kind::Result,
                contributors: 0b111,
                ..header(to, 0)
            })
        };
        let send = |p4: &mut P4Switch, to: u16| {
            let mut sent = Vec::new();
            p4.handle(0, Node::Server, &result(to), &mut sent);
            sent
        };
        assert_eq!(send(&mut p4, 2), [(worker(2), result(2))]);
        let to_all: Vec<_> = (0..WORKERS)
            .map(|rank| (worker(rank), result(wire::ALL_WORKERS)))
            .collect();
        assert_eq!(send(&mut p4, wire::ALL_WORKERS), to_all);
        assert_eq!(send(&mut p4, WORKERS), [], "nobody has that address");
        assert_eq!(
            addressee(&result(wire::ALL_WORKERS)),
            host_agent::frames::group(0x0102)
        );
        assert_eq!(counts(&p4), [0; Outcome::ALL.len()]);
    });
}

/// Any port, and those that somebody is at more often than others.
fn any_port() -> impl Strategy<Value = u32> {
    prop_oneof![
        0u32..512,
        FIRST_WORKER_PORT..FIRST_WORKER_PORT + u32::from(WORKERS),
        Just(SERVER_PORT),
        Just(pipeline::CPU_PORT),
        Just(pipeline::RECIRCULATE_PORT),
        any::<u32>(),
    ]
}

#[test]
fn garbage_and_cut_frames_touch_no_register() {
    on_each(|arch, p4| {
        let p4 = std::cell::RefCell::new(p4);
        let before = p4.borrow().registers();
        let whole = update(1, 0);
        // Every length that is not whole, from the port that would count.
        for end in 0..whole.len() {
            let sent = p4.borrow_mut().send(0, port(worker(1)), &whole[..end]);
            // With its header cut, it is not known to be an UPDATE, and passes by its MAC.
            let passes = (14..HEADERS).contains(&end);
            assert_eq!(sent.len(), usize::from(passes), "{end}");
        }
        proptest!(ProptestConfig { cases: test_support::cases(2000), failure_persistence: None, ..ProptestConfig::default() }, |(
            port in any_port(),
            garbage in proptest::collection::vec(any::<u8>(), 0..1200),
            head in 0usize..HEADERS,
            end in 0usize..HEADERS + 4 * VALUES,
        )| {
            // A packet of a Tofino's recirculation port begins with what the program put in front of it.
            let looped = arch == Arch::Tna && (68..72).contains(&(port & 0x7f));
            let port = if looped { SERVER_PORT } else { port };
            let mut p4 = p4.borrow_mut();
            p4.send(0, port, &garbage);
            // The beginning of an UPDATE, then garbage, but never all the values.
            let mut spliced = whole[..head].to_vec();
            spliced.extend(garbage.iter().take(1085 - head));
            p4.send(0, port, &spliced);
            p4.send(0, port, &whole[..end]);
        });
        let p4 = p4.into_inner();
        assert!(p4.registers() == before, "a register was touched");
        assert_eq!(
            p4.outcomes(Outcome::Absorbed) + p4.outcomes(Outcome::Completed),
            0
        );
        assert!(p4.outcomes(Outcome::Malformed) > 1000);
        assert_eq!(p4.switch.stats().out_of_steps, 0);
    });
}

#[test]
fn no_changed_bit_reaches_another_jobs_cells() {
    on_each(|_, mut p4| {
        for rank in 0..WORKERS {
            for bit in 0..HEADERS * 8 {
                let mut changed = update(rank, 0);
                changed[bit / 8] ^= 1 << (bit % 8);
                for at in [
                    port(worker(rank)),
                    port(worker((rank + 1) % WORKERS)),
                    SERVER_PORT,
                ] {
                    p4.send(0, at, &changed);
                }
            }
        }
        p4.assert_neighbours_untouched();
        let names = p4.register_names();
        let all = p4.registers();
        let (from, to) = (BASE - 1, BASE + job().cells() as u64);
        for (name, cells) in names.iter().zip(all.chunks(CELLS as usize)) {
            for (cell, value) in (0u64..).zip(cells) {
                assert!(
                    (from..=to).contains(&cell) || *value == 0,
                    "{name}[{cell}] is {value}"
                );
            }
        }
    });
}

#[test]
fn the_texts_of_all_architectures_compile() {
    for arch in [Arch::Psa, Arch::V1model, Arch::Tna] {
        compile(arch, &[]);
    }
}
