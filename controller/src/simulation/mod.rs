//! `weir simulate`: simulates a scenario's training, or all-reduces of its job, in virtual time; it uses no network.
//!
//! Network, routes and sums of each switch come from the scenario's plan; links behave as in a testbed; server, workers and
//! ranks run the agents' state machines ([`cluster::simulation`]). Unsupported features are refused by name.

mod losses;
mod refused;
mod report;

use std::collections::BTreeMap;

use aggregation::job::{ChunkId, JobConfig, JobId, TreePosition, WorkerId};
use aggregation::rto::Retransmission;
use aggregation::server::{self, Mode};
use cluster::Rate;
use cluster::simulation::{
    Address, Costs, LinkSpec, NodeSpec, PortId, RankAt, Setup, SetupError, Summing, SwitchSpec,
    Work, WorkerAt, run,
};
use host_agent::train::PARAMETERS;
use p4lang::runtime::{MulticastGroup, TableEntry};
use scenario::model::Scenario;
use scenario::model::job::Job;
use scenario::model::topology::{BURST_BYTES, Mac, QUEUE_BYTES};
use scenario::model::workload::{Training, Workload};
use scenario::plan::SwitchPlan;
use scenario::plan::names::{JOB, forward};
use scenario::{Diagnostics, TargetModel};

use crate::experiment::fleet::aggregation::summed;
use crate::jobs::entries::{key_of, param_of};

pub use report::{LinkTraffic, MemberResult, Report};

/// Maximum virtual time of a simulation in nanoseconds: 1 h. A server, worker or rank that is not done by then counts as stuck.
const LIMIT_NS: u64 = 3_600_000_000_000;
/// Bytes that the socket of a server, worker or rank holds: half of Linux's default send buffer (net.core.wmem_default, 212,992
/// bytes), up to which the socket is writable.
const SOCKET_BYTES: u64 = 212_992 / 2;

/// Simulated processor time of agents and of the embedded switch per frame, without gradients and evaluations. Measured by
/// processor times and round trips of trainings over links of 1 Gbit/s on a 2-core Xeon, development build, and rounded
/// (docs/planning.md); the switch's time includes its captures.
pub const COSTS: Costs = Costs {
    compute_ns: 0,
    evaluate_ns: 0,
    apply_ns: 3_000,
    receive_ns: 6_000,
    send_ns: 12_000,
    switch_ns: 12_000,
    wake_ns: 15_000,
    processors: None,
    socket_bytes: None,
};

/// Simulated processor time per frame of ranks and their switch, which receive and send batches of frames through rings.
pub const COSTS_OF_RANKS: Costs = Costs {
    receive_ns: 1_000,
    send_ns: 2_000,
    switch_ns: 8_000,
    wake_ns: 5_000,
    ..COSTS
};

/// Additional delay in ns of a frame that the embedded switch holds for its link's latency: it sends due frames every 50 µs.
const HELD_NS: u64 = 50_000;

/// Options of `weir simulate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Number of processors that the server, workers and ranks share; `None` if each of them has its own.
    pub processors: Option<usize>,
    /// Time in which a worker computes its gradient, or of a rank between two all-reduces, in nanoseconds.
    pub compute_ns: u64,
    /// Time in which the server evaluates the weights after each round, in nanoseconds.
    pub evaluate_ns: u64,
    /// The all-reduces of the scenario's job to simulate; `None` to simulate the training.
    pub all_reduce: Option<AllReduce>,
}

/// All-reduces of all ranks of a job, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllReduce {
    /// Number of values in each all-reduce.
    pub values: usize,
    /// Number of all-reduces.
    pub operations: u64,
}

