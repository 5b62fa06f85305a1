//! A rank of an all-reduce: this program, started as a command of a scenario.

use std::time::Duration;

use aggregation::Retransmission;
use aggregation::job::{ChunkId, Job, JobConfig, JobId, TreePosition, WorkerId};
use aggregation::rank::{Setup, Values};
use anyhow::{Context, Result, ensure};
use host_agent::collective::{Config, Member};
use host_agent::frames::{Endpoint, Io, open_interface};
use nix::time::{ClockId, clock_gettime};

/// Environment variable with the number of values and of sums; it makes this program a rank.
pub const ASKED: &str = "WEIR_BENCH_SUMS";
const INTERFACE: &str = "eth0";
const PATIENCE: Duration = Duration::from_secs(280);

/// Number of values and of sums, if this process is a rank by the environment variable; otherwise `None`.
pub fn asked() -> Option<(usize, u64)> {
    let asked = std::env::var(ASKED).ok()?;
    let (values, operations) = asked.split_once(' ')?;
    Some((values.parse().ok()?, operations.parse().ok()?))
}

/// Sums `values` values `operations` times, and prints start and end by the machine's clock.
pub fn run(values: usize, operations: u64) -> Result<()> {
    let setup = setup(values)?;
    let opened = open_interface(INTERFACE, Io::Rings).context("cannot open the interface")?;
    let me = Endpoint::from_interface(INTERFACE)?;
    let peers = Vec::new();
    let member = Member::start(Config { setup, me, peers }, opened.frames)?;
    let own = f32::from(setup.rank.0 + 1);
    let given: Vec<f32> = (0..values)
        .map(|index| ((index % 251) as f32 - 125.0) * own)
        .collect();
    let ranks = f32::from(setup.job.workers());
    let begun_s = now_s()?;
    for _ in 0..operations {
        let pending = member.all_reduce(Values::Floats(given.clone()))?;
        let Values::Floats(sums) = pending.wait(PATIENCE)?.values else {
            anyhow::bail!("the sums are not float32");
        };
        // The first value is -125 times each rank's number.
        let right = -125.0 * ranks * (ranks + 1.0) / 2.0;
        ensure!(
            (sums[0] - right).abs() <= 1e-5 * right.abs(),
            "a sum is {}, expected {right}",
            sums[0]
        );
    }
    let ended_s = now_s()?;
    println!(
        "{}",
        serde_json::json!({ "begun_s": begun_s, "ended_s": ended_s })
    );
    Ok(())
}

fn setup(values: usize) -> Result<Setup> {
    let word = |name: &str| std::env::var(name).with_context(|| format!("no {name}"));
    let number = |name: &str| -> Result<u16> { Ok(word(name)?.parse()?) };
    let job = Job::new(JobConfig {
        job: JobId(number("WEIR_JOB")?),
        workers: number("WEIR_RANKS")?,
        window: number("WEIR_WINDOW")?.into(),
        values_per_packet: number("WEIR_VALUES")?,
        values_per_round: values,
        first_chunk: ChunkId(0),
    })?;
    let place = word("WEIR_PLACE")?;
    let mut place = place.split('/').map(str::parse::<u16>);
    let mut next = || anyhow::Ok(place.next().context("a place has three numbers")??);
    let place = TreePosition {
        child: WorkerId(next()?),
        siblings: next()? as u8,
        top: next()? as u8,
    };
    let rank = WorkerId(number("WEIR_RANK")?);
    Ok(Setup {
        place,
        ..Setup::under_one_switch(job, rank, Retransmission::of_ranks())
    })
}

fn now_s() -> Result<f64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(Duration::from(now).as_secs_f64())
}
