//! The RoCEv2 form of updates and sums: all-reduces over the P4 text, whose packets `roce` makes and takes, and frames of a
//! hostile rank. What the packets mean is said here once more, from docs/rdma.md.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use aggregation::Destination;
use aggregation::job::{Job, WorkerId};
use cluster::Node;
use cluster::ranks::{self, Config, RankEnd, RankSwitch};
use cluster::{Faults, drawn::pick};
use controller::jobs::contacts::{self, Contact};
use host_agent::frames::{Mac, build, open, sum};
use parser_gen::{Arch, FrameValues, Options};
use roce::packet::{
    Address, Ecn, Header, MAX_FRAME_LEN, Opcode, Operation, Packet, Position, Reth, Route, Service,
    emit,
};
use roce::{Psn, Qpn};
use scenario::names::roce::{self as names, Outcome};
use wire::{Flags, Kind, Packet as Frame, Repr};

use crate::all_reduce::{config, input};
use crate::p4_switch::{Admission, P4Switch, VALUES, compile_with, endpoint, node_at, port};

/// Architectures whose program sums RoCEv2.
const ROCE: [Arch; 2] = [Arch::Psa, Arch::V1model];
const PKEY: u16 = 0xFFFF;
/// The operations that the switch takes, and the one that it sends.
const SEND: Opcode = only(Service::Unreliable, Operation::Send, false);
const WRITE: Opcode = only(Service::Unreliable, Operation::Write, true);
const VALUE_BYTES: usize = 4 * VALUES;
/// The number of rank 0's queue pair in the switch's registers.
const FIRST_CONTACT: u32 = 7;

const fn only(service: Service, operation: Operation, immediate: bool) -> Opcode {
    Opcode::Data {
        service,
        operation,
        position: Position::Only,
        immediate,
    }
}

fn load(arch: Arch) -> P4Switch {
    let options = Options {
        aggregate: Some(FrameValues::V256),
        sums_roce: true,
        ..Options::default()
    };
    P4Switch::load(compile_with(arch, &options, &[]))
}

/// A rank's queue pair and region, as it tells the switch.
#[derive(Debug, Clone, Copy)]
struct Told {
    qpn: u32,
    psn: u32,
    base: u64,
    rkey: u32,
}

impl Told {
    fn of(seed: u64, rank: u16) -> Told {
        let draw =
            |what: u64, options: u64| pick(seed, 0x40CE, what + 8 * u64::from(rank), options);
        Told {
            qpn: 2 + draw(1, 0xFF_FF00) as u32,
            // Numbers wrap in some.
            psn: (draw(2, 0x40) as u32).wrapping_sub(0x20) & 0xFF_FFFF,
            base: draw(3, 1 << 40) << 12,
            rkey: draw(4, 1 << 32) as u32,
        }
    }
}

fn address(node: Node) -> Address {
    let endpoint = endpoint(node);
    Address {
        mac: endpoint.mac.0,
        ip: endpoint.ip,
    }
}

fn worker(rank: u16) -> Node {
    Node::Worker(WorkerId(rank))
}

/// A packet of a rank to the switch.
#[derive(Debug, Clone)]
struct Sent {
    route: Route,
    header: Header,
    payload: Vec<u8>,
}

impl Sent {
    fn new(job: u16, rank: u16, opcode: Opcode) -> Sent {
        let low = job as u8;
        Sent {
            route: Route {
                from: address(worker(rank)),
                to: Address {
                    mac: [2, 0, 0x5e, 0x57, 0x45, low],
                    ip: Ipv4Addr::new(239, 87, 69, low),
                },
                source_port: 0xC123,
                dscp: 0,
                ecn: Ecn::Capable,
            },
            header: Header::new(opcode, PKEY, Qpn::new(names::qpn(job, rank)), Psn::new(99)),
            payload: Vec::new(),
        }
    }

    fn hello(job: &Job, rank: u16, told: Told) -> Sent {
        let mut sent = Sent::new(job.id().0, rank, SEND);
        let mut payload = b"WEIR\x01".to_vec();
        payload.push(rank as u8);
        payload.extend(job.id().0.to_be_bytes());
        payload.extend(told.qpn.to_be_bytes());
        payload.extend(told.psn.to_be_bytes());
        payload.extend(told.base.to_be_bytes());
        payload.extend(told.rkey.to_be_bytes());
        payload.extend(job.window().to_be_bytes());
        sent.payload = payload;
        sent
    }

