//! Each operation once, and each way in which one is refused.

use roce::packet::{Mtu, Service};
use roce::{Local, Status, Work, WorkKind};

use crate::common::{Network, Rng, Setup, local, remote};

fn drawn(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng(seed).fill(&mut bytes);
    bytes
}

/// Around each border of packets, at each MTU, over PSN's wrap.
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
