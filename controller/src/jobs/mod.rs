//! Jobs on a switch that runs already, without a scenario: admitted, renewed, released (docs/jobs.md).
//!
//! All state is the switch's: [`Switch`] reads it from the tables before each decision, so that controllers agree, whoever of
//! them comes and goes. What is decided is crate `admission`'s matter.
//!
//! - `entries.rs`: what a switch is told of a job; scenarios use it as well.
//! - `contacts.rs`: the same of queue pairs, where RoCEv2 carries values.
//! - `program.rs`: the program that sums and asks who may speak for a job.
//! - `switch.rs`: a switch, read and written.
//! - `listing.rs`: what of it is told.

pub mod contacts;
pub mod entries;
mod listing;
mod program;
mod switch;

pub use listing::{Counts, Job, Listing, Part, Stranger};
pub use switch::{Host, Setup, Switch};

use admission::{BadTenants, Refusal};
use scenario::topology::Mac;

use crate::program::ProgramError;
use crate::target::TargetError;

/// Why something did not become of a job.
#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    /// The switch.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// It is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The switch cannot be divided so.
    #[error(transparent)]
    Tenants(#[from] BadTenants),
    /// Our program.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The runtime.
    #[error("cannot start a runtime: {0}")]
    Runtime(std::io::Error),
    /// No program.
    #[error("the switch at {0} has no program: `weir job setup` gives it one")]
    NoProgram(String),
    /// Somebody else's program.
    #[error(
        "the program of the switch at {0} does not ask who may speak for a job: `weir job setup --replace` gives it another, and \
         ends what it does now"
    )]
    OtherProgram(String),
    /// An entry that is none of ours.
    #[error(
        "the switch's entry of job {number} has a note that cannot be read ({reason}): who wrote it?"
    )]
    Note {
        /// Whose.
        number: u16,
        /// What is wrong.
        reason: String,
    },
    /// A host at two ports.
    #[error("host {mac} is given at ports {ports:?}")]
    HostTwice {
        /// Which.
        mac: Mac,
        /// Where.
        ports: [u32; 2],
    },
    /// A division that a job which runs does not fit in.
    #[error(
        "job `{job}` runs in slots {from} to {to}, which would be another tenant's: release it first"
    )]
    Divided {
        /// Which.
        job: String,
        /// Its first slot.
        from: u32,
        /// Its last.
        to: u32,
    },
    /// Something could not be written down.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}
