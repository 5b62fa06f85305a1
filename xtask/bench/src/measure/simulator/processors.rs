//! Measures the processor time of gradients and evaluations as in a run: after a sleep.
//!
//! A worker computes its gradient after a round's last answer wakes it. Its processor has idled or
//! done other work by then, so a gradient takes about twice as long as in a loop without pauses.

use std::hint::black_box;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use host_agent::train::{Batches, Digits, Recipe, accuracy, gradient, initial_parameters};

use super::undisturbed;
use crate::measure::support::median;

/// Environment variable with a worker's number; it makes this program measure as that worker.
const ASKED: &str = "WEIR_BENCH_GRADIENT";
/// Number of gradients that a process measures; the median counts.
const ROUNDS: usize = 40;
/// Sleep between two gradients: about the time of a round in the settings.
const PAUSE: Duration = Duration::from_millis(60);

/// Processors of this machine, and their time for computing.
#[derive(Debug, Clone, Copy)]
pub struct Processors {
    /// Time of one worker's gradient, in seconds.
    pub gradient_s: f64,
    /// Time of the server's evaluation of its weights, in seconds.
    pub evaluate_s: f64,
    pub count: usize,
}

impl Processors {
    /// Measures in as many processes as there are processors, since workers compute at the same time.
    pub fn measure(itself: &Path) -> Result<Self> {
        let count = std::thread::available_parallelism()?.get();
        let children = (0..count).map(|worker| {
            let mut command = undisturbed(itself);
            command.args(["bench", "simulator"]);
            command.env(ASKED, worker.to_string());
            command.stdout(Stdio::piped()).spawn()
        });
        let children: Vec<_> = children.collect::<Result<_, _>>()?;
        let mut of_all = Vec::new();
        for child in children {
            let output = child.wait_with_output()?;
            ensure!(output.status.success(), "gradients cannot be measured");
            let text = String::from_utf8(output.stdout)?;
            let seconds = text.split_whitespace().map(str::parse::<f64>);
            let seconds: Vec<f64> = seconds.collect::<Result<_, _>>()?;
            of_all.push((
                *seconds.first().context("no gradient")?,
                *seconds.get(1).context("no evaluation")?,
            ));
        }
        let mean = |of: fn(&(f64, f64)) -> f64| of_all.iter().map(of).sum::<f64>() / count as f64;
        Ok(Self {
            gradient_s: mean(|both| both.0),
            evaluate_s: mean(|both| both.1),
            count,
        })
    }

    /// Time in seconds in which `members` workers compute their gradients at the same time.
    pub fn compute_s(&self, members: usize) -> f64 {
        self.gradient_s * (members as f64 / self.count as f64).max(1.0)
    }
}

/// The worker's number if this process is to measure as a worker, by the environment variable; otherwise `None`.
pub fn asked() -> Option<u16> {
    std::env::var(ASKED).ok()?.parse().ok()
}

/// Measures as a worker, and prints the median times of gradients and of evaluations, in seconds.
pub fn run(worker: u16) -> Result<()> {
    let recipe = Recipe::default();
    let digits = Digits::load()?;
    let workers = worker + 1;
    let samples = digits.training.len();
    let mut batches = Batches::new(samples, worker, workers, recipe.batch, recipe.seed)?;
    let weights = initial_parameters(recipe.seed);
    let (mut gradients, mut evaluations) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        std::thread::sleep(PAUSE);
        let batch = batches.next_batch();
        let samples = batch.iter().map(|&index| &digits.training[index]);
        gradients.push(seconds(|| gradient(&weights, samples)));
        std::thread::sleep(PAUSE);
        evaluations.push(seconds(|| accuracy(&weights, &digits.held_out)));
    }
    println!("{} {}", median(gradients), median(evaluations));
    Ok(())
}

fn seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64()
}
