//! Client of the daemon: a process without capabilities that is a rank through the daemon.

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

use super::message::{Answer, Ask, RankOf, VERSION};
use super::socket::{receive, send};
use super::values;
use crate::collective::{CollectiveError, Failure};
use crate::frames::{Endpoint, Io};
use crate::metrics::Status;

/// Maximum wait for the daemon's answer. For some requests it probes a switch: ten timeouts if the switch is silent.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum wait for the daemon's answer to a status request, which involves no switch.
const PATIENCE_OF_STATUS: Duration = Duration::from_secs(5);
/// Maximum time that a leaving client waits for the daemon to release its rank.
const PATIENCE_OF_CLOSE: Duration = Duration::from_secs(10);

/// A connection to a daemon. [`Client::close`] ends it, and with it the rank; otherwise it ends when the last of its clones and
/// pending sums is dropped.
#[derive(Debug, Clone)]
pub struct Client(Arc<Connection>);

#[derive(Debug)]
struct Connection {
    socket: Arc<OwnedFd>,
    shared: Arc<Shared>,
    /// Lock under which operations are submitted, so that they arrive in the order of their numbers.
    giving: Mutex<()>,
    answers: Mutex<Answers>,
}

/// The daemon's answers, one for each request, in the order of the requests.
#[derive(Debug)]
struct Answers {
    heard: Receiver<Answer>,
    /// Whether the next answer belongs to an earlier request whose sender no longer waits.
    is_overdue: bool,
}

impl Answers {
    /// Waits for the daemon's next answer, at most until the time `until`.
    fn next(&self, until: Instant) -> Result<Answer, RecvTimeoutError> {
        let left = until.saturating_duration_since(Instant::now());
        self.heard.recv_timeout(left)
    }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when the daemon has answered an operation.
    answered: Condvar,
    /// Number of times that the switch fell silent, by the daemon's last report.
    fallbacks: AtomicU64,
}

/// Result of an operation that has sums: their error bound, and the number of partial chunks (sums that lack some ranks).
type Bounds = (f64, u64);
type SumsSender = Sender<Result<Bounds, CollectiveError>>;

#[derive(Debug, Default)]
struct State {
    /// Number of the operation submitted last.
    last: u64,
    /// Receivers of the results, by operation number.
    waiting: HashMap<u64, SumsSender>,
    /// Maximum number of unanswered operations, by the daemon's report; `None` until this client is a rank.
    limit: Option<u64>,
    /// Whether this client has closed the connection.
    is_closed: bool,
    /// Whether the daemon has closed the connection.
    is_over: bool,
}

impl State {
    /// Reason why this client accepts no operation; `None` if it does.
    fn ended(&self) -> Option<CollectiveError> {
        match self {
            State {
                is_closed: true, ..
            } => Some(CollectiveError::Closed),
            State { is_over: true, .. } => Some(ended()),
            _ => None,
        }
    }

