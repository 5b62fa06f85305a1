//! Hosts with their offloads on, whose kernels send packets that stand for many frames: the switch, its faults and the captures
//! see frames.

use super::bundled_replay::assert_equal_in_bundles;
use super::ways::frames;
use crate::support::leftovers::Watched;
use crate::support::*;
use serde_json::Value;

/// Number of bytes of a stream.
const BYTES: usize = 20_000_000;

/// Beginning of both programs: the expected bytes, and the kernel's counts of the host's interface.
const COMMON: &str = "\
import socket
PATTERN = bytes(range(251))
def packets():
    return [line.split() for line in open('/proc/net/dev') if 'eth0' in line][0]
";

/// Receives a stream from one connection, checks its bytes and their number, prints how many packets came, and confirms.
const RECEIVER: &str = "\
l = socket.create_server(('{host.b.ip}', 9))
print('ready', flush=True)
c, _ = l.accept()
c.sendall(b'x')
n = 0
while d := c.recv(1 << 20):
    assert d == (PATTERN * (len(d) // 251 + 2))[n % 251:n % 251 + len(d)], n
    n += len(d)
assert n == BYTES, n
print('packets:', packets()[2], flush=True)
c.sendall(b'y')
";

/// Sends the stream, waits for the confirmation, and prints how many packets left.
const SENDER: &str = "\
c = socket.create_connection(('{host.b.ip}', 9))
c.recv(1)
c.sendall((PATTERN * (BYTES // 251 + 1))[:BYTES])
c.shutdown(socket.SHUT_WR)
assert c.recv(1) == b'y'
print('packets:', packets()[10])
";

fn scenario(link: &str, faults: &str) -> String {
    let script = |text: &str| {
        let text = format!("{COMMON}BYTES = {BYTES}\n{text}");
        serde_json::to_string(&text).unwrap()
    };
    format!(
        r#"weir: 1
name: t
seed: 3
topology: {{star: {{hosts: [a, b], switch: sw{link}}}}}
workload:
  commands:
    - {{name: receiver, host: b, run: [python3, -c, {}], ready: {{log: ready}},
       metrics: {{packets: {{regex: "packets: ([0-9]+)"}}}}}}
    - {{name: sender, host: a, run: [python3, -c, {}],
       metrics: {{packets: {{regex: "packets: ([0-9]+)"}}}}}}
flows:
  data: {{from: a, to: b, filter: tcp.dport == 9}}
  answers: {{from: b, to: a, filter: tcp.sport == 9}}
{faults}
expect: [command.sender.exit == 0]
"#,
        script(RECEIVER),
        script(SENDER)
    )
}

/// Runs a scenario with all captures; returns the report and the captured frames.
fn run_captured(text: &str) -> (Value, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.yaml"), text).unwrap();
    let arguments = [
        "run",
        "t.yaml",
        "--json",
        "--captures",
        "all",
        "--out",
        "run",
    ];
    let finished = Watched::weir(folder.path(), &arguments).run();
    finished.expect_code(PASSED);
    let frames = frames(&folder.path().join("run/sw.pcapng"));
    let again = run(folder.path(), &["replay", "run", "--json"]);
    again.expect_code(PASSED);
    let replayed = assert_equal_in_bundles(&folder.path().join("run"));
    assert!(replayed.packets < replayed.frames / 2, "{replayed:?}");
    (finished.json(), frames)
}

fn metric(run: &Value, name: &str) -> f64 {
    let value = run["metrics"][name].as_f64();
    value.unwrap_or_else(|| panic!("{name}: {:#}", run["metrics"]))
}

fn has_what_it_needs(test: &str) -> bool {
    has_namespaces(test) && has_program(test, "python3")
}

#[test]
fn a_stream_in_bundles_loses_frames_and_is_whole() {
    if !has_what_it_needs("a stream in bundles") {
        return;
    }
    let _turn = beside();
    let text = scenario(
        "",
        "faults:\n  - {id: lost, flows: data, effect: drop, select: {probability: 1%}}",
    );
    let (run, frames) = run_captured(&text);
    let fault = &run["faults"][0];
    assert_eq!(fault["proved"], true, "{fault}");
    let fewest = BYTES / 1448;
    let packets =
        ["sender", "receiver"].map(|name| metric(&run, &format!("command.{name}.packets")));
    assert!(
        packets.iter().all(|packets| *packets < fewest as f64 / 2.0),
        "{packets:?}"
    );
    assert!(metric(&run, "flow.data.sent") >= fewest as f64);
    let fired = fault["fired"].as_u64().unwrap() as usize;
    assert!(
        (fewest / 200..fewest / 50).contains(&fired),
        "{fired} of {fewest}"
    );
    assert_eq!(metric(&run, "flow.data.lost"), fired as f64);
    assert!(frames.len() >= 2 * fewest, "{}", frames.len());
    assert!(frames.iter().all(|frame| frame.len() <= 1514));
    assert!(frames.iter().any(|frame| frame.len() == 1514));
}

#[test]
fn a_stream_in_bundles_takes_as_long_as_its_links_say() {
    if !has_what_it_needs("latency of bundles") {
        return;
    }
    let _turn = beside();
    let text = scenario(
        ", latency: 2ms",
        "faults:\n  - {id: late, flows: data, effect: {delay: 3ms}, select: {every: 100}}",
    );
    let (run, frames) = run_captured(&text);
    assert_eq!(run["faults"][0]["proved"], true, "{}", run["faults"][0]);
    // From host to host: two links.
    let median_ns = metric(&run, "flow.answers.p50_ns");
    assert!(median_ns >= 4e6, "{median_ns}");
    assert_eq!(metric(&run, "flow.data.lost"), 0.0);
    assert!(frames.iter().all(|frame| frame.len() <= 1514));
}
