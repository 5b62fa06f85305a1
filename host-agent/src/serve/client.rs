//! A process without capabilities that is a rank by a daemon.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aggregation::rank::{Reduction, Rounding, Sums, Terms, Values};
use nix::sys::socket::{
    AddressFamily, Shutdown, SockFlag, SockType, UnixAddr, connect, shutdown, socket,
};

use super::message::{Answer, Ask, Kind, RankOf, VERSION, receive, send};
use super::values;
use crate::collective::CollectiveError;
use crate::frames::{Endpoint, Io};
use crate::metrics::Status;

/// So long a daemon may take for a question. It may ask a switch for it, which takes ten timeouts if that is silent.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same of what is counted, for which it asks nobody.
const PATIENCE_OF_STATUS: Duration = Duration::from_secs(5);
/// One that leaves waits no longer than that for its daemon to let it go.
const PATIENCE_OF_CLOSE: Duration = Duration::from_secs(10);

/// A connection to a daemon. [`Client::close`] ends it, and with it the rank; else the last that is dropped, of its clones and of
/// the sums that are to come.
#[derive(Debug, Clone)]
pub struct Client(Arc<Connection>);

#[derive(Debug)]
struct Connection {
    socket: Arc<OwnedFd>,
    shared: Arc<Shared>,
    /// Operations are given in the order of their numbers.
    giving: Mutex<()>,
    answers: Mutex<Answers>,
}

/// Questions have one answer each, in their order.
#[derive(Debug)]
struct Answers {
    heard: Receiver<Answer>,
    /// The first that comes is that of a question nobody waits for any more.
    is_overdue: bool,
}

impl Answers {
    /// Waits for the next one, but not longer than until then.
    fn next(&self, until: Instant) -> Result<Answer, RecvTimeoutError> {
        let left = until.saturating_duration_since(Instant::now());
        self.heard.recv_timeout(left)
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Said when an operation was answered.
    answered: Condvar,
    /// How often the switch has fallen silent, as the daemon said last.
    fallbacks: AtomicU64,
}

/// What is told of an operation that has its sums: what they are off by at most, and how many chunks are not of all.
type Bounds = (f64, u64);
type Told = Sender<Result<Bounds, CollectiveError>>;

#[derive(Debug, Default)]
struct State {
    /// The number of the last operation.
    last: u64,
    /// Who waits for which operation.
    waiting: HashMap<u64, Told>,
    /// So many operations may be given and not answered, as the daemon said; `None` before this is a rank.
    limit: Option<u64>,
    /// This end has left.
    is_closed: bool,
    /// The daemon says nothing any more.
    is_over: bool,
}

impl State {
    /// Why nothing is summed any more.
    fn ended(&self) -> Option<CollectiveError> {
        match self {
            State {
                is_closed: true, ..
            } => Some(CollectiveError::Closed),
            State { is_over: true, .. } => Some(gone()),
            _ => None,
        }
    }

