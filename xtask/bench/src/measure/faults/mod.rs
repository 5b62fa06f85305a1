//! `cargo xtask bench faults`: measures the accuracy of faults in real runs, by the runs' proofs.
//!
//! Runs scenarios with `weir`, and reads their folders (docs/runs.md). Packets are iperf3's
//! datagrams, each with a number in it, so that all packets differ.

mod collateral;
mod jitter;
mod judge;
mod long;
mod runs;

use anyhow::{Context, Result};
use scenario::model::decision::{Draws, limit};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

use super::Args;
use super::driver::{self, Group};
use super::files::read;
use super::row::{Goal, Row};
pub use collateral::{ROLE, measure as measure_role};
use runs::{CompletedRun, ScenarioRunner};

/// Median error of netem's delays in microseconds: MoonEm, CoNEXT 2025.
const NETEM_MEDIAN_US: f64 = 71.0;
/// Width of the central 99 % of a normal distribution, in standard deviations.
const NINETY_NINE: f64 = 2.576;
/// Bytes of a datagram; the next constant is the number of datagrams a second.
const BYTES: u32 = 64;
const RATE_PPS: u32 = 25_000;

/// Row name, effect and selection of each fault effect that is decided for single packets.
const EFFECTS: [(&str, &str, &str); 12] = [
    ("faults/drop", "drop", "{every: 5}"),
    ("faults/observe", "observe", "{every: 2}"),
    ("faults/delay", "{delay: 1ms}", "{every: 7}"),
    ("faults/duplicate", "duplicate", "{every: 6}"),
    ("faults/set", "{set: {ip.ttl: 9}}", "{every: 3}"),
    (
        "faults/corrupt",
        "{corrupt: {field: ip.id, xor: 0xff}}",
        "{every: 4}",
    ),
    ("faults/truncate", "{truncate: 60B}", "{every: 5}"),
    (
        "faults/reorder",
        "{reorder: {distance: 3, within: 1ms}}",
        "{every: 9}",
    ),
    (
        "faults/per_connection",
        "drop",
        "{every: 5}, per: connection",
    ),
    // The stream has 21 Mbit/s. Waiting packets recirculate: a longer queue is more than a processor can recirculate.
    (
        "faults/rate",
        "{rate: {limit: 1Mbit/s, queue: 20ms}}",
        "always",
    ),
    (
        "faults/police",
        "{police: {rate: 10Mbit/s, burst: 64kB}}",
        "always",
    ),
    ("faults/composed", "{delay: 500us}", "{probability: 0.1}"),
];

/// Name of the row of the effect `reset`, which only TCP has.
const RESET: &str = "faults/reset";
/// Number of packets without SYN that a client of a short connection sends.
const SEGMENTS: u32 = 4;

pub fn run(args: &Args) -> Result<bool> {
    driver::measure(args, groups(), || ScenarioRunner::new(args))
}

/// All groups of rows, in the order of the printed table.
fn groups() -> Vec<Group<ScenarioRunner>> {
    let effects = EFFECTS.map(|(name, effect, select)| {
        Group::one(name, move |bench: &ScenarioRunner| {
            bench.deterministic(name, effect, select)
        })
    });
    let others = [
        Group::one(RESET, ScenarioRunner::resets),
        Group::one("faults/probability", ScenarioRunner::probability),
        Group::one(
            "faults/small_probability",
            ScenarioRunner::small_probability,
        ),
        Group::new(
            &["faults/delay_error_median", "faults/delay_error_p99"],
            ScenarioRunner::delay_error,
        ),
        Group::one(
            "faults/event_to_effect_p99",
            ScenarioRunner::event_to_effect,
        ),
        Group::one("faults/replay", ScenarioRunner::replay),
        Group::one(collateral::NAME, |_| collateral::run()),
        Group::one(jitter::MEASURED, ScenarioRunner::jitter),
        Group::one(judge::COST, |_| judge::cost()),
        Group::one(judge::MUTANTS, |_| judge::mutants()),
        Group::new(&judge::LONG, |bench: &ScenarioRunner| {
            judge::long(bench.args.minutes)
        }),
        Group::one(long::UNLIMITED, long::unlimited),
        Group::new(&long::IPERF, long::ten_seconds),
        Group::one(long::TEN_MINUTES, long::ten_minutes),
        Group::new(&long::WIDE, long::wide),
    ];
    let groups = effects.into_iter().chain(others);
    groups.chain(jitter::decided_rows()).collect()
}