    /// An update in the other form.
    fn update(payload: &[u8], is_question: bool) -> Sent {
        let frame = Frame::new_checked(payload).expect("an update");
        let repr = Repr::parse(&frame);
        let mut sent = Sent::new(repr.job, repr.worker, WRITE);
        let flag = |flag| u32::from(repr.flags.contains(flag));
        let flags = flag(Flags::NON_FINITE) << 3
            | flag(Flags::AGAIN) << 2
            | flag(Flags::PROBE) << 1
            | flag(Flags::SCALE_ONLY);
        let immediate = flags << 28
            | u32::from(repr.scale & 15) << 24
            | u32::from(repr.next_scale) << 16
            | repr.chunk & 0xFFFF;
        sent.header.immediate = Some(immediate.to_be_bytes());
        sent.header.reth = Some(Reth {
            address: u64::from(is_question) << 63 | u64::from(repr.chunk) << 10,
            rkey: 0x2BA2 << 17 | u32::from(repr.slot) << 1 | flag(Flags::VERSION),
            len: 4 * u32::from(repr.count),
        });
        sent.payload = payload[wire::HEADER_LEN..].to_vec();
        sent
    }

    fn frame(&self) -> Vec<u8> {
        let mut buffer = vec![0; MAX_FRAME_LEN];
        let len = emit(
            &mut buffer,
            &self.route,
            &self.header,
            self.payload.len(),
            |to| {
                to.copy_from_slice(&self.payload);
                Ok::<(), ()>(())
            },
        );
        buffer.truncate(len.expect("fits"));
        buffer
    }
}

/// What the switch wrote to a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Written {
    reth: Reth,
    immediate: u32,
    payload: Vec<u8>,
}

/// A switch that ranks reach by RoCEv2 alone.
struct RoceSwitch {
    p4: P4Switch,
    told: Vec<Told>,
    /// The scale with which a rank sent a chunk last.
    scales: HashMap<(u16, u32), u8>,
    written: u64,
}

impl RoceSwitch {
    fn new(arch: Arch) -> RoceSwitch {
        RoceSwitch {
            p4: load(arch),
            told: Vec::new(),
            scales: HashMap::new(),
            written: 0,
        }
    }

    /// Takes the last job out, admits this one, and has all ranks register.
    fn admit(&mut self, job: Job, seed: u64) {
        self.admit_silent(job);
        self.told = (0..job.workers())
            .map(|rank| Told::of(seed, rank))
            .collect();
        for rank in 0..job.workers() {
            let told = self.told[usize::from(rank)];
            // Twice: the first answer may have been lost.
            for _ in 0..2 {
                let hello = Sent::hello(&job, rank, told).frame();
                let answers = self.p4.send(0, port(worker(rank)), &hello);
                let [(at, bytes)] = &answers[..] else {
                    panic!("{answers:02x?}");
                };
                assert_eq!(*at, port(worker(rank)));
                let written = self.read(rank, bytes);
                assert_eq!(written.reth.address, told.base);
                assert_eq!(written.immediate, 0xF000_0000 | told.psn & 0xFFFF);
                let all = (1_u64 << job.workers()) - 1;
                assert_eq!(written.payload, all.to_be_bytes());
            }
        }
    }

    /// The same, and nobody has registered yet.
    fn admit_silent(&mut self, job: Job) {
        self.p4.admit(job, Admission::LeftBehind);
        for number in 0..u64::from(job.workers()) {
            let index = u64::from(FIRST_CONTACT) + number;
            let forgotten = self
                .p4
                .switch
                .register_write(names::QPNS, index, &[0_u128.into()]);
            forgotten.expect("a register");
        }
        let contacts = (0..job.workers()).map(|rank| Contact {
            number: FIRST_CONTACT + u32::from(rank),
            port: port(worker(rank)),
            mac: scenario::topology::Mac(endpoint(worker(rank)).mac.0),
            ip: endpoint(worker(rank)).ip,
        });
        let contacts: Vec<Contact> = contacts.collect();
        for entry in contacts::entries(job.id().0, job.window(), &contacts) {
            self.p4.tell(entry);
        }
        self.told.clear();
        self.scales.clear();
    }

