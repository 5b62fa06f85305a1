//! Messages between a daemon and its clients: each message is a JSON object.

use aggregation::job::{ChunkId, Job, JobConfig, JobId, TreePosition, WorkerId};
use aggregation::rank::{Carry, Lateness, Setup, Share};
use aggregation::rto::Retransmission;
use serde::{Deserialize, Serialize};

use crate::collective::{Failure, Transport};
use crate::metrics::Status;

/// Version of the protocol between daemon and client. A daemon supports one version. The version also increases with
/// [`aggregation::rank::LAYOUT`].
pub const VERSION: u32 = 6;
/// Maximum deadline of partial sums in nanoseconds, as in a scenario.
const LONGEST_DEADLINE_NS: u64 = 60_000_000_000;

/// Conditions under which a chunk gets a partial sum, which lacks some ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// Time in nanoseconds after which a chunk may be closed: its sum then stays without the missing ranks.
    pub after_ns: u64,
    /// Minimum number of contributors to a partial sum.
    pub quorum: u16,
    /// Whether late values are added to the next operation of the same key (tensor), or dropped.
    pub carries: bool,
}

impl Deadline {
    fn lateness(self, job: &Job, place: TreePosition) -> Result<Lateness, String> {
        let Deadline {
            after_ns,
            quorum,
            carries,
        } = self;
        if after_ns > LONGEST_DEADLINE_NS {
            return Err("a deadline is at most 60 s".to_owned());
        }
        let carry = if carries {
            Carry::NextRound
        } else {
            Carry::Drop
        };
        Lateness::new(job, place, after_ns, quorum, carry).map_err(|error| error.to_string())
    }
}

/// Settings of a rank of a job that a switch has admitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankOf {
    /// Name of the interface; `None` for the daemon's first interface.
    pub interface: Option<String>,
    /// Number of the job.
    pub job: u16,
    /// Number of the rank.
    pub rank: u16,
    /// Number of ranks in the job.
    pub ranks: u16,
    /// Maximum number of chunks that the rank has in flight.
    pub window: u32,
    /// Number of values per frame.
    pub values_per_packet: u16,
    /// The rank's number at its switch, the number of this switch's children, and the number of the topmost switch's children.
    pub place: (u16, u8, u8),
    /// Deadline and quorum of partial sums; `None` if every sum includes all ranks.
    pub deadline: Option<Deadline>,
    /// Transport of frames between the rank and its switch.
    #[serde(default)]
    pub transport: Transport,
}

impl RankOf {
    /// Validates these settings, for a job that begins at `first_chunk`.
    pub fn setup(&self, first_chunk: u32) -> Result<Setup, String> {
        let job = Job::new(JobConfig {
            job: JobId(self.job),
            workers: self.ranks,
            window: self.window,
            values_per_packet: self.values_per_packet,
            values_per_round: 0,
            first_chunk: ChunkId(first_chunk),
        });
        let job = job.map_err(|error| error.to_string())?;
        if self.rank >= self.ranks {
            return Err(format!(
                "rank {} of {} ranks: ranks count from 0",
                self.rank, self.ranks
            ));
        }
        if !wire::FRAME_VALUES.contains(&self.values_per_packet) {
            return Err(format!(
                "{} values per frame: switches sum {:?}",
                self.values_per_packet,
                wire::FRAME_VALUES
            ));
        }
        let (child, siblings, top) = self.place;
        let place = TreePosition {
            child: WorkerId(child),
            siblings,
            top,
        };
        if !place.is_possible() {
            return Err(format!(
                "child {child} of {siblings}, and {top} at the top: not a position in a tree of switches"
            ));
        }
        let lateness = self.deadline.map(|deadline| deadline.lateness(&job, place));
        Ok(Setup {
            job,
            rank: WorkerId(self.rank),
            place,
            retransmission: Retransmission::of_ranks(),
            dead_after_ns: None,
            fallback: None,
            lateness: lateness.transpose()?,
        })
    }
}

