//! Computes the bytes on links in one round of a training: with a plan that minimizes them, and without a plan.

use planner::Network;
use planner::gradient::fragments::{Collision, Passed, Send, by_slots, planned};
use planner::gradient::goat::fastest::{Timing, choose};
use planner::gradient::goat::{self, GoatError, Gradient};
use planner::gradient::{Goal, Job, JobError, Plan};
use planner::network::NodeId;
use planner::routing::{Costs, Routing};
use scenario::{CutGradient, TrainingInNetwork};
use serde::Serialize;

/// Name of the planner [`planner::gradient::goat`] on the command line.
pub const GOAT: &str = "goat";
/// Seed of all random draws of the planner and of the simulated rounds.
const SEED: u64 = 1;
/// Maximum number of fragments of all workers together; for more, traffic without a plan is not simulated.
const MOST_SENDS: usize = 100_000;

/// Number of rounds that are simulated for each number of workers that the server may wait for.
const SAMPLES: usize = 100;

/// The number of workers for which a server should wait in each round, so that the model learns soonest.
#[derive(Debug, Clone, Serialize)]
pub struct Fastest {
    /// Number of workers whose gradients the server waits for in each round: the first ones to arrive.
    pub workers: usize,
    /// Number of rounds until the model has learned, if the server waits for `workers` workers.
    pub rounds: f64,
    /// Mean duration of a round in nanoseconds.
    pub round_ns: f64,
}

/// Traffic on the network's links in one round of a training.
#[derive(Debug, Clone, Serialize)]
pub struct Traffic {
    /// Number of fragments into which a gradient is cut.
    pub fragments: usize,
    /// Size of a fragment in bytes.
    pub fragment_bytes: u64,
    /// Names of the workers' hosts, in the order in which their gradients arrive at the server.
    pub arrivals: Vec<String>,
    /// Number of workers, from the start of `arrivals`, that the server waits for in each round.
    pub wait_for: usize,
    /// The best value of `wait_for`; `None` unless the file describes how the model learned and when gradients arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fastest: Option<Fastest>,
    /// Bytes on all links together in a round with the plan, if the server waits for all workers.
    pub link_bytes: f64,
    /// Lower bound of `link_bytes`, over all plans that fit the switches' memory.
    pub bound_bytes: f64,
    /// Maximum share by which `link_bytes` exceeds the minimum.
    pub gap: f64,
    /// Traffic with the plan, and with schemes that need no plan.
    pub passes: Vec<Passes>,
}

/// Traffic in one round, if switches sum by one scheme.
#[derive(Debug, Clone, Serialize)]
pub struct Passes {
    /// Name of the scheme: `goat` (by plan), `atp` (first come, first served, in slots) or `raw` (no sums in switches).
    pub by: &'static str,
    /// Order of the fragments' arrival: `one after another` (by worker) or `in step` (by fragment); `None` if it has no effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<&'static str>,
    /// Number of fragments that the server receives in a round.
    pub to_server: u64,
    /// Size of the fragments in `to_server`, in bytes.
    pub to_server_bytes: u64,
    /// Number of fragments on links that lead away from switches, including the server's link.
    pub from_switches: u64,
    /// Size of the fragments in `from_switches`, in bytes.
    pub from_switches_bytes: u64,
}

/// Plans a training so that its traffic is minimal; the file has to specify its gradient.
pub(super) fn plan(
    network: &Network,
    job: &Job,
    read: &TrainingInNetwork,
) -> Result<Plan, JobError> {
    let sub_models = (read.gradient.as_ref())
        .map(|gradient| vec![gradient.fragment_bytes; gradient.fragments])
        .unwrap_or_default();
    let costs = goat::links(network);
    let gradient = Gradient {
        sub_models: &sub_models,
        costs: &costs,
    };
    goat::plan(network, job, &gradient, SEED).map_err(|error| match error {
        GoatError::Job(error) => error,
        // A file that was read has workers, and not too many.
        GoatError::Empty(job) | GoatError::TooLarge(job) => JobError::NoWorkers(job),
    })
}

/// Subtracts the memory that a plan uses from that of the network's switches.
pub(super) fn hold(network: &mut Network, read: &TrainingInNetwork, plan: &Plan) {
    let Some(gradient) = &read.gradient else {
        return;
    };
    for part in &plan.parts {
        let switch = network.switch_mut(part.at);
        if let Some(left) = switch.and_then(|switch| switch.memory_bytes.as_mut()) {
            *left = left.saturating_sub(gradient.fragment_bytes);
        }
    }
}

