//! Loses packets between two virtual machines with the kernel's rxe: `weir between` is restarted
//! with a scenario for each lost packet.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use machines::{Machine, MachineOptions, between};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use testbeds::net::Netlink;

use super::super::super::programs::WEIR;
use super::super::super::row::{Goal, Row};
use super::super::super::veth::{self, Running};
use super::super::super::{Args, files};
use super::{LostPacket, PACKETS};

/// Role in which this program measures in the network namespace.
pub const ROLE: &str = "lost_rxe";
pub const NAMES: &[&str] = &["lost_write_rxe", "lost_read_rxe"];
/// Time limit for `weir between` to forward packets.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program of perftest, and the RoCEv2 opcodes of its data packets.
struct Perftest {
    name: &'static str,
    program: &'static str,
    opcodes: &'static str,
    /// Host that sends the data: the client at `b`, or the server at `a` if the client reads.
    from: &'static str,
}

/// Measured programs. The client is in the machine at `b`.
const SUBJECTS: [Perftest; 2] = [
    Perftest {
        name: NAMES[0],
        program: "ib_write_bw",
        opcodes: "{0x06..0x0b}",
        from: "b",
    },
    Perftest {
        name: NAMES[1],
        program: "ib_read_bw",
        opcodes: "{0x0d..0x10}",
        from: "a",
    },
];

impl Perftest {
    /// Command line for five messages of [`PACKETS`] packets, one after the other, so that packets
    /// follow the last packet of the first message.
    fn command(&self) -> String {
        let size = PACKETS * 1024;
        format!("{} -s {size} -n 5 -t 1 -m 1024", self.program)
    }

    fn scenario(&self, k: u32) -> String {
        let Perftest { opcodes, from, .. } = self;
        format!(
            "weir: 1
name: lost
topology: {{wire: [a, b]}}
flows:
  data: {{from: {from}, filter: \"roce.opcode in {opcodes}\"}}
faults:
  - {{id: lost, flows: data, effect: drop, select: {{psn: {{at: {k}, round: 1}}}}}}
expect: [fault.lost.fired == 1, fault.lost.recovered == 1]
"
        )
    }
}

/// Measures the rows in a network namespace of their own.
pub fn rows(args: &Args) -> Result<Vec<Row>> {
    WEIR.build(args.prebuilt)?;
    if let Err(error) = machines::image() {
        let unmeasured = |name| Row {
            name,
            value: None,
            unit: "of 100",
            goal: Goal::AtLeast(f64::from(PACKETS)),
            floor: None,
            note: format!("{error}; `cargo run -p machines --example image` makes it"),
        };
        return Ok(NAMES.iter().copied().map(unmeasured).collect());
    }
    let text = veth::in_namespace("collectives", ROLE, None)?;
    let reports = text.lines().map(serde_json::from_str);
    let reports: Vec<Value> = reports.collect::<Result<_, _>>()?;
    let of_subject = |(subject, reports): (&Perftest, &[Value])| {
        let lost = (0..)
            .zip(reports)
            .map(|(k, report)| LostPacket::read(report, k));
        super::row(subject.name, &lost.collect::<Result<Vec<_>>>()?, args)
    };
    let count = PACKETS as usize;
    ensure!(
        reports.len() == SUBJECTS.len() * count,
        "{} runs",
        reports.len()
    );
    SUBJECTS
        .iter()
        .zip(reports.chunks(count))
        .map(of_subject)
        .collect()
}

/// Measures in the network namespace; returns a line with a report for each subject and lost packet.
pub fn measure() -> Result<String> {
    // The switch's P4Runtime server listens there.
    Netlink::open()?.set_up("lo", true)?;
    let weir = WEIR.path()?;
    let options = [1, 2].map(|number: u8| {
        let name = ["a", "b"][usize::from(number) - 1];
        MachineOptions::new(name, &format!("tap-{name}"), [10, 77, 0, number].into())
    });
    let [a, b] = Machine::boot_all(&machines::image()?, &options)?;
    let mut lines = String::new();
    for subject in &SUBJECTS {
        for k in 0..PACKETS {
            let report = run_between(&weir, &subject.scenario(k), || {
                between(&a, &b, &subject.command()).context("perftest")
            });
            let report = report.with_context(|| format!("{}, packet {k}", subject.name))?;
            lines += &format!("{report}\n");
        }
    }
    Ok(lines)
}

/// Runs `weir between` with a scenario while `meanwhile` sends packets, and returns its report.
fn run_between(
    weir: &Path,
    scenario: &str,
    meanwhile: impl FnOnce() -> Result<String>,
) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    files::write(folder.path().join("s.yaml"), scenario)?;
    let mut command = Command::new(weir);
    command.args([
        "-v",
        "between",
        "tap-a",
        "tap-b",
        "--scenario",
        "s.yaml",
        "--json",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut switch = Running(command.current_dir(folder.path()).spawn()?);
    let lines = BufReader::new(switch.0.stderr.take().context("no error output")?);
    let mut report = switch.0.stdout.take().context("no output")?;
    let (begins, may_begin) = mpsc::channel();
    let drained = std::thread::spawn(move || {
        let mut errors = String::new();
        for line in lines.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            errors += &format!("{line}\n");
            if line.contains("workload begins") {
                // The receiver is gone if it has timed out.
                let _ = begins.send(());
            }
        }
        errors
    });
    let errors = |drained: JoinHandle<String>| drained.join().expect("it only reads");
    if may_begin.recv_timeout(PATIENCE).is_err() {
        drop(switch);
        bail!("`weir between` does not start: {}", errors(drained));
    }
    let passed = meanwhile();
    kill(Pid::from_raw(switch.0.id() as i32), Signal::SIGINT)?;
    let mut text = Vec::new();
    report.read_to_end(&mut text)?;
    let errors = errors(drained);
    passed?;
    serde_json::from_slice(&text).context(errors)
}
