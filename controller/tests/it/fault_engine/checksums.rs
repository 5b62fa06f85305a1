//! Checksums that follow what faults change: random protocol stacks, frames and changes, the switch against the model, and
//! tshark over what left.

use std::fmt::Write as _;
use std::process::Command;

use parser_gen::{Arch, ProtocolSource};
use scenario::Given;
use scenario::replay::{Engine, Recorded};

use super::equivalence::Random;
use super::{ARCHS, GAP_NS, Lab, sum_of, target};

/// The protocol that carries the user's protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Udp,
    Tcp,
    Icmp,
}

const TRANSPORTS: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::Icmp];
const PORT: u16 = 40_007;

/// A header of a protocol file.
struct OwnHeader {
    bits: Vec<u32>,
    /// Its first field counts its 32-bit words.
    has_options: bool,
    /// The field that is the header's own checksum.
    checksum: Option<usize>,
}

impl OwnHeader {
    /// 1 to 7 bytes, fields of any width; or 4 bytes, and words of options. Some have a checksum over these bytes, at an even
    /// or an odd one.
    fn random(random: &mut Random) -> OwnHeader {
        let has_options = random.one_in(4);
        let bytes = match has_options {
            true => 4,
            false => 1 + random.below(7) as u32,
        };
        let first = u32::from(has_options);
        let at = (bytes > 2 && random.one_in(2))
            .then(|| first + random.below(u64::from(bytes - 1 - first)) as u32);
        let mut bits = if has_options { vec![4] } else { Vec::new() };
        let mut checksum = None;
        loop {
            let filled: u32 = bits.iter().sum();
            let end = match at {
                Some(at) if filled < 8 * at => 8 * at,
                _ => 8 * bytes,
            };
            if filled == end {
                break;
            }
            if at == Some(filled / 8) && checksum.is_none() {
                checksum = Some(bits.len());
                bits.push(16);
                continue;
            }
            bits.push((1 + random.below(24) as u32).min(end - filled));
        }
        OwnHeader {
            bits,
            has_options,
            checksum,
        }
    }

    /// The byte at which its checksum stands.
    fn checksum_at(&self) -> Option<usize> {
        let before = &self.bits[..self.checksum?];
        Some(before.iter().sum::<u32>() as usize / 8)
    }

    fn bytes(&self) -> usize {
        self.bits.iter().sum::<u32>() as usize / 8
    }

    fn file(&self, number: usize, carried_by: &str) -> ProtocolSource {
        let name = OWN[number];
        let mut text = format!(
            "name: {name}\nfilter: {name}\nabout: made up\nheader: {{type: {name}_h}}\nfields:\n"
        );
        for (field, bits) in self.bits.iter().enumerate() {
            let line = match self.checksum == Some(field) {
                true => format!("  - {{name: checksum, bits: {bits}}}"),
                false => format!(
                    "  - {{name: f{field}, bits: {bits}, filter: {name}.f{field}, about: made up}}"
                ),
            };
            writeln!(text, "{line}").unwrap();
        }
        if self.has_options {
            text.push_str(
                "options: {length: f0, first_word: 1, max: 15, malformed: tcp_malformed}\n",
            );
        }
        writeln!(text, "carried_by:\n{carried_by}").unwrap();
        ProtocolSource {
            file: format!("{name}.yaml"),
            text,
        }
    }