impl ScenarioRunner {
    /// Scenario of iperf3's datagrams; `rest` has the faults.
    fn datagrams(&self, rate_pps: u32, packets: u32, rest: &str) -> String {
        let rate = u64::from(rate_pps) * u64::from(BYTES) * 8;
        let time = packets / rate_pps + 60;
        format!(
            "weir: 1\nname: bench\nseed: 7\ntopology: {{star: {{hosts: [a, b], switch: sw}}}}\n\
             limits: {{time: {time}s}}\nworkload:\n  commands:\n    \
             - {{name: server, host: b, run: [iperf3, --server, --forceflush, --bind, '{{host.b.ip}}'], ready: {{log: Server listening}}}}\n    \
             - {{name: client, host: a, run: [iperf3, --client, '{{host.b.ip}}', --udp, --length, '{BYTES}', --bitrate, '{rate}', --blockcount, '{packets}', --json]}}\n\
             flows:\n  stream: {{from: a, to: b, filter: 'udp.dport == 5201 && udp.len == {}'}}\n{rest}\n",
            BYTES + 8
        )
    }

    fn deterministic(&self, name: &'static str, effect: &str, select: &str) -> Result<Row> {
        let mut faults =
            format!("faults:\n  - {{id: x, flows: stream, effect: {effect}, select: {select}}}");
        if name == "faults/composed" {
            faults += "\n  - {id: y, flows: stream, effect: drop, select: {every: 8}}\
                       \n  - {id: z, flows: stream, effect: {set: {ip.ecn: 3}}, select: {burst: {start: 3, length: 4, every: 16}}}";
        }
        let ran = self.run(name, &self.datagrams(RATE_PPS, self.args.packets, &faults))?;
        wrong(name, &ran)
    }