/// Why a scenario cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The scenario has no plan; contains the reasons.
    #[error("{} has no plan", .0.0.first().map_or("the file", |first| first.file.as_str()))]
    Plan(Diagnostics),
    /// The scenario contains a feature that the simulation does not support; contains its name and position.
    #[error("{0}")]
    Unknown(Diagnostics),
    /// The scenario has no training or job to simulate; contains advice.
    #[error("{0}")]
    Nothing(&'static str),
    /// The simulated network or job is invalid.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Simulates a scenario, and returns the results.
pub fn simulate(scenario: &Scenario, options: &Options) -> Result<Report, SimulateError> {
    let setup = setup(scenario, options)?;
    let outcome = run(&setup)?;
    Ok(Report::new(scenario, &setup, &outcome))
}

/// Builds the simulated network and members of a scenario.
pub fn setup(scenario: &Scenario, options: &Options) -> Result<Setup, SimulateError> {
    refused::refuse(scenario, options)?;
    if options.all_reduce.is_some() && scenario.jobs.is_empty() {
        return Err(NO_JOB);
    }
    let plan = scenario::plan(scenario, &TargetModel::EMBEDDED).map_err(SimulateError::Plan)?;
    let places = Places::new(scenario);
    let losses = losses::from_plan(scenario, &plan)?;
    let switches = plan.switches.iter().map(|switch| {
        let mut spec = switch_spec(scenario, switch);
        let here = losses.iter().filter(|(at, _)| *at == switch.name);
        spec.losses = here.map(|(_, loss)| *loss).collect();
        NodeSpec::Switch(spec)
    });
    let hosts = scenario.topology.hosts.iter().map(|host| NodeSpec::Host {
        address: address(host.mac),
    });
    let nodes = switches.chain(hosts).collect();
    let costs = Costs {
        processors: options.processors,
        compute_ns: options.compute_ns,
        evaluate_ns: options.evaluate_ns,
        ..COSTS
    };
    let share = Setup {
        seed: scenario.seed,
        nodes,
        links: links(scenario, &places),
        job: JobConfig {
            job: JobId(JOB),
            workers: 0,
            window: 0,
            values_per_packet: 0,
            values_per_round: 0,
            first_chunk: ChunkId(0),
        },
        retransmission: Retransmission::default(),
        rounds: 0,
        work: Work::Training {
            server: 0,
            workers: Vec::new(),
            mode: Mode::Direct,
            parts: Vec::new(),
            everybody: Address(0),
        },
        costs,
        limit_ns: LIMIT_NS,
    };
    match (&scenario.workload, &options.all_reduce) {
        (Some(Workload::Training(training)), None) => {
            Ok(of_training(scenario, training, &places, share))
        }
        (_, Some(asked)) => {
            let job = scenario.jobs.first().ok_or(NO_JOB)?;
            of_job(job, asked, &places, share)
        }
        _ => Err(SimulateError::Nothing(
            "the simulation needs a `training`, or, with --all-reduce, a job",
        )),
    }
}

const NO_JOB: SimulateError =
    SimulateError::Nothing("the file has no job: --all-reduce needs one under `jobs:`");

/// Index of each node in the simulation, by name: switches first, then hosts, each in declared order.
struct Places<'a>(BTreeMap<&'a str, usize>);

impl<'a> Places<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let hosts = scenario.topology.hosts.iter();
        let hosts = hosts.map(|host| host.name.as_str());
        let switches = scenario.topology.switches.iter().map(String::as_str);
        Self(switches.chain(hosts).zip(0..).collect())
    }

    /// Index of a node; every scenario that was loaded names only nodes of its topology.
    fn place(&self, node: &str) -> usize {
        self.0.get(node).copied().unwrap_or(usize::MAX)
    }
}

fn links(scenario: &Scenario, places: &Places<'_>) -> Vec<LinkSpec> {
    let links = scenario.topology.links.iter().map(|link| LinkSpec {
        ends: link.ends.each_ref().map(|end| places.place(end)),
        rate: Rate {
            bits_per_s: link.rate_bps,
            queue_bytes: QUEUE_BYTES.into(),
            mark_bytes: None,
        },
        burst_bytes: BURST_BYTES.into(),
        delay_ns: match link.latency_ns {
            0 => 0,
            latency_ns => latency_ns + HELD_NS,
        },
        loss: 0.0,
        mark_at: link.mark_at.map(|frames| frames as usize),
    });
    links.collect()
}

fn address(mac: Mac) -> Address {
    Address(mac.value() as u64)
}

/// How a switch forwards and sums in the simulation, from the table entries that a run would write.
fn switch_spec(scenario: &Scenario, switch: &SwitchPlan) -> SwitchSpec {
    let forwards = |entry: &&TableEntry| entry.table == forward::TABLE;
    let entries = switch.entries.iter().filter(forwards);
    let forwarding = entries.filter_map(|entry| {
        let to = Address(key_of(entry, forward::KEY)? as u64);
        Some((to, ports_of(entry, &switch.groups)?))
    });
    let sums = scenario.jobs.iter().filter_map(|job| {
        let summed = summed(scenario, job, job.on(&switch.name)?)?;
        let up = summed.up;
        Some(Summing {
            number: JobId(summed.number),
            children: summed.ports.into_iter().map(port).collect(),
            up: up.map(|(up, number)| (port(up), WorkerId(number))),
        })
    });
    SwitchSpec {
        forwarding: forwarding.collect(),
        sums: sums.collect(),
        losses: Vec::new(),
    }
}

