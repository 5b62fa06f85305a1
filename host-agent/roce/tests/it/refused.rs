//! Refused requests: which side refuses them, with which status, and without writing anything.

use proptest::prelude::*;
use roce::packet::{
    self, Address, Aeth, Ecn, Header, MAX_FRAME_LEN, Mtu, NakCode, Opcode, Packet, Reth, RnrTimer,
    Route, Service, Syndrome,
};
use roce::{
    Access, Completion, Discarded, Endpoint, EndpointConfig, Fault, InitAttributes, Key, Modify,
    ModifyError, PostError, Psn, QpConfig, Qpn, ReceiveRequest, Remote, RtrAttributes,
    RtsAttributes, SendRequest, State, Status, Work,
};

use crate::common::{BASE, Faults, Network, Node, Setup, address, local, remote};

const LEN: usize = 3000;

struct Pair {
    network: Network,
    qpns: [Qpn; 2],
    source: Key,
    target: Key,
}

fn pair(setup: Setup) -> Pair {
    let mut network = Network::new(1, 2);
    let source = network.register(0, vec![1; LEN]);
    let target = network.register(1, vec![2; LEN]);
    let qpns = network.connect(setup);
    Pair {
        network,
        qpns,
        source,
        target,
    }
}

impl Pair {
    fn write_to(&mut self, remote: Remote) {
        let local = local(self.source, 0, LEN);
        self.network.send(
            0,
            self.qpns[0],
            0,
            Work::Write {
                local,
                remote,
                immediate: None,
            },
        );
    }

    fn send(&mut self, wr_id: u64) {
        let local = local(self.source, 0, LEN);
        self.network.send(
            0,
            self.qpns[0],
            wr_id,
            Work::Send {
                local,
                immediate: None,
            },
        );
    }

    fn statuses(&mut self, node: usize) -> Vec<Status> {
        let completions = self.network.completions(node);
        completions
            .iter()
            .map(|completion| completion.status)
            .collect()
    }

    fn fault(&self, node: usize) -> Option<Fault> {
        let endpoint = &self.network.nodes[node].endpoint;
        let fault = endpoint.fault(self.qpns[node]);
        assert_eq!(
            fault.is_some(),
            endpoint.state(self.qpns[node]) == Some(State::Error)
        );
        fault
    }

    fn untouched(&self) -> bool {
        self.network
            .bytes(1, self.target)
            .iter()
            .all(|&byte| byte == 2)
    }
}

#[test]
fn a_write_without_access_fails_at_both_ends_and_has_no_effect() {
    let wrong = |pair: &Pair| {
        let good = remote(pair.target, 0);
        [
            Remote {
                rkey: good.rkey ^ 1,
                ..good
            },
            Remote {
                rkey: good.rkey.wrapping_add(1 << 16),
                ..good
            },
            Remote {
                address: good.address + 1,
                ..good
            },
            Remote {
                address: good.address - 1,
                ..good
            },
            Remote {
                address: u64::MAX,
                ..good
            },
        ]
    };
    for index in 0..wrong(&pair(Setup::default())).len() {
        let mut pair = pair(Setup::default());
        let remote = wrong(&pair)[index];
        pair.network
            .receive(1, pair.qpns[1], 9, local(pair.target, 0, 10));
        pair.write_to(remote);
        pair.send(1);
        pair.network.run();
        assert_eq!(
            pair.statuses(0),
            [Status::RemoteAccess, Status::Flushed],
            "{index}"
        );
        assert_eq!(pair.statuses(1), [Status::Flushed]);
        assert_eq!(pair.fault(0), Some(Fault::Work(Status::RemoteAccess)));
        assert_eq!(pair.fault(1), Some(Fault::RemoteAccess));
        assert!(pair.untouched());
    }
}

