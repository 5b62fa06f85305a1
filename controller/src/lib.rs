//! weir, the controller: everything but the command line, which is `main.rs`.
//!
//! Without the feature `testbed` it controls running switches, and handles scenarios and plans; with it, it also builds
//! networks, runs scenarios in them and proves what their faults did.

pub mod collectives;
pub mod doctor;
pub mod experiment;
pub mod jobs;
pub mod program;
pub mod route;
pub mod simulation;
pub mod target;

#[cfg(feature = "testbed")]
pub mod demo;
#[cfg(feature = "testbed")]
pub mod progress;
#[cfg(feature = "testbed")]
mod reference;
#[cfg(feature = "testbed")]
pub mod report;
#[cfg(feature = "testbed")]
pub mod run_folder;
#[cfg(feature = "testbed")]
pub mod scenario_run;
