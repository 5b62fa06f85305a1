//! A simulated host: the state machine of a server, worker or rank, run by one thread as in a real agent.
//!
//! In each iteration, the host processes up to 64 received frames, sends the resulting frames, and polls again. While its
//! socket is full, or while it computes, it receives nothing.

use std::collections::VecDeque;
use std::rc::Rc;

use aggregation::job::{Job, WorkerId};
use aggregation::rank::{self, Rank, Values};
use aggregation::server::{self, Apply, Completed, Server};
use aggregation::worker::{self, Worker};
use aggregation::{Destination, Mark};
use rand_chacha::ChaCha8Rng;

use super::cable::Cable;
use super::outcome::{End, Member, Role, Span};
use super::setup::{Address, Costs};

/// Maximum number of received frames that a host processes before it sends.
const BURST: usize = 64;

/// A simulated frame: its bytes from the aggregation header on, and the relevant fields of the headers before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame {
    pub to: Address,
    pub from: Address,
    pub mark: Mark,
    pub payload: Rc<[u8]>,
}

/// Addresses to which a server, worker or rank sends its frames.
#[derive(Debug, Clone)]
pub struct Book {
    /// Address of the server, or of the switch for frames that it sums.
    pub up: Address,
    /// Multicast address of all workers or ranks of the job.
    pub everybody: Address,
    /// Address of each worker or rank of the job, in order of rank.
    pub ranks: Rc<[Address]>,
    /// Address to which a rank sends its probes: questions to the switch, which answers them.
    pub question: Address,
}

/// The server's part that applies gradients; this one answers each chunk with its sums, unchanged.
pub struct Answering;

impl Apply for Answering {
    fn apply(&mut self, chunk: Completed<'_>, answer: &mut [u32]) {
        for (word, sum) in answer.iter_mut().zip(chunk.sums) {
            *word = *sum as u32;
        }
    }
}

/// State machine of a server, worker or rank.
pub enum Machine {
    Server(Box<Server<Answering>>),
    Worker(Box<Worker>),
    Rank(Box<Rank>),
}

/// Current activity of a simulated host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// The host sleeps until a frame arrives or a timer is due.
    Sleeping,
    /// The host is processing frames; its next poll is scheduled.
    Working,
    /// The host is computing a gradient; the end of the computation is scheduled.
    Computing,
    Ended,
}

/// Next event of a host, with its virtual time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Next {
    /// The host polls for received frames and due timers at this time.
    Look(u64),
    /// The host begins to compute a gradient at this time.
    Compute(u64),
    /// The host finishes the computation of a gradient at this time.
    Computed(u64),
    /// A timer of the host is due at this time, unless the host is woken before.
    Due(u64),
}

impl Next {
    pub fn at_ns(self) -> u64 {
        let (Self::Look(at_ns) | Self::Compute(at_ns) | Self::Computed(at_ns) | Self::Due(at_ns)) =
            self;
        at_ns
    }

    /// Returns the same event with the time `at_ns`.
    pub fn later(self, at_ns: u64) -> Self {
        match self {
            Self::Look(_) => Self::Look(at_ns),
            Self::Compute(_) => Self::Compute(at_ns),
            Self::Computed(_) => Self::Computed(at_ns),
            Self::Due(_) => Self::Due(at_ns),
        }
    }
}

/// A simulated host with the state machine of its server, worker or rank.
pub struct Host {
    machine: Machine,
    job: Job,
    address: Address,
    book: Book,
    cable: Cable,
    costs: Costs,
    rounds: u64,
    doing: Doing,
    /// Whether the host slept before this iteration: its wake-up costs time.
    has_slept: bool,
    inbox: VecDeque<Frame>,
    /// Time of the wake-up that is scheduled for a timer; `None` if none is scheduled.
    due_ns: Option<u64>,
    /// Number of rounds after which the server has evaluated its model.
    evaluated: u64,
    buffer: Vec<u8>,
    report: Member,
    /// Processor time of the last iteration in nanoseconds, without waits for the socket.
    pub busy_ns: u64,
}

/// Data of a host besides its state machine: node index, role, address, and addresses of the others.
pub struct Identity {
    pub host: usize,
    pub role: Role,
    pub address: Address,
    pub book: Book,
}

