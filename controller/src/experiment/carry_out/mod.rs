//! Third phase: runs the workload, follows the timeline, and carries out faults of programs and switches.

#[cfg(feature = "testbed")]
pub mod disruption;
#[cfg(feature = "testbed")]
mod error;
pub mod guard;
pub mod limits;
#[cfg(feature = "testbed")]
mod link_count;
#[cfg(feature = "testbed")]
mod observer;
#[cfg(feature = "testbed")]
mod probing;
#[cfg(feature = "testbed")]
mod repair;
#[cfg(feature = "testbed")]
mod run;
pub mod timeline;
#[cfg(feature = "testbed")]
mod training;
#[cfg(feature = "testbed")]
pub mod workload;

#[cfg(feature = "testbed")]
pub use self::{
    error::ExperimentError,
    observer::{Iteration, Observer},
    probing::ProbeResult,
    repair::Repair,
    run::{CarriedOut, run},
    training::TrainingResult,
};
