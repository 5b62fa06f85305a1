//! A round of a training job in the flow model: gradients go to the servers by a plan, and their sum returns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{FluidError, Outcome, Simulation, Transfer, TransferId, Use};
use planner::gradient::{Job, Loads, Part, Plan, Resource, spare_bps};
use planner::network::{Arc, Network, NodeId};

/// How the sum of the gradients returns from the servers to the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// The sum stays at the servers.
    None,
    /// The sum passes once over each link of a tree: the plan's tree, or a tree of shortest paths if the plan has none.
    Tree,
    /// The servers send the sum once for each worker.
    Unicast,
}

#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    pub job: &'a Job,
    /// Plan of the gradients' paths to the servers.
    pub plan: &'a Plan,
    /// Size of a worker's gradient, and of the sum, in bytes.
    pub gradient_bytes: u64,
    /// Time at which all gradients are ready, in seconds.
    pub start_s: f64,
    pub pull: Pull,
    /// Whether sums return while gradients are still being sent. If not, each server waits for its whole share.
    pub is_pipelined: bool,
}

/// Identifiers of a round's transfers, to read the round's times from an [`Outcome`].
#[derive(Debug, Clone, PartialEq)]
pub struct RoundId {
    start_s: f64,
    gradient_bits: f64,
    push: Vec<TransferId>,
    pull: Vec<TransferId>,
    /// For each worker, by rank: the transfers of sums to this worker.
    workers: Vec<Vec<TransferId>>,
}

/// Durations and rates of a completed round.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundOutcome {
    /// Time from the start until the servers have all gradients, in seconds.
    pub push_s: f64,
    /// Time from the first bit of the sums until all workers have the whole sum, in seconds; 0 without a pull.
    pub pull_s: f64,
    /// Time from the start of the push to the end of the pull, in seconds.
    pub round_s: f64,
    /// Rate of each worker's gradient until its last bit was summed, by rank, in bits a second.
    pub worker_bps: Vec<f64>,
}

impl Simulation {
    /// Adds a round to the simulation. A worker divides its gradient among the plan's parts by
    /// their shares; a part that a switch sums has one rate.
    ///
    /// # Errors
    ///
    /// As [`Simulation::add`].
    pub fn add_round(
        &mut self,
        network: &Network,
        round: &Round<'_>,
    ) -> Result<RoundId, FluidError> {
        let gradient_bits = round.gradient_bytes as f64 * 8.0;
        let mut id = RoundId {
            start_s: round.start_s,
            gradient_bits,
            push: Vec::new(),
            pull: Vec::new(),
            workers: vec![Vec::new(); round.job.workers.len()],
        };
        let mut by_server = vec![Vec::new(); round.job.servers.len()];
        for part in &round.plan.parts {
            for stream in streams(network, part) {
                let transfer = Transfer {
                    start_s: round.start_s,
                    weight: stream.share,
                    ..Transfer::new(
                        stream.share * gradient_bits,
                        uses(network, round.job, &stream),
                    )
                };
                let transfer = self.add(transfer)?;
                id.push.push(transfer);
                by_server[stream.server].push(transfer);
                for member in &stream.members {
                    id.workers[member.worker].push(transfer);
                }
            }
        }
        for (server, before) in by_server.iter().enumerate() {
            let share = server_share(round.plan, server);
            let after: &[TransferId] = if round.is_pipelined { &[] } else { before };
            if share == 0.0 {
                continue;
            }
            for arcs in pull_streams(network, round, server)? {
                let uses = arcs.into_iter().map(|arc| link(network, arc)).collect();
                let transfer = Transfer {
                    start_s: round.start_s,
                    after: after.to_vec(),
                    weight: share,
                    ..Transfer::new(share * gradient_bits, uses)
                };
                id.pull.push(self.add(transfer)?);
            }
        }
        Ok(id)
    }
}

