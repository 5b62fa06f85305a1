//! What a planner says.

use crate::network::{Arc, Network, NodeId};

/// The directions of links that a frame passes, in order.
pub type Route = Vec<Arc>;

/// Where the gradients of a job are summed.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The job's name.
    pub job: String,
    /// Who is summed where. Each worker is a member of parts whose shares are 1 together.
    pub parts: Vec<Part>,
    /// What every worker can send, in bits a second.
    pub rate_bps: f64,
    /// No plan of this kind lets every worker send more.
    pub bound_bps: f64,
    /// Whether it is shown that no plan of this kind is better.
    pub is_optimal: bool,
}

/// Workers whose gradients one node sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The share of the gradient that this is about, above 0 and up to 1.
    pub share: f64,
    /// Whose it is: a place in the job's servers.
    pub server: usize,
    /// A switch, or that server.
    pub at: NodeId,
    /// Whom it sums.
    pub members: Vec<Member>,
    /// The way of what a switch has summed, to the server. Empty if the server sums.
    pub up: Route,
}

/// A worker and the way of its frames to the node that sums them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its rank.
    pub worker: usize,
    /// From its host on.
    pub route: Route,
}

impl Plan {
    /// How far the rate may be below the best, as a share of the best.
    #[must_use]
    pub fn gap(&self) -> f64 {
        if self.is_optimal {
            return 0.0;
        }
        (1.0 - self.rate_bps / self.bound_bps).max(0.0)
    }

    /// The switches that sum, in the parts' order.
    pub fn switches<'p>(&'p self, network: &'p Network) -> impl Iterator<Item = NodeId> + 'p {
        let parts = self.parts.iter().map(|part| part.at);
        parts.filter(|at| network.switch(*at).is_some())
    }
}
