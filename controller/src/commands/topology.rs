//! Describes a scenario's network in JSON, for programs that build the network: `weir plan --topology`.

use scenario::Scenario;
use scenario::model::workload::Workload;
use scenario::plan::names::JOB;
use serde::Serialize;

/// The JSON object of `weir plan --topology`: hosts, switches, links, and the settings of a training.
#[derive(Serialize)]
pub struct Network<'a> {
    scenario: &'a str,
    seed: u64,
    hosts: Vec<Host<'a>>,
    switches: &'a [String],
    links: Vec<Link<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    training: Option<Training<'a>>,
}

#[derive(Serialize)]
struct Host<'a> {
    name: &'a str,
    ip: String,
    mac: String,
}

#[derive(Serialize)]
struct Link<'a> {
    ends: [End<'a>; 2],
}

#[derive(Serialize)]
struct End<'a> {
    node: &'a str,
    /// Number of the switch's port; `None` for a host, which has one interface.
    port: Option<u32>,
}

/// Settings for the agents of a training.
#[derive(Serialize)]
struct Training<'a> {
    job: u16,
    server: &'a str,
    workers: &'a [String],
    window: u64,
    iterations: u64,
    /// Number of packets that each worker sends in one iteration.
    chunks: usize,
}

impl<'a> Network<'a> {
    /// Describes the network and the training of a scenario.
    pub fn new(scenario: &'a Scenario) -> Network<'a> {
        let topology = &scenario.topology;
        let end = |link: &'a scenario::model::topology::Link, node: &'a str| End {
            node,
            port: topology
                .ports(node)
                .find(|port| topology.has_switch(node) && std::ptr::eq(port.link, link))
                .map(|port| port.number),
        };
        let training = match &scenario.workload {
            Some(Workload::Training(training)) => Some(Training {
                job: JOB,
                server: &training.server,
                workers: &training.workers,
                window: training.window.into(),
                iterations: training.iterations.into(),
                chunks: controller::experiment::fleet::aggregation::chunks_per_iteration(),
            }),
            _ => None,
        };
        Network {
            scenario: &scenario.name,
            seed: scenario.seed,
            hosts: topology
                .hosts
                .iter()
                .map(|host| Host {
                    name: &host.name,
                    ip: host.ip.to_string(),
                    mac: host.mac.to_string(),
                })
                .collect(),
            switches: &topology.switches,
            links: topology
                .links
                .iter()
                .map(|link| Link {
                    ends: [end(link, &link.ends[0]), end(link, &link.ends[1])],
                })
                .collect(),
            training,
        }
    }
}
