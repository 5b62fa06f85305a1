//! `allreduce/ddp`: eight processes of DistributedDataParallel over links of 200 Mbit/s. The switch and
//! Gloo sum their gradients in turn, in one run of one script (`host-agent/python/bench/ddp.py`).
//!
//! Two checks compare what the trainings learn. The gradients of the first step must be within weir's stated error
//! bound, and so, scaled by the learning rate, must the weights, up to the rounding of the step itself. In later steps
//! training amplifies rounding, so Gloo trains three times, each time with another order of summation. weir's distance
//! from the first of Gloo's runs must be at most [`FACTOR`] times the distance of Gloo's runs from each other.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::super::row::{Goal, Row};
use super::machine::{self, CpuSnapshot};
use super::network::{RankNetwork, copy_package};
use super::ranks::{PYTHON, read_lines};
use super::{AllReduceBench, AllReduceSetting, loss_plot, shaped};

pub const NAMES: &[&str] = &["allreduce/ddp", "allreduce/ddp_apart"];

const DATA: &str = "/usr/share/datasets/fashion-mnist";
const STEPS: usize = 150;
const LEARNING_RATE: f64 = 0.1;
/// Trainings, as `BACKEND:STRIDE`: another stride sums the same parts of the data in another order.
const RUNS: [&str; 5] = ["alone:1", "gloo:1", "weir:1", "gloo:3", "gloo:5"];
const ALONE: usize = 0;
const GLOO: usize = 1;
const WEIR: usize = 2;
/// Indices in [`RUNS`] of the trainings that differ by rounding alone.
const REFERENCES: [usize; 3] = [GLOO, 3, 4];
/// Maximum distance of weir's run from Gloo's, as a multiple of the distance among Gloo's runs up to the same step.
const FACTOR: f64 = 4.0;
/// Number of first steps whose time does not count: DDP rearranges its buckets after the first step.
const FIRST_STEPS: usize = 5;

pub const SETTING: AllReduceSetting = AllReduceSetting {
    name: "ddp",
    backends: &[],
    values: 0,
    ..shaped::SETTING
};

pub fn run(bench: &AllReduceBench) -> Result<Vec<Row>> {
    ensure!(
        Path::new(DATA).is_dir(),
        "{DATA} is missing: apt-get install dataset-fashion-mnist"
    );
    let report = bench.run_in_namespace(SETTING.name)?;
    let (runs, weights_apart) = parse(&report)?;
    bench.args.draw("ddp-loss.svg", || {
        Ok(loss_plot::svg(&[
            ("weir", &runs[WEIR].losses, &runs[WEIR].seconds),
            ("Gloo", &runs[GLOO].losses, &runs[GLOO].seconds),
        ]))
    })?;
    let [alone_s, gloo_s, weir_s] = [ALONE, GLOO, WEIR].map(|run| runs[run].step_s());
    let exchange = |step_s: f64| 100.0 * (1.0 - alone_s / step_s);
    let learned = judge(&runs, &weights_apart)?;
    let weir = &runs[WEIR];
    Ok(vec![
        Row {
            name: NAMES[0],
            value: Some(weir_s / gloo_s),
            unit: "times",
            goal: Goal::AtMost(1.0),
            floor: Some(alone_s / gloo_s),
            note: format!(
                "a step's time by the switch, by Gloo's: {:.1} by {:.1} ms, of which {:.0} % and {:.0} % are exchange (without any \
                 {:.1} ms, the floor); {} ranks, {} values, {STEPS} steps, links of 200 Mbit/s; {}",
                1e3 * weir_s,
                1e3 * gloo_s,
                exchange(weir_s),
                exchange(gloo_s),
                1e3 * alone_s,
                SETTING.ranks,
                weir.values,
                machine::note(&report["machine"])
            ),
        },
        Row {
            name: NAMES[1],
            value: Some(learned.worst),
            unit: "times",
            goal: Goal::AtMost(FACTOR),
            floor: None,
            note: format!(
                "how far weir's losses and last weights are from Gloo's, by how far three runs of Gloo that sum in other orders are \
                 apart: losses up to {:.1e} and {:.1e}, last weights {:.1e} and {:.1e}; the first step's gradient is off by \
                 {:.2e}, within the bound of {:.2e}, Gloo's by {:.2e}; last losses {:.4} and {:.4}",
                learned.losses_apart,
                learned.losses_rounding,
                weights_apart[GLOO][WEIR],
                learned.weights_rounding,
                weir.first_off,
                weir.first_bound.unwrap_or(f64::NAN),
                runs[GLOO].first_off,
                weir.losses[STEPS - 1],
                runs[GLOO].losses[STEPS - 1]
            ),
        },
    ])
}

