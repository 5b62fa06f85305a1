//! Rows of the cost of the proof in runs with high rates, long durations or many hosts.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::runs::{CompletedRun, ScenarioRunner};
use crate::measure::row::{Goal, Row};
use crate::measure::support::median;

/// Names of the rows for ten seconds of TCP at 1 Gbit/s.
pub const IPERF: [&str; 3] = [
    "faults/long_iperf_memory",
    "faults/long_iperf_verdict",
    "faults/long_iperf_rate",
];
/// Name of the row for TCP without a fault and without a limit on the rate.
pub const UNLIMITED: &str = "faults/iperf";
/// Name of the row for ten minutes of TCP at 1 Gbit/s.
pub const TEN_MINUTES: &str = "faults/ten_minutes_memory";
/// Names of the rows for 64 and 512 hosts that ping one host.
pub const WIDE: [&str; 4] = [
    "faults/wide_64_memory",
    "faults/wide_64_beside",
    "faults/wide_512_memory",
    "faults/wide_512_beside",
];

const MIB: f64 = 1024.0 * 1024.0;
/// Number of runs for [`UNLIMITED`], and the duration of each in seconds.
const ROUNDS: usize = 5;
const SECONDS: u64 = 5;
/// Duration of the pings in a run.
const PINGS: Duration = Duration::from_secs(3);

/// Scenario of TCP over links of this rate, with the fault `fault`.
fn iperf(rate: &str, seconds: u64, fault: &str) -> String {
    let time = seconds + 60;
    format!(
        "weir: 1\nname: bench\nseed: 6\ntopology: {{star: {{hosts: [c, s], switch: sw, rate: {rate}}}}}\n\
         limits: {{time: {time}s}}\nworkload:\n  commands:\n    \
         - {{name: server, host: s, run: [iperf3, --server, --forceflush, --bind, '{{host.s.ip}}'], ready: {{log: Server listening}}}}\n    \
         - name: bulk\n      host: c\n      run: [iperf3, --client, '{{host.s.ip}}', --time, '{seconds}', --json]\n      \
         metrics: {{rate: {{json: /end/sum_received/bits_per_second, unit: bit/s}}}}\n{fault}"
    )
}

const LOSS: &str = "flows: {bulk: {from: c, to: s, filter: tcp.dport == 5201}}\n\
    faults: [{id: x, flows: bulk, effect: drop, select: {probability: 0.1%}}]\n";

fn rate(ran: &CompletedRun) -> f64 {
    ran.report["metrics"]["command.bulk.rate_bps"]
        .as_f64()
        .unwrap_or(0.0)
}

fn strain(ran: &CompletedRun, what: &str) -> f64 {
    ran.report["machine_strain"][what].as_f64().unwrap_or(0.0)
}

/// Returns the report of the run's fault; an error if the fault is not proved.
fn ensure_proved(ran: &CompletedRun) -> Result<&Value> {
    let fault = &ran.report["faults"][0];
    ensure!(fault["proved"] == true, "not proved: {}", fault["reason"]);
    Ok(fault)
}

/// Row of TCP without faults, to compare two versions.
pub fn unlimited(bench: &ScenarioRunner) -> Result<Row> {
    let mut rates = Vec::new();
    for round in 0..ROUNDS {
        let ran = bench.run(&format!("iperf_{round}"), &iperf("100Gbit/s", SECONDS, ""))?;
        rates.push(rate(&ran) / 1e6);
    }
    let all: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    Ok(Row {
        name: UNLIMITED,
        value: Some(median(rates)),
        unit: "Mbit/s",
        goal: Goal::Nothing,
        floor: None,
        note: format!(
            "{SECONDS} s of iperf3 over links of 100 Gbit/s without faults, median of {}",
            all.join(", ")
        ),
    })
}

