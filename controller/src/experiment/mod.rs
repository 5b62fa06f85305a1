//! A scenario, carried out: network up, programs loaded, faults armed by the timeline, workload run, effects proved.
//!
//! `run` does all of it, for `weir run` and, three times, for `weir demo`. What needs no network of ours (plans, programs,
//! sessions with switches, the timeline) is there without the feature `testbed`, too: `weir control` stands on it.

pub mod aggregation;
pub mod change;
pub mod fleet;
pub mod guard;
pub mod limits;
mod planned;
pub mod replace;
pub mod timeline;

pub use fleet::{EpochWrite, TriggerCount};
pub use planned::{Planned, Switches};

/// What needs a network of ours.
macro_rules! in_a_testbed {
    ($($item:item)*) => { $(#[cfg(feature = "testbed")] $item)* };
}

in_a_testbed! {
    mod between;
    mod captures;
    mod conclusion;
    mod connections;
    pub mod disruption;
    mod error;
    mod grounds;
    mod launch;
    mod link;
    pub mod machine;
    mod observer;
    pub(crate) mod percentile;
    mod probing;
    mod repair;
    pub mod proof;
    mod run;
    mod stage;
    mod turns;
    pub mod steps;
    pub mod workload;

    pub use between::{Between, Passing};
    pub use captures::write_captures;
    pub use conclusion::{Conclusion, FaultResult};
    pub use disruption::{Carried, DisruptionResult};
    pub use error::ExperimentError;
    pub use link::LinkCount;
    pub use observer::{Observer, Turn};
    pub use probing::ProbeResult;
    pub use proof::{Recovery, Teller};
    pub use repair::Repair;
    pub use run::{Run, Trained, run};
    pub use stage::{Conditions, Record, Stage};
    pub use turns::TriggerResult;

    pub(crate) use error::{how_it_ended, last_words};
    #[cfg(test)]
    pub(crate) use run::add_metrics;
}
