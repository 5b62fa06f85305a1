//! Choice of algorithm, tiles and numbering for a collective.

use super::Model;
use super::simulate::{CostError, Prediction, simulate};
use crate::algorithms::{Algorithm, BuildError, Hierarchy, Options, build, numbering, offered};
use crate::collective::Collective;
use crate::schedule::{ReduceOp, Schedule};

/// Maximum number of steps of a schedule that is tried.
pub const MAX_TRIED_STEPS: usize = 1 << 18;
/// Maximum number of steps of a schedule with tiles that is tried.
pub const MAX_TILED_STEPS: usize = 1 << 16;
/// Numbers of tiles that are tried for a vector.
const TILES: [usize; 4] = [1, 4, 16, 64];

/// Order of the ranks in an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Numbering {
    /// In rank order.
    Plain,
    /// One node after the other.
    Blocks,
    /// One rank from each node in turn.
    RoundRobin,
}

/// A candidate: an algorithm, the options that build its schedule, and its predicted time.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Order of the ranks.
    pub numbering: Numbering,
    /// Number of tiles of the whole vector.
    pub tiles: usize,
    /// Options that build the schedule.
    pub options: Options,
    /// Predicted time and loads.
    pub prediction: Prediction,
}

/// All candidates that were tried, the fastest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The candidates, at least one.
    pub offers: Vec<Offer>,
    /// Candidates that were not tried, with more than [`MAX_TRIED_STEPS`] steps, or more than [`MAX_TILED_STEPS`] with tiles.
    pub left_out: Vec<(Algorithm, Numbering, usize)>,
}

impl Choice {
    /// The fastest candidate.
    pub fn best(&self) -> &Offer {
        &self.offers[0]
    }
}

/// Reason why no algorithm is chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// A schedule cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The model cannot predict a schedule.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// Every schedule has too many steps.
    #[error("no schedule of {0} ranks has at most {MAX_TRIED_STEPS} steps")]
    TooLarge(usize),
}

/// Tries all algorithms of a collective on a model, and ranks them by time. Of two that are equally fast the simpler one
/// comes first: by [`Algorithm`]'s order, then fewer tiles, then the plain order of ranks.
pub fn choose(
    collective: &Collective,
    element_bytes: usize,
    op: ReduceOp,
    model: &Model,
) -> Result<Choice, ChooseError> {
    let hierarchy = hierarchy(model);
    let whole = (0..collective.ranks())
        .map(|rank| collective.input_len(rank).max(collective.output_len(rank)))
        .max()
        .unwrap_or(0);
    let mut choice = Choice {
        offers: Vec::new(),
        left_out: Vec::new(),
    };
    for algorithm in offered(collective, hierarchy.is_some()) {
        for (numbering, order) in orders(hierarchy, algorithm) {
            for tiles in TILES {
                let tile = whole.div_ceil(tiles).max(1);
                // Tiles below one element give the same tiles as the previous number.
                if tiles > 1 && tile == whole.div_ceil(tiles / 4).max(1) {
                    continue;
                }
                let options = Options {
                    element_bytes,
                    op,
                    tile: (tiles > 1).then_some(tile),
                    order: order.clone(),
                    hierarchy: hierarchy.cloned(),
                };
                match tried(collective, algorithm, &options)? {
                    Some(schedule) => choice.offers.push(Offer {
                        algorithm,
                        numbering,
                        tiles,
                        prediction: simulate(&schedule, model)?,
                        options,
                    }),
                    None => choice.left_out.push((algorithm, numbering, tiles)),
                }
            }
        }
    }
    choice.offers.sort_by(|a, b| {
        let simple = |offer: &Offer| (offer.algorithm, offer.tiles, offer.numbering);
        let time = rounded(a).total_cmp(&rounded(b));
        time.then(simple(a).cmp(&simple(b)))
    });
    if choice.offers.is_empty() {
        return Err(ChooseError::TooLarge(collective.ranks()));
    }
    Ok(choice)
}

/// A time rounded to nine digits, so that smaller differences count as equal.
fn rounded(offer: &Offer) -> f64 {
    let time_s = offer.prediction.time_s;
    if time_s == 0.0 {
        return 0.0;
    }
    let unit = 10_f64.powi(time_s.log10().floor() as i32 - 9);
    (time_s / unit).round() * unit
}

fn tried(
    collective: &Collective,
    algorithm: Algorithm,
    options: &Options,
) -> Result<Option<Schedule>, BuildError> {
    match build(collective, algorithm, options) {
        Ok(schedule) => {
            let most = match options.tile {
                Some(_) => MAX_TILED_STEPS,
                None => MAX_TRIED_STEPS,
            };
            Ok(Some(schedule).filter(|schedule| schedule.len() <= most))
        }
        Err(BuildError::TooManySteps(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The model's hierarchy, if it has levels: several nodes, at least one with several ranks.
fn hierarchy(model: &Model) -> Option<&Hierarchy> {
    let has_levels =
        |nodes: &&Hierarchy| nodes.nodes.len() > 1 && nodes.nodes.len() < nodes.ranks();
    model.hierarchy.as_ref().filter(has_levels)
}

/// The orders that make a difference to an algorithm.
fn orders(
    hierarchy: Option<&Hierarchy>,
    algorithm: Algorithm,
) -> Vec<(Numbering, Option<Vec<usize>>)> {
    let mut orders = vec![(Numbering::Plain, None)];
    let ignores = matches!(
        algorithm,
        Algorithm::Direct | Algorithm::Hierarchical(_) | Algorithm::Dissemination
    );
    let Some(hierarchy) = hierarchy.filter(|_| !ignores) else {
        return orders;
    };
    let mut known: Vec<Vec<usize>> = vec![(0..hierarchy.ranks()).collect()];
    for (numbering, order) in [
        (Numbering::Blocks, numbering::blocks(&hierarchy.nodes)),
        (
            Numbering::RoundRobin,
            numbering::round_robin(&hierarchy.nodes),
        ),
    ] {
        if !known.contains(&order) {
            known.push(order.clone());
            orders.push((numbering, Some(order)));
        }
    }
    orders
}
