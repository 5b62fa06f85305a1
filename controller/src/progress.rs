//! Progress of long work, on the standard error: a bar on a terminal, a line per step elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Shows what runs and how far it is.
pub struct Progress {
    bar: Option<ProgressBar>,
    name: String,
    quiet: bool,
}

impl Progress {
    /// Says nothing if `quiet`.
    pub fn new(quiet: bool) -> Progress {
        Progress {
            bar: None,
            name: String::new(),
            quiet,
        }
    }

    /// A step begins.
    pub fn begin(&mut self, name: &str, length: u64) {
        name.clone_into(&mut self.name);
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{prefix:>12} {bar:30} {pos}/{len}  {msg}")
        {
            bar.set_style(style);
        }
        bar.set_prefix(name.to_owned());
        bar.set_message("starting");
        bar.enable_steady_tick(Duration::from_millis(200));
        self.bar = Some(bar);
    }

    /// So far it is.
    pub fn advance(&mut self, position: u64, message: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
            bar.set_message(message.to_owned());
        }
    }

    /// The step is done.
    pub fn end(&mut self, message: &str) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if !self.quiet {
            softswitch::stderr::tell(format_args!("{:>12}  {message}\n", self.name));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
