//! `allreduce/jobs_16`: 16 jobs of 2 ranks at one switch, all at full speed: the fairness of their shares, and the
//! throughput of each job compared with the same job whose parameter server sums alone.
//!
//! Links are not shaped and each rank has its own port, so the jobs share only the switch's one thread. The slots are
//! divided statically, 64 for each job. Members are processes of `host-agent/examples/throughput.rs`, which differ only
//! in who sums. A job with a server is measured twice: the switch sums and the server answers, or the server does both
//! and the switch forwards. The latter is the throughput of a job without slots, and so the least that its share of the
//! switch must be worth.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testbeds::host::{Host, Process};

use super::super::clock::cpu_ns;
use super::super::row::{Goal, Row};
use super::machine::{self, CpuSnapshot};
use super::network::RankNetwork;
use super::network::wait_for_line;
use super::ranks::read_lines;
use super::{AllReduceBench, AllReduceSetting, monotonic_ns};

pub const NAMES: &[&str] = &[
    "allreduce/jobs_16",
    "allreduce/jobs_16_slowest",
    "allreduce/jobs_16_ps",
];

const JOBS: usize = 16;
const RANKS: usize = 2;
/// Number of slots of each job: the jobs divide all slots of a switch.
const WINDOW: u32 = 64;
/// Number of values in one sum: 1 MiB in 1,024 frames.
const VALUES: usize = 1 << 18;
/// Time after the start until all jobs run evenly; it is not measured.
const WARM_UP: Duration = Duration::from_secs(3);
/// Duration of the interval over which throughput is measured.
const MEASURED: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);
/// Number added to a job's number to get a job number that the switch does not know.
const UNKNOWN: u16 = 1000;

/// Party that sums the values of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummingParty {
    /// The switch sums, and sends the sums to the ranks.
    Switch,
    /// The switch sums, and a parameter server answers the ranks.
    SwitchAndServer,
    /// The parameter server sums, and the switch only forwards.
    Server,
}

const SUMMING_PARTIES: [SummingParty; 3] = [
    SummingParty::Switch,
    SummingParty::Server,
    SummingParty::SwitchAndServer,
];

impl SummingParty {
    /// Name of the role in which this program measures this party in the network namespace.
    fn name(self) -> &'static str {
        match self {
            SummingParty::Switch => "jobs_16_switch",
            SummingParty::SwitchAndServer => "jobs_16_switch_and_server",
            SummingParty::Server => "jobs_16_server",
        }
    }

    pub fn from_role(name: &str) -> Option<SummingParty> {
        SUMMING_PARTIES.into_iter().find(|by| by.name() == name)
    }

    fn setting(self) -> AllReduceSetting {
        AllReduceSetting {
            name: self.name(),
            jobs: JOBS,
            servers: if self == SummingParty::Switch {
                0
            } else {
                JOBS
            },
            ranks: RANKS,
            values: VALUES,
            window: WINDOW,
            ..AllReduceSetting::BASE
        }
    }
}

pub fn run(bench: &AllReduceBench) -> Result<Vec<Row>> {
    let measured = |by: SummingParty| {
        let report = bench.run_in_namespace(by.name())?;
        JobThroughputs::parse(&report).with_context(|| by.name())
    };
    let [switch, server, both] = [
        measured(SummingParty::Switch)?,
        measured(SummingParty::Server)?,
        measured(SummingParty::SwitchAndServer)?,
    ];
    let slowest = |name, by: &JobThroughputs| Row {
        name,
        value: Some(least_ratio(&by.bytes_per_s, &server.bytes_per_s)),
        unit: "times",
        goal: Goal::AtLeast(1.0),
        floor: None,
        note: format!(
            "the job with the least, by what it has where its server sums alone through the same switch, beside 15 such jobs: \
             {} {}",
            server.note(),
            server.machine
        ),
    };
    let mut rows = vec![
        Row {
            name: NAMES[0],
            value: Some(jain(&switch.bytes_per_s)),
            unit: "Jain",
            goal: Goal::AtLeast(0.98),
            floor: None,
            note: format!(
                "{JOBS} jobs of {RANKS} ranks, {WINDOW} slots each, {} s after {} s of warm-up: {} {}",
                MEASURED.as_secs(),
                WARM_UP.as_secs(),
                switch.note(),
                switch.machine
            ),
        },
        slowest(NAMES[1], &switch),
        slowest(NAMES[2], &both),
    ];
    rows[2].note = format!(
        "the same of jobs with a server which the switch sums for: {} Jain {:.4}; {}",
        both.note(),
        jain(&both.bytes_per_s),
        both.machine
    );
    Ok(rows)
}