    /// Row of resets of connections from Apache's load generator to nginx; the load generator continues after each reset.
    fn resets(&self) -> Result<Row> {
        let requests = self.args.packets / SEGMENTS;
        let nginx = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../testbeds/workloads/nginx.conf"
        );
        let text = format!(
            "weir: 1\nname: bench\nseed: 7\ntopology: {{star: {{hosts: [c, s], switch: sw}}}}\n\
             limits: {{time: 30m}}\nworkload:\n  commands:\n    \
             - {{name: web, host: s, run: \"mkdir {{dir}}/www && echo x > {{dir}}/www/index.html && \
             exec nginx -p {{dir}} -e {{dir}}/error.log -c {nginx}\", ready: {{tcp: 80}}}}\n    \
             - {{name: load, host: c, run: 'ab -r -n {requests} -c 20 http://{{host.s.ip}}/'}}\n\
             flows:\n  segments: {{from: c, to: s, filter: 'tcp.dport == 80 && !tcp.flags.syn'}}\n\
             faults:\n  - {{id: x, flows: segments, effect: reset, select: {{every: 50}}}}\n"
        );
        let ran = self.run(RESET, &text)?;
        wrong(RESET, &ran)
    }

    /// Row with the distance of a fault's frequency from its probability, in standard deviations.
    fn probability(&self) -> Result<Row> {
        let p = 0.01;
        let faults = format!(
            "faults:\n  - {{id: x, flows: stream, effect: drop, select: {{probability: {p}}}}}"
        );
        let ran = self.run(
            "probability",
            &self.datagrams(RATE_PPS, self.args.packets, &faults),
        )?;
        let fault = &ran.report["faults"][0];
        let number = |field: &str| fault[field].as_u64().unwrap_or(0) as f64;
        let (met, fired) = (number("met"), number("fired"));
        let sigmas = (fired - met * p).abs() / (met * p * (1.0 - p)).sqrt();
        Ok(Row {
            name: "faults/probability",
            value: (fault["proved"] == true).then_some(sigmas),
            unit: "sigma",
            goal: Goal::AtMost(NINETY_NINE),
            floor: None,
            note: format!("{fired} of {met} at p = {p}, seed 7"),
        })
    }

    /// Row of draws from the decision function alone: at this small probability a run has too few packets.
    fn small_probability(&self) -> Result<Row> {
        const DECISIONS: u32 = 100_000_000;
        let p = 1e-6;
        let limit = limit(p).context("a limit")?;
        let draws = Draws::of_seed(7);
        let hits = (0..DECISIONS)
            .filter(|index| draws.words(0x5EED, *index).u <= limit)
            .count();
        let expected = f64::from(DECISIONS) * p;
        let sigmas = (hits as f64 - expected).abs() / expected.sqrt();
        Ok(Row {
            name: "faults/small_probability",
            value: Some(sigmas),
            unit: "sigma",
            goal: Goal::AtMost(NINETY_NINE),
            floor: None,
            note: format!("{hits} of {DECISIONS} decisions at p = {p:e}, seed 7"),
        })
    }

    /// Rows of the lateness of delayed packets on a nearly idle machine.
    fn delay_error(&self) -> Result<Vec<Row>> {
        let faults =
            "faults:\n  - {id: x, flows: stream, effect: {delay: 5ms}, select: {every: 2}}";
        let ran = self.run("delay_error", &self.datagrams(200, 4_000, faults))?;
        let mut late: Vec<f64> = events(&ran.folder)?
            .iter()
            .filter_map(|event| {
                let left = event["left"][0]["at_ns"][0].as_u64()?;
                let due = event["at_ns"].as_u64()? + 5_000_000;
                Some(left.saturating_sub(due) as f64 / 1e3)
            })
            .collect();
        late.sort_by(f64::total_cmp);
        let bound = ran.report["faults"][0]["lateness_bound_ns"]
            .as_f64()
            .unwrap_or(0.0)
            / 1e3;
        let strain = &ran.report["machine_strain"];
        let note = format!(
            "{} packets held for 5 ms; load before {}; worst {:.0} us",
            late.len(),
            strain["load_before"],
            late.last().copied().unwrap_or(0.0)
        );
        let row = |name, value, goal| Row {
            name,
            value,
            unit: "us",
            goal: Goal::AtMost(goal),
            floor: None,
            note: note.clone(),
        };
        Ok(vec![
            row(
                "faults/delay_error_median",
                percentile(&late, 0.5),
                NETEM_MEDIAN_US,
            ),
            row("faults/delay_error_p99", percentile(&late, 0.99), bound),
        ])
    }

    /// Row of random delays in captures.
    fn jitter(&self) -> Result<Row> {
        let faults = format!(
            "faults:\n  - {{id: x, flows: stream, effect: {{delay: {}}}}}",
            jitter::MEASURED_DELAY
        );
        let text = self.datagrams(500, self.args.packets.min(10_000), &faults);
        let ran = self.run("jitter", &text)?;
        let (row, svg) = jitter::measured_row(&text, &events(&ran.folder)?, &ran.report)?;
        self.args.draw("jitter-qq.svg", || Ok(svg))?;
        Ok(row)
    }

    /// Row of the time from a due timeline step to the switch's confirmation; the next packet sees the step.
    fn event_to_effect(&self) -> Result<Row> {
        let faults = "timeline: [{name: on, at: 50ms, for: 10ms, every: 20ms, times: 400}]\n\
                      faults:\n  - {id: x, flows: stream, effect: drop, during: on}";
        let ran = self.run("events", &self.datagrams(1_000, 10_000, faults))?;
        let json = |name| -> Result<Value> {
            let text = read(ran.folder.join(name))?;
            serde_json::from_str(&text).context(name)
        };
        let (evidence, plan) = (json("evidence.json")?, json("plan.json")?);
        let writes = evidence["writes"].as_array().context("writes")?;
        let confirmed = |epoch: &Value| {
            let write = writes.iter().find(|write| write["epoch"] == *epoch)?;
            write["confirmed_ns"].as_u64()
        };
        let timeline = plan["timeline"].as_array().context("timeline")?;
        let begin = timeline
            .first()
            .and_then(|first| confirmed(&first["epoch"]));
        let begin = begin.context("the first step was never written")?;
        let mut late: Vec<f64> = timeline
            .iter()
            .skip(1)
            .filter_map(|step| {
                let due = begin + step["at_ns"].as_u64()?;
                Some(confirmed(&step["epoch"])?.saturating_sub(due) as f64 / 1e6)
            })
            .collect();
        late.sort_by(f64::total_cmp);
        Ok(Row {
            name: "faults/event_to_effect_p99",
            value: percentile(&late, 0.99),
            unit: "ms",
            goal: Goal::AtMost(5.0),
            floor: None,
            note: format!(
                "{} steps, one each 10 ms; median {:.3} ms, worst {:.3} ms",
                late.len(),
                percentile(&late, 0.5).unwrap_or(0.0),
                late.last().copied().unwrap_or(0.0)
            ),
        })
    }

    /// Row with the number of runs that differ from a first run: judged again from the folder, or run again with its ordinals.
    fn replay(&self) -> Result<Row> {
        let faults = "captures: all\nfaults:\n  - {id: x, flows: stream, effect: drop, select: {probability: 0.1}}\n  \
                      - {id: y, flows: stream, effect: {set: {ip.ttl: 9}}, select: {gilbert_elliott: {to_bad: 0.02, to_good: 0.3}}}";
        let first = self.run("replay", &self.datagrams(2_000, 1_000, faults))?;
        let (mut offline, mut live) = (0, 0);
        for number in 0..self.args.runs {
            let folder = self.folder.path().join(format!("replay-{number}"));
            live += u32::from(!self.replayed(&first.folder, Some(&folder))?);
            offline += u32::from(!self.replayed(&folder, None)?);
            std::fs::remove_dir_all(&folder)?;
        }
        Ok(Row {
            name: "faults/replay",
            value: Some(f64::from(offline + live)),
            unit: "runs differ",
            goal: Goal::AtMost(0.0),
            floor: None,
            note: format!(
                "of {} runs {live} hit other ordinals, {offline} gave another log offline",
                self.args.runs
            ),
        })
    }

    fn replayed(&self, run: &Path, live: Option<&Path>) -> Result<bool> {
        let mut weir = Command::new(&self.weir);
        weir.arg("replay").arg(run).arg("--json");
        if let Some(folder) = live {
            weir.arg("--live").arg(folder);
        }
        let output = weir.output().context("cannot run weir")?;
        let report: Value = serde_json::from_slice(&output.stdout).with_context(|| {
            format!(
                "weir replay: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            )
        })?;
        Ok(report["identical"] == true)
    }
}

