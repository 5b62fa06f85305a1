//! A rank of an all-reduce, attached to a network: a thread that drives [`aggregation::rank::Rank`] over raw frames, or over RDMA.
//!
//! [`Member::all_reduce`] gives values to the thread and returns at once; [`Pending::wait`] waits for the sums. Operations are
//! summed in the order in which they were given, several at a time as far as the window reaches.

mod attach;
mod carrier;
mod driver;
mod observer;
mod opening;
mod place;
mod reach;

use std::io;
use std::os::fd::RawFd;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aggregation::job::{ChunkId, WorkerId, WorkerSet};
use aggregation::rank::{
    DROPS, NonFinite, OpeningError, RankCounters, RankError, Reduction, Setup, SubmitError, Sums,
    Values,
};
use nix::sys::eventfd::{EfdFlags, EventFd};
use rdma::ProviderError;

use crate::frames::{Endpoint, Frames, LinkFault};
use crate::metrics::{Board, Waits};
use driver::Driver;
use observer::Seen;
use reach::Reach;

pub use attach::{AnyCarrier, AttachError, Transport, Way, attach, attach_alone};
pub use carrier::{Carrier, Datagrams, NotByRdma, Rdma, Takes};
pub use observer::Observer;
pub use opening::{open_job, open_job_by};
pub use place::{Place, PlaceError};

/// What a member needs to know.
#[derive(Debug, Clone)]
pub struct Config {
    /// The job, and which of its ranks this is.
    pub setup: Setup,
    /// Where it is.
    pub me: Endpoint,
    /// Where all ranks are, by number: those who miss each other ask. Empty if [`Setup::dead_after_ns`] is `None`.
    pub peers: Vec<Endpoint>,
}

/// Why an operation has no sums.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CollectiveError {
    /// The rank gave up.
    #[error(transparent)]
    Rank(#[from] RankError),
    /// A rank that the others wait for lives: it answers past the switch's guard, and its frames do not arrive.
    #[error(
        "rank {} lives, but frames of this job do not pass between it and this rank, and chunk {chunk} waits for it: {DROPS}",
        .rank.0
    )]
    Unheard {
        /// Which rank.
        rank: WorkerId,
        /// The chunk that waits for its values.
        chunk: ChunkId,
    },
    /// Some rank's values are not finite. All ranks are told so of this operation, and go on with the next.
    #[error(transparent)]
    NonFinite(#[from] NonFinite),
    /// The operation was not taken.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The job did not begin.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The network interface failed.
    #[error("the network interface failed: {0}")]
    Io(Arc<io::Error>),
    /// No frame passes the network interface, so this rank has left its job.
    #[error("{0}, so this rank can sum nothing")]
    Link(LinkFault),
    /// The job's frames are not carried by RDMA.
    #[error("the switch sums nothing by RDMA: {0}")]
    NotByRdma(#[from] NotByRdma),
    /// RDMA failed.
    #[error("RDMA failed: {0}")]
    Rdma(Arc<ProviderError>),
    /// The switch does not know where sums go.
    #[error(
        "the switch did not answer the registration of queue pair {qpn:#08x} at its {switch:#08x}, {tries} times in {waited_ms} ms: \
         does it sum RoCEv2 for this job, by this port?"
    )]
    Unregistered {
        /// The rank's.
        qpn: u32,
        /// The switch's.
        switch: u32,
        /// How often it was sent.
        tries: u32,
        /// For how long.
        waited_ms: u64,
    },
    /// The switch sums for other ranks.
    #[error(
        "the switch sums for other ranks than the {} of this job (it sums for {everyone}): was it told of another number of them?",
        siblings.len()
    )]
    RegisteredAmong {
        /// As it has answered the registration.
        everyone: WorkerSet,
        /// As the rank was told.
        siblings: WorkerSet,
    },
    /// Somebody else on this host is a rank of the job.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The sums did not come in time.
    #[error("no sum within {:.1} s{}", .waited.as_secs_f64(), waiting(*.stands))]
    Timeout {
        /// How long they were waited for.
        waited: Duration,
        /// What the oldest chunk waits for, as far as the switch has told.
        stands: Option<Standing>,
    },
    /// The same, by a daemon.
    #[error("no sum within {:.1} s{}", .waited.as_secs_f64(), waiting_there(.waits.as_ref()))]
    Late {
        /// How long they were waited for.
        waited: Duration,
        /// What the oldest chunk waits for, as far as the daemon has told.
        waits: Option<Waits>,
    },
    /// What a daemon says.
    #[error("{text}")]
    Agent {
        /// For programs.
        kind: crate::serve::Kind,
        /// For people.
        text: String,
    },
    /// The member was closed.
    #[error("the rank was closed")]
    Closed,
}

/// What an operation that goes on waits for.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// The oldest chunk under way of which the switch has told anything.
    pub chunk: ChunkId,
    /// Who has not contributed to it.
    pub misses: WorkerSet,
    /// When that was told.
    pub told: Instant,
}

fn waiting(stands: Option<Standing>) -> String {
    match stands {
        None => format!(": the switch answered none of its chunks; {DROPS}"),
        Some(Standing {
            chunk,
            misses,
            told,
        }) => format!(
            ": chunk {chunk} waits for {misses}, as the switch said {:.1} s ago",
            told.elapsed().as_secs_f64()
        ),
    }
}

