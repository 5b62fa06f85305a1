//! Each operation, and each reason for its refusal.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use roce::packet::{Mtu, Packet, Service};
use roce::{
    Local, ModifyError, PostError, QpConfig, Qpn, SendRequest, State, Status, Work, WorkKind,
};

use crate::common::{Network, Rng, Setup, TapAction, local, remote};

fn drawn(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng(seed).fill(&mut bytes);
    bytes
}

/// Lengths around each packet boundary, at each MTU, while the PSN wraps.
#[test]
fn every_operation_brings_every_length() {
    for mtu in Mtu::ALL {
        let m = mtu.bytes();
        for len in [0, 1, 3, m - 1, m, m + 1, 2 * m, 40 * m + 5] {
            let mut network = Network::new(len as u64, 2);
            let data = drawn(len as u64, len);
            let source = network.register(0, data.clone());
            let to_write = network.register(1, vec![0xEE; len + 8]);
            let to_send = network.register(1, vec![0xEE; len + 8]);
            let back = network.register(0, vec![0xEE; len + 8]);
            let [a, b] = network.connect(Setup {
                mtu,
                ..Setup::default()
            });
            network.receive(1, b, 10, local(to_send, 4, len));
            network.receive(1, b, 11, local(to_send, 0, 0));
            let immediate = Some(*b"weir");
            let from = local(source, 0, len);
            network.send(
                0,
                a,
                0,
                Work::Send {
                    local: from,
                    immediate: None,
                },
            );
            network.send(
                0,
                a,
                1,
                Work::Write {
                    local: from,
                    remote: remote(to_write, 4),
                    immediate,
                },
            );
            network.send(
                0,
                a,
                2,
                Work::Read {
                    local: local(back, 4, len),
                    remote: remote(to_write, 4),
                },
            );
            network.run();

            let sender = network.completions(0);
            let kinds = [WorkKind::Send, WorkKind::Write, WorkKind::Read];
            assert_eq!(sender.len(), 3, "{mtu:?} {len}: {sender:?}");
            for (index, completion) in sender.iter().enumerate() {
                assert_eq!(completion.status, Status::Success);
                assert_eq!(
                    (completion.wr_id, completion.kind),
                    (index as u64, kinds[index])
                );
                assert_eq!(completion.byte_len as usize, len);
            }
            let receiver = network.completions(1);
            let seen: Vec<_> = receiver
                .iter()
                .map(|c| (c.wr_id, c.kind, c.byte_len as usize, c.immediate))
                .collect();
            let expected = [
                (10, WorkKind::Receive, len, None),
                (11, WorkKind::ReceiveWriteImmediate, len, immediate),
            ];
            assert_eq!(seen, expected);
            for (node, key) in [(1, to_write), (1, to_send), (0, back)] {
                let bytes = network.bytes(node, key);
                assert_eq!(bytes[4..4 + len], data, "{mtu:?} {len}");
                assert!(
                    bytes[..4]
                        .iter()
                        .chain(&bytes[4 + len..])
                        .all(|&byte| byte == 0xEE)
                );
            }
            let counters = network.nodes[0].endpoint.counters();
            assert_eq!(
                (counters.completer_retry_err, counters.duplicate_request),
                (0, 0)
            );
        }
    }
}

#[test]
fn unreliable_connections_send_and_write() {
    let mut network = Network::new(1, 2);
    let data = drawn(1, 5000);
    let source = network.register(0, data.clone());
    let target = network.register(1, vec![0; 5000]);
    let [a, b] = network.connect(Setup {
        service: Service::Unreliable,
        ..Setup::default()
    });
    let nothing = Local {
        len: 0,
        ..local(target, 0, 0)
    };
    network.receive(1, b, 7, nothing);
    let work = Work::Write {
        local: local(source, 0, 5000),
        remote: remote(target, 0),
        immediate: Some([9; 4]),
    };
    network.send(0, a, 3, work);
    network.run();
    assert_eq!(network.bytes(1, target), data);
    assert_eq!(network.completions(0)[0].wr_id, 3);
    assert_eq!(network.completions(1)[0].immediate, Some([9; 4]));
    assert_eq!(
        network.nodes[1].endpoint.counters().sent_pkts,
        0,
        "nobody acknowledges"
    );
}