/// The access rights of the region and of the queue pair.
#[test]
fn rights_are_asked_for() {
    for by_region in [true, false] {
        for is_read in [true, false] {
            let mut network = Network::new(1, 2);
            let source = network.register(0, vec![1; LEN]);
            let (right, other) = match is_read {
                true => (Access::REMOTE_READ, Access::REMOTE_WRITE),
                false => (Access::REMOTE_WRITE, Access::REMOTE_READ),
            };
            let region = if by_region { other } else { Access::ALL };
            let target = network.nodes[1]
                .memory
                .register(vec![2; LEN], BASE, region)
                .unwrap();
            let [a, b] = network.connect(Setup::default());
            if !by_region {
                let endpoint = &mut network.nodes[1].endpoint;
                endpoint.modify(b, Modify::Reset).unwrap();
                let init = InitAttributes {
                    access: other,
                    ..InitAttributes::default()
                };
                endpoint.modify(b, Modify::Init(init)).unwrap();
                let rtr = rtr(address(0), a, Setup::default().psns[0]);
                endpoint.modify(b, Modify::Rtr(rtr)).unwrap();
            }
            let (local, remote) = (local(source, 0, LEN), remote(target, 0));
            let work = match is_read {
                true => Work::Read { local, remote },
                false => Work::Write {
                    local,
                    remote,
                    immediate: None,
                },
            };
            network.send(0, a, 0, work);
            network.run();
            let completions = network.completions(0);
            assert_eq!(
                completions[0].status,
                Status::RemoteAccess,
                "{right:?} {by_region}"
            );
            assert_eq!(network.bytes(1, target), [2; LEN]);
            assert_eq!(network.bytes(0, source), [1; LEN]);
        }
    }
}

fn rtr(peer: Address, peer_qpn: Qpn, psn: Psn) -> RtrAttributes {
    RtrAttributes {
        peer,
        peer_qpn,
        psn,
        mtu: Mtu::B1024,
        max_reads: 16,
        rnr_timer: 1,
        dscp: 0,
    }
}

#[test]
fn a_message_longer_than_its_receive_is_a_length_error() {
    let mut pair = pair(Setup::default());
    pair.network
        .receive(1, pair.qpns[1], 5, local(pair.target, 0, LEN - 1));
    pair.network
        .receive(1, pair.qpns[1], 6, local(pair.target, 0, LEN));
    pair.send(0);
    pair.network.run();
    assert_eq!(pair.statuses(0), [Status::RemoteInvalidRequest]);
    assert_eq!(pair.statuses(1), [Status::LocalLength, Status::Flushed]);
    assert_eq!(pair.network.bytes(1, pair.target)[LEN - 1], 2);
}

#[test]
fn without_a_receive_the_sender_waits_or_gives_up() {
    for immediate in [false, true] {
        let mut pair = pair(Setup {
            rnr_retry: 2,
            ..Setup::default()
        });
        if immediate {
            let work = Work::Write {
                local: local(pair.source, 0, 0),
                remote: remote(pair.target, 0),
                immediate: Some([0; 4]),
            };
            pair.network.send(0, pair.qpns[0], 0, work);
        } else {
            pair.send(0);
        }
        pair.network.run();
        assert_eq!(pair.statuses(0), [Status::RnrRetryExceeded]);
        let counters = pair.network.nodes[0].endpoint.counters();
        assert_eq!(
            (counters.rcvd_rnr_err, counters.retry_rnr_exceeded_err),
            (3, 1)
        );
        assert!(pair.untouched());
    }
    let mut pair = pair(Setup::default());
    pair.send(0);
    let until_ns = pair.network.now_ns + 1_000_000;
    while pair.network.step(until_ns) {}
    let refused = pair.network.nodes[1].endpoint.counters().send_rnr_err;
    assert!(
        (50..100).contains(&refused),
        "{refused}: each 10 µs and a round trip"
    );
    pair.network
        .receive(1, pair.qpns[1], 5, local(pair.target, 0, LEN));
    pair.network.run();
    assert_eq!(pair.statuses(0), [Status::Success]);
    assert_eq!(pair.network.bytes(1, pair.target), [1; LEN]);
}

#[test]
fn silence_ends_after_the_retries() {
    for retry_count in [0, 3] {
        let mut pair = pair(Setup {
            retry_count,
            ..Setup::default()
        });
        pair.network.faults = Faults {
            loss: 1_000_000,
            ..Faults::default()
        };
        let begin_ns = pair.network.now_ns;
        pair.write_to(remote(pair.target, 0));
        pair.send(1);
        pair.network.run();
        assert_eq!(pair.statuses(0), [Status::RetryExceeded, Status::Flushed]);
        let took_ns = pair.network.now_ns - begin_ns;
        assert_eq!(took_ns, (u64::from(retry_count) + 1) * (4096 << 8));
        assert_eq!(pair.fault(0), Some(Fault::Work(Status::RetryExceeded)));
    }
}