/// Trains in the network namespace; returns the reports of the ranks, and the distances of the final weights among the runs.
pub fn measure(weir: &Path, native: &Path) -> Result<Value> {
    let folder = tempfile::tempdir()?;
    copy_package(folder.path(), native)?;
    let network = RankNetwork::create(&SETTING, weir)?;
    let before = CpuSnapshot::now()?;
    let job = network.scenario.jobs.first().context("a job")?;
    let first = &network.scenario.topology.hosts[0];
    let mut ranks = Vec::new();
    for (rank, host) in network.hosts.iter().enumerate() {
        let mut command = Command::new(PYTHON);
        command.arg("ddp.py").current_dir(folder.path());
        for (name, value) in [
            ("--runs", RUNS.join(",")),
            ("--data", DATA.to_owned()),
            ("--steps", STEPS.to_string()),
            ("--lr", LEARNING_RATE.to_string()),
            ("--rank", rank.to_string()),
            ("--ranks", SETTING.ranks.to_string()),
            ("--at", format!("{}:29500", first.ip)),
        ] {
            command.args([name, &value]);
        }
        command.env("PYTHONPATH", folder.path());
        command.env("GLOO_SOCKET_IFNAME", "eth0");
        command.envs(job.environment(&format!("r{rank}")));
        ranks.push(host.spawn(command)?);
    }
    let deadline = Instant::now() + SETTING.patience;
    let report = ranks.iter_mut().enumerate();
    let report = report.map(|(rank, process)| {
        read_lines(process, deadline).with_context(|| format!("rank {rank}"))
    });
    let report: Vec<Vec<Value>> = report.collect::<Result<_>>()?;
    let machine = before.usage_since()?;
    let mut weights = Vec::new();
    for name in RUNS {
        let file = folder
            .path()
            .join(format!("{}.f32", name.replace(':', "-")));
        let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let words = bytes
            .chunks_exact(4)
            .map(|word| [word[0], word[1], word[2], word[3]]);
        weights.push(words.map(f32::from_le_bytes).collect::<Vec<f32>>());
    }
    let apart: Vec<Vec<f64>> = weights
        .iter()
        .map(|one| weights.iter().map(|other| most_apart(one, other)).collect())
        .collect();
    Ok(json!({"ranks": report, "weights_apart": apart, "machine": machine}))
}

fn most_apart(one: &[f32], other: &[f32]) -> f64 {
    if one.len() != other.len() {
        return f64::INFINITY;
    }
    let apart = one
        .iter()
        .zip(other)
        .map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    apart.fold(0.0, worse)
}

/// The larger number; NaN counts as larger than any number.
fn worse(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

/// One training, with the figures of all ranks combined.
#[derive(Debug, Clone)]
struct TrainingRun {
    /// Loss of each step, as the mean of the ranks.
    losses: Vec<f64>,
    /// Duration of each step, in seconds: the mean of the ranks, since all ranks end a step together.
    seconds: Vec<f64>,
    /// Largest error of the mean gradient in the first step, among the ranks.
    first_off: f64,
    /// Error bound that weir states for the first step's gradient; `None` for another backend.
    first_bound: Option<f64>,
    values: u64,
}

impl TrainingRun {
    fn from_ranks(name: &str, ranks: &[&Value]) -> Result<TrainingRun> {
        ensure!(
            ranks.iter().all(|rank| rank["run"] == name),
            "a rank has not reported this run"
        );
        let first = ranks.first().context("no rank")?;
        ensure!(
            name.starts_with("alone") || ranks.iter().all(|rank| rank["digest"] == first["digest"]),
            "the final weights of the ranks differ"
        );
        // Sorted by the parts of the data, so that all runs add the same numbers in the same order.
        let mut by_part = ranks.to_vec();
        by_part.sort_by_key(|rank| rank["part"].as_u64());
        let parts = by_part.iter().map(|rank| rank["part"].as_u64());
        ensure!(
            parts.eq((0..ranks.len() as u64).map(Some)),
            "the ranks have not trained with all parts of the data"
        );
        let series = |name: &'static str| {
            let of_rank = |rank: &&Value| {
                let values = rank[name].as_array()?;
                let values: Option<Vec<f64>> = values.iter().map(Value::as_f64).collect();
                values.filter(|values| values.len() == STEPS)
            };
            let all: Option<Vec<Vec<f64>>> = by_part.iter().map(of_rank).collect();
            all.with_context(|| format!("{name}: {STEPS} numbers of each rank"))
        };
        let (losses, step_s) = (series("losses")?, series("step_s")?);
        let mean = |all: &[Vec<f64>], step: usize| {
            all.iter().map(|of_rank| of_rank[step]).sum::<f64>() / ranks.len() as f64
        };
        let ended = |at_s: &mut f64, step: usize| {
            *at_s += mean(&step_s, step);
            Some(*at_s)
        };
        let off = ranks
            .iter()
            .map(|rank| rank["first_off"].as_f64().unwrap_or(f64::NAN));
        Ok(TrainingRun {
            losses: (0..STEPS).map(|step| mean(&losses, step)).collect(),
            seconds: (0..STEPS).scan(0.0, ended).collect(),
            first_off: off.fold(0.0, worse),
            first_bound: first["first_bound"].as_f64(),
            values: first["values"].as_u64().context("values")?,
        })
    }

    fn step_s(&self) -> f64 {
        let (from, to) = (self.seconds[FIRST_STEPS - 1], self.seconds[STEPS - 1]);
        (to - from) / (STEPS - FIRST_STEPS) as f64
    }
}

