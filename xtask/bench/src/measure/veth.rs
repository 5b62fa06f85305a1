//! `veth_cpu`, `veth_vs_bmv2`: measures the real switch between two veth pairs, beside a plain ring
//! forwarder and BMv2's simple_switch.
//!
//! The load is a closed loop: the frames in flight fill the rings, and each arriving frame is
//! replaced by a new one. Forwarder and switch are thus fully busy and lose no frame, whatever
//! processor time other programs take, so the CPU time of a frame can be compared. simple_switch
//! drops the frames that its queues cannot hold, so its loop is small enough to lose almost none.

mod rings;
mod testbed;

use super::Args;
use super::bmv2::Rival;
use super::clock::cpu_ns;
use super::programs::WEIR;
use super::row::{Goal, Row};
use ::bmv2::tools::Tool;
use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};
pub use testbed::{
    Running, in_namespace, ip, lay_cables, numbers_in_namespace, role, switch, switch_with_program,
    until_forwarded,
};

pub const NAMES: &[&str] = &["veth_cpu", "veth_vs_bmv2"];

/// Role in which this program measures in the network namespace.
const ROLE: &str = "veth_cpu";
/// Number of frames in flight; fewer than the switch's receive queue holds.
const WINDOW: u64 = 1152;
/// Numbers of frames in flight that are tried for simple_switch, whose queues hold 1,024 frames
/// before ingress and 64 before each egress thread.
const BMV2_WINDOWS: [u64; 6] = [16, 32, 64, 128, 256, 512];
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(1500);
/// Maximum share of lost frames in a round that counts as nearly loss-free.
const MOST_LOST: f64 = 0.001;
/// Frames a second of simple_switch on one core, nearly loss-free (docs/performance.md), for machines without simple_switch.
const BMV2_PPS: f64 = 100_000.0;

/// Runs this program in a role in the network namespace: the plain forwarder, or the measurement.
pub fn run_role(role: &str) -> Result<String> {
    match role {
        testbed::FORWARDER => rings::forward("s1", "s2").map(|()| String::new()),
        ROLE => measure_all(),
        _ => bail!("no role is called {role}"),
    }
}

pub fn run(args: &Args) -> Result<Vec<Row>> {
    WEIR.build(args.prebuilt)?;
    let l2 = include_str!("p4/l2.p4");
    let json = args.bmv2_json.as_deref();
    let rival = Rival::find(Tool::SimpleSwitch, l2, &args.bmv2_dir, json);
    let variables = rival.as_ref().ok().map(Rival::env);
    let text = in_namespace("switch", ROLE, variables)?;
    let mut figures = text.lines().map(Figures::parse);
    let mut next = || {
        let next = figures.next().flatten();
        next.with_context(|| format!("the measurement printed {text:?}"))
    };
    let (floor, ours) = (next()?, next()?);
    let (ratio, note) = match &rival {
        Err(why) => {
            let kpps = ours.whole_core() / 1000.0;
            let note = format!(
                "{kpps:.0} kpps for a whole core, over 100 kpps of simple_switch measured elsewhere ({why})"
            );
            (ours.whole_core() / BMV2_PPS, note)
        }
        Ok(rival) => {
            let theirs = next()?;
            let note = format!(
                "{:.0} kpps for a whole core over simple_switch's {:.1} ({:.1} to {:.1} µs/frame, {} under way, {:.4} % lost; \
                 {}, {}); by the clock {:.0} and {:.1} kpps",
                ours.whole_core() / 1000.0,
                theirs.whole_core() / 1000.0,
                theirs.low,
                theirs.high,
                theirs.window,
                theirs.lost_percent,
                rival.program().display(),
                rival.version(),
                ours.by_clock / 1000.0,
                theirs.by_clock / 1000.0,
            );
            (ours.whole_core() / theirs.whole_core(), note)
        }
    };
    Ok(vec![
        Row {
            name: "veth_cpu",
            value: Some(ours.middle),
            unit: "us/frame",
            goal: Goal::AtMost(floor.middle + 0.25),
            floor: Some(floor.middle),
            note: format!(
                "64 bytes, L2 program, real binary on one core, user + system + softirq, median of {ROUNDS} ({:.3} to \
                 {:.3}), {:.4} % lost; floor: TPACKET_V3 ring to transmit ring ({:.3} to {:.3})",
                ours.low, ours.high, ours.lost_percent, floor.low, floor.high
            ),
        },
        Row {
            name: "veth_vs_bmv2",
            value: Some(ratio),
            unit: "times",
            goal: Goal::AtLeast(4.0),
            floor: None,
            note,
        },
    ])
}

