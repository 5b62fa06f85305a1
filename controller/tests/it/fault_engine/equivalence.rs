//! Whole programs by chance: random filters, selections, keys, effects and triggers in one scenario, random and broken frames;
//! what leaves of each, by which port, with which bytes and not before which time, held against the model.

use parser_gen::Arch;
use scenario::model::Fault;
use scenario::model::selection::Selection;
use scenario::replay::{Engine, Recorded, State};

use super::{ARCHS, LOOP_NS, Lab, sum_of, target};

/// Longer than anything is held here.
const LONGEST_NS: u64 = 10_000_000_000;

/// xorshift64*: the same numbers on every machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound
    }

    pub(super) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

const FILTERS: &[&str] = &[
    "udp.dport == 53",
    "udp.dport in {50..60, 1000}",
    "tcp",
    "tcp.dport in {80, 443}",
    "tcp.dport == 6379 && tcp.flags.psh",
    "tcp.flags.syn && !tcp.flags.ack",
    "ip.ttl < 64",
    "ip.len > 60 && !udp",
    "vlan.id == 5 or udp",
    "ip",
    "icmp",
    "!tcp",
    "eth.type != 0x0800",
];
/// One of these rows a scenario: a parser sees a payload once.
const PAYLOADS: &[&[&str]] = &[
    &[
        "redis.command == \"GET\"",
        "redis.command in {\"SET\", \"DEL\"} && redis.key startswith \"cart:\"",
        "redis.key != \"cart:7\"",
    ],
    &["tcp.payload[0:3] == \"GET\"", "tcp.payload[4:2] > 0x6000"],
    &["dns.type == 1", "dns.name == \"a.b\""],
];
const SELECTIONS: &[&str] = &[
    "always",
    "{nth: 3}",
    "{every: 3}",
    "{first: 4}",
    "{after: 5}",
    "{ordinals: [2, 5..9, 40..]}",
    "{burst: {start: 2, length: 2, every: 7}}",
    "{pattern: '0110100'}",
    "{probability: 0.3}",
    "{gilbert_elliott: {to_bad: 0.2, to_good: 0.4, loss_good: 0.05}}",
];
const EFFECTS_OF_ALL: &[&str] = &[
    "drop",
    "observe",
    "{delay: 300us}",
    "{delay: {uniform: [100us, 2ms]}}",
    "{delay: {pareto: {scale: 50us, shape: 3}}}",
    "duplicate",
    "{duplicate: {copies: 3, spaced: 200us}}",
    "{set: {ip.ttl: 9, ip.dscp: 10}}",
    "{set: {tcp.window: 0, checksums: left}}",
    "{set: {udp.sport: 53, ip.src: 10.0.0.77}}",
    // After these, who parsed the packet once more would find other headers.
    "{set: {ip.ihl: 6, checksums: left}}",
    "{set: {ip.proto: 6, checksums: left}}",
    "{corrupt: {field: ip.id, xor: 0x81}}",
    "{corrupt: {field: tcp.seq, bits: 3}}",
    "{corrupt: {field: udp.dport, bytes: 1, checksums: mended}}",
    "reset",
];
/// Not in Tofino's text.
const EFFECTS_OF_SOFTWARE: &[&str] = &["{truncate: 40B}", "{police: {rate: 1Mbit/s, burst: 2kB}}"];
const KEYS: &[&str] = &["connection", "source", "[ip.dst, ip.id]"];

