//! Planners by name.

use crate::baseline::{atp, equal_split, esa, geryon, lbmm, raw, rgria, switchml};
use crate::gradient::grid::{self, Work};
use crate::gradient::{Job, JobError, Plan, inart};
use crate::network::Network;

/// Seed of the workers' draws in [`rgria`].
const SEED: u64 = 1;

/// A planner that decides where gradients are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// [`grid::plan`], with answers.
    Grid,
    /// [`grid::push`], without answers.
    GridPush,
    /// [`inart`].
    InArt,
    /// [`rgria`], drawn by one seed.
    RGria,
    /// [`atp`].
    Atp,
    /// [`esa`].
    Esa,
    /// [`switchml`].
    SwitchMl,
    /// [`equal_split`].
    EqualSplit,
    /// [`geryon`].
    Geryon,
    /// [`lbmm`].
    Lbmm,
    /// [`raw`].
    Raw,
}

impl Method {
    /// All methods.
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
    /// Names in files and commands, in the order of [`Method::ALL`].
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
    /// Methods whose plans can be installed on switches: one server, and each worker's gradient at one node. First in the list.
    pub const INSTALLED: [&'static str; 2] = ["grid", "grid-push"];

    /// Method of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Name in files and commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        Method::NAMES[self as usize]
    }

    /// Plans a job.
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

    /// Searches for a better plan of the same kind, and records in the plan how much better one could be.
    pub fn prove(self, network: &Network, job: &Job, plan: &mut Plan) -> Result<(), JobError> {
        match self {
            Method::Grid | Method::GridPush => grid::prove(network, job, plan, Work::default()),
            _ => Ok(()),
        }
    }
}
