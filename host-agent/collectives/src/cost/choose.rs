//! Chooses the algorithm, number of tiles and order of ranks with which a collective is fastest on a model.

use super::Model;
use super::simulate::{CostError, Prediction, simulate};
use crate::algorithms::{Algorithm, BuildError, Hierarchy, Options, build, numbering, offered};
use crate::collective::Collective;
use crate::schedule::{ReduceOp, Schedule};

/// Maximum number of steps of a schedule whose time is predicted.
pub const MAX_TRIED_STEPS: usize = 1 << 18;
/// Maximum number of steps of a schedule with several tiles whose time is predicted.
pub const MAX_TILED_STEPS: usize = 1 << 16;
/// Numbers of tiles into which a vector is divided, each of which is tried.
const TILES: [usize; 4] = [1, 4, 16, 64];

/// Order of the ranks in an algorithm, relative to the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Numbering {
    /// Ranks in their own order: 0, 1, 2, …
    Plain,
    /// All ranks of one node, then those of the next node.
    Blocks,
    /// One rank of each node in turn, then the next rank of each node, and so on.
    RoundRobin,
}

/// A candidate: an algorithm, the options that build its schedule, and its predicted time.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Algorithm of the candidate.
    pub algorithm: Algorithm,
    /// Order of the ranks in the algorithm.
    pub numbering: Numbering,
    /// Number of tiles into which the whole vector is divided.
    pub tiles: usize,
    /// Options with which the schedule is built.
    pub options: Options,
    /// Predicted time of the schedule, and loads of the edges.
    pub prediction: Prediction,
}

/// Result of a choice: all candidates that were tried, the fastest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The candidates in order of predicted time; at least one.
    pub offers: Vec<Offer>,
    /// Candidates with too many steps ([`MAX_TRIED_STEPS`], [`MAX_TILED_STEPS`]): algorithm, order, number of tiles.
    pub left_out: Vec<(Algorithm, Numbering, usize)>,
}

impl Choice {
    /// The candidate with the shortest predicted time.
    pub fn best(&self) -> &Offer {
        &self.offers[0]
    }
}

/// Reason why no algorithm can be chosen for a collective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// The schedule of a candidate cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The time of a candidate cannot be predicted on this model.
    #[error(transparent)]
    Cost(#[from] CostError),
    /// The schedule of every candidate has too many steps; the value is the number of ranks.
    #[error("no schedule of {0} ranks has at most {MAX_TRIED_STEPS} steps")]
    TooLarge(usize),
}

/// Predicts the time of all algorithms of a collective on a model, and ranks them. Of two that are equally fast the simpler one
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

/// Predicted time of a candidate, rounded to nine digits so that smaller differences count as equal.
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

/// The model's hierarchy, if it has two levels: several nodes, at least one with several ranks.
fn hierarchy(model: &Model) -> Option<&Hierarchy> {
    let has_levels =
        |nodes: &&Hierarchy| nodes.nodes.len() > 1 && nodes.nodes.len() < nodes.ranks();
    model.hierarchy.as_ref().filter(has_levels)
}

/// The orders of ranks that can change the time of an algorithm.
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
