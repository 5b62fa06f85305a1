//! Plans where the gradients of trainings are summed in a network, for `weir route`.

mod by;
pub(crate) mod drawing;
mod layout;
mod text;
mod traffic;

use planner::gradient::{Goal, Job, JobError, Loads, Plan, Resource, occupy};
use planner::network::Arc;
use planner::placement::robust::plans::{self, Spread};
use planner::{Method, Network, NodeId};
use scenario::diagnostic::Source;
use scenario::{Diagnostic, TrainingInNetwork, refused_training};
use serde::Serialize;

pub use by::By;
pub use drawing::svg;
pub use traffic::{Fastest, Passes, Traffic};

/// Plans of several trainings: each one gets the capacity that the trainings before it leave.
#[derive(Debug, Clone, Serialize)]
pub struct Routes {
    /// Name of the planner that made the plans.
    pub by: &'static str,
    /// The trainings, in the order of the file.
    pub trainings: Vec<TrainingPlan>,
    /// How many trainings the loss of one switch affects; `None` without `--robust`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robust: Option<Robust>,
    /// Directions of links that carry traffic, the most utilized first.
    pub links: Vec<Direction>,
    /// Load of each switch that sums, in the network's order.
    pub switches: Vec<Sums>,
}

/// How many trainings the loss of one switch affects.
#[derive(Debug, Clone, Serialize)]
pub struct Robust {
    /// Number of trainings that the loss of one switch affects at most.
    pub worst: usize,
    /// `worst` of the first plans, which the planner made before it considered the loss of switches.
    pub before: usize,
    /// Lower bound of `worst`: number of trainings that depend on one switch with any plan, as their hosts have no other.
    pub least: usize,
    /// Number of trainings that have a plan.
    pub planned: usize,
    /// Number of candidate plans, of all trainings, from which one was chosen for each training.
    pub looked_at: usize,
    /// Whether the choice is proved best: no other choice of candidates affects fewer trainings, or as many with less traffic.
    pub proven: bool,
}

/// A training with its plan, or with the reason why it has none.
#[derive(Debug, Clone, Serialize)]
pub struct TrainingPlan {
    /// Name of the training.
    pub name: String,
    /// Number of workers of the training.
    pub workers: usize,
    /// Hosts that the planner chose for the workers; `None` if the file names the hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placed: Option<Placed>,
    /// The plan of the training, or why there is none.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The hosts that a planner chose for the workers of a training.
#[derive(Debug, Clone, Serialize)]
pub struct Placed {
    /// Name of each host, and the number of workers on it.
    pub hosts: Vec<(String, usize)>,
    /// Number of hosts in `hosts` that ran no other training's worker.
    pub idle: usize,
    /// Whether the placement is proved best: no other one takes fewer idle hosts, or as many idle hosts but fewer hosts in all.
    pub proven: bool,
}

/// The plan of a training, or why there is none.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The plan of the training.
    Plan(Box<NamedPlan>),
    /// Why there is no plan: a diagnostic with the position of the cause in the trainings file.
    Refused(Box<Diagnostic>),
}

/// A training's plan, with names of hosts and switches instead of node ids.
#[derive(Debug, Clone, Serialize)]
pub struct NamedPlan {
    /// Rate at which each worker can send its gradient, and the server its answers, in bits per second.
    pub rate_bps: f64,
    /// Upper bound of the rate of all plans of this kind, in bits per second; `None` if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_bps: Option<f64>,
    /// Maximum share by which the rate may fall short of the best possible rate, from 0 to 1; `None` if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<f64>,
    /// Bytes on links in a round; `None` if the planner does not minimize traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// Name of the link or switch that is full when all workers send at `rate_bps`.
    pub full: Option<String>,
    /// Parts of the plan: each says which node sums which workers' share of the gradient.
    pub parts: Vec<NamedPart>,
    /// The tree of each server's answers to the workers; empty if only the direction to the server is planned.
    pub answers: Vec<Answers>,
}

/// The multicast tree on which a server's answers reach its workers.
#[derive(Debug, Clone, Serialize)]
pub struct Answers {
    /// Name of the server.
    pub server: String,
    /// Links of the tree, each as the names of its start and its end; links nearer to the server come first.
    pub tree: Vec<[String; 2]>,
}

/// A part of a plan: one node sums a share of the gradient for some workers.
#[derive(Debug, Clone, Serialize)]
pub struct NamedPart {
    /// Share of the gradient that the part carries, from 0 to 1.
    pub share: f64,
    /// Number of the gradient's fragment that the part carries, from 1; `None` if the gradient is not cut into fragments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragment: Option<usize>,
    /// Name of the server that receives the sum.
    pub server: String,
    /// Name of the switch that sums; `None` if the server sums.
    pub on: Option<String>,
    /// The workers whose values the part sums.
    pub members: Vec<NamedMember>,
    /// Names of the nodes on the route of the sum, from the switch that sums to the server.
    pub up: Vec<String>,
}

