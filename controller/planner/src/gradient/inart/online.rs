//! Jobs that come and go.

use std::collections::BTreeMap;

use super::plan;
use crate::gradient::{Job, JobError, Loads, Plan, Resource, occupy, release};
use crate::network::{Network, NodeId};

/// A network with the jobs that run in it.
#[derive(Debug, Clone)]
pub struct Online {
    network: Network,
    /// What servers take in already, by host.
    ingress_bps: BTreeMap<NodeId, u64>,
    jobs: BTreeMap<String, Running>,
}

#[derive(Debug, Clone)]
struct Running {
    plan: Plan,
    /// What it takes.
    takes: Vec<(Resource, u64)>,
}

/// Why a job was not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// There is one of that name.
    #[error("job `{0}` runs already")]
    Runs(String),
    /// It makes no sense, or cannot send at all.
    #[error(transparent)]
    Job(#[from] JobError),
    /// It would be too slow.
    #[error("job `{job}` would have {reached_bps} bit/s of {wanted_bps}: {binding} is full first")]
    TooSlow {
        /// The job.
        job: String,
        /// What each worker was to send.
        wanted_bps: u64,
        /// What it could.
        reached_bps: u64,
        /// What stands in the way.
        binding: String,
    },
}

impl Online {
    /// No job runs yet, but for the loads that the network has.
    #[must_use]
    pub fn new(network: Network) -> Online {
        Online {
            network,
            ingress_bps: BTreeMap::new(),
            jobs: BTreeMap::new(),
        }
    }

    /// The network with the loads of all jobs.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The plan of a job that runs.
    #[must_use]
    pub fn plan(&self, job: &str) -> Option<&Plan> {
        self.jobs.get(job).map(|running| &running.plan)
    }

    /// Plans a job beside those that run, and takes what it needs so that each worker can send `wanted_bps`. Those that run
    /// stay as they are.
    pub fn arrive(&mut self, job: &Job, shares: &[f64], wanted_bps: u64) -> Result<&Plan, Refused> {
        if self.jobs.contains_key(&job.name) {
            return Err(Refused::Runs(job.name.clone()));
        }
        let mut job = job.clone();
        for server in &mut job.servers {
            server.load_bps += self.ingress_bps.get(&server.host).copied().unwrap_or(0);
        }
        let plan = plan(&self.network, &job, shares)?;
        let loads = Loads::of(&self.network, &job, &plan);
        if plan.rate_bps < wanted_bps as f64 {
            let binding = loads.binding(&self.network, &job);
            return Err(Refused::TooSlow {
                job: job.name,
                wanted_bps,
                reached_bps: plan.rate_bps as u64,
                binding: binding
                    .map_or_else(String::new, |full| full.resource.describe(&self.network)),
            });
        }
        let takes = loads.at(wanted_bps as f64);
        occupy(&mut self.network, &takes);
        self.count_ingress(&takes, u64::saturating_add);
        let running = self.jobs.entry(job.name).or_insert(Running { plan, takes });
        Ok(&running.plan)
    }

    /// Gives back what a job took; its plan, if there was one.
    pub fn depart(&mut self, job: &str) -> Option<Plan> {
        let running = self.jobs.remove(job)?;
        release(&mut self.network, &running.takes);
        self.count_ingress(&running.takes, u64::saturating_sub);
        Some(running.plan)
    }

    fn count_ingress(&mut self, takes: &[(Resource, u64)], by: impl Fn(u64, u64) -> u64) {
        for (resource, bps) in takes {
            if let Resource::Ingress(host) = resource {
                let load = self.ingress_bps.entry(*host).or_default();
                *load = by(*load, *bps);
            }
        }
    }
}