impl Outcome {
    /// Reads the durations and rates of a round from the simulation's outcome.
    #[must_use]
    pub fn round(&self, id: &RoundId) -> RoundOutcome {
        let end = |transfers: &[TransferId]| {
            let ends = transfers.iter().map(|transfer| self.span(*transfer).end_s);
            ends.fold(id.start_s, f64::max)
        };
        let pushed_s = end(&id.push);
        let pulled_s = end(&id.pull);
        let starts = id.pull.iter().map(|pull| self.span(*pull).start_s);
        let first_s = starts.fold(pulled_s, f64::min);
        let rates = id
            .workers
            .iter()
            .map(|transfers| id.gradient_bits / (end(transfers) - id.start_s));
        RoundOutcome {
            push_s: pushed_s - id.start_s,
            pull_s: pulled_s - first_s,
            round_s: pushed_s.max(pulled_s) - id.start_s,
            worker_bps: rates.collect(),
        }
    }
}

/// Splits a part of the plan into streams of one rate: one if a switch sums it, one for each worker if the server does.
fn streams(network: &Network, part: &Part) -> Vec<Part> {
    if network.switch(part.at).is_some() {
        return vec![part.clone()];
    }
    let alone = part.members.iter().map(|member| Part {
        members: vec![member.clone()],
        ..part.clone()
    });
    alone.collect()
}

/// Resources that a part of the plan loads, with the load of one bit of a member's share.
fn uses(network: &Network, job: &Job, part: &Part) -> Vec<Use> {
    let loads = Loads::from_part(network, job, part);
    let uses = loads.iter().map(|(resource, load)| Use {
        resource,
        capacity_bps: spare_bps(network, job, resource).unwrap_or(f64::INFINITY),
        load: load / part.share,
    });
    uses.collect()
}

pub(super) fn link(network: &Network, arc: Arc) -> Use {
    Use {
        resource: Resource::Link(arc),
        capacity_bps: network.spare_bps(arc) as f64,
        load: 1.0,
    }
}

/// Share of the model (0 to 1) that a server holds: the share of the first worker's gradient that this server receives.
fn server_share(plan: &Plan, server: usize) -> f64 {
    let parts = plan.parts.iter().filter(|part| part.server == server);
    let first = parts.filter(|part| part.members.iter().any(|member| member.worker == 0));
    first.map(|part| part.share).sum()
}

/// Links of each stream in which sums return from a server to workers.
fn pull_streams(
    network: &Network,
    round: &Round<'_>,
    server: usize,
) -> Result<Vec<Vec<Arc>>, FluidError> {
    let root = round.job.servers[server].host;
    let workers = &round.job.workers;
    match round.pull {
        Pull::None => Ok(Vec::new()),
        Pull::Tree => {
            let planned = round
                .plan
                .answers
                .iter()
                .find(|answers| answers.server == server);
            if let Some(answers) = planned {
                return Ok(vec![answers.tree.clone()]);
            }
            let ways = paths(network, root, workers)?;
            let arcs: BTreeSet<Arc> = ways.into_iter().flatten().collect();
            Ok(vec![arcs.into_iter().collect()])
        }
        Pull::Unicast => paths(network, root, workers),
    }
}

/// Paths in a tree from a root to its leaves: one link leads to each node, the first link of a shortest path.
fn paths(network: &Network, root: NodeId, leaves: &[NodeId]) -> Result<Vec<Vec<Arc>>, FluidError> {
    let mut reached: BTreeMap<NodeId, Option<Arc>> = BTreeMap::from([(root, None)]);
    let mut ahead = VecDeque::from([root]);
    while let Some(node) = ahead.pop_front() {
        if node != root && network.host(node).is_some() {
            continue;
        }
        for (link, next) in network.adjacent(node) {
            let arc = network.arc(*link, node);
            if network.spare_bps(arc) > 0 && !reached.contains_key(next) {
                reached.insert(*next, Some(arc));
                ahead.push_back(*next);
            }
        }
    }
    let way = |leaf: &NodeId| {
        if !reached.contains_key(leaf) {
            let [from, to] = [root, *leaf].map(|node| network.name(node).to_owned());
            return Err(FluidError::NoWay(from, to));
        }
        let (mut at, mut way) = (*leaf, Vec::new());
        while let Some(Some(arc)) = reached.get(&at) {
            way.push(*arc);
            at = network.ends(*arc).0;
        }
        Ok(way)
    };
    leaves.iter().map(way).collect()
}