/// A worker in a part of a plan, with its route.
#[derive(Debug, Clone, Serialize)]
pub struct NamedMember {
    /// Name of the worker's host.
    pub worker: String,
    /// Names of the nodes on the route from the worker's host to the node that sums.
    pub way: Vec<String>,
}

/// One direction of a link, with its capacity and load.
#[derive(Debug, Clone, Serialize)]
pub struct Direction {
    /// Name of the node at which the direction begins.
    pub from: String,
    /// Name of the node at which the direction ends.
    pub to: String,
    /// Capacity of the link in this direction, in bits per second.
    pub rate_bps: u64,
    /// Load in bits per second: of the planned trainings, and of traffic that the network carried before.
    pub load_bps: u64,
}

/// Load of a switch by the updates that it sums.
#[derive(Debug, Clone, Serialize)]
pub struct Sums {
    /// Name of the switch.
    pub switch: String,
    /// Maximum throughput of updates that the switch can sum, in bits per second; `None` if it is unlimited.
    pub throughput_bps: Option<u64>,
    /// Throughput of updates that the switch sums, in bits per second: for planned trainings, and what it summed before.
    pub load_bps: u64,
}

/// Plans trainings one after the other, and subtracts each plan's traffic from the network. `robust`: among equally fast plans,
/// chooses those with which the loss of one switch affects few trainings. `source`: the trainings' file.
pub fn plan(
    network: &mut Network,
    trainings: &[TrainingInNetwork],
    source: Source<'_>,
    by: By,
    robust: Option<Method>,
) -> Routes {
    let mut jobs: Vec<Job> = trainings.iter().map(|read| read.job.clone()).collect();
    let empty = network.clone();
    let mut planned: Vec<Result<Plan, JobError>> = Vec::new();
    for (place, read) in trainings.iter().enumerate() {
        let plan = by.plan(network, &jobs[place], read);
        if let Ok(plan) = &plan {
            take(network, &mut jobs, (place, read), plan);
        }
        planned.push(plan);
    }
    for (job, read) in jobs.iter_mut().zip(trainings) {
        job.servers.clone_from(&read.job.servers);
    }
    let robust = robust.map(|by| spread(&empty, &jobs, &mut planned, by));
    *network = empty;
    let mut before: Vec<&TrainingInNetwork> = Vec::new();
    let told = trainings.iter().zip(&planned).enumerate();
    let told = told.map(|(place, (read, planned))| {
        let job = &jobs[place];
        let outcome = match planned {
            Ok(plan) => Outcome::Plan(Box::new(names(network, job, read, plan))),
            Err(error) => refused(network, source, read, &before, error),
        };
        let name = job.name.clone();
        let senders = job.workers.len();
        if let Ok(plan) = &planned {
            take(network, &mut jobs, (place, read), plan);
            before.push(read);
        }
        let placed = placed(network, read);
        TrainingPlan {
            name,
            workers: (placed.as_ref()).map_or(senders, |placed| {
                placed.hosts.iter().map(|(_, count)| count).sum()
            }),
            placed,
            outcome,
        }
    });
    let trainings = told.collect();
    Routes {
        by: by.name(),
        trainings,
        robust,
        links: links(network),
        switches: switches(network),
    }
}

/// Subtracts the capacity that a plan uses from the network, and adds its load to later trainings' servers on the same hosts.
fn take(
    network: &mut Network,
    jobs: &mut [Job],
    (place, read): (usize, &TrainingInNetwork),
    plan: &Plan,
) {
    let used = Loads::from_plan(network, &jobs[place], plan).at(plan.rate_bps);
    for (resource, bps) in &used {
        let Resource::Ingress(host) = resource else {
            continue;
        };
        let later = jobs[place + 1..]
            .iter_mut()
            .flat_map(|job| &mut job.servers);
        for server in later.filter(|server| server.host == *host) {
            server.load_bps = server.load_bps.saturating_add(*bps);
        }
    }
    occupy(network, &used);
    traffic::hold(network, read, plan);
}

