//! Two hosts in separate network namespaces with a cable between them communicate over each transport.

use std::thread;
use std::time::{Duration, Instant};

use rdma::perftest::{self, LatencyOptions, Verb, bandwidth, latency};
use rdma::pingpong::{PingpongError, PingpongOptions, PingpongOutcome, pingpong};
use rdma::{Way, open};
use roce::packet::Mtu;
use test_support::namespace::{beyond, in_namespace, ip, remove};

/// Runs `work` in a network namespace at one end of a cable, with address 10.9.0.2; the other end is `near`, with 10.9.0.1.
fn beyond_a_cable<T: Send + 'static>(
    link_mtu: u32,
    work: impl FnOnce() -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    ip("link add near type veth peer name far");
    ip("address add 10.9.0.1/24 dev near");
    ip(&format!("link set near up mtu {link_mtu}"));
    beyond("far", move || {
        ip("address add 10.9.0.2/24 dev far");
        ip(&format!("link set far up mtu {link_mtu}"));
        work()
    })
}

/// The outcomes of the server and of the client.
fn play(
    way: Way,
    options: PingpongOptions,
    link_mtu: u32,
) -> [Result<PingpongOutcome, PingpongError>; 2] {
    let server = beyond_a_cable(link_mtu, move || {
        let mut provider = open(Some("far"), way, 1).unwrap();
        pingpong(&mut *provider, None, &options)
    });
    let mut provider = open(Some("near"), way, 2).unwrap();
    println!("{}", provider.describe());
    let client = pingpong(&mut *provider, Some("10.9.0.2"), &options);
    let server = server.join().unwrap();
    remove("near");
    [server, client]
}

#[test]
fn messages_go_to_and_fro_by_each_way() {
    if !in_namespace("messages_go_to_and_fro_by_each_way") {
        return;
    }
    for way in [Way::Rings, Way::Bundles, Way::Pnet, Way::Udp] {
        for (size, mtu, link_mtu) in [
            (4096, Mtu::B1024, 1500),
            (65_536, Mtu::B4096, 4200),
            (1, Mtu::B256, 1500),
        ] {
            let options = PingpongOptions {
                size,
                mtu,
                iterations: 100,
                receives: 8,
                ..PingpongOptions::default()
            };
            let [server, client] = play(way, options, link_mtu).map(Result::unwrap);
            assert_eq!((server.wrong, client.wrong), (0, 0), "{way:?} {size}");
            assert_eq!((server.peer, client.peer), (client.own, server.own));
            let counters = client.counters.unwrap();
            assert_eq!(counters.rdma_sends, 100, "{counters:?}");
            assert_eq!(counters.rdma_recvs, 100, "{counters:?}");
            println!("{way:?} {size}: {:?}", client.took);
        }
    }
}

#[test]
fn bandwidths_are_measured_by_each_way() {
    if !in_namespace("bandwidths_are_measured_by_each_way") {
        return;
    }
    for way in [Way::Rings, Way::Bundles, Way::Pnet, Way::Udp] {
        for (verb, size) in [
            (Verb::Write, 65_536),
            (Verb::Write, 2),
            (Verb::Send, 100_000),
            (Verb::Read, 65_536),
        ] {
            let options = perftest::BandwidthOptions {
                size,
                iterations: 200,
                posted: 16,
                receives: 64,
                ..perftest::BandwidthOptions::new(verb)
            };
            let server = beyond_a_cable(4200, move || {
                let mut provider = open(Some("far"), way, 1).unwrap();
                bandwidth(&mut *provider, verb, None, &options).unwrap()
            });
            let mut provider = open(Some("near"), way, 2).unwrap();
            let client = bandwidth(&mut *provider, verb, Some("10.9.0.2"), &options).unwrap();
            let server = server.join().unwrap();
            remove("near");
            assert_eq!((server.peer, client.peer), (client.own, server.own));
            assert_eq!((server.mtu, client.mtu), (Mtu::B4096, Mtu::B4096));
            let measured = client.measured.unwrap();
            assert_eq!(measured.iterations, 200);
            match verb {
                Verb::Send => assert_eq!(server.measured.unwrap().iterations, 200),
                Verb::Write | Verb::Read => assert_eq!(server.told, client.measured),
            }
            let bytes = 200 * u64::from(size);
            println!("{way:?} {verb:?} {bytes}: {:.0} MiB/s", measured.average);
        }
    }
}