/// Request of a client to the daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// The client's first request: its version of the protocol.
    Hello(u32),
    /// Request for the addresses of an interface; `None`: the daemon's first interface.
    Where(Option<String>),
    /// Request for the first chunk number for which the switch's register cells are free.
    Open(RankOf),
    /// Request to join a job as a rank.
    Join {
        /// Settings of the rank.
        rank: RankOf,
        /// Number of the job's first chunk.
        first_chunk: u32,
        /// Addresses of all ranks (`MAC/IPv4`), by rank number.
        peers: Vec<String>,
        /// Time in nanoseconds without a reply after which a rank is declared dead.
        gone_after_ns: u64,
        /// Whether the ranks replace a silent switch: never (`None`), if it falls silent (`false`), from the beginning
        /// (`true`).
        fallback: Option<bool>,
    },
    /// Request to sum the values in the memory that the message passes.
    Sum {
        /// Number of the operation, by which the client knows it.
        operation: u64,
        /// Element type of the values.
        dtype: String,
        /// Number of values.
        length: u64,
        /// Whether sums are divided by the number of ranks.
        average: bool,
        /// Whether each sum is exact up to its type's rounding (`Reduction::exact`).
        exact: bool,
        /// Seed of stochastic rounding; `None` for rounding to the nearest.
        stochastic: Option<u64>,
        /// Whether the rank contributes values, takes the sums, or both.
        #[serde(with = "ShareEncoding")]
        share: Share,
        /// Further terms that all ranks must have in common, if the other fields do not give them, as words (`Terms::words`).
        terms: Option<[u32; 3]>,
        /// Key that identifies the operation's tensor; late values are added to the next operation of the same key.
        key: Option<u64>,
    },
    /// Request for the rank's status.
    Status,
}

/// JSON encoding of a [`Share`], the role of a rank in an operation.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Share", rename_all = "snake_case")]
enum ShareEncoding {
    GivesAndTakes,
    Gives,
    Takes,
    Compares,
}

/// Message of the daemon to a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Reply to `Hello`: the daemon's version of the protocol.
    Hello(u32),
    /// Reply to `Where`: addresses of the interface as MAC/IPv4.
    Where(String),
    /// Reply to `Open`: number of the job's first chunk.
    Opened(u32),
    /// Reply to `Join`: the client is a rank now.
    Joined {
        /// I/O backend that the daemon uses: `rings`, `calls` or `pnet`.
        io: String,
        /// Notice with the error of the rings, if system calls are used because of it.
        refused: Option<String>,
        /// Maximum number of unanswered operations; a client that exceeds it is disconnected. So the daemon never has to leave
        /// a message unread, and limits its open files, one per unanswered operation.
        operations: u64,
    },
    /// An operation is finished: its sums are in its memory.
    Summed {
        /// Number of the operation.
        operation: u64,
        /// Upper bound of the error of the sums.
        #[serde(with = "bound")]
        error_bound: f64,
        /// Number of partial chunks, whose list follows the sums in the memory.
        partial: u64,
        /// Number of times so far that the switch fell silent, so that the ranks summed instead.
        fallbacks: u64,
    },
    /// An operation is finished without sums.
    NotSummed {
        /// Number of the operation.
        operation: u64,
        /// Kind of the error, for programs.
        kind: Failure,
        /// Description of the error, for the user.
        text: String,
    },
    /// Reply to `Status`: the rank's status.
    Status(Box<Status>),
    /// Refusal of a request other than `Sum`.
    No {
        /// Kind of the error, for programs.
        kind: Failure,
        /// Description of the error, for the user.
        text: String,
    },
}

/// JSON encoding of error bounds: JSON has no infinity, so an infinite bound is `null`.
mod bound {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bound: &f64, to: S) -> Result<S::Ok, S::Error> {
        match bound.is_finite() {
            true => to.serialize_f64(*bound),
            false => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_infinite_bound_survives_a_round_trip() {
        for error_bound in [0.0, 1.5e-7, f64::MAX, f64::INFINITY] {
            let said = Answer::Summed {
                operation: 3,
                error_bound,
                partial: 0,
                fallbacks: 0,
            };
            let text = serde_json::to_string(&said).unwrap();
            assert_eq!(
                serde_json::from_str::<Answer>(&text).unwrap(),
                said,
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_deadlines_are_refused() {
        let rank = |deadline, place| RankOf {
            interface: None,
            job: 1,
            rank: 0,
            ranks: 4,
            window: 64,
            values_per_packet: 256,
            place,
            deadline: Some(deadline),
            transport: Transport::Udp,
        };
        let deadline = Deadline {
            after_ns: 0,
            quorum: 3,
            carries: true,
        };
        let flat = (0, 4, 4);
        assert!(rank(deadline, flat).setup(0).unwrap().lateness.is_some());
        let wrong = [
            (
                Deadline {
                    quorum: 0,
                    ..deadline
                },
                flat,
                "a quorum of 0",
            ),
            (
                Deadline {
                    quorum: 4,
                    ..deadline
                },
                flat,
                "a quorum of 4",
            ),
            (deadline, (0, 2, 2), "a tree of switches"),
            (
                Deadline {
                    after_ns: u64::MAX,
                    ..deadline
                },
                flat,
                "at most 60 s",
            ),
        ];
        for (deadline, place, expected) in wrong {
            let told = rank(deadline, place).setup(0).unwrap_err();
            assert!(told.contains(expected), "{expected:?} is not in {told:?}");
        }
    }
}
