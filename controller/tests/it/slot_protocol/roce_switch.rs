//! A program of p4src that ranks reach by RoCEv2: `roce` makes the packets that it takes, and reads those that it sends.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use aggregation::Destination;
use aggregation::job::{Job, WorkerId};
use cluster::Node;
use cluster::drawn::pick;
use cluster::ranks::RankSwitch;
use controller::jobs::contacts::{self, Contact};
use parser_gen::{Arch, FrameValues, Options};
use roce::packet::{
    Address, Ecn, Header, MAX_FRAME_LEN, Opcode, Operation, Packet, Position, Reth, Route, Service,
    emit,
};
use roce::{Psn, Qpn};
use scenario::plan::names::roce::{self as names, Outcome};
use wire::rdma::{
    ANSWER_LEN, FIRST_PLACE, Immediate, PLACE_LEN, Receiver, Registered, Registration, Sum, Target,
    Update,
};
use wire::{Flags, Packet as Frame, Repr};

use super::p4_switch::{Admission, P4Switch, compile_with, endpoint, node_at, port};

/// Architectures whose program sums RoCEv2.
pub const ROCE: [Arch; 2] = [Arch::Psa, Arch::V1model];
const PKEY: u16 = 0xFFFF;
/// The operations that the switch takes, and the one that it sends.
pub const SEND: Opcode = only(Service::Unreliable, Operation::Send, false);
pub const WRITE: Opcode = only(Service::Unreliable, Operation::Write, true);
/// The number of rank 0's queue pair in the switch's registers.
const FIRST_CONTACT: u32 = 7;

pub const fn only(service: Service, operation: Operation, immediate: bool) -> Opcode {
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

/// A rank's queue pair and region, as it tells the switch; then, the PSN that comes next.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    pub target: Target,
    pub psn: u32,
}

impl Told {
    pub fn of(seed: u64, rank: u16) -> Told {
        let draw =
            |what: u64, options: u64| pick(seed, 0x40CE, what + 8 * u64::from(rank), options);
        Told {
            target: Target {
                qpn: 2 + draw(1, 0xFF_FF00) as u32,
                base: 16 + (draw(3, 1 << 40) << 12),
                rkey: draw(4, 1 << 32) as u32,
            },
            // Numbers wrap in some; none is 0.
            psn: match draw(2, 0x40) as u32 {
                0x20 => 1,
                drawn => drawn.wrapping_sub(0x20) & 0xFF_FFFF,
            },
        }
    }
}

pub fn address(node: Node) -> Address {
    let endpoint = endpoint(node);
    Address {
        mac: endpoint.mac.0,
        ip: endpoint.ip,
    }
}

pub fn worker(rank: u16) -> Node {
    Node::Worker(WorkerId(rank))
}

/// A packet of a rank to the switch.
#[derive(Debug, Clone)]
pub struct Sent {
    pub route: Route,
    pub header: Header,
    pub payload: Vec<u8>,
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

    pub fn hello(job: &Job, rank: u16, told: Told) -> Sent {
        let registration = Registration {
            job: job.id().0,
            child: rank as u8,
            target: told.target,
            psn: told.psn,
            window: job.window(),
        };
        let mut sent = Sent::new(job.id().0, rank, SEND);
        sent.payload = registration.bytes().to_vec();
        sent
    }

    /// An update in the other form.
    pub fn update(payload: &[u8], is_question: bool) -> Sent {
        let header = Repr::parse(&Frame::new_checked(payload).expect("an update"));
        let update = Update {
            header,
            is_question,
        };
        let write = update.write().expect("RDMA carries it");
        let mut sent = Sent::new(header.job, header.worker, WRITE);
        sent.header.destination = Qpn::new(write.qpn);
        sent.header.immediate = Some(write.immediate.bytes());
        sent.header.reth = Some(Reth {
            address: write.address,
            rkey: write.rkey,
            len: write.len,
        });
        sent.payload = payload[wire::HEADER_LEN..].to_vec();
        sent
    }

    pub fn frame(&self) -> Vec<u8> {
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
pub struct Written {
    pub reth: Reth,
    pub immediate: Immediate,
    pub payload: Vec<u8>,
}

/// A switch that ranks reach by RoCEv2 alone.
pub struct RoceSwitch {
    pub p4: P4Switch,
    pub told: Vec<Told>,
    /// Chunk and scale of what a rank sent last in a slot.
    sent: HashMap<(u16, u16), (u32, u8)>,
    /// The regions of all ranks.
    regions: Vec<Vec<u8>>,
    pub written: u64,
}

impl RoceSwitch {
    pub fn new(arch: Arch) -> RoceSwitch {
        RoceSwitch {
            p4: load(arch),
            told: Vec::new(),
            sent: HashMap::new(),
            regions: Vec::new(),
            written: 0,
        }
    }

    /// Takes the last job out, admits this one, and has all ranks register.
    pub fn admit(&mut self, job: Job, seed: u64) {
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
                let wanted = told.target.registered(told.psn);
                assert_eq!(written.reth.address, wanted.address);
                let answer = written.payload[..].try_into().expect("an answer");
                let registered =
                    Registered::parse(written.immediate, wanted.len, told.psn, &answer);
                let everyone = (1_u64 << job.workers()) - 1;
                assert_eq!(registered, Some(Registered { everyone }));
                assert_eq!(answer, Sum::answer_of(everyone, rank << 6));
            }
        }
    }

