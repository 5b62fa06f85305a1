//! The thread that drives one rank of an all-reduce: it receives, sends, and watches timers.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use aggregation::job::WorkerId;
use aggregation::rank::{Rank, RankError, RankEvent, Sums};
use aggregation::{Mark, UnderWay};
use nix::errno::Errno;
use nix::sys::eventfd::EventFd;
use wire::Repr;

use super::{
    AnyCarrier, CollectiveError, Command, Config, JobLock, MemberSnapshot, Reach, Shared, Standing,
    Takes,
};
use crate::frames::Endpoint;

/// Maximum number of received frames that are processed before frames are sent.
const BURST: usize = 64;
/// Maximum time, in nanoseconds, for which a rank that has left its job still sums or answers for other ranks.
const LINGERING_NS: u64 = 2_000_000_000;
/// Poll interval of a rank that has left, but stays for other ranks.
const LINGERING: Duration = Duration::from_millis(20);
/// Maximum poll interval of a rank without due timers.
const IDLE: Duration = Duration::from_millis(500);
/// Interval, in nanoseconds, of checks of the interface's link while the rank waits.
const LINK_NS: u64 = 200_000_000;
/// Time in nanoseconds after which a dead link is an error, in jobs that do not declare silent ranks dead.
const LINK_PATIENCE_NS: u64 = 5_000_000_000;

pub struct Driver {
    config: Config,
    rank: Rank,
    carrier: AnyCarrier,
    commands: Receiver<Command>,
    wake: Arc<EventFd>,
    shared: Arc<Shared>,
    origin: Instant,
    /// Receivers of the results, by operation number.
    waiting: HashMap<u64, Sender<Result<Sums, CollectiveError>>>,
    /// Time at which the last handle that could submit operations was dropped; `None` before.
    left_ns: Option<u64>,
    received: u64,
    /// Number of received frames that the kernel dropped; `None` if it keeps no count.
    lost: Option<u64>,
    /// Time of the next check of the interface (`link_ns`), and since when it carries no frames (`None` if it does).
    link_ns: u64,
    faulty_ns: Option<u64>,
    /// Lock that keeps other ranks of the job off this interface of the host; `None` if the caller needs no lock.
    _place: Option<JobLock>,
    /// Direct UDP contact with ranks whose frames do not arrive; `None` without it.
    reach: Option<Reach>,
}

impl Driver {
    pub fn new(
        config: Config,
        carrier: AnyCarrier,
        commands: Receiver<Command>,
        wake: Arc<EventFd>,
        shared: Arc<Shared>,
        (place, reach): (Option<JobLock>, Option<Reach>),
    ) -> Driver {
        Driver {
            rank: Rank::new(config.setup),
            config,
            carrier,
            commands,
            wake,
            shared,
            origin: Instant::now(),
            waiting: HashMap::new(),
            left_ns: None,
            received: 0,
            lost: None,
            link_ns: 0,
            faulty_ns: None,
            _place: place,
            reach,
        }
    }

    /// Drives the rank until its [`Member`](super::Member) is dropped, or an error occurs, which all waiting callers get.
    pub fn run(mut self) {
        let ended = self.serve().map_err(|error| self.explained(error));
        self.report();
        self.show(ended.as_ref().err().map(ToString::to_string));
        self.shared.board.close();
        if let Err(error) = ended {
            self.shared.lock().failed = Some(error.clone());
            // Notify the other ranks first: a waiting caller may end the process.
            let _ = self.transmit();
            for (_, waiting) in self.waiting.drain() {
                // The receiver may have stopped waiting.
                let _ = waiting.send(Err(error.clone()));
            }
            if matches!(error, CollectiveError::Rank(RankError::Differs { .. })) {
                // A failure of the network no longer matters.
                let _ = self.answer_why();
            }
            // Later callers notice their closed channel.
        }
    }

    /// After this rank has failed: stays for a while and repeats the reason to other ranks, since frames may be lost.
    fn answer_why(&mut self) -> Result<(), CollectiveError> {
        let until_ns = self.now_ns().saturating_add(LINGERING_NS);
        while self.now_ns() < until_ns && self.take_commands() {
            if self.receive()? == 0 {
                self.transmit()?;
                self.wait()?;
            }
        }
        Ok(())
    }

