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

/// Maximum number of ranks.
pub const MAX_RANKS: usize = 512;
/// Size of an element in bytes.
const ELEMENT: usize = 4;

/// A prediction.
#[derive(Debug, Clone, Serialize)]
pub struct Prediction {
    /// Name of the collective.
    pub collective: &'static str,
    /// Size in bytes: of the vector, of all shards, or of a rank's data for all others.
    pub bytes: u64,
    /// The host of each rank.
    pub ranks: Vec<String>,
    /// Rank of the root, which has or gets the vector, if the collective has a root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<usize>,
    /// The fastest of the allowed algorithms.
    pub chosen: Candidate,
    /// Ranks by their position in the algorithm, if that differs from their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<usize>>,
    /// Lower bound of the duration, in seconds.
    pub bound_s: f64,
    /// The resource that causes the lower bound.
    pub bound_by: String,
    /// Number of rounds: length of the longest chain of messages that follow one another.
    pub rounds: usize,
    /// All messages by their start, then by their sender.
    pub messages: Vec<PlannedMessage>,
    /// Links with traffic, the fullest first.
    pub links: Vec<Loaded>,
    /// Edges inside hosts with traffic, the fullest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Loaded>,
    /// All compared algorithms, the fastest first.
    pub compared: Vec<Candidate>,
    /// Algorithms with too many steps to be tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A tried algorithm with its options.
#[derive(Debug, Clone, Serialize)]
pub struct Candidate {
    /// Word of the algorithm.
    pub algorithm: &'static str,
    /// Numbering of the ranks.
    pub numbering: &'static str,
    /// Number of tiles into which the data is cut.
    pub tiles: usize,
    /// Predicted duration in seconds.
    pub predicted_s: f64,
}

/// An algorithm, with its options, that was not tried.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    /// Word of the algorithm.
    pub algorithm: &'static str,
    /// Numbering of the ranks.
    pub numbering: &'static str,
    /// Number of tiles into which the data is cut.
    pub tiles: usize,
}

/// A message.
#[derive(Debug, Clone, Serialize)]
pub struct PlannedMessage {
    /// Length of the longest chain of messages that ends with this one.
    pub round: usize,
    /// Rank of the sender.
    pub from: usize,
    /// Rank of the receiver.
    pub to: usize,
    /// Size of the message in bytes.
    pub bytes: u64,
    /// When the message can begin, in seconds.
    pub begin_s: f64,
    /// When the last byte of the message has left, in seconds.
    pub end_s: f64,
}

/// Traffic on an edge.
#[derive(Debug, Clone, Serialize)]
pub struct Loaded {
    /// Name of the edge: its ends and its kind.
    pub edge: String,
    /// Direction of the link, if the edge is a link.
    #[serde(skip)]
    pub arc: Option<planner::network::Arc>,
    /// Rate of the edge in bits per second.
    pub rate_bps: u64,
    /// Number of bytes that cross the edge.
    pub bytes: u64,
    /// Used share of the edge's capacity until all messages are done.
    pub utilisation: f64,
}

/// Why nothing is predicted.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Too few ranks, or too many.
    #[error("{0} ranks: 2 to {MAX_RANKS} are allowed")]
    Ranks(usize),
    /// A host is not in the network.
    #[error("host `{0}` has no link to a switch")]
    NoLink(String),
    /// The number of NICs does not suit the number of links.
    #[error(
        "host `{host}` has {links} links, which {nics} NICs cannot share evenly: use a multiple of {links} NICs, or fewer"
    )]
    Nics {
        /// Name of the host.
        host: String,
        /// Requested number of NICs.
        nics: usize,
        /// Number of links of the host.
        links: usize,
    },
    /// The requested root is not a rank.
    #[error("the root is rank {root}; 0 to {} are allowed", .ranks - 1)]
    Root {
        /// Requested root.
        root: usize,
        /// Number of ranks.
        ranks: usize,
    },
    /// The collective does not have the requested algorithm here.
    #[error("{collective} does not have this algorithm here; use one of {has}")]
    NotOffered {
        /// Name of the collective.
        collective: &'static str,
        /// The algorithms that it has.
        has: String,
    },
    /// No allowed algorithm uses the requested numbering.
    #[error(
        "`{0}` numbering has no effect here: all ranks are at one switch, or the algorithm does not depend on their order"
    )]
    Numbering(&'static str),
    /// The size in elements exceeds the address space.
    #[error("a size of {0} bytes is too large")]
    Size(u64),
    /// No route leads from one host to another.
    #[error(transparent)]
    Ways(#[from] NetworkError),
    /// An error of the cost model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// No algorithm can be chosen.
    #[error(transparent)]
    Choose(#[from] ChooseError),
}

/// Predicts a collective of these hosts, with all data that the drawing needs.
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

/// The allowed algorithms, the fastest first; at least one.
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

/// All messages, by their start.
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

/// Lower bound of the duration, and its cause.
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

/// The latency bound: each rank needs data from every other one.
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
