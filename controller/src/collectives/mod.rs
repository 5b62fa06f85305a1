//! Predicts the duration of collectives in a network, and their fastest algorithms, for `weir collectives plan`.

mod drawing;
mod model;
mod request;
mod text;
mod time_line;

use collectives::cost::choose::{Choice, ChooseError, Numbering, Offer, choose};
use collectives::cost::simulate::trace;
use collectives::cost::{EdgeId, ModelError, bounds};
use collectives::graph::Graph;
use collectives::{Action, Collective, ReduceOp, Schedule, build, offered};
use planner::network::NetworkError;
use planner::{Network, NodeId};
use serde::Serialize;

pub use drawing::svg;
use model::Modelled;
pub use request::{CollectiveKind, Inner, InsideBy, NUMBERINGS, Request, algorithms, words};

/// Maximum number of ranks in a prediction.
pub const MAX_RANKS: usize = 512;
/// Size in bytes of an element of the data, which is a vector of numbers.
const ELEMENT: usize = 4;

/// The predicted course of a collective with its fastest algorithm.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// Name of the collective, such as `all_reduce`.
    pub collective: &'static str,
    /// Size of the collective's data in bytes: of the vector, of all shards together, or of one rank's data for all others.
    pub bytes: u64,
    /// Name of each rank's host, by rank.
    pub ranks: Vec<String>,
    /// Rank of the root of a broadcast (it has the vector) or a reduce (it gets the sum); `None` for other collectives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<usize>,
    /// The fastest algorithm that the request allows, with its options.
    pub chosen: Candidate,
    /// The rank at each position of the algorithm's ring or tree; `None` if each rank's position is its own number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<usize>>,
    /// Lower bound of any algorithm's duration, in seconds.
    pub bound_s: f64,
    /// Cause of the lower bound in words, such as `the links of h1`.
    pub bound_by: String,
    /// Number of messages in the longest chain in which each message waits for the one before it.
    pub rounds: usize,
    /// All messages, in the order in which they begin.
    pub messages: Vec<PlannedMessage>,
    /// Directions of links that carry data, the most utilized first.
    pub links: Vec<Loaded>,
    /// Edges inside hosts (such as PCIe) that carry data, the most utilized first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Loaded>,
    /// All compared algorithms with their options, the fastest first.
    pub compared: Vec<Candidate>,
    /// Algorithms with their options that were not compared, as they have too many steps.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// An algorithm with its options, and its predicted duration.
#[derive(Debug, Clone, Serialize)]
pub struct Candidate {
    /// Name of the algorithm on the command line.
    pub algorithm: &'static str,
    /// Order in which the algorithm numbers the ranks: `plain`, `blocks` or `round-robin`.
    pub numbering: &'static str,
    /// Number of pieces (tiles) into which the algorithm cuts the data, so that their transfers overlap.
    pub tiles: usize,
    /// Predicted duration in seconds.
    pub predicted_s: f64,
}

/// An algorithm, with its options, that was not compared, as it has too many steps.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    /// Name of the algorithm on the command line.
    pub algorithm: &'static str,
    /// Order in which the algorithm numbers the ranks: `plain`, `blocks` or `round-robin`.
    pub numbering: &'static str,
    /// Number of pieces (tiles) into which the algorithm cuts the data, so that their transfers overlap.
    pub tiles: usize,
}

/// A message of a collective from one rank to another.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedMessage {
    /// Number of messages in the longest chain of dependent messages that ends with this one.
    pub round: usize,
    /// Rank of the sender.
    pub from: usize,
    /// Rank of the receiver.
    pub to: usize,
    /// Size of the message in bytes.
    pub bytes: u64,
    /// When the sender can begin the message, in seconds since the collective began.
    pub begin_s: f64,
    /// When the last byte of the message has left the sender, in seconds since the collective began.
    pub end_s: f64,
}

/// Load of an edge (a direction of a link, or a path inside a host) by a collective.
#[derive(Debug, Clone, Serialize)]
pub struct Loaded {
    /// Name of the edge: its two ends, or its host and kind.
    pub edge: String,
    /// The direction of a network link that the edge stands for; `None` for an edge inside a host.
    #[serde(skip)]
    pub arc: Option<planner::network::Arc>,
    /// Rate of the edge in bits per second.
    pub rate_bps: u64,
    /// Number of bytes that cross the edge during the collective.
    pub bytes: u64,
    /// Used share of the edge's capacity from the start until all messages are done, from 0 to 1.
    pub utilisation: f64,
}