/// A scenario that may contradict itself: who plans it will say so.
fn scenario_text(random: &mut Random, arch: Arch) -> String {
    let mut text = format!(
        "weir: 1\nname: lab\nseed: {}\ntopology: {{star: {{hosts: [a, b, s], switch: sw}}}}\nflows:\n",
        random.below(1 << 20)
    );
    let payload = PAYLOADS[random.below(PAYLOADS.len() as u64) as usize];
    let flows = 2 + random.below(5);
    for flow in 0..flows {
        let from = random.of(&["a", "a", "b"]);
        let filter = match random.below(3) {
            0 => random.of(payload),
            _ => random.of(FILTERS),
        };
        text.push_str(&format!(
            "  f{flow}: {{from: {from}, to: s, filter: '{filter}'}}\n"
        ));
    }
    let software = arch != Arch::Tna;
    let triggers = if software { random.below(3) } else { 0 };
    if triggers > 0 {
        text.push_str("triggers:\n");
    }
    for trigger in 0..triggers {
        let (first, second) = (random.below(flows), random.below(flows));
        let packets = 1 + random.below(4);
        let after = match random.below(3) {
            0 => format!("{{flow: f{first}, packets: {packets}}}"),
            1 => format!("[{{flow: f{first}, packets: {packets}}}, {{flow: f{second}}}]"),
            _ => format!("[{{flow: f{first}}}, {{flow: f{second}, within: 3ms}}]"),
        };
        let ends = random.of(&["", ", for: 4ms"]);
        let reset = match random.below(3) {
            0 => format!(", reset: {{flow: f{}}}", random.below(flows)),
            _ => String::new(),
        };
        let per = random.of(&["", "", ", per: source", ", per: {connection: both}"]);
        text.push_str(&format!(
            "  t{trigger}: {{after: {after}{ends}{reset}{per}}}\n"
        ));
    }
    text.push_str("faults:\n");
    let faults = triggers.max(1) + random.below(4);
    for fault in 0..faults {
        let effect = match random.below(8) {
            0 if software => random.of(EFFECTS_OF_SOFTWARE),
            _ => random.of(EFFECTS_OF_ALL),
        };
        let (one, other) = (random.below(flows), random.below(flows));
        let named = if one == other || random.one_in(2) {
            format!("f{one}")
        } else {
            format!("[f{one}, f{other}]")
        };
        text.push_str(&format!(
            "  - {{id: x{fault}, flows: {named}, effect: {effect}"
        ));
        let paced = effect.contains("police");
        if !paced {
            text.push_str(&format!(", select: {}", random.of(SELECTIONS)));
        }
        if fault < triggers {
            text.push_str(&format!(", when: t{fault}"));
        }
        if software && !paced && random.one_in(4) {
            text.push_str(&format!(", per: {}", random.of(KEYS)));
        } else if matches!(effect, "drop" | "observe") && fault >= triggers && random.one_in(3) {
            text.push_str(", where: {egress: sw}");
        }
        text.push_str("}\n");
    }
    text
}

/// A frame from a host to another, sound or broken, and the port that it comes by.
fn frame(lab: &Lab, random: &mut Random) -> (u32, Vec<u8>) {
    let topology = &lab.scenario.topology;
    let hosts: Vec<&str> = topology
        .hosts
        .iter()
        .map(|host| host.name.as_str())
        .collect();
    let flows = &lab.scenario.flows;
    let flow = &flows[random.below(flows.len() as u64) as usize];
    let (from, to) = match flow.paths.first() {
        Some(path) if !random.one_in(4) => (path.from.as_str(), path.to.as_str()),
        _ => (random.of(&hosts), random.of(&hosts)),
    };
    let (sender, receiver) = (topology.host(from).unwrap(), topology.host(to).unwrap());
    let mut frame = receiver.mac.value().to_be_bytes()[10..].to_vec();
    frame.extend(&sender.mac.value().to_be_bytes()[10..]);
    if random.one_in(5) {
        frame.extend([0x81, 0, 0, if random.one_in(2) { 5 } else { 6 }]);
    }
    if random.one_in(12) {
        frame.extend([0x88, 0xB5]);
        frame.extend((0..1 + random.below(60)).map(|byte| byte as u8));
    } else {
        frame.extend([0x08, 0x00]);
        frame.extend(packet(random, sender.ip.octets(), receiver.ip.octets()));
    }
    match random.below(8) {
        // Bits turn over, but where it is forwarded to stays.
        0 => {
            for _ in 0..1 + random.below(3) {
                let at = 12 + random.below(frame.len() as u64 - 12) as usize;
                frame[at] ^= 1 << random.below(8);
            }
        }
        1 if frame.len() > 15 => {
            frame.truncate(15 + random.below(frame.len() as u64 - 14) as usize)
        }
        _ => {}
    }
    (topology.next_hop("sw", from).unwrap().number, frame)
}