#[test]
fn deregistered_regions_are_an_error() {
    // The sender's region.
    let mut p = pair(Setup::default());
    p.write_to(remote(p.target, 0));
    p.network.nodes[0].memory.deregister(p.source);
    p.network.run();
    assert_eq!(p.statuses(0), [Status::LocalProtection]);
    assert!(p.untouched());

    // The receiver's region.
    let mut p = pair(Setup::default());
    p.network.receive(1, p.qpns[1], 5, local(p.target, 0, LEN));
    p.network.nodes[1].memory.deregister(p.target);
    p.send(0);
    p.network.run();
    assert_eq!(p.statuses(0), [Status::RemoteOperation]);
    assert_eq!(p.statuses(1), [Status::LocalProtection]);

    // The region of a READ, before and during the response.
    for answered in [0, 1] {
        let mut p = pair(Setup::default());
        p.network.ps_per_byte = 1000;
        let work = Work::Read {
            local: local(p.source, 0, LEN),
            remote: remote(p.target, 0),
        };
        p.network.send(0, p.qpns[0], 0, work);
        while p.network.nodes[1].endpoint.counters().sent_pkts < answered {
            assert!(p.network.step(u64::MAX));
        }
        p.network.nodes[1].memory.deregister(p.target);
        p.network.run();
        let status = [Status::RemoteAccess, Status::RemoteOperation][answered as usize];
        assert_eq!(p.statuses(0), [status]);
    }
}

#[test]
fn sides_that_differ_in_mtu_say_so() {
    let mut pair = pair(Setup::default());
    let psns = Setup::default().psns;
    let endpoint = &mut pair.network.nodes[1].endpoint;
    endpoint.modify(pair.qpns[1], Modify::Reset).unwrap();
    let rtr = RtrAttributes {
        mtu: Mtu::B512,
        ..rtr(address(0), pair.qpns[0], psns[0])
    };
    let (init, rts) = (InitAttributes::default(), RtsAttributes::new(psns[1]));
    endpoint.connect(pair.qpns[1], init, rtr, rts).unwrap();
    pair.write_to(remote(pair.target, 0));
    pair.network.run();
    assert_eq!(pair.statuses(0), [Status::RemoteInvalidRequest]);
    assert_eq!(pair.fault(1), Some(Fault::Mtu));
    assert!(pair.untouched());
}

#[test]
fn error_flushes_everything_in_order_and_reset_forgets_it() {
    let mut pair = pair(Setup::default());
    for wr_id in 0..3 {
        pair.send(wr_id);
        pair.network
            .receive(0, pair.qpns[0], 10 + wr_id, local(pair.source, 0, 1));
    }
    let qpn = pair.qpns[0];
    let endpoint = &mut pair.network.nodes[0].endpoint;
    endpoint.modify(qpn, Modify::Error).unwrap();
    assert_eq!(endpoint.fault(qpn), Some(Fault::Asked));
    let flushed = pair.network.completions(0);
    let ids: Vec<u64> = flushed.iter().map(|completion| completion.wr_id).collect();
    assert_eq!(ids, [0, 1, 2, 10, 11, 12]);
    assert!(
        flushed
            .iter()
            .all(|completion| completion.status == Status::Flushed)
    );
    let endpoint = &mut pair.network.nodes[0].endpoint;
    endpoint.modify(qpn, Modify::Reset).unwrap();
    assert_eq!(
        (endpoint.state(qpn), endpoint.fault(qpn)),
        (Some(State::Reset), None)
    );
    let again = endpoint.modify(qpn, Modify::Rts(RtsAttributes::new(Psn::new(0))));
    assert_eq!(again, Err(ModifyError::State(State::Reset)));
}

