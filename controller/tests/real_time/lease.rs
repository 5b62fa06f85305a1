//! The lease, in real time: the controller is killed, or stands still, while its faults act on a switch that lives on in a process of
//! its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdout, Stdio};
use std::time::{Duration, Instant};

use crate::support::*;
use controller::experiment::fleet::Fleet;
use controller::experiment::{Planned, Switches};
use controller::target::Kind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use scenario::model::topology::Topology;
use softswitch::ports::{self, Frames};
use test_support::namespace::{in_namespace, ip, veth};

const LEASE: Duration = Duration::from_millis(500);
/// By how much a fault may outlive the lease of a controller that is gone.
const GRACE: Duration = Duration::from_millis(100);
/// Between two frames.
const GAP: Duration = Duration::from_micros(500);

const SCENARIO: &str = "weir: 1
name: dead-man
topology: {star: {hosts: [a, s], switch: sw}}
flows: {f: {from: a, to: s, filter: udp.dport == 7}}
faults:
  - {id: gone, flows: f, effect: drop}
lease: 500ms
";

/// A frame of the flow with a number at its end.
fn frame(topology: &Topology, number: u32) -> Vec<u8> {
    let [a, s] = ["a", "s"].map(|name| topology.host(name).unwrap());
    let mut frame = s.mac.value().to_be_bytes()[10..].to_vec();
    frame.extend(&a.mac.value().to_be_bytes()[10..]);
    frame.extend([0x08, 0x00, 0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(a.ip.octets());
    frame.extend(s.ip.octets());
    frame.extend([0x03, 0xe7, 0, 7, 0, 12, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// A sender, a receiver, and what is known of each frame: when it was sent, and whether it came.
struct Traffic {
    topology: Topology,
    from: Box<dyn Frames>,
    to: Box<dyn Frames>,
    sent: Vec<Instant>,
    came: Vec<bool>,
}

impl Traffic {
    fn receive(&mut self) {
        let came = &mut self.came;
        let mut take = |frame: &[u8]| {
            if let Some(number) = frame.get(42..46).and_then(|number| number.try_into().ok())
                && let Some(came) = came.get_mut(u32::from_be_bytes(number) as usize)
            {
                *came = true;
            }
        };
        self.to.receive(1024, &mut take).unwrap();
    }

    fn go_on_for(&mut self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            let frame = frame(&self.topology, self.sent.len() as u32);
            self.sent.push(Instant::now());
            self.came.push(false);
            self.from.send(&frame).unwrap();
            self.from.flush().unwrap();
            self.receive();
            std::thread::sleep(GAP);
        }
    }
}

/// A switch in a process of its own, and traffic through it.
struct Network {
    traffic: Traffic,
    /// Where the switch serves P4Runtime.
    address: String,
    _switch: Running,
    folder: tempfile::TempDir,
}

impl Network {
    /// The switch has no program.
    fn new() -> Network {
        ip("link set lo up");
        veth("a0", "a1");
        veth("s0", "s1");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("s.yaml"), SCENARIO).unwrap();
        let topology = scenario::load("s.yaml", SCENARIO).unwrap().topology;
        let port = |host: &str| topology.next_hop("sw", host).unwrap().number;
        let [a, s] = [format!("{}@a1", port("a")), format!("{}@s1", port("s"))];
        let line = "switch --no-p4 --device-id 1 --grpc-server-addr 127.0.0.1:0 -i";
        let mut args: Vec<&str> = line.split(' ').collect();
        args.extend([a.as_str(), "-i", s.as_str()]);
        let mut switch = weir(folder.path(), &args);
        let mut switch = Running(switch.stdout(Stdio::piped()).spawn().unwrap());
        let mut said = BufReader::new(switch.0.stdout.take().unwrap()).lines();
        let line = said.next().unwrap().unwrap();
        let address = line.split_once("P4Runtime at ").unwrap().1;
        let address = address.split(',').next().unwrap().to_owned();
        let open = |name| ports::open(name, ports::Options::default()).unwrap().frames;
        Network {
            traffic: Traffic {
                from: open("a0"),
                to: open("s0"),
                topology,
                sent: Vec::new(),
                came: Vec::new(),
            },
            address,
            _switch: switch,
            folder,
        }
    }
}

/// A network and a controller in a process of its own, whose faults act on the traffic.
struct Bench {
    traffic: Traffic,
    controller: Running,
    said: Lines<BufReader<ChildStdout>>,
    _switch: Running,
    _folder: tempfile::TempDir,
}

impl Bench {
    /// Everything written, nothing armed.
    fn new() -> Bench {
        let Network {
            traffic,
            address,
            _switch,
            folder,
        } = Network::new();
        let at = format!("sw={address}");
        let mut controller = weir(folder.path(), &["control", "s.yaml", "--switch", &at]);
        controller.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut controller = Running(controller.spawn().unwrap());
        let mut said = BufReader::new(controller.0.stdout.take().unwrap()).lines();
        assert_eq!(said.next().unwrap().unwrap(), "ready");
        Bench {
            traffic,
            controller,
            said,
            _switch,
            _folder: folder,
        }
    }

    fn go(&mut self) {
        let stdin = self.controller.0.stdin.as_mut().unwrap();
        stdin.write_all(b"go\n").unwrap();
        assert_eq!(self.said.next().unwrap().unwrap(), "going");
    }
}

#[test]
fn faults_end_with_the_lease_of_a_controller_that_was_killed() {
    let _turn = alone();
    if !in_namespace("faults_end_with_the_lease_of_a_controller_that_was_killed") {
        return;
    }
    let mut bench = Bench::new();
    bench.traffic.go_on_for(Duration::from_millis(200));
    let unarmed = bench.traffic.sent.len();
    bench.go();
    let armed = bench.traffic.sent.len();
    // Several leases: it is refreshed.
    bench.traffic.go_on_for(3 * LEASE);
    bench.controller.0.kill().unwrap();
    bench.controller.0.wait().unwrap();
    let killed = Instant::now();
    let traffic = &mut bench.traffic;
    traffic.go_on_for(LEASE + 3 * GRACE);
    std::thread::sleep(GRACE);
    traffic.receive();

    assert!(traffic.came[..unarmed].iter().all(|came| *came), "before");
    let before = (armed..traffic.sent.len()).filter(|frame| traffic.sent[*frame] < killed);
    let escaped = before.filter(|frame| traffic.came[*frame]).count();
    assert_eq!(escaped, 0, "while it was refreshed");
    let last = traffic.came.iter().rposition(|came| !came).unwrap();
    let outlived = traffic.sent[last].saturating_duration_since(killed);
    println!(
        "last fault {:.1} ms after the controller was killed; lease {} ms; {} frames, one every {:.2} ms",
        outlived.as_secs_f64() * 1e3,
        LEASE.as_millis(),
        traffic.sent.len(),
        (traffic.sent[last] - traffic.sent[0]).as_secs_f64() * 1e3 / last as f64,
    );
    assert!(outlived <= LEASE + GRACE, "{outlived:?}");
    // It is the lease that ended them, not the end of the connection.
    assert!(outlived >= LEASE / 2, "{outlived:?}");
    let after = traffic.came[last + 1..].len();
    assert!(after > 50, "{after} frames pass in the end");
}

#[test]
fn a_controller_that_stood_still_goes_on_and_says_that_its_lease_ran_out() {
    let _turn = alone();
    if !in_namespace("a_controller_that_stood_still_goes_on_and_says_that_its_lease_ran_out") {
        return;
    }
    let mut bench = Bench::new();
    bench.go();
    let tell = |bench: &Bench, signal| {
        let pid = Pid::from_raw(bench.controller.0.id() as i32);
        kill(pid, signal).unwrap();
    };
    bench.traffic.go_on_for(LEASE / 2);
    tell(&bench, Signal::SIGSTOP);
    bench.traffic.go_on_for(2 * LEASE);
    tell(&bench, Signal::SIGCONT);
    bench.traffic.go_on_for(LEASE);
    let resumed = bench.traffic.came.iter().rposition(|came| *came).unwrap();
    bench.traffic.go_on_for(LEASE);
    let traffic = &mut bench.traffic;
    let passed = traffic.came.iter().filter(|came| **came).count();
    assert!(passed > 50, "{passed} frames met no fault");
    assert!(!traffic.came[resumed + 1..].iter().any(|came| *came));
    drop(bench.controller.0.stdin.take());
    let report: String = bench.said.map(|line| line.unwrap() + "\n").collect();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["lapsed"], passed, "{report}");
}

/// This thread is the controller's loop, and does something else than to follow the timeline for several leases.
#[test]
fn faults_hold_while_the_loop_of_their_controller_is_busy() {
    let _turn = alone();
    if !in_namespace("faults_hold_while_the_loop_of_their_controller_is_busy") {
        return;
    }
    let mut network = Network::new();
    let scenario = scenario::load("s.yaml", SCENARIO).unwrap();
    let planned = Planned::elsewhere(scenario, Kind::Embedded).unwrap();
    let addresses = BTreeMap::from([("sw".to_owned(), network.address.clone())]);
    let mut fleet = Fleet::attach(&planned, &addresses, &Switches::default(), None).unwrap();
    fleet.set_epoch(1).unwrap();
    network.traffic.go_on_for(4 * LEASE);
    fleet.check_leases().unwrap();
    assert_eq!(fleet.lapsed("sw").unwrap(), 0);
    fleet.disarm().unwrap();
    let armed = network.traffic.sent.len();
    network.traffic.go_on_for(LEASE / 2);
    std::thread::sleep(GRACE);
    network.traffic.receive();
    assert!(armed > 50, "{armed} frames");
    let came = &network.traffic.came;
    assert!(!came[..armed].contains(&true), "while faults were armed");
    assert!(!came[armed..].contains(&false), "when they were disarmed");
    assert_eq!(fleet.lapsed("sw").unwrap(), 0);
}
