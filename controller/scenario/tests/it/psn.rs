//! Packets of RDMA connections by relative PSN and round: frames of crate `roce` through a switch that runs the plan's text,
//! against what has to be hit and against the model.

use std::convert::Infallible;
use std::sync::Arc;

use parser_gen::Arch;
use parser_gen::psn::{Begun, Packet};
use pipeline::{Config, Switch};
use roce::packet::{
    self, Address, Ecn, Header, MAX_FRAME_LEN, Mtu, Opcode, Operation, Position, Route, Service,
};
use roce::{
    Access, Endpoint, EndpointConfig, InitAttributes, Local, Memory, Psn, QpConfig, Qpn, Remote,
    RtrAttributes, RtsAttributes, SendRequest, Work,
};
use scenario::model::Scenario;
use scenario::plan::announcement::{Announcement, Announcements, Stream};
use scenario::replay::{Classified, Engine, State};
use scenario::{Plan, TargetModel};

/// Whose programs know connections.
const ARCHS: [Arch; 2] = [Arch::Psa, Arch::V1model];

/// Where numbers wrap.
const TURN: u32 = 1 << 24;

fn text(faults: &str) -> String {
    format!(
        "weir: 1\nname: lab\nseed: 4\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\nflows:\n  \
         there: {{from: a, to: s, filter: roce}}\n  back: {{from: s, to: a}}\nfaults:\n{faults}"
    )
}

/// A switch under a plan, beside the model.
struct Lab {
    arch: Arch,
    scenario: Scenario,
    plan: Plan,
    switch: Switch,
    engine: Engine,
    state: State,
    hits: Vec<u64>,
    keyless: u64,
    now_ns: u64,
    tellings: Vec<Announcement>,
}

impl Lab {
    fn new(arch: Arch, faults: &str) -> Lab {
        Lab::edited(arch, faults, str::to_owned)
    }