    fn frame(&self, random: &mut Random) -> Vec<u8> {
        let mut bytes = random.bytes(self.bytes());
        if self.has_options {
            let words = 1 + random.below(3) as u8;
            bytes[0] = words << 4 | bytes[0] & 15;
            bytes.extend(random.bytes(4 * usize::from(words - 1)));
        }
        if let Some(at) = self.checksum_at() {
            let checksum = match random.below(4) {
                0 => random.below(1 << 16) as u16,
                1 => [0, 0xffff][random.below(2) as usize],
                _ => right_checksum(&bytes[..self.bytes()], at),
            };
            bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        bytes
    }
}

/// The checksum over a header, which stands at one of its bytes.
fn right_checksum(header: &[u8], at: usize) -> u16 {
    let mut zeroed = header.to_vec();
    zeroed[at..at + 2].fill(0);
    let checksum = !(sum_of(&[&zeroed]) as u16);
    match at % 2 {
        0 => checksum,
        _ => checksum.swap_bytes(),
    }
}

const OWN: [&str; 3] = ["alpha", "beta", "gamma"];

/// A scenario by chance: up to three protocols of its own on one transport, and faults that change fields of all.
struct Case {
    transport: Transport,
    own: Vec<OwnHeader>,
    text: String,
    given: Given,
}

impl Case {
    fn random(random: &mut Random) -> Case {
        let transport = TRANSPORTS[random.below(5).min(2) as usize];
        let own: Vec<OwnHeader> = (0..1 + random.below(3))
            .map(|_| OwnHeader::random(random))
            .collect();
        let files = own.iter().enumerate().map(|(number, header)| {
            let by = match (number, transport) {
                (0, Transport::Udp) => format!("  - {{by: udp, when: [{PORT}]}}"),
                (0, Transport::Tcp) => format!("  - {{by: tcp, when: [{PORT}]}}"),
                (0, Transport::Icmp) => {
                    "  - {by: icmp, when: []}\n  - {by: icmpv6, when: []}".to_owned()
                }
                _ => format!("  - {{by: {}, when: []}}", OWN[number - 1]),
            };
            header.file(number, &by)
        });
        let given = Given {
            protocols: files.collect(),
            ..Given::default()
        };
        let mut text = "weir: 1\nname: lab\ntopology: {star: {hosts: [a, s], switch: sw}}\n\
             flows: {all: 'eth.src == 02:57:45:00:00:01'}\nfaults:\n"
            .to_owned();
        for fault in 0..3 {
            let effect = effect(random, transport, &own);
            let every = 2 + fault;
            writeln!(
                text,
                "  - {{id: f{fault}, flows: all, effect: {effect}, select: {{every: {every}}}}}"
            )
            .unwrap();
        }
        Case {
            transport,
            own,
            text,
            given,
        }
    }

    fn lab(&self, arch: Arch, edit: impl Fn(&str, &str) -> String) -> Lab {
        let scenario = scenario::load_with("lab.yaml", &self.text, &self.given)
            .unwrap_or_else(|error| panic!("{}\n{error}", self.text));
        Lab::of_scenario(&target(arch), arch, scenario, edit)
    }

    /// A frame whose checksums are right.
    fn frame(&self, lab: &Lab, random: &mut Random) -> Vec<u8> {
        let mut data = Vec::new();
        for header in &self.own {
            data.extend(header.frame(random));
        }
        let more = random.below(9) as usize;
        data.extend(random.bytes(more));
        // The packet may end inside what a parser takes for a header: the rest is padding.
        let padding = match random.one_in(8) {
            true => data.split_off(random.below(data.len() as u64 + 1) as usize),
            false => Vec::new(),
        };
        let is_v6 = random.one_in(2);
        let mut frame = lab.frame(super::FIRST, 0)[..12].to_vec();
        if random.one_in(3) {
            frame.extend([0x81, 0, 0, 5]);
        }
        let segment = |number: u8, addresses: &[u8], random: &mut Random| {
            self.segment(number, addresses, &data, random)
        };
        if is_v6 {
            let number = [17, 6, 58][self.transport as usize];
            let addresses = random.bytes(32);
            let segment = segment(number, &addresses, random);
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((segment.len() as u16).to_be_bytes());
            frame.extend([number, 64]);
            frame.extend(addresses);
            frame.extend(segment);
        } else {
            let number = [17, 6, 1][self.transport as usize];
            let options = random.below(3) as usize;
            let addresses = random.bytes(8);
            let segment = segment(number, &addresses, random);
            let length = (20 + 4 * options + segment.len()) as u16;
            let mut ip = vec![0x45 + options as u8, random.below(256) as u8];
            ip.extend(length.to_be_bytes());
            ip.extend(random.bytes(2));
            ip.extend([0x40, 0, 64, number, 0, 0]);
            ip.extend(addresses);
            ip.extend(vec![1; 4 * options]);
            let checksum = !(sum_of(&[&ip]) as u16);
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            frame.extend([0x08, 0x00]);
            frame.extend(ip);
            frame.extend(segment);
        }
        frame.extend(padding);
        frame
    }

