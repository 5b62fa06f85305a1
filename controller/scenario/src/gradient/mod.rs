//! Where a training's gradients are summed, by a plan (`plan:`).
//!
//! Each part of a plan has a number of its own on the wire, so that a switch sums its own part and passes those of others
//! (docs/protocol.md, "Parts"). Which way its frames go is said by the Ethernet addresses of that number ([`Mac::of_part`]):
//! one for what is to be summed, and one for what has been, or never is.

mod entries;
mod repair;
mod resolve;
mod ways;

use std::collections::BTreeMap;

use planner::gradient::Method;
use serde::{Serialize, Serializer};

pub(crate) use entries::{forwarding, groups};
pub use repair::RepairError;
pub(crate) use resolve::resolve;

use crate::diagnostic::{Span, Spanned};
use crate::job::{Job, Summing, Transport};
use crate::model::Path;
use crate::names::JOB;
use crate::topology::{Mac, Topology};
use crate::units::show_rate;
use crate::workload::Training;

/// What a planner said of a training, as switches and agents are told it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gradients {
    /// Who said it.
    #[serde(serialize_with = "by_name")]
    pub by: Method,
    /// What every worker can send, in bits a second.
    pub rate_bps: f64,
    /// No plan of this kind lets every worker send more.
    pub bound_bps: f64,
    /// Whether it is shown that no plan of this kind is better.
    pub is_optimal: bool,
    /// Who is summed where.
    pub parts: Vec<Part>,
    /// The tree that answers to all workers take: by which ports a switch passes them on, switches nearer to the server first.
    /// Empty: that of the shortest ways, which the plan does not count.
    pub answers: Vec<Hop>,
}

/// Workers whose gradients one node sums.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Its number on the wire.
    pub number: u16,
    /// The switch that sums; `None`: the server.
    pub on: Option<String>,
    /// Whom it sums. A switch knows each by its place here.
    pub members: Vec<Member>,
    /// The way of what the switch has summed, that switch first.
    pub up: Vec<Hop>,
}

/// A worker of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    /// Its host.
    pub host: String,
    /// Its rank.
    pub rank: usize,
    /// The number of its frames' way: those of one part that part ways at a switch have different ones.
    pub route: u8,
    /// The switches on the way, up to the node that sums.
    pub way: Vec<Hop>,
    /// The port of the switch that sums by which they come in; `None` if the server sums.
    pub port: Option<u32>,
}

/// A switch that frames pass, and the port that they leave by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// The switch.
    pub switch: String,
    /// The port.
    pub port: u32,
}

impl Part {
    /// The Ethernet address that a member's frames have.
    #[must_use]
    pub fn address(&self, member: &Member) -> Mac {
        match self.on {
            Some(_) => Mac::of_part(self.number, member.route),
            None => Mac::of_part_summed(self.number, member.route),
        }
    }

    /// The numbers of the ways that its frames take.
    fn routes(&self) -> Vec<u8> {
        let mut routes: Vec<u8> = self.members.iter().map(|member| member.route).collect();
        routes.sort_unstable();
        routes.dedup();
        routes
    }
}

impl Gradients {
    /// The part that a switch sums under that number.
    #[must_use]
    pub fn part(&self, number: u16) -> Option<&Part> {
        self.parts.iter().find(|part| part.number == number)
    }

    /// The switches that sum, in the order of their parts.
    pub fn summing(&self) -> impl Iterator<Item = String> + '_ {
        self.parts.iter().filter_map(|part| part.on.clone())
    }

    /// The first number that no part has.
    #[must_use]
    pub fn next_number(&self) -> u16 {
        let numbers = self.parts.iter().map(|part| part.number);
        numbers.max().unwrap_or(JOB) + 1
    }

    /// The part that a host's worker is in.
    #[must_use]
    pub fn part_of(&self, host: &str) -> Option<(&Part, &Member)> {
        self.parts.iter().find_map(|part| {
            let mut members = part.members.iter();
            Some((part, members.find(|member| member.host == host)?))
        })
    }

    /// The ports by which a switch passes answers to all workers on; `None`: those of the shortest ways.
    pub(crate) fn answer_ports(&self, switch: &str) -> Option<Vec<u32>> {
        let hops = self.answers.iter().filter(|hop| hop.switch == switch);
        let ports = hops.map(|hop| hop.port).collect();
        (!self.answers.is_empty()).then_some(ports)
    }

    /// The ways of gradients from their workers to the server. Packets that are none go by others.
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

    /// The ways of answers to all workers, where the plan says them. Those to one worker go by others.
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

    /// What its switches sum, as jobs: each part's workers are its ranks.
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

/// For people, a line each: what every worker can send, then who is summed where.
pub(crate) fn text(gradients: &Gradients) -> Vec<String> {
    let best = match gradients.is_optimal {
        true => "no plan lets them send more".to_owned(),
        false => format!(
            "no plan lets them send more than {}",
            show_rate(gradients.bound_bps as u64)
        ),
    };
    let rate = show_rate(gradients.rate_bps as u64);
    let answered = match gradients.answers.is_empty() {
        true => "",
        false => " and be answered as fast",
    };
    let mut lines = vec![format!("every worker can send {rate}{answered}: {best}")];
    for part in &gradients.parts {
        let at = part.on.as_deref().unwrap_or("the server");
        let members = part.members.iter().map(|member| {
            let passed: Vec<&str> = member.way.iter().map(|hop| hop.switch.as_str()).collect();
            match passed.is_empty() {
                true => member.host.clone(),
                false => format!("{} (by {})", member.host, passed.join(", ")),
            }
        });
        let members: Vec<String> = members.collect();
        lines.push(format!("{at} sums {}", members.join(", ")));
    }
    lines
}