/// Runs all jobs in the network namespace; returns the times at which each rank received sums.
pub fn measure(by: SummingParty, weir: &Path, program: &Path) -> Result<Value> {
    let setting = by.setting();
    let network = RankNetwork::create(&setting, weir)?;
    let mut members = Vec::new();
    for job in 0..JOBS {
        members.extend(start_job(by, &setting, &network, program, job)?);
    }
    for (_, member) in &mut members {
        let host = member.host().to_owned();
        wait_for_line(member, PATIENCE, |text| text == "ready").context(host)?;
    }
    let before = CpuSnapshot::now()?;
    let begin_ns = monotonic_ns()? + WARM_UP.as_nanos() as u64;
    let end_ns = begin_ns + MEASURED.as_nanos() as u64;
    for (_, member) in &mut members {
        member.write_line(&end_ns.to_string())?;
    }
    let switch = network.switch_id().context("a switch")?;
    let [first_ns, last_ns] = [begin_ns, end_ns].map(|at_ns| {
        let left_ns = at_ns.saturating_sub(monotonic_ns()?);
        std::thread::sleep(Duration::from_nanos(left_ns));
        cpu_ns(switch)
    });
    let machine = before.usage_since()?;
    let mut jobs = vec![Vec::new(); JOBS];
    let deadline = std::time::Instant::now() + PATIENCE;
    for (job, member) in &mut members {
        let host = member.host().to_owned();
        let report = read_lines(member, deadline).context(host)?;
        if let Some(job) = job {
            let report = report.first().context("a member printed no result")?;
            jobs[*job].push(report["sums_ns"].clone());
        }
    }
    Ok(json!({
        "jobs": jobs,
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "switch_ns": last_ns?.saturating_sub(first_ns?),
        "machine": machine,
    }))
}

/// Starts the members of a job; returns their processes, each with the job's index, or with `None` for a server.
fn start_job(
    by: SummingParty,
    setting: &AllReduceSetting,
    network: &RankNetwork,
    program: &Path,
    job: usize,
) -> Result<Vec<(Option<usize>, Process)>> {
    let declared = network.scenario.jobs.get(job).context("a job")?;
    let number = match by {
        SummingParty::Server => declared.number + UNKNOWN,
        SummingParty::Switch | SummingParty::SwitchAndServer => declared.number,
    };
    let start = |role: &str, host: &Host, more: &[String]| {
        let mut command = Command::new(program);
        command.arg(role).args(["--iface", "eth0"]);
        for (name, value) in [
            ("--job", usize::from(number)),
            ("--ranks", RANKS),
            ("--window", WINDOW as usize),
            ("--values", VALUES),
        ] {
            command.args([name, &value.to_string()]);
        }
        command.args(more);
        host.spawn(command)
    };
    let hosts = &network.scenario.topology.hosts;
    let address = |host: usize| format!("{}/{}", hosts[host].mac, hosts[host].ip);
    let ranks = job * RANKS..(job + 1) * RANKS;
    let mut members = Vec::new();
    let server = setting.jobs * setting.ranks + job;
    if by != SummingParty::Switch {
        let workers = ranks
            .clone()
            .flat_map(|rank| ["--worker".to_owned(), address(rank)]);
        let alone = (by == SummingParty::Server).then(|| "--alone".to_owned());
        let more: Vec<String> = workers.chain(alone).collect();
        members.push((None, start("server", &network.hosts[server], &more)?));
    }
    for (rank, host) in ranks.enumerate() {
        let mut more = vec!["--rank".to_owned(), rank.to_string()];
        let role = match by {
            SummingParty::Switch => "rank",
            SummingParty::SwitchAndServer | SummingParty::Server => {
                more.extend(["--server".to_owned(), address(server)]);
                "worker"
            }
        };
        members.push((Some(job), start(role, &network.hosts[host], &more)?));
    }
    Ok(members)
}

/// Throughput of all jobs over the same interval.
struct JobThroughputs {
    /// Throughput of each job, in bytes a second.
    bytes_per_s: Vec<f64>,
    /// Share of the interval (0 to 1) during which the switch's process ran on a processor.
    switch_share: f64,
    machine: String,
}

impl JobThroughputs {
    fn parse(report: &Value) -> Result<JobThroughputs> {
        let number = |name: &str| report[name].as_u64().with_context(|| name.to_owned());
        let (begin_ns, end_ns) = (number("begin_ns")?, number("end_ns")?);
        let jobs = report["jobs"].as_array().context("jobs")?;
        ensure!(jobs.len() == JOBS, "{} jobs instead of {JOBS}", jobs.len());
        let of_job = |(job, ranks): (usize, &Value)| {
            let ranks = ranks.as_array().context("ranks")?;
            ensure!(ranks.len() == RANKS, "a rank is missing");
            let of_rank = |sums_ns: &Value| {
                let sums_ns = sums_ns.as_array().context("sums_ns")?;
                let sums_ns: Option<Vec<u64>> = sums_ns.iter().map(Value::as_u64).collect();
                sums_in(&sums_ns.context("sums_ns")?, begin_ns, end_ns)
            };
            let sums = ranks.iter().map(of_rank).collect::<Result<Vec<f64>>>();
            let sums = sums.with_context(|| format!("job {job}"))?;
            // Ranks receive the same sums at different times; the slower rank counts.
            let least = sums.into_iter().fold(f64::INFINITY, f64::min);
            Ok(least * 4.0 * VALUES as f64 * 1e9 / (end_ns - begin_ns) as f64)
        };
        Ok(JobThroughputs {
            bytes_per_s: jobs.iter().enumerate().map(of_job).collect::<Result<_>>()?,
            switch_share: number("switch_ns")? as f64 / (end_ns - begin_ns) as f64,
            machine: machine::note(&report["machine"]),
        })
    }