impl Host {
    pub fn new(
        machine: Machine,
        (job, rounds): (Job, u64),
        who: Identity,
        cable: Cable,
        costs: Costs,
    ) -> Self {
        Self {
            machine,
            job,
            address: who.address,
            book: who.book,
            cable,
            costs,
            rounds,
            doing: Doing::Sleeping,
            has_slept: false,
            inbox: VecDeque::new(),
            due_ns: None,
            evaluated: 0,
            buffer: Vec::new(),
            busy_ns: 0,
            report: Member {
                host: who.host,
                role: who.role,
                end: End::Waiting,
                ended_ns: 0,
                rounds: Vec::new(),
                sent: aggregation::Sent::default(),
                timeouts: 0,
                early: 0,
                marks: 0,
                window: 0,
            },
        }
    }

    /// Starts the host, and returns its first event.
    pub fn start(&mut self) -> Next {
        match self.machine {
            Machine::Server(_) => self.sleep(0).unwrap_or(Next::Look(0)),
            Machine::Worker(_) | Machine::Rank(_) => self.compute(0),
        }
    }

    pub fn has_ended(&self) -> bool {
        self.doing == Doing::Ended
    }

    /// Processes the arrival of a frame; returns an event if the frame wakes the host.
    pub fn arrived(&mut self, now_ns: u64, frame: Frame) -> Option<Next> {
        if self.doing == Doing::Ended {
            return None;
        }
        self.inbox.push_back(frame);
        (self.doing == Doing::Sleeping).then(|| {
            self.doing = Doing::Working;
            self.has_slept = true;
            Next::Look(now_ns)
        })
    }

    /// Processes a wake-up for a timer; returns an event if the host was asleep.
    pub fn woken(&mut self, now_ns: u64) -> Option<Next> {
        if self.due_ns == Some(now_ns) {
            self.due_ns = None;
        }
        (self.doing == Doing::Sleeping).then(|| {
            self.doing = Doing::Working;
            self.has_slept = true;
            Next::Look(now_ns)
        })
    }

    /// Processes the end of a computation: starts the round with the computed gradient, or closes the job after the last round.
    pub fn computed(&mut self, now_ns: u64, sent: &mut Outbox<'_>) -> Option<Next> {
        self.busy_ns = 0;
        if self.doing != Doing::Computing {
            return None;
        }
        let round = self.report.rounds.iter().filter(|span| span.end_ns > 0);
        let round = round.count() as u64;
        let started = match &mut self.machine {
            Machine::Worker(worker) if round < self.rounds => worker
                .start_round(&values(&self.job, worker.rank()))
                .map_err(|error| error.to_string()),
            Machine::Worker(worker) => worker.close().map_err(|error| error.to_string()),
            Machine::Rank(rank) => {
                let Role::Rank(number) = self.report.role else {
                    return None;
                };
                let values = Values::Floats(values(&self.job, WorkerId(number)));
                let given = rank.submit(values).map_err(|error| error.to_string());
                given.map(|_| ())
            }
            Machine::Server(_) => Ok(()),
        };
        if let Err(error) = started {
            self.end(now_ns, End::Failed(error));
            return None;
        }
        self.doing = Doing::Working;
        self.go_on(now_ns, sent)
    }

    /// Processes received frames and due timers, and sends the resulting frames; returns the host's next event.
    pub fn look(&mut self, now_ns: u64, sent: &mut Outbox<'_>) -> Option<Next> {
        self.busy_ns = 0;
        if self.doing != Doing::Working {
            return None;
        }
        let is_due = self.poll_timeout().is_some_and(|due_ns| due_ns <= now_ns);
        if self.inbox.is_empty() && !is_due {
            return self.sleep(now_ns);
        }
        let mut clock_ns = now_ns;
        if std::mem::take(&mut self.has_slept) {
            clock_ns += self.costs.wake_ns;
        }
        for _ in 0..BURST {
            let Some(frame) = self.inbox.pop_front() else {
                break;
            };
            clock_ns += self.costs.receive_ns;
            clock_ns += self.take(clock_ns, &frame);
        }
        self.busy_ns = clock_ns - now_ns;
        match &mut self.machine {
            Machine::Server(server) => server.handle_timeout(clock_ns),
            Machine::Worker(worker) => worker.handle_timeout(clock_ns),
            Machine::Rank(rank) => rank.handle_timeout(clock_ns),
        }
        self.go_on(clock_ns, sent)
    }

