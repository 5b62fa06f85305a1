//! Drives one rank of an all-reduce: receives, sends, and watches timers, in the thread that calls.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use aggregation::job::WorkerId;
use aggregation::rank::{Rank, RankError, RankEvent, Sums};
use aggregation::{Mark, UnderWay};
use wire::Repr;

use super::carrier::io_error;
use super::wait_set::WaitSet;
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
    /// Copies of the descriptors that become readable when frames arrive; empty if the carrier has none.
    frames: Arc<[OwnedFd]>,
    commands: Receiver<Command>,
    shared: Arc<Shared>,
    origin: Instant,
    /// Time at which the timer of the rank's thread fires next, or at which it fired last.
    timer_ns: u64,
    /// Error in a caller's thread, after which the rank's thread ends the rank.
    failed: Option<CollectiveError>,
    /// Receivers of the results, by operation number.
    waiting: HashMap<u64, Sender<Result<Sums, CollectiveError>>>,
    /// Number of the last operation that was not small; `None` before the first.
    last_large: Option<u64>,
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
        (carrier, frames): (AnyCarrier, Arc<[OwnedFd]>),
        commands: Receiver<Command>,
        shared: Arc<Shared>,
        (place, reach): (Option<JobLock>, Option<Reach>),
    ) -> Driver {
        Driver {
            rank: Rank::new(config.setup),
            config,
            carrier,
            frames,
            commands,
            shared,
            origin: Instant::now(),
            timer_ns: 0,
            failed: None,
            waiting: HashMap::new(),
            last_large: None,
            left_ns: None,
            received: 0,
            lost: None,
            link_ns: 0,
            faulty_ns: None,
            _place: place,
            reach,
        }
    }

    /// Ends the rank after its [`Member`](super::Member) was dropped, or after an error, which all waiting callers get.
    pub fn end(mut self, ended: Result<(), CollectiveError>, wait_set: &WaitSet) {
        let ended = ended.map_err(|error| self.explained(error));
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
                let _ = self.answer_why(wait_set);
            }
            // Later callers notice their closed channel.
        }
    }

    /// After this rank has failed: stays for a while and repeats the reason to other ranks, since frames may be lost.
    fn answer_why(&mut self, wait_set: &WaitSet) -> Result<(), CollectiveError> {
        let until_ns = self.now_ns().saturating_add(LINGERING_NS);
        while self.now_ns() < until_ns && self.take_commands() {
            if self.receive()? == 0 {
                let rest = self.settle(wait_set)?;
                wait_set.wait(rest).map_err(io_error)?;
            }
        }
        Ok(())
    }

    /// Drives the rank in its thread until no more frames have arrived. Returns the maximum time until it must be called again;
    /// `None` if the rank has left its job.
    pub fn serve(&mut self, wait_set: &WaitSet) -> Result<Option<Duration>, CollectiveError> {
        loop {
            if let Some(error) = &self.failed {
                return Err(error.clone());
            }
            if !self.take_commands() && !self.lingers() {
                return Ok(None);
            }
            if self.shared.board.is_asked() {
                self.show(None);
            }
            if self.turn()? == 0 {
                if let Some(reach) = &mut self.reach {
                    reach.answer();
                }
                self.check_link()?;
                return self.settle(wait_set).map(Some);
            }
        }
    }

    /// Handles due timers, and frames that have arrived, at most about [`BURST`]. Returns their number. Before the driver is
    /// released, [`settle`](Self::settle) must be called.
    pub fn turn(&mut self) -> Result<usize, CollectiveError> {
        self.carrier.handle_timeout(self.now_ns())?;
        self.transmit()?;
        self.take_events()?;
        let received = self.receive()?;
        self.received += received as u64;
        self.rank.handle_timeout(self.now_ns());
        self.take_events()?;
        Ok(received)
    }

    /// Transmits the queued frames and sets the timer of the rank's thread, before the driver is released. Returns the maximum time
    /// until the next turn.
    pub fn settle(&mut self, wait_set: &WaitSet) -> Result<Duration, CollectiveError> {
        self.transmit()?;
        self.report();
        let now_ns = self.now_ns();
        let due_ns = self.rank.poll_timeout();
        let carrier_ns = self.carrier.poll_timeout(now_ns);
        let idle = if self.left_ns.is_some() {
            LINGERING
        } else {
            IDLE
        };
        let Some(due_ns) = due_ns.into_iter().chain(carrier_ns).min() else {
            return Ok(idle);
        };
        let rest = Duration::from_nanos(due_ns.saturating_sub(now_ns));
        // A timer that fires too early costs one turn. To postpone it with each operation would cost a system call for each.
        if !(now_ns + 1..=due_ns).contains(&self.timer_ns) {
            wait_set.set_timer(rest).map_err(io_error)?;
            self.timer_ns = due_ns;
        }
        Ok(rest.min(idle))
    }

    /// Copies of the descriptors that become readable when frames arrive; empty if the carrier has none.
    pub fn frames(&self) -> &Arc<[OwnedFd]> {
        &self.frames
    }

    /// Stops the rank after an error in a caller's thread. The rank's thread ends it.
    pub fn fail(&mut self, error: CollectiveError) {
        self.failed = Some(error);
    }

    /// Whether an error in a caller's thread has stopped the rank.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Submits a small operation behind the queued ones, unless a large one is then under way. Returns whether it did.
    pub fn submit_small(&mut self, command: &mut Option<Command>) -> bool {
        // The submitter of a queued command also wakes the rank's thread, which transmits the frames.
        self.take_commands();
        let is_possible = !self.shared.has_large.load(Ordering::Relaxed);
        if let Some(command) = command.take_if(|_| is_possible) {
            self.submit(command);
        }
        is_possible
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
                Ok(command) => self.submit(command),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    /// Submits an operation. If the rank refuses it, the caller gets the error as its result.
    fn submit(&mut self, command: Command) {
        let Command {
            values,
            reduction,
            is_small,
            answer,
        } = command;
        match self.rank.submit_as(values, reduction) {
            Ok(operation) => {
                self.waiting.insert(operation, answer);
                if !is_small {
                    self.last_large = Some(operation);
                    self.shared.has_large.store(true, Ordering::Relaxed);
                }
            }
            Err(error) => {
                let failed = self.shared.lock().failed.clone();
                let _ = answer.send(Err(failed.unwrap_or(error.into())));
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
                    if self.last_large == Some(operation) {
                        self.shared.has_large.store(false, Ordering::Relaxed);
                    }
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
