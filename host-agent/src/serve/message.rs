//! What is said between a daemon and who has connected: a message is one object of JSON, and one datagram of a socket that
//! keeps their order and their boundaries (`SOCK_SEQPACKET`).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use aggregation::job::{ChunkId, Job, JobConfig, JobId, Place, WorkerId};
use aggregation::rank::{Carry, Lateness, Setup, Share};
use aggregation::rto::Retransmission;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::collective::Transport;
use crate::metrics::Status;

/// Of this protocol. A daemon speaks one version. Counts up with [`aggregation::rank::LAYOUT`] as well.
pub const VERSION: u32 = 6;
/// No message is longer: the addresses of 1,024 ranks fit.
const LIMIT: usize = 96 << 10;
/// The kernel's SCM_MAX_FD: no message brings more descriptors.
const MOST_FDS: usize = 253;
/// No deadline is longer, as in a scenario.
const LONGEST_DEADLINE_NS: u64 = 60_000_000_000;

/// When sums are made of fewer than all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// After so long.
    pub after_ns: u64,
    /// If so many are there.
    pub quorum: u16,
    /// Whether what comes later joins the next operation of the same key.
    pub carries: bool,
}

impl Deadline {
    fn lateness(self, job: &Job, place: Place) -> Result<Lateness, String> {
        let Deadline {
            after_ns,
            quorum,
            carries,
        } = self;
        if after_ns > LONGEST_DEADLINE_NS {
            return Err("a deadline is 60 s at most".to_owned());
        }
        let carry = if carries {
            Carry::NextRound
        } else {
            Carry::Drop
        };
        Lateness::new(job, place, after_ns, quorum, carry).map_err(|error| error.to_string())
    }
}

/// A rank of a job that a switch has been told of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankOf {
    /// The interface; the daemon's first, if none is named.
    pub interface: Option<String>,
    /// The job's number.
    pub job: u16,
    /// Which rank.
    pub rank: u16,
    /// Of how many.
    pub ranks: u16,
    /// Chunks that it may have under way.
    pub window: u32,
    /// Values of a frame.
    pub values_per_packet: u16,
    /// Its number at its switch, how many that one sums, and the topmost.
    pub place: (u16, u8, u8),
    /// When sums are made of fewer than all; `None`: never.
    pub deadline: Option<Deadline>,
    /// What frames are between it and its switch.
    #[serde(default)]
    pub transport: Transport,
}

impl RankOf {
    /// As types, if it can be.
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
                "no frame has {} values: {:?} are what switches sum",
                self.values_per_packet,
                wire::FRAME_VALUES
            ));
        }
        let (child, siblings, top) = self.place;
        let place = Place {
            child: WorkerId(child),
            siblings,
            top,
        };
        if !place.is_possible() {
            return Err(format!(
                "child {child} of {siblings}, and {top} at the top: no place among switches"
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

/// What is asked of a daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// First of all: which version is spoken.
    Hello(u32),
    /// Where an interface is.
    Where(Option<String>),
    /// From which chunk on the switch's cells are free.
    Open(RankOf),
    /// To be a rank.
    Join {
        /// Which.
        rank: RankOf,
        /// The job's first chunk.
        first_chunk: u32,
        /// Where all ranks are.
        peers: Vec<String>,
        /// One that does not answer for so long is gone.
        gone_after_ns: u64,
        /// Whether ranks sum themselves while the switch is silent: if so, whether from the beginning.
        fallback: Option<bool>,
    },
    /// To sum what the memory holds that comes with it.
    Sum {
        /// The asker's number of it.
        operation: u64,
        /// The values' type.
        dtype: String,
        /// How many.
        length: u64,
        /// Whether they are averaged.
        average: bool,
        /// Whether each sum is right to its type's rounding (`Reduction::exact`).
        exact: bool,
        /// The seed, if they are rounded by chance.
        stochastic: Option<u64>,
        /// What the asker does in it.
        share: Shared,
        /// What all ranks have to give alike, where the rest does not say it (`Terms::words`).
        terms: Option<[u32; 3]>,
        /// What of them is late joins the next operation of the same key.
        key: Option<u64>,
    },
    /// What is counted, and waited for.
    Status,
}

/// What the memory of a sum holds ([`Share`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shared {
    /// Values, and the sums afterwards.
    GivesAndTakes,
    /// Values.
    Gives,
    /// Nothing before the sums are there.
    Takes,
    /// Nothing.
    Compares,
}

impl From<Share> for Shared {
    fn from(share: Share) -> Self {
        match share {
            Share::GivesAndTakes => Shared::GivesAndTakes,
            Share::Gives => Shared::Gives,
            Share::Takes => Shared::Takes,
            Share::Compares => Shared::Compares,
        }
    }
}

impl From<Shared> for Share {
    fn from(share: Shared) -> Self {
        match share {
            Shared::GivesAndTakes => Share::GivesAndTakes,
            Shared::Gives => Share::Gives,
            Shared::Takes => Share::Takes,
            Shared::Compares => Share::Compares,
        }
    }
}

/// Why something was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It was asked wrongly, or cannot be here.
    Refused,
    /// A value is not finite: the operation has no sums, and the next will.
    NonFinite,
    /// No switch answers for the job.
    Silent,
    /// The interface.
    Io,
    /// The rank has given up.
    Failed,
}