    /// Processes a received frame; returns the processor time that it costs beyond its reception, in nanoseconds.
    fn take(&mut self, now_ns: u64, frame: &Frame) -> u64 {
        match &mut self.machine {
            Machine::Server(server) => {
                let received = server.handle_packet(now_ns, frame.mark, &frame.payload);
                match received {
                    server::ServerFrame::Applied => self.costs.apply_ns,
                    _ => 0,
                }
            }
            Machine::Worker(worker) => {
                worker.handle_packet(now_ns, frame.mark, &frame.payload);
                0
            }
            Machine::Rank(rank) => {
                rank.handle_packet(now_ns, frame.mark, &frame.payload);
                0
            }
        }
    }

    /// Sends pending frames, then processes the state machine's event; returns the host's next event.
    fn go_on(&mut self, now_ns: u64, sent: &mut Outbox<'_>) -> Option<Next> {
        let mut clock_ns = now_ns;
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some((to, mark)) = self.poll_transmit(clock_ns, &mut buffer) {
            if let Some(most) = self.costs.socket_bytes {
                clock_ns = self.cable.has_room_ns(clock_ns, most);
            }
            clock_ns += self.costs.send_ns;
            self.busy_ns += self.costs.send_ns;
            let frame = Frame {
                to,
                from: self.address,
                mark,
                payload: buffer.as_slice().into(),
            };
            sent.send(&mut self.cable, clock_ns, frame);
        }
        self.buffer = buffer;
        let evaluated_ns = self.evaluate();
        clock_ns += evaluated_ns;
        self.busy_ns += evaluated_ns;
        match self.poll_event() {
            None => {}
            Some(Happened::Round) => {
                if let Some(round) = self.report.rounds.last_mut() {
                    round.end_ns = clock_ns;
                }
                let is_rank = matches!(self.machine, Machine::Rank(_));
                if is_rank && self.report.rounds.len() as u64 >= self.rounds {
                    self.end(clock_ns, End::Finished);
                    return None;
                }
                return Some(self.compute(clock_ns));
            }
            Some(Happened::End(end)) => {
                self.end(clock_ns, end);
                return None;
            }
        }
        Some(Next::Look(clock_ns))
    }

    /// Begins the computation of a worker's next gradient; after the last round, schedules the job's close instead.
    fn compute(&mut self, now_ns: u64) -> Next {
        self.doing = Doing::Computing;
        if self.report.rounds.len() as u64 >= self.rounds {
            return Next::Computed(now_ns);
        }
        self.report.rounds.push(Span {
            start_ns: now_ns,
            end_ns: 0,
        });
        Next::Compute(now_ns)
    }

    /// Processor time in nanoseconds in which the server evaluates its model, for all rounds that have just completed.
    fn evaluate(&mut self) -> u64 {
        let Machine::Server(server) = &self.machine else {
            return 0;
        };
        let numbers = self.job.numbers_per_round().max(1);
        let done = (server.counters().completed / numbers).min(self.rounds);
        let rounds = done - self.evaluated;
        self.evaluated = done;
        rounds * self.costs.evaluate_ns
    }

    fn sleep(&mut self, now_ns: u64) -> Option<Next> {
        self.doing = Doing::Sleeping;
        let due_ns = self.poll_timeout()?.max(now_ns);
        if self.due_ns.is_some_and(|planned_ns| planned_ns <= due_ns) {
            return None;
        }
        self.due_ns = Some(due_ns);
        Some(Next::Due(due_ns))
    }

    fn end(&mut self, now_ns: u64, end: End) {
        self.doing = Doing::Ended;
        self.inbox.clear();
        self.report.end = end;
        self.report.ended_ns = now_ns;
    }

    fn poll_timeout(&self) -> Option<u64> {
        match &self.machine {
            Machine::Server(server) => server.poll_timeout(),
            Machine::Worker(worker) => worker.poll_timeout(),
            Machine::Rank(rank) => rank.poll_timeout(),
        }
    }