    fn serve(&mut self) -> Result<(), CollectiveError> {
        loop {
            if !self.take_commands() && !self.lingers() {
                return Ok(());
            }
            if self.shared.board.is_asked() {
                self.show(None);
            }
            self.carrier.handle_timeout(self.now_ns())?;
            self.transmit()?;
            self.take_events()?;
            let received = self.receive()?;
            self.received += received as u64;
            self.rank.handle_timeout(self.now_ns());
            self.take_events()?;
            if received == 0 {
                self.transmit()?;
                self.report();
                if let Some(reach) = &mut self.reach {
                    reach.answer();
                }
                self.check_link()?;
                self.wait()?;
            }
        }
    }

    /// Fails if the interface has carried no frames for the time after which silent ranks count as dead, and this rank waits.
    fn check_link(&mut self) -> Result<(), CollectiveError> {
        let now_ns = self.now_ns();
        if now_ns < self.link_ns || self.left_ns.is_some() {
            return Ok(());
        }
        self.link_ns = now_ns.saturating_add(LINK_NS);
        let Some(fault) = self.carrier.fault() else {
            self.faulty_ns = None;
            return Ok(());
        };
        let since_ns = *self.faulty_ns.get_or_insert(now_ns);
        let gone_after_ns = self.config.setup.dead_after_ns;
        let until_ns = since_ns.saturating_add(gone_after_ns.unwrap_or(LINK_PATIENCE_NS));
        // A rank that waits for nothing loses nothing.
        let waits = self.rank.under_way().is_some();
        match fault.may_pass() && !(waits && now_ns >= until_ns) {
            true => Ok(()),
            false => Err(CollectiveError::Link(fault)),
        }
    }

    /// Replaces the error that a rank is dead, if the own interface is down or a switch drops the frames of that live rank.
    fn explained(&mut self, error: CollectiveError) -> CollectiveError {
        let seems = matches!(
            error,
            CollectiveError::Rank(RankError::Gone { .. } | RankError::Silent { .. })
        );
        if let Some(fault) = self.carrier.fault().filter(|_| seems) {
            return CollectiveError::Link(fault);
        }
        let CollectiveError::Rank(RankError::Gone {
            rank,
            chunk,
            is_silent: true,
        }) = error
        else {
            return error;
        };
        let lately = Duration::from_nanos(self.config.setup.dead_after_ns.unwrap_or(0));
        let lives = self.reach.as_mut().map(|reach| reach.lives(rank.0, lately));
        match lives {
            Some(true) => CollectiveError::Unheard { rank, chunk },
            _ => error,
        }
    }