    /// With P4 text that is changed.
    fn edited(arch: Arch, faults: &str, edit: impl Fn(&str) -> String) -> Lab {
        let text = text(faults);
        let scenario =
            scenario::load("lab.yaml", &text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let target = match arch {
            Arch::V1model => TargetModel::SIMPLE_SWITCH_GRPC,
            _ => TargetModel::EMBEDDED,
        };
        let plan = scenario::plan(&scenario, &target).unwrap_or_else(|error| panic!("{error}"));
        let planned = plan.switch("sw").unwrap();
        let generated = planned.generate().unwrap();
        let mut files = p4lang::Files::new();
        for (path, text) in parser_gen::program(arch, &generated) {
            files.insert(&path, edit(&text));
        }
        let compiled = p4lang::compile(&files, &arch.main_path(), &p4lang::Options::default())
            .unwrap_or_else(|errors| panic!("{errors}"));
        let mut switch = Switch::new(Arc::new(compiled.program), Config::default()).unwrap();
        for entry in &planned.all_entries(arch, &generated) {
            switch
                .insert_entry(entry)
                .unwrap_or_else(|error| panic!("{entry:?}: {error}"));
        }
        for group in &planned.groups {
            switch.set_multicast_group(group).unwrap();
        }
        for (table, call) in planned.set_epoch(1) {
            switch.set_default_action(&table, Some(&call)).unwrap();
        }
        let engine = Engine::new(&scenario, &plan, "sw").unwrap();
        Lab {
            arch,
            state: engine.start(),
            hits: vec![0; plan.injections.len()],
            engine,
            scenario,
            plan,
            switch,
            keyless: 0,
            now_ns: 1_000_000,
            tellings: Vec::new(),
        }
    }

    /// Tells switch and model with which number a stream from `a` to `s`, or back, begins.
    fn tell(&mut self, is_back: bool, qp: u32, responds: bool, begun: (u32, u8)) {
        let (from, to) = if is_back { ("s", "a") } else { ("a", "s") };
        let stream = Stream {
            source: self.address(from).ip,
            destination: self.address(to).ip,
            qp,
            responds,
        };
        let is_known = self.tellings.iter().any(|of| of.stream == stream);
        let (first, life) = begun;
        let begun = Begun { first, life };
        let entries = self.plan.switch("sw").unwrap().tell(stream, begun);
        assert!(!entries.is_empty());
        for entry in &entries {
            match is_known {
                true => self.switch.modify_entry(entry).unwrap(),
                false => self.switch.insert_entry(entry).unwrap(),
            }
        }
        self.now_ns += 1;
        self.tellings.push(Announcement {
            switch: "sw".to_owned(),
            stream,
            first_psn: first,
            life,
            sent_ns: self.now_ns - 1,
            confirmed_ns: self.now_ns,
        });
    }

    fn address(&self, host: &str) -> Address {
        let host = self.scenario.topology.host(host).unwrap();
        Address {
            mac: host.mac.value().to_be_bytes()[10..].try_into().unwrap(),
            ip: host.ip,
        }
    }

    /// A frame of `roce`, from `a` to `s` or back.
    fn frame(&self, is_back: bool, opcode: Opcode, qp: u32, psn: u32) -> Vec<u8> {
        let (from, to) = if is_back { ("s", "a") } else { ("a", "s") };
        let route = Route {
            from: self.address(from),
            to: self.address(to),
            source_port: 0xC123,
            dscp: 0,
            ecn: Ecn::Capable,
        };
        let header = Header::new(opcode, 0xFFFF, Qpn::new(qp), Psn::new(psn));
        let payload = if opcode.has_payload() { 256 } else { 0 };
        let mut buffer = vec![0; MAX_FRAME_LEN];
        let filled = packet::emit(&mut buffer, &route, &header, payload, |bytes| {
            bytes.fill(7);
            Ok::<(), Infallible>(())
        });
        buffer.truncate(filled.unwrap());
        buffer
    }

    /// Takes a frame through switch and model; what left of it at once.
    fn pass(&mut self, is_back: bool, frame: &[u8]) -> Vec<Vec<u8>> {
        let from = if is_back { "s" } else { "a" };
        let port = self.scenario.topology.next_hop("sw", from).unwrap().number;
        let packet = Packet::parse(&self.scenario.protocols, frame);
        let told = Announcements::at("sw", &self.tellings);
        let classified = Classified {
            told: packet.and_then(|packet| told.begun(&packet, self.now_ns)),
            ..self.engine.classify(frame, port)
        };
        let passage = self.engine.pass(&mut self.state, &classified, 1);
        for hit in &passage.ingress.hits {
            self.hits[*hit] += 1;
        }
        self.keyless += passage.ingress.keyless.len() as u64;
        assert_eq!(passage.ingress.conflated, [0; 0]);
        self.switch.handle_packet(self.now_ns, port, frame);
        let left: Vec<Vec<u8>> = std::iter::from_fn(|| self.switch.poll_transmit())
            .map(|transmit| transmit.bytes.to_vec())
            .collect();
        let fate = passage.ingress.fate;
        if fate.held_ns(0) == 0 && fate.copies < 2 {
            let exits = 0..passage.exits.len();
            let copies: usize = exits.map(|exit| passage.leaving(exit)).sum();
            assert_eq!(left.len(), copies, "{:?}: {frame:02x?}", self.arch);
        }
        left
    }

    /// Whether a frame is dropped.
    fn drops(&mut self, is_back: bool, opcode: Opcode, qp: u32, psn: u32) -> bool {
        let frame = self.frame(is_back, opcode, qp, psn % TURN);
        self.pass(is_back, &frame).is_empty()
    }

    /// What was counted of each injection is what the model says; all of them.
    fn counted(&self) -> Vec<u64> {
        let counters = self.plan.injections.iter().map(|point| {
            let cell = point.cell as u64;
            let read = |counter: &str| self.switch.counter_read(counter, cell).unwrap().packets;
            (read(&point.counter), read(point.keyless.as_ref().unwrap()))
        });
        let (fired, keyless): (Vec<u64>, Vec<u64>) = counters.unzip();
        assert_eq!(fired, self.hits, "{:?}", self.arch);
        assert_eq!(keyless.iter().sum::<u64>(), self.keyless, "{:?}", self.arch);
        fired
    }
}

fn data(operation: Operation, position: Position) -> Opcode {
    Opcode::Data {
        service: Service::Reliable,
        operation,
        position,
        immediate: false,
    }
}

const QP: u32 = 0x11;

fn send() -> Opcode {
    data(Operation::Send, Position::Only)
}

/// Runs of numbers, relative to where the connection begins; those that had to be dropped, by run and number.
fn dropped(lab: &mut Lab, first: u32, runs: &[&[u32]]) -> Vec<(usize, u32)> {
    let mut dropped = Vec::new();
    for (run, numbers) in runs.iter().enumerate() {
        for number in *numbers {
            if lab.drops(false, send(), QP, first + number) {
                dropped.push((run + 1, *number));
            }
        }
    }
    dropped
}

const DROP_3: &str = "  - {id: lost, flows: there, effect: drop, select: {psn: {at: 3}}}\n";

/// As go-back-N sends it: each run begins where one before was refused.
const RUNS: [&[u32]; 4] = [
    &[0, 1, 2, 3, 4, 5, 6, 7],
    &[3, 4, 5, 6],
    &[3, 4, 5, 6, 7, 8, 9],
    &[2, 3, 4],
];

#[test]
fn one_number_of_one_round_is_hit_and_no_other() {
    for arch in ARCHS {
        for (select, expected) in [
            ("{at: 3}", vec![(1, 3)]),
            ("{at: 3, round: 1}", vec![(1, 3)]),
            ("{at: 3, round: 2}", vec![(2, 3)]),
            ("{at: 3, round: 3}", vec![(3, 3)]),
            ("{at: 3, round: [1, 3]}", vec![(1, 3), (3, 3)]),
            ("{at: 3, round: \"2..\"}", vec![(2, 3), (3, 3), (4, 3)]),
            (
                "{at: [0, 4..5], round: 2..3}",
                vec![(2, 4), (2, 5), (3, 4), (3, 5)],
            ),
            ("{at: \"8..\", round: 1..9}", vec![(3, 8), (3, 9)]),
            ("{at: 9, round: 1}", vec![]),
        ] {
            let fault = format!(
                "  - {{id: lost, flows: there, effect: drop, select: {{psn: {select}}}}}\n"
            );
            // The last two begin before the turn, and go over it.
            for first in [0, 77, TURN - 2, TURN - 5] {
                let mut lab = Lab::new(arch, &fault);
                let dropped = dropped(&mut lab, first, &RUNS);
                assert_eq!(dropped, expected, "{arch:?} {select} from {first}");
                assert_eq!(lab.counted(), [expected.len() as u64]);
            }
        }
    }
}

/// Whoever opens a connection says where it begins: what was lost before the switch, or passed before the fault was armed, counts.
#[test]
fn a_first_number_that_is_told_is_the_first() {
    for arch in ARCHS {
        for first in [0, 900, TURN - 2] {
            let mut lab = Lab::new(arch, DROP_3);
            lab.tell(false, QP, false, (first, 1));
            // Another connection is not meant.
            lab.tell(false, QP + 1, false, (5_000, 1));
            assert_eq!(dropped(&mut lab, first, &[&[1, 2, 3, 4]]), [(1, 3)]);
            // The number of the queue pair is used again: another connection, in its first round.
            lab.tell(false, QP, false, ((first + 7_000) % TURN, 2));
            let again: [&[u32]; 2] = [&[0, 1, 2, 3], &[3, 4]];
            assert_eq!(dropped(&mut lab, first + 7_000, &again), [(1, 3)]);
            // And once more, from the same number on.
            lab.tell(false, QP, false, ((first + 7_000) % TURN, 3));
            assert_eq!(dropped(&mut lab, first + 7_000, &again), [(1, 3)]);
            assert_eq!(lab.counted(), [3]);
        }
    }
}

/// Answers to READs have the numbers of who asks, whatever else goes to the same queue pair.
#[test]
fn responses_are_told_of_by_themselves() {
    for arch in ARCHS {
        let fault = "  - {id: lost, flows: back, effect: drop, select: {psn: {at: 3}}}\n";
        let mut lab = Lab::new(arch, fault);
        lab.tell(true, QP, false, (100, 1));
        lab.tell(true, QP, true, (40, 1));
        let response = Opcode::ReadResponse(Position::Middle);
        let psns = [42, 43, 44].map(|psn| lab.drops(true, response, QP, psn));
        assert_eq!(psns, [false, true, false]);
        let psns = [102, 103, 104].map(|psn| lab.drops(true, send(), QP, psn));
        assert_eq!(psns, [false, true, false]);
    }
}

/// A connection that was seen before anybody told of it begins anew.
#[test]
fn what_was_seen_before_is_forgotten() {
    for arch in ARCHS {
        let mut lab = Lab::new(arch, DROP_3);
        assert_eq!(dropped(&mut lab, 500, &[&[1, 2], &[1]]), [(0, 0); 0]);
        lab.tell(false, QP, false, (500, 1));
        assert_eq!(dropped(&mut lab, 500, &[&[2, 3, 4]]), [(1, 3)]);
    }
}

/// The same number again, and a gap: a packet that somebody lost before the switch.
#[test]
fn each_break_begins_a_round() {
    for arch in ARCHS {
        let fault =
            "  - {id: lost, flows: there, effect: drop, select: {psn: {at: \"0..\", round: 4}}}\n";
        let mut lab = Lab::new(arch, fault);
        let runs: [&[u32]; 5] = [&[0], &[0, 1], &[1, 2], &[4, 5, 6], &[0, 1, 2, 3]];
        let expected = [(4, 4), (4, 5), (4, 6)];
        assert_eq!(dropped(&mut lab, 40, &runs), expected);
    }
}

#[test]
fn connections_of_one_flow_are_followed_each_by_itself() {
    for arch in ARCHS {
        let mut lab = Lab::new(arch, DROP_3);
        let mut lost = Vec::new();
        for number in [0, 1, 2, 3, 3, 4, 5, 0, 3] {
            // The second begins shortly before the turn.
            for (qp, first) in [(QP, 500), (0xAB_CDEF, TURN - 2)] {
                if lab.drops(false, send(), qp, first + number) {
                    lost.push((qp, number));
                }
            }
        }
        assert_eq!(lost, [(QP, 3), (0xAB_CDEF, 3)]);
        assert_eq!(lab.counted(), [2]);
    }
}

/// ACKs and CNPs to the same queue pair, and requests for a READ, have numbers that are not counted.
#[test]
fn what_carries_no_data_stands_in_no_round() {
    for arch in ARCHS {
        let mut lab = Lab::new(arch, DROP_3);
        let mut lost = Vec::new();
        for number in 0..6 {
            for opcode in [Opcode::Acknowledge, Opcode::Cnp, Opcode::ReadRequest] {
                assert!(!lab.drops(false, opcode, QP, 3), "{opcode:?}");
                assert!(!lab.drops(false, opcode, QP, 9_000), "{opcode:?}");
            }
            if lab.drops(false, send(), QP, number) {
                lost.push(number);
            }
        }
        assert_eq!(lost, [3]);
    }
}

/// The responses of a READ are the data of their direction, and have numbers of their own beside what else goes there.
#[test]
fn responses_are_data_and_stand_apart() {
    for arch in ARCHS {
        let fault = "  - {id: lost, flows: back, effect: drop, select: {psn: {at: 3}}}\n";
        let mut lab = Lab::new(arch, fault);
        let mut lost = Vec::new();
        for number in [0, 1, 2, 3, 4, 3, 4, 5] {
            assert!(!lab.drops(false, Opcode::ReadRequest, QP, 3));
            let position = if number == 0 {
                Position::First
            } else {
                Position::Middle
            };
            for (kind, opcode, first) in [
                ("response", Opcode::ReadResponse(position), TURN - 1),
                ("write", data(Operation::Write, position), 9_000),
            ] {
                if lab.drops(true, opcode, QP, first + number) {
                    lost.push((kind, number));
                }
            }
        }
        assert_eq!(lost, [("response", 3), ("write", 3)]);
        assert_eq!(lab.counted(), [2]);
    }
}

/// A packet that comes back over the recirculation port is not taken again.
#[test]
fn what_is_held_stands_where_it_stood() {
    for arch in ARCHS {
        let faults = "  - {id: late, flows: there, effect: {delay: 1ms}, select: {psn: {at: 1..2}}}\n  \
             - {id: twice, flows: there, effect: duplicate, select: {psn: {at: 4}}}\n  \
             - {id: again, flows: there, effect: observe, select: {psn: {at: \"0..\", round: \"2..\"}}}\n";
        let mut lab = Lab::new(arch, faults);
        let mut left = 0;
        for number in 0..8 {
            let frame = lab.frame(false, send(), QP, number);
            left += lab.pass(false, &frame).len();
            let until = lab.now_ns + 400_000;
            while let Some(due) = lab.switch.poll_timeout().filter(|due| *due <= until) {
                lab.switch.handle_timeout(due);
                left += std::iter::from_fn(|| lab.switch.poll_transmit()).count();
            }
            lab.now_ns = until;
        }
        assert_eq!(left, 9, "{arch:?}");
        assert_eq!(lab.counted(), [2, 1, 0], "{arch:?}");
    }
}

/// One packet lets two others pass, whatever they carry.
#[test]
fn a_packet_can_be_told_to_wait_for_others() {
    for arch in ARCHS {
        let faults = "  - {id: behind, flows: there, effect: {reorder: {distance: 2, within: 50ms}}, select: {psn: {at: 2}}}\n";
        let mut lab = Lab::new(arch, faults);
        let mut left = Vec::new();
        for number in 0..6 {
            let opcode = if number == 3 {
                Opcode::Acknowledge
            } else {
                send()
            };
            let frame = lab.frame(false, opcode, QP, number);
            let port = lab.scenario.topology.next_hop("sw", "a").unwrap().number;
            lab.switch.handle_packet(lab.now_ns, port, &frame);
            lab.now_ns += 400_000;
            while let Some(due) = lab.switch.poll_timeout().filter(|due| *due <= lab.now_ns) {
                lab.switch.handle_timeout(due);
            }
            let frames = std::iter::from_fn(|| lab.switch.poll_transmit());
            left.extend(frames.map(|transmit| transmit.bytes[53]));
        }
        assert_eq!(left, [0, 1, 3, 4, 2, 5], "{arch:?}");
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, below: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % u64::from(below)) as u32
    }
}