#[test]
fn every_queue_has_a_limit_and_reports_it() {
    let mut network = Network::with(1, 2, |config| {
        config.max_qps = 2;
        config.completions = 4;
        config.max_mtu = Mtu::B512;
    });
    let region = network.register(0, vec![0; 16]);
    let [a, _] = network.connect(Setup {
        queue: 3,
        mtu: Mtu::B512,
        ..Setup::default()
    });
    let node = &mut network.nodes[0];
    let receive = ReceiveRequest {
        wr_id: 0,
        local: local(region, 0, 16),
    };
    let post = |endpoint: &mut Endpoint| endpoint.post_receive(a, receive, &node.memory);
    for _ in 0..3 {
        assert_eq!(post(&mut node.endpoint), Ok(()));
    }
    assert_eq!(post(&mut node.endpoint), Err(PostError::QueueFull(3)));
    let send = |endpoint: &mut Endpoint, work| {
        let request = SendRequest {
            wr_id: 0,
            work,
            signaled: false,
            solicited: false,
        };
        endpoint.post_send(a, request, &node.memory)
    };
    let work = |len| Work::Send {
        local: local(region, 0, len),
        immediate: None,
    };
    assert!(matches!(
        send(&mut node.endpoint, work(17)),
        Err(PostError::Local(_))
    ));
    assert_eq!(send(&mut node.endpoint, work(16)), Ok(()));
    assert_eq!(
        send(&mut node.endpoint, work(16)),
        Err(PostError::CompletionQueueFull(4))
    );
    let endpoint = &mut node.endpoint;
    let one = endpoint.create(QpConfig::new(Service::Unreliable)).unwrap();
    endpoint
        .modify(one, Modify::Init(InitAttributes::default()))
        .unwrap();
    let large = rtr(address(1), one, Psn::new(0));
    let refused = endpoint.modify(one, Modify::Rtr(large));
    assert_eq!(refused, Err(ModifyError::Attribute("mtu")));
    assert!(endpoint.create(QpConfig::new(Service::Unreliable)).is_err());
    endpoint.destroy(a).unwrap();
    assert_eq!(endpoint.destroy(a), Err(ModifyError::UnknownQp(a)));
    assert!(endpoint.create(QpConfig::new(Service::Unreliable)).is_ok());
}

#[test]
fn numbers_of_queue_pairs_never_collide_and_follow_from_the_seed() {
    let numbers = |seed| {
        let mut config = EndpointConfig::new(address(0), seed);
        config.max_qps = 5000;
        let mut endpoint = Endpoint::new(config);
        let create = |_| endpoint.create(QpConfig::new(Service::Reliable)).unwrap();
        (0..5000).map(create).collect::<Vec<Qpn>>()
    };
    let mut drawn = numbers(1);
    assert_eq!(drawn, numbers(1));
    assert_ne!(drawn, numbers(2));
    drawn.sort();
    drawn.dedup();
    assert_eq!(drawn.len(), 5000);
    assert!(drawn.iter().all(|qpn| qpn.bits() > 1));
}

/// A frame from node 0 to node 1, with a changed route.
fn frame(header: Header, payload: &[u8], change: impl FnOnce(&mut Route)) -> Vec<u8> {
    let mut route = Route {
        from: address(0),
        to: address(1),
        source_port: 0xC000,
        dscp: 0,
        ecn: Ecn::Capable,
    };
    change(&mut route);
    let mut buffer = vec![0; MAX_FRAME_LEN];
    let len = packet::emit(&mut buffer, &route, &header, payload.len(), |space| {
        space.copy_from_slice(payload);
        Ok::<(), ()>(())
    });
    buffer.truncate(len.unwrap());
    buffer
}

