//! One process that has connected to the daemon, and the rank that it is.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::load::Load;
use super::message::{Answer, Ask, Kind, RankOf, VERSION, receive, send};
use super::values;
use crate::collective::{CollectiveError, Config, Member, Observer, Pending, Place, open_job};
use crate::frames::{Endpoint, InterfaceFrames};
use aggregation::rank::{Fallback, Reduction, Rounding, Terms};

/// So many operations may be under way, if the daemon may have as many files open.
pub const OPERATIONS: u64 = 4_096;
/// After so long without an answer a rank may be gone: sooner, all that is sent would be questions.
const GONE_AFTER_NS: std::ops::RangeInclusive<u64> = 10_000_000..=3_600_000_000_000;
/// The member says itself when it gives up; who asked waits as long as it likes.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 3_600);

/// A connection, which answers may be sent on from two threads.
struct Socket(OwnedFd, Mutex<()>);

impl Socket {
    fn say(&self, answer: &Answer) -> io::Result<()> {
        let _one = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        send(self.0.as_fd(), answer, None)
    }
}

/// An operation whose sums are to come.
struct UnderWay {
    operation: u64,
    bytes: u64,
    memory: File,
    pending: Pending,
}

/// An operation whose values wait for room.
struct Given {
    operation: u64,
    dtype: String,
    length: u64,
    bytes: u64,
    reduction: Reduction,
    memory: File,
}

/// A process that is a rank. Dropped, the rank leaves, and who waited for its sums is told.
struct Joined {
    observer: Observer,
    given: Option<Sender<Given>>,
    threads: Vec<JoinHandle<()>>,
    load: Arc<Load>,
    interface: String,
    io: String,
}

impl Drop for Joined {
    fn drop(&mut self) {
        self.load.close();
        self.given = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What a session may use of the daemon.
pub struct Grounds {
    /// The interfaces that are served.
    pub interfaces: Vec<String>,
    /// How frames come and go.
    pub io: crate::frames::Io,
    /// Bytes of values that a session may have under way.
    pub memory: u64,
    /// So many operations a session may have under way.
    pub operations: u64,
}

/// Serves one who has connected until it goes; `told` is called with what is good to know.
pub fn run(socket: OwnedFd, grounds: &Grounds, told: &dyn Fn(&str)) -> io::Result<()> {
    let socket = Arc::new(Socket(socket, Mutex::new(())));
    let mut joined: Option<Joined> = None;
    while let Some((ask, with)) = receive::<Ask>(socket.0.as_fd())? {
        let answer = match ask {
            Ask::Hello(_) => Ok(Answer::Hello(VERSION)),
            Ask::Where(interface) => whereabouts(grounds, interface.as_deref()),
            Ask::Open(rank) => open(grounds, &rank),
            Ask::Join { .. } if joined.is_some() => {
                Err(refused("a process is one rank of one job"))
            }
            Ask::Join {
                rank,
                first_chunk,
                peers,
                gone_after_ns,
                fallback,
            } => {
                let patience = (gone_after_ns, fallback);
                join(grounds, &socket, &rank, first_chunk, &peers, patience).map(|new| {
                    told(&format!(
                        "is rank {} of job {} on {}",
                        rank.rank, rank.job, new.1.interface
                    ));
                    joined = Some(new.1);
                    new.0
                })
            }
            Ask::Sum {
                operation,
                dtype,
                length,
                average,
                stochastic,
                share,
                terms,
                key,
            } => {
                let reduction = Reduction {
                    average,
                    rounding: stochastic
                        .map_or(Rounding::Nearest, |seed| Rounding::Stochastic { seed }),
                    key,
                    share: share.into(),
                    // Of words that are none of this version's it compares what the values say.
                    terms: terms.and_then(Terms::from_words),
                };
                match sum(joined.as_ref(), operation, dtype, length, reduction, with) {
                    // Its sums are the answer.
                    Ok(()) => continue,
                    Err((kind, text)) => Ok(Answer::NotSummed {
                        operation,
                        kind,
                        text,
                    }),
                }
            }
            Ask::Status => match &joined {
                None => Err(refused("nobody has joined")),
                Some(joined) => {
                    let mut status = joined.observer.status();
                    status.interface = Some(joined.interface.clone());
                    status.io = Some(joined.io.clone());
                    Ok(Answer::Status(Box::new(status)))
                }
            },
        };
        socket.say(&answer.unwrap_or_else(|(kind, text)| Answer::No { kind, text }))?;
    }
    Ok(())
}

type Refusal = (Kind, String);

fn refused(text: impl Into<String>) -> Refusal {
    (Kind::Refused, text.into())
}

fn broken(error: &io::Error) -> Refusal {
    (Kind::Io, error.to_string())
}

/// The interface that is meant, if it is served.
fn interface<'a>(grounds: &'a Grounds, named: Option<&str>) -> Result<&'a str, Refusal> {
    let served = &grounds.interfaces;
    let found = match named {
        None => served.first(),
        Some(named) => served.iter().find(|served| *served == named),
    };
    let told = || {
        let named = named.unwrap_or("an interface");
        refused(format!(
            "{named} is not served here; {} is",
            served.join(", ")
        ))
    };
    found.map(String::as_str).ok_or_else(told)
}

