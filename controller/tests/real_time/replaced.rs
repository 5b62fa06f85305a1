//! Another scenario in the place of one, under load: no packet that no fault names is lost or late, and a fault that goes on
//! counts as if nothing had happened.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{ChildStdout, Stdio};
use std::time::{Duration, Instant};

use crate::support::*;
use scenario::model::topology::Topology;
use serde_json::Value;
use softswitch::ports::{self, Frames};
use test_support::namespace::{in_namespace, ip, veth};

/// Between two frames.
const GAP: Duration = Duration::from_micros(200);

/// Every fifth datagram of a flow is dropped.
const FIRST: &str = "weir: 1
name: first
topology: {star: {hosts: [a, s], switch: sw}}
flows: {f: {from: a, to: s, filter: udp.dport == 7}}
faults:
  - {id: fifth, flows: f, effect: drop, select: {every: 5}}
lease: 1s
expect: [fault.fifth.fired > 0]
";
/// The same program, another flow beside.
const ENTRIES: &str = "weir: 1
name: entries
topology: {star: {hosts: [a, s], switch: sw}}
flows: {g: {from: a, to: s, filter: udp.dport == 9}}
faults:
  - {id: fifth, flows: g, effect: drop, select: {every: 4}}
";
/// Another program, in which the first fault stands in another unit and goes on.
const PROGRAM: &str = "weir: 1
name: program
topology: {star: {hosts: [a, s], switch: sw}}
flows:
  f: {from: a, to: s, filter: udp.dport == 7}
  d: {from: a, to: s, filter: 'udp.dport == 53 && dns.name == \"x.org\"'}
faults:
  - {id: slow, flows: d, effect: {delay: 5ms}}
  - {id: fifth, flows: f, effect: drop, select: {every: 5}}
lease: 1s
";

