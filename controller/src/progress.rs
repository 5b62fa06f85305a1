//! Shows the progress of a long command on standard error: a bar on a terminal, otherwise a line per step.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

use crate::experiment::carry_out::Iteration;
use crate::experiment::carry_out::workload::Position;
use crate::experiment::{ExperimentError, Observer};
use crate::report::{grouped, percent};

/// Minimum number of frames for which a printed line announces that they are judged, if no progress bar shows it.
const MANY_FRAMES: u64 = 10_000;

/// Display of the current step of a command (such as a scenario's run) and of its progress.
pub struct Progress {
    bar: Option<ProgressBar>,
    name: String,
    quiet: bool,
}

impl Progress {
    /// Creates the display, with no step yet; it prints nothing if `quiet`.
    pub fn new(quiet: bool) -> Progress {
        Progress {
            bar: None,
            name: String::new(),
            quiet,
        }
    }

    /// Creates the display with a step that has no bar: only its end is printed.
    pub fn without_bar(name: &str, quiet: bool) -> Progress {
        let mut progress = Progress::new(quiet);
        name.clone_into(&mut progress.name);
        progress
    }

    /// Begins a step of `length` units, such as iterations or requests; `unit` is their name.
    pub fn begin(&mut self, name: &str, length: u64, unit: &str) {
        name.clone_into(&mut self.name);
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(&template(unit)) {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.set_message("starting");
        bar.enable_steady_tick(Duration::from_millis(200));
        self.bar = Some(bar);
    }

    /// Shows on the bar how far the workload has come.
    fn advance(&mut self, position: &Position) {
        if let Some(bar) = &self.bar {
            bar.set_length(position.total);
            bar.set_position(position.done);
            bar.set_message(position.message.clone());
        }
    }

    /// Announces that the captured frames of a run are judged now; few frames are judged at once, without a message.
    pub fn judge(&mut self, frames: u64) {
        let message = format!("judging {} frames", grouped(frames));
        match &self.bar {
            Some(bar) => bar.set_message(message),
            None if frames >= MANY_FRAMES && !self.quiet => {
                cli_io::stderr::tell(format_args!("{:>12}  {message}\n", self.name));
            }
            None => {}
        }
    }

    /// Ends the step: removes its bar, and prints its name with `message`.
    pub fn end(&mut self, message: &str) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if !self.quiet {
            cli_io::stderr::tell(format_args!("{:>12}  {message}\n", self.name));
        }
    }
}

fn template(unit: &str) -> String {
    format!("{{prefix:>12}} {{bar:24}} {{pos}}/{{len}} {unit}  {{msg}}")
}

/// Shows the run of a scenario as one step.
impl Observer for Progress {
    fn begins(&mut self, scenario: &str, position: &Position) {
        self.begin(scenario, position.total, position.unit);
    }

    fn iteration(&mut self, now: &mut Iteration<'_>) -> Result<(), ExperimentError> {
        self.advance(&now.position);
        if let Some(bar) = self.bar.as_ref().filter(|_| now.hits > 0) {
            let hits = grouped(now.hits);
            bar.set_message(format!(
                "{}, faults hit {hits} packets",
                now.position.message
            ));
        }
        Ok(())
    }

    fn ends(&mut self, wall: Duration, accuracy: Option<f64>) {
        let mut message = format!("{:.1} s", wall.as_secs_f64());
        if let Some(accuracy) = accuracy {
            message += &format!(", accuracy {}", percent(accuracy));
        }
        self.end(&message);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_the_workload() {
        let mut progress = Progress::new(false);
        progress.bar = Some(ProgressBar::hidden());
        progress.advance(&Position {
            unit: "iterations",
            done: 5,
            total: 30,
            message: "accuracy 80.0 %".to_owned(),
        });
        let bar = progress.bar.as_ref().expect("a bar");
        assert_eq!((bar.position(), bar.length()), (5, Some(30)));
        assert!(ProgressStyle::with_template(&template("iterations")).is_ok());
    }
}
