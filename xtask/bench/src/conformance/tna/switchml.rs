//! SwitchML's program: two versions of each slot, a bitmap of workers, results by multicast and retransmissions by unicast.
//!
//! Packets of 256 bytes take two passes through pipe 0; packets of 1024 bytes take twelve, through
//! all four pipes, whose ports are in loopback. The table entries are its controller's.

use super::frames::{Ip, Mac, ethernet, ipv4, number, udp};
use super::{ClockedSwitch, call, load, value};
use p4lang::runtime::Match;
use pipeline::{Executor, MulticastNode, MulticastTree};
use std::path::Path;

const PROGRAM: &[&str] = &["dev_root/p4/switchml.p4", "p4/switchml.p4", "switchml.p4"];
const WORKERS: u32 = 4;
const SLOTS: u32 = 3;
const JOB: u8 = 5;
const GROUP: u16 = 16;
const FLOOD: u16 = 64;
const SWITCH_MAC: Mac = [6, 0, 0, 0, 0, 1];
const SWITCH_IP: Ip = [10, 0, 0, 254];
const SWITCH_UDP: u16 = 0xbee0;
/// UDP port of all workers: a result goes to the port that the last packet came from.
const WORKER_UDP: u16 = 5000;

/// Size of a packet, as SwitchML's `packet_size_t` encodes it.
#[derive(Clone, Copy, PartialEq)]
enum PacketSize {
    Small = 1,
    Large = 3,
}

impl PacketSize {
    fn values(self) -> usize {
        match self {
            PacketSize::Small => 64,
            PacketSize::Large => 256,
        }
    }
}

fn port(worker: u32) -> u32 {
    worker * 4
}

fn mac(worker: u32) -> Mac {
    [2, 0, 0, 0, 0, worker as u8]
}

fn ip(worker: u32) -> Ip {
    [10, 0, 0, 1 + worker as u8]
}

/// A chunk of the tensor, which determines a slot and its version.
#[derive(Clone, Copy)]
struct Chunk {
    number: u32,
    first_slot: u32,
    size: PacketSize,
}

impl Chunk {
    fn pool_index(self) -> u16 {
        let version = self.number / SLOTS % 2;
        (version << 15 | (self.first_slot + self.number % SLOTS)) as u16
    }

    /// Payload of a packet: `switchml_h`, the exponents, the values.
    fn payload(self, kind: u8, exponents: [i8; 2], values: &[u32]) -> Vec<u8> {
        let mut out = vec![kind << 4 | self.size as u8, JOB];
        out.extend((self.number * 1000).to_be_bytes());
        out.extend(self.pool_index().to_be_bytes());
        out.extend(exponents.map(|e| e as u8));
        out.extend(values.iter().flat_map(|v| v.to_be_bytes()));
        out
    }

    fn exponents(self, worker: u32) -> [i8; 2] {
        let mixed = value(worker, self.number, 9999).to_be_bytes();
        [mixed[0] as i8, mixed[1] as i8]
    }

    fn values(self, worker: u32) -> Vec<u32> {
        (0..self.size.values())
            .map(|i| value(worker, self.number, i))
            .collect()
    }

    fn sent_by(self, worker: u32) -> Vec<u8> {
        let payload = self.payload(0, self.exponents(worker), &self.values(worker));
        let datagram = udp(WORKER_UDP, SWITCH_UDP, &payload);
        let packet = ipv4(ip(worker), SWITCH_IP, 17, &datagram);
        ethernet(SWITCH_MAC, mac(worker), 0x0800, &packet)
    }

    /// The maximum over all workers of each of the two exponents.
    fn most(self) -> [i8; 2] {
        let all = (0..WORKERS).map(|w| self.exponents(w));
        all.fold([i8::MIN; 2], |most, e| {
            [most[0].max(e[0]), most[1].max(e[1])]
        })
    }