#[test]
fn packets_of_strangers_and_old_connections_have_no_effect() {
    let setup = Setup::default();
    let mut pair = pair(setup);
    let write = Header {
        reth: Some(Reth {
            address: BASE,
            rkey: pair.target.0,
            len: 4,
        }),
        ..Header::new(
            Opcode::from_bits(0x0A).unwrap(),
            0xFFFF,
            pair.qpns[1],
            setup.psns[0],
        )
    };
    let now_ns = pair.network.now_ns;
    let node = &mut pair.network.nodes[1];
    let mut handle = |frame: &[u8]| node.endpoint.handle_frame(now_ns, &mut node.memory, frame);
    let (qpn, nobody) = (pair.qpns[1], Qpn::new(pair.qpns[1].bits() ^ 1));
    let from = |ip: [u8; 4]| frame(write, b"evil", |route| route.from.ip = ip.into());
    assert_eq!(handle(&from([10, 0, 0, 9])), Err(Discarded::Stranger(qpn)));
    let elsewhere = frame(write, b"evil", |route| route.to = address(5));
    assert_eq!(handle(&elsewhere), Err(Discarded::NotForUs));
    let unknown = Header {
        destination: nobody,
        ..write
    };
    assert_eq!(
        handle(&frame(unknown, b"evil", |_| {})),
        Err(Discarded::UnknownQp(nobody))
    );
    let partition = Header {
        pkey: 0x8001,
        ..write
    };
    assert_eq!(
        handle(&frame(partition, b"evil", |_| {})),
        Err(Discarded::Partition(0x8001))
    );
    let mut broken = frame(write, b"evil", |_| {});
    broken[70] ^= 1;
    assert_eq!(handle(&broken), Err(Discarded::Packet(packet::Error::Icrc)));
    assert_eq!(
        handle(b"hello"),
        Err(Discarded::Packet(packet::Error::Foreign))
    );
    // Packets of an earlier generation: just before the first PSN, and a response to nothing.
    let before = Header {
        psn: Psn::new(setup.psns[0].bits() - 1),
        ..write
    };
    assert_eq!(handle(&frame(before, b"evil", |_| {})), Ok(()));
    let syndrome = Syndrome::Nak(NakCode::RemoteAccess);
    let answer = Header {
        aeth: Some(Aeth { syndrome, msn: 0 }),
        ..Header::new(Opcode::Acknowledge, 0xFFFF, qpn, setup.psns[1])
    };
    assert_eq!(handle(&frame(answer, b"", |_| {})), Ok(()));
    let unreliable = Header {
        opcode: Opcode::from_bits(0x2A).unwrap(),
        ..write
    };
    assert_eq!(handle(&frame(unreliable, b"evil", |_| {})), Ok(()));
    let counters = node.endpoint.counters();
    let counted = [
        counters.stranger,
        counters.unknown_qp,
        counters.pkey_violations,
        counters.icrc_errors,
        counters.wrong_state,
    ];
    assert_eq!((counted, counters.ghost_pkts), ([1; 5], 2));
    assert_eq!(node.endpoint.state(qpn), Some(State::Rts));
    // The endpoint accepts the packet when it arrives in sequence.
    let now = frame(write, b"good", |_| {});
    assert_eq!(
        node.endpoint.handle_frame(now_ns, &mut node.memory, &now),
        Ok(())
    );
    assert_eq!(pair.network.bytes(1, pair.target)[..5], *b"good\x02");
    pair.network.nodes[1].endpoint.destroy(qpn).unwrap();
    let node = &mut pair.network.nodes[1];
    let gone = node.endpoint.handle_frame(now_ns, &mut node.memory, &now);
    assert_eq!(gone, Err(Discarded::UnknownQp(qpn)));
}

/// Requests more READs at once than agreed.
#[test]
fn a_flood_of_reads_is_an_invalid_request() {
    let setup = Setup {
        max_reads: 2,
        ..Setup::default()
    };
    let mut pair = pair(setup);
    let node = &mut pair.network.nodes[1];
    for index in 0..3 {
        let psn = Psn::new(setup.psns[0].bits() + index);
        let read = Header {
            reth: Some(Reth {
                address: BASE,
                rkey: pair.target.0,
                len: 4,
            }),
            ..Header::new(Opcode::ReadRequest, 0xFFFF, pair.qpns[1], psn)
        };
        node.endpoint
            .handle_frame(0, &mut node.memory, &frame(read, b"", |_| {}))
            .unwrap();
    }
    assert_eq!(pair.fault(1), Some(Fault::InvalidRequest));
}

/// A request from node 0: offset from the first PSN, opcode, length in the RETH, bytes of payload.
type Crafted = (u32, u8, u32, usize);