    fn poll_transmit(&mut self, now_ns: u64, buffer: &mut Vec<u8>) -> Option<(Address, Mark)> {
        loop {
            let (to, mark) = match &mut self.machine {
                Machine::Server(server) => (server.poll_transmit(now_ns, buffer)?, server.mark()),
                Machine::Worker(worker) => (worker.poll_transmit(now_ns, buffer)?, Mark::None),
                Machine::Rank(rank) => (rank.poll_packet(now_ns, buffer)?, Mark::None),
            };
            let is_rank = matches!(self.machine, Machine::Rank(_));
            let own = match self.report.role {
                Role::Rank(own) if is_rank => Some(WorkerId(own)),
                _ => None,
            };
            let address = match to {
                Destination::Server => Some(self.book.up),
                Destination::All if is_rank => Some(self.book.up),
                Destination::All => Some(self.book.everybody),
                Destination::Worker(to) if own == Some(to) => Some(self.book.question),
                Destination::Worker(to) => self.book.ranks.get(usize::from(to.0)).copied(),
            };
            if let Some(address) = address {
                return Some((address, mark));
            }
        }
    }

    fn poll_event(&mut self) -> Option<Happened> {
        match &mut self.machine {
            Machine::Server(server) => Some(Happened::End(match server.poll_event()? {
                server::ServerEvent::Finished => End::Finished,
                server::ServerEvent::Failed(error) => End::Failed(error.to_string()),
            })),
            Machine::Worker(worker) => Some(match worker.poll_event()? {
                worker::WorkerEvent::RoundDone { .. } => Happened::Round,
                worker::WorkerEvent::Closed => Happened::End(End::Finished),
                worker::WorkerEvent::Failed(error) => Happened::End(End::Failed(error.to_string())),
            }),
            Machine::Rank(rank) => Some(match rank.poll_event()? {
                rank::RankEvent::Done { outcome: Ok(_), .. } => Happened::Round,
                rank::RankEvent::Done {
                    outcome: Err(error),
                    ..
                } => Happened::End(End::Failed(error.to_string())),
                rank::RankEvent::Failed(error) => Happened::End(End::Failed(error.to_string())),
            }),
        }
    }

    /// Returns the results of the host's server, worker or rank, and its outgoing cable.
    pub fn report(mut self, now_ns: u64) -> (Member, Cable) {
        if self.doing != Doing::Ended {
            self.report.ended_ns = now_ns;
        }
        self.report.rounds.retain(|round| round.end_ns > 0);
        match &self.machine {
            Machine::Server(server) => self.report.sent = server.counters().sent,
            Machine::Worker(worker) => {
                let counters = worker.counters();
                self.report.sent = counters.sent;
                self.report.timeouts = counters.timeouts;
                self.report.early = counters.fast_retransmits;
                self.report.marks = counters.congestion.marks;
                self.report.window = counters.congestion.window;
            }
            Machine::Rank(rank) => {
                let counters = rank.counters();
                self.report.sent = counters.sent;
                self.report.timeouts = counters.timeouts;
                self.report.early = counters.early_probes;
                self.report.marks = counters.congestion.marks;
                self.report.window = counters.congestion.window;
            }
        }
        (self.report, self.cable)
    }
}

enum Happened {
    /// A round is complete: a worker or rank has all its answers or sums.
    Round,
    End(End),
}

/// Sends a host's frames over its cable, and collects their arrivals, which the caller schedules.
pub struct Outbox<'a> {
    pub rng: &'a mut ChaCha8Rng,
    /// Arrivals: time in nanoseconds, destination (node index and port), frame.
    pub arrivals: &'a mut Vec<(u64, (usize, super::PortId), Frame)>,
}

impl Outbox<'_> {
    pub fn send(&mut self, cable: &mut Cable, now_ns: u64, frame: Frame) {
        let sent = cable.send(now_ns, frame.payload.len(), self.rng);
        if let Some(at_ns) = sent.arrives_ns {
            let mark = frame.mark.max(sent.mark);
            self.arrivals
                .push((at_ns, cable.to, Frame { mark, ..frame }));
        }
    }
}

/// Values that a worker or rank contributes in each round: all are finite, and no chunk is all zero.
fn values(job: &Job, rank: WorkerId) -> Vec<f32> {
    let value = |index: usize| ((index % 251) as f32 - 125.0) * f32::from(rank.0 + 1) / 1024.0;
    (0..job.values_per_round()).map(value).collect()
}
