//! Describes the jobs to plan: workers that send gradients to parameter servers.

use crate::network::{Network, NodeId};

/// A training job: its workers and parameter servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Name of the job.
    pub name: String,
    /// Hosts of the workers, which send gradients, by rank.
    pub workers: Vec<NodeId>,
    /// Servers that need the sum: one, or several that each hold a share of the model.
    pub servers: Vec<Server>,
}

/// A parameter server of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Host on which the server runs.
    pub host: NodeId,
    /// Maximum ingress rate of the server in bit/s; `None`: the rate of its links.
    pub ingress_bps: Option<u64>,
    /// Ingress rate of the server in bit/s that other jobs use already.
    pub load_bps: u64,
}

impl Server {
    /// A server on this host, without a limit except its links.
    #[must_use]
    pub fn on(host: NodeId) -> Server {
        Server {
            host,
            ingress_bps: None,
            load_bps: 0,
        }
    }

    /// Spare ingress rate of the server in bit/s, by its own limit and its links.
    #[must_use]
    pub fn spare_bps(&self, network: &Network) -> u64 {
        let links = network.adjacent(self.host).iter();
        let into = links.map(|(link, peer)| network.spare_bps(network.arc(*link, *peer)));
        let own = self
            .ingress_bps
            .map(|bps| bps.saturating_sub(self.load_bps));
        own.unwrap_or(u64::MAX)
            .min(into.fold(0, u64::saturating_add))
    }
}

/// Why a job cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The job, given by name, has no workers.
    #[error("job `{0}` has no workers")]
    NoWorkers(String),
    /// The job, given by name, has no servers.
    #[error("job `{0}` has no server")]
    NoServer(String),
    /// The job has this number of servers, and the planner supports one only.
    #[error("job `{0}` has {1} servers; this planner supports one")]
    OneServer(String, usize),
    /// The job (first name) contains a host (second name) twice; ranks on one host cannot be distinguished.
    #[error("job `{0}` has host `{1}` twice")]
    HostTwice(String, String),
    /// A worker or server (second name) of the job (first name) is no host.
    #[error("job `{0}`: `{1}` is not a host")]
    NoHost(String, String),
    /// No path leads from a node to the server, or all paths are full.
    #[error("job `{job}`: no path from `{from}` to `{to}` has spare capacity")]
    NoWay {
        /// Name of the job.
        job: String,
        /// Name of the worker or switch that cannot reach the server.
        from: String,
        /// Name of the server.
        to: String,
    },
    /// The shares do not add up to 1, or are not as many as the servers: the job's name, and its number of servers.
    #[error("job `{0}` has {1} servers: give each a share from 0 to 1; their sum is 1")]
    Shares(String, usize),
    /// The job (given by name) is too large for the exact program; the number is the maximum of integer variables.
    #[error("the exact program of job `{0}` has more than {1} integer variables, the maximum")]
    TooLarge(String, usize),
    /// The server (second name) of the job (first name) has no ingress rate left.
    #[error("job `{0}`: server `{1}` has no ingress rate left")]
    NoIngress(String, String),
}

impl Job {
    /// Checks that a network can carry the job: hosts, servers and ingress rates.
    pub fn check(&self, network: &Network) -> Result<(), JobError> {
        let name = |node: NodeId| network.name(node).to_owned();
        if self.workers.is_empty() {
            return Err(JobError::NoWorkers(self.name.clone()));
        }
        if self.servers.is_empty() {
            return Err(JobError::NoServer(self.name.clone()));
        }
        let servers = self.servers.iter().map(|server| server.host);
        let mut hosts: Vec<NodeId> = servers.chain(self.workers.iter().copied()).collect();
        if let Some(other) = hosts.iter().find(|host| network.host(**host).is_none()) {
            return Err(JobError::NoHost(self.name.clone(), name(*other)));
        }
        hosts.sort_unstable();
        if let Some(pair) = hosts.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(JobError::HostTwice(self.name.clone(), name(pair[0])));
        }
        let mut servers = self.servers.iter();
        if let Some(full) = servers.find(|server| server.spare_bps(network) == 0) {
            return Err(JobError::NoIngress(self.name.clone(), name(full.host)));
        }
        Ok(())
    }

    /// Least spare rate, over all workers, of a worker's links together, in bit/s.
    pub(crate) fn narrowest_bps(&self, network: &Network) -> f64 {
        let workers = self.workers.iter().map(|worker| {
            let links = network.adjacent(*worker).iter();
            let rates =
                links.map(|(link, _)| network.spare_bps(network.arc(*link, *worker)) as f64);
            rates.sum::<f64>()
        });
        workers.fold(f64::INFINITY, f64::min)
    }

    /// Error that no path with spare capacity leads from one node to another.
    pub(crate) fn no_way(&self, network: &Network, from: NodeId, to: NodeId) -> JobError {
        JobError::NoWay {
            job: self.name.clone(),
            from: network.name(from).to_owned(),
            to: network.name(to).to_owned(),
        }
    }

    /// The job's only server; an error if it has several.
    pub fn server(&self) -> Result<&Server, JobError> {
        match self.servers.as_slice() {
            [server] => Ok(server),
            servers => Err(JobError::OneServer(self.name.clone(), servers.len())),
        }
    }
}
