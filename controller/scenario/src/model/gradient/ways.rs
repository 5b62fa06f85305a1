//! Converts a planner's routes to the switches and ports of a scenario's topology.

use planner::gradient::Plan;
use planner::network::Arc;
use planner::{LinkId, Network, NodeId};

use super::{Hop, Member, Part};
use crate::diagnostic::{Code, Sink, Span};
use crate::model::job::MAX_CHILDREN;
use crate::model::topology::Topology;
use crate::model::workload::Training;

/// Maximum number of jobs that switches distinguish by Ethernet address. Each training and each part of a plan uses one.
const NUMBERS: usize = 256;

/// The parts of a gradient plan with switches and ports; `None` if switches cannot carry the plan out, which is reported.
pub(super) fn parts(
    sink: &mut Sink<'_>,
    (network, topology): (&Network, &Topology),
    training: &Training,
    plan: &Plan,
    (span, first): (Span, u16),
) -> Option<Vec<Part>> {
    if plan.parts.len() + usize::from(first) > NUMBERS {
        let message = format!(
            "the plan has {} parts, which need a job number each, but {first} of the {NUMBERS} numbers are taken",
            plan.parts.len()
        );
        sink.error(Code::Capacity, span, message);
        return None;
    }
    let ports = Ports { network, topology };
    let mut parts = Vec::new();
    for (planned, number) in plan.parts.iter().zip(first..) {
        let on = network
            .switch(planned.at)
            .map(|_| network.name(planned.at).to_owned());
        if let Some(on) = on.as_ref().filter(|_| planned.members.len() > MAX_CHILDREN) {
            let message = format!(
                "the plan lets switch `{on}` sum {} workers, but a switch sums at most {MAX_CHILDREN}",
                planned.members.len()
            );
            sink.error(Code::Capacity, span, message);
            return None;
        }
        let mut members: Vec<Member> = Vec::new();
        for member in &planned.members {
            let way = ports.hops(&member.route);
            let port = member.route.last().filter(|_| on.is_some());
            members.push(Member {
                host: training.workers[member.worker].clone(),
                rank: member.worker,
                route: route(sink, &members, &way, span)?,
                way,
                port: port.map(|arc| ports.number(planned.at, arc.link)),
            });
        }
        parts.push(Part {
            number,
            on,
            members,
            up: ports.hops(&planned.up),
        });
    }
    Some(parts)
}

/// The switches at which these directed links start, each with its egress port to the link.
pub(super) fn hops((network, topology): (&Network, &Topology), arcs: &[Arc]) -> Vec<Hop> {
    Ports { network, topology }.hops(arcs)
}

/// The lowest route number for the path `way`: no path in `others` with this number diverges from it. `None`: all are taken.
fn route(sink: &mut Sink<'_>, others: &[Member], way: &[Hop], span: Span) -> Option<u8> {
    let parts_ways = |other: &Member| {
        let mut hops = other.way.iter();
        hops.any(|hop| {
            way.iter()
                .any(|own| own.switch == hop.switch && own.port != hop.port)
        })
    };
    let is_free = |route: &u8| {
        let mut same = others.iter().filter(|other| other.route == *route);
        !same.any(parts_ways)
    };
    let free = (0..=u8::MAX).find(is_free);
    if free.is_none() {
        let message = "the plan sends frames of one part over more than 256 routes";
        sink.error(Code::Capacity, span, message);
    }
    free
}

struct Ports<'n> {
    network: &'n Network,
    topology: &'n Topology,
}

impl Ports<'_> {
    /// The switches at which the directed links of a route start, each with its egress port to the link.
    fn hops(&self, route: &[Arc]) -> Vec<Hop> {
        let left = route.iter().filter_map(|arc| {
            let (from, _) = self.network.ends(*arc);
            self.network.switch(from)?;
            Some(Hop {
                switch: self.network.name(from).to_owned(),
                port: self.number(from, arc.link),
            })
        });
        left.collect()
    }

    /// The number of a switch's port at a link; 0 if the switch is not at an end of the link.
    fn number(&self, switch: NodeId, link: LinkId) -> u32 {
        let declared = &self.topology.links[link.index()];
        let mut ports = self.topology.ports(self.network.name(switch));
        let port = ports.find(|port| std::ptr::eq(port.link, declared));
        port.map_or(0, |port| port.number)
    }
}