fn waiting_there(waits: Option<&Waits>) -> String {
    let Some(waits) = waits else {
        return String::new();
    };
    let misses = waits.misses.iter().map(|worker| WorkerId(*worker));
    let misses = misses.fold(WorkerSet::EMPTY, |all, one| {
        WorkerSet(all.0 | WorkerSet::only(one).0)
    });
    let chunk = ChunkId(waits.chunk);
    match misses.is_empty() {
        true => format!(": the switch did not answer chunk {chunk}; {DROPS}"),
        false => format!(": chunk {chunk} waits for {misses}"),
    }
}

/// Sums that are to come.
#[derive(Debug)]
pub struct Pending {
    sums: Receiver<Result<Sums, CollectiveError>>,
    shared: Arc<Shared>,
}

impl Pending {
    /// Waits for the sums, but not longer than that.
    pub fn wait(self, timeout: Duration) -> Result<Sums, CollectiveError> {
        match self.sums.recv_timeout(timeout) {
            Ok(sums) => sums,
            Err(RecvTimeoutError::Timeout) => Err(CollectiveError::Timeout {
                waited: timeout,
                stands: self.shared.lock().stands,
            }),
            Err(RecvTimeoutError::Disconnected) => Err(self.shared.closed()),
        }
    }
}

/// What the thread tells of itself.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// For those who look at it from outside.
    board: Board<Seen>,
}

#[derive(Debug, Default)]
struct State {
    stands: Option<Standing>,
    counters: RankCounters,
    foreign: u64,
    /// Why the rank has given up.
    failed: Option<CollectiveError>,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing is summed any more.
    fn closed(&self) -> CollectiveError {
        let failed = self.lock().failed.clone();
        failed.unwrap_or(CollectiveError::Closed)
    }
}

struct Command {
    values: Values,
    reduction: Reduction,
    answer: Sender<Result<Sums, CollectiveError>>,
}

/// A rank with its thread. Dropped, the thread ends; what it had not summed is lost.
#[derive(Debug)]
pub struct Member {
    setup: Setup,
    me: Endpoint,
    commands: Option<Sender<Command>>,
    wake: Arc<EventFd>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    descriptors: Vec<RawFd>,
}

impl Member {
    /// What keeps this rank in its job, and its interface open: descriptors that a process which is forked of this one has to
    /// close, since it is no rank and yet holds them. Beside that it must neither use this nor drop it: the thread is not its own.
    pub fn descriptors(&self) -> &[RawFd] {
        &self.descriptors
    }

    /// Starts the thread.
    pub fn start(config: Config, frames: impl Frames + Send + 'static) -> io::Result<Member> {
        Self::start_at(config, frames, None)
    }

    /// The same, and until the thread ends nobody else on this host is a rank of the job by that interface.
    pub fn start_at(
        config: Config,
        frames: impl Frames + Send + 'static,
        place: Option<Place>,
    ) -> io::Result<Member> {
        let (job, rank) = (config.setup.job.id().0, config.setup.rank.0);
        let datagrams = Datagrams::new(frames, job, rank, config.me, config.peers.clone());
        Self::start_by(config, datagrams, place)
    }

    /// The same, whatever carries its frames.
    pub fn start_by(
        config: Config,
        carrier: impl Carrier + Send + 'static,
        place: Option<Place>,
    ) -> io::Result<Member> {
        let (setup, me) = (config.setup, config.me);
        let mut descriptors = carrier.descriptors();
        descriptors.extend(place.as_ref().map(Place::descriptor));
        // A rank in memory has no place on this host, and no address. Where the port cannot be had peers are not asked.
        let reach = place.as_ref().and_then(|_| {
            let job = setup.job.id().0;
            Reach::open(job, setup.rank.0, me, &config.peers).ok()
        });
        descriptors.extend(reach.as_ref().map(Reach::descriptor));
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = Arc::new(EventFd::from_flags(flags)?);
        let shared = Arc::new(Shared::default());
        let (commands, taken) = mpsc::channel();
        let driver = Driver::new(
            config,
            carrier,
            taken,
            Arc::clone(&wake),
            Arc::clone(&shared),
            (place, reach),
        );
        let thread = std::thread::Builder::new().name(format!("weir rank {}", setup.rank.0));
        Ok(Member {
            setup,
            me,
            commands: Some(commands),
            wake,
            shared,
            thread: Some(thread.spawn(move || driver.run())?),
            descriptors,
        })
    }

    /// Gives values to be summed over all ranks.
    pub fn all_reduce(&self, values: Values) -> Result<Pending, CollectiveError> {
        self.all_reduce_as(values, Reduction::default())
    }

    /// The same, averaged or rounded otherwise.
    pub fn all_reduce_as(
        &self,
        values: Values,
        reduction: Reduction,
    ) -> Result<Pending, CollectiveError> {
        let (answer, sums) = mpsc::channel();
        let commands = self.commands.as_ref().ok_or(CollectiveError::Closed)?;
        let sent = commands.send(Command {
            values,
            reduction,
            answer,
        });
        sent.map_err(|_| self.shared.closed())?;
        // Full only if it was written to 2⁶⁴ times: it wakes then, too.
        let _ = self.wake.write(1);
        Ok(Pending {
            sums,
            shared: Arc::clone(&self.shared),
        })
    }

    /// What was counted so far, and frames that were no aggregation frames for this rank.
    pub fn counters(&self) -> (RankCounters, u64) {
        let state = self.shared.lock();
        (state.counters, state.foreign)
    }

    /// One who looks at this member from another thread, also when it is gone.
    pub fn observer(&self) -> Observer {
        Observer::new(
            self.setup,
            self.me,
            Arc::clone(&self.shared),
            Arc::clone(&self.wake),
        )
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.commands = None;
        let _ = self.wake.write(1);
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did, there would be nobody left to tell.
            let _ = thread.join();
        }
    }
}
