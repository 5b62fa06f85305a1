//! The gradient plan of a training (`plan:`): which switches, or the server, sum the gradients of which workers.
//!
//! A plan has parts: one for each node that sums, with its workers. Frames have the number of their part, so that a switch sums
//! its own part and forwards all others (docs/protocol.md, "Parts"). Two Ethernet addresses of this number ([`Mac::of_part`])
//! determine the route of the frames: one for frames that are to be summed, the other for sums and for frames that no switch
//! sums.

mod planned;
mod repair;
mod ways;

use std::collections::BTreeMap;

use planner::Method;
use serde::{Serialize, Serializer};

pub(crate) use planned::{PlanRequest, plan};
pub use repair::RepairError;

use crate::diagnostic::{Span, Spanned};
use crate::model::Path;
use crate::model::job::{JOB, Job, Summing, Transport};
use crate::model::topology::{Mac, Topology};
use crate::model::workload::Training;
use crate::units::show_rate;

/// The gradient plan of a training, in the form that switches and agents need.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gradients {
    /// The planning method that made the plan.
    #[serde(serialize_with = "by_name")]
    pub by: Method,
    /// The rate at which every worker can send its gradients under this plan, in bits per second.
    pub rate_bps: f64,
    /// An upper bound of `rate_bps`: no plan of this kind lets every worker send more.
    pub bound_bps: f64,
    /// Whether it is proven that no plan of this kind has a higher rate.
    pub is_optimal: bool,
    /// The parts of the plan: for each, the node that sums and its workers.
    pub parts: Vec<Part>,
    /// The paths of the server's answers to all workers: switches, each with a port by which it forwards the answers; switches
    /// nearer to the server come first. Empty: the answers take the shortest paths, for which the plan does not account.
    pub answers: Vec<Hop>,
}

/// A part of the plan: a set of workers whose gradients one node sums.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Number of the part in aggregation headers.
    pub number: u16,
    /// Name of the switch that sums the part; `None`: the server sums it.
    pub on: Option<String>,
    /// The workers of the part. The position in this list is the worker's number at the summing switch.
    pub members: Vec<Member>,
    /// The hops of the part's sum to the server; the first hop is the summing switch.
    pub up: Vec<Hop>,
}

/// A worker of a part of the plan, with the path of its gradients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Name of the worker's host.
    pub host: String,
    /// The worker's rank in the training.
    pub rank: usize,
    /// Number of the route of the worker's frames. It differs between workers of one part whose paths diverge at a switch.
    pub route: u8,
    /// The hops of the worker's frames, up to the node that sums.
    pub way: Vec<Hop>,
    /// The summing switch's ingress port for the worker's frames; `None` if the server sums.
    pub port: Option<u32>,
}

/// A hop of a path: a switch, and the port by which frames leave it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// Name of the switch.
    pub switch: String,
    /// Number of the egress port.
    pub port: u32,
}

impl Part {
    /// The destination Ethernet address of the frames that a worker of this part sends.
    #[must_use]
    pub fn address(&self, member: &Member) -> Mac {
        match self.on {
            Some(_) => Mac::of_part(self.number, member.route),
            None => Mac::of_part_summed(self.number, member.route),
        }
    }

    /// The route numbers of the frames of this part, ascending.
    pub(crate) fn routes(&self) -> Vec<u8> {
        let mut routes: Vec<u8> = self.members.iter().map(|member| member.route).collect();
        routes.sort_unstable();
        routes.dedup();
        routes
    }
}

impl Gradients {
    /// The part with this number; `None` if the plan has none.
    #[must_use]
    pub fn part(&self, number: u16) -> Option<&Part> {
        self.parts.iter().find(|part| part.number == number)
    }

