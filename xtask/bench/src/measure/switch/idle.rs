//! `idle_memory`, `idle_start`: memory and start time of the real binary with two ports and an L2 program.

use crate::measure::Args;
use crate::measure::clock::cpu_ns;
use crate::measure::files::read;
use crate::measure::programs::WEIR;
use crate::measure::row::{Goal, Row};
use crate::measure::veth::{lay_cables, numbers_in_namespace, switch, until_forwarded};
use anyhow::{Context, Result};
use std::time::{Duration, Instant};

pub const NAMES: &[&str] = &["idle_memory", "idle_start"];

/// Role in which this program measures in the network namespace.
pub const ROLE: &str = "idle";
const ROUNDS: usize = 7;

pub fn run(args: &Args) -> Result<Vec<Row>> {
    WEIR.build(args.prebuilt)?;
    let [memory, rings, start, best, worst, cpu] = numbers_in_namespace("switch", ROLE)?;
    Ok(vec![
        Row {
            name: "idle_memory",
            value: Some(memory),
            unit: "MB",
            goal: Goal::AtMost(20.0),
            floor: Some(rings),
            note: "resident, after a second; floor: the two ports' rings".into(),
        },
        Row {
            name: "idle_start",
            value: Some(start),
            unit: "ms",
            goal: Goal::AtMost(50.0),
            floor: None,
            note: format!(
                "from exec to the first frame forwarded, median of {ROUNDS} ({best:.1} to {worst:.1}), by the clock on the \
                 wall; CPU time until then {cpu:.1} ms"
            ),
        },
    ])
}

/// Measures in the network namespace; returns all figures in one line.
pub fn measure() -> Result<String> {
    lay_cables()?;
    let weir = WEIR.path()?;
    let (mut starts, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let switch = switch(&weir, None)?;
        starts.push(until_forwarded(start)?.as_secs_f64() * 1000.0);
        cpu.push(cpu_ns(switch.0.id())? as f64 / 1e6);
    }
    let running = switch(&weir, None)?;
    until_forwarded(Instant::now())?;
    std::thread::sleep(Duration::from_secs(1));
    let status = read(format!("/proc/{}/status", running.0.id()))?;
    let field = |name: &str| -> Result<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kb.context("/proc/PID/status")? / 1000.0 * 1.024)
    };
    let maps = read(format!("/proc/{}/smaps", running.0.id()))?;
    let mut in_ring = false;
    let mut rings = 0.0;
    for line in maps.lines() {
        if line.contains("socket:") {
            in_ring = true;
        } else if let (true, Some(kb)) = (in_ring, line.strip_prefix("Rss:")) {
            let kb = kb
                .split_whitespace()
                .next()
                .and_then(|n| n.parse::<f64>().ok());
            rings += kb.unwrap_or(0.0) / 1000.0 * 1.024;
            in_ring = false;
        }
    }
    starts.sort_by(f64::total_cmp);
    cpu.sort_by(f64::total_cmp);
    Ok(format!(
        "{} {rings} {} {} {} {}\n",
        field("VmRSS:")?,
        starts[ROUNDS / 2],
        starts[0],
        starts[ROUNDS - 1],
        cpu[ROUNDS / 2]
    ))
}