    /// Whether other ranks may still need this rank to sum chunks for them.
    fn lingers(&mut self) -> bool {
        let now_ns = self.now_ns();
        let since_ns = *self.left_ns.get_or_insert(now_ns);
        self.rank.is_wanted(now_ns) && now_ns < since_ns.saturating_add(LINGERING_NS)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Accepts newly submitted operations; returns `false` once no handle is left that can submit any.
    fn take_commands(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(Command {
                    values,
                    reduction,
                    answer,
                }) => match self.rank.submit_as(values, reduction) {
                    Ok(operation) => {
                        self.waiting.insert(operation, answer);
                    }
                    Err(error) => {
                        let failed = self.shared.lock().failed.clone();
                        let _ = answer.send(Err(failed.unwrap_or(error.into())));
                    }
                },
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn transmit(&mut self) -> Result<(), CollectiveError> {
        let now_ns = self.now_ns();
        // Frames sent earlier would count as late before the switch can answer them.
        while self.carrier.is_ready()
            && let Some(frame) = self.rank.poll_transmit(now_ns)
        {
            self.carrier.send(now_ns, &frame)?;
        }
        self.carrier.flush()
    }

    /// Processes frames that have arrived; returns their number.
    fn receive(&mut self) -> Result<usize, CollectiveError> {
        let now_ns = self.now_ns();
        let mut taker = Taker {
            now_ns,
            rank: &mut self.rank,
            peers: &self.config.peers,
        };
        self.carrier.receive(now_ns, BURST, &mut taker)
    }

    fn take_events(&mut self) -> Result<(), CollectiveError> {
        while let Some(event) = self.rank.poll_event() {
            match event {
                RankEvent::Done { operation, outcome } => {
                    // A caller that has its sums finds them counted.
                    self.report();
                    if let Some(waiting) = self.waiting.remove(&operation) {
                        let _ = waiting.send(outcome.map_err(CollectiveError::from));
                    }
                }
                RankEvent::Failed(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn report(&self) {
        let mut state = self.shared.lock();
        let counters = self.rank.counters();
        // The switch reports missing ranks only in answers to probes.
        let may_stand = state.stands.is_some() || counters.probes > 0;
        state.counters = counters;
        state.foreign = self.carrier.foreign();
        if !may_stand {
            return;
        }
        let told = |found: &UnderWay| !found.misses.is_empty();
        let stands = self.rank.under_way().filter(told);
        let stands = stands.map(|found| (found.chunk, found.misses));
        let known = state.stands.map(|stands| (stands.chunk, stands.misses));
        if stands != known {
            state.stands = stands.map(|(chunk, misses)| Standing {
                chunk,
                misses,
                told: Instant::now(),
            });
        }
    }

    /// Writes the rank's status, which an observer has requested.
    fn show(&mut self, failed: Option<String>) {
        if let Some(lost) = self.carrier.overflow() {
            self.lost = Some(self.lost.unwrap_or(0) + lost);
        }
        let under_way = self.rank.under_way().filter(|_| failed.is_none());
        self.shared.board.write(MemberSnapshot {
            counters: self.rank.counters(),
            foreign: self.carrier.foreign(),
            received: self.received,
            lost: self.lost,
            unsent: self.carrier.unsent(),
            under_way: under_way.map(|found| {
                let since = self.origin + Duration::from_nanos(found.since_ns);
                (found, since)
            }),
            failed,
        });
    }

    /// Waits for a frame, a submitted operation or a timer.
    fn wait(&self) -> Result<(), CollectiveError> {
        let now_ns = self.now_ns();
        let due_ns = self.rank.poll_timeout();
        let carrier_ns = self.carrier.poll_timeout(now_ns);
        let timeout = match due_ns.into_iter().chain(carrier_ns).min() {
            Some(due_ns) => Duration::from_nanos(due_ns.saturating_sub(now_ns)).min(IDLE),
            None => IDLE,
        };
        let timeout = match self.left_ns {
            Some(_) => timeout.min(LINGERING),
            None => timeout,
        };
        let io = |error| CollectiveError::Io(Arc::new(error));
        let readable = self.carrier.readable();
        let reach = self.reach.as_ref().map(Reach::readable);
        let sources = readable.into_iter().chain([self.wake.as_fd()]).chain(reach);
        frames::wait_readable(sources, timeout).map_err(io)?;
        match self.wake.read() {
            Ok(_) | Err(Errno::EAGAIN) => Ok(()),
            Err(errno) => Err(io(errno.into())),
        }
    }
}

/// Passes received frames to the rank's state machine.
struct Taker<'a> {
    now_ns: u64,
    rank: &'a mut Rank,
    peers: &'a [Endpoint],
}

impl Takes for Taker<'_> {
    fn take(&mut self, mark: Mark, header: &Repr, payload: &[u8]) {
        self.rank.handle_frame(self.now_ns, mark, header, payload);
    }

    fn malformed(&mut self) {
        self.rank.note_malformed();
    }

    fn unreachable(&mut self, host: Ipv4Addr) {
        let mut peers = (0..).zip(self.peers);
        if let Some((gone, _)) = peers.find(|(_, peer)| peer.ip == host) {
            self.rank.peer_gone(WorkerId(gone));
        }
    }

    fn near(&self, low: u16) -> (u32, u8) {
        let (chunk, scale) = self.rank.near(low);
        (chunk.0, scale.bits())
    }
}