/// Processes requests at node 1, and returns opcodes and PSNs (relative to the first) of its replies.
fn answers(pair: &mut Pair, requests: &[Crafted]) -> Vec<(u8, i32)> {
    let first = Setup::default().psns[0];
    let node = &mut pair.network.nodes[1];
    for &(behind, opcode, len, payload) in requests {
        let opcode = Opcode::from_bits(opcode).unwrap();
        let psn = Psn::new(first.bits() + behind);
        let header = Header {
            ack_request: true,
            reth: Some(Reth {
                address: BASE,
                rkey: pair.target.0,
                len,
            }),
            ..Header::new(opcode, 0xFFFF, pair.qpns[1], psn)
        };
        let frame = frame(header, &vec![9; payload], |_| {});
        node.endpoint
            .handle_frame(0, &mut node.memory, &frame)
            .unwrap();
    }
    let mut buffer = vec![0; MAX_FRAME_LEN];
    let mut answers = Vec::new();
    while let Some(len) = node.endpoint.poll_transmit(0, &node.memory, &mut buffer) {
        let packet = Packet::parse(&buffer[..len]).unwrap();
        let header = packet.header();
        answers.push((header.opcode.bits(), header.psn.after(first)));
    }
    answers
}

const WRITE_FIRST: u8 = 6;
const WRITE_MIDDLE: u8 = 7;
const WRITE_LAST: u8 = 8;
const WRITE_ONLY: u8 = 10;
const SEND_FIRST: u8 = 0;
const SEND_LAST: u8 = 2;
const READ: u8 = 12;

/// The announced length of a message must match its packets.
#[test]
fn messages_that_contradict_themselves_are_invalid_requests() {
    let wrong: [&[Crafted]; 10] = [
        &[(0, WRITE_MIDDLE, 0, 1024)],
        &[(0, SEND_LAST, 0, 8)],
        &[(0, WRITE_ONLY, 9, 8)],
        &[(0, WRITE_ONLY, 7, 8)],
        &[(0, WRITE_FIRST, 1024, 1024)],
        &[(0, WRITE_FIRST, 2000, 1024), (1, WRITE_ONLY, 8, 8)],
        &[(0, WRITE_FIRST, 2000, 1024), (1, SEND_LAST, 0, 976)],
        &[(0, WRITE_FIRST, 2000, 1024), (1, WRITE_LAST, 0, 975)],
        &[(0, WRITE_FIRST, 2048, 1024), (1, WRITE_MIDDLE, 0, 1024)],
        &[(0, WRITE_FIRST, 2000, 1024), (1, READ, 8, 0)],
    ];
    for requests in wrong {
        let mut pair = pair(Setup::default());
        let good = requests.len() as u32 - 1;
        answers(&mut pair, requests);
        assert_eq!(pair.fault(1), Some(Fault::InvalidRequest), "{requests:?}");
        let written = 1024 * good as usize;
        assert!(
            pair.network.bytes(1, pair.target)[written..]
                .iter()
                .all(|&byte| byte == 2)
        );
    }
    let mut pair = pair(Setup::default());
    let right = [
        (0, WRITE_FIRST, 2000, 1024),
        (1, WRITE_LAST, 0, 976),
        (2, WRITE_ONLY, 0, 0),
    ];
    assert_eq!(answers(&mut pair, &right), [(0x11, 2)]);
}

/// All packets but the last have the length of the MTU, and the last is not empty.
#[test]
fn parts_of_wrong_length_are_named() {
    let wrong: [&[Crafted]; 5] = [
        &[(0, WRITE_ONLY, 1025, 1025)],
        &[(0, WRITE_FIRST, 2000, 1023)],
        &[(0, WRITE_FIRST, 3000, 1024), (1, WRITE_MIDDLE, 0, 1020)],
        &[(0, SEND_FIRST, 0, 1024), (1, SEND_LAST, 0, 0)],
        &[(0, SEND_FIRST, 0, 1024), (1, SEND_LAST, 0, 1025)],
    ];
    for requests in wrong {
        let mut pair = pair(Setup::default());
        pair.network
            .receive(1, pair.qpns[1], 0, local(pair.target, 0, LEN));
        answers(&mut pair, requests);
        assert_eq!(pair.fault(1), Some(Fault::Mtu), "{requests:?}");
        assert_eq!(pair.network.nodes[1].endpoint.counters().mtu_violations, 1);
    }
}