/// Parses the trainings, in order, and the distances of the final weights between any two trainings.
fn parse(report: &Value) -> Result<(Vec<TrainingRun>, Vec<Vec<f64>>)> {
    let ranks = report["ranks"].as_array().context("ranks")?;
    ensure!(ranks.len() == SETTING.ranks, "a rank is missing");
    let run = |(number, name): (usize, &&str)| {
        let lines: Vec<&Value> = ranks.iter().map(|lines| &lines[number]).collect();
        TrainingRun::from_ranks(name, &lines).with_context(|| (*name).to_owned())
    };
    let summed = ranks
        .iter()
        .map(|lines| &lines[RUNS.len()]["counters"]["operations"]);
    ensure!(
        summed
            .clone()
            .all(|operations| operations.as_u64() >= Some(STEPS as u64)),
        "the switch has not summed the gradients: {:?} operations",
        summed.collect::<Vec<_>>()
    );
    let apart: Vec<Vec<f64>> = serde_json::from_value(report["weights_apart"].clone())?;
    ensure!(
        apart.len() == RUNS.len() && apart.iter().all(|of| of.len() == RUNS.len()),
        "weights of a run are missing"
    );
    Ok((
        RUNS.iter().enumerate().map(run).collect::<Result<_>>()?,
        apart,
    ))
}

/// Difference between what weir's training and Gloo's trainings learn.
#[derive(Debug, PartialEq)]
struct TrainingDistance {
    /// Largest ratio, over losses and final weights, of weir's distance from Gloo to the distance that rounding causes.
    worst: f64,
    losses_apart: f64,
    losses_rounding: f64,
    weights_rounding: f64,
}