    /// Nobody who waits will have sums.
    fn end(&mut self) {
        let error = self.ended().unwrap_or_else(gone);
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.send(Err(error.clone()));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of an operation, once it may be given; who waits for it is told by the sender.
    fn number(&self, told: Told) -> Result<u64, CollectiveError> {
        let full = |state: &mut State| {
            let given = state.waiting.len() as u64;
            state.ended().is_none() && state.limit.is_some_and(|limit| given >= limit)
        };
        let state = self.answered.wait_while(self.lock(), full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = state.ended() {
            return Err(ended);
        }
        state.last += 1;
        let operation = state.last;
        state.waiting.insert(operation, told);
        Ok(operation)
    }

    /// An operation was answered, or nobody was asked for it.
    fn take(&self, operation: u64) -> Option<Told> {
        let told = self.lock().waiting.remove(&operation);
        self.answered.notify_all();
        told
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The thread that listens ends by that.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }
}

fn agent(kind: Kind, text: impl Into<String>) -> CollectiveError {
    let text = text.into();
    CollectiveError::Agent { kind, text }
}

fn gone() -> CollectiveError {
    agent(Kind::Failed, "the daemon has ended, and with it this rank")
}

impl Client {
    /// Connects to the daemon at a socket.
    pub fn connect(path: &Path) -> Result<Client, CollectiveError> {
        let failed = |errno: nix::errno::Errno| {
            let text = format!("no daemon at {}: {}", path.display(), errno.desc());
            agent(Kind::Io, text)
        };
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket =
            socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).map_err(failed)?;
        let address = UnixAddr::new(path).map_err(failed)?;
        connect(socket.as_raw_fd(), &address).map_err(failed)?;
        let socket = Arc::new(socket);
        let shared = Arc::new(Shared::default());
        let (answer, answers) = mpsc::channel();
        let (heard, told) = (Arc::clone(&socket), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("weir agent".to_owned());
        let started = thread.spawn(move || listen(&heard, &told, &answer));
        started.map_err(|error| agent(Kind::Io, error.to_string()))?;
        let client = Client(Arc::new(Connection {
            socket,
            shared,
            giving: Mutex::new(()),
            answers: Mutex::new(Answers {
                heard: answers,
                is_overdue: false,
            }),
        }));
        match client.ask(&Ask::Hello(VERSION))? {
            Answer::Hello(VERSION) => Ok(client),
            Answer::Hello(other) => {
                let text =
                    format!("the daemon speaks version {other}, and this is version {VERSION}");
                Err(agent(Kind::Refused, text))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Where an interface of the daemon's is; its first, if none is named.
    pub fn whereabouts(&self, interface: Option<&str>) -> Result<Endpoint, CollectiveError> {
        match self.ask(&Ask::Where(interface.map(str::to_owned)))? {
            Answer::Where(told) => {
                let wrong =
                    |error: crate::frames::EndpointError| agent(Kind::Refused, error.to_string());
                told.parse().map_err(wrong)
            }
            other => Err(unexpected(&other)),
        }
    }

    /// From which chunk on the switch's cells are free.
    pub fn open(&self, rank: &RankOf) -> Result<u32, CollectiveError> {
        match self.ask(&Ask::Open(rank.clone()))? {
            Answer::Opened(first) => Ok(first),
            other => Err(unexpected(&other)),
        }
    }

    /// Is a rank from now on; gives how frames come and go, and why not by rings.
    pub fn join(
        &self,
        rank: &RankOf,
        first_chunk: u32,
        peers: &[Endpoint],
        gone_after: Duration,
        fallback: Option<bool>,
    ) -> Result<(Io, Option<String>), CollectiveError> {
        let ask = Ask::Join {
            rank: rank.clone(),
            first_chunk,
            peers: peers.iter().map(ToString::to_string).collect(),
            gone_after_ns: u64::try_from(gone_after.as_nanos()).unwrap_or(u64::MAX),
            fallback,
        };
        match self.ask(&ask)? {
            Answer::Joined {
                io,
                refused,
                operations,
            } => {
                self.0.shared.lock().limit = Some(operations.max(1));
                let io = io.parse();
                Ok((io.map_err(|wrong| agent(Kind::Refused, wrong))?, refused))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Gives values to be summed over all ranks. Waits while as many operations as the daemon takes have no answer.
    pub fn all_reduce_as(
        &self,
        values: &Values,
        reduction: Reduction,
    ) -> Result<RemotePending, CollectiveError> {
        let io = |error: io::Error| CollectiveError::Io(Arc::new(error));
        let dtype = values::dtype(values);
        let bytes = values::width(dtype).unwrap_or(0) * values.len() as u64;
        let memory = values::memory().map_err(io)?;
        match reduction.share.gives() {
            true => values::store(values, &memory).map_err(io)?,
            false => memory.set_len(bytes).map_err(io)?,
        }
        let (told, sums) = mpsc::channel();
        let _giving = self.0.giving.lock().unwrap_or_else(PoisonError::into_inner);
        let operation = self.0.shared.number(told)?;
        let ask = Ask::Sum {
            operation,
            dtype: dtype.to_owned(),
            length: values.len() as u64,
            average: reduction.average,
            exact: reduction.exact,
            stochastic: match reduction.rounding {
                Rounding::Nearest => None,
                Rounding::Stochastic { seed } => Some(seed),
            },
            share: reduction.share.into(),
            terms: reduction.terms.map(Terms::words),
            key: reduction.key,
        };
        if let Err(error) = send(self.0.socket.as_fd(), &ask, Some(memory.as_fd())) {
            self.0.shared.take(operation);
            let ended = self.0.shared.lock().ended();
            return Err(ended.unwrap_or(io(error)));
        }
        Ok(RemotePending {
            sums,
            memory,
            dtype,
            length: values.len(),
            client: self.clone(),
        })
    }

    /// So many operations may be given and not answered, as the daemon said; none before this is a rank.
    pub fn operations(&self) -> u64 {
        self.0.shared.lock().limit.unwrap_or(0)
    }

    /// The connection's, which a process that is forked has to close. It must not drop this: that would end the connection of
    /// both.
    pub fn descriptor(&self) -> RawFd {
        self.0.socket.as_raw_fd()
    }

    /// What the rank counts, and what it waits for.
    pub fn status(&self) -> Result<Status, CollectiveError> {
        match self.ask(&Ask::Status)? {
            Answer::Status(status) => Ok(*status),
            other => Err(unexpected(&other)),
        }
    }

    /// How often the switch had fallen silent when the last sums came, so that ranks summed themselves.
    pub fn fallbacks(&self) -> u64 {
        self.0.shared.fallbacks.load(Ordering::Relaxed)
    }

    /// Leaves the job: what has no sums yet fails, as that of a [`Member`](crate::collective::Member) that is dropped. Once this
    /// returns the daemon has let the rank go, so that another may take its place.
    pub fn close(&self) {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        state.is_closed = true;
        state.end();
        shared.answered.notify_all();
        // Its end of the connection ends when the rank has left.
        let _ = shutdown(self.0.socket.as_raw_fd(), Shutdown::Write);
        let still_there = |state: &mut State| !state.is_over;
        let left = shared
            .answered
            .wait_timeout_while(state, PATIENCE_OF_CLOSE, still_there);
        drop(left);
        let _ = shutdown(self.0.socket.as_raw_fd(), Shutdown::Both);
    }

    fn ask(&self, ask: &Ask) -> Result<Answer, CollectiveError> {
        let is_status = matches!(ask, Ask::Status);
        let patience = match is_status {
            true => PATIENCE_OF_STATUS,
            false => PATIENCE,
        };
        let until = Instant::now() + patience;
        let mut answers = self
            .0
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // A daemon that says nothing is not asked ever more.
        let before = match answers.is_overdue {
            true => answers.next(until).map(drop),
            false => Ok(()),
        };
        let (sent, answer) = match before {
            Ok(()) => {
                answers.is_overdue = false;
                let sent = send(self.0.socket.as_fd(), ask, None);
                (sent.is_ok(), answers.next(until))
            }
            Err(silent) => (true, Err(silent)),
        };
        match answer {
            // Who was refused has been told why, even if it was not heard.
            Ok(Answer::No { kind, text }) => Err(agent(kind, text)),
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) if sent => {
                match is_status {
                    true => answers.is_overdue = true,
                    // Nobody could tell what has become of this rank.
                    false => drop(shutdown(self.0.socket.as_raw_fd(), Shutdown::Both)),
                }
                Err(agent(Kind::Failed, "the daemon does not answer"))
            }
            Err(_) => Err(self.0.shared.lock().ended().unwrap_or_else(gone)),
        }
    }
}

fn unexpected(answer: &Answer) -> CollectiveError {
    agent(
        Kind::Refused,
        format!("the daemon answers what was not asked: {answer:?}"),
    )
}

/// Hears what the daemon says, until it has gone.
fn listen(socket: &OwnedFd, shared: &Shared, answers: &Sender<Answer>) {
    while let Ok(Some((answer, _))) = receive::<Answer>(socket.as_fd()) {
        let (operation, outcome) = match answer {
            Answer::Summed {
                operation,
                error_bound,
                partial,
                fallbacks,
            } => {
                shared.fallbacks.store(fallbacks, Ordering::Relaxed);
                (operation, Ok((error_bound, partial)))
            }
            Answer::NotSummed {
                operation,
                kind,
                text,
            } => (operation, Err(agent(kind, text))),
            other => {
                if answers.send(other).is_err() {
                    break;
                }
                continue;
            }
        };
        if let Some(waiting) = shared.take(operation) {
            // Who does not wait any more need not be told.
            let _ = waiting.send(outcome);
        }
    }
    let mut state = shared.lock();
    state.is_over = true;
    state.end();
    shared.answered.notify_all();
}

/// Sums that are to come from a daemon.
#[derive(Debug)]
pub struct RemotePending {
    sums: Receiver<Result<Bounds, CollectiveError>>,
    memory: File,
    dtype: &'static str,
    length: usize,
    client: Client,
}

impl RemotePending {
    /// Waits for the sums, but not longer than that.
    pub fn wait(self, timeout: Duration) -> Result<Sums, CollectiveError> {
        let (error_bound, partial) = match self.sums.recv_timeout(timeout) {
            Ok(told) => told?,
            Err(RecvTimeoutError::Disconnected) => return Err(gone()),
            Err(RecvTimeoutError::Timeout) => return Err(self.late(timeout)),
        };
        let io = |error: io::Error| CollectiveError::Io(Arc::new(error));
        let values = values::load(self.dtype, self.length, &self.memory).map_err(io)?;
        let bytes = values.len() as u64 * values::width(self.dtype).unwrap_or_default();
        Ok(Sums {
            partial: values::load_partial(partial, bytes, &self.memory).map_err(io)?,
            values,
            error_bound,
        })
    }

    /// What the rank waits for, which the daemon knows.
    fn late(&self, waited: Duration) -> CollectiveError {
        let waits = self.client.status().ok().and_then(|status| status.waits);
        CollectiveError::Late { waited, waits }
    }
}