    /// Names of the switches that sum, in the order of the parts.
    pub fn summing(&self) -> impl Iterator<Item = String> + '_ {
        self.parts.iter().filter_map(|part| part.on.clone())
    }

    /// The lowest number that is above the numbers of all parts.
    #[must_use]
    pub fn next_number(&self) -> u16 {
        let numbers = self.parts.iter().map(|part| part.number);
        numbers.max().unwrap_or(JOB) + 1
    }

    /// The worker on a host, with the part of the plan to which the worker belongs; `None` if no worker runs there.
    #[must_use]
    pub fn part_of(&self, host: &str) -> Option<(&Part, &Member)> {
        self.parts.iter().find_map(|part| {
            let mut members = part.members.iter();
            Some((part, members.find(|member| member.host == host)?))
        })
    }

    /// The ports by which a switch forwards answers to all workers; `None`: the plan leaves the answers to the shortest paths.
    pub(crate) fn answer_ports(&self, switch: &str) -> Option<Vec<u32>> {
        let hops = self.answers.iter().filter(|hop| hop.switch == switch);
        let ports = hops.map(|hop| hop.port).collect();
        (!self.answers.is_empty()).then_some(ports)
    }

    /// The paths of gradients from each worker to the server. Other packets may take other paths.
    pub(crate) fn paths<'g>(&'g self, server: &'g str) -> impl Iterator<Item = Path> + 'g {
        let members = self.parts.iter().flat_map(|part| {
            let members = part.members.iter();
            members.map(move |member| (part, member))
        });
        members.map(move |(part, member)| Path {
            from: member.host.clone(),
            to: server.to_owned(),
            switches: (member.way.iter().chain(&part.up))
                .map(|hop| hop.switch.clone())
                .collect(),
        })
    }

    /// The paths of the server's answers to all workers; empty if the plan lacks them. Answers to one worker take other paths.
    pub(crate) fn answered<'g>(
        &'g self,
        topology: &'g Topology,
        training: &'g Training,
    ) -> impl Iterator<Item = Path> + 'g {
        let before = self.answers.iter().filter_map(|hop| {
            let mut ports = topology.ports(&hop.switch);
            let port = ports.find(|port| port.number == hop.port)?;
            Some((port.peer, hop.switch.as_str()))
        });
        let before: BTreeMap<&str, &str> = before.collect();
        let workers = training.workers.iter();
        workers.filter_map(move |worker| {
            let mut switches: Vec<String> = Vec::new();
            let mut at = worker.as_str();
            while let Some(switch) = before.get(at) {
                switches.push((*switch).to_owned());
                at = switch;
            }
            switches.reverse();
            (!switches.is_empty()).then(|| Path {
                from: training.server.clone(),
                to: worker.clone(),
                switches,
            })
        })
    }

    /// The parts that switches sum, as jobs: the workers of a part are the job's ranks.
    pub(crate) fn jobs(&self, training: &Training, span: Span) -> Vec<Job> {
        let summed = self.parts.iter().filter_map(|part| {
            let ranks: Vec<String> = part
                .members
                .iter()
                .map(|member| member.host.clone())
                .collect();
            Some(Job {
                name: format!("training-{}", part.number - JOB),
                number: part.number,
                tree: vec![Summing {
                    switch: part.on.clone()?,
                    children: ranks.clone(),
                    parent: None,
                }],
                ranks,
                window: training.window,
                base: 0,
                deadline: None,
                rate: None,
                values: parser_gen::FrameValues::default(),
                values_span: None,
                transport: Spanned::new(Transport::Udp, span),
                contact: 0,
                span,
            })
        });
        summed.collect()
    }
}

fn by_name<S: Serializer>(by: &Method, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(by.name())
}

/// Text of the plan for users: first the rate of every worker, then a line per part.
pub(crate) fn text(gradients: &Gradients) -> Vec<String> {
    let best = match gradients.is_optimal {
        true => "no plan is faster".to_owned(),
        false => format!(
            "no plan is faster than {}",
            show_rate(gradients.bound_bps as u64)
        ),
    };
    let rate = show_rate(gradients.rate_bps as u64);
    let answered = match gradients.answers.is_empty() {
        true => "",
        false => " and receive sums as fast",
    };
    let mut lines = vec![format!("every worker can send {rate}{answered}: {best}")];
    for part in &gradients.parts {
        let at = part.on.as_deref().unwrap_or("the server");
        let members = part.members.iter().map(|member| {
            let passed: Vec<&str> = member.way.iter().map(|hop| hop.switch.as_str()).collect();
            match passed.is_empty() {
                true => member.host.clone(),
                false => format!("{} (through {})", member.host, passed.join(", ")),
            }
        });
        let members: Vec<String> = members.collect();
        lines.push(format!("{at} sums {}", members.join(", ")));
    }
    lines
}