/// What a daemon says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To the version.
    Hello(u32),
    /// MAC/IPv4.
    Where(String),
    /// The first chunk.
    Opened(u32),
    /// How frames come and go, and why not by rings.
    Joined {
        /// `rings` or `pnet`.
        io: String,
        /// The reason.
        refused: Option<String>,
        /// So many operations may be given and not answered. Who gives more is put out: then the daemon may always read what is
        /// said, and each that it has not answered is an open file.
        operations: u64,
    },
    /// An operation's sums are in its memory.
    Summed {
        /// Which.
        operation: u64,
        /// What they are off by at most.
        #[serde(with = "bound")]
        error_bound: f64,
        /// Chunks whose sum is of fewer than all: so many stand behind the sums in the memory.
        partial: u64,
        /// How often the switch has fallen silent so far, so that ranks summed themselves.
        fallbacks: u64,
    },
    /// An operation has no sums.
    NotSummed {
        /// Which.
        operation: u64,
        /// Why, for programs.
        kind: Kind,
        /// For people.
        text: String,
    },
    /// What is counted.
    Status(Box<Status>),
    /// To any other question: no.
    No {
        /// Why, for programs.
        kind: Kind,
        /// For people.
        text: String,
    },
}

/// JSON has no infinity: a bound that is infinite is `null`.
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

/// Says something, with a descriptor if there is one.
pub fn send(
    socket: BorrowedFd<'_>,
    message: &impl Serialize,
    with: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    if text.len() > LIMIT {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let fds: Vec<BorrowedFd> = with.into_iter().collect();
    send_with(socket, &text, &fds)
}

fn send_with(socket: BorrowedFd<'_>, text: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let parts = [IoSlice::new(text)];
    loop {
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Waits for what the other says; `None` once it has gone. What is no message is an error.
pub fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> io::Result<Option<(T, Option<OwnedFd>)>> {
    let mut buffer = vec![0; LIMIT];
    // As many as one message may bring: what this has no room for would be open here, and nobody's.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let (length, flags) = loop {
        let mut parts = [IoSliceMut::new(&mut buffer)];
        match recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(came) => break (came.bytes, came.flags),
            // Said once of one who has gone without hearing all: what it said itself is there still.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            Err(errno) => return Err(errno.into()),
        }
    };
    let rights = control.drain().filter_map(|came| match came {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let mut fds: Vec<OwnedFd> = rights.flatten().collect();
    if length == 0 {
        return Ok(None);
    }
    let wrong = if flags.contains(ReturnFlags::CTRUNC) {
        "a message's descriptors found no room: too many files are open here"
    } else if flags.contains(ReturnFlags::TRUNC) {
        "a message is longer than any"
    } else if fds.len() > 1 {
        "a message brings more than one descriptor"
    } else {
        let message = serde_json::from_slice(&buffer[..length])?;
        return Ok(Some((message, fds.pop())));
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, wrong))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::process::Command;

    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::*;

    /// For a process of its own: others would find no room either.
    const ALONE: &str = "WEIR_TEST_DESCRIPTORS";

    #[test]
    fn descriptors_that_find_no_room_are_closed() {
        let name = "serve::message::tests::descriptors_that_find_no_room_are_closed";
        if std::env::var_os(ALONE).is_none() {
            let mut alone = Command::new(std::env::current_exe().unwrap());
            alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1");
            let output = alone.output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && told.contains("1 passed"),
                "{output:?}"
            );
            return;
        }
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let flags = SockFlag::SOCK_CLOEXEC;
        let pair = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags);
        let (one, other) = pair.unwrap();
        let many = [one.as_fd(); 20];
        let limit = getrlimit(Resource::Nofile);
        let before = open();
        let few = Rlimit {
            current: Some(before as u64 + 4),
            ..limit
        };
        for (limit, told) in [
            (few, "too many files are open here"),
            (limit, "more than one descriptor"),
        ] {
            setrlimit(Resource::Nofile, limit).unwrap();
            for _ in 0..10 {
                send_with(one.as_fd(), b"1", &many).unwrap();
                let error = receive::<u8>(other.as_fd()).unwrap_err();
                assert!(error.to_string().contains(told), "{error}");
                assert_eq!(open(), before);
            }
        }
        send(one.as_fd(), &1, Some(one.as_fd())).unwrap();
        let (said, with) = receive::<u8>(other.as_fd()).unwrap().unwrap();
        assert_eq!((said, with.is_some(), open()), (1, true, before + 1));
    }

    #[test]
    fn a_bound_that_is_infinite_comes_as_it_went() {
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
    fn deadlines_that_cannot_be_are_refused() {
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
            (deadline, (0, 2, 2), "on a tree"),
            (
                Deadline {
                    after_ns: u64::MAX,
                    ..deadline
                },
                flat,
                "60 s at most",
            ),
        ];
        for (deadline, place, expected) in wrong {
            let told = rank(deadline, place).setup(0).unwrap_err();
            assert!(told.contains(expected), "{expected:?} is not in {told:?}");
        }
    }
}