const SEVERAL: &str = "  - {id: some, flows: [there, back], effect: drop, select: {psn: {at: [0..2, \"5..\"], round: [1, 3..4]}}}\n  \
     - {id: few, flows: there, effect: observe, select: {psn: {at: 0..3, round: \"2..\"}}, keys: 1}\n  \
     - {id: bits, flows: there, effect: {corrupt: {field: ip.ttl, bits: 3}}, select: {psn: {at: 3..4, round: 1..2}}}\n";

/// Any opcodes, numbers and connections, more than there is room for, words drawn: switch and model do the same.
fn compare(lab: &mut Lab, frames: usize) -> Vec<u64> {
    let mut any = Random(9);
    let mut nexts = vec![0_u32; 2_000];
    for _ in 0..frames {
        let which = any.below(2_000);
        let (is_back, qp) = (which.is_multiple_of(3), 1 + which / 2);
        let next = &mut nexts[which as usize];
        *next = match any.below(8) {
            0 => next.saturating_sub(any.below(4)),
            1 => *next + any.below(3),
            _ => *next + 1,
        };
        let psn = (TURN - 3 + which % 7 + *next) % TURN;
        let mut frame = lab.frame(is_back, send(), qp, psn);
        frame[packet::NETWORK_LEN] = match any.below(3) {
            0 => any.below(256) as u8,
            1 => any.below(0x30) as u8,
            _ => 4,
        };
        if any.below(50) == 0 {
            frame.truncate(14 + any.below(60) as usize);
        }
        lab.pass(is_back, &frame);
    }
    lab.counted()
}