/// Why a collective cannot be predicted.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There are fewer than 2 ranks or more than [`MAX_RANKS`]; contains their number.
    #[error("{0} ranks: 2 to {MAX_RANKS} are allowed")]
    Ranks(usize),
    /// A host has no link to a switch; contains the host's name.
    #[error("host `{0}` has no link to a switch")]
    NoLink(String),
    /// The NICs of a host cannot share its links evenly.
    #[error(
        "host `{host}` has {links} links, which {nics} NICs cannot share evenly: use a multiple of {links} NICs, or fewer"
    )]
    Nics {
        /// Name of the host.
        host: String,
        /// Requested number of NICs of each host.
        nics: usize,
        /// Number of links of the host.
        links: usize,
    },
    /// The requested root is not one of the ranks.
    #[error("the root is rank {root}; 0 to {} are allowed", .ranks - 1)]
    Root {
        /// Rank that the request names as the root.
        root: usize,
        /// Number of ranks of the collective.
        ranks: usize,
    },
    /// No algorithm that the request allows is available for this collective in this network.
    #[error("{collective} does not have this algorithm here; use one of {has}")]
    NotOffered {
        /// Name of the collective.
        collective: &'static str,
        /// Names of the available algorithms, separated by commas.
        has: String,
    },
    /// The requested numbering of ranks makes no difference to the allowed algorithms; contains the numbering's name.
    #[error(
        "`{0}` numbering has no effect here: all ranks are at one switch, or the algorithm does not depend on their order"
    )]
    Numbering(&'static str),
    /// The requested size in bytes exceeds the address space; contains the size.
    #[error("a size of {0} bytes is too large")]
    Size(u64),
    /// No route leads from one host to another.
    #[error(transparent)]
    Ways(#[from] NetworkError),
    /// The cost model of the network returned an error.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The comparison of algorithms returned an error, or found no algorithm.
    #[error(transparent)]
    Choose(#[from] ChooseError),
}

/// Predicts a collective of these hosts as `asked` requests: its fastest algorithm, the messages, and the load of each link.
///
/// # Errors
/// Returns [`PlanError`].
pub fn plan(network: &Network, hosts: &[NodeId], asked: &Request) -> Result<Prediction, PlanError> {
    let modelled = Modelled::new(network, hosts, asked.inner, asked.message_ns)?;
    let ranks = modelled.model.ranks();
    if asked.kind.has_root() && asked.root >= ranks {
        let root = asked.root;
        return Err(PlanError::Root { root, ranks });
    }
    let len = usize::try_from(asked.bytes.div_ceil(ELEMENT as u64));
    let len = len.map_err(|_| PlanError::Size(asked.bytes))?;
    let collective = asked.kind.collective(ranks, len, asked.root);
    let choice = choose(&collective, ELEMENT, ReduceOp::Sum, &modelled.model)?;
    let offers = allowed(&collective, &choice, asked)?;
    let best = offers[0];
    // The choice built and traced the same schedule successfully.
    let schedule = build(&collective, best.algorithm, &best.options).map_err(ChooseError::from)?;
    let (prediction, periods) = trace(&schedule, &modelled.model).map_err(ChooseError::from)?;
    let messages = messages(&schedule, &periods)?;
    let (bound_s, bound_by) = bound(&modelled, &collective);
    let loads = |is_link: bool| {
        let edges = (0..modelled.model.edges().len()).map(EdgeId);
        let edges = edges.filter(|edge| modelled.links.contains_key(edge) == is_link);
        let loaded = edges.map(|edge| Loaded {
            edge: modelled.name(edge),
            arc: modelled.links.get(&edge).map(|(arc, _)| *arc),
            rate_bps: modelled.model.edges()[edge.0].rate_bps,
            bytes: prediction.loads[edge.0].bytes,
            utilisation: prediction.loads[edge.0].utilisation,
        });
        // An edge without a rate models only a latency.
        let is_load = |of: &Loaded| of.bytes > 0 && of.rate_bps < u64::MAX;
        let mut loaded: Vec<Loaded> = loaded.filter(is_load).collect();
        loaded.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
        loaded
    };
    let host = |rank: usize| network.name(modelled.host(rank)).to_owned();
    Ok(Prediction {
        collective: collective.name(),
        bytes: asked.bytes,
        ranks: (0..ranks).map(host).collect(),
        root: asked.kind.has_root().then_some(asked.root),
        chosen: told(best),
        order: best.options.order.clone(),
        bound_s,
        bound_by,
        rounds: (messages.iter().map(|message| message.round))
            .max()
            .unwrap_or(0),
        messages,
        links: loads(true),
        inside: loads(false),
        compared: offers.iter().map(|offer| told(offer)).collect(),
        left_out: (choice.left_out.iter())
            .filter(|(algorithm, numbering, _)| {
                is_allowed(asked, *algorithm) && asked.numbering.is_none_or(|of| of == *numbering)
            })
            .map(|(algorithm, numbering, tiles)| LeftOut {
                algorithm: algorithm.word(),
                numbering: request::word(*numbering),
                tiles: *tiles,
            })
            .collect(),
    })
}

fn told(offer: &Offer) -> Candidate {
    Candidate {
        algorithm: offer.algorithm.word(),
        numbering: request::word(offer.numbering),
        tiles: offer.tiles,
        predicted_s: offer.prediction.time_s,
    }
}

fn is_allowed(asked: &Request, algorithm: collectives::Algorithm) -> bool {
    asked.algorithms.is_empty() || asked.algorithms.contains(&algorithm)
}

/// Returns the compared algorithms that the request allows, the fastest first; an error if there is none.
fn allowed<'c>(
    collective: &Collective,
    choice: &'c Choice,
    asked: &Request,
) -> Result<Vec<&'c Offer>, PlanError> {
    let offers = choice.offers.iter();
    let mut offers: Vec<&Offer> = offers
        .filter(|offer| is_allowed(asked, offer.algorithm))
        .collect();
    if offers.is_empty() {
        let has = offered(collective, true).into_iter();
        let has = has.filter(|of| choice.offers.iter().any(|offer| offer.algorithm == *of));
        let has: Vec<&str> = has.map(collectives::Algorithm::word).collect();
        return Err(PlanError::NotOffered {
            collective: collective.name(),
            has: has.join(", "),
        });
    }
    if let Some(numbering) = asked.numbering {
        // Options without effect were not tried a second time.
        let mut tried = choice.offers.iter();
        let has_levels = choice.best().options.hierarchy.is_some();
        let is_plain = numbering == Numbering::Blocks
            && has_levels
            && !tried.any(|offer| offer.numbering == numbering);
        let same = if is_plain {
            Numbering::Plain
        } else {
            numbering
        };
        offers.retain(|offer| offer.numbering == same);
        if offers.is_empty() {
            return Err(PlanError::Numbering(request::word(numbering)));
        }
    }
    Ok(offers)
}

