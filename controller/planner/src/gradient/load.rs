//! What a plan does to a network, for each bit a second that every worker sends.

use std::collections::BTreeMap;

use super::{Job, Part, Plan};
use crate::network::{Arc, Network, NodeId};

/// What can be full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// A direction of a link.
    Link(Arc),
    /// What a switch sums.
    Sums(NodeId),
    /// What a server takes in.
    Ingress(NodeId),
}

/// Bits that pass each resource for each bit that a worker sends.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loads(BTreeMap<Resource, f64>);

/// The resource that is full first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binding {
    /// Which.
    pub resource: Resource,
    /// The rate of all workers at which it is, in bits a second.
    pub rate_bps: f64,
}

impl Loads {
    /// Of a plan.
    #[must_use]
    pub fn of(network: &Network, job: &Job, plan: &Plan) -> Loads {
        let mut loads = Loads::default();
        for part in &plan.parts {
            loads.add_part(network, job, part);
        }
        loads
    }

    /// Of one part of a plan.
    #[must_use]
    pub fn of_part(network: &Network, job: &Job, part: &Part) -> Loads {
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

    /// Each resource with its load, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Resource, f64)> + '_ {
        self.0.iter().map(|(resource, load)| (*resource, *load))
    }

    /// What is full first when all workers send ever faster; `None` if nothing binds.
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
}

/// Takes from a network what a job's workers send when each sends so many bits a second by a plan: what is left is for the
/// next job. Servers belong to their jobs.
pub fn occupy(network: &mut Network, job: &Job, plan: &Plan, rate_bps: f64) {
    for (resource, load) in Loads::of(network, job, plan).iter() {
        // Rounded up, so that no more is left than there is.
        let bps = (load * rate_bps).ceil() as u64;
        match resource {
            Resource::Link(arc) => {
                let link = network.link_mut(arc.link);
                let load = &mut link.load_bps[usize::from(arc.back)];
                *load = load.saturating_add(bps).min(link.rate_bps.max(*load));
            }
            Resource::Sums(switch) => {
                if let Some(switch) = network.switch_mut(switch) {
                    switch.load_bps = switch.load_bps.saturating_add(bps);
                }
            }
            Resource::Ingress(_) => {}
        }
    }
}

/// What a resource has left, in bits a second; `None` if it has no limit.
#[must_use]
pub fn spare_bps(network: &Network, job: &Job, resource: Resource) -> Option<f64> {
    match resource {
        Resource::Link(arc) => Some(network.spare_bps(arc) as f64),
        Resource::Sums(switch) => {
            let switch = network.switch(switch)?;
            let spare = switch.throughput_bps?.saturating_sub(switch.load_bps);
            Some(spare as f64)
        }
        Resource::Ingress(host) => {
            let server = job.servers.iter().find(|server| server.host == host)?;
            Some(server.spare_bps(network) as f64)
        }
    }
}
