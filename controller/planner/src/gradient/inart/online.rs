//! Plans for training jobs that arrive at a network and depart from it while others run.

use std::collections::BTreeMap;

use super::plan;
use crate::gradient::{Job, JobError, Loads, Plan, Resource, occupy, release};
use crate::network::{Network, NodeId};

/// A network and the jobs that run in it.
#[derive(Debug, Clone)]
pub struct Online {
    network: Network,
    /// Ingress rate in bit/s that running jobs use of each host with a server.
    ingress_bps: BTreeMap<NodeId, u64>,
    jobs: BTreeMap<String, Running>,
}

#[derive(Debug, Clone)]
struct Running {
    plan: Plan,
    /// Rate in bit/s that the job uses of each resource.
    takes: Vec<(Resource, u64)>,
}

/// Why a job was refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refused {
    /// A job of this name is running already.
    #[error("job `{0}` runs already")]
    Runs(String),
    /// The job is invalid, or cannot send at all.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The job cannot reach the requested rate beside the running jobs.
    #[error("job `{job}` would have {reached_bps} bit/s of {wanted_bps}: {binding} is full first")]
    TooSlow {
        /// Name of the refused job.
        job: String,
        /// Requested rate of each worker, in bit/s.
        wanted_bps: u64,
        /// Rate that each worker could reach, in bit/s.
        reached_bps: u64,
        /// Name of the resource that limits the rate.
        binding: String,
    },
}

impl Online {
    /// A network without running jobs, apart from the loads that it has already.
    #[must_use]
    pub fn new(network: Network) -> Online {
        Online {
            network,
            ingress_bps: BTreeMap::new(),
            jobs: BTreeMap::new(),
        }
    }

    /// The network, with the loads of all running jobs.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Plan of the running job of this name; `None` if there is none.
    #[must_use]
    pub fn plan(&self, job: &str) -> Option<&Plan> {
        self.jobs.get(job).map(|running| &running.plan)
    }

    /// Plans a job beside the running jobs, which stay as they are, and reserves capacity for `wanted_bps` of each worker.
    pub fn arrive(&mut self, job: &Job, shares: &[f64], wanted_bps: u64) -> Result<&Plan, Refused> {
        if self.jobs.contains_key(&job.name) {
            return Err(Refused::Runs(job.name.clone()));
        }
        let mut job = job.clone();
        for server in &mut job.servers {
            server.load_bps += self.ingress_bps.get(&server.host).copied().unwrap_or(0);
        }
        let plan = plan(&self.network, &job, shares)?;
        let loads = Loads::from_plan(&self.network, &job, &plan);
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

    /// Releases the capacity of the job of this name, and returns its plan; `None` if it was not running.
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
