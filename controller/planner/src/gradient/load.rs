//! Load that a plan puts on links, switches and servers, for each bit/s that every worker sends; includes the plan's answers.

use std::collections::BTreeMap;

use super::{Job, Part, Plan};
use crate::network::{Arc, Network, NodeId};

/// Resource of a network with a limited rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Rate on a directed link.
    Link(Arc),
    /// Rate of gradients that a switch sums.
    Sums(NodeId),
    /// Rate at which a server receives.
    Ingress(NodeId),
}

impl Resource {
    /// Description of the resource with its name, for messages.
    #[must_use]
    pub fn describe(self, network: &Network) -> String {
        let name = |node: NodeId| network.name(node);
        match self {
            Resource::Link(arc) => {
                let (from, to) = network.ends(arc);
                format!("the link from `{}` to `{}`", name(from), name(to))
            }
            Resource::Sums(switch) => format!("the sums of switch `{}`", name(switch)),
            Resource::Ingress(host) => format!("the ingress of server `{}`", name(host)),
        }
    }
}

/// Bits on each resource per bit that a worker sends.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loads(BTreeMap<Resource, f64>);

/// The resource that is full first as the workers' rate grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binding {
    /// The resource that is full.
    pub resource: Resource,
    /// Rate of all workers, in bit/s, at which the resource is full.
    pub rate_bps: f64,
}

impl Loads {
    /// Loads of a plan on all resources.
    #[must_use]
    pub fn from_plan(network: &Network, job: &Job, plan: &Plan) -> Loads {
        let mut loads = Loads::default();
        for part in &plan.parts {
            loads.add_part(network, job, part);
        }
        for answers in &plan.answers {
            for arc in &answers.tree {
                loads.add(Resource::Link(*arc), answers.share);
            }
        }
        loads
    }

    /// Loads of one part of a plan on all resources.
    #[must_use]
    pub fn from_part(network: &Network, job: &Job, part: &Part) -> Loads {
        let mut loads = Loads::default();
        loads.add_part(network, job, part);
        loads
    }

    fn add_part(&mut self, network: &Network, job: &Job, part: &Part) {
        let share = part.share;
        for arc in part.members.iter().flat_map(|member| &member.route) {
            self.add(Resource::Link(*arc), share);
        }
        for arc in &part.up {
            self.add(Resource::Link(*arc), share);
        }
        let members = part.members.len() as f64;
        let is_switch = network.switch(part.at).is_some();
        if is_switch {
            self.add(Resource::Sums(part.at), share * members);
        }
        let streams = if is_switch { 1.0 } else { members };
        let server = &job.servers[part.server];
        self.add(Resource::Ingress(server.host), share * streams);
    }

    fn add(&mut self, resource: Resource, load: f64) {
        *self.0.entry(resource).or_default() += load;
    }

    /// Each resource with its load, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (Resource, f64)> + '_ {
        self.0.iter().map(|(resource, load)| (*resource, *load))
    }

    /// Rate in bit/s that is used of each resource if every worker sends at `rate_bps`.
    #[must_use]
    pub fn at(&self, rate_bps: f64) -> Vec<(Resource, u64)> {
        // Rounds up, but not if only a rounding error in the rate exceeds a whole capacity.
        let used = |load: f64| (load * rate_bps * (1.0 - 1e-12)).ceil() as u64;
        self.iter()
            .map(|(resource, load)| (resource, used(load)))
            .collect()
    }

    /// The resource that is full first as all workers' rate grows; `None` if no resource is limited.
    #[must_use]
    pub fn binding(&self, network: &Network, job: &Job) -> Option<Binding> {
        let limits = self.iter().filter_map(|(resource, load)| {
            let spare = spare_bps(network, job, resource)?;
            Some(Binding {
                resource,
                rate_bps: spare / load,
            })
        });
        limits.min_by(|a, b| a.rate_bps.total_cmp(&b.rate_bps))
    }
    /// Rate in bit/s of all workers at which the first resource is full; infinite if no resource is limited.
    pub(crate) fn rate_bps(&self, network: &Network, job: &Job) -> f64 {
        let binding = self.binding(network, job);
        binding.map_or(f64::INFINITY, |binding| binding.rate_bps)
    }
}

/// Reserves in the network the rates that a plan uses, except servers' ingress, which belongs to their jobs.
pub fn occupy(network: &mut Network, used: &[(Resource, u64)]) {
    change(network, used, u64::saturating_add);
}

/// Releases in the network the rates that [`occupy`] has reserved.
pub fn release(network: &mut Network, used: &[(Resource, u64)]) {
    change(network, used, u64::saturating_sub);
}

fn change(network: &mut Network, used: &[(Resource, u64)], by: impl Fn(u64, u64) -> u64) {
    for (resource, bps) in used {
        let load = match resource {
            Resource::Link(arc) => &mut network.link_mut(arc.link).load_bps[usize::from(arc.back)],
            Resource::Sums(switch) => match network.switch_mut(*switch) {
                Some(switch) => &mut switch.load_bps,
                None => continue,
            },
            Resource::Ingress(_) => continue,
        };
        *load = by(*load, *bps);
    }
}

/// Spare rate of a resource in bit/s; `None` if it has no limit.
#[must_use]
pub fn spare_bps(network: &Network, job: &Job, resource: Resource) -> Option<f64> {
    match resource {
        Resource::Link(arc) => Some(network.spare_bps(arc) as f64),
        Resource::Sums(switch) => Some(network.switch(switch)?.spare_sums_bps()? as f64),
        Resource::Ingress(host) => {
            let server = job.servers.iter().find(|server| server.host == host)?;
            Some(server.spare_bps(network) as f64)
        }
    }
}