    /// A packet to a rank, which has to be the next of its queue pair, from the switch's address.
    fn read(&mut self, rank: u16, bytes: &[u8]) -> Written {
        let packet = Packet::parse(bytes).unwrap_or_else(|error| panic!("{error}: {bytes:02x?}"));
        let told = &mut self.told[usize::from(rank)];
        let low = self.p4.job().id().0 as u8;
        let (route, header) = (packet.route(), packet.header());
        assert_eq!(route.to, address(worker(rank)));
        assert_eq!(route.from.mac, [2, 0, 0x5e, 0x57, 0x45, low]);
        assert_eq!(route.from.ip, Ipv4Addr::new(239, 87, 69, low));
        assert_eq!(header.opcode, WRITE);
        assert_eq!(header.destination, Qpn::new(told.qpn));
        assert_eq!(header.pkey, PKEY);
        assert_eq!(header.psn, Psn::new(told.psn));
        told.psn = (told.psn + 1) & 0xFF_FFFF;
        let reth = header.reth.expect("a WRITE");
        assert_eq!(reth.rkey, told.rkey);
        assert_eq!(reth.len as usize, packet.payload().len());
        self.written += 1;
        Written {
            reth,
            immediate: u32::from_be_bytes(header.immediate.expect("a WRITE with immediate")),
            payload: packet.payload().to_vec(),
        }
    }

    /// What a rank makes of it: the frame of the other form.
    fn payload(&self, rank: u16, written: &Written) -> Vec<u8> {
        let job = self.p4.job();
        let told = self.told[usize::from(rank)];
        let flag = |bit: u32| written.immediate >> bit & 1 == 1;
        let low = written.immediate & 0xFFFF;
        let mut sent = self.scales.iter();
        let sent = sent.find(|((of, chunk), _)| *of == rank && chunk & 0xFFFF == low);
        let ((_, chunk), scale) = sent.expect("a rank has sent what it is answered");
        let chunk = aggregation::ChunkId(*chunk);
        let (slot, version) = (job.slot(chunk).0, job.version(chunk).0);
        let place = 2 * u64::from(slot) + u64::from(version);
        assert_eq!(written.reth.address, told.base.wrapping_add(1024 * place));
        let (probe, scale_only) = (flag(29), flag(28));
        let mut contributors = (1_u64 << job.workers()) - 1;
        if probe {
            contributors = u64::from_be_bytes(written.payload[..].try_into().expect("a bitmap"));
        }
        let nibble = (written.immediate >> 24 & 15) as u8;
        let repr = Repr {
            kind: Kind::Sum,
            flags: Flags::NONE
                .with(Flags::NON_FINITE, flag(31))
                .with(Flags::AGAIN, flag(30))
                .with(Flags::PROBE, probe)
                .with(Flags::SCALE_ONLY, scale_only)
                .with(Flags::VERSION, version),
            job: job.id().0,
            chunk: chunk.0,
            slot,
            worker: rank,
            transmission: 0,
            contributors,
            scale: if scale & 15 == nibble { *scale } else { nibble },
            next_scale: (written.immediate >> 16) as u8,
            count: if probe || scale_only {
                0
            } else {
                VALUES as u16
            },
        };
        let mut payload = vec![0; repr.buffer_len()];
        repr.emit(&mut Frame::new_unchecked(&mut payload[..]));
        if repr.count > 0 {
            payload[wire::HEADER_LEN..].copy_from_slice(&written.payload);
        }
        payload
    }

    fn outcomes(&self) -> [u64; 6] {
        [
            Outcome::Updated,
            Outcome::Registered,
            Outcome::Stranger,
            Outcome::WrongIcrc,
            Outcome::Malformed,
            Outcome::Other,
        ]
        .map(|outcome| {
            let read = self.p4.switch.counter_read(names::OUTCOMES, outcome as u64);
            read.expect("Tally counts").packets
        })
    }

    /// Sends a frame that is dropped, and counted as this.
    fn assert_refused(&mut self, at: u32, frame: &[u8], outcome: Outcome, what: &str) {
        let (mut expected, before) = (self.outcomes(), self.p4.registers());
        expected[outcome as usize] += 1;
        assert_eq!(self.p4.send(0, at, frame), [], "{what}");
        assert_eq!(self.outcomes(), expected, "{what}");
        assert!(self.p4.registers() == before, "{what}");
    }
}

