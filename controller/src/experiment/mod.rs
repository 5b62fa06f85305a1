//! Carries out a scenario: brings the network up, loads programs, arms faults by the timeline, runs the workload, proves effects.
//!
//! `run` does all of this: once for `weir run`, three times for `weir demo`. The modules that need no testbed network (plans,
//! programs, sessions with switches, the timeline) also compile without the feature `testbed`: `weir control` uses them.

pub mod aggregation;
pub mod change;
pub mod fleet;
pub mod guard;
mod lease_keeper;
pub mod limits;
mod planned;
pub mod replace;
pub mod timeline;

pub use fleet::{EpochWrite, TriggerCount};
pub use planned::{Planned, Switches};

#[cfg(feature = "testbed")]
mod between;
#[cfg(feature = "testbed")]
pub mod capture_cost;
#[cfg(feature = "testbed")]
pub mod captures;
#[cfg(feature = "testbed")]
mod conclusion;
#[cfg(feature = "testbed")]
mod connections;
#[cfg(feature = "testbed")]
pub mod disruption;
#[cfg(feature = "testbed")]
mod error;
#[cfg(feature = "testbed")]
pub mod events;
#[cfg(feature = "testbed")]
pub mod evidence;
#[cfg(feature = "testbed")]
mod grounds;
#[cfg(feature = "testbed")]
pub mod hit_log;
#[cfg(feature = "testbed")]
mod judging;
#[cfg(feature = "testbed")]
mod launch;
#[cfg(feature = "testbed")]
mod link;
#[cfg(feature = "testbed")]
pub mod machine;
#[cfg(feature = "testbed")]
pub mod minute_log;
#[cfg(feature = "testbed")]
mod observer;
#[cfg(feature = "testbed")]
pub(crate) mod percentile;
#[cfg(feature = "testbed")]
mod probing;
#[cfg(feature = "testbed")]
pub mod recorded;
#[cfg(feature = "testbed")]
mod repair;
#[cfg(feature = "testbed")]
mod run;
#[cfg(feature = "testbed")]
mod spool;
#[cfg(feature = "testbed")]
mod stage;
#[cfg(feature = "testbed")]
pub mod steps;
#[cfg(feature = "testbed")]
mod telling_log;
#[cfg(feature = "testbed")]
mod turns;
#[cfg(feature = "testbed")]
pub mod workload;

#[cfg(feature = "testbed")]
pub use ::proof::{Recovery, Teller};
#[cfg(feature = "testbed")]
pub use between::{Between, Passing};
#[cfg(feature = "testbed")]
pub use conclusion::{Conclusion, FaultResult};
#[cfg(feature = "testbed")]
pub use disruption::{Carried, DisruptionResult};
#[cfg(feature = "testbed")]
pub use error::ExperimentError;
#[cfg(feature = "testbed")]
pub use link::LinkCount;
#[cfg(feature = "testbed")]
pub use observer::{Observer, Turn};
#[cfg(feature = "testbed")]
pub use probing::ProbeResult;
#[cfg(feature = "testbed")]
pub use recorded::Record;
#[cfg(feature = "testbed")]
pub use repair::Repair;
#[cfg(feature = "testbed")]
pub use run::{Run, Trained, run};
#[cfg(feature = "testbed")]
pub use stage::{Conditions, Stage};
#[cfg(feature = "testbed")]
pub use turns::TriggerResult;

#[cfg(feature = "testbed")]
pub(crate) use error::{how_it_ended, last_words};
#[cfg(all(test, feature = "testbed"))]
pub(crate) use run::add_metrics;