    /// Port and frame of the result that a worker expects: sums modulo 2³². The exponents are those of the last
    /// requesting packet: the program passes their struct to `exponents.apply` as its last argument, inout, so
    /// the copy-out overwrites the maximum (P4_16 1.2.5, section 6.8), which stays in the register.
    fn result(self, worker: u32, asked: u32) -> (u32, Vec<u8>) {
        let mut sums = vec![0u32; self.size.values()];
        for w in 0..WORKERS {
            for (sum, value) in sums.iter_mut().zip(self.values(w)) {
                *sum = sum.wrapping_add(value);
            }
        }
        let payload = self.payload(1, self.exponents(asked), &sums);
        let datagram = udp(SWITCH_UDP, WORKER_UDP, &payload);
        let packet = ipv4(SWITCH_IP, ip(worker), 17, &datagram);
        (
            port(worker),
            ethernet(mac(worker), SWITCH_MAC, 0x0800, &packet),
        )
    }
}

pub fn test(dir: &Path, executor: Executor) -> Result<(), String> {
    let mut device = ClockedSwitch::new(load(dir, PROGRAM, executor)?);
    configure(&mut device)?;
    for (size, first_slot, chunks) in [(PacketSize::Small, 0, 12), (PacketSize::Large, 100, 7)] {
        for number in 0..chunks {
            let chunk = Chunk {
                number,
                first_slot,
                size,
            };
            aggregate(&mut device, chunk)?;
        }
    }
    forwarding(&mut device)?;
    match device.switch.stats().register_conflicts {
        0 => Ok(()),
        n => Err(format!("{n} registers executed twice in one pass")),
    }
}

/// Checks a chunk: sends all workers' packets, with retransmissions before and after the chunk is complete.
fn aggregate(device: &mut ClockedSwitch, chunk: Chunk) -> Result<(), String> {
    let named = |what: &str| {
        format!(
            "{} values, chunk {}, {what}",
            chunk.size.values(),
            chunk.number
        )
    };
    let last = (WORKERS - 1 + chunk.number) % WORKERS;
    let results: Vec<_> = (0..WORKERS).map(|w| chunk.result(w, last)).collect();
    for i in 0..WORKERS {
        let worker = (i + chunk.number) % WORKERS;
        let expected = if i + 1 == WORKERS { &results[..] } else { &[] };
        let frame = chunk.sent_by(worker);
        let what = named(&format!("worker {worker}"));
        device.expect(&what, port(worker), &frame, expected)?;
        if i == 1 {
            device.expect(&named("resent early"), port(worker), &frame, &[])?;
        }
    }
    // A worker that missed the result requests it by sending its packet again.
    for worker in [chunk.number % WORKERS, (chunk.number + 2) % WORKERS] {
        let frame = chunk.sent_by(worker);
        let again = [chunk.result(worker, worker)];
        device.expect(&named("resent late"), port(worker), &frame, &again)?;
    }
    let index = chunk.pool_index();
    let cell = u64::from(index & 0x3fff) << 1 | u64::from(index >> 15);
    let kept = device
        .switch
        .register_read("Ingress.exponents.exponents", cell);
    let most = chunk.most().map(|e| u128::from(e as u8)).to_vec();
    match kept {
        Ok(kept) if kept == most => Ok(()),
        kept => Err(named(&format!(
            "exponents {kept:?} in the register, expected {most:?}"
        ))),
    }
}

