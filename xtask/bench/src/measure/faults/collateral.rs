//! `cargo xtask bench faults --row collateral`: loss and delay of packets outside all flows of the faults, while faults
//! are armed, stopped, exchanged, and left armed by a killed controller.
//!
//! A sender and a receiver use two ports of `weir switch`, and `weir control` arms and exchanges the faults. Half of
//! the packets belong to the faults' flow, so that the switch handles both kinds at once.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use scenario::model::topology::Topology;
use softswitch::ports::{self, Frames};
use testbeds::net::Netlink;

use crate::measure::files;
use crate::measure::programs::WEIR;
use crate::measure::row::{Goal, Row};
use crate::measure::veth::{self, Running};

pub const NAME: &str = "faults/collateral_under_load";
/// Role in which this program measures in the network namespace.
pub const ROLE: &str = "collateral";
/// Number of times that each action on the faults is repeated.
const ROUNDS: usize = 20;
/// Time between two sent packets.
const GAP: Duration = Duration::from_micros(50);
/// Time between two actions on the faults.
const REST: Duration = Duration::from_millis(30);
const LEASE: Duration = Duration::from_millis(200);
/// UDP port of the faults' flow; the next constant is a port of no flow.
const NAMED: u16 = 7;
const SPARED: u16 = 99;

/// First scenario: drops packets of the flow by number, and has timeline steps all the time.
const FIRST: &str = "weir: 1
name: first
topology: {star: {hosts: [a, s], switch: sw}}
timeline: [{name: on, at: 0s, for: 10ms, every: 20ms, times: 1000}]
flows: {f: {from: a, to: s, filter: udp.dport == 7}}
faults:
  - {id: lost, flows: f, effect: drop, select: {every: 3}, during: on}
lease: 200ms
";
/// Scenario with the P4 program of [`FIRST`], but other table entries.
const ENTRIES: &str = "weir: 1
name: entries
topology: {star: {hosts: [a, s], switch: sw}}
timeline: [{name: on, at: 0s, for: 10ms, every: 20ms, times: 1000}]
flows: {f: {from: a, to: s, filter: udp.dport == 7}}
faults:
  - {id: lost, flows: f, effect: drop, select: {every: 4}, during: on}
lease: 200ms
";
/// Scenario with another P4 program than [`FIRST`].
const PROGRAM: &str = "weir: 1
name: program
topology: {star: {hosts: [a, s], switch: sw}}
flows:
  f: {from: a, to: s, filter: udp.dport == 7}
  d: {from: a, to: s, filter: 'udp.dport == 53 && dns.name == \"x.org\"'}
faults:
  - {id: slow, flows: f, effect: {delay: 2ms}, select: {every: 7}}
  - {id: lost, flows: f, effect: drop, select: {every: 3}}
  - {id: names, flows: d, effect: drop}
lease: 200ms
";

/// Measures the row in a network namespace of its own.
pub fn run() -> Result<Row> {
    let [wrong, sent, hit, quiet, worst] = veth::numbers_in_namespace("faults", ROLE)?;
    Ok(Row {
        name: NAME,
        value: (sent > 0.0 && hit > 0.0).then_some(wrong),
        unit: "packets wrong",
        goal: Goal::AtMost(0.0),
        floor: None,
        note: format!(
            "of {sent} that no fault names, lost or doubled, over {ROUNDS} rounds of: load, arm, exchange entries, exchange the \
             program, stop, SIGKILL of the controller; {hit} of the named were hit; longest on its way {worst:.0} us, {quiet:.0} \
             before the first"
        ),
    })
}

/// Frame to a UDP port with a number in its payload.
fn frame(topology: &Topology, port: u16, number: u32) -> Result<Vec<u8>> {
    let host = |name| topology.host(name).context("a host");
    let (a, s) = (host("a")?, host("s")?);
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
    Ok(frame)
}

/// Sending time of each frame, and number and arrival time of each received frame. Frames with even numbers belong to no flow.
#[derive(Default)]
struct Traffic {
    sent: Vec<Instant>,
    arrivals: Vec<(u32, Option<Duration>)>,
}

impl Traffic {
    /// Sends and receives frames until `ends` is set, and receives a little longer.
    fn flow(
        topology: &Topology,
        mut from: Box<dyn Frames>,
        mut to: Box<dyn Frames>,
        stop: &AtomicBool,
    ) -> Result<Traffic> {
        let mut traffic = Traffic::default();
        let begun = Instant::now();
        let mut end = None;
        while end.is_none_or(|end| Instant::now() < end) {
            if stop.load(Ordering::Relaxed) && end.is_none() {
                end = Some(Instant::now() + Duration::from_millis(100));
            }
            let number = traffic.sent.len();
            if end.is_none() && begun.elapsed() >= GAP * number as u32 {
                let port = if number.is_multiple_of(2) {
                    SPARED
                } else {
                    NAMED
                };
                let frame = frame(topology, port, number as u32)?;
                traffic.sent.push(Instant::now());
                traffic.arrivals.push((0, None));
                from.send(&frame)?;
                from.flush()?;
            }
            let Traffic { sent, arrivals } = &mut traffic;
            let mut take = |frame: &[u8]| {
                // The kernel sends frames on its interfaces, too.
                let ours = frame.get(12..14) == Some(&[0x08, 0x00]);
                let number = frame.get(42..46).filter(|_| ours);
                let number = number.and_then(|number| number.try_into().ok());
                let number =
                    number.map_or(usize::MAX, |number| u32::from_be_bytes(number) as usize);
                if let (Some(sent), Some(arrival)) = (sent.get(number), arrivals.get_mut(number)) {
                    arrival.0 += 1;
                    arrival.1 = Some(sent.elapsed());
                }
            };
            to.receive(1024, &mut take)?;
            // The switch needs a processor, too.
            std::thread::yield_now();
        }
        Ok(traffic)
    }

