//! Marks, CNPs and rates: two flows share the capacity of a queue.

use roce::packet::{Mtu, Packet};
use roce::{EndpointConfig, Qpn, Work};

use roce::congestion::DcqcnConfig;

use crate::common::{Bottleneck, Network, Setup, TapAction, local, remote};

const LINE_BPS: u64 = 10_000_000_000;
const PS_PER_BYTE: u64 = 8_000_000_000_000 / LINE_BPS;
const MESSAGE: usize = 256 * 1024;
const MS: u64 = 1_000_000;

/// Senders 0 and 1 write to node 2 through one queue; returns the bytes of each in the second half, and the longest queue.
fn share(run_ns: u64, dcqcn: bool) -> ([u64; 2], u64) {
    let mut network = Network::with(3, 3, |config: &mut EndpointConfig| {
        config.dcqcn = dcqcn.then(|| DcqcnConfig::new(LINE_BPS));
    });
    network.ps_per_byte = PS_PER_BYTE;
    network.bottleneck = Some(Bottleneck {
        to: 2,
        ps_per_byte: PS_PER_BYTE,
        // The paper's 5 KB, 200 KB and 1 % for 40 Gb/s, with thresholds scaled to a quarter of the rate.
        least_bytes: 5_000,
        most_bytes: 50_000,
        share: 0.01,
        free_ps: 0,
        longest_bytes: 0,
    });
    let target = network.register(2, vec![0; MESSAGE]);
    let sources = [0, 1].map(|node| network.register(node, vec![1; MESSAGE]));
    let setup = Setup {
        mtu: Mtu::B1024,
        timeout: 12,
        ..Setup::default()
    };
    let qpns: Vec<Qpn> = [0, 1]
        .map(|node| network.connect_pair([node, 2], setup)[0])
        .into();
    let post = |network: &mut Network, node: usize| {
        let work = Work::Write {
            local: local(sources[node], 0, MESSAGE),
            remote: remote(target, 0),
            immediate: None,
        };
        network.send(node, qpns[node], 0, work);
    };
    let start_ns = network.now_ns;
    // The second flow begins when the first one uses the whole capacity.
    let begins_ns = [start_ns, start_ns + 5 * MS];
    let half_ns = start_ns + run_ns / 2;
    let mut begun = [false; 2];
    let mut bytes = [0; 2];
    while network.now_ns < start_ns + run_ns {
        for node in 0..2 {
            if !begun[node] && network.now_ns >= begins_ns[node] {
                begun[node] = true;
                (0..4).for_each(|_| post(&mut network, node));
            }
            for _ in network.completions(node) {
                post(&mut network, node);
                if network.now_ns >= half_ns {
                    bytes[node] += MESSAGE as u64;
                }
            }
        }
        let next_ns = begins_ns
            .into_iter()
            .filter(|&ns| ns > network.now_ns)
            .min();
        let until_ns = next_ns.unwrap_or(start_ns + run_ns);
        if !network.step(until_ns) {
            network.now_ns = until_ns;
        }
    }
    let longest = network.bottleneck.as_ref().map_or(0, |b| b.longest_bytes);
    (bytes, longest)
}

fn jain(bytes: [u64; 2]) -> f64 {
    let [a, b] = bytes.map(|bytes| bytes as f64);
    (a + b).powi(2) / (2.0 * (a * a + b * b))
}

#[test]
fn two_flows_share_a_bottleneck() {
    let run_ns = 200 * MS;
    let (bytes, longest) = share(run_ns, true);
    let index = jain(bytes);
    let used = (bytes[0] + bytes[1]) as f64 * 8e9 / (run_ns / 2) as f64 / LINE_BPS as f64;
    println!(
        "Jain's index {index:.4} of {bytes:?} bytes, {used:.3} of the bottleneck, queue up to {longest} bytes"
    );
    assert!(index >= 0.95, "{index} {bytes:?}");
    assert!(used >= 0.8, "{used}");
    let (_, without) = share(20 * MS, false);
    assert!(
        longest < without,
        "{longest} {without}: the queue is shorter for it"
    );
}

/// Every packet with data is marked: at most one CNP per 50 µs goes to the sender of the data, which slows down. In a READ,
/// that is the responder.
#[test]
fn marked_packets_make_cnps_at_most_every_50_us() {
    const PACKETS: u64 = 1024;
    for is_read in [false, true] {
        let mut network = Network::new(1, 2);
        network.ps_per_byte = PS_PER_BYTE;
        let (sender, receiver) = if is_read { (1, 0) } else { (0, 1) };
        let regions = [0, 1].map(|node| network.register(node, vec![node as u8; 1 << 20]));
        let qpns = network.connect(Setup::default());
        network.tap = Box::new(move |_, by, _: &Packet<'_>| {
            if by == sender {
                TapAction::Mark
            } else {
                TapAction::Pass
            }
        });
        let begin_ns = network.now_ns;
        let (local, remote) = (local(regions[0], 0, 1 << 20), remote(regions[1], 0));
        let work = match is_read {
            true => Work::Read { local, remote },
            false => Work::Write {
                local,
                remote,
                immediate: None,
            },
        };
        network.send(0, qpns[0], 0, work);
        while network.completions(0).is_empty() {
            assert!(network.step(u64::MAX));
        }
        let took_ns = network.now_ns - begin_ns;
        let of_sender = network.nodes[sender].endpoint.counters();
        let of_receiver = network.nodes[receiver].endpoint.counters();
        assert_eq!(of_receiver.np_ecn_marked_roce_packets, PACKETS);
        assert!(of_receiver.cnp_sent >= 2 && of_receiver.cnp_sent <= took_ns / 50_000 + 1);
        assert_eq!(of_sender.cnp_handled, of_receiver.cnp_sent);
        let rate_bps = network.nodes[sender].endpoint.rate_bps(qpns[sender]);
        assert!(rate_bps.is_some(), "it is slower now");
        let at_line_rate_ns = PACKETS * 1082 * PS_PER_BYTE / 1000;
        assert!(took_ns > 10 * at_line_rate_ns, "{took_ns}: paced");
        assert_eq!(
            of_sender.completer_retry_err + of_receiver.completer_retry_err,
            0
        );
    }
}
