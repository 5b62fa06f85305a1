//! The RoCEv2 form of updates and sums: all-reduces over the P4 text, who registers and who has not, and frames of a hostile
//! rank.

use aggregation::job::{Job, WorkerId};
use cluster::ranks::{self, AllReduceConfig, RankEnd};
use cluster::{Faults, Node};
use host_agent::frames::{Mac, asking, build, open, sum};
use roce::Qpn;
use roce::packet::{Opcode, Operation, Packet, Reth, Service};
use scenario::plan::names::roce::{self as names, Outcome};
use wire::rdma::Immediate;
use wire::{Flags, Kind, Packet as Frame, Repr};

use super::all_reduce::{config, input};
use super::p4_switch::{VALUES, endpoint, node_at, port};
use super::roce_switch::{ROCE, RoceSwitch, SEND, Sent, Told, address, only, worker};

const VALUE_BYTES: usize = 4 * VALUES;

#[test]
fn all_ranks_have_the_sums_of_the_reference_by_roce() {
    const OPERATIONS: usize = 6;
    for arch in ROCE {
        let mut switch = RoceSwitch::new(arch);
        for seed in 0..25 {
            let config = config(seed);
            let job = Job::new(config.job).expect("a job");
            switch.admit(job, seed);
            let inputs = |operation: usize, rank: WorkerId| input(seed, operation, rank);
            let report = ranks::run(&config, &mut switch, OPERATIONS, &inputs).expect("a job");
            let done = report.ends.iter().all(|end| *end == RankEnd::Done);
            assert!(done, "{arch:?}, seed {seed}: {:?}", report.ends);
            let mut slots = ranks::RankSlotSwitch::new(job);
            let calm = AllReduceConfig {
                faults: Faults::NONE,
                ..config.clone()
            };
            let expected = ranks::run(&calm, &mut slots, OPERATIONS, &inputs).expect("a job");
            for (rank, sums) in report.sums.iter().enumerate() {
                assert_eq!(
                    *sums, expected.sums[0],
                    "{arch:?}, seed {seed}, rank {rank}"
                );
            }
            switch.p4.assert_neighbours_untouched();
        }
        let [updated, registered, refused @ ..] = switch.outcomes();
        assert!(updated > 5_000 && registered >= 50, "{arch:?}: {updated}");
        assert_eq!(refused, [0; 4], "{arch:?}");
        assert!(switch.written > 5_000, "{arch:?}: {}", switch.written);
    }
}

fn three() -> Job {
    let mut config = config(3).job;
    config.job = aggregation::JobId(0x0102);
    config.workers = 3;
    config.window = 4;
    config.first_chunk.0 = 0;
    Job::new(config).expect("a job")
}

/// An update of a rank in the other form: chunk 5, whose slot is 1, of values that are the rank's number and more.
fn update(job: &Job, rank: u16) -> Vec<u8> {
    let chunk = aggregation::ChunkId(5);
    let repr = Repr {
        kind: Kind::Update,
        flags: Flags::NONE.with(Flags::VERSION, job.version(chunk).0),
        job: job.id().0,
        chunk: chunk.0,
        slot: job.slot(chunk).0,
        worker: rank,
        transmission: 0,
        contributors: 1 << rank,
        scale: 130,
        next_scale: 120 + rank as u8,
        count: VALUES as u16,
    };
    let mut payload = vec![0; repr.buffer_len()];
    let mut frame = Frame::new_unchecked(&mut payload[..]);
    repr.emit(&mut frame);
    frame.write_i32((0..VALUES as i32).map(|value| value * 1_000 + i32::from(rank)));
    payload
}