    fn spared(&self) -> impl Iterator<Item = &(u32, Option<Duration>)> {
        self.arrivals.iter().step_by(2)
    }

    fn hit(&self) -> usize {
        let named = self.arrivals.iter().skip(1).step_by(2);
        named.filter(|(times, _)| *times == 0).count()
    }
}

/// Process `weir control`, which configures the switch.
struct Controller {
    child: Running,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Controller {
    /// Starts `weir control`, which loads a scenario into the switch at `at` without arming its faults.
    fn load(folder: &std::path::Path, file: &str, at: &str) -> Result<Controller> {
        let mut command = Command::new(WEIR.path()?);
        command
            .args(["control", file, "--switch", at])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = Running(command.spawn()?);
        let lines = BufReader::new(child.0.stdout.take().context("its output")?).lines();
        let mut controller = Controller { child, lines };
        controller.expect_line("ready")?;
        Ok(controller)
    }

    fn expect_line(&mut self, word: &str) -> Result<()> {
        let line = self.lines.next().context("weir control ended")??;
        ensure!(line.starts_with(word), "weir control: {line}");
        Ok(())
    }

    fn write_line(&mut self, line: &str) -> Result<()> {
        let stdin = self.child.0.stdin.as_mut().context("its input")?;
        Ok(writeln!(stdin, "{line}")?)
    }

    fn arm(&mut self) -> Result<()> {
        self.write_line("go")?;
        self.expect_line("going")
    }

    fn exchange(&mut self, file: &str) -> Result<()> {
        self.write_line(&format!("scenario {file}"))?;
        self.expect_line("replaced")?;
        self.expect_line("going")
    }

    fn stop(mut self) -> Result<()> {
        drop(self.child.0.stdin.take());
        let ended = self.child.0.wait()?;
        ensure!(ended.success(), "weir control ended with {ended}");
        Ok(())
    }
}

/// Measures in the network namespace; returns all figures in one line.
pub fn measure() -> Result<String> {
    let netlink = Netlink::open()?;
    netlink.set_up("lo", true)?;
    for host in ["a", "s"] {
        netlink.create_veth(&format!("{host}0"), &format!("{host}1"))?;
        for end in 0..2 {
            netlink.set_up(&format!("{host}{end}"), true)?;
        }
    }
    let folder = tempfile::tempdir()?;
    for (name, text) in [("first", FIRST), ("entries", ENTRIES), ("program", PROGRAM)] {
        files::write(folder.path().join(format!("{name}.yaml")), text)?;
    }
    let loaded = scenario::load("first.yaml", FIRST);
    let topology = loaded
        .map_err(|errors| anyhow::anyhow!("{errors:?}"))?
        .topology;
    let mut command = Command::new(WEIR.path()?);
    command.args(["switch", "--no-p4", "--device-id", "1"]);
    command.args(["--grpc-server-addr", "127.0.0.1:0"]);
    for host in ["a", "s"] {
        let port = topology.next_hop("sw", host).context("a port")?.number;
        command.args(["-i", &format!("{port}@{host}1")]);
    }
    let mut switch = Running(command.stdout(Stdio::piped()).spawn()?);
    let mut lines = BufReader::new(switch.0.stdout.take().context("its output")?).lines();
    let line = lines.next().context("weir switch ended")??;
    let address = line.split_once("P4Runtime at ").context("an address")?.1;
    let at = format!("sw={}", address.split(',').next().unwrap_or_default());
    let first = Controller::load(folder.path(), "first.yaml", &at)?;
    let open = |name| anyhow::Ok(ports::open(name, ports::Options::default())?.frames);
    let (from, to) = (open("a0")?, open("s0")?);
    let stop = AtomicBool::new(false);
    let (traffic, quiet) = std::thread::scope(|scope| {
        let flow = scope.spawn(|| Traffic::flow(&topology, from, to, &stop));
        std::thread::sleep(Duration::from_millis(500));
        let quiet = Instant::now();
        let done = all_rounds(folder.path(), &at, first);
        stop.store(true, Ordering::Relaxed);
        let traffic = flow.join().map_err(|_| anyhow::anyhow!("a panic"))??;
        done?;
        anyhow::Ok((traffic, quiet))
    })?;
    let wrong = traffic.spared().filter(|(times, _)| *times != 1).count();
    let longest = |until: Option<Instant>| {
        let all = traffic.arrivals.iter().zip(&traffic.sent).step_by(2);
        let of = all.filter(|(_, sent)| until.is_none_or(|until| **sent < until));
        let longest = of.filter_map(|((_, took), _)| *took).max();
        longest.unwrap_or_default().as_nanos() as f64 / 1e3
    };
    Ok(format!(
        "{wrong} {} {} {} {}\n",
        traffic.spared().count(),
        traffic.hit(),
        longest(Some(quiet)),
        longest(None)
    ))
}

fn all_rounds(folder: &std::path::Path, at: &str, first: Controller) -> Result<()> {
    let mut controller = first;
    for _ in 0..ROUNDS {
        controller.arm()?;
        std::thread::sleep(REST);
        controller.exchange("entries.yaml")?;
        std::thread::sleep(REST);
        controller.exchange("program.yaml")?;
        std::thread::sleep(REST);
        controller.exchange("first.yaml")?;
        std::thread::sleep(REST);
        controller.stop()?;
        let mut killed = Controller::load(folder, "program.yaml", at)?;
        killed.arm()?;
        std::thread::sleep(REST);
        drop(killed);
        std::thread::sleep(LEASE + REST);
        controller = Controller::load(folder, "first.yaml", at)?;
    }
    controller.arm()?;
    controller.stop()
}
