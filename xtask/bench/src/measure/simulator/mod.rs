//! `cargo xtask bench simulator`: compares times of trainings and all-reduces by `weir simulate`
//! and by the flow model with those in a testbed. docs/planning.md keeps the figures.
//!
//! Each of the [settings](settings::SETTINGS) is a scenario. `weir run` runs it three times, and the median counts;
//! `weir simulate` reads the same file. The times of gradients and evaluations on a [processor](processors) are
//! measured once before, without a network, and are inputs of both models. No parameter is fitted to a setting.

mod flow;
mod processors;
mod rank;
mod settings;

use std::cell::RefCell;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::driver::{self, Group};
use super::files;
use super::programs::WEIR;
use super::row::{Goal, Row};
use super::{Args, qq};
use processors::Processors;
use settings::{SETTINGS, Setting, Work};

/// Number of runs of each setting in a testbed; the median counts.
const RUNS: usize = 3;
/// Number of seeds with which a setting with losses is simulated; the median counts. Lost frames decide
/// how often a worker waits for a timeout, and the switches decide at random which frames are lost.
const SEEDS: u64 = 9;
/// Maximum relative error of the simulator that meets the goal.
const MOST_OFF: f64 = 0.10;
/// Measured and modeled times of a setting.
struct Comparison {
    setting: &'static Setting,
    /// Time of each run in a testbed, in seconds, ascending.
    measured: Vec<f64>,
    simulated: f64,
    /// Time in seconds by the flow model.
    flow: f64,
    /// Bytes on the server's link in both directions: (measured, simulated); `None` for a setting that is no training.
    bytes: Option<(f64, f64)>,
}

impl Comparison {
    fn median(&self) -> f64 {
        self.measured[self.measured.len() / 2]
    }

    fn off(&self) -> f64 {
        self.simulated / self.median() - 1.0
    }

    fn flow_off(&self) -> f64 {
        self.flow / self.median() - 1.0
    }
}

/// Measures the selected rows: a row for each setting, and the simulator's largest error.
pub fn run(args: &Args) -> Result<bool> {
    if let Some((values, operations)) = rank::asked() {
        rank::run(values, operations)?;
        return Ok(true);
    }
    if let Some(worker) = processors::asked() {
        processors::run(worker)?;
        return Ok(true);
    }
    let settings = SETTINGS
        .iter()
        .map(|setting| Group::one(setting.name, |bench: &SimulatorBench| bench.row(setting)));
    let summary = Group::new(
        &["simulator/packets", "simulator/flows"],
        SimulatorBench::summary,
    );
    let groups = settings.chain([summary]).collect();
    driver::measure(args, groups, || {
        let itself = std::env::current_exe()?;
        let bench = SimulatorBench {
            weir: WEIR.build(args.prebuilt)?,
            processors: Processors::measure(&itself)?,
            folder: tempfile::tempdir()?,
            itself,
            compared: RefCell::default(),
            args: args.clone(),
        };
        eprintln!("  {:?}", bench.processors);
        Ok(bench)
    })
}

/// The last two rows: the largest relative errors of the simulator and of the flow model.
fn rows(compared: &[Comparison]) -> Vec<Row> {
    let worst = |off: fn(&Comparison) -> f64| {
        let offs = compared.iter().map(|one| (off(one), one.setting.name));
        offs.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()))
    };
    let median = |off: fn(&Comparison) -> f64| {
        let mut offs: Vec<f64> = compared.iter().map(|one| off(one).abs()).collect();
        offs.sort_by(f64::total_cmp);
        offs.get(offs.len() / 2).copied().unwrap_or(0.0)
    };
    let row = |name, off: fn(&Comparison) -> f64, goal, table: &str| Row {
        name,
        value: worst(off).map(|(off, _)| off.abs()),
        unit: "share",
        goal,
        floor: None,
        note: format!(
            "completion time against a testbed's, worst of {} settings ({}); median {:.3}{table}",
            compared.len(),
            worst(off).map_or("", |(_, name)| name),
            median(off)
        ),
    };
    let table = format!("\n\n{}", table(compared));
    vec![
        row(
            "simulator/packets",
            Comparison::off,
            Goal::AtMost(MOST_OFF),
            &table,
        ),
        row("simulator/flows", Comparison::flow_off, Goal::Nothing, ""),
    ]
}