/// A datagram to a port with a number at its end.
fn frame(topology: &Topology, port: u16, number: u32) -> Vec<u8> {
    let [a, s] = ["a", "s"].map(|name| topology.host(name).unwrap());
    let mut frame = s.mac.value().to_be_bytes()[10..].to_vec();
    frame.extend(&a.mac.value().to_be_bytes()[10..]);
    frame.extend([0x08, 0x00, 0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(a.ip.octets());
    frame.extend(s.ip.octets());
    frame.extend([0x03, 0xe7]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 12, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// What becomes of frames: half of them are of the flow that faults name, the others of none.
struct Traffic {
    topology: Topology,
    from: Box<dyn Frames>,
    to: Box<dyn Frames>,
    /// To which port each went, and when.
    sent: Vec<(u16, Instant)>,
    /// By number, when it came.
    came: Vec<Option<Instant>>,
}

impl Traffic {
    fn send(&mut self, port: u16) {
        let number = self.sent.len() as u32;
        self.sent.push((port, Instant::now()));
        self.came.push(None);
        self.from
            .send(&frame(&self.topology, port, number))
            .unwrap();
        self.from.flush().unwrap();
    }

    fn receive(&mut self) {
        let came = &mut self.came;
        let mut take = |frame: &[u8]| {
            let now = Instant::now();
            let number = frame.get(42..46).and_then(|number| number.try_into().ok());
            let number = number.map(|number| u32::from_be_bytes(number) as usize);
            if let Some(came) = number.and_then(|number| came.get_mut(number)) {
                *came = Some(now);
            }
        };
        self.to.receive(1024, &mut take).unwrap();
    }

    fn turn(&mut self) {
        let port = if self.sent.len().is_multiple_of(2) {
            7
        } else {
            99
        };
        self.send(port);
        self.receive();
        std::thread::sleep(GAP);
        self.receive();
    }

    fn go_on_for(&mut self, time: Duration) {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.turn();
        }
    }

    fn settle(&mut self) {
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(2));
            self.receive();
        }
    }

    /// Numbers of the frames to a port, from one number on.
    fn to(&self, port: u16, from: usize) -> Vec<usize> {
        let all = (from..self.sent.len()).filter(|number| self.sent[*number].0 == port);
        all.collect()
    }

    /// Frames that no fault names: how many were lost.
    fn lost_of_spared(&self) -> usize {
        let spared = self.to(99, 0);
        spared
            .iter()
            .filter(|number| self.came[**number].is_none())
            .count()
    }
}

/// A switch and a controller in processes of their own.
struct Bench {
    traffic: Traffic,
    controller: Running,
    said: Lines<BufReader<ChildStdout>>,
    _switch: Running,
    folder: tempfile::TempDir,
    at: String,
}

fn control(folder: &Path, file: &str, at: &str) -> (Running, Lines<BufReader<ChildStdout>>) {
    let mut controller = weir(folder, &["control", file, "--switch", at]);
    controller.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut controller = Running(controller.spawn().unwrap());
    let said = BufReader::new(controller.0.stdout.take().unwrap()).lines();
    (controller, said)
}

impl Bench {
    fn new() -> Bench {
        ip("link set lo up");
        veth("a0", "a1");
        veth("s0", "s1");
        let folder = tempfile::tempdir().unwrap();
        let files = [("first", FIRST), ("entries", ENTRIES), ("program", PROGRAM)];
        for (name, text) in files {
            std::fs::write(folder.path().join(format!("{name}.yaml")), text).unwrap();
        }
        let topology = scenario::load("first.yaml", FIRST).unwrap().topology;
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
        let at = format!("sw={}", address.split(',').next().unwrap());
        let (controller, mut said) = control(folder.path(), "first.yaml", &at);
        assert_eq!(said.next().unwrap().unwrap(), "ready");
        let open = |name| ports::open(name, ports::Options::default()).unwrap().frames;
        Bench {
            traffic: Traffic {
                from: open("a0"),
                to: open("s0"),
                topology,
                sent: Vec::new(),
                came: Vec::new(),
            },
            controller,
            said,
            _switch: switch,
            folder,
            at,
        }
    }

    fn tell(&mut self, line: &str) {
        let stdin = self.controller.0.stdin.as_mut().unwrap();
        stdin.write_all(line.as_bytes()).unwrap();
    }

    fn go(&mut self) {
        self.tell("go\n");
        assert_eq!(self.said.next().unwrap().unwrap(), "going");
    }

    /// Puts another scenario in the place of what is there, while frames go on; what `control` says of it.
    fn replace(&mut self, file: &str) -> Value {
        self.tell(&format!("scenario {file}\n"));
        let (said, traffic) = (&mut self.said, &mut self.traffic);
        let line = std::thread::scope(|scope| {
            let line = scope.spawn(|| {
                let line = said.next().unwrap().unwrap();
                if line != "refused" {
                    assert_eq!(said.next().unwrap().unwrap(), "going");
                }
                line
            });
            while !line.is_finished() {
                traffic.turn();
            }
            line.join().unwrap()
        });
        match line.strip_prefix("replaced ") {
            Some(json) => serde_json::from_str(json).unwrap(),
            None => Value::String(line),
        }
    }

    fn end(mut self) -> (Traffic, Value) {
        self.traffic.settle();
        drop(self.controller.0.stdin.take());
        let report: String = self.said.map(|line| line.unwrap() + "\n").collect();
        (self.traffic, serde_json::from_str(&report).unwrap())
    }
}

/// The numbers of the frames that were lost, counted from 1 among those given.
fn lost(traffic: &Traffic, frames: &[usize]) -> Vec<usize> {
    let lost = frames
        .iter()
        .zip(1..)
        .filter(|(number, _)| traffic.came[**number].is_none());
    lost.map(|(_, ordinal)| ordinal).collect()
}

#[test]
fn another_program_takes_over_and_a_fault_goes_on_counting() {
    let _turn = beside();
    if !in_namespace("another_program_takes_over_and_a_fault_goes_on_counting") {
        return;
    }
    let mut bench = Bench::new();
    bench.go();
    // 12 of the flow: the next that is dropped is the third behind them.
    for _ in 0..12 {
        bench.traffic.send(7);
        std::thread::sleep(GAP);
    }
    bench.traffic.settle();
    assert_eq!(lost(&bench.traffic, &bench.traffic.to(7, 0)), [5, 10]);
    bench.tell("scenario program.yaml\n");
    let said = bench.said.next().unwrap().unwrap();
    let said: Value = serde_json::from_str(said.strip_prefix("replaced ").unwrap()).unwrap();
    assert_eq!(bench.said.next().unwrap().unwrap(), "going");
    let change = &said["switches"][0];
    let reasons = change["new_program"].to_string();
    assert!(reasons.contains("header message text is new"), "{reasons}");
    let fates = &said["faults"]["fates"];
    assert_eq!(fates[0]["becomes"], "is_new", "{fates}");
    assert_eq!(fates[1]["becomes"], "goes_on", "{fates}");
    assert_eq!(said["old"]["faults"][0]["fired"], 2, "{said}");
    assert_eq!(
        said["old"]["ignored"],
        serde_json::json!(["expect"]),
        "{said}"
    );
    let behind = bench.traffic.sent.len();
    for _ in 0..12 {
        bench.traffic.send(7);
        std::thread::sleep(GAP);
    }
    bench.traffic.settle();
    assert_eq!(lost(&bench.traffic, &bench.traffic.to(7, behind)), [3, 8]);
    let (_, report) = bench.end();
    assert_eq!(report["faults"][1]["fired"], 2, "{report}");
    assert_eq!(report["ignored"], serde_json::json!([]), "{report}");
}

#[test]
fn nothing_that_is_spared_is_lost_by_any_change_under_load() {
    let _turn = alone();
    if !in_namespace("nothing_that_is_spared_is_lost_by_any_change_under_load") {
        return;
    }
    let mut bench = Bench::new();
    bench.traffic.go_on_for(Duration::from_millis(100));
    bench.go();
    bench.traffic.go_on_for(Duration::from_millis(100));
    for round in 0..5 {
        let said = bench.replace("program.yaml");
        assert_ne!(said["switches"][0]["new_program"], serde_json::json!([]));
        bench.traffic.go_on_for(Duration::from_millis(20));
        let said = bench.replace("first.yaml");
        assert_eq!(said["faults"]["fates"][0]["becomes"], "goes_on", "{said}");
        bench.traffic.go_on_for(Duration::from_millis(20));
        let said = bench.replace("entries.yaml");
        assert_ne!(
            said["old"]["faults"][0]["fired"], 0,
            "round {round}: {said}"
        );
        let said = bench.replace("first.yaml");
        assert_eq!(said["faults"]["fates"][0]["becomes"], "is_new", "{said}");
        bench.traffic.go_on_for(Duration::from_millis(20));
    }
    // A second controller, from scratch, on the switch that goes on.
    drop(bench.controller.0.stdin.take());
    bench.controller.0.wait().unwrap();
    (bench.controller, bench.said) = control(bench.folder.path(), "program.yaml", &bench.at);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        bench.traffic.turn();
    }
    assert_eq!(bench.said.next().unwrap().unwrap(), "ready");
    bench.go();
    bench.traffic.go_on_for(Duration::from_millis(50));
    let (traffic, _) = bench.end();
    assert!(traffic.to(99, 0).len() > 500, "{}", traffic.sent.len());
    assert_eq!(traffic.lost_of_spared(), 0);
}

#[test]
fn what_is_refused_changes_nothing() {
    let _turn = beside();
    if !in_namespace("what_is_refused_changes_nothing") {
        return;
    }
    let mut bench = Bench::new();
    std::fs::write(
        bench.folder.path().join("other.yaml"),
        FIRST.replace("switch: sw", "switch: other"),
    )
    .unwrap();
    bench.go();
    for file in ["absent.yaml", "other.yaml"] {
        assert_eq!(bench.replace(file), "refused", "{file}");
    }
    bench.traffic.settle();
    let (traffic, report) = bench.end();
    let flow = traffic.to(7, 0);
    let hit: Vec<usize> = (1..=flow.len())
        .filter(|ordinal| ordinal % 5 == 0)
        .collect();
    assert_eq!(lost(&traffic, &flow), hit);
    assert_eq!(report["faults"][0]["fired"], hit.len(), "{report}");
}
