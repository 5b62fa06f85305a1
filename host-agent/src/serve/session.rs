//! A session of the daemon: one connected process, and the rank that it becomes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use aggregation::rank::{Fallback, Reduction, Rounding, Terms};

use super::message::{Answer, Ask, RankOf, VERSION};
use super::operations::{Capacity, OperationRequest, Operations};
use super::refusal::{Refusal, broken, refusal, refused, unattached};
use super::socket::{Socket, receive};
use super::values;
use crate::collective::{Config, JobLock, Member, Observer, attach, attach_alone, open_job_by};
use crate::frames::Endpoint;

/// Maximum number of unanswered operations per session, if the limit on open files allows it.
pub const OPERATIONS: u64 = 4_096;
/// Allowed timeouts for dead ranks in nanoseconds: with shorter timeouts, most frames would be questions to other ranks.
const GONE_AFTER_NS: std::ops::RangeInclusive<u64> = 10_000_000..=3_600_000_000_000;

/// A client that has joined a job as a rank.
struct Joined {
    operations: Operations,
    observer: Observer,
    interface: String,
    io: String,
}

/// Resources of the daemon that a session may use.
pub struct Environment {
    /// Names of the interfaces that the daemon serves.
    pub interfaces: Vec<String>,
    /// I/O backend that the daemon uses.
    pub io: crate::frames::Io,
    /// Maximum bytes of values in flight per session.
    pub memory: u64,
    /// Maximum number of unanswered operations per session.
    pub operations: u64,
}

/// Serves a client until it closes the connection or its sending direction; `told` logs notable events. When this function
/// returns, the client's rank has left.
pub fn run(socket: &Arc<Socket>, env: &Environment, told: &dyn Fn(&str)) -> io::Result<()> {
    let mut joined: Option<Joined> = None;
    while let Some((ask, with)) = receive::<Ask>(socket.as_fd())? {
        let answer = match ask {
            Ask::Hello(_) => Ok(Answer::Hello(VERSION)),
            Ask::Where(interface) => whereabouts(env, interface.as_deref()),
            Ask::Open(rank) => open(env, &rank),
            Ask::Join { .. } if joined.is_some() => Err(refused(
                "this process is already a rank: a process is one rank of one job",
            )),
            Ask::Join {
                rank,
                first_chunk,
                peers,
                gone_after_ns,
                fallback,
            } => {
                let patience = (gone_after_ns, fallback);
                join(env, socket, &rank, first_chunk, &peers, patience).map(|new| {
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
                exact,
                stochastic,
                share,
                terms,
                key,
            } => {
                let reduction = Reduction {
                    average,
                    exact,
                    rounding: stochastic
                        .map_or(Rounding::Nearest, |seed| Rounding::Stochastic { seed }),
                    key,
                    share,
                    // With terms unknown to this version, only the terms of the values are compared.
                    terms: terms.and_then(Terms::from_words),
                };
                match sum(joined.as_ref(), operation, &dtype, length, reduction, with) {
                    // The sums are the answer.
                    Ok((operations, given)) => {
                        operations.give(given)?;
                        continue;
                    }
                    Err((kind, text)) => Ok(Answer::NotSummed {
                        operation,
                        kind,
                        text,
                    }),
                }
            }
            Ask::Status => match &joined {
                None => Err(refused(
                    "this process is not a rank: it must join a job first",
                )),
                Some(joined) => {
                    let mut status = joined.observer.status();
                    status.interface = Some(joined.interface.clone());
                    status.io = Some(joined.io.clone());
                    Ok(Answer::Status(Box::new(status)))
                }
            },
        };
        socket.send(&answer.unwrap_or_else(|(kind, text)| Answer::No { kind, text }))?;
    }
    Ok(())
}

/// The interface that a client requests, if the daemon serves it; the first interface if it names none.
fn interface<'a>(env: &'a Environment, named: Option<&str>) -> Result<&'a str, Refusal> {
    let served = &env.interfaces;
    let found = match named {
        None => served.first(),
        Some(named) => served.iter().find(|served| *served == named),
    };
    let told = || {
        let named = named.unwrap_or("an interface");
        refused(format!(
            "{named} is not served here: use {}",
            served.join(", ")
        ))
    };
    found.map(String::as_str).ok_or_else(told)
}

fn whereabouts(env: &Environment, named: Option<&str>) -> Result<Answer, Refusal> {
    let endpoint =
        Endpoint::from_interface(interface(env, named)?).map_err(|error| broken(&error))?;
    Ok(Answer::Where(endpoint.to_string()))
}