/// Formats the table for docs/planning.md.
fn table(compared: &[Comparison]) -> String {
    let mut text = String::from(
        "| setting | measured, s (range) | simulated, s | off | by flows, s | off | server's link, bytes off |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for one in compared {
        let percent = |off: f64| format!("{:+.1} %", off * 100.0);
        let (least, most) = (one.measured[0], one.measured[one.measured.len() - 1]);
        let bytes = one.bytes.map_or("–".to_owned(), |(measured, simulated)| {
            percent(simulated / measured - 1.0)
        });
        let _ = writeln!(
            text,
            "| {} | {:.2} ({least:.2}–{most:.2}) | {:.2} | {} | {:.2} | {} | {bytes} |",
            one.setting.name,
            one.median(),
            one.simulated,
            percent(one.off()),
            one.flow,
            percent(one.flow_off())
        );
    }
    text
}

struct SimulatorBench {
    weir: PathBuf,
    itself: PathBuf,
    folder: tempfile::TempDir,
    processors: Processors,
    /// Comparisons of the settings measured so far.
    compared: RefCell<Vec<Comparison>>,
    args: Args,
}

impl SimulatorBench {
    /// Row with the simulator's relative error in one setting.
    fn row(&self, setting: &'static Setting) -> Result<Row> {
        let compared = self.compare(setting)?;
        let row = Row {
            name: setting.name,
            value: Some(compared.off().abs()),
            unit: "share",
            goal: Goal::Nothing,
            floor: None,
            note: format!(
                "measured {:.3?} s, simulated {:.3} s, by flows {:.3} s",
                compared.measured, compared.simulated, compared.flow
            ),
        };
        self.compared.borrow_mut().push(compared);
        Ok(row)
    }

    /// Rows with the largest errors among the measured settings.
    fn summary(&self) -> Result<Vec<Row>> {
        let compared = self.compared.borrow();
        ensure!(
            !compared.is_empty(),
            "no setting was measured: select settings too, or all rows"
        );
        self.args.draw("simulator.svg", || {
            let points = compared.iter().map(|one| (one.median(), one.simulated));
            let points: Vec<(f64, f64)> = points.collect();
            let title = "Time of a run: simulated over measured";
            Ok(qq::svg(title, "measured, s", "simulated, s", &points))
        })?;
        Ok(rows(&compared))
    }