fn configure(device: &mut ClockedSwitch) -> Result<(), String> {
    // Ports 64 … 67 of pipe 0 and all ports of the other pipes are in loopback.
    let loopback = (64..68).chain(128..512).filter(|p| *p != 320);
    device.switch.set_loopback_ports(loopback.collect());
    let written = |e: Result<(), pipeline::ReplicationError>| e.map_err(|e| e.to_string());
    let node = |worker: u32| MulticastNode {
        rid: worker as u16,
        xid: Some(worker as u16),
        ports: vec![port(worker)],
        lags: Vec::new(),
    };
    written(device.switch.set_multicast_tree(&MulticastTree {
        id: GROUP,
        nodes: (0..WORKERS).map(node).collect(),
        ecmp: Vec::new(),
    }))?;
    let flooded = |worker: u32| MulticastNode {
        rid: 0x8000 + port(worker) as u16,
        xid: Some(0x8000 + port(worker) as u16),
        ..node(worker)
    };
    written(device.switch.set_multicast_tree(&MulticastTree {
        id: FLOOD,
        nodes: (0..WORKERS).map(flooded).collect(),
        ecmp: Vec::new(),
    }))?;
    let all = |bytes: &[u8]| Match::ternary(number(bytes), (1 << (8 * bytes.len())) - 1);
    for worker in 0..WORKERS {
        device.entry(
            "Ingress.udp_receiver.receive_udp",
            &[
                ("hdr.ethernet.src_addr", all(&mac(worker))),
                ("hdr.ethernet.dst_addr", all(&SWITCH_MAC)),
                ("hdr.ipv4.src_addr", all(&ip(worker))),
                ("hdr.ipv4.dst_addr", all(&SWITCH_IP)),
                (
                    "hdr.udp.dst_port",
                    Match::ternary(u128::from(SWITCH_UDP), 0xfff0),
                ),
                ("ig_prsr_md.parser_err", all(&[0, 0])),
            ],
            10,
            "Ingress.udp_receiver.set_bitmap",
            &[
                ("mgid", GROUP.into()),
                ("worker_type", 1),
                ("worker_id", worker.into()),
                ("num_workers", WORKERS.into()),
                ("worker_bitmap", 1 << worker),
            ],
        )?;
        device.entry(
            "Egress.udp_sender.dst_addr",
            &[(
                "eg_md.switchml_md.worker_id",
                Match::exact(u128::from(worker)),
            )],
            0,
            "Egress.udp_sender.set_dst_addr",
            &[
                ("eth_dst_addr", number(&mac(worker))),
                ("ip_dst_addr", number(&ip(worker))),
            ],
        )?;
        device.entry(
            "Ingress.forwarder.forward",
            &[("hdr.ethernet.dst_addr", Match::exact(number(&mac(worker))))],
            0,
            "Ingress.forwarder.set_egress_port",
            &[("egress_port", port(worker).into())],
        )?;
    }
    device.entry(
        "Ingress.forwarder.forward",
        &[("hdr.ethernet.dst_addr", Match::exact(0xffff_ffff_ffff))],
        0,
        "Ingress.forwarder.flood",
        &[("flood_mgid", FLOOD.into())],
    )?;
    let sender = call(
        "Egress.udp_sender.set_switch_mac_and_ip",
        &[
            ("switch_mac", number(&SWITCH_MAC)),
            ("switch_ip", number(&SWITCH_IP)),
        ],
    );
    device
        .switch
        .set_default_action("Egress.udp_sender.switch_mac_and_ip", Some(&sender))
        .map_err(|e| e.to_string())?;
    steps(device)
}

/// Entry of SwitchML's table `next_step`: size, worker, packet type, first or last, bitmap (`None`: any); action, port.
type Step = (
    Option<PacketSize>,
    Option<u32>,
    u8,
    Option<u8>,
    Option<u32>,
    &'static str,
    Option<u32>,
);