/// Returns all messages of a schedule in the order in which they begin; `periods`: for each step, its times at each rank.
fn messages(
    schedule: &Schedule,
    periods: &[Vec<collectives::cost::simulate::Period>],
) -> Result<Vec<PlannedMessage>, PlanError> {
    let cost = |error| ChooseError::from(collectives::cost::simulate::CostError::from(error));
    let graph = Graph::new(schedule).map_err(cost)?;
    let rounds = graph.depths(schedule).map_err(cost)?;
    let mut messages = Vec::new();
    for (from, program) in schedule.programs.iter().enumerate() {
        for (step, what) in program.steps.iter().enumerate() {
            let Action::Put { to, source, .. } = what.action else {
                continue;
            };
            let period = periods[from][step];
            messages.push(PlannedMessage {
                round: rounds[graph.node(collectives::graph::At { rank: from, step })],
                from,
                to,
                bytes: (source.len * schedule.element_bytes) as u64,
                begin_s: period.begin_s,
                end_s: period.end_s,
            });
        }
    }
    messages.sort_by(|a, b| a.begin_s.total_cmp(&b.begin_s));
    Ok(messages)
}

/// Returns the lower bound of any algorithm's duration in seconds, and its cause in words.
fn bound(modelled: &Modelled<'_>, collective: &Collective) -> (f64, String) {
    let cuts = modelled.cuts().into_iter();
    let mut bounds: Vec<(f64, String)> = cuts
        .map(|(name, cut)| (cut.seconds(collective, ELEMENT), name))
        .collect();
    if let Collective::AllReduce { len, .. } = collective {
        let bytes = (len * ELEMENT) as u64;
        let all = bounds::all_reduce_s(modelled.hosts.len(), bytes, modelled.all_out_bps());
        bounds.push((all, "all hosts' links together".to_owned()));
    }
    if let Collective::Barrier { .. } = collective {
        bounds.push(farthest(modelled));
    }
    // The first of equal bounds is taken.
    let none = (0.0, "nothing".to_owned());
    bounds.into_iter().fold(none, |most, bound| {
        if bound.0 > most.0 * (1.0 + 1e-12) {
            bound
        } else {
            most
        }
    })
}

/// Returns the longest delay between two ranks in seconds, and a text that names the two: no barrier is faster.
fn farthest(modelled: &Modelled<'_>) -> (f64, String) {
    let (mut most_ns, mut name) = (0, String::new());
    let ranks = modelled.model.ranks();
    for (from, to) in (0..ranks).flat_map(|from| (0..ranks).map(move |to| (from, to))) {
        let route = modelled.model.route(from, to).unwrap_or_default();
        let delays = route
            .iter()
            .map(|edge| modelled.model.edges()[edge.0].delay_ns);
        let delay_ns: u64 = delays.sum();
        if delay_ns > most_ns {
            (most_ns, name) = (delay_ns, format!("the delay from rank {from} to rank {to}"));
        }
    }
    (most_ns as f64 * 1e-9, name)
}