fn whereabouts(grounds: &Grounds, named: Option<&str>) -> Result<Answer, Refusal> {
    let endpoint = Endpoint::of(interface(grounds, named)?).map_err(|error| broken(&error))?;
    Ok(Answer::Where(endpoint.to_string()))
}

fn open(grounds: &Grounds, rank: &RankOf) -> Result<Answer, Refusal> {
    let interface = interface(grounds, rank.interface.as_deref())?;
    let setup = rank.setup(0).map_err(refused)?;
    let _place = taken(interface, rank.job)?;
    let me = Endpoint::of(interface).map_err(|error| broken(&error))?;
    let frames = InterfaceFrames::open(interface, grounds.io);
    let (mut frames, _) = frames.map_err(|error| broken(&error))?;
    let first = open_job(&setup, me, &mut frames).map_err(|error| refusal(&error))?;
    Ok(Answer::Opened(first.0))
}

/// Nobody else may be of this job on this interface: in another session, by another daemon, or by itself.
fn taken(interface: &str, job: u16) -> Result<Place, Refusal> {
    Place::take(interface, job).map_err(|error| refusal(&error.into()))
}

fn join(
    grounds: &Grounds,
    socket: &Arc<Socket>,
    rank: &RankOf,
    first_chunk: u32,
    peers: &[String],
    (gone_after_ns, fallback): (u64, Option<bool>),
) -> Result<(Answer, Joined), Refusal> {
    let interface = interface(grounds, rank.interface.as_deref())?;
    let mut setup = rank.setup(first_chunk).map_err(refused)?;
    if !GONE_AFTER_NS.contains(&gone_after_ns) {
        return Err(refused("a rank is gone after 10 ms to an hour"));
    }
    setup.dead_after_ns = Some(gone_after_ns);
    setup.fallback = fallback.map(|at_once| Fallback {
        at_once,
        ..Fallback::IF_SILENT
    });
    if peers.len() != usize::from(rank.ranks) {
        return Err(refused(format!(
            "{} addresses of {} ranks",
            peers.len(),
            rank.ranks
        )));
    }
    let peers: Result<Vec<Endpoint>, _> = peers.iter().map(|peer| peer.parse()).collect();
    let own = setup.kept_bytes();
    let room = grounds.memory.checked_sub(own).ok_or_else(|| {
        refused(format!(
            "a window of {} frames of {} values takes {own} bytes, more than the {} that a process may have (--memory)",
            rank.window, rank.values_per_packet, grounds.memory
        ))
    })?;
    let place = taken(interface, rank.job)?;
    let config = Config {
        setup,
        me: Endpoint::of(interface).map_err(|error| broken(&error))?,
        peers: peers.map_err(|error| refused(error.to_string()))?,
    };
    let frames = InterfaceFrames::open(interface, grounds.io);
    let (frames, why_not) = frames.map_err(|error| broken(&error))?;
    let io = frames.io().to_string();
    let member = Member::start_at(config, frames, Some(place));
    let member = member.map_err(|error| broken(&error))?;
    let load = Arc::new(Load::new(grounds.operations, room));
    let observer = member.observer();
    let (given, to_give) = mpsc::channel();
    let (sums, to_come) = mpsc::channel();
    let mut joined = Joined {
        observer: member.observer(),
        given: Some(given),
        threads: Vec::new(),
        load: Arc::clone(&load),
        interface: interface.to_owned(),
        io: io.clone(),
    };
    let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(work).map_err(|error| broken(&error))
    };
    let (told, counted) = (Arc::clone(socket), Arc::clone(&load));
    let give = move || give(&to_give, &member, &sums, &told, &counted);
    joined.threads.push(start("weir gives", Box::new(give))?);
    let told = Arc::clone(socket);
    let finish = move || finish(&to_come, &told, &load, &observer);
    joined.threads.push(start("weir sums", Box::new(finish))?);
    let answer = Answer::Joined {
        io,
        refused: why_not.map(|error| error.to_string()),
        operations: grounds.operations,
    };
    Ok((answer, joined))
}

