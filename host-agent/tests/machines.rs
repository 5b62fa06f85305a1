//! `weir-agent rdma-perf --way verbs` with a device: in a virtual machine with Debian's kernel and rxe, against Debian's
//! programs in another machine, and against RDMA in user space on this host. Skipped by name without QEMU, the machines'
//! image or tap interfaces.
//!
//! A separate test binary, since the machines boot in real time.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use machines::{Image, Job, Machine, MachineOptions, Output};
use test_support::namespace::{in_namespace, ip, veth};

const A: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 3);
const LIMIT: Duration = Duration::from_secs(60);
const MESSAGES: u64 = 100;

const AGENT: &str = env!("CARGO_BIN_EXE_weir-agent");

/// The machine image, with our program and the libraries that it needs.
fn image(test: &str) -> Option<Image> {
    let image = machines::for_test(test)?;
    let agent = [("usr/bin/weir-agent", Path::new(AGENT))];
    Some(
        image
            .with_programs(&agent)
            .unwrap_or_else(|error| panic!("{error}")),
    )
}

fn options(name: &str, address: Ipv4Addr) -> MachineOptions {
    MachineOptions {
        // The program is in the machine's memory, beside the system.
        memory_mib: 512,
        ..MachineOptions::new(name, &format!("tap-{name}"), address)
    }
}

/// Program at one end of a test.
#[derive(Clone, Copy)]
enum End<'m> {
    /// Our program in a machine, by verbs.
    Verbs(&'m Machine),
    /// Debian's program in a machine.
    Debian(&'m Machine),
    /// Our program on this host, by rings.
    Rings,
}

/// A running program.
enum Running<'m> {
    There(Job<'m>),
    Here(Child),
}

impl Running<'_> {
    /// Waits for success, and returns the output.
    fn finish(self) -> String {
        match self {
            Self::There(job) => job.succeed(LIMIT).unwrap_or_else(|error| panic!("{error}")),
            Self::Here(child) => {
                let output = child.wait_with_output().unwrap();
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{error}");
                String::from_utf8(output.stdout).unwrap()
            }
        }
    }
}

impl<'m> End<'m> {
    fn name(self) -> &'static str {
        match self {
            Self::Verbs(_) => "verbs",
            Self::Debian(_) => "debian",
            Self::Rings => "rings",
        }
    }

    fn address(self) -> Ipv4Addr {
        match self {
            Self::Verbs(machine) | Self::Debian(machine) => machine.address(),
            Self::Rings => HERE,
        }
    }

    /// Starts the program as server, or as client of the server at this address.
    fn start(self, test: &str, server: Option<Ipv4Addr>) -> Running<'m> {
        let server = server.map_or(String::new(), |address| format!(" {address}"));
        let ours = format!("rdma-perf {test} -n {MESSAGES} --json{server}");
        let line = match self {
            Self::Verbs(_) => format!("weir-agent {ours} --way verbs"),
            Self::Debian(_) => {
                let program = match test {
                    "pingpong" => "ibv_rc_pingpong -g 1".to_owned(),
                    test => match test.strip_suffix("-lat") {
                        Some(verb) => format!("ib_{verb}_lat"),
                        None => format!("ib_{test}_bw"),
                    },
                };
                let line = format!("{program} -n {MESSAGES}{server}");
                match &*server {
                    "" => line,
                    // The client does not wait for a server, so retry it.
                    _ => format!("until {line}; do usleep 100000; done"),
                }
            }
            Self::Rings => {
                let mut agent = Command::new(AGENT);
                agent
                    .args(ours.split(' '))
                    .args(["-d", "host", "--way", "rings"]);
                agent.stdout(Stdio::piped()).stderr(Stdio::piped());
                return Running::Here(agent.spawn().unwrap());
            }
        };
        match self {
            Self::Verbs(machine) | Self::Debian(machine) => {
                Running::There(machine.spawn(&line).unwrap())
            }
            Self::Rings => unreachable!("returned above"),
        }
    }

    /// Asserts that the output reports success.
    fn check(self, test: &str, is_client: bool, printed: &str) {
        let what = format!("{} {test}: {printed}", self.name());
        if let Self::Debian(_) = self {
            let expected = match test {
                "pingpong" => format!("{MESSAGES} iters in"),
                // The side whose memory is read has measured nothing.
                "read-lat" if !is_client => "local address".to_owned(),
                test if test.ends_with("-lat") => "t_typical".to_owned(),
                _ => "BW average".to_owned(),
            };
            assert!(printed.contains(&expected), "{what}");
            return;
        }
        let told: serde_json::Value = serde_json::from_str(printed).expect(&what);
        if test == "pingpong" {
            assert_eq!(
                (told["wrong"].as_u64(), told["iterations"].as_u64()),
                (Some(0), Some(MESSAGES)),
                "{what}"
            );
            return;
        }
        if test.ends_with("-lat") {
            let typical = told["t_typical_us"].as_f64();
            assert_eq!(typical.is_some(), is_client || test != "read-lat", "{what}");
            assert!(typical.is_none_or(|typical| typical > 0.0), "{what}");
            return;
        }
        // The side whose memory is written or read gets the results by a message: its device did the work.
        if is_client || test != "send" {
            assert_eq!(told["iterations"], MESSAGES, "{what}");
            // A client of perftest reports 0 if it could not calibrate its clock.
            let average = told["average_mib_per_s"].as_f64();
            assert!(
                average > Some(0.0) || average == Some(0.0) && !is_client,
                "{what}"
            );
        }
        let counters = told["counters"].as_object().expect(&what);
        // A device counts for all queue pairs together.
        assert_eq!(
            counters.is_empty(),
            matches!(self, Self::Verbs(_)),
            "{what}"
        );
    }
}

