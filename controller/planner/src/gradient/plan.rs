//! What a planner says.

use crate::network::{Arc, NodeId};

/// The directions of links that a frame passes, in order.
pub type Route = Vec<Arc>;

/// Where the gradients of a job are summed.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The job's name.
    pub job: String,
    /// Who is summed where. Each worker is a member of one part of each piece; where a baseline splits what a worker sends by
    /// what has room, of several, whose shares are the piece's together.
    pub parts: Vec<Part>,
    /// How sums come back to workers, from each server that answers. Empty if the plan is of what workers send alone.
    pub answers: Vec<Answers>,
    /// What every worker can send, and has answered at the same time where the plan has answers, in bits a second.
    pub rate_bps: f64,
    /// No plan of this kind lets every worker send more; infinite if the plan was not made for that.
    pub bound_bps: f64,
    /// What it was made for.
    pub goal: Goal,
    /// Whether it is shown that no plan of this kind serves that goal better.
    pub is_optimal: bool,
}

/// What a plan is made for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// That every worker sends as much as can be: [`Plan::rate_bps`], of which [`Plan::bound_bps`] is an upper bound.
    Rate,
    /// That little passes the network in a round.
    Traffic {
        /// Bytes times the cost of each link that they pass, over all links.
        byte_cost: f64,
        /// No plan of this kind costs less.
        bound: f64,
    },
}

/// Workers whose gradients one node sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Which piece of the gradient this is about: a sub-model, or what one of several servers has. Pieces follow each other.
    pub piece: usize,
    /// The share of the gradient that the piece is, above 0 and up to 1. All pieces are 1 together.
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

/// The way of a server's answers: one copy over each link of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Answers {
    /// Whose they are: a place in the job's servers.
    pub server: usize,
    /// The share of the gradient that it answers: that of all its pieces.
    pub share: f64,
    /// The directions of links that make the tree, those nearer to the server first.
    pub tree: Vec<Arc>,
}

impl Plan {
    /// Links that frames pass in a round, those of each stream counted for itself.
    #[must_use]
    pub fn hops(&self) -> usize {
        let parts = self.parts.iter().map(|part| {
            let members = part.members.iter().map(|member| member.route.len());
            members.sum::<usize>() + part.up.len()
        });
        let answers = self.answers.iter().map(|answers| answers.tree.len());
        parts.chain(answers).sum()
    }

    /// How far the plan may be from the best, as a share: of the best rate, or of this plan's traffic.
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
