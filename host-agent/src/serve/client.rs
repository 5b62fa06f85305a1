//! A process without capabilities that is a rank by a daemon.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// A connection to a daemon. The last clone that is dropped ends it, and with it the rank.
#[derive(Debug, Clone)]
pub struct Client(Arc<Connection>);

#[derive(Debug)]
struct Connection {
    socket: Arc<OwnedFd>,
    shared: Arc<Shared>,
    /// Operations are given in the order of their numbers.
    giving: Mutex<()>,
    /// Questions have one answer each, in their order.
    answers: Mutex<Receiver<Answer>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// An operation has ended, or all have.
    ended: Condvar,
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
    /// So many may wait; before this is a rank the daemon refuses them itself.
    most: Option<u64>,
    is_over: bool,
}

impl State {
    fn is_full(&self) -> bool {
        let most = self.most.unwrap_or(u64::MAX);
        !self.is_over && self.waiting.len() as u64 >= most
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// The thread that listens ends by that, and tells all who wait.
    fn close(&self) {
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Both);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.close();
    }
}

fn agent(kind: Kind, text: impl Into<String>) -> CollectiveError {
    let text = text.into();
    CollectiveError::Agent { kind, text }
}

fn gone() -> CollectiveError {
    agent(Kind::Failed, "the daemon has ended, or the rank was closed")
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
            answers: Mutex::new(answers),
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
                self.0.shared.lock().most = Some(operations);
                let io = io.parse().map_err(|wrong| agent(Kind::Refused, wrong))?;
                Ok((io, refused))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Leaves: what has no sums yet fails, and so does all that is asked from now on.
    pub fn close(&self) {
        self.0.close();
    }

    /// Gives values to be summed over all ranks. Waits while as many operations are under way as the daemon takes.
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
        let operation = {
            let state = self.0.shared.lock();
            let woken = self
                .0
                .shared
                .ended
                .wait_while(state, |state| state.is_full());
            let mut state = woken.unwrap_or_else(PoisonError::into_inner);
            if state.is_over {
                return Err(gone());
            }
            state.last += 1;
            let operation = state.last;
            state.waiting.insert(operation, told);
            operation
        };
        let ask = Ask::Sum {
            operation,
            dtype: dtype.to_owned(),
            length: values.len() as u64,
            average: reduction.average,
            stochastic: match reduction.rounding {
                Rounding::Nearest => None,
                Rounding::Stochastic { seed } => Some(seed),
            },
            share: reduction.share.into(),
            terms: reduction.terms.map(Terms::words),
            key: reduction.key,
        };
        if let Err(error) = send(self.0.socket.as_fd(), &ask, Some(memory.as_fd())) {
            self.0.shared.lock().waiting.remove(&operation);
            return Err(io(error));
        }
        Ok(RemotePending {
            sums,
            memory,
            dtype,
            length: values.len(),
            client: self.clone(),
        })
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

    fn ask(&self, ask: &Ask) -> Result<Answer, CollectiveError> {
        let answers = self
            .0
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let sent = send(self.0.socket.as_fd(), ask, None);
        // Who was refused has been told why.
        let answer = answers.recv_timeout(PATIENCE);
        match (answer, sent) {
            (Ok(Answer::No { kind, text }), _) => Err(agent(kind, text)),
            (Ok(answer), _) => Ok(answer),
            (Err(RecvTimeoutError::Timeout), Ok(())) => {
                // Its answer would pass for another's.
                self.0.close();
                Err(agent(Kind::Failed, "the daemon does not answer"))
            }
            (Err(_), _) => Err(gone()),
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
        let waiting = shared.lock().waiting.remove(&operation);
        shared.ended.notify_all();
        if let Some(waiting) = waiting {
            // Who does not wait any more need not be told.
            let _ = waiting.send(outcome);
        }
    }
    let mut state = shared.lock();
    state.is_over = true;
    for (_, waiting) in state.waiting.drain() {
        let _ = waiting.send(Err(gone()));
    }
    shared.ended.notify_all();
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
