//! Model of a training with a parameter server, for the model checker: workers, the server, and a switch.

use aggregation::job::{ChunkId, Job, JobConfig, JobError, JobId, WorkerId};
use aggregation::quantise::{Exponent, quantise};
use aggregation::server::{self, Apply, Completed, Mode, Server};
use aggregation::worker::{self, Worker};
use aggregation::{Destination, Mark};
use wire::{Flags, Kind, Packet};

use crate::all_reduce::PATIENT;
use crate::model::{Act, Frame, Model, Outbox, Status, Wrong};
use crate::slots::{Rule, Switch};

/// Bounds of the model of a training with a parameter server.
#[derive(Debug, Clone)]
pub struct TrainingBounds {
    /// Whether the switch or the server sums.
    pub mode: Mode,
    /// Number of workers in the model.
    pub workers: u8,
    /// The job's window: the number of the switch's aggregation slots that it uses.
    pub window: u32,
    /// Number of training rounds.
    pub rounds: u64,
    /// Number of chunks with values per round.
    pub chunks: u8,
    /// Exponent of each worker's values; workers are interchangeable if all are equal.
    pub exponents: Vec<i8>,
    /// Number of the job's first chunk.
    pub first_chunk: ChunkId,
    /// Number of times that the switch may restart and forget all registers.
    pub restarts: u8,
    /// Whether workers of the model may crash.
    pub crashes: bool,
    /// The rule of the protocol that the model lacks; `None` to check the real slots of crate `aggregation`.
    pub without: Option<Rule>,
}

impl TrainingBounds {
    /// Bounds with equal exponents of all workers, and without a removed rule.
    pub fn new(mode: Mode, workers: u8, window: u32, rounds: u64, chunks: u8) -> Self {
        Self {
            mode,
            workers,
            window,
            rounds,
            chunks,
            exponents: vec![0; usize::from(workers)],
            // Chunk 0 is in the middle of the job.
            first_chunk: ChunkId(0u32.wrapping_sub(2 * window)),
            restarts: 0,
            crashes: false,
            without: None,
        }
    }
}

/// A node of the model of a training.
#[derive(Debug, Clone)]
pub enum TrainingNode {
    /// A worker of the job.
    Worker(Box<WorkerMember>),
    /// The switch, which sums or only forwards.
    Switch(Switch),
    /// The parameter server.
    Server(Box<Serving>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Running,
    Closing,
    Closed,
    Crashed,
}

/// A worker, with its progress through the model's rounds.
#[derive(Debug, Clone)]
pub struct WorkerMember {
    id: u8,
    machine: Worker,
    phase: Phase,
    rounds: u64,
}

/// The parameter server, with its progress through the model's rounds.
#[derive(Debug, Clone)]
pub struct Serving {
    machine: Server<Judge>,
    left: bool,
}

/// Compares the sums that the server applies with the correct sums.
#[derive(Debug, Clone)]
struct Judge {
    /// The correct sums by round and chunk: those of round r, chunk c at index r times `chunks` plus c.
    right: Vec<Vec<i32>>,
    chunks: u8,
    wrong: Option<String>,
}

impl Apply for Judge {
    fn apply(&mut self, chunk: Completed<'_>, answer: &mut [u32]) {
        let at = chunk.round as usize * usize::from(self.chunks) + chunk.index as usize;
        let right = self.right.get(at).map_or(&[][..], |right| right);
        if chunk.sums != right && self.wrong.is_none() {
            let sums = chunk.sums;
            self.wrong = Some(format!(
                "the server applies {sums:?} where {right:?} is right"
            ));
        }
        let words = answer.iter_mut().zip(chunk.sums);
        words.for_each(|(word, sum)| *word = *sum as u32);
    }
}

/// The model of a training with a parameter server.
#[derive(Debug)]
pub struct ParameterServer {
    bounds: TrainingBounds,
    /// The job as the workers know it. Its window differs from the switch's only in a model without [`Rule::Window`].
    job: Job,
    switch: Switch,
    right: Vec<Vec<i32>>,
}

const NOW_NS: u64 = 0;
/// A time at which all timers are due.
const LATE_NS: u64 = u64::MAX;

impl ParameterServer {
    /// Creates the model of a training with these bounds.
    pub fn new(bounds: TrainingBounds) -> Result<Self, JobError> {
        let config = |window| JobConfig {
            job: JobId(7),
            workers: u16::from(bounds.workers),
            window,
            // One word per worker, in which only that worker contributes a value, so that a sum shows its contributors.
            values_per_packet: u16::from(bounds.workers),
            values_per_round: usize::from(bounds.chunks) * usize::from(bounds.workers),
            first_chunk: bounds.first_chunk,
        };
        let ahead = match bounds.without {
            Some(Rule::Window) => 2,
            _ => 1,
        };
        let mut model = Self {
            job: Job::new(config(ahead * bounds.window))?,
            switch: Switch::new(config(bounds.window), bounds.without, bounds.workers, false)?,
            bounds,
            right: Vec::new(),
        };
        model.right = (0..model.bounds.rounds)
            .flat_map(|round| model.right_of(round))
            .collect();
        Ok(model)
    }

