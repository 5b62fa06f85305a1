//! Arguments of `weir simulate`, as clap parses them.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use scenario::units::Dimension;

use super::Protocols;

/// Arguments of `weir simulate`.
#[derive(Debug, Args)]
#[command(
    after_help = "A simulation ends after one hour of virtual time. It does not check `expect` and `limits` of the scenario. \
                  Exit code 1: a member did not finish.\n\nThe model, and its accuracy compared with a testbed: \
                  docs/planning.md."
)]
pub struct Simulate {
    /// Path of the scenario; `-` is the standard input
    pub file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Number of processors that all members share, as in a testbed on one machine; without, each member has its own
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub processors: Option<u16>,
    /// Time in which a worker computes its gradient, such as 5ms, or a rank between two all-reduces
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub compute: Duration,
    /// Time in which the server evaluates the weights after each round
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub evaluate: Duration,
    /// Number of 4-byte values in each all-reduce of the scenario's job; simulates the job instead of a training
    #[arg(long, value_name = "VALUES", value_parser = clap::value_parser!(u64).range(1..=1 << 28))]
    pub all_reduce: Option<u64>,
    /// Number of all-reduces, run one after the other
    #[arg(long, value_name = "TIMES", default_value_t = 1, requires = "all_reduce",
        value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub operations: u64,
    /// Folders of protocols besides the built-in ones.
    #[command(flatten)]
    pub protocols: Protocols,
}

/// Maximum of `--compute` and `--evaluate`.
const LONGEST: Duration = Duration::from_secs(3600);

fn time(text: &str) -> Result<Duration, String> {
    let ns = super::quantity(text, Dimension::Duration)?;
    let time = Duration::from_nanos(ns);
    match time <= LONGEST {
        true => Ok(time),
        false => Err("expected at most 1h: a simulation ends after this time".to_owned()),
    }
}