    /// The same, and nobody has registered yet.
    pub fn admit_silent(&mut self, job: Job) {
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
            mac: scenario::model::topology::Mac(endpoint(worker(rank)).mac.0),
            ip: endpoint(worker(rank)).ip,
        });
        let contacts: Vec<Contact> = contacts.collect();
        for entry in contacts::entries(job.id().0, job.window(), &contacts) {
            self.p4.tell(entry);
        }
        self.told.clear();
        self.sent.clear();
        let len = self.receiver(0).region_len();
        self.regions = vec![vec![0; len]; usize::from(job.workers())];
    }

    /// A packet to a rank, which has to be the next of its queue pair, from the switch's address.
    pub fn read(&mut self, rank: u16, bytes: &[u8]) -> Written {
        let packet = Packet::parse(bytes).unwrap_or_else(|error| panic!("{error}: {bytes:02x?}"));
        let told = &mut self.told[usize::from(rank)];
        let low = self.p4.job().id().0 as u8;
        let (route, header) = (packet.route(), packet.header());
        assert_eq!(route.to, address(worker(rank)));
        assert_eq!(route.from.mac, [2, 0, 0x5e, 0x57, 0x45, low]);
        assert_eq!(route.from.ip, Ipv4Addr::new(239, 87, 69, low));
        assert_eq!(header.opcode, WRITE);
        assert_eq!(header.destination, Qpn::new(told.target.qpn));
        assert_eq!(header.pkey, PKEY);
        assert_eq!(header.psn, Psn::new(told.psn));
        let identification = u16::from_be_bytes([bytes[18], bytes[19]]);
        assert_eq!(identification, told.psn as u16);
        told.psn = (told.psn + 1) & 0xFF_FFFF;
        let reth = header.reth.expect("a WRITE");
        assert_eq!(reth.rkey, told.target.rkey);
        assert_eq!(reth.len as usize, packet.payload().len());
        self.written += 1;
        Written {
            reth,
            immediate: Immediate::from_bytes(header.immediate.expect("a WRITE with immediate")),
            payload: packet.payload().to_vec(),
        }
    }

    fn receiver(&self, rank: u16) -> Receiver {
        let job = self.p4.job();
        Receiver {
            job: job.id().0,
            window: job.window(),
            child: rank,
            everyone: (1_u64 << job.workers()) - 1,
        }
    }

    /// What a rank makes of it, from its region: the frame of the other form.
    fn payload(&mut self, rank: u16, written: &Written) -> Vec<u8> {
        let (receiver, job) = (self.receiver(rank), self.p4.job());
        let base = self.told[usize::from(rank)].target.base;
        let region = &mut self.regions[usize::from(rank)];
        let at = (written.reth.address - base) as usize + FIRST_PLACE;
        region[at..at + written.payload.len()].copy_from_slice(&written.payload);
        let place = &region[receiver.place(written.immediate)..][..PLACE_LEN];
        let (values, answer) = place.split_at(PLACE_LEN - ANSWER_LEN);
        let slot = written.immediate.low() & (job.window() - 1) as u16;
        let own = self.sent.get(&(rank, slot));
        let own = own.expect("a rank has sent what it is answered");
        let answer = answer.try_into().expect("its length");
        let header = receiver.header(written.immediate, written.reth.len, *own, answer);
        let header = header.expect("a SUM");
        let mut payload = vec![0; header.buffer_len()];
        header.emit(&mut Frame::new_unchecked(&mut payload[..]));
        if header.count > 0 {
            payload[wire::HEADER_LEN..].copy_from_slice(values);
        }
        payload
    }

    pub fn outcomes(&self) -> [u64; 6] {
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
    pub fn assert_refused(&mut self, at: u32, frame: &[u8], outcome: Outcome, what: &str) {
        let mut expected = self.outcomes();
        expected[outcome as usize] += 1;
        assert_eq!(self.p4.send(0, at, frame), [], "{what}");
        assert_eq!(self.outcomes(), expected, "{what}");
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
        // What comes late is of a chunk that the rank has left; and a probe has no scale.
        let sent = (repr.chunk, repr.scale);
        let last = self.sent.entry((from.0, repr.slot)).or_insert(sent);
        let ahead = repr.chunk.wrapping_sub(last.0) as i32;
        if ahead > 0 || ahead == 0 && !repr.flags.contains(Flags::PROBE) {
            *last = sent;
        }
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