#[test]
fn reads_that_come_again_are_answered_once_more_and_no_further() {
    let all = [(0x0D, 0), (0x0E, 1), (0x0F, 2)];
    let mut asked_once = pair(Setup::default());
    assert_eq!(answers(&mut asked_once, &[(0, READ, 3000, 0)]), all);
    // A repetition from the middle on, after everything was sent.
    assert_eq!(
        answers(&mut asked_once, &[(1, READ, 1976, 0)]),
        [(0x0D, 1), (0x0F, 2)]
    );
    assert_eq!(answers(&mut asked_once, &[(2, READ, 952, 0)]), [(0x10, 2)]);
    // Beyond the request: a packet of another generation.
    assert_eq!(answers(&mut asked_once, &[(2, READ, 3000, 0)]), []);
    assert_eq!(
        asked_once.network.nodes[1].endpoint.counters().ghost_pkts,
        1
    );
    // A repeated READ does not count as another outstanding one.
    let mut one_at_once = pair(Setup {
        max_reads: 1,
        ..Setup::default()
    });
    assert_eq!(answers(&mut one_at_once, &[(0, READ, 8, 0)]), [(0x10, 0)]);
    let and_another = [(0, READ, 8, 0), (1, READ, 8, 0)];
    assert_eq!(
        answers(&mut one_at_once, &and_another),
        [(0x10, 0), (0x10, 1)]
    );
    // A repetition while everything is still to be sent.
    let mut asked_for_the_rest = pair(Setup::default());
    let rest = [(0, READ, 3000, 0), (1, READ, 1976, 0)];
    assert_eq!(answers(&mut asked_for_the_rest, &rest), all);
    let mut asked_twice = pair(Setup::default());
    let twice = [(0, READ, 3000, 0), (1, READ, 1976, 0), (0, READ, 3000, 0)];
    assert_eq!(answers(&mut asked_twice, &twice), all);
}

/// After a resumed READ, the IBA calls the first response FIRST or ONLY, rxe's responder MIDDLE or LAST.
#[test]
fn a_resumed_read_is_taken_by_either_name() {
    const FIRST: u8 = 0x0D;
    const MIDDLE: u8 = 0x0E;
    const LAST: u8 = 0x0F;
    for again in [FIRST, MIDDLE] {
        let setup = Setup::default();
        let mut pair = pair(setup);
        let (first, len) = (setup.psns[1], LEN as u32);
        let (local, remote) = (local(pair.target, 0, LEN), remote(pair.source, 0));
        pair.network
            .send(1, pair.qpns[1], 5, Work::Read { local, remote });
        let node = &mut pair.network.nodes[1];
        let asked = |node: &mut Node| {
            let mut buffer = vec![0; MAX_FRAME_LEN];
            let len = node
                .endpoint
                .poll_transmit(0, &node.memory, &mut buffer)
                .unwrap();
            let header = *Packet::parse(&buffer[..len]).unwrap().header();
            (header.psn.after(first), header.reth.unwrap())
        };
        let respond = |node: &mut Node, opcode: u8, behind: u32, payload: usize| {
            let syndrome = Syndrome::Ack { credits: 0 };
            let opcode = Opcode::from_bits(opcode).unwrap();
            let psn = Psn::new(first.bits() + behind);
            let header = Header {
                aeth: opcode.has_aeth().then_some(Aeth { syndrome, msn: 1 }),
                ..Header::new(opcode, 0xFFFF, pair.qpns[1], psn)
            };
            let frame = frame(header, &vec![9; payload], |_| {});
            node.endpoint
                .handle_frame(0, &mut node.memory, &frame)
                .unwrap();
        };
        let reth = Reth {
            address: BASE,
            rkey: pair.source.0,
            len,
        };
        assert_eq!(asked(node), (0, reth));
        respond(node, FIRST, 0, 1024);
        respond(node, LAST, 2, LEN - 2048);
        let rest = Reth {
            address: BASE + 1024,
            len: len - 1024,
            ..reth
        };
        assert_eq!(asked(node), (1, rest));
        respond(node, again, 1, 1024);
        respond(node, LAST, 2, LEN - 2048);
        assert_eq!(pair.statuses(1), [Status::Success]);
        assert_eq!(pair.network.bytes(1, pair.target), [9; LEN]);
    }
}