    fn note(&self) -> String {
        let least = self
            .bytes_per_s
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min);
        let most = self.bytes_per_s.iter().copied().fold(0.0, f64::max);
        let all: f64 = self.bytes_per_s.iter().sum();
        format!(
            "{:.1} to {:.1} MB/s a job, {:.0} MB/s all, the switch's process on a processor {:.0} % of the time;",
            least / 1e6,
            most / 1e6,
            all / 1e6,
            100.0 * self.switch_share
        )
    }
}

/// Number of sums that a rank received in an interval, including fractions of sums in progress at
/// the interval's ends. A last sum that never arrives counts as 0.
fn sums_in(sums_ns: &[u64], begin_ns: u64, end_ns: u64) -> Result<f64> {
    ensure!(
        sums_ns
            .first()
            .is_some_and(|first_ns| *first_ns <= begin_ns),
        "it received no sum before the measured interval"
    );
    let by = |time_ns: u64| {
        let done = sums_ns.partition_point(|sum_ns| *sum_ns <= time_ns);
        let part = match (sums_ns.get(done.wrapping_sub(1)), sums_ns.get(done)) {
            (Some(from_ns), Some(to_ns)) => (time_ns - from_ns) as f64 / (to_ns - from_ns) as f64,
            _ => 0.0,
        };
        done as f64 + part
    };
    Ok(by(end_ns) - by(begin_ns))
}

/// Jain's fairness index: 1 for equal shares, 1/n if one of n jobs has all.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    // If all shares are 0, the result is NaN and meets no goal.
    sum * sum / (shares.len() as f64 * squares)
}

/// Smallest ratio, over all jobs, of a job's throughput to its reference throughput.
fn least_ratio(have: &[f64], would_have: &[f64]) -> f64 {
    let ratios = have
        .iter()
        .zip(would_have)
        .map(|(have, would)| have / would);
    ratios.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_falls_with_a_starving_job() {
        assert!((jain(&[3.0; 16]) - 1.0).abs() < 1e-12);
        assert!((jain(&[1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        let mut shares = vec![1.0; 16];
        shares[5] = 0.4;
        assert!(jain(&shares) < 0.98, "{}", jain(&shares));
        let nothing = Row {
            name: NAMES[0],
            value: Some(jain(&[0.0; 16])),
            unit: "Jain",
            goal: Goal::AtLeast(0.98),
            floor: None,
            note: String::new(),
        };
        assert!(!nothing.ok());
    }

    #[test]
    fn sums_in_progress_count_as_fractions() {
        let even: Vec<u64> = (0..=12).map(|n| n * 100).collect();
        assert!((sums_in(&even, 150, 1050).unwrap() - 9.0).abs() < 1e-9);
        // It stalls from 500 on.
        assert!((sums_in(&even[..=5], 100, 1000).unwrap() - 4.0).abs() < 1e-9);
        assert!(sums_in(&even[3..], 100, 1000).is_err());
        assert!(sums_in(&[], 100, 1000).is_err());
    }

    fn report(slow_job: usize, every_ns: u64) -> Value {
        let rank = |every_ns: u64| {
            let sums: Vec<u64> = (0..4000).map(|n| n * every_ns).collect();
            json!(sums)
        };
        let job = |job: usize| {
            let slow = if job == slow_job {
                every_ns
            } else {
                10_000_000
            };
            json!([rank(10_000_000), rank(slow)])
        };
        json!({
            "jobs": (0..JOBS).map(job).collect::<Vec<_>>(),
            "begin_ns": 3_000_000_000u64, "end_ns": 13_000_000_000u64, "switch_ns": 9_000_000_000u64,
            "machine": {"load_before": "1", "busy": 1.0, "stolen": 0.0},
        })
    }

    #[test]
    fn a_job_has_the_throughput_of_its_slowest_rank() {
        let even = JobThroughputs::parse(&report(JOBS, 0)).unwrap();
        let bytes_per_s = 100.0 * 4.0 * VALUES as f64;
        assert!((even.bytes_per_s[3] / bytes_per_s - 1.0).abs() < 1e-9);
        assert!((even.switch_share - 0.9).abs() < 1e-9);
        let one_slow = JobThroughputs::parse(&report(7, 20_000_000)).unwrap();
        assert!(jain(&one_slow.bytes_per_s) < 0.99);
        let ratio = least_ratio(&one_slow.bytes_per_s, &even.bytes_per_s);
        assert!((ratio - 0.5).abs() < 1e-6, "{ratio}");
        // The last sum of the slow job never arrives.
        assert!(JobThroughputs::parse(&report(7, 5_000_000_000)).is_ok());
        let mut silent = report(JOBS, 0);
        silent["jobs"][2][1] = json!([]);
        assert!(JobThroughputs::parse(&silent).is_err());
        silent["jobs"][2] = json!([]);
        assert!(JobThroughputs::parse(&silent).is_err());
    }
}