/// Replaces plans by other candidate plans if the loss of one switch then affects fewer trainings.
fn spread(
    network: &Network,
    jobs: &[Job],
    planned: &mut [Result<Plan, JobError>],
    by: Method,
) -> Robust {
    let known: Vec<Option<Plan>> = planned.iter().map(|plan| plan.clone().ok()).collect();
    let Spread {
        plans,
        worst,
        least,
        looked_at,
        proven,
    } = plans::spread(
        network,
        jobs,
        &known,
        |network, job| by.plan(network, job),
        1,
    );
    let before = plans::worst(network, jobs, &known);
    let mut has_moved = false;
    for (plan, (new, known)) in planned.iter_mut().zip(plans.into_iter().zip(known)) {
        let Some(mut new) = new else { continue };
        if has_moved {
            // The bound was computed for another remaining network.
            (new.bound_bps, new.is_optimal) = (f64::INFINITY, false);
        }
        has_moved |=
            known.is_none_or(|known| known.parts != new.parts || known.answers != new.answers);
        *plan = Ok(new);
    }
    Robust {
        worst,
        before,
        least,
        planned: planned.iter().filter(|plan| plan.is_ok()).count(),
        looked_at,
        proven,
    }
}

fn placed(network: &Network, read: &TrainingInNetwork) -> Option<Placed> {
    let placed = read.placed.as_ref()?;
    let hosts = read.job.workers.iter().zip(&placed.on_host);
    Some(Placed {
        hosts: hosts
            .map(|(host, count)| (network.name(*host).to_owned(), *count))
            .collect(),
        idle: placed.idle,
        proven: placed.proven,
    })
}

fn refused(
    network: &Network,
    source: Source<'_>,
    read: &TrainingInNetwork,
    before: &[&TrainingInNetwork],
    error: &JobError,
) -> Outcome {
    Outcome::Refused(Box::new(refused_training(
        source, network, read, before, error,
    )))
}

/// Converts a plan of node ids into one of names.
fn names(network: &Network, job: &Job, read: &TrainingInNetwork, plan: &Plan) -> NamedPlan {
    let name = |node: NodeId| network.name(node).to_owned();
    let nodes = |from: NodeId, route: &[Arc]| {
        let passed = route.iter().map(|arc| name(network.ends(*arc).1));
        std::iter::once(name(from)).chain(passed).collect()
    };
    let parts = plan.parts.iter().map(|part| NamedPart {
        share: part.share,
        fragment: read.gradient.as_ref().map(|_| part.piece + 1),
        server: name(job.servers[part.server].host),
        on: network.switch(part.at).map(|_| name(part.at)),
        members: (part.members.iter())
            .map(|member| {
                let host = job.workers[member.worker];
                NamedMember {
                    worker: name(host),
                    way: nodes(host, &member.route),
                }
            })
            .collect(),
        up: nodes(part.at, &part.up),
    });
    let answers = plan.answers.iter().map(|answers| Answers {
        server: name(job.servers[answers.server].host),
        tree: (answers.tree.iter())
            .map(|arc| {
                let (from, to) = network.ends(*arc);
                [name(from), name(to)]
            })
            .collect(),
    });
    let binding = Loads::from_plan(network, job, plan).binding(network, job);
    let is_bounded = plan.bound_bps.is_finite();
    let for_rate = is_bounded && plan.goal == Goal::Rate;
    NamedPlan {
        rate_bps: plan.rate_bps,
        bound_bps: for_rate.then_some(plan.bound_bps),
        gap: for_rate.then(|| plan.gap()),
        traffic: traffic::of_plan(network, job, read, plan),
        full: binding.map(|binding| binding.resource.describe(network)),
        parts: parts.collect(),
        answers: answers.collect(),
    }
}

fn links(network: &Network) -> Vec<Direction> {
    let ids = (0..network.links().len() as u32).map(planner::LinkId);
    let both = ids.flat_map(|link| [false, true].map(|back| Arc { link, back }));
    let loaded = both.filter_map(|arc| {
        let link = network.link(arc.link);
        let (from, to) = network.ends(arc);
        let load_bps = link.load_bps[usize::from(arc.back)];
        (load_bps > 0).then(|| Direction {
            from: network.name(from).to_owned(),
            to: network.name(to).to_owned(),
            rate_bps: link.rate_bps,
            load_bps,
        })
    });
    let mut links: Vec<Direction> = loaded.collect();
    links.sort_by(|a, b| b.part().total_cmp(&a.part()));
    links
}

impl Direction {
    /// Used share of the direction's capacity, from 0 to 1.
    pub fn part(&self) -> f64 {
        self.load_bps as f64 / self.rate_bps as f64
    }
}

fn switches(network: &Network) -> Vec<Sums> {
    let summing = network.switches().filter_map(|id| {
        let switch = network.switch(id)?;
        (switch.load_bps > 0).then(|| Sums {
            switch: network.name(id).to_owned(),
            throughput_bps: switch.throughput_bps,
            load_bps: switch.load_bps,
        })
    });
    summing.collect()
}

impl Routes {
    /// Whether every training has a plan.
    pub fn is_whole(&self) -> bool {
        let mut trainings = self.trainings.iter();
        trainings.all(|training| matches!(training.outcome, Outcome::Plan(_)))
    }
}