fn any_header(
    destination: Qpn,
    psns: [Psn; 2],
    rkey: u32,
) -> impl Strategy<Value = (Header, usize)> {
    let opcodes: Vec<u8> = (0..=0x11).chain(0x20..=0x2B).chain([0x81]).collect();
    let lens = prop_oneof![
        Just(0usize),
        Just(1),
        Just(255),
        Just(256),
        Just(257),
        0usize..600
    ];
    (
        prop::sample::select(opcodes),
        any::<[bool; 3]>(),
        -4i32..8,
        prop_oneof![Just(rkey), any::<u32>()],
        prop_oneof![BASE - 4..BASE + 1100, any::<u64>()],
        prop_oneof![0u32..1100, any::<u32>()],
        any::<u8>(),
        lens,
    )
        .prop_map(
            move |(
                opcode,
                [ack_request, to_requester, solicited],
                near,
                rkey,
                address,
                len,
                code,
                payload,
            )| {
                let opcode = Opcode::from_bits(opcode).unwrap();
                let base = psns[usize::from(!to_requester)];
                let syndrome = match code % 8 {
                    0..=3 => Syndrome::Ack { credits: code >> 3 },
                    4 => Syndrome::RnrNak(RnrTimer::new(code >> 3)),
                    5 => Syndrome::Nak(NakCode::PsnSequence),
                    6 => Syndrome::Nak(NakCode::RemoteAccess),
                    _ => Syndrome::Reserved(0x40),
                };
                let header = Header {
                    ack_request,
                    solicited,
                    reth: Some(Reth { address, rkey, len }),
                    aeth: Some(Aeth { syndrome, msn: len }),
                    immediate: Some([code; 4]),
                    ..Header::new(
                        opcode,
                        0xFFFF,
                        destination,
                        Psn::new(base.bits().wrapping_add_signed(near)),
                    )
                };
                (header, if opcode.has_payload() { payload } else { 0 })
            },
        )
}

proptest! {
    /// Any packets of the peer, in any order: no panic, only its region is written, everything completes at most once, and
    /// ERROR flushes the rest.
    #[test]
    fn an_arbitrary_peer_damages_only_its_region(
        unreliable: bool,
        packets in prop::collection::vec(any_header(Qpn::new(0), [Psn::new(0), Psn::new(100)], 0), 1..60),
    ) {
        let mut network = Network::new(1, 2);
        let guarded = network.register(1, vec![7; 1024]);
        let open = network.register(1, vec![0; 1024]);
        let setup = Setup {
            service: if unreliable { Service::Unreliable } else { Service::Reliable },
            psns: [Psn::new(100), Psn::new(0)],
            mtu: Mtu::B256,
            ..Setup::default()
        };
        let [_, b] = network.connect(setup);
        for posted in 0..3 {
            network.receive(1, b, posted, local(open, 0, 700));
            let (local, remote) = (local(open, 0, 700), remote(guarded, 0));
            let works = [Some(Work::Send { local, immediate: None }), (!unreliable).then_some(Work::Read { local, remote })];
            for work in works.into_iter().flatten() {
                network.send(1, b, posted, work);
            }
        }
        let mut buffer = vec![0; MAX_FRAME_LEN];
        let mut completions: Vec<Completion> = Vec::new();
        let node = &mut network.nodes[1];
        for (at, (header, len)) in packets.into_iter().enumerate() {
            let now_ns = at as u64 * 1000;
            let rkey = header.reth.map(|reth| Reth { rkey: if reth.rkey == 0 { open.0 } else { reth.rkey }, ..reth });
            let header = Header { destination: b, reth: rkey, ..header };
            let frame = frame(header, &vec![0xAB; len], |_| {});
            node.endpoint.handle_frame(now_ns, &mut node.memory, &frame).unwrap();
            node.endpoint.handle_timeout(now_ns);
            for _ in 0..at % 4 {
                node.endpoint.poll_transmit(now_ns, &node.memory, &mut buffer);
            }
            completions.extend(std::iter::from_fn(|| node.endpoint.poll_completion()));
        }
        node.endpoint.modify(b, Modify::Error).unwrap();
        completions.extend(std::iter::from_fn(|| node.endpoint.poll_completion()));
        let expected = if unreliable { 6 } else { 9 };
        prop_assert_eq!(completions.len(), expected);
        prop_assert!(node.memory.buffer(guarded).unwrap().iter().all(|&byte| byte == 7));
    }
}