/// Rows of ten seconds of TCP.
pub fn ten_seconds(bench: &ScenarioRunner) -> Result<Vec<Row>> {
    let spared = bench.run("long_iperf_spared", &iperf("1Gbit/s", 10, ""))?;
    let ran = bench.run("long_iperf", &iperf("1Gbit/s", 10, LOSS))?;
    let fault = ensure_proved(&ran)?;
    let (without, with) = (rate(&spared), rate(&ran));
    let note = format!(
        "10 s of iperf3 over 1 Gbit/s, {} packets met, {} lost; {:.0} Mbit/s, without faults {:.0}",
        fault["met"],
        fault["observed"],
        with / 1e6,
        without / 1e6
    );
    let row = |name, value, unit, goal| Row {
        name,
        value: Some(value),
        unit,
        goal,
        floor: None,
        note: note.clone(),
    };
    let memory = strain(&ran, "peak_memory_bytes") / MIB;
    let verdict = strain(&ran, "verdict_after_ns") / 1e9;
    Ok(vec![
        row(IPERF[0], memory, "MiB", Goal::AtMost(200.0)),
        row(IPERF[1], verdict, "s", Goal::AtMost(1.0)),
        row(IPERF[2], with / without, "ratio", Goal::AtLeast(0.95)),
    ])
}

/// Row of ten minutes of TCP, compared with ten seconds.
pub fn ten_minutes(bench: &ScenarioRunner) -> Result<Row> {
    let short = bench.run("ten_seconds", &iperf("1Gbit/s", 10, LOSS))?;
    let long = bench.run("ten_minutes", &iperf("1Gbit/s", 600, LOSS))?;
    let fault = ensure_proved(&long)?;
    let memory = |ran: &CompletedRun| strain(ran, "peak_memory_bytes") / MIB;
    Ok(Row {
        name: TEN_MINUTES,
        value: Some(memory(&long)),
        unit: "MiB",
        goal: Goal::AtMost(1.1 * memory(&short)),
        floor: None,
        note: format!(
            "10 min of iperf3 over 1 Gbit/s, {} packets met, {} lost, verdict {:.1} s after the end; the goal is a tenth above \
             10 s's",
            fault["met"],
            fault["observed"],
            strain(&long, "verdict_after_ns") / 1e9
        ),
    })
}

/// Scenario of hosts with 100 Mbit/s that ping one host, with a fault on all pings.
fn pings(hosts: usize) -> String {
    let names: Vec<String> = (0..hosts).map(|number| format!("h{number}")).collect();
    // A workload has at most 64 commands.
    let senders = &names[1..hosts.min(64)];
    let commands = senders.iter().map(|name| {
        format!(
            "    - {{name: p-{name}, host: {name}, run: [ping, -q, -i, '0.2', -w, '{}', '{{host.h0.ip}}']}}\n",
            PINGS.as_secs()
        )
    });
    format!(
        "weir: 1\nname: bench\nseed: 3\ntopology: {{star: {{hosts: [{}], switch: sw, rate: 100Mbit/s}}}}\n\
         limits: {{time: 5m}}\nworkload:\n  commands:\n{}\
         flows: {{asked: {{from: [{}], to: h0, filter: icmp.type == 8}}}}\n\
         faults: [{{id: x, flows: asked, effect: drop, select: {{probability: 1%}}}}]\n",
        names.join(", "),
        commands.collect::<String>(),
        senders.join(", ")
    )
}

/// Rows of 64 and of 512 hosts that ping one host.
pub fn wide(bench: &ScenarioRunner) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (names, hosts, memory_mib, beside_s) in [
        ([WIDE[0], WIDE[1]], 64, 250.0, 3.0),
        ([WIDE[2], WIDE[3]], 512, 1_500.0, 20.0),
    ] {
        let begun = Instant::now();
        let ran = bench.run(names[0], &pings(hosts))?;
        let beside = begun.elapsed().saturating_sub(PINGS).as_secs_f64();
        let fault = ensure_proved(&ran)?;
        let note = format!(
            "{hosts} hosts of 100 Mbit/s, up to 63 of which ping one five times a second for {} s; {} packets met, {} lost",
            PINGS.as_secs(),
            fault["met"],
            fault["observed"]
        );
        let row = |name, value, unit, most| Row {
            name,
            value: Some(value),
            unit,
            goal: Goal::AtMost(most),
            floor: None,
            note: note.clone(),
        };
        let memory = strain(&ran, "peak_memory_bytes") / MIB;
        rows.push(row(names[0], memory, "MiB", memory_mib));
        rows.push(row(names[1], beside, "s", beside_s));
    }
    Ok(rows)
}
