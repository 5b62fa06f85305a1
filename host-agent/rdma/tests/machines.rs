//! Tests against independent RDMA implementations: Debian's kernel with rxe and Debian's programs, in a virtual machine whose
//! network interface ends in the test's namespace. Skipped by name without QEMU, the machine's image or tap interfaces.

use std::net::Ipv4Addr;
use std::time::Duration;

use machines::{Machine, MachineOptions};
use rdma::perftest::{self, LatencyOptions, Verb, bandwidth, latency};
use rdma::pingpong::{PingpongOptions, pingpong};
use rdma::{Provider, Way, open};
use roce::packet::Mtu;
use test_support::namespace::{in_namespace, ip};

const HERE: &str = "10.9.0.1";
const THERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const LIMIT: Duration = Duration::from_secs(60);

/// A machine whose cable ends in the interface `near` of this namespace.
fn machine(test: &str) -> Option<Machine> {
    if !in_namespace(test) {
        return None;
    }
    let image = machines::for_test(test)?;
    let options = MachineOptions::new("rxe", "near", THERE);
    let machine = Machine::boot(&image, &options).unwrap_or_else(|error| panic!("{error}"));
    ip(&format!("address add {HERE}/24 dev near"));
    println!(
        "booted in {:?} by {:?}",
        machine.boot_time(),
        machine.accelerator()
    );
    Some(machine)
}

fn provider(way: Way) -> Box<dyn Provider> {
    let provider = open(Some("near"), way, 7).unwrap();
    println!("{}", provider.describe());
    provider
}

#[test]
fn rc_pingpong_passes_in_both_roles() {
    let Some(machine) = machine("rc_pingpong_passes_in_both_roles") else {
        return;
    };
    for way in [Way::Rings, Way::Bundles, Way::Pnet] {
        for (mtu, size) in [(Mtu::B1024, 4096), (Mtu::B4096, 20_000), (Mtu::B256, 777)] {
            let options = PingpongOptions {
                mtu,
                size,
                iterations: 300,
                patience: LIMIT,
                ..PingpongOptions::default()
            };
            let theirs = format!("ibv_rc_pingpong -g 1 -n 300 -m {} -s {size}", mtu.bytes());

            let mut ours = provider(way);
            let serving = machine.spawn(&theirs).unwrap();
            machine.await_listening(options.port).unwrap();
            let client = pingpong(&mut *ours, Some(&THERE.to_string()), &options);
            if client.is_err() {
                println!("{}", machine.succeed("cd /sys/class/infiniband/rxe0/ports/1/hw_counters; grep . *; cat /proc/net/snmp; ip -s link; dmesg | tail -5").unwrap());
            }
            let client = client.unwrap();
            assert_eq!(client.wrong, 0, "{client:?}");
            let told = serving
                .succeed(LIMIT)
                .unwrap_or_else(|error| panic!("{error}"));
            assert!(told.contains("300 iters"), "{told}");
            drop(ours);

            let mut ours = provider(way);
            // The program does not wait for a server, so retry it.
            let until = format!("until {theirs} {HERE}; do sleep 0.1; done");
            let calling = machine.spawn(&until).unwrap();
            let server = pingpong(&mut *ours, None, &options).unwrap();
            let told = calling
                .succeed(LIMIT)
                .unwrap_or_else(|error| panic!("{error}"));
            assert!(told.contains("300 iters"), "{told}");
            assert_eq!(server.wrong, 0, "{server:?}");
            println!(
                "{way:?} MTU {} {size} bytes: as client {:?}, as server {:?}",
                mtu.bytes(),
                client.took,
                server.took
            );
        }
    }
}

/// Runs our test as client of Debian's program, then as its server; returns our outcomes and their output.
fn in_both_roles<T, E: std::fmt::Display>(
    machine: &Machine,
    way: Way,
    theirs: &str,
    port: u16,
    test: impl Fn(&mut dyn Provider, Option<&str>) -> Result<T, E>,
) -> [(T, String); 2] {
    let failed = |error: E| -> T { panic!("{theirs}: {error}") };
    let printed = |job: machines::Job<'_>| {
        job.succeed(LIMIT)
            .unwrap_or_else(|error| panic!("{theirs}: {error}"))
    };
    let mut ours = provider(way);
    let serving = machine.spawn(theirs).unwrap();
    machine.await_listening(port).unwrap();
    let client = test(&mut *ours, Some(&THERE.to_string())).unwrap_or_else(failed);
    let client = (client, printed(serving));
    drop(ours);
    let mut ours = provider(way);
    // The program does not wait for a server, so retry it.
    let until = format!("until {theirs} {HERE}; do sleep 0.1; done");
    let calling = machine.spawn(&until).unwrap();
    let server = test(&mut *ours, None).unwrap_or_else(failed);
    let both = [client, (server, printed(calling))];
    both.iter().for_each(|(_, told)| println!("{told}"));
    both
}

#[test]
fn perftest_passes_in_both_roles() {
    let Some(machine) = machine("perftest_passes_in_both_roles") else {
        return;
    };
    for (verb, name) in [
        (Verb::Write, "write"),
        (Verb::Send, "send"),
        (Verb::Read, "read"),
    ] {
        let options = perftest::BandwidthOptions {
            iterations: 200,
            patience: LIMIT,
            ..perftest::BandwidthOptions::new(verb)
        };
        let theirs = format!("ib_{name}_bw -s 65536 -n 200");
        // rxe also takes bundles: the kernel cuts them, and each frame has the right ICRC.
        for way in [Way::Rings, Way::Bundles] {
            let both = in_both_roles(&machine, way, &theirs, options.port, |ours, host| {
                bandwidth(ours, verb, host, &options)
            });
            let [(client, _), (server, _)] = both;
            assert_eq!(client.measured.unwrap().iterations, 200);
            if verb != Verb::Send {
                assert_eq!(server.told.unwrap().iterations, 200);
            }
            assert!(server.counters.unwrap().rcvd_pkts > 0);
        }

        let options = LatencyOptions {
            iterations: 600,
            patience: LIMIT,
            ..LatencyOptions::default()
        };
        let theirs = format!("ib_{name}_lat -n 600");
        let both = in_both_roles(&machine, Way::Rings, &theirs, options.port, |ours, host| {
            latency(ours, verb, host, &options)
        });
        let [(client, _), (server, told)] = both;
        assert!(client.measured.unwrap().min > 0.0);
        assert!(server.counters.unwrap().rcvd_pkts > 0);
        // Its own figures, for the same number of messages.
        assert!(told.contains(" 2       600"), "{told}");
    }
}
