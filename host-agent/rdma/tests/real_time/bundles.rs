//! Packets of RDMA WRITEs leave as bundles of frames where the peer takes them, and singly elsewhere.

use std::net::Ipv4Addr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use frames::{Frames, Io};
use rdma::interface::Interface;
use rdma::open::raw;
use rdma::software::{Software, SoftwareOptions};
use rdma::udp::{UdpFrames, made_up_mac};
use rdma::{Connection, Provider};
use roce::packet::{Address, Mtu, Service, UDP_PORT};
use roce::{Access, Local, Psn, QpConfig, Qpn, Remote, SendRequest, Status, Work};
use test_support::namespace::{beyond, in_namespace, ip, remove};

const PATIENCE: Duration = Duration::from_secs(20);
/// Length of a WRITE in bytes: not a multiple of any MTU.
const MESSAGE: usize = 200_001;
const MESSAGES: usize = 8;

/// How an end exchanges frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Raw(Io),
    Udp,
}

impl End {
    fn open(self, interface: &str, seed: u64) -> Software<Box<dyn Frames>> {
        let interface = Interface::find(Some(interface)).unwrap();
        let ip = interface.address.ip;
        match self {
            Self::Raw(io) => raw(&interface, io, seed).unwrap(),
            Self::Udp => {
                let frames: Box<dyn Frames> = Box::new(UdpFrames::open(ip).unwrap());
                let mac = made_up_mac(ip);
                let options = SoftwareOptions {
                    name: "UDP".to_owned(),
                    address: Address { mac, ip },
                    max_mtu: interface.mtu().unwrap(),
                    seed,
                    source_port: Some(UDP_PORT),
                    resolve: Box::new(|peer| Ok(made_up_mac(peer))),
                };
                Software::new(frames, options)
            }
        }
    }
}

/// Message between the ends.
#[derive(Debug)]
enum Word {
    Hello {
        ip: Ipv4Addr,
        qpn: Qpn,
        psn: Psn,
        target: Remote,
    },
    Written,
}

/// Bytes that an end received while the other end wrote.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    /// Number of packets of the link: a bundle counts once, as for a packet socket without PACKET_VNET_HDR.
    packets: u64,
    /// Number of RoCEv2 packets.
    frames: u64,
}

/// Number of packets that an interface of this thread's namespace has received.
fn received_packets(interface: &str) -> u64 {
    let devices = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let mut devices = devices
        .lines()
        .filter_map(|line| line.trim().split_once(':'));
    let (_, counts) = devices.find(|(name, _)| *name == interface).unwrap();
    let packets = counts.split_whitespace().nth(1);
    packets.unwrap().parse().unwrap()
}

fn pattern(seed: u64) -> Vec<u8> {
    let byte = |at: usize| (at * 7 + at / 256 * 13 + seed as usize) as u8;
    (0..MESSAGE * MESSAGES).map(byte).collect()
}

