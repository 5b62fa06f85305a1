//! Plot: steps per second of ranks that stall at random, if a sum waits for all ranks, until a
//! deadline, or for the fastest ranks alone.

use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Carry, Reduction, Values};
use anyhow::Result;
use cluster::Faults;
use cluster::ranks::{self, AllReduceConfig, Deadline, RankEnd, RankSlotSwitch, Steps};

use plotters::style::RGBColor;

use super::{Axis, Curve, drawing};

const MS: u64 = 1_000_000;
const RANKS: u16 = 8;
const STEPS: usize = 200;
const COMPUTE_NS: u64 = 5 * MS;
const STALL_NS: u64 = 50 * MS;
/// Points of the plot: share of a rank's steps that stall, in percent.
const STALLS: [u64; 6] = [0, 1, 2, 5, 10, 20];
const SEEDS: u64 = 5;

struct Mode {
    name: &'static str,
    color: RGBColor,
    until: Option<(u64, u16)>,
}

const MODES: [Mode; 4] = [
    Mode {
        name: "all 8",
        color: RGBColor(0x44, 0x44, 0x44),
        until: None,
    },
    Mode {
        name: "2 ms, at least 5",
        color: RGBColor(0x1f, 0x77, 0xb4),
        until: Some((2 * MS, 5)),
    },
    Mode {
        name: "the fastest 7",
        color: RGBColor(0x2c, 0xa0, 0x2c),
        until: Some((0, 7)),
    },
    Mode {
        name: "the fastest 5",
        color: RGBColor(0xd6, 0x27, 0x28),
        until: Some((0, 5)),
    },
];

/// Simulates ranks that stall: returns steps per second, and the share of contributions that reached the sum of their step.
fn measure(mode: &Mode, stalls: u64, seed: u64) -> (f64, f64) {
    let job = JobConfig {
        job: JobId(1),
        workers: RANKS,
        window: 64,
        values_per_packet: 32,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    };
    let chunks = 64;
    let mut config = AllReduceConfig::new(seed, job, Faults::NONE);
    config.steps = Some(Steps {
        compute_ns: COMPUTE_NS,
        stall_ns: STALL_NS,
        stalls: stalls as f64 / 100.0,
    });
    config.deadline = mode.until.map(|(after_ns, quorum)| Deadline {
        after_ns,
        quorum,
        carry: Carry::NextRound,
        keeps: None,
    });
    config.reduction = Reduction {
        key: Some(0),
        ..Reduction::default()
    };
    let job = Job::new(job).expect("a job");
    let mut switch = match mode.until {
        None => RankSlotSwitch::new(job),
        Some(_) => RankSlotSwitch::new(job).with_deadlines(),
    };
    let one = |_, _: WorkerId| Values::Integers(vec![1; chunks * 32]);
    let report = ranks::run(&config, &mut switch, STEPS, &one).expect("a job");
    assert!(report.ends.iter().all(|end| *end == RankEnd::Done));
    let late: u64 = report
        .counters
        .iter()
        .map(|counters| counters.late_chunks)
        .sum();
    let all = (STEPS * chunks * usize::from(RANKS)) as f64;
    let per_second = STEPS as f64 * 1e9 / report.ended_ns as f64;
    (per_second, 1.0 - late as f64 / all)
}

fn mean(mode: &Mode, stalls: u64) -> (f64, f64) {
    let runs: Vec<(f64, f64)> = (0..SEEDS).map(|seed| measure(mode, stalls, seed)).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    (mean(|run| run.0), mean(|run| run.1))
}

/// Measures the rates in virtual time, prints a table, and returns the drawing as SVG.
pub fn plot() -> Result<String> {
    let rows: Vec<Vec<(f64, f64)>> = MODES
        .iter()
        .map(|mode| STALLS.iter().map(|stalls| mean(mode, *stalls)).collect())
        .collect();
    let stalls = STALLS.map(|stalls| format!("{stalls} %"));
    println!("| a sum is of | {} |", stalls.join(" | "));
    println!("|---|{}", "---|".repeat(STALLS.len()));
    for (mode, row) in MODES.iter().zip(&rows) {
        let cells = row
            .iter()
            .map(|(rate, share)| format!("{rate:.0} ({:.1} %)", 100.0 * share));
        let cells: Vec<String> = cells.collect();
        println!("| {} | {} |", mode.name, cells.join(" | "));
    }
    let curves = MODES.iter().zip(&rows).map(|(mode, row)| Curve {
        name: mode.name,
        color: mode.color,
        points: STALLS
            .iter()
            .zip(row)
            .map(|(stalls, (rate, _))| (*stalls as f64, *rate))
            .collect(),
    });
    let curves: Vec<Curve> = curves.collect();
    let x = format!(
        "steps of a rank that stall, by up to {} ms, in %",
        STALL_NS / MS
    );
    drawing(Axis::linear(&x), Axis::linear("steps a second"), &curves)
}