/// Compares weir's training with Gloo's. A first step beyond its error bound is an error, whatever the ratio.
fn judge(runs: &[TrainingRun], weights_apart: &[Vec<f64>]) -> Result<TrainingDistance> {
    let weir = &runs[WEIR];
    let bound = weir.first_bound.context("weir has reported no bound")?;
    ensure!(
        weir.first_off <= bound,
        "the gradient of the first step is off by {:e}, beyond weir's bound of {bound:e}",
        weir.first_off
    );
    let pairs = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| (REFERENCES[a], REFERENCES[b]));
    let apart =
        |(a, b): (usize, usize), step: usize| (runs[a].losses[step] - runs[b].losses[step]).abs();
    let mut learned = TrainingDistance {
        worst: 0.0,
        losses_apart: 0.0,
        losses_rounding: 0.0,
        weights_rounding: pairs
            .map(|(a, b)| weights_apart[a][b])
            .into_iter()
            .fold(0.0, worse),
    };
    for step in 0..STEPS {
        let now = pairs
            .map(|pair| apart(pair, step))
            .into_iter()
            .fold(0.0, worse);
        learned.losses_rounding = worse(learned.losses_rounding, now);
        let by_weir = apart((GLOO, WEIR), step);
        learned.losses_apart = worse(learned.losses_apart, by_weir);
        // A loss is a binary32: distances below its last place are not meaningful.
        let place = runs[GLOO].losses[step].abs() * f64::from(f32::EPSILON);
        learned.worst = worse(
            learned.worst,
            by_weir / worse(learned.losses_rounding, place),
        );
    }
    ensure!(
        learned.weights_rounding > 0.0,
        "Gloo's sums in other orders have the same bits, so the effect of rounding is not known"
    );
    let weights = weights_apart[GLOO][WEIR] / learned.weights_rounding;
    learned.worst = worse(learned.worst, weights);
    Ok(learned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(off: f64) -> TrainingRun {
        TrainingRun {
            losses: (0..STEPS)
                .map(|step| 2.0 / (step + 1) as f64 + off * step as f64)
                .collect(),
            seconds: (1..=STEPS).map(|step| step as f64 * 0.1).collect(),
            first_off: 1e-9,
            first_bound: Some(2e-9),
            values: 1,
        }
    }

    fn runs(weir_off: f64) -> Vec<TrainingRun> {
        [0.0, 0.0, weir_off, 1e-6, -1e-6].map(run).to_vec()
    }

    fn weights(weir_off: f64) -> Vec<Vec<f64>> {
        let at = [9.0, 0.0, weir_off, 1e-5, -1e-5_f64];
        at.map(|a| at.map(|b| (a - b).abs()).to_vec()).to_vec()
    }

    #[test]
    fn rounding_alone_sets_the_scale() {
        let same = judge(&runs(3e-6), &weights(2e-5)).unwrap();
        assert!((1.4..1.6).contains(&same.worst), "{same:?}");
        let other_losses = judge(&runs(1e-5), &weights(0.0)).unwrap();
        assert!(other_losses.worst > FACTOR, "{other_losses:?}");
        let other_weights = judge(&runs(0.0), &weights(1e-4)).unwrap();
        assert!(other_weights.worst > FACTOR, "{other_weights:?}");
        // A single early loss differs, before rounding has any effect.
        let mut early = runs(0.0);
        early[WEIR].losses[1] += 1e-4;
        assert!(judge(&early, &weights(0.0)).unwrap().worst > FACTOR);
        early[WEIR].losses[1] = f64::NAN;
        assert!(judge(&early, &weights(0.0)).unwrap().worst.is_nan());
    }

    #[test]
    fn a_first_step_beyond_its_bound_is_an_error() {
        let mut off = runs(0.0);
        off[WEIR].first_off = 3e-9;
        assert!(judge(&off, &weights(0.0)).is_err());
        off[WEIR].first_off = f64::NAN;
        assert!(judge(&off, &weights(0.0)).is_err());
        off[WEIR] = TrainingRun {
            first_bound: None,
            ..run(0.0)
        };
        assert!(judge(&off, &weights(0.0)).is_err());
        let mut no_measure = weights(0.0);
        no_measure.iter_mut().for_each(|of| of.fill(0.0));
        assert!(judge(&runs(0.0), &no_measure).is_err());
    }

    fn report() -> Value {
        let line = |name: &str, rank: usize| {
            json!({
                "run": name, "part": (rank * 3) % SETTING.ranks, "losses": vec![rank as f64; STEPS],
                "step_s": vec![0.1 + 0.01 * rank as f64; STEPS], "first_off": 1e-9, "first_bound": 2e-9, "values": 7,
                "digest": "d",
            })
        };
        let lines = |rank: usize| {
            let mut lines: Vec<Value> = RUNS.iter().map(|name| line(name, rank)).collect();
            lines.push(json!({"counters": {"operations": STEPS}}));
            lines
        };
        let ranks: Vec<Vec<Value>> = (0..SETTING.ranks).map(lines).collect();
        json!({"ranks": ranks, "weights_apart": weights(0.0), "machine": {}})
    }

    #[test]
    fn a_run_is_the_mean_of_its_ranks() {
        let (runs, _) = parse(&report()).unwrap();
        assert!((runs[WEIR].losses[0] - 3.5).abs() < 1e-12);
        assert!((runs[WEIR].step_s() - 0.135).abs() < 1e-9);
    }

    #[test]
    fn incomplete_trainings_are_errors() {
        let refused = |path: &str, value: Value| {
            let mut report = report();
            *report.pointer_mut(path).unwrap() = value;
            parse(&report).is_err()
        };
        assert!(refused("/ranks/3/2/digest", json!("other")));
        assert!(refused("/ranks/3/2/part", json!(0)));
        assert!(refused("/ranks/3/2/losses", json!([1.0])));
        assert!(refused("/ranks/3/2/run", json!("gloo:1")));
        assert!(refused("/ranks/3/5/counters/operations", json!(0)));
        // Without an exchange, each rank has its own weights.
        assert!(!refused("/ranks/3/0/digest", json!("other")));
    }
}
