//! `weir-agent all-reduce`: a rank with generated values, which the switch sums, and which checks the sums.
//!
//! | file | contents |
//! |---|---|
//! | `args.rs` | settings of the rank and its transport: from options, or from a scenario's environment |
//! | `values.rs` | the generated values, and their sums |

mod args;
mod values;

use std::time::{Duration, Instant};

use aggregation::rank::{RankCounters, Sums, Values};
use anyhow::{Context, Result, bail, ensure};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use sha2::{Digest, Sha256};

pub use args::AllReduceArgs;
pub use values::Dtype;

use crate::collective::{Config, JobLock, Member, attach};
use crate::frames::Endpoint;
use values::InputRule;

/// Report of the rank, which it prints.
#[derive(Debug, Serialize)]
struct Report {
    rank: u16,
    ranks: u16,
    job: u16,
    transport: String,
    /// Transport and I/O backend, with the reason for the choice.
    way: String,
    bytes: u64,
    iterations: u32,
    /// Duration of each operation in seconds.
    seconds: Vec<f64>,
    /// Processor time of this process during the operations, user and system, in seconds.
    processor_s: f64,
    /// Begin and end of the operations on the machine's clock, which all its processes share, in seconds.
    begun_s: f64,
    ended_s: f64,
    /// Bits of values per second and rank, over all operations.
    bits_per_s: f64,
    /// SHA-256 of the last operation's sums, which are equal at all ranks.
    sums_sha256: String,
    /// The first 48 bits of `sums_sha256`, as a number.
    fingerprint: u64,
    /// Upper bound of the error of the sums.
    error_bound: f64,
    /// Number of sums beyond the error bound; `None` if sums are not checked.
    wrong: Option<u64>,
    frames: u64,
    frames_again: u64,
    probes: u64,
    timeouts: u64,
    fallbacks: u64,
}

impl AllReduceArgs {
    /// Runs the rank to its end, and prints the results.
    pub fn run(&self) -> Result<()> {
        let setup = self.setup()?;
        let interface = self.interface();
        let (transport, because) = self.transport()?;
        let peers = self.peers.clone();
        let me = Endpoint::from_interface(&interface)?;
        let config = Config { setup, me, peers };
        let place = JobLock::take(&interface, setup.job.id().0)?;
        let (carrier, way) = attach(&interface, self.way, transport, &config)?;
        let told = format!("{} ({transport}: {because})", way.told);
        eprintln!(
            "rank {} of {}, job {}: {told}",
            setup.rank.0,
            setup.job.workers(),
            setup.job.id().0
        );
        let member = Member::start_by(config, carrier, Some(place))?;
        let patience = Duration::from_secs(self.patience);
        let given = InputRule {
            dtype: self.dtype,
            seed: self.seed,
            length: self.length(),
        };
        let begun_s = clock_s(ClockId::CLOCK_MONOTONIC)?;
        let mut processor_s = 0.0;
        let mut seconds = Vec::new();
        let mut last = None;
        for iteration in 0..self.iters {
            let values = given.by(setup.rank.0, iteration);
            let (begin, used_s) = (Instant::now(), clock_s(ClockId::CLOCK_PROCESS_CPUTIME_ID)?);
            last = Some(member.all_reduce(values)?.wait(patience)?);
            seconds.push(begin.elapsed().as_secs_f64());
            processor_s += clock_s(ClockId::CLOCK_PROCESS_CPUTIME_ID)? - used_s;
        }
        let ended_s = clock_s(ClockId::CLOCK_MONOTONIC)?;
        let sums = last.context("no operation")?;
        let iteration = self.iters - 1;
        let wrong = match self.no_check {
            true => None,
            false => Some(given.wrong(&sums, setup.job.workers(), iteration)?),
        };
        let bytes = self.length() as u64 * 4;
        let sums_sha256 = digest(&sums)?;
        let (counters, _) = member.counters();
        let report = Report {
            rank: setup.rank.0,
            ranks: setup.job.workers(),
            job: setup.job.id().0,
            transport: transport.to_string(),
            way: told,
            bytes,
            iterations: self.iters,
            bits_per_s: bytes as f64 * 8.0 * f64::from(self.iters) / seconds.iter().sum::<f64>(),
            seconds,
            processor_s,
            begun_s,
            ended_s,
            fingerprint: fingerprint(&sums_sha256)?,
            sums_sha256,
            error_bound: sums.error_bound,
            wrong,
            frames: counters.sent.frames,
            frames_again: counters.sent.retransmitted_frames,
            probes: counters.probes,
            timeouts: counters.timeouts,
            fallbacks: counters.fallbacks,
        };
        self.print(&report, &counters)?;
        let wrong = wrong.unwrap_or(0);
        ensure!(wrong == 0, "{wrong} sums are wrong");
        Ok(())
    }

    fn print(&self, report: &Report, counters: &RankCounters) -> Result<()> {
        if self.json {
            println!("{}", serde_json::to_string(report)?);
            return Ok(());
        }
        let sum_s: f64 = report.seconds.iter().sum();
        println!(
            "{} sums of {} bytes in {sum_s:.3} s = {:.2} Mbit/s; sha256 {}",
            report.iterations,
            report.bytes,
            report.bits_per_s / 1e6,
            report.sums_sha256
        );
        let wrong = match report.wrong {
            Some(wrong) => format!("{wrong} wrong"),
            None => "not checked".to_owned(),
        };
        println!(
            "error at most {:e}; {wrong}; {} frames, {} of them retransmissions, {} probes",
            report.error_bound, report.frames, report.frames_again, counters.probes
        );
        Ok(())
    }
}

/// SHA-256 of the bits of the sums.
fn digest(sums: &Sums) -> Result<String> {
    let mut hasher = Sha256::new();
    match &sums.values {
        Values::Floats(values) => {
            values
                .iter()
                .for_each(|value| hasher.update(value.to_le_bytes()));
        }
        Values::Integers(values) => {
            values
                .iter()
                .for_each(|value| hasher.update(value.to_le_bytes()));
        }
        _ => bail!("sums of another type"),
    }
    let digest = hasher.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The first 48 bits of a SHA-256 as a number, which a scenario can compare.
fn fingerprint(sha256: &str) -> Result<u64> {
    let first = sha256.get(..12).context("a digest")?;
    Ok(u64::from_str_radix(first, 16)?)
}

fn clock_s(clock: ClockId) -> Result<f64> {
    Ok(Duration::from(clock_gettime(clock)?).as_secs_f64())
}