/// perftest's `-a`, `-D` and `-b` for each verb: both sides report the same sizes, messages and directions.
#[test]
fn all_sizes_a_duration_and_both_directions() {
    if !in_namespace("all_sizes_a_duration_and_both_directions") {
        return;
    }
    let cases = [Verb::Write, Verb::Send, Verb::Read]
        .into_iter()
        .flat_map(|verb| {
            let plain = perftest::BandwidthOptions {
                size: 10_000,
                iterations: 3,
                posted: 16,
                receives: 64,
                ..perftest::BandwidthOptions::new(verb)
            };
            let all = perftest::BandwidthOptions {
                all_sizes: true,
                ..plain
            };
            let timed = perftest::BandwidthOptions {
                duration: Some(Duration::from_millis(150)),
                ..plain
            };
            let both = |options| perftest::BandwidthOptions {
                is_bidirectional: true,
                ..options
            };
            let mut cases = vec![all, timed, both(plain), both(all)];
            // Bidirectional SENDs cannot end by time.
            if verb != Verb::Send {
                cases.push(both(timed));
            }
            cases.into_iter().map(move |options| (verb, options))
        });
    for (verb, options) in cases {
        let what = format!("{verb:?} {options:?}");
        let far = perftest::BandwidthOptions {
            reports_gbits: true,
            ..options
        };
        let server = beyond_a_cable(4200, move || {
            let mut provider = open(Some("far"), Way::Rings, 1).unwrap();
            bandwidth(&mut *provider, verb, None, &far).unwrap()
        });
        let mut provider = open(Some("near"), Way::Rings, 2).unwrap();
        let client = bandwidth(&mut *provider, verb, Some("10.9.0.2"), &options).unwrap();
        let server = server.join().unwrap();
        remove("near");
        let sizes = |outcome: &perftest::BandwidthOutcome| -> Vec<u64> {
            outcome.sizes.iter().map(|report| report.size).collect()
        };
        let expected: Vec<u64> = match options.all_sizes {
            true => (1..24).map(|power| 1 << power).collect(),
            false => vec![10_000],
        };
        assert_eq!(sizes(&client), expected, "{what}");
        let measures = options.is_bidirectional || verb == Verb::Send;
        assert_eq!(
            sizes(&server),
            if measures { expected } else { Vec::new() },
            "{what}"
        );
        for report in client.sizes.iter().chain(&server.sizes) {
            match options.duration {
                Some(_) => assert!(report.iterations > 3, "{what}: {report:?}"),
                None => assert_eq!(report.iterations, 3, "{what}"),
            }
        }
        if options.is_bidirectional {
            // Both report the sum of both directions, whatever the unit of the exchange.
            let [near, far] = [&client, &server].map(|outcome| outcome.measured.unwrap().average);
            assert!((near - far).abs() < 1e-6 * near, "{what}: {near} {far}");
        } else if verb == Verb::Send {
            let [near, far] =
                [&client, &server].map(|outcome| outcome.measured.unwrap().iterations);
            assert_eq!(near, far, "{what}");
        } else {
            assert_eq!(server.told, client.measured, "{what}");
        }
    }
}

#[test]
fn latencies_of_all_sizes() {
    if !in_namespace("latencies_of_all_sizes") {
        return;
    }
    for verb in [Verb::Write, Verb::Send, Verb::Read] {
        let options = LatencyOptions {
            iterations: 3,
            all_sizes: true,
            ..LatencyOptions::default()
        };
        let server = beyond_a_cable(4200, move || {
            let mut provider = open(Some("far"), Way::Rings, 1).unwrap();
            latency(&mut *provider, verb, None, &options).unwrap()
        });
        let mut provider = open(Some("near"), Way::Rings, 2).unwrap();
        let client = latency(&mut *provider, verb, Some("10.9.0.2"), &options).unwrap();
        server.join().unwrap();
        remove("near");
        let sizes: Vec<u32> = client.sizes.iter().map(|(size, _)| *size).collect();
        assert_eq!(sizes, perftest::SIZES, "{verb:?}");
        assert_eq!(client.measured, client.sizes.last().map(|(_, of)| *of));
        let [small, large] = [0, 22].map(|at| client.sizes[at].1.typical);
        assert!(small < large, "{verb:?}: {small} {large}");
    }
}

#[test]
fn latencies_are_measured_by_each_way() {
    if !in_namespace("latencies_are_measured_by_each_way") {
        return;
    }
    for way in [Way::Rings, Way::Bundles, Way::Pnet, Way::Udp] {
        for (verb, size) in [
            (Verb::Write, 2),
            (Verb::Write, 10_000),
            (Verb::Send, 1),
            (Verb::Read, 300),
        ] {
            // More messages than one byte can count, and than receives are posted at once.
            let options = LatencyOptions {
                size,
                iterations: 700,
                ..LatencyOptions::default()
            };
            let server = beyond_a_cable(4200, move || {
                let mut provider = open(Some("far"), way, 1).unwrap();
                latency(&mut *provider, verb, None, &options).unwrap()
            });
            let mut provider = open(Some("near"), way, 2).unwrap();
            let client = latency(&mut *provider, verb, Some("10.9.0.2"), &options).unwrap();
            let server = server.join().unwrap();
            remove("near");
            assert_eq!((server.peer, client.peer), (client.own, server.own));
            let measured = client.measured.unwrap();
            assert!(measured.min > 0.0 && measured.min <= measured.typical);
            assert!(measured.typical <= measured.max, "{measured:?}");
            assert_eq!(server.measured.is_some(), verb != Verb::Read);
            let counters = server.counters.unwrap();
            let of_verb = match verb {
                Verb::Write => counters.rx_write_requests,
                Verb::Send => counters.rdma_recvs,
                Verb::Read => counters.rx_read_requests,
            };
            assert_eq!(of_verb, 700, "{counters:?}");
            println!("{way:?} {verb:?} {size}: {:.1} us", measured.typical);
        }
    }
}

