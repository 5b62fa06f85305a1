//! What is to be planned: who sends gradients to whom.

use crate::network::{Network, NodeId};

/// A training job and its parameter servers.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Hosts that send gradients, by rank.
    pub workers: Vec<NodeId>,
    /// Who needs their sum: one server, or several that have a share of the model each.
    pub servers: Vec<Server>,
}

/// A parameter server.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Its host.
    pub host: NodeId,
    /// Bits a second that it takes in; `None`: as many as its links carry.
    pub ingress_bps: Option<u64>,
    /// Bits a second that it takes in already, of other jobs.
    pub load_bps: u64,
}

impl Server {
    /// One that takes in whatever its links carry.
    #[must_use]
    pub fn on(host: NodeId) -> Server {
        Server {
            host,
            ingress_bps: None,
            load_bps: 0,
        }
    }

    /// What it can take in yet, in bits a second: its own limit, and that of its links.
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
    /// There is nobody to send.
    #[error("job `{0}` has no workers")]
    NoWorkers(String),
    /// There is nobody to send to.
    #[error("job `{0}` has no server")]
    NoServer(String),
    /// The planner places one server's sums alone.
    #[error("job `{0}` has {1} servers; this planner is for one")]
    OneServer(String, usize),
    /// Two ranks on one host are not told apart by it.
    #[error("job `{0}` has host `{1}` twice")]
    HostTwice(String, String),
    /// A switch is no worker and no server.
    #[error("job `{0}`: `{1}` is no host")]
    NoHost(String, String),
    /// Nothing leads there, or what leads there is full.
    #[error("job `{job}`: nothing leads from `{from}` to `{to}` that has room left")]
    NoWay {
        /// The job.
        job: String,
        /// A worker or a switch.
        from: String,
        /// The server.
        to: String,
    },
    /// Shares are not one for each server, or not 1 together.
    #[error("job `{0}` has {1} servers: it needs a share from 0 to 1 for each, 1 together")]
    Shares(String, usize),
    /// A program that is solved for small networks alone.
    #[error("the exact program of job `{0}` has more than the {1} whole variables that are solved")]
    TooLarge(String, usize),
    /// The server takes nothing in.
    #[error("job `{0}`: server `{1}` has nothing left of what it takes in")]
    NoIngress(String, String),
}

impl Job {
    /// Refuses what makes no sense in this network.
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

    /// The only server.
    pub fn server(&self) -> Result<&Server, JobError> {
        match self.servers.as_slice() {
            [server] => Ok(server),
            servers => Err(JobError::OneServer(self.name.clone(), servers.len())),
        }
    }
}
