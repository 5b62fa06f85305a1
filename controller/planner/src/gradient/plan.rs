//! Plans, the results of planners: which node sums which workers' gradients, and the paths of all frames.

use super::Job;
use crate::network::{Arc, NodeId};

/// Arcs (directed links) that a frame crosses, in order.
pub type Route = Vec<Arc>;

/// Plan of a job: where its workers' gradients are summed.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Name of the job.
    pub job: String,
    /// Assignment of workers to the nodes that sum them. For each piece of the gradient, each worker is a member of one part;
    /// of several if a baseline splits its traffic by capacity, and then their shares add up to the piece's share.
    pub parts: Vec<Part>,
    /// Multicast of sums from each server that answers its workers. Empty if the plan covers the workers' traffic only.
    pub answers: Vec<Answers>,
    /// Rate of every worker in bit/s; its answers flow at the same rate if the plan has answers.
    pub rate_bps: f64,
    /// Upper bound, in bit/s, of the rate of any plan of this kind; infinite if the plan has another goal.
    pub bound_bps: f64,
    /// Quantity that the plan optimizes.
    pub goal: Goal,
    /// Whether the plan is proved optimal for its goal among plans of this kind.
    pub is_optimal: bool,
}

/// Quantity that a plan optimizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// Greatest rate of every worker: [`Plan::rate_bps`], with [`Plan::bound_bps`] as upper bound.
    Rate,
    /// Least traffic in a round of the training.
    Traffic {
        /// Sum, over all links, of the bytes on the link times its cost.
        byte_cost: f64,
        /// Lower bound of `byte_cost` for any plan of this kind.
        bound: f64,
    },
}

/// Workers whose gradients one node sums for one piece of the gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Index of the piece of the gradient: a sub-model, or one server's share. Pieces are numbered consecutively.
    pub piece: usize,
    /// Share of the gradient, above 0 and up to 1. The shares of all pieces add up to 1.
    pub share: f64,
    /// Index of the server, in [`Job::servers`], that receives this piece of the gradient.
    pub server: usize,
    /// Node that sums the part: a switch, or the server itself.
    pub at: NodeId,
    /// Workers whose gradients the node sums.
    pub members: Vec<Member>,
    /// Path of the node's sum to the server; empty if the server itself sums.
    pub up: Route,
}

/// A worker, and the path of its frames to the node that sums them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Rank of the worker.
    pub worker: usize,
    /// Path from the worker's host to the node that sums.
    pub route: Route,
}

/// Multicast of a server's answers: one copy over each link of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// Index of the server in [`Job::servers`].
    pub server: usize,
    /// Share of the gradient whose sum the server returns: the shares of all its pieces together.
    pub share: f64,
    /// Arcs of the multicast tree; arcs nearer to the server come first.
    pub tree: Vec<Arc>,
}

impl Plan {
    /// A plan of these parts, without answers; the caller computes its rate.
    pub(crate) fn new(job: &Job, parts: Vec<Part>) -> Plan {
        Plan {
            job: job.name.clone(),
            parts,
            answers: Vec::new(),
            rate_bps: 0.0,
            bound_bps: f64::INFINITY,
            goal: Goal::Rate,
            is_optimal: false,
        }
    }

    /// Number of links that all streams of one round cross in total.
    #[must_use]
    pub fn hops(&self) -> usize {
        let parts = self.parts.iter().map(|part| {
            let members = part.members.iter().map(|member| member.route.len());
            members.sum::<usize>() + part.up.len()
        });
        let answers = self.answers.iter().map(|answers| answers.tree.len());
        parts.chain(answers).sum()
    }

    /// Upper bound of the plan's distance from the optimum: as a share of the best rate, or of the plan's traffic.
    #[must_use]
    pub fn gap(&self) -> f64 {
        if self.is_optimal {
            return 0.0;
        }
        let reached = match self.goal {
            Goal::Rate => self.rate_bps / self.bound_bps,
            Goal::Traffic { byte_cost, bound } => bound / byte_cost,
        };
        (1.0 - reached).max(0.0)
    }
}