/// Row with the number of frames that a run's faults missed or hit wrongly.
fn wrong(name: &'static str, ran: &CompletedRun) -> Result<Row> {
    let all = ran.report["faults"].as_array().context("faults")?;
    let sum = |field: &str| {
        all.iter()
            .filter_map(|fault| fault[field].as_u64())
            .sum::<u64>()
    };
    let reasons: Vec<&str> = all
        .iter()
        .filter_map(|fault| fault["reason"].as_str())
        .collect();
    let proved = all.iter().all(|fault| fault["proved"] == true);
    let note = format!(
        "met {}, fired {}; {}",
        sum("met"),
        sum("fired"),
        reasons.join("; ")
    );
    Ok(Row {
        name,
        value: proved.then(|| (sum("missed") + sum("collateral")) as f64),
        unit: "packets wrong",
        goal: Goal::AtMost(0.0),
        floor: None,
        note,
    })
}

fn events(folder: &Path) -> Result<Vec<Value>> {
    let text = read(folder.join("events.jsonl"))?;
    let lines = text.lines().map(|line| Ok(serde_json::from_str(line)?));
    lines.collect()
}

/// The smallest of the sorted values that is at least as large as this share of the values; `None` without values.
fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let index = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(index.saturating_sub(1)).copied()
}
