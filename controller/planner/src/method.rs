//! The planners that decide where gradients are summed, by the names that users write.

use crate::baseline::{atp, equal_split, esa, geryon, lbmm, raw, rgria, switchml};
use crate::gradient::grid::{self, Work};
use crate::gradient::{Job, JobError, Plan, inart};
use crate::network::Network;

/// Seed for [`rgria`], in which each worker draws the node that sums its gradient.
const SEED: u64 = 1;

/// A planner that decides where gradients are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// [`grid::plan`], by GRID: reserves link capacity also for the sums that the server returns to the workers.
    Grid,
    /// [`grid::push`], by GRID: reserves no link capacity for sums that the server returns.
    GridPush,
    /// [`inart`], by InArt: divides the model among several servers, and routes each worker's traffic to each of them.
    InArt,
    /// [`rgria`], from GRID's paper: each worker draws the node that sums its gradient, by a fixed seed.
    RGria,
    /// [`atp`]: the switch nearest to a worker sums as much as it can; the rest goes to the server unsummed.
    Atp,
    /// [`esa`]: like ATP, but jobs of higher priority get a switch's capacity first.
    Esa,
    /// [`switchml`]: a switch sums the gradients of all workers in its rack, or of none.
    SwitchMl,
    /// [`equal_split`]: the switch nearest to a worker sums all of its traffic.
    EqualSplit,
    /// [`geryon`]: no switch sums gradients, and paths are chosen so that links are evenly loaded.
    Geryon,
    /// [`lbmm`]: no switch sums gradients, and several servers share the load.
    Lbmm,
    /// [`raw`]: no switch sums gradients, and all traffic takes shortest paths.
    Raw,
}

impl Method {
    /// All planning methods.
    pub const ALL: [Method; 11] = [
        Method::Grid,
        Method::GridPush,
        Method::InArt,
        Method::RGria,
        Method::Atp,
        Method::Esa,
        Method::SwitchMl,
        Method::EqualSplit,
        Method::Geryon,
        Method::Lbmm,
        Method::Raw,
    ];
    /// Names of the methods in files and commands, in the order of [`Method::ALL`].
    pub const NAMES: [&'static str; 11] = [
        "grid",
        "grid-push",
        "inart",
        "r-gria",
        "atp",
        "esa",
        "switchml",
        "equal-split",
        "geryon",
        "lbmm",
        "raw",
    ];
    /// Names of the methods whose plans switches can carry out: one server, and each worker's
    /// gradient summed at one node. They come first in [`Method::NAMES`].
    pub const INSTALLED: [&'static str; 2] = ["grid", "grid-push"];

    /// The method of this name; `None` if there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Name of the method in files and commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        Method::NAMES[self as usize]
    }

    /// Plans where a job's gradients are summed, by this method.
    pub fn plan(self, network: &Network, job: &Job) -> Result<Plan, JobError> {
        let alone = std::slice::from_ref(job);
        let mut plans = match self {
            Method::Grid => return grid::plan(network, job),
            Method::GridPush => return grid::push(network, job),
            Method::InArt => return inart::shares(network, job).map(|(_, plan)| plan),
            Method::RGria => {
                let relaxation = rgria::relax(network, job)?;
                return rgria::round(network, job, &relaxation, SEED).plan(network, job);
            }
            Method::Geryon => return geryon::plan(network, job),
            Method::Lbmm => return lbmm::plan(network, job),
            Method::Atp => atp::plan(network, alone)?,
            Method::Esa => esa::plan(network, alone)?,
            Method::SwitchMl => switchml::plan(network, alone)?,
            Method::EqualSplit => equal_split::plan(network, alone)?,
            Method::Raw => raw::plan(network, alone)?,
        };
        // There is one plan per job.
        plans
            .pop()
            .ok_or_else(|| JobError::NoWorkers(job.name.clone()))
    }

    /// Searches for a better plan of the same method, and records in the plan how much better a plan could be.
    pub fn prove(self, network: &Network, job: &Job, plan: &mut Plan) -> Result<(), JobError> {
        match self {
            Method::Grid | Method::GridPush => grid::prove(network, job, plan, Work::default()),
            _ => Ok(()),
        }
    }
}