/// Takes an operation, whose values wait for room from here on.
fn sum(
    joined: Option<&Joined>,
    operation: u64,
    dtype: String,
    length: u64,
    reduction: Reduction,
    memory: Option<OwnedFd>,
) -> Result<(), Refusal> {
    let joined = joined.ok_or_else(|| refused("nobody has joined"))?;
    let told = || {
        refused(format!(
            "{dtype} is not summed: float32, float16, bfloat16, int32 and int8 are"
        ))
    };
    let width = values::width(&dtype).ok_or_else(told)?;
    let bytes = length.saturating_mul(width);
    let most = joined.load.memory();
    if bytes > most {
        return Err(refused(format!(
            "{bytes} bytes are more than the {most} that a process may have under way (--memory)"
        )));
    }
    let memory = memory.ok_or_else(|| refused("the values' memory did not come with them"))?;
    let memory = values::passed(memory, bytes).map_err(refused)?;
    if !joined.load.begin() {
        return Err(refused("too many operations are under way"));
    }
    let given = Given {
        operation,
        dtype,
        length,
        bytes,
        reduction,
        memory,
    };
    let sent = joined.given.as_ref().map(|to| to.send(given));
    match sent {
        Some(Ok(())) => Ok(()),
        // Its thread has ended.
        _ => Err(refused("the rank was closed")),
    }
}

/// Gives operations to the rank in their order, each when there is room for its values. At its end the rank leaves.
fn give(
    to_give: &Receiver<Given>,
    member: &Member,
    sums: &Sender<UnderWay>,
    socket: &Socket,
    load: &Load,
) {
    while let Ok(given) = to_give.recv() {
        let Given {
            operation,
            bytes,
            memory,
            ..
        } = given;
        if !load.take(bytes) {
            return;
        }
        let loaded = values::load(&given.dtype, given.length as usize, &memory);
        let loaded = loaded.map_err(|error| broken(&error));
        let begun = loaded.and_then(|values| {
            let begun = member.all_reduce_as(values, given.reduction);
            begun.map_err(|error| refusal(&error))
        });
        match begun {
            Ok(pending) => {
                let under_way = UnderWay {
                    operation,
                    bytes,
                    memory,
                    pending,
                };
                if sums.send(under_way).is_err() {
                    return;
                }
            }
            Err((kind, text)) => {
                load.free(bytes);
                load.end();
                let _ = socket.say(&Answer::NotSummed {
                    operation,
                    kind,
                    text,
                });
            }
        }
    }
}

/// Gives sums back, in the order in which they were asked for: that in which they are done.
fn finish(to_come: &Receiver<UnderWay>, socket: &Socket, load: &Load, seen: &Observer) {
    while let Ok(under_way) = to_come.recv() {
        let UnderWay {
            operation,
            bytes,
            memory,
            pending,
        } = under_way;
        let stored = pending.wait(PATIENCE).map_err(|error| refusal(&error));
        let stored = stored.and_then(|sums| {
            let stored = values::store(&sums.values, &memory);
            let stored = stored.and_then(|()| values::store_partial(&sums.partial, bytes, &memory));
            stored.map_err(|error| broken(&error))?;
            Ok((sums.error_bound, sums.partial.len() as u64))
        });
        load.free(bytes);
        load.end();
        let answer = match stored {
            Ok((error_bound, partial)) => Answer::Summed {
                operation,
                error_bound,
                partial,
                fallbacks: seen.fallbacks(),
            },
            Err((kind, text)) => Answer::NotSummed {
                operation,
                kind,
                text,
            },
        };
        // Who has gone is not told; its session ends by itself.
        let _ = socket.say(&answer);
    }
}

fn refusal(error: &CollectiveError) -> Refusal {
    let kind = match error {
        CollectiveError::NonFinite(_) => Kind::NonFinite,
        CollectiveError::Io(_) | CollectiveError::Link(_) => Kind::Io,
        CollectiveError::Place(_) => Kind::Refused,
        CollectiveError::Agent { kind, .. } => *kind,
        CollectiveError::Opening(_) => Kind::Silent,
        CollectiveError::Submit(_) => Kind::Refused,
        CollectiveError::Rank(_)
        | CollectiveError::Timeout { .. }
        | CollectiveError::Late { .. }
        | CollectiveError::Closed => Kind::Failed,
    };
    (kind, error.to_string())
}