#[test]
fn a_copy_for_a_rank_that_has_not_registered_has_the_other_form() {
    for arch in ROCE {
        let (job, mut switch) = (three(), RoceSwitch::new(arch));
        switch.admit_silent(job);
        switch.told = (0..3).map(|rank| Told::of(5, rank)).collect();
        let hello = Sent::hello(&job, 1, switch.told[1]).frame();
        let answers = switch.p4.send(0, port(worker(1)), &hello);
        switch.read(1, &answers[0].1);
        // Rank 0 speaks UDP, the others RDMA, and of them rank 2 has not told where it is.
        let mut frame = Vec::new();
        build(
            &mut frame,
            endpoint(worker(0)),
            sum(job.id().0),
            &update(&job, 0),
        );
        assert_eq!(switch.p4.send(0, port(worker(0)), &frame), []);
        let by_roce = |rank| Sent::update(&update(&job, rank), false).frame();
        assert_eq!(switch.p4.send(0, port(worker(1)), &by_roce(1)), []);
        let copies = switch.p4.send(0, port(worker(2)), &by_roce(2));
        assert_eq!(copies.len(), 3);
        for (at, bytes) in copies {
            let Node::Worker(rank) = node_at(at) else {
                panic!("port {at}");
            };
            let values: Vec<u8> = if rank.0 == 1 {
                let written = switch.read(1, &bytes);
                assert_eq!(written.immediate, Immediate::new(Flags::NONE, 130, 122, 5));
                assert_eq!(written.reth.address, switch.told[1].target.base + 3 * 1040);
                written.payload
            } else {
                assert_eq!(
                    Mac(bytes[..6].try_into().unwrap()),
                    endpoint(worker(rank.0)).mac
                );
                let payload = open(&bytes, endpoint(worker(rank.0))).expect("opens");
                let repr = Repr::parse(&Frame::new_checked(payload).expect("a SUM"));
                assert_eq!((repr.kind, repr.contributors), (Kind::Sum, 0b111));
                payload[wire::HEADER_LEN..].to_vec()
            };
            let expected = (0..VALUES as i32).flat_map(|v| (v * 3_000 + 3).to_be_bytes());
            assert_eq!(values, expected.collect::<Vec<u8>>());
        }
        // Who asks by UDP is answered so, whatever it has registered; and no number of its queue pair is used up.
        let me = endpoint(worker(1));
        build(&mut frame, me, asking(job.id().0, me), &update(&job, 1));
        let told = switch.p4.send(0, port(worker(1)), &frame);
        let [(at, bytes)] = &told[..] else {
            panic!("{told:02x?}");
        };
        assert_eq!(*at, port(worker(1)));
        let answer =
            Repr::parse(&Frame::new_checked(open(bytes, me).expect("opens")).expect("a SUM"));
        assert_eq!((answer.kind, answer.contributors), (Kind::Sum, 0b111));
        let question = Sent::update(&update(&job, 1), true).frame();
        let told = switch.p4.send(0, port(worker(1)), &question);
        switch.read(1, &told[0].1);
    }
}

/// All four flags of an immediate are those of a registration's answer.
#[test]
fn no_probe_is_answered_as_a_registration_is() {
    for arch in ROCE {
        let (job, mut switch) = (three(), RoceSwitch::new(arch));
        switch.admit(job, 1);
        let no_numbers = |rank: u16| {
            let mut payload = update(&job, rank);
            Frame::new_unchecked(&mut payload[..]).set_flags(
                Flags::NONE.with(Flags::VERSION, job.version(aggregation::ChunkId(5)).0)
                    | Flags::NON_FINITE,
            );
            payload
        };
        for rank in 0..3 {
            let sent = Sent::update(&no_numbers(rank), false).frame();
            for (at, bytes) in switch.p4.send(0, port(worker(rank)), &sent) {
                let Node::Worker(to) = node_at(at) else {
                    panic!("port {at}");
                };
                let written = switch.read(to.0, &bytes);
                assert_eq!(
                    written.immediate.bytes()[0] & 0x80,
                    0x80,
                    "it is told of values"
                );
            }
        }
        let mut probe = Sent::update(&update(&job, 0), true);
        probe.payload.clear();
        probe.header.reth.as_mut().expect("a WRITE").len = 0;
        probe.header.immediate.as_mut().expect("one")[0] |= 0x30;
        let told = switch.p4.send(0, port(worker(0)), &probe.frame());
        let written = switch.read(0, &told[0].1);
        assert_eq!(written.immediate.bytes()[0] & 0xF0, 0x70, "{arch:?}");
        assert!(!written.immediate.is_registered());
        // Nor does anybody say so of what has no values.
        probe.header.immediate.as_mut().expect("one")[0] |= 0x80;
        switch.assert_refused(
            port(worker(0)),
            &probe.frame(),
            Outcome::Malformed,
            "no numbers of nothing",
        );
    }
}

