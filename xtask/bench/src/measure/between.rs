//! `cargo xtask bench between`: measures the cost of `weir between` for packets that no fault hits, beside a bare cable.
//!
//! The two hosts are network namespaces. Their interfaces are the two ends of one virtual Ethernet pair, or a wire
//! with a scenario connects them. In both cases the senders complete segments and checksums, as on a cable, except in
//! the row [`OFFLOADS`].

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbeds::net::Netlink;

use super::driver::{self, Group};
use super::hosts::{HOSTS, HostPair, Segments, Stream};
use super::programs::WEIR;
use super::row::{Goal, Row};
use super::support::median;
use super::{Args, files, veth};

/// Names of the rows with the cost for packets that no fault hits.
pub const NAMES: &[&str] = &["between_rtt", "between_tcp"];
/// Names of the rows of the long run: one minute under a fault.
pub const LONG: &[&str] = &["between_long_memory", "between_long_rate"];
/// Name of the row of hosts that leave their segments unfinished.
pub const OFFLOADS: &str = "between_tcp_offloads";
/// Role in which this program measures in the network namespace; `LONG_ROLE` for the long run.
pub const ROLE: &str = "between";
pub const LONG_ROLE: &str = "between-long";
pub const OFFLOADS_ROLE: &str = "between-offloads";

/// Bytes of UDP payload in a frame of 64 bytes with its FCS.
const PAYLOAD: usize = 18;
const QUESTIONS: usize = 20_000;
/// Number of bytes per TCP transfer: they fit into the captures of the proof.
const BULK: usize = 100_000_000;
const ROUNDS: usize = 5;
/// Interfaces that `weir between` connects.
const ENDS: [&str; 2] = ["left1", "right1"];
/// Maximum time of a transfer of unfinished segments.
const LIMIT: Duration = Duration::from_secs(20);

/// Scenario with a fault that hits no measured packet.
const SCENARIO: &str = "\
weir: 1
name: spared
topology: {wire: [left, right]}
flows: {others: {from: left, filter: udp.dport == 7777}}
faults: [{id: lost, flows: others, effect: drop}]
expect: [fault.lost.fired == 0]
";

/// Duration of a long run: one minute.
const MINUTE: Duration = Duration::from_secs(60);
/// Scenario without faults: nothing is captured.
const FREE: &str = "weir: 1\nname: free\ntopology: {wire: [left, right]}\n";
/// Scenario with a fault that hits the measured TCP connection.
const LOSING: &str = "\
weir: 1
name: losing
topology: {wire: [left, right]}
flows: {bulk: {from: left, filter: tcp.dport == 9001}}
faults: [{id: lost, flows: bulk, effect: drop, select: {probability: 0.1%}}]
";

pub fn run(args: &Args) -> Result<bool> {
    let groups = vec![
        Group::new(NAMES, |_| rows()),
        Group::one(OFFLOADS, |_| offloads_row()),
        Group::new(LONG, |_| long_rows()),
    ];
    driver::measure(args, groups, || WEIR.build(args.prebuilt))
}

/// Measures the rows [`NAMES`] in a network namespace of their own.
fn rows() -> Result<Vec<Row>> {
    let [rtt, p99, bare_rtt, bare_p99, mbit, bare_mbit, unfinished] =
        veth::numbers_in_namespace("between", ROLE)?;
    Ok(vec![
        Row {
            name: NAMES[0],
            value: Some(rtt),
            unit: "us",
            goal: Goal::Nothing,
            floor: Some(bare_rtt),
            note: format!(
                "a question and its answer, UDP in frames of 64 bytes, median of {QUESTIONS} (p99 {p99:.0}), all captured for \
                 the proof; floor: a bare veth pair (p99 {bare_p99:.0})"
            ),
        },
        Row {
            name: NAMES[1],
            value: Some(mbit),
            unit: "Mbit/s",
            goal: Goal::Nothing,
            floor: Some(bare_mbit),
            note: format!(
                "{} MB over one TCP connection, median of {ROUNDS}, all captured for the proof; floor: a bare veth pair whose \
                 senders finish their frames as well; {unfinished:.0} where they do not",
                BULK / 1_000_000
            ),
        },
    ])
}

/// Measures the row [`OFFLOADS`] in a network namespace of its own.
fn offloads_row() -> Result<Row> {
    let text = veth::in_namespace("between", OFFLOADS_ROLE, None)?;
    let [finished, unfinished, wired] = Stream::parse_all(&text)?;
    Ok(Row {
        name: OFFLOADS,
        value: Some(wired.mbit() / finished.mbit()),
        unit: "ratio",
        // 5 of 7.2 Gbit/s.
        goal: Goal::AtLeast(0.69),
        floor: None,
        note: format!(
            "{} MB over one TCP connection, median of {ROUNDS}, bytes compared, all captured for the proof, hosts with their \
             offloads on: {}, by a bare veth pair whose senders finish their frames: {} (where they do not: {})",
            BULK / 1_000_000,
            wired.note(),
            finished.note(),
            unfinished.note()
        ),
    })
}