    /// A worker's values for a round: in its own places 1 to 2 times 2^e, where e is its exponent plus the round; elsewhere 0.
    fn values(&self, round: u64, worker: u8) -> Vec<f32> {
        let places = (0..self.bounds.chunks)
            .flat_map(|chunk| (0..self.bounds.workers).map(move |place| (chunk, place)));
        let value = |(chunk, place): (u8, u8)| match place == worker {
            true => {
                let number = round * u64::from(self.bounds.chunks) + u64::from(chunk);
                let exponent = self.bounds.exponents.get(usize::from(worker)).copied();
                let scale = 2f32.powi(i32::from(exponent.unwrap_or(0)) + round as i32);
                (1.0 + (number + 1) as f32 / 256.0) * scale
            }
            false => 0.0,
        };
        places.map(value).collect()
    }

    /// The correct sums of a round, by chunk.
    fn right_of(&self, round: u64) -> Vec<Vec<i32>> {
        let workers = self.bounds.workers;
        let values: Vec<Vec<f32>> = (0..workers)
            .map(|worker| self.values(round, worker))
            .collect();
        let size = usize::from(workers);
        let chunks = (0..usize::from(self.bounds.chunks)).map(|chunk| {
            let blocks = || values.iter().map(|values| &values[chunk * size..][..size]);
            let exponent = blocks()
                .filter_map(Exponent::bounding)
                .max()
                .unwrap_or_default();
            let mut sums = vec![0i32; size];
            for block in blocks() {
                let quantised = quantise(block, exponent, u16::from(workers));
                sums.iter_mut()
                    .zip(quantised)
                    .for_each(|(sum, q)| *sum += q);
            }
            sums
        });
        chunks.collect()
    }

    fn server(&self) -> u8 {
        match self.bounds.mode {
            Mode::Switch => self.bounds.workers + 1,
            Mode::Direct => self.bounds.workers,
        }
    }

    fn pump_worker(&self, member: &mut WorkerMember, out: &mut Outbox) {
        let mut bytes = Vec::new();
        while let Some(to) = member.machine.poll_transmit(NOW_NS, &mut bytes) {
            // To the switch, or to the server behind it.
            out.send(member.id, [self.bounds.workers], to, &bytes);
        }
        while let Some(event) = member.machine.poll_event() {
            match event {
                worker::WorkerEvent::RoundDone { round } => {
                    member.phase = Phase::Idle;
                    member.rounds += 1;
                    let sums = member.machine.results().iter().map(|word| *word as i32);
                    let right = (0..usize::from(self.bounds.chunks)).flat_map(|chunk| {
                        &self.right[round as usize * usize::from(self.bounds.chunks) + chunk]
                    });
                    if !sums.eq(right.copied()) {
                        let (id, results) = (member.id, member.machine.results());
                        let what = format!("worker {id} has {results:?} of round {round}");
                        out.wrong(Wrong::Sum(what));
                    }
                }
                worker::WorkerEvent::Closed => member.phase = Phase::Closed,
                worker::WorkerEvent::Failed(error) => {
                    let what = format!("worker {}: {error}", member.id);
                    out.wrong(Wrong::Unexpected(what));
                }
            }
        }
    }

