//! A rank of an all-reduce, attached to a network: a thread that drives [`aggregation::rank::Rank`] over raw frames, or over RDMA.
//!
//! [`Member::all_reduce`] passes values to the rank and returns at once; [`Pending::wait`] waits for the sums. Operations
//! are summed in the order of submission, several at a time as far as the window allows. A caller submits and completes a small
//! operation in its own thread if it can (`shared_driver.rs`).

mod attach;
mod carrier;
mod driver;
mod error;
mod job_lock;
mod observer;
mod opening;
mod reach;
mod shared_driver;
mod wait_set;

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aggregation::rank::{RankCounters, Reduction, Setup, Sums, Values};
use frames::bundle::MAX_FRAMES;

use crate::frames::{Endpoint, Frames};
use crate::metrics::Board;
use driver::Driver;
use observer::MemberSnapshot;
use reach::Reach;
use shared_driver::SharedDriver;
use wait_set::WaitSet;

pub use attach::{AnyCarrier, AttachError, Transport, Way, attach, attach_alone};
pub use carrier::{Carrier, Datagrams, Rdma, Takes};
pub use error::{CollectiveError, Failure, NotByRdma, Standing};
pub use job_lock::{JobLock, JobLockError};
pub use observer::Observer;
pub use opening::{open_job, open_job_by};

/// Configuration of a [`Member`], a rank of an all-reduce.
#[derive(Debug, Clone)]
pub struct Config {
    /// Settings of the rank and its job.
    pub setup: Setup,
    /// Ethernet and IPv4 address of the rank.
    pub me: Endpoint,
    /// Addresses of all ranks, by rank number, for frames between ranks. Empty if [`Setup::dead_after_ns`] is `None`.
    pub peers: Vec<Endpoint>,
}

/// Handle of a submitted operation, with which the caller waits for its sums.
#[derive(Debug)]
pub struct Pending {
    sums: Receiver<Result<Sums, CollectiveError>>,
    shared: Arc<Shared>,
    /// The rank's driver, with which the caller completes the operation while it waits; `None` if the rank's thread does.
    driver: Option<Arc<SharedDriver>>,
}

impl Pending {
    /// Waits at most `timeout` for the sums of the operation.
    pub fn wait(self, timeout: Duration) -> Result<Sums, CollectiveError> {
        let ended = self.wait_for(timeout);
        ended.unwrap_or_else(|| Err(self.late(timeout)))
    }

    /// Waits at most `timeout`, and can be called again if that was not enough (`None`). The result is returned once.
    pub fn wait_for(&self, timeout: Duration) -> Option<Result<Sums, CollectiveError>> {
        let begun = Instant::now();
        if let Some(driver) = self.driver.as_ref().filter(|_| !timeout.is_zero())
            && let Some(ended) = driver.drive(timeout, || self.poll())
        {
            return Some(ended);
        }
        let left = timeout.saturating_sub(begun.elapsed());
        match self.sums.recv_timeout(left) {
            Ok(sums) => Some(sums),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(self.shared.closed())),
        }
    }

    /// The result of the operation; `None` if there is none yet.
    fn poll(&self) -> Option<Result<Sums, CollectiveError>> {
        match self.sums.try_recv() {
            Ok(sums) => Some(sums),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(self.shared.closed())),
        }
    }

    /// The error of an operation that is not complete after this time.
    pub fn late(&self, waited: Duration) -> CollectiveError {
        CollectiveError::Timeout {
            waited,
            stands: self.shared.lock().stands,
        }
    }
}

/// State that the rank's thread shares with its handles.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Status that the rank's thread writes for observers.
    board: Board<MemberSnapshot>,
    /// Whether an operation that is not small is under way.
    has_large: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    stands: Option<Standing>,
    counters: RankCounters,
    foreign: u64,
    /// Reason why the rank has given up; `None` while it works.
    failed: Option<CollectiveError>,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reason why the rank accepts no further operation.
    fn closed(&self) -> CollectiveError {
        let failed = self.lock().failed.clone();
        failed.unwrap_or(CollectiveError::Closed)
    }
}

/// Maximum number of frames of an operation that its caller submits in its own thread: they leave as one bundle, in one system
/// call, and to wake the rank's thread takes one, too. The thread sends larger operations while the caller continues to compute.
const SMALL: usize = MAX_FRAMES;

/// A submitted operation.
struct Command {
    values: Values,
    reduction: Reduction,
    /// Whether it has at most [`SMALL`] frames.
    is_small: bool,
    answer: Sender<Result<Sums, CollectiveError>>,
}

/// A rank of an all-reduce with its thread. Dropping it ends the thread; unfinished operations are lost.
#[derive(Debug)]
pub struct Member {
    setup: Setup,
    me: Endpoint,
    commands: Option<Sender<Command>>,
    driver: Arc<SharedDriver>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    descriptors: Vec<RawFd>,
}