/// Writes the entries that decide a packet's next step; the first entry that matches counts.
fn steps(device: &mut ClockedSwitch) -> Result<(), String> {
    // packet_type_t
    const CONSUME: [u8; 4] = [4, 5, 6, 7];
    const HARVEST: [u8; 8] = [8, 9, 10, 11, 12, 13, 14, 15];
    // Input ports of harvest passes 1 to 7: two in each pipe, from the last pipe to the first. The controller uses 448
    // for the third, which is in pipe 3, so pipe 3's sums would arrive twice and half of pipe 2's not at all.
    const INTO: [u32; 8] = [0, 452, 324, 325, 196, 192, 64, 68];
    const FIRST: Option<u8> = Some(0);
    const LAST: Option<u8> = Some(1);
    const HARVESTS: [&str; 8] = [
        "",
        "recirculate_for_HARVEST1",
        "recirculate_for_HARVEST2",
        "recirculate_for_HARVEST3",
        "recirculate_for_HARVEST4",
        "recirculate_for_HARVEST5",
        "recirculate_for_HARVEST6",
        "recirculate_for_HARVEST7",
    ];
    let (small, large) = (Some(PacketSize::Small), Some(PacketSize::Large));
    let mut all: Vec<Step> = vec![
        (
            small,
            None,
            CONSUME[0],
            LAST,
            None,
            HARVESTS[7],
            Some(INTO[7]),
        ),
        (
            small,
            None,
            CONSUME[0],
            None,
            Some(0),
            "finish_consume",
            None,
        ),
        (
            small,
            None,
            CONSUME[0],
            FIRST,
            None,
            HARVESTS[7],
            Some(INTO[7]),
        ),
        (small, None, CONSUME[0], None, None, "drop", None),
    ];
    let on = "recirculate_for_CONSUME1";
    let into = |worker: u32| Some(128 + 4 * worker);
    all.extend((0..16).map(|w| (large, Some(w), CONSUME[0], None, Some(0), on, into(w))));
    all.extend((0..16).map(|w| (large, Some(w), CONSUME[0], FIRST, None, on, into(w))));
    let next = [
        "recirculate_for_CONSUME2_same_port_next_pipe",
        "recirculate_for_CONSUME3_same_port_next_pipe",
    ];
    all.extend([
        (large, None, CONSUME[0], None, None, "drop", None),
        (large, None, CONSUME[1], None, None, next[0], None),
        (large, None, CONSUME[2], None, None, next[1], None),
        (
            large,
            None,
            CONSUME[3],
            LAST,
            None,
            HARVESTS[1],
            Some(INTO[1]),
        ),
        (
            large,
            None,
            CONSUME[3],
            None,
            Some(0),
            "finish_consume",
            None,
        ),
        (
            large,
            None,
            CONSUME[3],
            FIRST,
            None,
            HARVESTS[1],
            Some(INTO[1]),
        ),
        (large, None, CONSUME[3], None, None, "drop", None),
    ]);
    let harvests = (1..7).map(|n| {
        (
            large,
            None,
            HARVEST[n],
            None,
            None,
            HARVESTS[n + 1],
            Some(INTO[n + 1]),
        )
    });
    all.extend(harvests);
    all.extend([
        (None, None, HARVEST[7], LAST, Some(0), "broadcast", None),
        (None, None, HARVEST[7], FIRST, Some(0), "drop", None),
        (None, None, HARVEST[7], FIRST, None, "retransmit", None),
        (None, None, HARVEST[7], None, None, "drop", None),
    ]);
    let field = |name: &'static str, value: u128, mask: u128| (name, Match::ternary(value, mask));
    for (i, (size, worker, kind, flag, bitmap, action, into)) in all.into_iter().enumerate() {
        let mut key = vec![field("ig_md.switchml_md.packet_type", kind.into(), 0xf)];
        key.extend(size.map(|s| field("ig_md.switchml_md.packet_size", s as u128, 7)));
        key.extend(worker.map(|w| field("ig_md.switchml_md.worker_id", w.into(), 0xffff)));
        key.extend(flag.map(|f| field("ig_md.switchml_md.first_last_flag", f.into(), 0xff)));
        key.extend(bitmap.map(|b| field("ig_md.switchml_md.map_result", b.into(), 0xffff_ffff)));
        let params: Vec<_> = into
            .map(|p| ("recirc_port", u128::from(p)))
            .into_iter()
            .collect();
        let action = format!("Ingress.next_step_selector.{action}");
        let priority = 1000 - i as i32;
        device.entry(
            "Ingress.next_step_selector.next_step",
            &key,
            priority,
            &action,
            &params,
        )?;
    }
    Ok(())
}

/// Checks that frames of other protocols are forwarded by MAC address, or flooded to all other ports.
fn forwarding(device: &mut ClockedSwitch) -> Result<(), String> {
    let frame = ethernet(mac(2), mac(0), 0x86dd, &[7; 60]);
    device.expect("forwarded", port(0), &frame, &[(port(2), frame.clone())])?;
    let frame = ethernet([0xff; 6], mac(1), 0x86dd, &[7; 60]);
    let others = (0..WORKERS).filter(|w| *w != 1);
    let expected: Vec<_> = others.map(|w| (port(w), frame.clone())).collect();
    device.expect("flooded", port(1), &frame, &expected)
}