    fn pump_server(&self, serving: &mut Serving, out: &mut Outbox) {
        let mut bytes = Vec::new();
        while let Some(to) = serving.machine.poll_transmit(NOW_NS, &mut bytes) {
            let workers = match to {
                Destination::All => 0..self.bounds.workers,
                Destination::Worker(worker) => worker.0 as u8..worker.0 as u8 + 1,
                Destination::Server => 0..0,
            };
            out.send(self.server(), workers, to, &bytes);
        }
        if let Some(wrong) = &serving.machine.application().wrong {
            out.wrong(Wrong::Sum(wrong.clone()));
        }
        match serving.machine.poll_event() {
            // The server leaves, and ignores later frames.
            Some(server::ServerEvent::Finished) => serving.left = true,
            Some(server::ServerEvent::Failed(error)) => {
                out.wrong(Wrong::Unexpected(format!("the server: {error}")));
            }
            None => {}
        }
    }
}

impl Model for ParameterServer {
    type Node = TrainingNode;

    fn nodes(&self) -> Vec<TrainingNode> {
        let workers = (0..self.bounds.workers).map(|id| {
            TrainingNode::Worker(Box::new(WorkerMember {
                id,
                machine: Worker::new(self.job, WorkerId(u16::from(id)), PATIENT),
                phase: Phase::Idle,
                rounds: 0,
            }))
        });
        let sums = self.bounds.mode == Mode::Switch;
        let switch = sums.then(|| TrainingNode::Switch(self.switch.clone()));
        let judge = Judge {
            right: self.right.clone(),
            chunks: self.bounds.chunks,
            wrong: None,
        };
        let (mode, rounds) = (self.bounds.mode, Some(self.bounds.rounds));
        let server = TrainingNode::Server(Box::new(Serving {
            machine: Server::new(self.job, mode, PATIENT, rounds, judge, NOW_NS),
            left: false,
        }));
        workers.chain(switch).chain([server]).collect()
    }

    fn interchangeable(&self) -> usize {
        let exponents = &self.bounds.exponents;
        match exponents.iter().all(|exponent| *exponent == exponents[0]) {
            true => usize::from(self.bounds.workers),
            false => 0,
        }
    }

    fn state(&self, node: &TrainingNode, out: &mut Vec<u8>) {
        match node {
            TrainingNode::Worker(member) => {
                out.extend([member.phase as u8, member.rounds as u8]);
                // A worker that has left or crashed does nothing.
                if !matches!(member.phase, Phase::Crashed | Phase::Closed) {
                    member.machine.state(out);
                }
            }
            TrainingNode::Switch(switch) => switch.state(out),
            TrainingNode::Server(serving) => {
                out.push(u8::from(serving.left));
                if !serving.left {
                    serving.machine.state(out);
                }
            }
        }
    }

    fn status(&self, node: &TrainingNode) -> Status {
        match node {
            TrainingNode::Worker(member) => match member.phase {
                Phase::Idle => Status::Wants,
                Phase::Running | Phase::Closing => Status::Works,
                Phase::Closed => Status::Done,
                Phase::Crashed => Status::Broken,
            },
            TrainingNode::Switch(switch) if switch.restarts > 0 => Status::Broken,
            TrainingNode::Switch(_) | TrainingNode::Server(_) => Status::Serves,
        }
    }

    fn acts(&self, node: &TrainingNode) -> Vec<Act> {
        match node {
            TrainingNode::Worker(member) => {
                let mut acts = match member.phase {
                    Phase::Idle => vec![Act::Submit],
                    // A closing worker may leave at a timeout; it has already sent its frames.
                    Phase::Running | Phase::Closing => vec![Act::Timer],
                    Phase::Closed | Phase::Crashed => return Vec::new(),
                };
                if self.bounds.without == Some(Rule::Repeat) && member.phase == Phase::Running {
                    acts.clear();
                }
                if self.bounds.crashes {
                    acts.push(Act::Crash);
                }
                acts
            }
            TrainingNode::Switch(switch) if switch.restarts < self.bounds.restarts => {
                vec![Act::Restart]
            }
            TrainingNode::Switch(_) | TrainingNode::Server(_) => Vec::new(),
        }
    }