#[test]
fn the_text_does_what_the_model_says() {
    for arch in ARCHS {
        let mut lab = Lab::new(arch, SEVERAL);
        let counted = compare(&mut lab, 20_000);
        assert!(counted.iter().all(|hits| *hits > 50), "{counted:?}");
        assert!(lab.keyless > 1_000, "{}", lab.keyless);
    }
}

#[test]
fn a_change_of_the_text_is_noticed() {
    for (line, changed) in [
        ("hdr.roce.psn != last + 1", "hdr.roce.psn != last"),
        ("hdr.roce.psn != last + 1", "hdr.roce.psn > last + 1"),
        ("relative = hdr.roce.psn - first", "relative = hdr.roce.psn"),
        ("hdr.roce.opcode <= 0x0b", "hdr.roce.opcode <= 0x0c"),
        ("hdr.roce.opcode <= 0x2b", "hdr.roce.opcode <= 0x2a"),
        ("hdr.roce.opcode <= 0x10", "hdr.roce.opcode <= 0x11"),
        ("if (data == 2)", "if (data == 3)"),
        ("rounds.write(slot_, round)", "rounds.write(slot_, 1)"),
    ] {
        let noticed = std::panic::catch_unwind(|| {
            let edit = |text: &str| text.replace(line, changed);
            compare(&mut Lab::edited(Arch::Psa, SEVERAL, edit), 5_000)
        });
        assert!(noticed.is_err(), "{changed}");
    }
}