/// An IPv4 packet with right checksums.
fn packet(random: &mut Random, source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
    let options = if random.one_in(8) {
        1 + random.below(3) as u8
    } else {
        0
    };
    let protocol = [6, 6, 17, 17, 1][random.below(5) as usize];
    // Of a client and of a server; answers have them the other way round.
    let client = [4000_u16, 4001, 53, 3306, 8080][random.below(5) as usize];
    let is_answer = random.one_in(3);
    let ports = |service: u16| {
        let (from, to) = match is_answer {
            true => (service, client),
            false => (client, service),
        };
        [from.to_be_bytes(), to.to_be_bytes()].concat()
    };
    let mut transport = Vec::new();
    let place = match protocol {
        6 => {
            let service = [80_u16, 443, 6379, 6379, 5432, 8080][random.below(6) as usize];
            transport.extend(ports(service));
            transport.extend((random.below(4) as u32).to_be_bytes());
            transport.extend([0, 0, 0, 9, 0x50]);
            transport.push([0x02, 0x12, 0x10, 0x18, 0x18][random.below(5) as usize]);
            transport.extend([1, 0, 0, 0, 0, 0]);
            let payloads: [&[u8]; 5] = [
                b"",
                b"*2\r\n$3\r\nGET\r\n$6\r\ncart:7\r\n",
                b"*3\r\n$3\r\nSET\r\n$6\r\ncart:1\r\n$1\r\nx\r\n",
                b"GET / HTTP/1.1\r\n\r\n",
                b"*2\r\n$3\r\nDEL\r\n$5\r\nother\r\n",
            ];
            transport.extend(payloads[random.below(5) as usize]);
            16
        }
        17 => {
            let service = [53_u16, 53, 55, 1000, 2000, 4791][random.below(6) as usize];
            transport.extend(ports(service));
            let question =
                b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x01b\x00\x00\x01\x00\x01";
            // A SEND of queue pair 0x11, PSN 996 or later, and its ICRC.
            let mut roce = *b"\x04\x00\xff\xff\x00\x00\x00\x11\x80\x00\x03\xe4data\x00\x00\x00\x00";
            roce[11] += random.below(8) as u8;
            let payload = match service {
                4791 => &roce[..],
                _ if random.one_in(4) => &question[..5],
                _ => &question[..],
            };
            transport.extend((8 + payload.len() as u16).to_be_bytes());
            transport.extend([0, 0]);
            transport.extend(payload);
            6
        }
        _ => {
            transport = vec![8, 0, 0, 0, 0, 1, 0, random.below(200) as u8];
            2
        }
    };
    let addresses = [source, destination].concat();
    let pseudo = [0, protocol, 0, transport.len() as u8];
    let summed: &[&[u8]] = match protocol {
        1 => &[&transport],
        _ => &[&addresses, &pseudo, &transport],
    };
    let checksum = !(sum_of(summed) as u16);
    transport[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
    let length = 20 + 4 * options + transport.len() as u8;
    let ttl = [64, 63, 200][random.below(3) as usize];
    let id = random.below(3) as u8;
    let mut ip = vec![
        0x45 + options,
        0,
        0,
        length,
        0,
        id,
        0x40,
        0,
        ttl,
        protocol,
        0,
        0,
    ];
    ip.extend(addresses);
    ip.extend(vec![1; 4 * usize::from(options)]);
    let checksum = !(sum_of(&[&ip]) as u16);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    ip.extend(transport);
    ip
}

/// What a run of this came to.
#[derive(Debug, Default)]
struct Seen {
    scenarios: u64,
    /// Contradictions, mostly.
    refused: u64,
    frames: u64,
    hits: u64,
    changed: u64,
    held: u64,
}

/// A switch with a scenario's program, and the model of it.
struct Pair<'t> {
    arch: Arch,
    text: &'t str,
    lab: Lab,
    engine: Engine,
    state: State,
    /// By injection, of the model.
    hits: Vec<u64>,
}

