//! `veth_cpu`, `veth_vs_bmv2`: the real switch between two veth pairs, beside a plain ring forwarder.
//!
//! The load is a closed loop: as many frames are under way as the rings hold, a new one for each that arrives. So forwarder
//! and switch are as busy as they can be and no frame is lost, however much of the processor others take, and the CPU time
//! of a frame can be compared.

mod bed;
mod rings;

use super::row::{Reach, Row};
use anyhow::{Context, Result, ensure};
pub use bed::{cpu_ns, in_namespace, lay_cables, role, switch, until_forwarded, weir};
use std::time::{Duration, Instant};

/// What [`run`] measures.
pub const NAMES: &[&str] = &["veth_cpu", "veth_vs_bmv2"];

/// Frames under way; less than the switch's receive queue.
const WINDOW: u64 = 2048;
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(1500);
/// simple_switch on one core, near loss-free (docs/performance.md), where it is not installed.
const BMV2_PPS: f64 = 100_000.0;

/// The rows.
pub fn run() -> Result<Vec<Row>> {
    match role().as_deref() {
        Some("forwarder") => rings::forward("s1", "s2")?,
        Some(_) => {
            print!("{}", measure_all()?);
            std::process::exit(0);
        }
        None => {}
    }
    let text = in_namespace("veth_cpu")?;
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|n| n.parse().ok())
        .collect();
    let [floor, switch, floor_low, floor_high, low, high, lost] = numbers[..] else {
        anyhow::bail!("the measurement said {text:?}");
    };
    let pps = 1e6 / switch;
    let bmv2 = std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|folder| folder.join("simple_switch").exists())
    });
    Ok(vec![
        Row {
            name: "veth_cpu",
            value: Some(switch),
            unit: "us/frame",
            reach: Reach::AtMost(floor + 0.25),
            floor: Some(floor),
            note: format!(
                "64 bytes, L2 program, real binary on one core, user + system + softirq, median of {ROUNDS} ({low:.3} to \
                 {high:.3}), {lost:.4} % lost; floor: TPACKET_V3 ring to transmit ring ({floor_low:.3} to {floor_high:.3})"
            ),
        },
        Row {
            name: "veth_vs_bmv2",
            value: Some(pps / BMV2_PPS),
            unit: "times",
            reach: Reach::AtLeast(4.0),
            floor: None,
            note: format!(
                "{:.0} kpps for a whole core, over 100 kpps of simple_switch measured elsewhere ({})",
                pps / 1000.0,
                if bmv2 {
                    "it is installed, but not run here"
                } else {
                    "it is not installed"
                }
            ),
        },
    ])
}

/// In the namespace: medians and ranges in µs a frame.
fn measure_all() -> Result<String> {
    lay_cables()?;
    let weir = weir()?;
    let cpus = std::thread::available_parallelism()?.get();
    ensure!(cpus >= 2, "two processors are needed");
    let cpu = cpus - 1;
    // The generator stays off the switch's processor.
    let mut others = nix::sched::CpuSet::new();
    (0..cpu).try_for_each(|i| others.set(i))?;
    let (mut floors, mut figures, mut lost, mut sent) = (Vec::new(), Vec::new(), 0, 0);
    for _ in 0..ROUNDS {
        for (running, samples) in [
            (bed::forwarder(cpu)?, &mut floors),
            (switch(&weir, Some(cpu))?, &mut figures),
        ] {
            // Whoever forwards has inherited the affinity that was there before.
            nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &others)?;
            until_forwarded(Instant::now())?;
            let round = load(running.0.id(), cpu)?;
            samples.push(round.us);
            lost += round.lost;
            sent += round.sent;
        }
    }
    floors.sort_by(f64::total_cmp);
    figures.sort_by(f64::total_cmp);
    let middle = ROUNDS / 2;
    let last = ROUNDS - 1;
    let lost = 100.0 * lost as f64 / sent as f64;
    ensure!(lost < 0.1, "{lost} % of the frames were lost");
    Ok(format!(
        "{} {} {} {} {} {} {lost}\n",
        floors[middle], figures[middle], floors[0], floors[last], figures[0], figures[last]
    ))
}

struct Round {
    us: f64,
    sent: u64,
    lost: u64,
}

fn load(process: u32, cpu: usize) -> Result<Round> {
    let mut sender = rings::Sender::open("h1")?;
    let frame = bed::frame();
    let ksoftirqd = bed::ksoftirqd(cpu);
    let spent = || -> Result<u64> {
        let softirqs = ksoftirqd.map_or(Ok(0), bed::cpu_ns)?;
        Ok(bed::cpu_ns(process)? + softirqs)
    };
    let (first, before) = (bed::received("h2")?, spent()?);
    let (mut sent, mut arrived, mut lost) = (0u64, 0, 0);
    let start = Instant::now();
    let mut progress = start;
    while start.elapsed() < ROUND {
        while sent.saturating_sub(arrived + lost) < WINDOW {
            for _ in 0..64 {
                sender.send(&frame);
            }
            sender.flush();
            sent += 64;
        }
        let now = bed::received("h2")? - first;
        if now > arrived {
            (arrived, progress) = (now, Instant::now());
        } else if progress.elapsed() > Duration::from_millis(500) {
            // What has not come by now never will.
            lost = sent.saturating_sub(arrived);
            progress = Instant::now();
        }
    }
    let ns = spent()?
        .checked_sub(before)
        .context("CPU time runs backwards")?;
    Ok(Round {
        us: ns as f64 / 1000.0 / (arrived.max(1)) as f64,
        sent,
        lost,
    })
}