/// Two machines of `roce` with the switch between them.
struct Pair {
    lab: Lab,
    endpoints: [Endpoint; 2],
    memories: [Memory<Vec<u8>>; 2],
    qpns: [Qpn; 2],
    locals: [Local; 2],
}

const PACKETS: usize = 10;
const MTU: Mtu = Mtu::B256;
const FIRST: u32 = TURN - 4;

impl Pair {
    fn new(lab: Lab) -> Pair {
        let hosts = ["a", "s"].map(|host| lab.address(host));
        let mut endpoints =
            [0, 1].map(|side| Endpoint::new(EndpointConfig::new(hosts[side], side as u64)));
        let mut memories = [0, 1].map(|side| Memory::new(1, side));
        let len = PACKETS * MTU.bytes();
        let locals = [0, 1].map(|side: usize| Local {
            key: memories[side]
                .register(vec![side as u8 + 1; len], 0, Access::ALL)
                .unwrap(),
            address: 0,
            len: len as u32,
        });
        let qpns = [0, 1].map(|side: usize| {
            endpoints[side]
                .create(QpConfig::new(Service::Reliable))
                .unwrap()
        });
        for side in 0..2 {
            let rtr = RtrAttributes {
                peer: hosts[1 - side],
                peer_qpn: qpns[1 - side],
                psn: Psn::new(FIRST),
                mtu: MTU,
                max_reads: 4,
                rnr_timer: 1,
                dscp: 0,
            };
            let rts = RtsAttributes::new(Psn::new(FIRST));
            let init = InitAttributes::default();
            endpoints[side].connect(qpns[side], init, rtr, rts).unwrap();
        }
        Pair {
            lab,
            endpoints,
            memories,
            qpns,
            locals,
        }
    }

