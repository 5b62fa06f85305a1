//! `sums`: time of an all-reduce of 64 MB that the switch sums, with 4 ranks at links of 200
//! Mbit/s, over RoCEv2 and over UDP; also with 1 % of updates and sums lost.
//!
//! Ranks are `weir agent all-reduce` processes, each in a namespace of its own, and verify their sums.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use scenario::model::job::Transport;
use serde_json::{Value, json};

use super::super::allreduce::AllReduceSetting;
use super::super::allreduce::machine::{self, CpuSnapshot};
use super::super::allreduce::network::RankNetwork;
use super::super::allreduce::ranks::read_lines;
use super::super::programs::WEIR;
use super::super::row::{Goal, Row};
use super::super::veth;

pub const NAMES: &[&str] = &["sums", "sums_udp", "sums_loss_1", "sums_udp_loss_1"];

const RATE_BPS: u64 = 200_000_000;
/// Bytes of a frame over bytes of its values, for a packet with 1,024 bytes of values. As in the
/// shaper, a frame has Ethernet's header, but no preamble, gap or FCS.
const ROCE_FRAMING: f64 = (1024 + 78) as f64 / 1024.0;
const UDP_FRAMING: f64 = 1090.0 / 1024.0;
const LOSS: f64 = 0.01;
/// Number of operations. The first operation starts with empty queues and windows, and does not count.
const OPERATIONS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(600);

const BY_ROCE: AllReduceSetting = AllReduceSetting {
    name: "sums",
    ranks: 4,
    rate_bps: Some(RATE_BPS),
    burst_bytes: 16 << 10,
    queue_bytes: 256 << 10,
    transport: Transport::Rdma,
    ..AllReduceSetting::BASE
};

const BY_UDP: AllReduceSetting = AllReduceSetting {
    name: "sums_udp",
    transport: Transport::Udp,
    ..BY_ROCE
};

const SETTINGS: [AllReduceSetting; 4] = [
    BY_ROCE,
    BY_UDP,
    AllReduceSetting {
        name: "sums_loss_1",
        loss: Some(LOSS),
        ..BY_ROCE
    },
    AllReduceSetting {
        name: "sums_udp_loss_1",
        loss: Some(LOSS),
        ..BY_UDP
    },
];

/// Measures in the network namespace; returns the reports of all ranks.
pub fn measure(role: &str) -> Result<Value> {
    let weir = &WEIR.path()?;
    let setting = SETTINGS.into_iter().find(|setting| setting.name == role);
    let setting = setting.with_context(|| format!("no setting is called {role}"))?;
    let network = RankNetwork::create(&setting, weir)?;
    let before = CpuSnapshot::now()?;
    let job = network.scenario.jobs.first().context("a job")?;
    let mut ranks = Vec::new();
    for (rank, host) in network.hosts.iter().enumerate() {
        let mut command = Command::new(weir);
        command.args(["agent", "all-reduce", "--json", "--seed", "1"]);
        command.args(["--values", &setting.values.to_string()]);
        command.args(["--iters", &OPERATIONS.to_string()]);
        command.envs(job.environment(&format!("r{rank}")));
        ranks.push(host.spawn(command)?);
    }
    let deadline = Instant::now() + PATIENCE;
    let mut report = Vec::new();
    for (rank, process) in ranks.iter_mut().enumerate() {
        let lines = read_lines(process, deadline).with_context(|| format!("rank {rank}"))?;
        report.extend(lines);
    }
    Ok(json!({ "ranks": report, "machine": before.usage_since()? }))
}

/// Result of one of the [`SETTINGS`].
struct SumTimes {
    /// For each operation after the first, the time in seconds until the slowest rank has its sums.
    seconds: Vec<f64>,
    digest: String,
    again: u64,
    frames: u64,
    way: String,
    machine: String,
}

impl SumTimes {
    fn measure(setting: &AllReduceSetting) -> Result<SumTimes> {
        eprintln!("  {} …", setting.name);
        let text = veth::in_namespace("collectives", setting.name, None)?;
        let report: Value = serde_json::from_str(&text)?;
        SumTimes::parse(setting, &report).with_context(|| setting.name.to_owned())
    }