#[test]
fn a_device_serves_and_asks_others_and_user_space() {
    let test = "a_device_serves_and_asks_others_and_user_space";
    if !in_namespace(test) {
        return;
    }
    let Some(image) = image(test) else { return };
    ip("link add hub mtu 4200 type bridge stp_state 0 forward_delay 0 mcast_snooping 0");
    ip("link set hub up");
    veth("host", "host-port");
    for interface in ["host", "host-port"] {
        ip(&format!("link set {interface} mtu 4200"));
    }
    ip("link set host-port master hub");
    ip(&format!("address add {HERE}/24 dev host"));
    let both = [options("a", A), options("b", B)];
    let machines = Machine::boot_all(&image, &both).unwrap_or_else(|error| panic!("{error}"));
    for options in &both {
        ip(&format!("link set {} master hub", options.interface));
    }
    let [a, b] = &machines;
    let (device, other) = (End::Verbs(a), End::Debian(b));
    for test in ["pingpong", "write", "send", "read"] {
        for (server, client) in [
            (device, other),
            (other, device),
            (device, End::Rings),
            (End::Rings, device),
            (device, End::Verbs(b)),
        ] {
            println!("{test}: {} asks {}", client.name(), server.name());
            let serving = server.start(test, None);
            let asking = client.start(test, Some(server.address()));
            client.check(test, true, &asking.finish());
            server.check(test, false, &serving.finish());
        }
    }
    for test in ["write-lat", "send-lat", "read-lat"] {
        for (server, client) in [(device, other), (other, device), (device, End::Rings)] {
            println!("{test}: {} asks {}", client.name(), server.name());
            let serving = server.start(test, None);
            let asking = client.start(test, Some(server.address()));
            client.check(test, true, &asking.finish());
            server.check(test, false, &serving.finish());
        }
    }
}

/// Our program's error in one line.
fn refused(machine: &Machine, line: &str) -> String {
    let Output { status, stderr, .. } = machine.run(line).unwrap();
    assert_eq!(status, 2, "{line}: {stderr}");
    let last = stderr.lines().last().unwrap_or("");
    println!("{line}: {last}");
    stderr
}

#[test]
fn errors_name_what_a_device_lacks() {
    let test = "errors_name_what_a_device_lacks";
    if !in_namespace(test) {
        return;
    }
    let Some(image) = image(test) else { return };
    let machine = Machine::boot(&image, &options("a", A)).unwrap_or_else(|error| panic!("{error}"));
    let verbs = "weir-agent rdma-perf pingpong --way verbs --patience 1";
    let auto = "weir-agent rdma-perf pingpong --patience 1";
    let lacks = |line: &str, words: &str| {
        let said = refused(&machine, line);
        assert!(said.contains(words), "{words}: {said}");
    };

    // A device has precedence, by its name, by its interface, or as the only one.
    for name in ["", " -d rxe0", " -d eth0"] {
        lacks(
            &format!("{auto}{name}"),
            "verbs of rxe0, port 1 (a device is available), 10.9.0.1, MTU up to 4096",
        );
        lacks(&format!("{verbs}{name}"), "no client within 1s");
    }
    lacks(&format!("{verbs} -d lo"), "RoCEv2");
    lacks(
        &format!("{verbs} -d rxe7"),
        "no RDMA device or interface is named rxe7",
    );
    lacks(
        &format!("{verbs} -r 65535"),
        "completions requested: rxe0 supports",
    );
    lacks(
        &format!("{verbs} -m 4096 -s 1 -r 2 10.9.0.9"),
        "cannot reach 10.9.0.9",
    );

    machine
        .succeed("mkdir -p /etc; echo user:x:1000:1000::/tmp:/bin/sh >/etc/passwd")
        .unwrap();
    let as_user = |limit: u32| format!("su user -c 'ulimit -l {limit}; exec {verbs} -s 1048576'");
    lacks(
        &as_user(64),
        "cannot pin 1048576 bytes: RLIMIT_MEMLOCK is 65536",
    );
    // Two regions, and the memory of the device's queues.
    lacks(&as_user(65_536), "no client within 1s");
    machine
        .succeed("chmod 600 /dev/infiniband/uverbs0")
        .unwrap();
    lacks(
        &as_user(65_536),
        "cannot open the RDMA device rxe0: Permission denied",
    );

    machine.succeed("/usr/bin/ip link set eth0 down").unwrap();
    lacks(
        &format!("{verbs} -d rxe0"),
        "port 1 of the RDMA device rxe0 is not active",
    );
    machine.succeed("/usr/bin/ip link set eth0 up").unwrap();
    machine.succeed("rdma link delete rxe0").unwrap();
    lacks(verbs, "this host has no RDMA device");
    lacks(
        auto,
        "roce over rings of eth0 (this host has no RDMA device)",
    );
    machine
        .succeed("rm /lib/x86_64-linux-gnu/libibverbs.so.1")
        .unwrap();
    lacks(verbs, "no libibverbs: libibverbs.so.1");
    lacks(
        auto,
        "roce over rings of eth0 (no libibverbs: libibverbs.so.1",
    );
}