    /// Until there is nothing more to do.
    fn run(&mut self) {
        let mut buffer = vec![0; MAX_FRAME_LEN];
        loop {
            let mut moved = false;
            for side in 0..2 {
                let now_ns = self.lab.now_ns;
                let sent =
                    self.endpoints[side].poll_transmit(now_ns, &self.memories[side], &mut buffer);
                let Some(len) = sent else { continue };
                moved = true;
                self.lab.now_ns += 1_000;
                for left in self.lab.pass(side == 1, &buffer[..len]) {
                    let (to, now_ns) = (1 - side, self.lab.now_ns);
                    self.endpoints[to]
                        .handle_frame(now_ns, &mut self.memories[to], &left)
                        .unwrap();
                }
            }
            let due = self
                .endpoints
                .iter()
                .filter_map(Endpoint::poll_timeout)
                .min();
            match due {
                _ if moved => {}
                Some(due) => {
                    self.lab.now_ns = self.lab.now_ns.max(due);
                    for endpoint in &mut self.endpoints {
                        endpoint.handle_timeout(self.lab.now_ns);
                    }
                }
                None => return,
            }
        }
    }
}

/// Each packet of a WRITE and of the answer to a READ is dropped in the first round, and comes in a later one: in which depends
/// on what was answered meanwhile.
#[test]
fn what_is_dropped_is_sent_again() {
    for is_read in [false, true] {
        for lost in 0..PACKETS {
            let flow = if is_read { "back" } else { "there" };
            let faults = format!(
                "  - {{id: lost, flows: {flow}, effect: drop, select: {{psn: {{at: {lost}}}}}}}\n  \
                 - {{id: again, flows: {flow}, effect: observe, select: {{psn: {{at: {lost}, round: \"2..\"}}}}}}\n"
            );
            let mut pair = Pair::new(Lab::new(Arch::Psa, &faults));
            let remote = Remote {
                address: 0,
                rkey: pair.locals[1].key.0,
            };
            let local = pair.locals[0];
            let work = match is_read {
                true => Work::Read { local, remote },
                false => Work::Write {
                    local,
                    remote,
                    immediate: None,
                },
            };
            let request = SendRequest {
                wr_id: 1,
                work,
                signaled: true,
                solicited: false,
            };
            let [endpoint, _] = &mut pair.endpoints;
            endpoint
                .post_send(pair.qpns[0], request, &pair.memories[0])
                .unwrap();
            pair.run();
            let completion = pair.endpoints[0].poll_completion().unwrap();
            assert_eq!(completion.status, roce::Status::Success, "{flow} {lost}");
            let counted = pair.lab.counted();
            assert_eq!(counted[0], 1, "{flow} {lost}");
            assert!((1..3).contains(&counted[1]), "{flow} {lost}: {counted:?}");
        }
    }
}

#[test]
fn tofino_finds_no_connections() {
    let text = text(DROP_3);
    let scenario = scenario::load("t.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    for target in [TargetModel::TOFINO, TargetModel::TOFINO2] {
        let refused = scenario::plan(&scenario, &target).unwrap_err();
        insta::assert_snapshot!("tofino_and_psn", refused.to_string());
    }
}