/// The test that one end runs.
#[derive(Clone, Copy)]
enum Plays {
    Bandwidth(Verb, perftest::BandwidthOptions),
    Latency(Verb, LatencyOptions),
}

/// The error of one end.
fn error(interface: &str, plays: Plays, host: Option<&str>) -> String {
    let mut provider = open(Some(interface), Way::Rings, 1).unwrap();
    let error = match plays {
        Plays::Bandwidth(verb, options) => bandwidth(&mut *provider, verb, host, &options).err(),
        Plays::Latency(verb, options) => latency(&mut *provider, verb, host, &options).err(),
    };
    error.map_or_else(String::new, |error| error.to_string())
}

/// Both sides name the difference as soon as they have exchanged keys: neither waits for messages that never arrive.
#[test]
fn a_peer_that_plays_another_test_ends_it() {
    if !in_namespace("a_peer_that_plays_another_test_ends_it") {
        return;
    }
    let plain = perftest::BandwidthOptions {
        patience: Duration::from_secs(20),
        ..perftest::BandwidthOptions::new(Verb::Write)
    };
    let bandwidth = |verb| Plays::Bandwidth(verb, plain);
    let lat = |verb| Plays::Latency(verb, LatencyOptions::default());
    let write = |options| Plays::Bandwidth(Verb::Write, options);
    let read_both = |options| {
        Plays::Bandwidth(
            Verb::Read,
            perftest::BandwidthOptions {
                is_bidirectional: true,
                ..options
            },
        )
    };
    let of_time = perftest::BandwidthOptions {
        duration: Some(Duration::from_secs(2)),
        ..plain
    };
    for (servers, clients, [at_server, at_client]) in [
        (
            bandwidth(Verb::Write),
            bandwidth(Verb::Send),
            ["`write`", "`send`"],
        ),
        (
            bandwidth(Verb::Send),
            bandwidth(Verb::Read),
            ["`send`", "`read`"],
        ),
        (
            bandwidth(Verb::Read),
            bandwidth(Verb::Write),
            ["`read`", "`write`"],
        ),
        (
            lat(Verb::Write),
            lat(Verb::Read),
            ["`write-lat`", "`read-lat`"],
        ),
        (
            bandwidth(Verb::Write),
            lat(Verb::Write),
            ["`write`", "`write-lat`"],
        ),
        (
            lat(Verb::Send),
            bandwidth(Verb::Send),
            ["`send-lat`", "`send`"],
        ),
        (
            write(perftest::BandwidthOptions {
                is_bidirectional: true,
                ..plain
            }),
            write(plain),
            ["`write -b`", "`write`"],
        ),
        (
            write(plain),
            write(perftest::BandwidthOptions {
                all_sizes: true,
                ..plain
            }),
            ["`write`", "`write -a`"],
        ),
        (write(of_time), write(plain), ["`write -D`", "`write`"]),
        (
            write(plain),
            write(perftest::BandwidthOptions { size: 64, ..plain }),
            ["`-s 65536`", "`-s 64`"],
        ),
        (
            read_both(plain),
            read_both(perftest::BandwidthOptions {
                iterations: 9,
                ..plain
            }),
            ["`-n 5000`", "`-n 9`"],
        ),
    ] {
        let begun = Instant::now();
        let server = beyond_a_cable(4200, move || error("far", servers, None));
        let client = error("near", clients, Some("10.9.0.2"));
        let server = server.join().unwrap();
        remove("near");
        for (told, own, theirs) in [
            (&server, at_server, at_client),
            (&client, at_client, at_server),
        ] {
            let rest = told.split_once("the peer has ").map(|(_, rest)| rest);
            let (first, second) = rest
                .and_then(|rest| rest.split_once(", and this end "))
                .unwrap_or_default();
            assert!(
                first.contains(theirs) && second.contains(own),
                "{at_server} {at_client}: {told}"
            );
        }
        assert!(
            begun.elapsed() < Duration::from_secs(3),
            "{:?}",
            begun.elapsed()
        );
    }
}

#[test]
fn different_mtus_are_an_error_at_both() {
    if !in_namespace("different_mtus_are_an_error_at_both") {
        return;
    }
    let options = |mtu| PingpongOptions {
        mtu,
        iterations: 3,
        receives: 8,
        patience: Duration::from_secs(3),
        ..PingpongOptions::default()
    };
    let server = beyond_a_cable(4200, move || {
        let mut provider = open(Some("far"), Way::Rings, 1).unwrap();
        let played = pingpong(&mut *provider, None, &options(Mtu::B4096));
        played.unwrap_err().to_string()
    });
    let mut provider = open(Some("near"), Way::Rings, 2).unwrap();
    let client = pingpong(&mut *provider, Some("10.9.0.2"), &options(Mtu::B1024));
    let client = client.unwrap_err().to_string();
    let server = server.join().unwrap();
    println!("client: {client}\nserver: {server}");
    assert!(client.contains("remote invalid request"), "{client}");
    assert!(server.contains("MTU"), "{server}");
}