    fn parse(setting: &AllReduceSetting, report: &Value) -> Result<SumTimes> {
        let ranks = report["ranks"].as_array().context("ranks")?;
        ensure!(
            ranks.len() == setting.ranks,
            "{} ranks reported, expected {}",
            ranks.len(),
            setting.ranks
        );
        let first = &ranks[0];
        for rank in ranks {
            ensure!(rank["wrong"] == 0, "wrong sums: {}", rank["wrong"]);
            ensure!(
                rank["sums_sha256"] == first["sums_sha256"],
                "the sums of the ranks have different bits"
            );
            ensure!(
                rank["transport"] == setting.transport.name(),
                "the values were sent by {}",
                rank["transport"]
            );
        }
        let slowest = |operation: usize| {
            let took = ranks.iter().map(|rank| rank["seconds"][operation].as_f64());
            let took: Option<Vec<f64>> = took.collect();
            Some(took?.into_iter().fold(0.0, f64::max))
        };
        let seconds: Option<Vec<f64>> = (1..OPERATIONS).map(slowest).collect();
        let count = |name: &str| first[name].as_u64().unwrap_or_default();
        Ok(SumTimes {
            seconds: seconds.context("seconds")?,
            digest: first["sums_sha256"]
                .as_str()
                .context("a digest")?
                .to_owned(),
            again: count("frames_again"),
            frames: count("frames"),
            way: first["way"].as_str().unwrap_or_default().to_owned(),
            machine: machine::note(&report["machine"]),
        })
    }

    /// Time of the fastest operation in seconds: other processes on the machine only add to the time.
    fn best(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn note(&self) -> String {
        let seconds = self.seconds.iter().map(|s| format!("{s:.3}"));
        format!(
            "best of {} s; of {} frames of rank 0, {} were sent again; {}; {}",
            seconds.collect::<Vec<_>>().join(", "),
            self.frames,
            self.again,
            self.way,
            self.machine
        )
    }
}

/// Measures all rows; an error if the sums of two settings differ in any bit.
pub fn run() -> Result<Vec<Row>> {
    let [roce, udp, roce_lossy, udp_lossy] = SETTINGS.each_ref().map(SumTimes::measure);
    let (roce, udp) = (roce?, udp?);
    let bound_s = 8.0 * BY_ROCE.bytes() as f64 / RATE_BPS as f64;
    let mut rows = Vec::new();
    let free = |name, measured: &SumTimes, goal, floor| Row {
        name,
        value: Some(measured.best() / bound_s),
        unit: "S/R",
        goal,
        floor: Some(floor),
        note: format!(
            "{} ranks, {} MB, links of 200 Mbit/s as tbf counts, bursts of 16 KiB, queues of 256 KiB: S/R is {bound_s:.2} s; \
             floor: framing; {}",
            BY_ROCE.ranks,
            BY_ROCE.bytes() / 1_000_000,
            measured.note()
        ),
    };
    rows.push(free(NAMES[0], &roce, Goal::AtMost(1.12), ROCE_FRAMING));
    rows.push(free(NAMES[1], &udp, Goal::Nothing, UDP_FRAMING));
    for (name, lossy, free) in [(NAMES[2], roce_lossy?, &roce), (NAMES[3], udp_lossy?, &udp)] {
        for other in [&lossy, &udp] {
            ensure!(other.digest == roce.digest, "{name}: different bits");
        }
        rows.push(Row {
            name,
            value: Some(lossy.best() / free.best()),
            unit: "times",
            goal: Goal::Nothing,
            floor: Some(1.0),
            note: format!(
                "1 % of updates and of sums lost, against no loss; the same bits; {}",
                lossy.note()
            ),
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(wrong: u64, digest: &str, seconds: [f64; OPERATIONS]) -> Value {
        json!({
            "wrong": wrong, "sums_sha256": digest, "transport": "rdma", "seconds": seconds,
            "frames": 10, "frames_again": 1, "way": "rings",
        })
    }

    fn parsed(last: Value) -> Result<SumTimes> {
        let good = || rank(0, "a", [9.0, 2.0, 3.0, 2.5]);
        let report = json!({ "ranks": [good(), good(), good(), last], "machine": {} });
        SumTimes::parse(&BY_ROCE, &report)
    }

    #[test]
    fn an_operation_ends_with_the_slowest_rank_and_the_first_is_left_out() {
        let measured = parsed(rank(0, "a", [1.0, 2.25, 1.0, 4.0])).unwrap();
        assert_eq!(measured.seconds, [2.25, 3.0, 4.0]);
        assert_eq!(measured.best(), 2.25);
    }

    #[test]
    fn wrong_sums_other_bits_and_another_transport_are_errors() {
        let seconds = [1.0; OPERATIONS];
        for (last, why) in [
            (rank(1, "a", seconds), "wrong sums"),
            (rank(0, "b", seconds), "different bits"),
        ] {
            let error = parsed(last).err().unwrap();
            assert!(error.to_string().contains(why), "{error}");
        }
        let mut by_udp = rank(0, "a", seconds);
        by_udp["transport"] = json!("udp");
        assert!(parsed(by_udp).is_err());
    }
}