#[test]
fn a_rank_that_registers_anew_is_written_to_where_it_says() {
    for arch in ROCE {
        let (job, mut switch) = (three(), RoceSwitch::new(arch));
        switch.admit(job, 1);
        let old = switch.told[0];
        assert_ne!(old.psn, Told::of(1, 0).psn, "numbers went on");
        let new = Told::of(2, 0);
        switch.told[0] = new;
        let hello = Sent::hello(&job, 0, new).frame();
        let answers = switch.p4.send(0, port(worker(0)), &hello);
        assert_eq!(
            switch.read(0, &answers[0].1).reth.address,
            new.target.base - 16
        );
        // And a late copy of what it told before is believed: whoever tells last counts, and ranks tell until they are answered.
        switch.told[0] = Told::of(1, 0);
        let late = Sent::hello(&job, 0, switch.told[0]).frame();
        let answers = switch.p4.send(0, port(worker(0)), &late);
        switch.read(0, &answers[0].1);
    }
}

#[test]
fn nobody_speaks_for_another_rank() {
    for arch in ROCE {
        let (job, mut switch) = (three(), RoceSwitch::new(arch));
        switch.admit(job, 1);
        let (own, before) = (port(worker(0)), switch.p4.registers());
        let good = Sent::update(&update(&job, 0), false);
        for at in [port(worker(1)), 1, 0, 511] {
            switch.assert_refused(at, &good.frame(), Outcome::Stranger, "another port");
        }
        let hello = Sent::hello(&job, 0, Told::of(9, 0)).frame();
        switch.assert_refused(port(worker(1)), &hello, Outcome::Stranger, "a hello");
        for qpn in [
            0,
            1,
            names::qpn(0x0102, 1),
            names::qpn(0x0102, 3),
            names::qpn(0x0103, 0),
        ] {
            let mut sent = good.clone();
            sent.header.destination = Qpn::new(qpn);
            switch.assert_refused(own, &sent.frame(), Outcome::Stranger, "another number");
        }
        assert!(
            switch.p4.registers() == before,
            "{arch:?}: no slot has changed"
        );
        // A SUM that a rank makes itself is not written to another.
        let mut forged = update(&job, 0);
        forged[0] = forged[0] & 0xF0 | Kind::Sum as u8;
        let mut frame = Vec::new();
        build(
            &mut frame,
            endpoint(worker(0)),
            endpoint(worker(1)),
            &forged,
        );
        assert_eq!(
            switch.p4.send(0, own, &frame),
            [(port(worker(1)), frame.clone())]
        );
        // Nor is the answer to a question of one who says that it is another.
        let mut probe = Sent::update(&update(&job, 0), true);
        probe.route.from = address(worker(1));
        probe.payload.clear();
        probe.header.reth.as_mut().expect("a WRITE").len = 0;
        probe.header.immediate.as_mut().expect("one")[0] |= 0x20;
        let told = switch.p4.send(0, own, &probe.frame());
        let [(at, bytes)] = &told[..] else {
            panic!("{told:02x?}");
        };
        assert_eq!(*at, own);
        assert!(Packet::parse(bytes).is_err(), "it has the other form");
        assert_eq!(
            switch.p4.send(0, own, &good.frame()),
            [],
            "what is right is taken"
        );
        assert_eq!(switch.outcomes()[0], 2);
    }
}

/// Every part of a packet is covered by the ICRC: each word but what may change on the way.
#[test]
fn a_packet_that_was_changed_is_dropped() {
    for arch in ROCE {
        let (job, mut switch) = (three(), RoceSwitch::new(arch));
        switch.admit(job, 1);
        let own = port(worker(0));
        let whole = Sent::update(&update(&job, 0), false).frame();
        let mut wrong = 0;
        for at in (14 + 8 + 4..whole.len()).step_by(4) {
            // UDP's port and checksum: another protocol's packet, and what may change.
            if at == 34 || at == 38 {
                continue;
            }
            let mut frame = whole.clone();
            frame[at + 3] ^= 0x10;
            let before = switch.outcomes();
            assert_eq!(switch.p4.send(0, own, &frame), [], "{at}");
            let after = switch.outcomes();
            assert_eq!(after[0], before[0], "{arch:?}, byte {at}");
            let icrc = Outcome::WrongIcrc as usize;
            let is_seen = after[icrc] == before[icrc] + 1;
            wrong += u64::from(is_seen);
            // A header that is no longer an update's is seen before.
            assert!(is_seen || at < 14 + 20 + 8 + 12 + 16, "{arch:?}, byte {at}");
        }
        assert!(wrong > 260, "{arch:?}: {wrong}");
        // What may change on the way does not matter.
        let mut late = whole;
        late[22] -= 1;
        late[15] |= 3;
        assert_eq!(switch.p4.send(0, own, &late), []);
        assert_eq!(switch.outcomes()[0], 1, "{arch:?}");
    }
}

