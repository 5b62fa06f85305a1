//! A job's round: gradients go to the server as a plan says, and their sum comes back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{FluidError, Outcome, Simulation, Transfer, TransferId, Use};
use planner::gradient::{Job, Loads, Part, Plan, Resource, spare_bps};
use planner::network::{Arc, Network, NodeId};

/// How the sum comes back to the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// It does not.
    None,
    /// Once over each link of a tree: the plan's, or one of shortest ways where it has none.
    Tree,
    /// Once for each worker.
    Unicast,
}

/// A job's round.
#[derive(Debug, Clone, Copy)]
pub struct Round<'a> {
    /// Whose.
    pub job: &'a Job,
    /// How its gradients go up.
    pub plan: &'a Plan,
    /// The size of a worker's gradient, and of the sum.
    pub gradient_bytes: u64,
    /// When all workers have theirs, in seconds.
    pub start_s: f64,
    /// How it comes back.
    pub pull: Pull,
    /// Whether sums go down while gradients still go up. If not, each server waits until it has its whole share.
    pub is_pipelined: bool,
}

/// The transfers of a round.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundId {
    start_s: f64,
    gradient_bits: f64,
    push: Vec<TransferId>,
    pull: Vec<TransferId>,
    /// By rank.
    workers: Vec<Vec<TransferId>>,
}

/// When a round went on.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundOutcome {
    /// From its start until the servers have all gradients, in seconds.
    pub push_s: f64,
    /// From the first of the sums until all workers have all of it; 0 if it does not come back.
    pub pull_s: f64,
    /// From its start to its end.
    pub round_s: f64,
    /// What each worker's gradient went at, until the last of it was where it is summed; by rank, in bits a second.
    pub worker_bps: Vec<f64>,
}

impl Simulation {
    /// Adds a round. A worker divides what it has among its parts by their shares; what one switch sums goes at one rate.
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
            let share = share_of(round.plan, server);
            let after: &[TransferId] = if round.is_pipelined { &[] } else { before };
            if share == 0.0 {
                continue;
            }
            for arcs in downward(network, round, server)? {
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
    /// When a round went on.
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

/// What of a part goes at one rate: all, if a switch sums it; each worker's for itself, if the server does.
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

/// What a part takes for each bit of a member's share of it.
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

/// The share of the model that a server has: that of the first worker's gradient that it is sent.
fn share_of(plan: &Plan, server: usize) -> f64 {
    let parts = plan.parts.iter().filter(|part| part.server == server);
    let first = parts.filter(|part| part.members.iter().any(|member| member.worker == 0));
    first.map(|part| part.share).sum()
}

/// The links of each stream of sums from a server.
fn downward(
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
            let ways = ways(network, root, workers)?;
            let arcs: BTreeSet<Arc> = ways.into_iter().flatten().collect();
            Ok(vec![arcs.into_iter().collect()])
        }
        Pull::Unicast => ways(network, root, workers),
    }
}

/// Ways from a root to leaves that make a tree: each node is reached by one link, the first of a shortest way.
fn ways(network: &Network, root: NodeId, leaves: &[NodeId]) -> Result<Vec<Vec<Arc>>, FluidError> {
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
