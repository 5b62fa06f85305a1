//! Arguments of `weir route`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use controller::route::By;
use planner::Method;

/// Where trainings are summed.
#[derive(Debug, Args)]
#[command(after_help = "Files: docs/planning.md.")]
pub struct Route {
    /// The network: a scenario or its topology (YAML), GraphML, or NetworkX's node-link JSON; `-` is the standard input
    pub topology: PathBuf,
    /// The trainings, in YAML: for each its `server` and its `workers`, by name or how many; with `--by goat` also its `gradient`
    pub trainings: PathBuf,
    /// The planner
    #[arg(
        long,
        default_value = "grid",
        value_name = "PLANNER",
        value_parser = PossibleValuesParser::new(By::names()).map(|name| by_name(&name))
    )]
    pub by: By,
    /// With `--by inart`: solve its program itself, for the best plan and its proof; small networks only
    #[arg(long, conflicts_with = "robust")]
    pub exact: bool,
    /// Prefer plans with which the loss of one switch touches few trainings; none is slower for it
    #[arg(long)]
    pub robust: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Draw the network, and how full its links are, into this SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// clap takes no other names.
fn by_name(name: &str) -> By {
    By::of(name).unwrap_or(By::Method(Method::Grid))
}
