//! Jobs on a running switch, without a scenario: admits, renews and releases them (docs/jobs.md).
//!
//! All state is on the switch: [`Switch`] reads it from the tables before each decision, so that successive controllers agree.
//! Crate `admission` makes the decisions.
//!
//! - `entries.rs`: table entries of a job; scenarios use them as well.
//! - `contacts.rs`: table entries of queue pairs, if RoCEv2 carries the values.
//! - `program.rs`: the program that sums and checks the senders of a job's frames.
//! - `host.rs`: hosts and their ports, as a user gives them.
//! - `switch.rs`: reads and writes a switch.
//! - `listing.rs`: lists the jobs of a switch.

pub mod contacts;
pub mod entries;
mod host;
mod listing;
mod program;
mod switch;

pub use host::Host;
pub use listing::{Counts, ListedJob, Listing, Stranger, TenantSlots};
pub use switch::{Setup, Switch};

use admission::{BadTenants, Refusal};
use scenario::model::topology::Mac;

use crate::program::ProgramError;
use crate::target::TargetError;

/// Errors of `weir job`.
#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    /// An error of the session with the switch.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The request to admit, renew or release a job is refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The slots of the switch cannot be divided among the requested tenants.
    #[error(transparent)]
    Tenants(#[from] BadTenants),
    /// The P4 program that sums for jobs could not be built.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The asynchronous runtime for the session did not start.
    #[error("cannot start a runtime: {0}")]
    Runtime(std::io::Error),
    /// The switch has no P4 program; contains its address.
    #[error("the switch at {0} has no program: `weir job setup` gives it one")]
    NoProgram(String),
    /// The switch's P4 program does not check who sends a job's frames; contains the switch's address.
    #[error(
        "the program of the switch at {0} does not check the senders of a job: `weir job setup --replace` loads one that does, and stops the current one"
    )]
    OtherProgram(String),
    /// The note (P4Runtime metadata) of a job's table entry cannot be read, as weir did not write it.
    #[error(
        "the switch's entry of job {number} has a note that cannot be read ({reason}): another tool wrote it"
    )]
    Note {
        /// Number of the job.
        number: u16,
        /// Why the note cannot be read.
        reason: String,
    },
    /// The user named a port that the switch does not have.
    #[error("the switch at {switch} has no port {port}; {}", its_ports(ports))]
    NoPort {
        /// Address of the switch.
        switch: String,
        /// Number of the port that the user named.
        port: u32,
        /// Numbers of all ports of the switch, ascending.
        ports: Vec<u32>,
    },
    /// The user gave one host at two ports.
    #[error("host {mac} is given at two ports, {ports:?}: name one")]
    HostTwice {
        /// MAC address of the host.
        mac: Mac,
        /// The two ports at which the user gave the host.
        ports: [u32; 2],
    },
    /// A running job holds slots that would belong to another tenant after the requested division.
    #[error(
        "job `{job}` runs in slots {from} to {to}, which would be another tenant's: release it first"
    )]
    Divided {
        /// Name of the job.
        job: String,
        /// Number of the job's first slot.
        from: u32,
        /// Number of the job's last slot.
        to: u32,
    },
    /// A value cannot be written as JSON.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Formats the ports of a switch for a message, consecutive numbers as a range: "its ports are 1 to 4, 7".
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