    fn act(&self, node: &mut TrainingNode, act: Act, out: &mut Outbox) {
        match (node, act) {
            (TrainingNode::Worker(member), Act::Submit) => {
                let closes = member.rounds == self.bounds.rounds;
                let started = match closes {
                    true => member.machine.close(),
                    false => {
                        let values = self.values(member.rounds, member.id);
                        member.machine.start_round(&values)
                    }
                };
                member.phase = if closes {
                    Phase::Closing
                } else {
                    Phase::Running
                };
                if let Err(error) = started {
                    out.wrong(Wrong::Unexpected(format!("worker {}: {error}", member.id)));
                }
                self.pump_worker(member, out);
            }
            (TrainingNode::Worker(member), Act::Timer) => {
                member.machine.handle_timeout(LATE_NS);
                self.pump_worker(member, out);
            }
            (TrainingNode::Worker(member), Act::Crash) => member.phase = Phase::Crashed,
            (TrainingNode::Switch(switch), Act::Restart) => switch.restart(),
            _ => {}
        }
    }

    fn deliver(&self, node: &mut TrainingNode, frame: &Frame, out: &mut Outbox) {
        match node {
            TrainingNode::Worker(member) => {
                if matches!(member.phase, Phase::Crashed | Phase::Closed) {
                    return;
                }
                let received = member
                    .machine
                    .handle_packet(NOW_NS, Mark::None, &frame.bytes);
                if received == worker::WorkerFrame::Malformed {
                    let what = format!("worker {} calls this frame malformed", member.id);
                    out.wrong(Wrong::Unexpected(what));
                }
                self.pump_worker(member, out);
            }
            TrainingNode::Switch(switch) => {
                if let Some((sum, _)) = switch.take(frame, frame.from) {
                    out.send(self.bounds.workers, [self.server()], frame.addressed, &sum);
                }
            }
            TrainingNode::Server(serving) if serving.left => {}
            TrainingNode::Server(serving) => {
                let received = serving
                    .machine
                    .handle_packet(NOW_NS, Mark::None, &frame.bytes);
                if received == server::ServerFrame::Malformed {
                    let what = "the server calls this frame malformed";
                    out.wrong(Wrong::Unexpected(what.into()));
                }
                self.pump_server(serving, out);
            }
        }
    }

    fn mask(&self, frame: &mut Frame) -> Vec<Frame> {
        let write = |frame: &mut Frame, transmission, again, worker| {
            let mut packet = Packet::new_unchecked(&mut frame.bytes[..]);
            packet.set_transmission(transmission);
            // A repeated sum shows that it is one, and which worker has requested it.
            let is_first_sum = packet.kind() == Kind::Sum && !packet.flags().contains(Flags::AGAIN);
            if packet.kind() != Kind::Sum {
                packet.set_flags(packet.flags().with(Flags::AGAIN, again));
            } else if is_first_sum {
                packet.set_worker(worker);
            }
        };
        write(frame, 0, false, 0);
        let variants = [
            (63, false, 0),
            (0, true, 0),
            (1, true, u16::from(self.bounds.workers) - 1),
        ];
        let variants = variants.map(|(transmission, again, worker)| {
            let mut variant = frame.clone();
            write(&mut variant, transmission, again, worker);
            variant
        });
        variants.to_vec()
    }

    /// Returns `false`: the workers get no task after the last round.
    fn has_more(&self) -> bool {
        false
    }

    /// Whether the server has left, or leaves when its timer fires.
    fn ends(&self, nodes: &[&TrainingNode]) -> bool {
        nodes.iter().all(|node| match node {
            TrainingNode::Server(serving) if !serving.left => {
                let mut machine = serving.machine.clone();
                machine.handle_timeout(LATE_NS);
                machine.poll_event() == Some(server::ServerEvent::Finished)
            }
            _ => true,
        })
    }

    fn name(&self, node: u8) -> String {
        if node < self.bounds.workers {
            format!("worker {node}")
        } else if node == self.server() {
            "the server".into()
        } else {
            "the switch".into()
        }
    }

    fn describe(&self, node: &TrainingNode) -> String {
        match node {
            TrainingNode::Worker(member) => {
                format!("{:?}, {} rounds done", member.phase, member.rounds)
            }
            TrainingNode::Switch(switch) => switch.describe(),
            TrainingNode::Server(serving) if serving.left => "leaves".into(),
            TrainingNode::Server(serving) => {
                format!("{} chunks answered", serving.machine.counters().completed)
            }
        }
    }
}