/// Measures the row [`OFFLOADS`], in the network namespace: a bare veth pair with finished and with unfinished
/// segments, and the wire with unfinished ones.
pub fn measure_offloads() -> Result<String> {
    Netlink::open()?.set_up("lo", true)?;
    let bare = HostPair::new(Segments::Finished)?;
    let finished = Stream::median(ROUNDS, || bare.stream(BULK, LIMIT))?;
    bare.set_segments(Segments::Unfinished)?;
    let unfinished = Stream::median(ROUNDS, || bare.stream(BULK, LIMIT))?;
    let wired = HostPair::cabled_to(ENDS, Segments::Unfinished)?;
    let wired = Stream::median(ROUNDS, || {
        let _wire = Wire::start(SCENARIO)?;
        wired.stream(BULK, LIMIT)
    })?;
    Ok([finished, unfinished, wired].map(|of| of.print()).concat())
}

/// Measures the rows [`LONG`]: one minute without faults, and one minute with a fault.
fn long_rows() -> Result<Vec<Row>> {
    let text = veth::in_namespace("between", LONG_ROLE, None)?;
    let report: Value =
        serde_json::from_str(&text).with_context(|| format!("the measurement printed {text:?}"))?;
    let figure = |name: &str| {
        report[name]
            .as_f64()
            .with_context(|| format!("no {name}: {text}"))
    };
    let (with, without) = (figure("with")?, figure("without")?);
    ensure!(report["proved"] == true, "not proved: {text}");
    let note = format!(
        "one TCP connection for {} s, {} packets met, {} lost; {with:.0} Mbit/s, by a wire without faults, which captures nothing, \
         {without:.0}",
        MINUTE.as_secs(),
        report["met"],
        report["observed"]
    );
    let row = |name, value, unit, goal| Row {
        name,
        value: Some(value),
        unit,
        goal,
        floor: None,
        note: note.clone(),
    };
    Ok(vec![
        row(
            LONG[0],
            figure("memory")? / f64::from(1 << 20),
            "MiB",
            Goal::AtMost(200.0),
        ),
        row(LONG[1], with / without, "ratio", Goal::AtLeast(0.9)),
    ])
}

/// Measures the long runs, in the network namespace; returns the figures as JSON.
pub fn measure_long() -> Result<String> {
    Netlink::open()?.set_up("lo", true)?;
    let wired = HostPair::cabled_to(ENDS, Segments::Finished)?;
    let wire = Wire::start(FREE)?;
    let without = wired.rate_over_a_minute()?;
    wire.end()?;
    let wire = Wire::start(LOSING)?;
    let with = wired.rate_over_a_minute()?;
    let report = wire.end()?;
    let fault = &report["faults"][0];
    let report = json!({
        "with": with,
        "without": without,
        "memory": report["machine_strain"]["peak_memory_bytes"],
        "proved": fault["proved"],
        "met": fault["met"],
        "observed": fault["observed"],
    });
    Ok(report.to_string())
}

/// Measures the rows [`NAMES`], in the network namespace; returns all figures in one line.
pub fn measure() -> Result<String> {
    // The switch's P4Runtime server listens there.
    Netlink::open()?.set_up("lo", true)?;
    let bare = HostPair::new(Segments::Unfinished)?;
    let unfinished = bare.bulk_rate()?;
    bare.set_segments(Segments::Finished)?;
    let (bare_rtt, bare_p99) = bare.round_trips()?;
    let bare_mbit = bare.bulk_rate()?;
    let wired = HostPair::cabled_to(ENDS, Segments::Finished)?;
    let wire = Wire::start(SCENARIO)?;
    let (rtt, p99) = wired.round_trips()?;
    drop(wire);
    // A run keeps its packets in memory, so each round has a run of its own.
    let rounds = (0..ROUNDS).map(|_| {
        let wire = Wire::start(SCENARIO)?;
        let rate = wired.transfer()?;
        drop(wire);
        Ok(rate)
    });
    let mbit = median(rounds.collect::<Result<Vec<f64>>>()?);
    Ok(format!(
        "{rtt} {p99} {bare_rtt} {bare_p99} {mbit} {bare_mbit} {unfinished}\n"
    ))
}