    fn compare(&self, setting: &'static Setting) -> Result<Comparison> {
        let rank = format!(
            "[{:?}, bench, simulator]",
            self.itself.display().to_string()
        );
        let text = setting.scenario(&rank);
        let file = self.folder.path().join(format!("{}.yaml", setting.name));
        files::write(&file, &text)?;
        let loaded = scenario::load("bench.yaml", &text);
        let scenario = loaded.map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
        let compute_s = match setting.work {
            Work::AllReduce(..) => 0.0,
            _ => self.processors.compute_s(setting.members),
        };
        let simulated = self.simulated(setting, &file, &text)?;
        let flow = flow::seconds(setting, &scenario, compute_s)?;
        let (mut measured, mut link) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let (took_s, bytes) = self.run(setting, &file)?;
            measured.push(took_s);
            link.push(bytes);
        }
        measured.sort_by(f64::total_cmp);
        let bytes = match (link[0], simulated.1) {
            (Some(_), Some(simulated)) => {
                let mut link: Vec<f64> = link.into_iter().flatten().collect();
                link.sort_by(f64::total_cmp);
                Some((link[link.len() / 2], simulated))
            }
            _ => None,
        };
        Ok(Comparison {
            setting,
            measured,
            simulated: simulated.0,
            flow,
            bytes,
        })
    }

    /// Simulated time in seconds (with losses, the median over seeds), and simulated bytes on the server's link.
    fn simulated(&self, setting: &Setting, file: &Path, text: &str) -> Result<(f64, Option<f64>)> {
        if setting.loss == 0.0 {
            return self.simulate(setting, file);
        }
        let other = self.folder.path().join("seed.yaml");
        let seeds = (1..=SEEDS).map(|seed| {
            let seeded = text.replacen("seed: 16", &format!("seed: {seed}"), 1);
            files::write(&other, seeded)?;
            self.simulate(setting, &other)
        });
        let mut all: Vec<(f64, Option<f64>)> = seeds.collect::<Result<_>>()?;
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(all[all.len() / 2])
    }

    /// Time of the slowest worker in a testbed in seconds, and bytes on the server's link.
    fn run(&self, setting: &Setting, file: &Path) -> Result<(f64, Option<f64>)> {
        let mut command = undisturbed(&self.weir);
        command.args(["run", "--json", "--report"]);
        command.arg(self.folder.path().join("page.html")).arg(file);
        if let Work::AllReduce(values, operations) = setting.work {
            command.env(rank::ASKED, format!("{values} {operations}"));
        }
        let report = json(&mut command)?;
        let metrics = &report["metrics"];
        let metric = |name: &str| {
            let value = metrics[name].as_f64();
            value.with_context(|| format!("no {name} in {report:#}"))
        };
        match setting.work {
            Work::AllReduce(..) => {
                let (mut begun, mut ended) = (0.0_f64, 0.0_f64);
                for rank in setting.workers() {
                    begun = begun.max(metric(&format!("command.{rank}.begun"))?);
                    ended = ended.max(metric(&format!("command.{rank}.ended"))?);
                }
                Ok((ended - begun, None))
            }
            _ => Ok((
                metric("training.took_ns")? / 1e9,
                Some(metric("training.server_link_bytes")?),
            )),
        }
    }

    fn simulate(&self, setting: &Setting, file: &Path) -> Result<(f64, Option<f64>)> {
        let mut command = Command::new(&self.weir);
        command.args(["simulate", "--json"]).arg(file);
        command.args(["--processors", &self.processors.count.to_string()]);
        if let Work::AllReduce(values, operations) = setting.work {
            command.args(["--all-reduce", &values.to_string()]);
            command.args(["--operations", &operations.to_string()]);
            let report = json(&mut command)?;
            let took = report["completed_s"].as_f64();
            return Ok((took.context("the transfers never end")?, None));
        }
        let ns = |seconds: f64| format!("{}ns", Duration::from_secs_f64(seconds).as_nanos());
        command.args(["--compute", &ns(self.processors.gradient_s)]);
        command.args(["--evaluate", &ns(self.processors.evaluate_s)]);
        let report = json(&mut command)?;
        ensure!(report["is_whole"] == true, "{report:#}");
        let members = report["members"].as_array().context("members")?;
        let workers = members.iter().filter(|member| !member["rank"].is_null());
        let ended = workers.filter_map(|worker| worker["ended_s"].as_f64());
        let links = report["links"].as_array().context("links")?;
        let of_server = links
            .iter()
            .filter(|link| link["from"] == Setting::SERVER || link["to"] == Setting::SERVER);
        let bytes = of_server.filter_map(|link| link["bytes"].as_f64()).sum();
        Ok((ended.fold(0.0, f64::max), Some(bytes)))
    }
}

/// A command at the highest priority that this user may set, among processes and, where Linux schedules sessions
/// (autogroups), among sessions, so that other programs disturb the figures less.
fn undisturbed(program: &Path) -> Command {
    const RAISED: &str = "echo -20 2>/dev/null >/proc/self/autogroup; exec nice -n -20 \"$@\"";
    let mut command = Command::new("setsid");
    command
        .args(["--wait", "sh", "-c", RAISED, "sh"])
        .arg(program);
    command
}

/// Parses the JSON that a command prints. A run prints figures even if its expectations fail or its
/// faults cannot be proved, as on an overloaded machine.
fn json(command: &mut Command) -> Result<Value> {
    let output = command.output().context("cannot run weir")?;
    if !matches!(output.status.code(), Some(0 | 1)) {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