/// Switches hash the source port to choose a path: each connection has one port, and different connections have different ones.
#[test]
fn source_ports_spread_connections() {
    let mut network = Network::new(1, 2);
    let source = network.register(0, vec![0; 8]);
    let qpns: Vec<_> = (0..100)
        .map(|_| network.connect(Setup::default())[0])
        .collect();
    let ports: Rc<RefCell<BTreeMap<Qpn, BTreeSet<u16>>>> = Rc::default();
    network.tap = Box::new({
        let ports = Rc::clone(&ports);
        move |_, by, packet: &Packet<'_>| {
            if by == 0 {
                let to = packet.header().destination;
                let port = packet.route().source_port;
                ports.borrow_mut().entry(to).or_default().insert(port);
            }
            TapAction::Pass
        }
    });
    for qpn in qpns {
        let work = Work::Write {
            local: local(source, 0, 0),
            remote: remote(source, 0),
            immediate: None,
        };
        network.send(0, qpn, 0, work);
        network.send(0, qpn, 1, work);
    }
    network.run();
    let ports = ports.borrow();
    assert_eq!(ports.len(), 100);
    assert!(ports.values().all(|ports| ports.len() == 1));
    let all: BTreeSet<u16> = ports.values().flatten().copied().collect();
    assert!(all.len() > 90, "{}", all.len());
    assert!(all.iter().all(|&port| port >= 0xC000));
}

/// Queue pairs with much to send alternate packet by packet.
#[test]
fn queue_pairs_take_turns() {
    let mut network = Network::new(1, 2);
    network.ps_per_byte = 800;
    let source = network.register(0, vec![0; 20_000]);
    let target = network.register(1, vec![0; 20_000]);
    let turns: Rc<RefCell<Vec<Qpn>>> = Rc::default();
    network.tap = Box::new({
        let turns = Rc::clone(&turns);
        move |_, by, packet: &Packet<'_>| {
            if by == 0 {
                turns.borrow_mut().push(packet.header().destination);
            }
            TapAction::Pass
        }
    });
    for _ in 0..3 {
        let [qpn, _] = network.connect(Setup::default());
        let work = Work::Write {
            local: local(source, 0, 20_000),
            remote: remote(target, 0),
            immediate: None,
        };
        network.send(0, qpn, 0, work);
    }
    network.run();
    let turns = turns.borrow();
    assert_eq!(turns.len(), 60);
    assert!(
        turns
            .windows(4)
            .all(|turn| turn[0] == turn[3] && turn[0] != turn[1])
    );
}

#[test]
fn a_window_can_be_changed() {
    let mut network = Network::new(1, 2);
    let len = 100 * Setup::default().mtu.bytes();
    let source = network.register(0, vec![7; len]);
    let target = network.register(1, vec![0; len]);
    let [a, _] = network.connect(Setup::default());
    let counts = Rc::new(RefCell::new((0_u32, 0_u32)));
    network.tap = Box::new({
        let counts = Rc::clone(&counts);
        let first = Setup::default().psns[0];
        move |_, by, packet: &Packet<'_>| {
            let (acked, most) = &mut *counts.borrow_mut();
            let place = (packet.header().psn.after(first) + 1) as u32;
            match by {
                0 => *most = (*most).max(place - *acked),
                _ => *acked = place,
            }
            TapAction::Pass
        }
    });
    for window in [10, 1, 30] {
        let endpoint = &mut network.nodes[0].endpoint;
        endpoint.set_window(a, window).unwrap();
        counts.borrow_mut().1 = 0;
        let work = Work::Write {
            local: local(source, 0, len),
            remote: remote(target, 0),
            immediate: None,
        };
        network.send(0, a, 0, work);
        network.run();
        // All packets leave at once.
        assert_eq!(counts.borrow().1, window);
    }
    let endpoint = &mut network.nodes[0].endpoint;
    let refused = endpoint.set_window(a, 0);
    assert_eq!(refused, Err(ModifyError::Attribute("window")));
    let unborn = endpoint.create(QpConfig::new(Service::Reliable)).unwrap();
    let refused = endpoint.set_window(unborn, 5);
    assert_eq!(refused, Err(ModifyError::State(State::Reset)));
}

#[test]
fn an_unreliable_connection_refuses_a_read() {
    let mut network = Network::new(1, 2);
    let region = network.register(0, vec![0; 8]);
    let [a, _] = network.connect(Setup {
        service: Service::Unreliable,
        ..Setup::default()
    });
    let work = Work::Read {
        local: local(region, 0, 8),
        remote: remote(region, 0),
    };
    let request = SendRequest {
        wr_id: 0,
        work,
        signaled: true,
        solicited: false,
    };
    let node = &mut network.nodes[0];
    let posted = node.endpoint.post_send(a, request, &node.memory);
    assert_eq!(posted, Err(PostError::Unsupported));
}