    /// A transport header with a right checksum, and what it carries.
    fn segment(&self, number: u8, addresses: &[u8], data: &[u8], random: &mut Random) -> Vec<u8> {
        let port = PORT.to_be_bytes();
        let (mut segment, at) = match self.transport {
            Transport::Udp => {
                let length = (8 + data.len() as u16).to_be_bytes();
                let source = random.bytes(2);
                ([&source[..], &port, &length, &[0, 0]].concat(), 6)
            }
            Transport::Tcp => {
                let words = random.below(4) as u8;
                let mut tcp = [random.bytes(2), port.to_vec(), random.bytes(8)].concat();
                tcp.extend([(5 + words) << 4, 0x18, 1, 0, 0, 0, 0, 0]);
                tcp.extend(vec![1; 4 * usize::from(words)]);
                (tcp, 16)
            }
            // Of no kind that tshark takes apart.
            Transport::Icmp => (vec![if number == 1 { 200 } else { 250 }, 0, 0, 0], 2),
        };
        segment.extend(data);
        if self.transport == Transport::Udp && random.one_in(16) {
            return segment;
        }
        let length = (segment.len() as u32).to_be_bytes();
        let checksum = match number {
            1 => !(sum_of(&[&segment]) as u16),
            _ => !(sum_of(&[addresses, &length, &[0, number], &segment]) as u16),
        };
        let checksum = match (checksum, number) {
            (0, 17) => 0xffff,
            (checksum, _) => checksum,
        };
        segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        segment
    }
}

/// `set` of up to four fields, or `corrupt` with checksums mended.
fn effect(random: &mut Random, transport: Transport, own: &[OwnHeader]) -> String {
    let field = |random: &mut Random| -> (String, u32) {
        if random.one_in(3) {
            let of_transport: &[(&str, u32)] = match transport {
                Transport::Udp => &[("udp.sport", 16)],
                Transport::Tcp => &[("tcp.seq", 32), ("tcp.flags.urg", 1), ("tcp.window", 16)],
                Transport::Icmp => &[("icmp.code", 8), ("icmpv6.code", 8)],
            };
            let of_network = [
                ("ip.dscp", 6),
                ("ip.id", 16),
                ("ip.src", 32),
                ("ipv6.src", 128),
                ("ipv6.dst", 128),
                ("vlan.priority", 3),
            ];
            let all = [of_transport, &of_network].concat();
            let (name, bits) = all[random.below(all.len() as u64) as usize];
            return (name.to_owned(), bits);
        }
        // What stands behind a user's checksum is refused: no file says what it covers.
        let with_checksum = own.iter().position(|header| header.checksum.is_some());
        let until = with_checksum.map_or(own.len(), |number| number + 1);
        let number = random.below(until as u64) as usize;
        let OwnHeader { bits, checksum, .. } = &own[number];
        let first = usize::from(own[number].has_options);
        let fields = (first..bits.len()).filter(|field| *checksum != Some(*field));
        let fields: Vec<usize> = fields.collect();
        let field = fields[random.below(fields.len() as u64) as usize];
        (format!("{}.f{field}", OWN[number]), bits[field])
    };
    if transport == Transport::Tcp && random.one_in(6) {
        return "reset".to_owned();
    }
    match random.below(4) {
        0 => {
            let (name, bits) = field(random);
            let flips = 1 + random.below(u64::from(bits.min(5)));
            format!("{{corrupt: {{field: {name}, bits: {flips}, checksums: mended}}}}")
        }
        1 => {
            let (name, bits) = field(random);
            let mask = 1 + random.below((1 << bits.min(30)) - 1);
            format!("{{corrupt: {{field: {name}, xor: {mask:#x}, checksums: mended}}}}")
        }
        _ => {
            let mut changes = std::collections::BTreeMap::new();
            for _ in 0..1 + random.below(4) {
                let (name, bits) = field(random);
                // All ones and all zeros are where ones' complement has two zeros.
                let value = match random.below(4) {
                    0 => 0,
                    1 => (1_u64 << bits.min(63)) - 1,
                    _ => random.below(1 << bits.min(31)),
                };
                changes.insert(name, value);
            }
            let changes = changes
                .iter()
                .map(|(name, value)| format!("{name}: {value:#x}"));
            format!("{{set: {{{}}}}}", changes.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A frame before and after a switch, and as the model expects it.
struct Passed {
    came: Vec<u8>,
    left: Vec<u8>,
    expected: Vec<u8>,
}

/// Sends frames by chance through a switch and its model.
fn pass(case: &Case, lab: &mut Lab, random: &mut Random, frames: u32) -> Vec<Passed> {
    lab.set_epoch(1);
    let engine = Engine::new(&lab.scenario, &lab.plan, "sw").unwrap();
    let mut state = engine.start();
    let passed = (0..frames).map(|_| {
        let came = case.frame(lab, random);
        let in_port = lab.in_port();
        let classified = engine.classify(&came, in_port);
        let passage = engine.pass(&mut state, &classified, 1);
        let expected = engine.leaves_as(&passage.ingress, Recorded::whole(&came));
        lab.switch.handle_packet(lab.now_ns, in_port, &came);
        lab.now_ns += GAP_NS;
        let left = lab.switch.poll_transmit().map(|transmit| transmit.bytes);
        Passed {
            expected: expected.map_or_else(|| came.clone(), |expected| expected.bytes),
            left: left.unwrap_or_default(),
            came,
        }
    });
    passed.collect()
}

#[test]
fn checksums_follow_changes_anywhere_in_a_packet() {
    const FRAMES_OF_A_PROGRAM: u32 = 1_000;
    let programs = test_support::cases(1_000_000) / FRAMES_OF_A_PROGRAM;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("left.pcap");
    let mut capture = Capture::new();
    let (mut changed, mut frames) = (0, 0);
    for seed in 0..programs {
        let mut random = Random(u64::from(seed) * 2 + 1);
        let case = Case::random(&mut random);
        let arch = ARCHS[seed as usize % 3];
        let mut lab = case.lab(arch, |_, text| text.to_owned());
        for passed in pass(&case, &mut lab, &mut random, FRAMES_OF_A_PROGRAM) {
            let Passed {
                came,
                left,
                expected,
            } = passed;
            if left != expected {
                panic!(
                    "{arch:?} {seed}: {came:02x?}\nleft     {left:02x?}\nexpected {expected:02x?}\n{}",
                    case.text
                );
            }
            changed += u32::from(left != came);
            frames += 1;
            capture.push(&left);
        }
    }
    assert!(changed > frames / 3, "{changed} of {frames}");
    std::fs::write(&file, capture.0).unwrap();
    if test_support::has_program("checksums as tshark sees them", "tshark") {
        let bad = tshark(&file, "== 0");
        assert_eq!(bad, Vec::<String>::new(), "frames with bad checksums");
        // Every frame but those without a UDP checksum was looked at.
        let good = tshark(&file, "== 1").len() as u32;
        assert!(good > frames * 9 / 10, "{good} of {frames}");
    }
}

/// By how much the transport checksum of a frame is off, in ones' complement; 0 if it is right.
fn error_of(frame: &[u8]) -> u32 {
    let ip = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
    let word = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
    let (addresses, number, begin, end) = match frame[ip] >> 4 {
        4 => {
            let begin = ip + 4 * usize::from(frame[ip] & 15);
            (
                &frame[ip + 12..ip + 20],
                frame[ip + 9],
                begin,
                ip + word(ip + 2),
            )
        }
        _ => {
            let begin = ip + 40;
            (
                &frame[ip + 8..begin],
                frame[ip + 6],
                begin,
                begin + word(ip + 4),
            )
        }
    };
    let segment = &frame[begin..end];
    let length = (segment.len() as u32).to_be_bytes();
    sum_of(&[addresses, &length, &[0, number], segment]) % 0xffff
}

/// A segment in IPv6, from one host to the other.
fn in_ipv6(lab: &Lab, tag: &[u8], number: u8, segment: &[u8]) -> Vec<u8> {
    let host = |last: u8| [&[0x20, 1, 0xd, 0xb8], &[0; 11][..], &[last]].concat();
    let length = (segment.len() as u16).to_be_bytes();
    [
        &lab.frame(super::FIRST, 0)[..12],
        tag,
        &[0x86, 0xdd, 0x60, 0, 0, 0],
        &length,
        &[number, 64],
        &host(1),
        &host(2),
        segment,
    ]
    .concat()
}

/// The UDP checksum of a frame whose right one, after a change, is a sum of 0.
fn mended_to_zero(edit: impl Fn(&str, &str) -> String) -> u16 {
    const CHECKSUM: usize = 54 + 6;
    let text = "weir: 1\nname: lab\ntopology: {star: {hosts: [a, s], switch: sw}}\n\
         flows: {all: 'eth.src == 02:57:45:00:00:01'}\n\
         faults: [{id: f, flows: all, effect: {set: {udp.sport: 53}}}]\n";
    let mut lab = Lab::of(Arch::Psa, text, edit);
    lab.set_epoch(1);
    let put = |frame: &mut Vec<u8>, at: usize, word: u32| {
        frame[at..at + 2].copy_from_slice(&(word as u16).to_be_bytes());
    };
    let mut frame = in_ipv6(&lab, &[], 17, &[0, 53, 0, 9, 0, 10, 0, 0, 0, 0]);
    // The data make up for the rest of the sum.
    let rest = 0xffff - error_of(&frame);
    put(&mut frame, CHECKSUM + 2, rest);
    put(&mut frame, 54, 999);
    let right = 0xffff - error_of(&frame);
    put(&mut frame, CHECKSUM, right);
    let in_port = lab.in_port();
    lab.switch.handle_packet(lab.now_ns, in_port, &frame);
    let left = lab.switch.poll_transmit().unwrap().bytes;
    u16::from_be_bytes([left[CHECKSUM], left[CHECKSUM + 1]])
}

#[test]
fn a_udp_checksum_of_zero_is_written_as_all_ones() {
    assert_eq!(mended_to_zero(|_, text| text.to_owned()), 0xffff);
    let (rule, broken) = ("if (hdr.udp.checksum == 0)", "if (hdr.udp.checksum == 1)");
    assert_eq!(mended_to_zero(|_, text| text.replace(rule, broken)), 0);
}

#[test]
fn a_right_checksum_stays_right_and_a_wrong_one_as_wrong() {
    const VXLAN: u16 = 4789;
    let udp = |port: u16, data: &[u8]| {
        let length = (8 + data.len() as u16).to_be_bytes();
        [&[3, 231][..], &port.to_be_bytes(), &length, &[0, 0], data].concat()
    };
    let vxlan = udp(VXLAN, &[8, 0, 0, 0, 0, 0, 42, 0, 1, 2, 3]);
    let tcp = [
        &[
            3, 231, 0, 80, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x18, 1, 0, 0, 0, 0, 0,
        ][..],
        b"hello",
    ]
    .concat();
    let icmp = vec![128, 0, 0, 0, 0, 1, 0, 2, 9];
    let examples = [
        ("{set: {vxlan.flags: 0xff}}", 17, 6, &vxlan),
        (
            "{set: {vxlan.vni: 0xabcdef, vxlan.flags: 0}}",
            17,
            6,
            &vxlan,
        ),
        (
            "{corrupt: {field: vxlan.vni, bits: 3, checksums: mended}}",
            17,
            6,
            &vxlan,
        ),
        (
            "{set: {udp.dport: 4790, ipv6.dst: '2001:db8::7'}}",
            17,
            6,
            &vxlan,
        ),
        ("{set: {ipv6.src: '2001:db8::7'}}", 6, 16, &tcp),
        (
            "{corrupt: {field: tcp.flags.urg, xor: 1, checksums: mended}}",
            6,
            16,
            &tcp,
        ),
        ("{set: {ipv6.src: '2001:db8::7'}}", 58, 2, &icmp),
        ("{set: {icmpv6.code: 9}}", 58, 2, &icmp),
    ];
    for (effect, number, at, segment) in examples {
        let text = format!(
            "weir: 1\nname: lab\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\n\
             flows: {{all: 'eth.src == 02:57:45:00:00:01'}}\n\
             faults: [{{id: f, flows: all, effect: {effect}}}]\n"
        );
        for (tag, off) in [(&[][..], 0), (&[0x81, 0, 0, 5][..], 0), (&[], 0x1234)] {
            let mut lab = Lab::of(Arch::Psa, &text, |_, text| text.to_owned());
            lab.set_epoch(1);
            let mut frame = in_ipv6(&lab, tag, number, segment);
            let place = frame.len() - segment.len() + at;
            let right = (0xffff - error_of(&frame)) as u16;
            frame[place..place + 2].copy_from_slice(&(right.wrapping_add(off)).to_be_bytes());
            let before = error_of(&frame);
            assert_eq!(before == 0, off == 0, "{effect}");
            let in_port = lab.in_port();
            lab.switch.handle_packet(lab.now_ns, in_port, &frame);
            let left = lab.switch.poll_transmit().unwrap().bytes;
            assert_ne!(left, frame, "{effect}");
            assert_eq!(error_of(&left), before, "{effect}");
        }
    }
}

/// A telemetry header with a checksum of its own, behind `carried_by`, with so many bytes in front of the checksum.
fn telemetry(bytes: usize, carried_by: &str) -> ProtocolSource {
    let front: String = (0..bytes)
        .map(|n| format!("  - {{name: f{n}, bits: 8, filter: tel.f{n}, about: made up}}\n"))
        .collect();
    ProtocolSource {
        file: "tel.yaml".to_owned(),
        text: format!(
            "name: tel\nfilter: tel\nabout: made up\nheader: {{type: tel_h}}\nfields:\n{front}\
             \x20 - {{name: checksum, bits: 16}}\n\
             \x20 - {{name: value, bits: 16, filter: tel.value, about: made up}}\n\
             carried_by: [{{by: {carried_by}}}]\n"
        ),
    }
}

/// A header of bytes without a meaning.
fn wrapper(bytes: usize, carried_by: &str) -> ProtocolSource {
    ProtocolSource {
        file: "wrap.yaml".to_owned(),
        text: format!(
            "name: wrap\nfilter: wrap\nabout: made up\nheader: {{type: wrap_h}}\n\
             fields: [{{name: all, bits: {}, filter: wrap.all, about: made up}}]\n\
             carried_by: [{{by: {carried_by}}}]\n",
            8 * bytes
        ),
    }
}

#[test]
fn a_checksum_of_a_users_header_and_those_in_front_of_it_stay_as_right() {
    const VXLAN: u16 = 4789;
    let by_port = format!("udp, when: [{PORT}]");
    let next = "wrap, when: []";
    // Protocol files, what is set, the UDP port, and the bytes in front of the header and of its checksum: 14 of an inner
    // Ethernet header behind VXLAN, 8 of an IPv4 header up to its checksum.
    let examples = [
        (vec![telemetry(2, &by_port)], "tel.f1: 9", PORT, 0, 2),
        (vec![telemetry(3, &by_port)], "tel.f1: 9", PORT, 0, 3),
        (
            vec![telemetry(0, &by_port)],
            "tel.value: 9, udp.sport: 7",
            PORT,
            0,
            0,
        ),
        (
            vec![wrapper(3, &by_port), telemetry(2, next)],
            "tel.f1: 9, tel.value: 0",
            PORT,
            3,
            2,
        ),
        (
            vec![wrapper(5, &by_port), telemetry(1, next)],
            "tel.f0: 0xff, wrap.all: 3",
            PORT,
            5,
            1,
        ),
        (
            vec![wrapper(14, "vxlan, when: []"), telemetry(10, next)],
            "tel.f8: 1, vxlan.vni: 7",
            VXLAN,
            8 + 14,
            10,
        ),
    ];
    for (protocols, set, port, front, at) in examples {
        let given = Given {
            protocols,
            ..Given::default()
        };
        let text = format!(
            "weir: 1\nname: lab\ntopology: {{star: {{hosts: [a, s], switch: sw}}}}\n\
             flows: {{all: 'eth.src == 02:57:45:00:00:01'}}\n\
             faults: [{{id: f, flows: all, effect: {{set: {{{set}}}}}}}]\n"
        );
        for (arch, off) in [(Arch::Psa, 0), (Arch::V1model, 0), (Arch::Tna, 0x1234)] {
            let scenario = scenario::load_with("lab.yaml", &text, &given)
                .unwrap_or_else(|error| panic!("{text}\n{error}"));
            let mut lab =
                Lab::of_scenario(&target(arch), arch, scenario, |_, text| text.to_owned());
            lab.set_epoch(1);
            let own = 8 + front..8 + front + at + 4;
            let mut segment: Vec<u8> = (1..own.end as u8 + 3).collect();
            let length = segment.len() as u16;
            for (place, word) in [(2, port), (4, length), (6, 0)] {
                segment[place..place + 2].copy_from_slice(&word.to_be_bytes());
            }
            let checksum = right_checksum(&segment[own.clone()], at).wrapping_add(off);
            segment[own.start + at..][..2].copy_from_slice(&checksum.to_be_bytes());
            let mut frame = in_ipv6(&lab, &[], 17, &segment);
            let right = (0xffff - error_of(&frame)) as u16;
            frame[60..62].copy_from_slice(&right.wrapping_add(off).to_be_bytes());
            let in_port = lab.in_port();
            lab.switch.handle_packet(lab.now_ns, in_port, &frame);
            let left = lab.switch.poll_transmit().unwrap().bytes;
            let errors = |frame: &[u8]| {
                let own = &frame[54 + own.start..54 + own.end];
                [error_of(frame), sum_of(&[own]) % 0xffff]
            };
            assert_ne!(left, frame, "{set}");
            assert_eq!(errors(&frame) == [0, 0], off == 0, "{set}");
            assert_eq!(errors(&left), errors(&frame), "{arch:?} {set}");
        }
    }
}

#[test]
fn a_checksum_that_is_not_two_whole_bytes_is_refused_by_name() {
    let by_port = format!("udp, when: [{PORT}]");
    let ProtocolSource { file, text } = telemetry(1, &by_port);
    let whole = "{name: f0, bits: 8, filter: tel.f0, about: made up}";
    assert!(text.contains(whole));
    let halves = "{name: f0, bits: 4, filter: tel.f0, about: made up}";
    let rest = "{name: rest, bits: 4}\ncarried_by";
    let text = text
        .replace(whole, halves)
        .replace("carried_by", &format!("  - {rest}"));
    let given = Given {
        protocols: vec![ProtocolSource { file, text }],
        ..Given::default()
    };
    let set = "weir: 1\nname: lab\ntopology: {star: {hosts: [a, s], switch: sw}}\n\
         flows: {all: udp}\nfaults: [{id: f, flows: all, effect: {set: {tel.value: 9}}}]\n";
    let error = scenario::load_with("lab.yaml", set, &given).unwrap_err();
    let told = "`tel.value` may be covered by `tel.checksum`, which a switch cannot mend";
    assert!(error.to_string().contains(told), "{error}");
}

/// The numbers of the frames of which some checksum has this status.
fn tshark(file: &std::path::Path, status: &str) -> Vec<String> {
    let protocols = ["ip", "udp", "tcp", "icmp", "icmpv6"];
    let any = protocols.map(|protocol| format!("{protocol}.checksum.status {status}"));
    let mut tshark = Command::new("tshark");
    for protocol in ["ip", "udp", "tcp"] {
        tshark.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    // What ports and kinds happen to stand for would be taken apart.
    tshark.args([
        "-d",
        &format!("udp.port=={PORT},data"),
        "-d",
        &format!("tcp.port=={PORT},data"),
    ]);
    tshark.args([
        "-o",
        "tcp.desegment_tcp_streams:FALSE",
        "-o",
        "tcp.analyze_sequence_numbers:FALSE",
    ]);
    tshark.args([
        "-T",
        "fields",
        "-e",
        "frame.number",
        "-Y",
        &any.join(" || "),
    ]);
    let output = tshark.arg("-r").arg(file).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// A pcap file of Ethernet frames.
struct Capture(Vec<u8>);

impl Capture {
    fn new() -> Capture {
        let mut bytes = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0]);
        for word in [0, 0, 65_535, 1_u32] {
            bytes.extend(word.to_le_bytes());
        }
        Capture(bytes)
    }

    fn push(&mut self, frame: &[u8]) {
        let length = frame.len() as u32;
        for word in [0, 0, length, length] {
            self.0.extend(word.to_le_bytes());
        }
        self.0.extend(frame);
    }
}

/// Each rule of the P4 text that mends, broken in the switch alone, makes frames leave that the model does not expect.
#[test]
fn a_broken_rule_of_mending_is_noticed() {
    let mutants = [
        // The difference: the old value, the new one, and where a field stands in a word.
        ("(~old", "(old", 0),
        ("(bit<32>) new", "(bit<32>) ~new", 0),
        // Both carries.
        (" & 0xffff) + (", " & 0xffff) | (", 0),
        (
            "sum_udp = sum_udp + delta",
            "sum_udp = sum_udp + 2 * delta",
            0,
        ),
        ("sum_tcp = sum_tcp + delta", "sum_tcp = 0 * delta", 1),
        ("sum_ipv4 = sum_ipv4 + delta", "sum_ipv4 = 0 * delta", 0),
        ("sum_icmp = sum_icmp + delta", "sum_icmp = 0 * delta", 2),
        (
            "sum_icmpv6 = sum_icmpv6 + delta",
            "sum_icmpv6 = 0 * delta",
            2,
        ),
        // Odd offsets, and how far a header is from its transport's.
        ("[0:0] == 1", "[0:0] == 2", 0),
        (" << 8) | (", " << 8) & (", 0),
        (
            "if (hdr.alpha.isValid()) {\n                    at",
            "if (!hdr.alpha.isValid()) {\n                    at",
            0,
        ),
        // Padding.
        (
            " > (bit<32>) hdr.udp.length",
            " > 70000 + (bit<32>) hdr.udp.length",
            0,
        ),
        (
            " > (bit<32>) hdr.ipv4.total_len",
            " > 70000 + (bit<32>) hdr.ipv4.total_len",
            1,
        ),
        (
            " > (bit<32>) hdr.ipv6.payload_len",
            " > 70000 + (bit<32>) hdr.ipv6.payload_len",
            1,
        ),
        // UDP's two ways to write 0.
        ("hdr.udp.checksum != 0", "hdr.udp.checksum != 1", 0),
        (
            "sum_udp = sum_udp + (bit<32>) (~hdr.udp.checksum)",
            "sum_udp = sum_udp + (bit<32>) hdr.udp.checksum",
            0,
        ),
        ("checksum = ~sum", "checksum = sum", 0),
        // The checksum of a header behind the transport's: it follows, and leaves the transport's as it is.
        ("hdr.alpha.checksum = ~sum_alpha[15:0];", "", 0),
        (
            "hdr.beta.checksum = ~sum_beta[15:0];",
            "hdr.udp.checksum = hdr.udp.checksum + (hdr.beta.checksum - ~sum_beta[15:0]);
             hdr.beta.checksum = ~sum_beta[15:0];",
            0,
        ),
        // One at an odd byte.
        (
            "sum_alpha = ((sum_alpha << 8)",
            "sum_alpha = ((sum_alpha << 7)",
            0,
        ),
        // A reset: its lengths, and a sum over all of it.
        ("hdr.ipv4.ihl << 2) + 20;", "hdr.ipv4.ihl << 2) + 24;", 1),
        (
            "hdr.ipv6.payload_len = 20;",
            "hdr.ipv6.payload_len = 24;",
            1,
        ),
        ("bit<32> sum = 26;", "bit<32> sum = 27;", 1),
        ("sum = sum + (bit<32>) hdr.tcp.src_port;", "", 1),
        ("sum_ipv4 = sum_ipv4 + (bit<32>) hdr.ipv4.total_len;", "", 1),
    ];
    for (old, new, transport) in mutants {
        let transport = TRANSPORTS[transport];
        let mut applied = false;
        let noticed = (0..400).any(|seed| {
            let mut random = Random(seed * 2 + 77);
            let case = Case::random(&mut random);
            if case.transport != transport {
                return false;
            }
            let has_rule = std::cell::Cell::new(false);
            let mut lab = case.lab(Arch::V1model, |path, text| {
                if !path.ends_with("engine.p4") {
                    return text.to_owned();
                }
                has_rule.set(text.contains(old));
                text.replace(old, new)
            });
            applied |= has_rule.get();
            has_rule.get()
                && pass(&case, &mut lab, &mut random, 300)
                    .iter()
                    .any(|passed| passed.left != passed.expected)
        });
        assert!(applied, "no text has `{old}`");
        assert!(noticed, "`{new}` for `{old}` was not noticed");
    }
}
