//! The planners by the names that `--by` takes.

use planner::Network;
use planner::gradient::{Job, JobError, Method, Plan};
use scenario::{ReadFor, TrainingInNetwork};

use super::traffic;

/// Who says where trainings are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A planner that is told who sends to whom.
    Method(Method),
    /// [`planner::gradient::goat`], which counts bytes.
    Goat,
}

/// [`By::Goat`].
const GOAT: &str = "goat";

impl By {
    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Method::NAMES.into_iter().chain([GOAT])
    }

    /// By name.
    #[must_use]
    pub fn of(name: &str) -> Option<By> {
        match name {
            GOAT => Some(By::Goat),
            name => Method::of(name).map(By::Method),
        }
    }

    /// How commands name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            By::Method(method) => method.name(),
            By::Goat => GOAT,
        }
    }

    /// What trainings are to say for it.
    #[must_use]
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
            By::Goat => traffic::plan(network, job, read),
        }
    }
}
