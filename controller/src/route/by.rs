//! The planners by the names that `--by` takes.

use planner::gradient::{Job, JobError, Plan, inart};
use planner::{Method, Network};
use scenario::{ReadFor, TrainingInNetwork};

use super::traffic::{self, GOAT};

/// The planner that determines where trainings are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A planner that reads who sends to whom.
    Method(Method),
    /// [`inart::exact()`], which solves the program itself. For small networks only.
    InArtExact,
    /// [`planner::gradient::goat`], which counts bytes.
    Goat,
}

/// Maximum number of search nodes of [`By::InArtExact`].
const NODES: usize = 2_000;
/// A plan counts as optimal if it is within this share of the best one.
const PRECISION: f64 = 1e-6;

impl By {
    /// Names of all planners.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Method::NAMES.into_iter().chain([GOAT])
    }

    /// The planner of a name.
    pub fn from_name(name: &str) -> Option<By> {
        match name {
            GOAT => Some(By::Goat),
            name => Method::from_name(name).map(By::Method),
        }
    }

    /// The planner's name in commands.
    pub fn name(self) -> &'static str {
        match self {
            By::Method(method) => method.name(),
            By::InArtExact => "inart --exact",
            By::Goat => GOAT,
        }
    }

    /// The form in which trainings are read for the planner.
    pub fn reads(self) -> ReadFor<'static> {
        ReadFor {
            by: self.name(),
            counts_bytes: self == By::Goat,
        }
    }

    pub(super) fn plan(
        self,
        network: &Network,
        job: &Job,
        read: &TrainingInNetwork,
    ) -> Result<Plan, JobError> {
        match self {
            By::Method(method) => {
                let mut plan = method.plan(network, job)?;
                method.prove(network, job, &mut plan)?;
                Ok(plan)
            }
            By::InArtExact => exact(network, job),
            By::Goat => traffic::plan(network, job, read),
        }
    }
}

/// The best plan for the shares that InArt's first phase finds.
fn exact(network: &Network, job: &Job) -> Result<Plan, JobError> {
    let (shares, _) = inart::shares(network, job)?;
    let inart::Exact {
        mut plan, best_bps, ..
    } = inart::exact(network, job, &shares, NODES)?;
    if best_bps.is_infinite() {
        return Err(JobError::TooLarge(job.name.clone(), inart::MOST_VARIABLES));
    }
    plan.bound_bps = best_bps;
    plan.is_optimal = plan.rate_bps >= best_bps * (1.0 - PRECISION);
    Ok(plan)
}