/// Measures in the network namespace; returns [`Figures`] of the forwarder, the switch, and simple_switch if it is installed.
fn measure_all() -> Result<String> {
    lay_cables()?;
    let weir = WEIR.path()?;
    let rival = Rival::from_env();
    let cpus = std::thread::available_parallelism()?.get();
    ensure!(cpus >= 2, "two processors are needed");
    let cpu = cpus - 1;
    // The generator stays off the switch's processor.
    let mut others = nix::sched::CpuSet::new();
    (0..cpu).try_for_each(|i| others.set(i))?;
    let measure = |running: testbed::Running, window, time| {
        // The forwarding process has inherited the previous affinity.
        nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &others)?;
        until_forwarded(Instant::now())?;
        testbed::wait_until_quiet()?;
        load(running.0.id(), cpu, window, time)
    };
    let start_rival = |rival: &Rival| testbed::rival(rival, cpu);
    let mut window = BMV2_WINDOWS[0];
    if let Some(rival) = &rival {
        let mut least = f64::MAX;
        for tried in BMV2_WINDOWS {
            let round = measure(start_rival(rival)?, tried, ROUND / 2)?;
            if round.lost_share() < MOST_LOST && round.us < least {
                (least, window) = (round.us, tried);
            }
        }
    }
    let (mut floors, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(measure(testbed::forwarder(cpu)?, WINDOW, ROUND)?);
        ours.push(measure(switch(&weir, Some(cpu))?, WINDOW, ROUND)?);
        if let Some(rival) = &rival {
            theirs.push(measure(start_rival(rival)?, window, ROUND)?);
        }
    }
    let mut text = String::new();
    for (name, rounds, window) in [
        ("the forwarder", floors, WINDOW),
        ("the switch", ours, WINDOW),
        ("simple_switch", theirs, window),
    ] {
        if !rounds.is_empty() {
            let figures = Figures::from_rounds(rounds, window);
            let lost = figures.lost_percent;
            ensure!(
                lost < 100.0 * MOST_LOST,
                "{name} lost {lost} % of the frames"
            );
            text += &figures.print();
        }
    }
    Ok(text)
}

/// Figures of a forwarding program over all rounds.
struct Figures {
    /// CPU time per frame in µs: median; `low` is the minimum, `high` the maximum.
    middle: f64,
    low: f64,
    high: f64,
    /// Median rate in frames a second, by elapsed time.
    by_clock: f64,
    lost_percent: f64,
    /// Number of frames in flight.
    window: u64,
}

impl Figures {
    fn from_rounds(mut rounds: Vec<LoadRound>, window: u64) -> Figures {
        let sum = |count: fn(&LoadRound) -> u64| rounds.iter().map(count).sum::<u64>() as f64;
        let lost_percent = 100.0 * sum(|r| r.lost) / sum(|r| r.sent);
        rounds.sort_by(|a, b| a.by_clock.total_cmp(&b.by_clock));
        let by_clock = rounds[rounds.len() / 2].by_clock;
        rounds.sort_by(|a, b| a.us.total_cmp(&b.us));
        Figures {
            middle: rounds[rounds.len() / 2].us,
            low: rounds[0].us,
            high: rounds[rounds.len() - 1].us,
            by_clock,
            lost_percent,
            window,
        }
    }

    /// Rate in frames a second that the program would reach with a core of its own.
    fn whole_core(&self) -> f64 {
        1e6 / self.middle
    }

    fn print(&self) -> String {
        let Figures {
            middle,
            low,
            high,
            by_clock,
            lost_percent,
            window,
        } = self;
        format!("{middle} {low} {high} {by_clock} {lost_percent} {window}\n")
    }

    fn parse(line: &str) -> Option<Figures> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [middle, low, high, by_clock, lost_percent, window] = words[..] else {
            return None;
        };
        Some(Figures {
            middle: middle.parse().ok()?,
            low: low.parse().ok()?,
            high: high.parse().ok()?,
            by_clock: by_clock.parse().ok()?,
            lost_percent: lost_percent.parse().ok()?,
            window: window.parse().ok()?,
        })
    }
}

struct LoadRound {
    us: f64,
    by_clock: f64,
    sent: u64,
    lost: u64,
}

impl LoadRound {
    fn lost_share(&self) -> f64 {
        self.lost as f64 / self.sent as f64
    }
}

/// Keeps `window` frames in flight through the program `process` on processor `cpu` for `time`.
fn load(process: u32, cpu: usize, window: u64, time: Duration) -> Result<LoadRound> {
    let batch = window.min(64);
    let mut sender = rings::Sender::open("h1")?;
    let frame = testbed::frame();
    let ksoftirqd = testbed::ksoftirqd(cpu);
    let spent = || -> Result<u64> {
        let softirqs = ksoftirqd.map_or(Ok(0), cpu_ns)?;
        Ok(cpu_ns(process)? + softirqs)
    };
    let (first, before) = (testbed::received("h2")?, spent()?);
    let (mut sent, mut arrived, mut lost) = (0u64, 0, 0);
    let start = Instant::now();
    let mut progress = start;
    while start.elapsed() < time {
        while sent.saturating_sub(arrived + lost) + batch <= window {
            for _ in 0..batch {
                sender.send(&frame);
            }
            sender.flush();
            sent += batch;
        }
        let now = testbed::received("h2")? - first;
        if now > arrived {
            (arrived, progress) = (now, Instant::now());
        } else if progress.elapsed() > Duration::from_millis(500) {
            // Frames that have not arrived by now are lost.
            lost = sent.saturating_sub(arrived);
            progress = Instant::now();
        }
    }
    let ns = spent()?
        .checked_sub(before)
        .context("CPU time runs backwards")?;
    Ok(LoadRound {
        us: ns as f64 / 1000.0 / (arrived.max(1)) as f64,
        by_clock: arrived as f64 / start.elapsed().as_secs_f64(),
        sent,
        lost,
    })
}
