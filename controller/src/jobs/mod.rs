//! Jobs on a switch that runs already, without a scenario: admitted, renewed, released (docs/jobs.md).
//!
//! All state is the switch's: [`Switch`] reads it from the tables before each decision, so that controllers agree, whoever of
//! them comes and goes. What is decided is crate `admission`'s matter.
//!
//! - `entries.rs`: what a switch is told of a job; scenarios use it as well.
//! - `contacts.rs`: the same of queue pairs, where RoCEv2 carries values.
//! - `program.rs`: the program that sums and asks who may speak for a job.
//! - `host.rs`: hosts and their ports, as a person gives them.
//! - `switch.rs`: a switch, read and written.
//! - `listing.rs`: what of it is told.

pub mod contacts;
pub mod entries;
mod host;
mod listing;
mod program;
mod switch;

pub use host::Host;
pub use listing::{Counts, Job, Listing, Part, Stranger};
pub use switch::{Setup, Switch};

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
    /// A port that the switch does not have.
    #[error("the switch at {switch} has no port {port}; {}", its_ports(ports))]
    NoPort {
        /// Address of the switch.
        switch: String,
        /// The port, as given.
        port: u32,
        /// All ports of the switch, ascending.
        ports: Vec<u32>,
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

/// The ports of a switch as a message lists them: neighboring numbers as a range, such as "its ports are 1 to 4, 7".
fn its_ports(ports: &[u32]) -> String {
    let runs = ports.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    let runs = runs.map(|run| match run {
        [first, .., last] => format!("{first} to {last}"),
        one => one.iter().map(u32::to_string).collect(),
    });
    match runs.collect::<Vec<_>>() {
        none if none.is_empty() => "it has no ports: start it with `-i PORT@INTERFACE`".to_owned(),
        runs => format!("its ports are {}", runs.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::its_ports;

    #[test]
    fn ports_are_listed_as_ranges() {
        for (ports, expected) in [
            (
                &[][..],
                "it has no ports: start it with `-i PORT@INTERFACE`",
            ),
            (&[3], "its ports are 3"),
            (&[1, 2, 3, 4], "its ports are 1 to 4"),
            (
                &[0, 1, 5, 7, 8, u32::MAX],
                "its ports are 0 to 1, 5, 7 to 8, 4294967295",
            ),
        ] {
            assert_eq!(its_ports(ports), expected);
        }
    }
}