    /// Fails all operations that are not finished.
    fn end(&mut self) {
        let error = self.ended().unwrap_or_else(ended);
        for (_, waiting) in self.waiting.drain() {
            let _ = waiting.send(Err(error.clone()));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until an operation may be submitted, assigns its number, and registers the receiver of its result.
    fn number(&self, told: SumsSender) -> Result<u64, CollectiveError> {
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

    /// Removes an operation from those that are not finished, and returns the receiver of its result.
    fn take(&self, operation: u64) -> Option<SumsSender> {
        let told = self.lock().waiting.remove(&operation);
        self.answered.notify_all();
        told
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The listening thread ends by this.
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }
}

fn agent(kind: Failure, text: impl Into<String>) -> CollectiveError {
    let text = text.into();
    CollectiveError::Agent { kind, text }
}

fn ended() -> CollectiveError {
    agent(
        Failure::Failed,
        "the daemon has ended, and with it this rank",
    )
}

impl Client {
    /// Connects to the daemon that listens at a Unix socket.
    pub fn connect(path: &Path) -> Result<Client, CollectiveError> {
        let failed = |errno: nix::errno::Errno| {
            let text = format!("no daemon at {}: {}", path.display(), errno.desc());
            agent(Failure::Io, text)
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
        started.map_err(|error| agent(Failure::Io, error.to_string()))?;
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
                Err(agent(Failure::Refused, text))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Addresses (`MAC/IPv4`) of an interface of the daemon; of its first interface if `interface` is `None`.
    pub fn whereabouts(&self, interface: Option<&str>) -> Result<Endpoint, CollectiveError> {
        match self.ask(&Ask::Where(interface.map(str::to_owned)))? {
            Answer::Where(told) => {
                let wrong = |error: crate::frames::EndpointError| {
                    agent(Failure::Refused, error.to_string())
                };
                told.parse().map_err(wrong)
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Has the daemon find the first chunk number for which the switch's register cells are free.
    pub fn open(&self, rank: &RankOf) -> Result<u32, CollectiveError> {
        match self.ask(&Ask::Open(rank.clone()))? {
            Answer::Opened(first) => Ok(first),
            other => Err(unexpected(&other)),
        }
    }

    /// Joins a job as a rank; returns the daemon's I/O backend, and a notice with the error of the rings if the daemon uses system
    /// calls because of it.
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
                Ok((io.map_err(|wrong| agent(Failure::Refused, wrong))?, refused))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Submits values to be summed over all ranks. Blocks while the daemon allows no further unanswered operation.
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
            share: reduction.share,
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

    /// Maximum number of unanswered operations, by the daemon's report; 0 before this client is a rank.
    pub fn operations(&self) -> u64 {
        self.0.shared.lock().limit.unwrap_or(0)
    }

    /// Descriptor of the connection, which a forked child process must close. The child must not drop this value, which would
    /// end the connection for both.
    pub fn descriptor(&self) -> RawFd {
        self.0.socket.as_raw_fd()
    }

    /// The rank's status, as the daemon reports it.
    pub fn status(&self) -> Result<Status, CollectiveError> {
        match self.ask(&Ask::Status)? {
            Answer::Status(status) => Ok(*status),
            other => Err(unexpected(&other)),
        }
    }

    /// Number of times that the switch had fallen silent, so that the ranks summed instead, as of the last result.
    pub fn fallbacks(&self) -> u64 {
        self.0.shared.fallbacks.load(Ordering::Relaxed)
    }

    /// Leaves the job: unfinished operations fail, as those of a dropped [`Member`](crate::collective::Member) do. When this
    /// returns, the daemon has released the rank, so that another process can take its place.
    pub fn close(&self) {
        let shared = &self.0.shared;
        let mut state = shared.lock();
        state.is_closed = true;
        state.end();
        shared.answered.notify_all();
        // The daemon closes its end when the rank has left.
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
        // A daemon that does not answer gets no further questions.
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
            // The daemon gives the reason of a refusal, even if this answer was overdue.
            Ok(Answer::No { kind, text }) => Err(agent(kind, text)),
            Ok(answer) => Ok(answer),
            Err(RecvTimeoutError::Timeout) if sent => {
                match is_status {
                    true => answers.is_overdue = true,
                    // The state of this rank would be unknown.
                    false => drop(shutdown(self.0.socket.as_raw_fd(), Shutdown::Both)),
                }
                Err(agent(Failure::Failed, "the daemon does not answer"))
            }
            Err(_) => Err(self.0.shared.lock().ended().unwrap_or_else(ended)),
        }
    }
}

fn unexpected(answer: &Answer) -> CollectiveError {
    agent(
        Failure::Refused,
        format!("the daemon sent an unexpected reply: {answer:?}"),
    )
}

/// Processes the messages from the daemon until the connection ends.
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
            // The receiver may have stopped waiting.
            let _ = waiting.send(outcome);
        }
    }
    let mut state = shared.lock();
    state.is_over = true;
    state.end();
    shared.answered.notify_all();
}

/// Handle of an operation at a daemon, with which the caller waits for its sums.
#[derive(Debug)]
pub struct RemotePending {
    sums: Receiver<Result<Bounds, CollectiveError>>,
    memory: File,
    dtype: &'static str,
    length: usize,
    client: Client,
}

impl RemotePending {
    /// Waits at most `timeout` for the sums of the operation.
    pub fn wait(self, timeout: Duration) -> Result<Sums, CollectiveError> {
        let ended = self.wait_for(timeout);
        ended.unwrap_or_else(|| Err(self.late(timeout)))
    }

    /// Waits at most `timeout`, and can be called again if that was not enough (`None`). The result is returned once.
    pub fn wait_for(&self, timeout: Duration) -> Option<Result<Sums, CollectiveError>> {
        match self.sums.recv_timeout(timeout) {
            Ok(told) => {
                Some(told.and_then(|(error_bound, partial)| self.load(error_bound, partial)))
            }
            Err(RecvTimeoutError::Disconnected) => Some(Err(ended())),
            Err(RecvTimeoutError::Timeout) => None,
        }
    }

    /// Reads the sums from the memory that the daemon shares.
    fn load(&self, error_bound: f64, partial: u64) -> Result<Sums, CollectiveError> {
        let io = |error: io::Error| CollectiveError::Io(Arc::new(error));
        let values = values::load(self.dtype, self.length, &self.memory).map_err(io)?;
        let bytes = values.len() as u64 * values::width(self.dtype).unwrap_or_default();
        Ok(Sums {
            partial: values::load_partial(partial, bytes, &self.memory).map_err(io)?,
            values,
            error_bound,
        })
    }

    /// The error for a timeout of this operation, with the unfinished chunk that the daemon reports.
    pub fn late(&self, waited: Duration) -> CollectiveError {
        let waits = self.client.status().ok().and_then(|status| status.waits);
        CollectiveError::Late { waited, waits }
    }
}