/// One end: each end writes its pattern to the other end, first the one with `writes_first`.
fn write_both_ways(
    (interface, end, mtu): (&str, End, Mtu),
    writes_first: bool,
    (to_peer, from_peer): (&Sender<Word>, &Receiver<Word>),
) -> Came {
    let [own, peers] = [u64::from(writes_first), u64::from(!writes_first)];
    let mut provider = end.open(interface, own);
    let source = provider
        .register(MESSAGE * MESSAGES, Access::LOCAL_READ)
        .unwrap();
    provider.put(&source, 0, &pattern(own));
    let target = provider
        .register(MESSAGE * MESSAGES, Access::REMOTE_WRITE)
        .unwrap();
    let config = QpConfig {
        service: Service::Reliable,
        max_sends: MESSAGES,
        max_receives: 1,
    };
    let qpn = provider.create(config, Access::REMOTE_WRITE).unwrap();
    let psn = provider.draw_psn();
    let hello = Word::Hello {
        ip: provider.gid().ipv4().unwrap(),
        qpn,
        psn,
        target: Remote {
            address: target.address,
            rkey: target.rkey,
        },
    };
    let counts = |provider: &Software<_>| Came {
        packets: received_packets(interface),
        frames: provider.counters(qpn).unwrap().rcvd_pkts,
    };
    // The other end may write after this word, or else after the next.
    let mut before = counts(&provider);
    to_peer.send(hello).unwrap();
    let Ok(Word::Hello {
        ip,
        qpn: peer_qpn,
        psn: peer_psn,
        target: there,
    }) = from_peer.recv_timeout(PATIENCE)
    else {
        panic!("the other end does not introduce itself");
    };
    let connection = Connection::new(ip.into(), peer_qpn, peer_psn, psn, mtu);
    provider.connect(qpn, &connection).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let mut came = None;
    for writes in [writes_first, !writes_first] {
        let mut left = MESSAGES;
        if writes {
            for message in 0..MESSAGES {
                let offset = (message * MESSAGE) as u64;
                let local = Local {
                    key: source.lkey,
                    address: source.address + offset,
                    len: MESSAGE as u32,
                };
                let remote = Remote {
                    address: there.address + offset,
                    ..there
                };
                let work = Work::Write {
                    local,
                    remote,
                    immediate: None,
                };
                let request = SendRequest {
                    wr_id: 0,
                    work,
                    signaled: true,
                    solicited: false,
                };
                provider.post_send(qpn, request).unwrap();
            }
            while left > 0 {
                assert!(Instant::now() < deadline, "{left} WRITEs are not answered");
                match provider.poll().unwrap() {
                    Some(completion) => {
                        assert_eq!(completion.status, Status::Success);
                        left -= 1;
                    }
                    None => provider.wait(Duration::from_millis(1)).unwrap(),
                }
            }
            before = counts(&provider);
            to_peer.send(Word::Written).unwrap();
        } else {
            while from_peer.try_recv().is_err() {
                assert!(Instant::now() < deadline, "the other end does not write");
                provider.poll().unwrap();
                provider.wait(Duration::from_millis(1)).unwrap();
            }
            let after = counts(&provider);
            came = Some(Came {
                packets: after.packets - before.packets,
                frames: after.frames - before.frames,
            });
            let mut written = vec![0; MESSAGE * MESSAGES];
            provider.copy_out(&target, 0, &mut written);
            assert!(
                written == pattern(peers),
                "other bytes than the peer's arrived"
            );
        }
    }
    let counters = provider.all_counters();
    assert_eq!((counters.icrc_errors, counters.malformed), (0, 0));
    came.unwrap()
}

/// Bytes that each end received: `near`, to which `far` writes first, and `far`.
fn exchange(near: End, far: End, mtu: Mtu) -> [Came; 2] {
    let (to_far, from_near) = channel();
    let (to_near, from_far) = channel();
    ip("link add near mtu 4200 type veth peer name far mtu 4200");
    ip("address add 10.9.0.1/24 dev near");
    ip("link set near up");
    let there: thread::JoinHandle<Came> = beyond("far", move || {
        ip("address add 10.9.0.2/24 dev far");
        ip("link set far up");
        write_both_ways(("far", far, mtu), true, (&to_near, &from_near))
    });
    let near = write_both_ways(("near", near, mtu), false, (&to_far, &from_far));
    let far = there.join().unwrap();
    remove("near");
    [near, far]
}

#[test]
fn packets_leave_as_bundles_where_the_peer_takes_them() {
    if !in_namespace("packets_leave_as_bundles_where_the_peer_takes_them") {
        return;
    }
    const BUNDLES: End = End::Raw(Io::Bundles);
    const AUTO: End = End::Raw(Io::Auto);
    const RINGS: End = End::Raw(Io::Rings);
    const CALLS: End = End::Raw(Io::Calls);
    for mtu in [Mtu::B1024, Mtu::B4096] {
        // Whether near, then far, receives bundles.
        for (near, far, expected) in [
            (RINGS, BUNDLES, [true, false]),
            (BUNDLES, CALLS, [false, true]),
            // Auto sends bundles once one has come.
            (AUTO, BUNDLES, [true, true]),
            (AUTO, AUTO, [false, false]),
            (RINGS, RINGS, [false, false]),
            (End::Udp, End::Udp, [false, false]),
        ] {
            let came = exchange(near, far, mtu);
            println!("{near:?} {far:?} {mtu:?}: {came:?}");
            for (came, has_bundles) in came.iter().zip(expected) {
                let Came { packets, frames } = *came;
                let data = (MESSAGES * MESSAGE.div_ceil(mtu.bytes())) as u64;
                assert!(frames >= data, "{near:?} {far:?} {mtu:?}: {came:?}");
                match has_bundles {
                    true => assert!(packets < frames / 3, "{near:?} {far:?} {mtu:?}: {came:?}"),
                    // ARP adds a few.
                    false => assert!(packets >= frames, "{near:?} {far:?} {mtu:?}: {came:?}"),
                }
            }
        }
    }
}