/// Computes the traffic of a plan; `None` unless the plan minimizes traffic.
pub(super) fn of_plan(
    network: &Network,
    job: &Job,
    read: &TrainingInNetwork,
    plan: &Plan,
) -> Option<Traffic> {
    let (Goal::Traffic { byte_cost, bound }, Some(gradient)) = (plan.goal, &read.gradient) else {
        return None;
    };
    let name = |rank: &usize| network.name(job.workers[*rank]).to_owned();
    Some(Traffic {
        fragments: gradient.fragments,
        fragment_bytes: gradient.fragment_bytes,
        arrivals: gradient.order.iter().map(name).collect(),
        wait_for: gradient.wait_for,
        fastest: fastest(network, gradient, plan),
        link_bytes: byte_cost,
        bound_bytes: bound,
        gap: plan.gap(),
        passes: passes(network, job, gradient, plan),
    })
}

/// Computes the best number of workers for the server to wait for; `None` if the file describes no past rounds.
fn fastest(network: &Network, gradient: &CutGradient, plan: &Plan) -> Option<Fastest> {
    let past = gradient.past.as_ref()?;
    let bytes = gradient.fragments as f64 * gradient.fragment_bytes as f64;
    let delays = network.links().iter().map(|link| link.delay_ns);
    let timing = Timing {
        hop_ns: delays.max().unwrap_or(0),
        transfer_ns: (bytes * 8e9 / plan.rate_bps) as u64,
    };
    let chosen = choose(plan, &past.arrivals, &past.learning, timing, SAMPLES, SEED)?;
    Some(Fastest {
        workers: chosen.fastest,
        rounds: chosen.rounds,
        round_ns: chosen.round_ns,
    })
}

fn passes(network: &Network, job: &Job, gradient: &CutGradient, plan: &Plan) -> Vec<Passes> {
    let tell = |by, order, passed: &Passed| {
        let (to_server, from_switches) = (passed.at_server, passed.between_switches(network));
        let bytes = |fragments: u64| fragments.saturating_mul(gradient.fragment_bytes);
        Passes {
            by,
            order,
            to_server,
            to_server_bytes: bytes(to_server),
            from_switches,
            from_switches_bytes: bytes(from_switches),
        }
    };
    let order = &gradient.order;
    let first = &order[..gradient.wait_for];
    let mut waited_for = plan.clone();
    for part in &mut waited_for.parts {
        part.members.retain(|member| first.contains(&member.worker));
    }
    let sends = one_after_another(first, gradient.fragments);
    let mut told = vec![tell(GOAT, None, &planned(&waited_for, &sends))];
    if order.len() * gradient.fragments > MOST_SENDS {
        return told;
    }
    let routing = Routing::new(network, Costs::hops(network));
    let by_slots = |slots: &dyn Fn(NodeId) -> usize, sends: &[Send]| {
        by_slots(network, job, &routing, (slots, Collision::Passes), sends).ok()
    };
    let slots = |at: NodeId| {
        let memory = network.switch(at).and_then(|switch| switch.memory_bytes);
        memory.map_or(usize::MAX, |bytes| {
            usize::try_from(bytes / gradient.fragment_bytes).unwrap_or(usize::MAX)
        })
    };
    let out_of_step = one_after_another(order, gradient.fragments);
    for (by, order, slots, sends) in [
        (
            "atp",
            Some("one after another"),
            &slots as &dyn Fn(NodeId) -> usize,
            &out_of_step,
        ),
        (
            "atp",
            Some("in step"),
            &slots,
            &in_step(order, gradient.fragments),
        ),
        ("raw", None, &|_| 0, &out_of_step),
    ] {
        told.extend(by_slots(slots, sends).map(|passed| tell(by, order, &passed)));
    }
    told
}

fn one_after_another(order: &[usize], fragments: usize) -> Vec<Send> {
    let sends = order.iter().flat_map(|worker| {
        (0..fragments).map(|piece| Send {
            worker: *worker,
            piece,
        })
    });
    sends.collect()
}

fn in_step(order: &[usize], fragments: usize) -> Vec<Send> {
    let sends = (0..fragments).flat_map(|piece| {
        order.iter().map(move |worker| Send {
            worker: *worker,
            piece,
        })
    });
    sends.collect()
}