fn open(env: &Environment, rank: &RankOf) -> Result<Answer, Refusal> {
    let interface = interface(env, rank.interface.as_deref())?;
    let setup = rank.setup(0).map_err(refused)?;
    let _place = taken(interface, rank.job)?;
    let me = Endpoint::from_interface(interface).map_err(|error| broken(&error))?;
    let carrier = attach_alone(interface, env.io, rank.transport, &setup, me);
    let mut carrier = carrier.map_err(unattached)?;
    let first = open_job_by(&setup, &mut *carrier).map_err(|error| refusal(&error))?;
    Ok(Answer::Opened(first.0))
}

/// Locks the job on this interface against other sessions, other daemons and independent ranks.
fn taken(interface: &str, job: u16) -> Result<JobLock, Refusal> {
    JobLock::take(interface, job).map_err(|error| refusal(&error.into()))
}

fn join(
    env: &Environment,
    socket: &Arc<Socket>,
    rank: &RankOf,
    first_chunk: u32,
    peers: &[String],
    (gone_after_ns, fallback): (u64, Option<bool>),
) -> Result<(Answer, Joined), Refusal> {
    let interface = interface(env, rank.interface.as_deref())?;
    let mut setup = rank.setup(first_chunk).map_err(refused)?;
    if !GONE_AFTER_NS.contains(&gone_after_ns) {
        return Err(refused("the timeout of a dead rank must be 10 ms to 1 h"));
    }
    setup.dead_after_ns = Some(gone_after_ns);
    setup.fallback = fallback.map(|at_once| Fallback {
        at_once,
        ..Fallback::IF_SILENT
    });
    if peers.len() != usize::from(rank.ranks) {
        return Err(refused(format!(
            "{} addresses for {} ranks: give one address for each rank",
            peers.len(),
            rank.ranks
        )));
    }
    let peers: Result<Vec<Endpoint>, _> = peers.iter().map(|peer| peer.parse()).collect();
    let own = setup.kept_bytes();
    let left = env.memory.checked_sub(own).ok_or_else(|| {
        refused(format!(
            "a window of {} frames of {} values takes {own} bytes: a process may use {} (--memory)",
            rank.window, rank.values_per_packet, env.memory
        ))
    })?;
    let place = taken(interface, rank.job)?;
    let config = Config {
        setup,
        me: Endpoint::from_interface(interface).map_err(|error| broken(&error))?,
        peers: peers.map_err(|error| refused(error.to_string()))?,
    };
    let attached = attach(interface, env.io, rank.transport, &config);
    let (carrier, way) = attached.map_err(unattached)?;
    let io = way.io.to_string();
    let member = Member::start_by(config, carrier, Some(place));
    let member = member.map_err(|error| broken(&error))?;
    let observer = member.observer();
    let room = Capacity::new(left, env.operations);
    let operations = Operations::start(member, room, socket);
    let joined = Joined {
        operations: operations.map_err(|error| broken(&error))?,
        observer,
        interface: interface.to_owned(),
        io: io.clone(),
    };
    let answer = Answer::Joined {
        io,
        refused: way.notice,
        operations: env.operations,
    };
    Ok((answer, joined))
}

/// Validates a client's operation, and finds the rank that it belongs to.
fn sum<'a>(
    joined: Option<&'a Joined>,
    operation: u64,
    dtype: &str,
    length: u64,
    reduction: Reduction,
    memory: Option<OwnedFd>,
) -> Result<(&'a Operations, OperationRequest), Refusal> {
    let operations = &joined
        .ok_or_else(|| refused("this process is not a rank: it must join a job first"))?
        .operations;
    let told = || {
        refused(format!(
            "{dtype} is not supported: use float32, float16, bfloat16, int32 or int8"
        ))
    };
    let width = values::width(dtype).ok_or_else(told)?;
    let bytes = length.saturating_mul(width);
    let most = operations.room().bytes;
    if bytes > most {
        return Err(refused(format!(
            "{bytes} bytes: a process may use {most} (--memory)"
        )));
    }
    let memory = memory.ok_or_else(|| refused("the message has no memory with the values"))?;
    let given = OperationRequest {
        operation,
        dtype: dtype.to_owned(),
        length: length as usize,
        bytes,
        reduction,
        memory: values::passed(memory, bytes).map_err(refused)?,
    };
    Ok((operations, given))
}
