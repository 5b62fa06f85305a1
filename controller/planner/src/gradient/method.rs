//! The planners by name.

use super::{Job, JobError, Plan, grid};
use crate::network::Network;

/// A way to find out where gradients are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// [`grid`].
    Grid,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 1] = [Method::Grid];
    /// How files and commands name them, in the same order.
    pub const NAMES: [&'static str; 1] = ["grid"];

    /// By name.
    #[must_use]
    pub fn of(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    /// How files and commands name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        Method::NAMES[self as usize]
    }

    /// Plans a job.
    pub fn plan(self, network: &Network, job: &Job) -> Result<Plan, JobError> {
        match self {
            Method::Grid => grid::plan(network, job),
        }
    }

    /// Looks for a better plan of the same kind, and says in it how much better one could be.
    pub fn prove(self, network: &Network, job: &Job, plan: &mut Plan) -> Result<(), JobError> {
        match self {
            Method::Grid => grid::prove(network, job, plan),
        }
    }
}
