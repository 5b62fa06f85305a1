//! Arguments of `weir route`, as clap parses them.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use controller::route::By;
use planner::Method;

/// Arguments of `weir route`.
#[derive(Debug, Args)]
#[command(after_help = "The format of the files: docs/planning.md.")]
pub struct Route {
    /// Network: a scenario or its topology (YAML), GraphML, or NetworkX's node-link JSON; `-` is the standard input
    pub topology: PathBuf,
    /// Trainings (YAML): each with its `server`, and its `workers` by name or number; for `--by goat` also its `gradient`
    pub trainings: PathBuf,
    /// The planner
    #[arg(
        long,
        default_value = "grid",
        value_name = "PLANNER",
        value_parser = PossibleValuesParser::new(By::names()).map(|name| by_name(&name))
    )]
    pub by: By,
    /// With `--by inart`: solve its integer program exactly, for an optimal plan with proof; small networks only
    #[arg(long, conflicts_with = "robust")]
    pub exact: bool,
    /// Prefer plans in which the loss of one switch affects few trainings; no training becomes slower
    #[arg(long)]
    pub robust: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Path of an SVG drawing: the network, and the utilization of its links
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Returns the planner of this name, which is valid, as clap rejects other names.
fn by_name(name: &str) -> By {
    By::from_name(name).unwrap_or(By::Method(Method::Grid))
}