/// A change of a packet.
type Change<'c> = &'c dyn Fn(&mut Sent);

#[test]
fn what_is_no_update_and_no_registration_is_dropped() {
    for arch in ROCE {
        let (job, mut switch) = (three(), RoceSwitch::new(arch));
        switch.admit(job, 1);
        let (own, before) = (port(worker(0)), switch.p4.registers());
        let good = Sent::update(&update(&job, 0), false);
        let mut refused = |good: &Sent, outcome: Outcome, change: Change<'_>| {
            let mut sent = good.clone();
            change(&mut sent);
            let what = format!(
                "{arch:?} {:02x?}",
                &sent.frame()[14..90.min(sent.frame().len())]
            );
            switch.assert_refused(own, &sent.frame(), outcome, &what);
        };
        fn reth(sent: &mut Sent) -> &mut Reth {
            sent.header.reth.as_mut().expect("a WRITE")
        }
        fn flags(sent: &mut Sent) -> &mut u8 {
            &mut sent.header.immediate.as_mut().expect("one")[0]
        }
        let malformed: [Change<'_>; 15] = [
            &|sent| reth(sent).rkey ^= 1 << 20,
            // An address within a chunk, beyond all that it says, of another chunk or scale than the immediate.
            &|sent| reth(sent).address += 4,
            &|sent| reth(sent).address |= 1 << 58,
            &|sent| reth(sent).address += 1024,
            &|sent| reth(sent).address ^= 1 << 42,
            // A length that is not there.
            &|sent| reth(sent).len = 0,
            &|sent| reth(sent).len = 2048,
            // No values, and it does not say so.
            &|sent| {
                sent.payload.clear();
                reth(sent).len = 0;
            },
            // Values, and it says that there are none.
            &|sent| *flags(sent) |= 0x20,
            &|sent| *flags(sent) |= 0x10,
            &|sent| sent.payload.truncate(VALUE_BYTES - 4),
            &|sent| sent.payload.extend([0; 4]),
            &|sent| sent.payload.truncate(VALUE_BYTES - 1),
            &|sent| sent.header.pkey = 0x7FFF,
            // A registration's operation.
            &|sent| sent.header.opcode = SEND,
        ];
        for change in malformed {
            refused(&good, Outcome::Malformed, change);
        }
        let hello = Sent::hello(&job, 0, Told::of(9, 0));
        let malformed: [Change<'_>; 9] = [
            &|hello| hello.payload[0] ^= 1,
            &|hello| hello.payload[4] = 2,
            // Another worker, another job, a number and a PSN beyond 24 bits, none, another window, longer.
            &|hello| hello.payload[5] = 1,
            &|hello| hello.payload[7] ^= 1,
            &|hello| hello.payload[8] = 1,
            &|hello| hello.payload[12] = 1,
            &|hello| hello.payload[12..16].fill(0),
            &|hello| hello.payload[31] ^= 3,
            &|hello| hello.payload.extend([0; 4]),
        ];
        for change in malformed {
            refused(&hello, Outcome::Malformed, change);
        }
        let others: [Change<'_>; 4] = [
            &|sent| sent.header.opcode = only(Service::Unreliable, Operation::Write, false),
            &|sent| sent.header.opcode = only(Service::Reliable, Operation::Write, true),
            &|sent| sent.header.opcode = only(Service::Unreliable, Operation::Send, true),
            &|sent| {
                sent.header.opcode = Opcode::Cnp;
                sent.payload = vec![0; 16];
            },
        ];
        for change in others {
            refused(&good, Outcome::Other, change);
        }
        let whole = good.frame();
        for cut in [42, 43, 54, 60, 74, 80, 1000, whole.len() - 1] {
            switch.assert_refused(own, &whole[..cut], Outcome::Malformed, "cut short");
        }
        // A key that is not the chunk's slot is for `Aggregate` to find.
        let mut foreign = good;
        foreign.header.reth.as_mut().expect("a WRITE").rkey ^= 2;
        assert_eq!(switch.p4.send(0, own, &foreign.frame()), []);
        assert_eq!(switch.p4.outcomes(super::p4_switch::Outcome::Malformed), 1);
        assert!(
            switch.p4.registers() == before,
            "{arch:?}: no slot has changed"
        );
    }
}
