//! The planners of gradient routes, by the names that `--by` takes.

use planner::gradient::{Job, JobError, Plan, inart};
use planner::{Method, Network};
use scenario::{ReadFor, TrainingInNetwork};

use super::traffic::{self, GOAT};

/// A planner, which determines where the gradients of trainings are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A planner that needs only the server and the workers of each training.
    Method(Method),
    /// [`inart::exact()`], which solves InArt's integer program exactly; only for small networks.
    InArtExact,
    /// [`planner::gradient::goat`], which minimizes the bytes on links, and needs the gradient's size.
    Goat,
}

/// Maximum number of search nodes when [`By::InArtExact`] solves the integer program.
const NODES: usize = 2_000;
/// Relative difference from the best rate up to which a plan counts as optimal.
const PRECISION: f64 = 1e-6;

impl By {
    /// Names of all planners, as `--by` takes them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Method::NAMES.into_iter().chain([GOAT])
    }

    /// Returns the planner of this name; `None` for an unknown name.
    pub fn from_name(name: &str) -> Option<By> {
        match name {
            GOAT => Some(By::Goat),
            name => Method::from_name(name).map(By::Method),
        }
    }

    /// The planner's name, as written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            By::Method(method) => method.name(),
            By::InArtExact => "inart --exact",
            By::Goat => GOAT,
        }
    }

    /// Settings for reading the trainings file for this planner: its name, and whether it needs the gradient's size.
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

/// Solves InArt's integer program, with the shares of the gradient from InArt's first phase.
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
