//! Arguments of `weir simulate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use scenario::units::Dimension;

use super::Protocols;

/// A training, or sums of a job, in virtual time.
#[derive(Debug, Args)]
#[command(
    after_help = "A simulation ends after an hour of its own time. What the file expects, and its limits, are not held against it. \
                  The exit code is 1 if not all members came to their end.\n\nWhat is modelled, and how near it is to a testbed: \
                  docs/planning.md."
)]
pub struct Simulate {
    /// The scenario; `-` is the standard input
    pub file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// All members share so many processors, as in a testbed on one machine. Without: each has its own
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub processors: Option<u16>,
    /// What a worker takes for its gradient, such as 5ms; a rank, between two sums
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub compute: Duration,
    /// What the server takes after each round, to see how good the weights are
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub evaluate: Duration,
    /// Of a scenario's job: sum so many values of 4 bytes over all ranks
    #[arg(long, value_name = "VALUES", value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    pub all_reduce: Option<u64>,
    /// So often, one after the other
    #[arg(long, value_name = "TIMES", default_value_t = 1, requires = "all_reduce",
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub operations: u64,
    /// Protocols of one's own
    #[command(flatten)]
    pub protocols: Protocols,
}

/// No simulation goes on for longer.
const LONGEST: Duration = Duration::from_secs(3600);

fn time(text: &str) -> Result<Duration, String> {
    let ns = super::quantity(text, Dimension::Duration)?;
    let time = Duration::from_nanos(ns);
    match time <= LONGEST {
        true => Ok(time),
        false => Err("a simulation ends after an hour of its own time".to_owned()),
    }
}
