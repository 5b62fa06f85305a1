//! How fast ranks are that are out of step, if all are waited for, until a deadline, or the fastest alone: a table, and with
//! a path a drawing. All of it in virtual time, so every machine gives the same.
//!
//! ```text
//! cargo run --release -p cluster --example stragglers -- docs/plots/stragglers.svg
//! ```
#![allow(clippy::disallowed_methods)] // The library does no I/O; this writes a file.

use std::fmt::Write;
use std::process::ExitCode;

use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
use aggregation::rank::{Carry, Reduction, Values};
use cluster::Faults;
use cluster::ranks::{self, Config, Deadline, RankEnd, SlotSwitch, Steps};

const MS: u64 = 1_000_000;
const RANKS: u16 = 8;
const STEPS: usize = 200;
const COMPUTE_NS: u64 = 5 * MS;
const STALL_NS: u64 = 50 * MS;
/// Of a hundred steps of a rank, how many stall.
const STALLS: [u64; 6] = [0, 1, 2, 5, 10, 20];
const SEEDS: u64 = 5;

struct Mode {
    name: &'static str,
    color: &'static str,
    until: Option<(u64, u16)>,
}

const MODES: [Mode; 4] = [
    Mode {
        name: "all 8",
        color: "#444444",
        until: None,
    },
    Mode {
        name: "2 ms, at least 5",
        color: "#1f77b4",
        until: Some((2 * MS, 5)),
    },
    Mode {
        name: "the fastest 7",
        color: "#2ca02c",
        until: Some((0, 7)),
    },
    Mode {
        name: "the fastest 5",
        color: "#d62728",
        until: Some((0, 5)),
    },
];

/// Steps a second, and the share of the contributions that are in their step's sum.
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
    let mut config = Config::new(seed, job, Faults::NONE);
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
        None => SlotSwitch::new(job),
        Some(_) => SlotSwitch::new(job).with_deadlines(),
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

fn main() -> ExitCode {
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
        println!(
            "| {} | {} |",
            mode.name,
            cells.collect::<Vec<_>>().join(" | ")
        );
    }
    let Some(path) = std::env::args().nth(1) else {
        return ExitCode::SUCCESS;
    };
    match std::fs::write(&path, drawing(&rows)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{path}: {error}");
            ExitCode::from(2)
        }
    }
}

/// Steps a second over stalls, a line a mode.
fn drawing(rows: &[Vec<(f64, f64)>]) -> String {
    let (left, top, width, height) = (60.0, 20.0, 460.0, 260.0);
    let most = 1e9 / COMPUTE_NS as f64;
    let x = |stalls: u64| left + width * stalls as f64 / STALLS[STALLS.len() - 1] as f64;
    let y = |rate: f64| top + height * (1.0 - rate / most);
    let mut svg = String::from(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 700 330\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"700\" height=\"330\" fill=\"white\"/>\n",
    );
    // Writing to a string does not fail.
    for rate in (0..=most as u64).step_by(50) {
        let at = y(rate as f64);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{rate}</text>",
            left + width,
            left - 6.0,
            at + 4.0
        );
    }
    for stalls in STALLS {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{stalls} %</text>",
            x(stalls),
            top + height + 18.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">steps of a rank that stall, by up to {} ms</text>\
         <text x=\"16\" y=\"{}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {})\">steps a second</text>",
        left + width / 2.0,
        top + height + 40.0,
        STALL_NS / MS,
        top + height / 2.0,
        top + height / 2.0
    );
    for (at, (mode, row)) in MODES.iter().zip(rows).enumerate() {
        let points = STALLS
            .iter()
            .zip(row)
            .map(|(stalls, (rate, _))| format!("{:.1},{:.1}", x(*stalls), y(*rate)));
        let label = top + 20.0 + 20.0 * at as f64;
        let _ = writeln!(
            svg,
            "<polyline fill=\"none\" stroke=\"{color}\" stroke-width=\"2\" points=\"{}\"/>\
             <line x1=\"540\" x2=\"560\" y1=\"{label}\" y2=\"{label}\" stroke=\"{color}\" stroke-width=\"2\"/>\
             <text x=\"566\" y=\"{}\">{}</text>",
            points.collect::<Vec<_>>().join(" "),
            label + 4.0,
            mode.name,
            color = mode.color
        );
    }
    svg.push_str("</svg>\n");
    svg
}