impl Member {
    /// Descriptors that keep this rank in its job, and its interface open. A forked child process must close them, since it
    /// inherits them without being a rank. The child must neither use nor drop this value: the thread exists only in the parent.
    pub fn descriptors(&self) -> &[RawFd] {
        &self.descriptors
    }

    /// Starts the rank's thread over this transport of frames.
    pub fn start(config: Config, frames: impl Frames + 'static) -> io::Result<Member> {
        Self::start_at(config, frames, None)
    }

    /// Starts the rank's thread, which holds the lock `place` until it ends, so that no other process of this host is a rank of
    /// the job at this interface.
    pub fn start_at(
        config: Config,
        frames: impl Frames + 'static,
        place: Option<JobLock>,
    ) -> io::Result<Member> {
        let (job, rank) = (config.setup.job.id().0, config.setup.rank.0);
        let datagrams = Datagrams::new(frames, job, rank, config.me, config.peers.clone())
            .asking_for_bundles(&config.setup);
        Self::start_by(config, Box::new(datagrams), place)
    }

    /// Starts the rank's thread over any carrier of frames; it holds the lock `place` until it ends.
    pub fn start_by(
        config: Config,
        carrier: AnyCarrier,
        place: Option<JobLock>,
    ) -> io::Result<Member> {
        let (setup, me) = (config.setup, config.me);
        let mut descriptors = carrier.descriptors();
        descriptors.extend(place.as_ref().map(JobLock::descriptor));
        // A rank in memory has no place and no address. If the port is not available, peers are not contacted directly.
        let reach = place.as_ref().and_then(|_| {
            let job = setup.job.id().0;
            Reach::open(job, setup.rank.0, me, &config.peers).ok()
        });
        descriptors.extend(reach.as_ref().map(Reach::descriptor));
        let wait_set = WaitSet::new()?;
        let frames = wait_set.add_copies(carrier.readable())?;
        descriptors.extend(frames.iter().map(AsRawFd::as_raw_fd));
        if let Some(reach) = &reach {
            wait_set.add(reach.readable())?;
        }
        let shared = Arc::new(Shared::default());
        let (commands, taken) = mpsc::channel();
        let driver = Driver::new(
            config,
            (carrier, frames),
            taken,
            Arc::clone(&shared),
            (place, reach),
        );
        let driver = Arc::new(SharedDriver::new(driver, wait_set));
        let thread = std::thread::Builder::new().name(format!("weir rank {}", setup.rank.0));
        Ok(Member {
            setup,
            me,
            commands: Some(commands),
            shared,
            thread: Some(thread.spawn({
                let driver = Arc::clone(&driver);
                move || driver.run()
            })?),
            driver,
            descriptors,
        })
    }

    /// Submits values to be summed over all ranks, and returns a handle of the operation.
    pub fn all_reduce(&self, values: Values) -> Result<Pending, CollectiveError> {
        self.all_reduce_as(values, Reduction::default())
    }

    /// Submits values like [`all_reduce`](Self::all_reduce), with a reduction such as an average.
    pub fn all_reduce_as(
        &self,
        values: Values,
        reduction: Reduction,
    ) -> Result<Pending, CollectiveError> {
        let (answer, sums) = mpsc::channel();
        let commands = self.commands.as_ref().ok_or(CollectiveError::Closed)?;
        let is_small = values.len() <= SMALL * self.setup.job.values_per_packet();
        // The caller would transmit frames of large operations, too.
        let is_for_caller = is_small && !self.shared.has_large.load(Ordering::Relaxed);
        let command = Command {
            values,
            reduction,
            is_small,
            answer,
        };
        let submitted = match is_for_caller {
            true => self.driver.submit(command),
            false => Err(command),
        };
        let driver = match submitted {
            Ok(()) => Some(Arc::clone(&self.driver)),
            Err(command) => {
                let sent = commands.send(command);
                sent.map_err(|_| self.shared.closed())?;
                self.driver.wait_set().wake();
                None
            }
        };
        Ok(Pending {
            sums,
            shared: Arc::clone(&self.shared),
            driver,
        })
    }

    /// The rank's counters, and the number of received frames that were not aggregation frames for this rank.
    pub fn counters(&self) -> (RankCounters, u64) {
        let state = self.shared.lock();
        (state.counters, state.foreign)
    }

    /// An observer of this rank's status for other threads, which may outlive the rank.
    pub fn observer(&self) -> Observer {
        Observer::new(
            self.setup,
            self.me,
            Arc::clone(&self.shared),
            Arc::clone(self.driver.wait_set().wake_event()),
        )
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.commands = None;
        self.driver.wait_set().wake();
        if let Some(thread) = self.thread.take() {
            // The thread does not panic; if it did, nobody could be notified.
            let _ = thread.join();
        }
    }
}