impl<'t> Pair<'t> {
    /// `None` if the scenario is refused. What no capture could prove is: there the model knows less than the switch, such as
    /// the flows in egress of a packet that ingress has changed.
    fn new(arch: Arch, text: &'t str) -> Option<Pair<'t>> {
        let scenario = scenario::load("lab.yaml", text).ok()?;
        scenario::plan_to_prove(&scenario, &target(arch)).ok()?;
        let lab = Lab::of(arch, text, |_, text| text.to_owned());
        let engine = Engine::new(&lab.scenario, &lab.plan, "sw").unwrap();
        Some(Pair {
            arch,
            text,
            state: engine.start(),
            hits: vec![0; lab.plan.injections.len()],
            engine,
            lab,
        })
    }

    /// Sends frames by chance while a step is in force, each when nothing of the one before is left.
    fn send(&mut self, random: &mut Random, epoch: u16, frames: u64, seen: &mut Seen) {
        self.lab.set_epoch(epoch);
        for _ in 0..frames {
            let (port, frame) = frame(&self.lab, random);
            self.pass(epoch, port, &frame, seen);
            // v1model's clock has microseconds.
            let pause_ns = 1000 * (1 + random.below(3000));
            self.lab.now_ns = (self.lab.now_ns + pause_ns).next_multiple_of(1000);
        }
        seen.frames += frames;
    }

    fn pass(&mut self, epoch: u16, port: u32, frame: &[u8], seen: &mut Seen) {
        let begun_ns = self.lab.now_ns;
        let mut classified = [self.engine.classify(frame, port)];
        classified[0].at_ns = begun_ns;
        self.engine.tell_passed(&mut classified);
        let passage = self.engine.pass(&mut self.state, &classified[0], epoch);
        for hit in passage.verdicts().flat_map(|verdict| &verdict.hits) {
            self.hits[*hit] += 1;
        }
        let fate = passage.ingress.fate;
        let rewritten = self
            .engine
            .leaves_as(&passage.ingress, Recorded::whole(frame));
        seen.changed += u64::from(rewritten.is_some());
        let bytes = rewritten.map_or_else(|| frame.to_vec(), |rewritten| rewritten.bytes);
        let exits = passage.exits.iter().enumerate();
        let mut expected: Vec<(u32, Vec<u8>)> = exits
            .flat_map(|(exit, (port, _))| {
                std::iter::repeat_n((*port, bytes.clone()), passage.leaving(exit))
            })
            .collect();

        let (mut left, times) = self.switched(port, frame);
        expected.sort_unstable();
        left.sort_unstable();
        let (arch, text) = (self.arch, self.text);
        let told = || format!("{arch:?}: {frame:02x?}\n{fate:?}\n{text}");
        assert_eq!(left, expected, "{}", told());
        for (copy, time) in times.iter().enumerate() {
            let due_ns = fate.delay_ns + copy as u64 * fate.spaced_ns;
            // It goes round until it is over, and once more on v1model.
            let latest_ns = due_ns.max(fate.waits_ns) + 3 * LOOP_NS;
            let in_time = (due_ns..=latest_ns).contains(time);
            assert!(in_time, "copy {copy} after {time} ns, {}", told());
        }
        seen.held += u64::from(times.iter().any(|time| *time > 0));
    }

    /// What leaves of a frame, and how long after it came.
    fn switched(&mut self, port: u32, frame: &[u8]) -> (Vec<(u32, Vec<u8>)>, Vec<u64>) {
        let lab = &mut self.lab;
        let begun_ns = lab.now_ns;
        let (mut left, mut times) = (Vec::new(), Vec::new());
        lab.switch.handle_packet(begun_ns, port, frame);
        loop {
            while let Some(transmit) = lab.switch.poll_transmit() {
                left.push((transmit.port, transmit.bytes));
                times.push(lab.now_ns - begun_ns);
            }
            match lab.switch.poll_timeout() {
                Some(due) if due <= begun_ns + LONGEST_NS => {
                    lab.now_ns = due;
                    lab.switch.handle_timeout(due);
                }
                _ => return (left, times),
            }
        }
    }

    /// A fault that has hit nothing yet. Frames by chance are no connection with a first packet and a fourth: what is selected by
    /// sequence number has tests of its own (controller/scenario/tests/it/psn.rs).
    fn idle_fault(&self) -> Option<&str> {
        let points = &self.lab.plan.injections;
        let has_hit = |id: &str| {
            let mut hits = points.iter().zip(&self.hits);
            hits.any(|(point, hits)| point.fault == id && *hits > 0)
        };
        let mut faults = self.lab.scenario.faults.iter();
        let by_chance = |fault: &Fault| !matches!(fault.selection, Selection::Psn(_));
        let idle = faults.find(|fault| by_chance(fault) && !has_hit(&fault.id));
        idle.map(|fault| fault.id.as_str())
    }

    /// The switch counted what the model did.
    fn assert_counts(&self) {
        for (index, point) in self.lab.plan.injections.iter().enumerate() {
            let counter = &point.counter;
            let counted = self.lab.switch.counter_read(counter, point.cell as u64);
            let (fault, flow) = (&point.fault, &point.flow);
            let told = || format!("{:?}: {fault} on {flow}\n{}", self.arch, self.text);
            assert_eq!(counted.unwrap().packets, self.hits[index], "{}", told());
        }
    }
}

/// One scenario by chance.
fn hold_one(random: &mut Random, arch: Arch, frames: u64, seen: &mut Seen) {
    let text = scenario_text(random, arch);
    let Some(mut pair) = Pair::new(arch, &text) else {
        seen.refused += 1;
        return;
    };
    seen.scenarios += 1;
    pair.send(random, 1, frames, seen);
    pair.assert_counts();
    seen.hits += pair.hits.iter().sum::<u64>();
}

fn hold(seed: u64, scenarios: u64, frames: u64) -> Seen {
    let mut seen = Seen::default();
    for arch in ARCHS {
        let mut random = Random(seed * 2 + 1);
        for _ in 0..scenarios {
            hold_one(&mut random, arch, frames, &mut seen);
        }
    }
    seen
}

#[test]
fn programs_by_chance_do_to_frames_by_chance_what_the_model_says() {
    let seen = hold(1, 24, 120);
    assert!(seen.scenarios > seen.refused, "{seen:?}");
    for count in [seen.hits, seen.changed, seen.held] {
        assert!(count * 40 > seen.frames, "{seen:?}");
    }
}

/// docs/from-other-tools.md, executed: each fault of it hits what the model says, and something.
#[test]
fn translations_from_other_tools_do_what_the_model_says() {
    const PAGE: &str = include_str!("../../../../docs/from-other-tools.md");
    const AROUND: &str =
        "weir: 1\nname: translated\ntopology: {star: {hosts: [c, s, a, b], switch: sw}}\n";
    let blocks = PAGE.split("```yaml\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap_or_default());
    // Of faults that hit no packet no switch's program knows.
    let blocks: Vec<String> = blocks
        .filter(|block| block.contains("flows:"))
        .map(|block| match block.contains("workload:") {
            true => format!("{AROUND}{block}"),
            false => format!("{AROUND}workload: {{idle: {{for: 10s}}}}\n{block}"),
        })
        .collect();
    assert!(blocks.len() >= 9, "{}", blocks.len());
    let (mut random, mut seen) = (Random(7), Seen::default());
    for text in &blocks {
        for arch in [Arch::Psa, Arch::V1model] {
            let mut pair = Pair::new(arch, text).unwrap_or_else(|| panic!("refused: {text}"));
            // Some of it holds packets for a second: not more frames than it takes, which of a probability may be many.
            for round in 0..3000 {
                for step in 0..pair.lab.plan.timeline.len() {
                    let epoch = pair.lab.plan.timeline[step].epoch;
                    pair.send(&mut random, epoch, 50, &mut seen);
                }
                if pair.idle_fault().is_none() {
                    break;
                }
                assert!(round < 2999, "{arch:?}: {:?}\n{text}", pair.idle_fault());
            }
            pair.assert_counts();
        }
    }
}

/// `cargo xtask equivalence`.
#[test]
#[ignore = "minutes: cargo xtask equivalence"]
fn a_million_frames_through_programs_by_chance() {
    let mut total = Seen::default();
    let mut seed = 100;
    while total.frames < 1_000_000 {
        let seen = hold(seed, 40, 1_000);
        total.scenarios += seen.scenarios;
        total.refused += seen.refused;
        total.frames += seen.frames;
        total.hits += seen.hits;
        total.changed += seen.changed;
        total.held += seen.held;
        seed += 1;
    }
    println!("{total:?}");
}