impl HostPair {
    /// Median and 99th percentile of the round-trip time between the hosts, in microseconds.
    fn round_trips(&self) -> Result<(f64, f64)> {
        let bind = |end: usize| {
            let socket = self.namespaces[end].run(|| UdpSocket::bind((HOSTS[end], 9000)))?;
            socket.set_read_timeout(Some(Duration::from_secs(5)))?;
            anyhow::Ok(socket)
        };
        let (asking, answering) = (bind(0)?, bind(1)?);
        let answers = std::thread::spawn(move || {
            let mut question = [0; PAYLOAD];
            while let Ok((PAYLOAD, from)) = answering.recv_from(&mut question) {
                if question[0] == 1 || answering.send_to(&question, from).is_err() {
                    break;
                }
            }
        });
        asking.connect((HOSTS[1], 9000))?;
        let mut took = Vec::with_capacity(QUESTIONS);
        // The first requests resolve addresses.
        for number in 0..QUESTIONS + 100 {
            let begun = Instant::now();
            asking.send(&[0; PAYLOAD])?;
            let length = asking.recv(&mut [0; PAYLOAD]).context("no reply")?;
            ensure!(length == PAYLOAD);
            if number >= 100 {
                took.push(begun.elapsed().as_nanos() as f64 / 1e3);
            }
        }
        asking.send(&[1; PAYLOAD])?;
        let _ = answers.join();
        took.sort_by(f64::total_cmp);
        Ok((took[took.len() / 2], took[took.len() * 99 / 100]))
    }

    /// Median rate of TCP payload between the hosts, in Mbit/s.
    fn bulk_rate(&self) -> Result<f64> {
        let rounds = (0..ROUNDS).map(|_| self.transfer());
        Ok(median(rounds.collect::<Result<Vec<f64>>>()?))
    }

    fn transfer(&self) -> Result<f64> {
        let begun = Instant::now();
        let received = self.transfer_while(|sent| sent < BULK)?;
        ensure!(received == BULK, "{received} bytes of {BULK} arrived");
        Ok(8.0 * BULK as f64 / begun.elapsed().as_secs_f64() / 1e6)
    }

    /// Rate of TCP payload over one minute, in Mbit/s.
    fn rate_over_a_minute(&self) -> Result<f64> {
        let begun = Instant::now();
        let received = self.transfer_while(move |_| begun.elapsed() < MINUTE)?;
        Ok(8.0 * received as f64 / begun.elapsed().as_secs_f64() / 1e6)
    }

    /// Sends over one TCP connection while `goes_on` returns true for the number of sent bytes.
    /// Returns the number of received bytes.
    fn transfer_while(&self, goes_on: impl Fn(usize) -> bool + Send + 'static) -> Result<usize> {
        let to = SocketAddrV4::new(HOSTS[1], 9001);
        let listener = self.namespaces[1].run(|| TcpListener::bind(to))?;
        let mut from = self.namespaces[0].run(|| TcpStream::connect(to))?;
        let (mut accepted, _) = listener.accept()?;
        let sender = std::thread::spawn(move || {
            let (block, mut sent) = (vec![0x5a; 100_000], 0);
            while goes_on(sent) {
                from.write_all(&block)?;
                sent += block.len();
            }
            std::io::Result::Ok(())
        });
        let (mut block, mut received) = (vec![0; 1 << 16], 0);
        loop {
            match accepted.read(&mut block)? {
                0 => break,
                length => received += length,
            }
        }
        let sent = sender.join().map_err(|_| anyhow::anyhow!("a panic"))?;
        sent.context("the sender")?;
        Ok(received)
    }
}

/// Process `weir between` of [`ENDS`], which is stopped when this value is dropped.
struct Wire {
    child: Child,
    output: ChildStdout,
    /// Folder of the scenario file and the report.
    _folder: tempfile::TempDir,
}

impl Wire {
    fn start(scenario: &str) -> Result<Wire> {
        let folder = tempfile::tempdir()?;
        files::write(folder.path().join("s.yaml"), scenario)?;
        let mut weir = Command::new(WEIR.path()?);
        weir.args(["-v", "between", ENDS[0], ENDS[1], "--json"])
            .args(["--scenario", "s.yaml"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = weir.spawn().context("cannot run weir")?;
        let output = child.stdout.take().context("no output")?;
        let errors = child.stderr.take().context("no error output")?;
        let mut lines = BufReader::new(errors);
        let mut report = String::new();
        while !report.contains("workload begins") {
            ensure!(lines.read_line(&mut report)? > 0, "weir between: {report}");
        }
        // The process continues to write.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        Ok(Wire {
            child,
            output,
            _folder: folder,
        })
    }

    /// Stops `weir between` and returns its report.
    fn end(mut self) -> Result<Value> {
        self.interrupt();
        let mut report = String::new();
        self.output.read_to_string(&mut report)?;
        serde_json::from_str(&report).with_context(|| format!("weir between reported {report:?}"))
    }

    fn interrupt(&self) {
        let id = nix::unistd::Pid::from_raw(self.child.id() as i32);
        let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGINT);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.interrupt();
        let _ = self.child.wait();
    }
}