impl RankSwitch for RoceSwitch {
    fn handle(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    ) {
        let is_question = match to {
            Destination::All => false,
            Destination::Worker(rank) if rank == from => true,
            // Ranks speak to each other in the other form.
            Destination::Worker(_) | Destination::Server => {
                return RankSwitch::handle(&mut self.p4, now_ns, from, to, payload, out);
            }
        };
        let repr = Repr::parse(&Frame::new_checked(payload).expect("a frame"));
        let scale = if repr.flags.contains(Flags::PROBE) {
            self.scales.get(&(from.0, repr.chunk)).copied().unwrap_or(0)
        } else {
            repr.scale
        };
        self.scales.insert((from.0, repr.chunk), scale);
        let frame = Sent::update(payload, is_question).frame();
        for (at, bytes) in self.p4.send(now_ns, port(Node::Worker(from)), &frame) {
            let Node::Worker(rank) = node_at(at) else {
                panic!("there is no server: {bytes:02x?}");
            };
            let written = self.read(rank.0, &bytes);
            out.push((rank, self.payload(rank.0, &written)));
        }
    }
}

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
            let mut slots = ranks::SlotSwitch::new(job);
            let calm = Config {
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
                assert_eq!(written.immediate, (130 & 15) << 24 | 122 << 16 | 5);
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
        assert_eq!(switch.read(0, &answers[0].1).reth.address, new.base);
        // And a late copy of what it told before is believed: whoever tells last counts, and ranks tell until they are answered.
        switch.told[0] = Told::of(1, 0);
        let late = Sent::hello(&job, 0, switch.told[0]).frame();
        let answers = switch.p4.send(0, port(worker(0)), &late);
        switch.read(0, &answers[0].1);
    }
}