fn port(number: u32) -> PortId {
    PortId(number as usize)
}

fn ports_of(entry: &TableEntry, groups: &[MulticastGroup]) -> Option<Vec<PortId>> {
    if let Some(to) = param_of(entry, forward::PORT) {
        return Some(vec![port(to)]);
    }
    let number: u32 = param_of(entry, forward::GROUP)?;
    let group = groups.iter().find(|group| group.id == number)?;
    let ports = group.replicas.iter().map(|replica| port(replica.port));
    Some(ports.collect())
}

fn of_training(
    scenario: &Scenario,
    training: &Training,
    places: &Places<'_>,
    share: Setup,
) -> Setup {
    let server = scenario.topology.host(&training.server);
    let to_server = server.map_or(Address(0), |host| address(host.mac));
    let gradients = scenario.gradients.as_ref();
    let workers = training.workers.iter().map(|name| {
        let planned = gradients.and_then(|gradients| gradients.part_of(name));
        let part = planned.and_then(|(part, member)| {
            let mut members = part.members.iter();
            let child = members.position(|other| other == member)?;
            part.on.as_ref()?;
            Some((JobId(part.number), WorkerId(child as u16)))
        });
        WorkerAt {
            host: places.place(name),
            to: planned.map_or(to_server, |(part, member)| address(part.address(member))),
            part,
        }
    });
    let parts = gradients.iter().flat_map(|gradients| &gradients.parts);
    let parts = parts.filter(|part| part.on.is_some());
    let parts = parts.map(|part| server::Part {
        number: JobId(part.number),
        workers: (part.members.iter())
            .map(|member| WorkerId(member.rank as u16))
            .collect(),
    });
    let work = Work::Training {
        server: places.place(&training.server),
        workers: workers.collect(),
        mode: match training.aggregate_on {
            Some(_) => Mode::Switch,
            None => Mode::Direct,
        },
        parts: parts.collect(),
        everybody: address(Mac::of_job(JOB)),
    };
    Setup {
        job: JobConfig {
            workers: training.workers.len() as u16,
            window: training.window,
            values_per_packet: wire::VALUES_PER_PACKET as u16,
            values_per_round: PARAMETERS,
            ..share.job
        },
        rounds: training.iterations.into(),
        work,
        costs: Costs {
            socket_bytes: Some(SOCKET_BYTES),
            ..share.costs
        },
        ..share
    }
}

fn of_job(
    job: &Job,
    asked: &AllReduce,
    places: &Places<'_>,
    share: Setup,
) -> Result<Setup, SimulateError> {
    let top = job.tree.first().map_or(0, |top| top.children.len());
    let ranks = job.ranks.iter().map(|rank| {
        let place = job.tree.iter().find_map(|summing| {
            let child = summing.children.iter().position(|child| child == rank)?;
            Some(TreePosition {
                child: WorkerId(child as u16),
                siblings: summing.children.len() as u8,
                top: top as u8,
            })
        });
        Some(RankAt {
            host: places.place(rank),
            place: place?,
        })
    });
    let ranks: Option<Vec<RankAt>> = ranks.collect();
    let ranks = ranks.ok_or(SimulateError::Nothing(
        "no switch sums for one of the ranks",
    ))?;
    Ok(Setup {
        job: JobConfig {
            job: JobId(job.number),
            workers: ranks.len() as u16,
            window: job.window,
            values_per_packet: job.values.count(),
            values_per_round: asked.values,
            ..share.job
        },
        retransmission: Retransmission::of_ranks(),
        costs: Costs {
            compute_ns: share.costs.compute_ns,
            processors: share.costs.processors,
            ..COSTS_OF_RANKS
        },
        rounds: asked.operations,
        work: Work::AllReduce {
            ranks,
            sum: address(Mac::of_sum(job.number)),
            question: address(Mac::of_question(job.number)),
        },
        ..share
    })
}
