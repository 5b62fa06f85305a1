//! The thread of a member.

use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use aggregation::job::WorkerId;
use aggregation::rank::{Event, Rank, RankError, Setup, Sums};
use aggregation::{Destination, UnderWay};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;

use super::{CollectiveError, Command, Config, Place, Seen, Shared, Standing};
use crate::frames::{Frames, asking, build, mark, open, refused, source, sum};

/// So many frames are taken before what they brought about is sent.
const BURST: usize = 64;
/// One that leaves stays no longer than that for others.
const LINGERING_NS: u64 = 2_000_000_000;
/// One that leaves looks around so often.
const LINGERING: Duration = Duration::from_millis(20);
/// One looks around at least so often.
const IDLE: Duration = Duration::from_millis(500);
/// One who waits looks after its interface so often.
const LINK_NS: u64 = 200_000_000;
/// An interface that carries nothing for so long is not waited for, where ranks do not say when one of them is gone.
const LINK_PATIENCE_NS: u64 = 5_000_000_000;

pub struct Driver<F> {
    config: Config,
    rank: Rank,
    frames: F,
    /// Whose frames are taken, ascending: the job's ranks, which also stand in what a switch makes of their frames. Of a job
    /// whose ranks are not known, everybody's.
    senders: Vec<Ipv4Addr>,
    commands: Receiver<Command>,
    wake: Arc<EventFd>,
    shared: Arc<Shared>,
    origin: Instant,
    /// Who waits for which operation.
    waiting: HashMap<u64, Sender<Result<Sums, CollectiveError>>>,
    payload: Vec<u8>,
    frame: Vec<u8>,
    foreign: u64,
    /// When nobody was there any more who could give commands.
    left_ns: Option<u64>,
    received: u64,
    /// Frames that the kernel dropped; `None` if it does not tell.
    lost: Option<u64>,
    /// When the interface is looked at again, and since when it carries nothing.
    link_ns: u64,
    faulty_ns: Option<u64>,
    /// Nobody else on this host is a rank of the job meanwhile.
    _place: Option<Place>,
}

impl<F: Frames + AsFd> Driver<F> {
    pub fn new(
        config: Config,
        frames: F,
        commands: Receiver<Command>,
        wake: Arc<EventFd>,
        shared: Arc<Shared>,
        place: Option<Place>,
    ) -> Driver<F> {
        Driver {
            rank: Rank::new(config.setup),
            senders: {
                let mut senders: Vec<Ipv4Addr> = config.peers.iter().map(|peer| peer.ip).collect();
                senders.sort_unstable();
                senders
            },
            config,
            frames,
            commands,
            wake,
            shared,
            origin: Instant::now(),
            waiting: HashMap::new(),
            payload: Vec::new(),
            frame: Vec::new(),
            foreign: 0,
            left_ns: None,
            received: 0,
            lost: None,
            link_ns: 0,
            faulty_ns: None,
            _place: place,
        }
    }

    /// Until the member is dropped, or something fails; then all who wait are told.
    pub fn run(mut self) {
        let ended = self.serve().map_err(|error| self.explained(error));
        self.tell();
        self.show(ended.as_ref().err().map(ToString::to_string));
        self.shared.board.close();
        if let Err(error) = ended {
            self.shared.lock().failed = Some(error.clone());
            // The other ranks are told first: who waits here may end the process.
            let _ = self.transmit();
            for (_, waiting) in self.waiting.drain() {
                // Who does not wait any more need not be told.
                let _ = waiting.send(Err(error.clone()));
            }
            if matches!(error, CollectiveError::Rank(RankError::Differs { .. })) {
                // A network that fails now is of no interest any more.
                let _ = self.answer_why();
            }
            // Those that come later are told by their closed channel.
        }
    }

    /// Others may have lost the word that says why this rank has given up: it is there for a while to say it again.
    fn answer_why(&mut self) -> io::Result<()> {
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
        let io = |error: io::Error| CollectiveError::Io(Arc::new(error));
        loop {
            if !self.take_commands() && !self.lingers() {
                return Ok(());
            }
            if self.shared.board.is_asked() {
                self.show(None);
            }
            self.transmit().map_err(io)?;
            self.take_events()?;
            let received = self.receive().map_err(io)?;
            self.received += received as u64;
            self.rank.handle_timeout(self.now_ns());
            self.take_events()?;
            if received == 0 {
                self.transmit().map_err(io)?;
                self.tell();
                self.check_link()?;
                self.wait().map_err(io)?;
            }
        }
    }

    /// Gives up once the interface has carried nothing for as long as a rank may be silent. What is lost meanwhile is mended.
    fn check_link(&mut self) -> Result<(), CollectiveError> {
        let now_ns = self.now_ns();
        if now_ns < self.link_ns || self.left_ns.is_some() {
            return Ok(());
        }
        self.link_ns = now_ns.saturating_add(LINK_NS);
        let Some(fault) = self.frames.fault() else {
            self.faulty_ns = None;
            return Ok(());
        };
        let since_ns = *self.faulty_ns.get_or_insert(now_ns);
        let gone_after_ns = self.config.setup.dead_after_ns;
        let until_ns = since_ns.saturating_add(gone_after_ns.unwrap_or(LINK_PATIENCE_NS));
        // Who waits for nothing loses nothing.
        let waits = self.rank.under_way().is_some();
        match fault.may_pass() && !(waits && now_ns >= until_ns) {
            true => Ok(()),
            false => Err(CollectiveError::Link(fault)),
        }
    }

