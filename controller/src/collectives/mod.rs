//! How long collectives take in a network, and by which algorithm: what `weir collectives plan` says.
//!
//! | file | what |
//! |---|---|
//! | `asked.rs` | what is asked for |
//! | `model.rs` | a network as the cost model of crate `collectives` has it |
//! | `text.rs` | what came of it, for people |
//! | `drawing.rs`, `time_line.rs` | the same as SVG: links by load, and who sends when |

mod asked;
mod drawing;
mod model;
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

pub use asked::{Asked, Inner, InsideBy, Kind, NUMBERINGS, algorithms, words};
pub use drawing::svg;
use model::Modelled;

/// The most ranks that are planned for.
pub const MAX_RANKS: usize = 512;
/// Bytes of an element.
const ELEMENT: usize = 4;

/// What is predicted.
#[derive(Debug, Clone, Serialize)]
pub struct Planned {
    /// Which collective.
    pub collective: &'static str,
    /// Of the vector, of all shards, or of what a rank has for all others.
    pub bytes: u64,
    /// The host of each rank.
    pub ranks: Vec<String>,
    /// Who has it, or gets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<usize>,
    /// The fastest of those that may be.
    pub chosen: Told,
    /// Ranks by their place in the algorithm, if that is not their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<usize>>,
    /// Nothing is faster.
    pub bound_s: f64,
    /// What says so.
    pub bound_by: String,
    /// Messages that follow one another.
    pub rounds: usize,
    /// All messages by when they begin; then by who sends.
    pub messages: Vec<Message>,
    /// Links that something passes, the fullest first.
    pub links: Vec<Loaded>,
    /// What is inside hosts and used, the fullest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<Loaded>,
    /// All that were compared, the fastest first.
    pub compared: Vec<Told>,
    /// What has too many steps to be tried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// An algorithm with all that was tried of it.
#[derive(Debug, Clone, Serialize)]
pub struct Told {
    /// Its word.
    pub algorithm: &'static str,
    /// How ranks are numbered.
    pub numbering: &'static str,
    /// Into how many tiles the whole is cut.
    pub tiles: usize,
    /// How long it takes.
    pub predicted_s: f64,
}

/// What was not tried.
#[derive(Debug, Clone, Serialize)]
pub struct LeftOut {
    /// The algorithm's word.
    pub algorithm: &'static str,
    /// How ranks are numbered.
    pub numbering: &'static str,
    /// Into how many tiles the whole is cut.
    pub tiles: usize,
}

/// A message.
#[derive(Debug, Clone, Serialize)]
pub struct Message {
    /// How many messages it has to wait for, one after another, and itself.
    pub round: usize,
    /// Who sends.
    pub from: usize,
    /// Who gets it.
    pub to: usize,
    /// How much.
    pub bytes: u64,
    /// When it could begin.
    pub begin_s: f64,
    /// When its last byte has left.
    pub end_s: f64,
}

/// What passes an edge.
#[derive(Debug, Clone, Serialize)]
pub struct Loaded {
    /// From where to where; what it is.
    pub edge: String,
    /// Of a link: which direction of which.
    #[serde(skip)]
    pub arc: Option<planner::network::Arc>,
    /// What it carries.
    pub rate_bps: u64,
    /// What passes.
    pub bytes: u64,
    /// The share of what it could carry until all is done.
    pub utilisation: f64,
}

/// Why nothing is predicted.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Too few ranks, or too many.
    #[error("{0} ranks: collectives are planned for 2 to {MAX_RANKS}")]
    Ranks(usize),
    /// A host is not in the network.
    #[error("host `{0}` has no link to a switch")]
    NoLink(String),
    /// NICs are not as many as links.
    #[error(
        "`{host}` has {links} links, and {nics} NICs do not share them evenly: take a multiple, or fewer than links"
    )]
    Nics {
        /// A host.
        host: String,
        /// What was asked for.
        nics: usize,
        /// What it has.
        links: usize,
    },
    /// There is no such root.
    #[error("there is no rank {root} to be the root, only 0 to {}", .ranks - 1)]
    Root {
        /// What was asked for.
        root: usize,
        /// How many there are.
        ranks: usize,
    },
    /// The collective has no such algorithm here.
    #[error("{collective} has no such algorithm here; it has {has}")]
    NotOffered {
        /// The collective.
        collective: &'static str,
        /// What it has.
        has: String,
    },
    /// No algorithm that may be has ranks numbered so.
    #[error(
        "`{0}` numbers make no difference here: all ranks are at one switch, or the algorithm has no order"
    )]
    Numbering(&'static str),
    /// More elements than memory has addresses.
    #[error("a size of {0} bytes is more than is planned for")]
    Size(u64),
    /// No way leads from one to another.
    #[error(transparent)]
    Ways(#[from] NetworkError),
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Nothing is chosen.
    #[error(transparent)]
    Choose(#[from] ChooseError),
}

/// Predicts a collective of these hosts, and all that the drawing needs beside.
///
/// # Errors
/// [`PlanError`].
pub fn plan(network: &Network, hosts: &[NodeId], asked: &Asked) -> Result<Planned, PlanError> {
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
    // Both were done before, of the same.
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
        // What has no rate stands for a latency alone.
        let is_load = |of: &Loaded| of.bytes > 0 && of.rate_bps < u64::MAX;
        let mut loaded: Vec<Loaded> = loaded.filter(is_load).collect();
        loaded.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
        loaded
    };
    let host = |rank: usize| network.name(modelled.host(rank)).to_owned();
    Ok(Planned {
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
                numbering: asked::word(*numbering),
                tiles: *tiles,
            })
            .collect(),
    })
}

fn told(offer: &Offer) -> Told {
    Told {
        algorithm: offer.algorithm.word(),
        numbering: asked::word(offer.numbering),
        tiles: offer.tiles,
        predicted_s: offer.prediction.time_s,
    }
}

fn is_allowed(asked: &Asked, algorithm: collectives::Algorithm) -> bool {
    asked.algorithms.is_empty() || asked.algorithms.contains(&algorithm)
}

/// Those that may be, the fastest first; at least one.
fn allowed<'c>(
    collective: &Collective,
    choice: &'c Choice,
    asked: &Asked,
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
        // What changes nothing was not tried twice.
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
            return Err(PlanError::Numbering(asked::word(numbering)));
        }
    }
    Ok(offers)
}

/// All puts, by when they begin.
fn messages(
    schedule: &Schedule,
    periods: &[Vec<collectives::cost::simulate::Period>],
) -> Result<Vec<Message>, PlanError> {
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
            messages.push(Message {
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

/// What nothing is faster than, and why.
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
    // Of equal ones the first.
    let none = (0.0, "nothing".to_owned());
    bounds.into_iter().fold(none, |most, bound| {
        if bound.0 > most.0 * (1.0 + 1e-12) {
            bound
        } else {
            most
        }
    })
}

/// Each rank has to hear of each other.
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