#[test]
fn what_is_not_a_ranks_own_is_dropped_and_counted() {
    for arch in ROCE {
        let (job, mut switch) = (three(), RoceSwitch::new(arch));
        switch.admit(job, 1);
        let own = port(worker(0));
        let good = Sent::update(&update(&job, 0), false);
        let mut refused = |what: &str, at: u32, frame: Vec<u8>, outcome: Outcome| {
            switch.assert_refused(at, &frame, outcome, what);
        };
        let changed = |change: &dyn Fn(&mut Sent)| {
            let mut sent = good.clone();
            change(&mut sent);
            sent.frame()
        };
        let reth = |change: &dyn Fn(&mut Reth)| {
            changed(&|sent| change(sent.header.reth.as_mut().expect("a WRITE")))
        };

        for at in [port(worker(1)), 1, 0, 511] {
            refused("another port", at, good.frame(), Outcome::Stranger);
        }
        let of = |qpn: u32| changed(&|sent| sent.header.destination = Qpn::new(qpn));
        for qpn in [
            0,
            1,
            names::qpn(0x0102, 1),
            names::qpn(0x0102, 3),
            names::qpn(0x0103, 0),
        ] {
            refused("another number", own, of(qpn), Outcome::Stranger);
        }
        // Every part of the packet is covered: each word but what may change on the way.
        let whole = good.frame();
        for at in (14 + 8 + 4..whole.len()).step_by(4) {
            let mut frame = whole.clone();
            frame[at + 3] ^= 0x10;
            let before = switch.outcomes();
            assert_eq!(switch.p4.send(0, own, &frame), [], "{at}");
            let after = switch.outcomes();
            let wrong = Outcome::WrongIcrc as usize;
            let is_seen = after[wrong] == before[wrong] + 1;
            // A header that is no longer the packet's is seen before.
            assert!(is_seen || at < 14 + 20 + 8 + 12 + 16, "{arch:?}, byte {at}");
            assert_eq!(after[0], before[0], "{arch:?}, byte {at}");
        }
        let mut refused = |what: &str, at: u32, frame: Vec<u8>, outcome: Outcome| {
            switch.assert_refused(at, &frame, outcome, what);
        };
        let malformed = Outcome::Malformed;
        refused(
            "a key of another kind",
            own,
            reth(&|r| r.rkey ^= 1 << 20),
            malformed,
        );
        refused(
            "an address within a chunk",
            own,
            reth(&|r| r.address += 4),
            malformed,
        );
        refused(
            "an address beyond chunks",
            own,
            reth(&|r| r.address |= 1 << 50),
            malformed,
        );
        refused(
            "another chunk's immediate",
            own,
            reth(&|r| r.address += 1024),
            malformed,
        );
        refused(
            "a length that is not there",
            own,
            reth(&|r| r.len = 0),
            malformed,
        );
        refused(
            "no values, not said",
            own,
            changed(&|sent| {
                sent.payload.clear();
                sent.header.reth.as_mut().expect("a WRITE").len = 0;
            }),
            malformed,
        );
        refused(
            "a probe with values",
            own,
            changed(&|sent| {
                sent.header.immediate.as_mut().expect("one")[0] |= 0x20;
            }),
            malformed,
        );
        refused(
            "too few values",
            own,
            changed(&|sent| sent.payload.truncate(VALUE_BYTES - 4)),
            malformed,
        );
        refused(
            "too many",
            own,
            changed(&|sent| sent.payload.extend([0; 4])),
            malformed,
        );
        refused(
            "padding",
            own,
            changed(&|sent| sent.payload.truncate(VALUE_BYTES - 1)),
            malformed,
        );
        refused(
            "another partition",
            own,
            changed(&|sent| sent.header.pkey = 0x7FFF),
            malformed,
        );
        for cut in [42, 43, 54, 60, 74, 80, 1000, whole.len() - 1] {
            refused("cut short", own, whole[..cut].to_vec(), malformed);
        }
        let send = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut sent = Sent::hello(&job, 0, Told::of(9, 0));
            change(&mut sent.payload);
            sent.frame()
        };
        refused(
            "a hello to none",
            own,
            send(&|hello| hello[0] ^= 1),
            malformed,
        );
        refused(
            "of another version",
            own,
            send(&|hello| hello[4] = 2),
            malformed,
        );
        refused(
            "for another worker",
            own,
            send(&|hello| hello[5] = 1),
            malformed,
        );
        refused(
            "of another job",
            own,
            send(&|hello| hello[7] ^= 1),
            malformed,
        );
        refused(
            "of a number beyond 24 bits",
            own,
            send(&|hello| hello[8] = 1),
            malformed,
        );
        refused(
            "of a PSN beyond 24 bits",
            own,
            send(&|hello| hello[12] = 1),
            malformed,
        );
        refused(
            "of another window",
            own,
            send(&|hello| hello[31] ^= 3),
            malformed,
        );
        refused(
            "longer",
            own,
            send(&|hello| hello.extend([0; 4])),
            malformed,
        );
        let hello = Sent::hello(&job, 0, Told::of(9, 0)).frame();
        refused("of another port", port(worker(1)), hello, Outcome::Stranger);
        let others = [
            only(Service::Unreliable, Operation::Write, false),
            only(Service::Reliable, Operation::Write, true),
            only(Service::Unreliable, Operation::Send, true),
        ];
        for opcode in others {
            refused(
                "another operation",
                own,
                changed(&|sent| sent.header.opcode = opcode),
                Outcome::Other,
            );
        }
        let cnp = changed(&|sent| {
            sent.header.opcode = Opcode::Cnp;
            sent.payload = vec![0; 16];
        });
        refused("a CNP", own, cnp, Outcome::Other);
        // A key that is not the chunk's slot is for `Aggregate` to find.
        let foreign = reth(&|r| r.rkey ^= 2);
        assert_eq!(switch.p4.send(0, own, &foreign), []);
        assert_eq!(switch.p4.outcomes(crate::p4_switch::Outcome::Malformed), 1);
        // A SUM that a rank sends itself is not written to another.
        let mut forged = update(&job, 0);
        forged[0] = forged[0] & 0xF0 | Kind::Sum as u8;
        let mut frame = Vec::new();
        build(
            &mut frame,
            endpoint(worker(0)),
            endpoint(worker(1)),
            &forged,
        );
        let sent = switch.p4.send(0, own, &frame);
        assert_eq!(sent, [(port(worker(1)), frame)]);
        let psn = switch.told[1].psn;
        assert_eq!(
            switch.p4.send(0, own, &good.frame()),
            [],
            "what is right is taken"
        );
        assert_eq!(switch.told[1].psn, psn);
        assert_eq!(switch.outcomes()[0], 2);
    }
}