    /// To one whose own interface carries nothing all others seem to be gone.
    fn explained(&self, error: CollectiveError) -> CollectiveError {
        let seems = matches!(
            error,
            CollectiveError::Rank(RankError::Gone { .. } | RankError::Silent { .. })
        );
        let fault = self.frames.fault().filter(|_| seems);
        fault.map_or(error, CollectiveError::Link)
    }

    /// Whether others may still want, of a rank that sums in the switch's place, what they have missed.
    fn lingers(&mut self) -> bool {
        let now_ns = self.now_ns();
        let since_ns = *self.left_ns.get_or_insert(now_ns);
        self.rank.is_wanted(now_ns) && now_ns < since_ns.saturating_add(LINGERING_NS)
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// `false` once there is nobody any more who could give any.
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

    fn transmit(&mut self) -> io::Result<()> {
        let me = self.config.me;
        let Setup { job, rank, .. } = self.config.setup;
        let now_ns = self.now_ns();
        loop {
            let Some(to) = self.rank.poll_transmit(now_ns, &mut self.payload) else {
                return self.frames.flush();
            };
            let to = match to {
                Destination::All => sum(job.id().0),
                Destination::Worker(to) if to == rank => asking(job.id().0, me),
                Destination::Worker(to) => match self.config.peers.get(usize::from(to.0)) {
                    Some(peer) => *peer,
                    None => continue,
                },
                Destination::Server => continue,
            };
            build(&mut self.frame, me, to, &self.payload);
            self.frames.send(&self.frame)?;
        }
    }

    /// How many frames came.
    fn receive(&mut self) -> io::Result<usize> {
        let (now_ns, me) = (self.now_ns(), self.config.me);
        let (rank, foreign, peers) = (&mut self.rank, &mut self.foreign, &self.config.peers);
        let senders = &self.senders;
        let is_known = |frame: &[u8]| {
            senders.is_empty() || source(frame).is_some_and(|ip| senders.binary_search(&ip).is_ok())
        };
        self.frames
            .receive_batch(BURST, &mut |frame| match open(frame, me) {
                Some(_) if !is_known(frame) => *foreign += 1,
                Some(payload) => {
                    rank.handle_packet(now_ns, mark(frame), payload);
                }
                None => match refused(frame, me) {
                    Some(host) => {
                        let mut peers = (0..).zip(peers);
                        if let Some((gone, _)) = peers.find(|(_, peer)| peer.ip == host) {
                            rank.peer_gone(WorkerId(gone));
                        }
                    }
                    None => *foreign += 1,
                },
            })
    }

    fn take_events(&mut self) -> Result<(), CollectiveError> {
        while let Some(event) = self.rank.poll_event() {
            match event {
                Event::Done { operation, outcome } => {
                    // Who has its sums finds them counted.
                    self.tell();
                    if let Some(waiting) = self.waiting.remove(&operation) {
                        let _ = waiting.send(outcome.map_err(CollectiveError::from));
                    }
                }
                Event::Failed(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn tell(&self) {
        let mut state = self.shared.lock();
        let counters = self.rank.counters();
        // The switch tells only who asks.
        let may_stand = state.stands.is_some() || counters.probes > 0;
        state.counters = counters;
        state.foreign = self.foreign;
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

    /// Writes down what somebody asks for.
    fn show(&mut self, failed: Option<String>) {
        if let Some(lost) = self.frames.overflow() {
            self.lost = Some(self.lost.unwrap_or(0) + lost);
        }
        let under_way = self.rank.under_way().filter(|_| failed.is_none());
        self.shared.board.write(Seen {
            counters: self.rank.counters(),
            foreign: self.foreign,
            received: self.received,
            lost: self.lost,
            unsent: self.frames.unsent(),
            under_way: under_way.map(|found| {
                let since = self.origin + Duration::from_nanos(found.since_ns);
                (found, since)
            }),
            failed,
        });
    }

    /// Until there is a frame, a command, or something is due.
    fn wait(&self) -> io::Result<()> {
        let timeout = match self.rank.poll_timeout() {
            Some(due_ns) => Duration::from_nanos(due_ns.saturating_sub(self.now_ns())).min(IDLE),
            None => IDLE,
        };
        let timeout = match self.left_ns {
            Some(_) => timeout.min(LINGERING),
            None => timeout,
        };
        let mut sources =
            [self.frames.as_fd(), self.wake.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        match ppoll(&mut sources, Some(timeout.into()), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        match self.wake.read() {
            Ok(_) | Err(Errno::EAGAIN) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
