//! Computes the completion time of a setting by the flow model, in which links are shared fairly,
//! without frames, queues, delays and losses ([`crate::fluid`]).

use anyhow::{Context, Result, bail};
use planner::gradient::{Goal, Job, Member, Part, Plan, Resource, Server};
use planner::network::Arc;
use planner::routing::{Costs, Routing};
use planner::{LinkId, Method, Network, NodeId};
use scenario::Scenario;
use scenario::model::workload::Workload;

use super::settings::{Setting, Work};
use crate::fluid::{Pull, Round, Simulation, Transfer, Use};

/// Bytes of a frame with 256 values, from the Ethernet header on; the next constant is for a frame without values.
const FRAME: u64 = 14 + 20 + 8 + 24 + 1024;
const SHORT: u64 = 14 + 20 + 8 + 24;

/// Time of all rounds in seconds, as the sum of computing and transfers.
pub fn seconds(setting: &Setting, scenario: &Scenario, compute_s: f64) -> Result<f64> {
    let network = scenario::topology_network(&scenario.topology)?;
    let (values, rounds) = match setting.work {
        Work::Direct(rounds) | Work::Summed(rounds, _) | Work::Planned(rounds) => {
            (host_agent::train::PARAMETERS, u64::from(rounds))
        }
        Work::AllReduce(values, rounds) => (values + 1, rounds),
    };
    let chunks = values.div_ceil(wire::VALUES_PER_PACKET) as u64;
    let gradient_bytes = chunks * FRAME + u64::from(setting.window) * SHORT;
    let mut simulation = Simulation::default();
    if let Work::AllReduce(..) = setting.work {
        // Updates and sums are one transfer: a sum cannot leave before its last update arrives.
        let bits = gradient_bytes as f64 * 8.0;
        simulation.add(Transfer::new(bits, both_ways(&network, scenario)?))?;
    } else {
        let (job, plan) = plan(setting, scenario, &network)?;
        let round = Round {
            job: &job,
            plan: &plan,
            gradient_bytes,
            start_s: 0.0,
            pull: match setting.work {
                Work::Direct(_) => Pull::Unicast,
                _ => Pull::Tree,
            },
            is_pipelined: true,
        };
        simulation.add_round(&network, &round)?;
    }
    let took_s = simulation.run()?.end_s;
    Ok(rounds as f64 * (took_s + compute_s))
}

/// Every link of a tree of ranks and switches, in both directions: all links of the setting's network except the server's.
fn both_ways(network: &Network, scenario: &Scenario) -> Result<Vec<Use>> {
    let ranks = &scenario.jobs.first().context("a job")?.ranks;
    let links = scenario.topology.links.iter().zip(network.links());
    let used = links.zip((0..).map(LinkId)).filter(|((link, _), _)| {
        let mut ends = link.ends.iter();
        ends.all(|end| scenario.topology.has_switch(end) || ranks.contains(end))
    });
    let uses = used.flat_map(|((_, link), id)| {
        [false, true].map(|back| Use {
            resource: Resource::Link(Arc { link: id, back }),
            capacity_bps: link.rate_bps as f64,
            load: 1.0,
        })
    });
    Ok(uses.collect())
}

fn plan(setting: &Setting, scenario: &Scenario, network: &Network) -> Result<(Job, Plan)> {
    let Some(Workload::Training(training)) = &scenario.workload else {
        bail!("no training");
    };
    let node = |name: &String| network.node(name).with_context(|| name.clone());
    let workers: Result<Vec<NodeId>> = training.workers.iter().map(node).collect();
    let job = Job {
        name: setting.name.to_owned(),
        workers: workers?,
        servers: vec![Server::on(node(&training.server)?)],
    };
    let plan = match (&training.aggregate_on, scenario.gradients.is_some()) {
        (Some(on), _) => summed(network, &job, node(on)?)?,
        (None, true) => Method::Grid.plan(network, &job)?,
        (None, false) => Method::Raw.plan(network, &job)?,
    };
    Ok((job, plan))
}

/// Plan in which the switch `at` sums the gradients of all workers.
fn summed(network: &Network, job: &Job, at: NodeId) -> Result<Plan> {
    let routing = Routing::new(network, Costs::hops(network));
    let way = |from: NodeId, to: NodeId| routing.path(from, to);
    let members = job.workers.iter().enumerate().map(|(worker, host)| {
        let route = way(*host, at)?;
        anyhow::Ok(Member { worker, route })
    });
    Ok(Plan {
        answers: Vec::new(),
        job: job.name.clone(),
        parts: vec![Part {
            piece: 0,
            share: 1.0,
            server: 0,
            at,
            members: members.collect::<Result<_>>()?,
            up: way(at, job.servers[0].host)?,
        }],
        rate_bps: 0.0,
        bound_bps: f64::INFINITY,
        goal: Goal::Rate,
        is_optimal: false,
    })
}
