//! Simulates a training in virtual time: the event loop between workers, switch and server.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::config::place;
use crate::network::{Link, below};
use crate::{
    Config, ConfigError, NetworkCounters, Node, Report, ServerEnd, ServerReport, SwitchModel,
    WorkerEnd, WorkerReport,
};
use aggregation::job::{ChunkId, Job, WorkerId};
use aggregation::server::{self, Apply, Completed, Server};
use aggregation::worker::{self, Worker};
use aggregation::{Destination, Mark};

/// Answers each chunk with its sums, unchanged: the server's answer that [`check`](super::check) expects.
pub fn answer_with_sums(chunk: Completed<'_>, answer: &mut [u32]) {
    for (word, sum) in answer.iter_mut().zip(chunk.sums) {
        *word = *sum as u32;
    }
}

/// Simulates a training until all nodes have ended. `inputs` returns a worker's values for a round (from 0).
pub fn run<S: SwitchModel, A: Apply>(
    config: &Config,
    switch: &mut S,
    apply: A,
    inputs: impl Fn(u64, WorkerId) -> Vec<f32>,
) -> Result<Report, ConfigError> {
    Ok(TrainingRun::new(config, config.checked_job()?, switch, apply, inputs)?.finish())
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    AtSwitch {
        from: Node,
        mark: Mark,
        frame: Vec<u8>,
    },
    AtNode {
        to: Node,
        mark: Mark,
        frame: Vec<u8>,
    },
    Wake(Node),
    /// The worker has finished its computation before a round.
    Computed(WorkerId),
    Death(Node),
    /// The switches receive the division into parts with this index in `Config::replans`.
    Replan(usize),
    /// The server receives the division into parts with this index in `Config::replans`.
    ReplanServer(usize),
    /// A worker receives the division into parts with this index, and the first chunk to which it applies.
    Move(WorkerId, usize, u32),
}

/// An event of the simulation: time, sequence number of its scheduling, event. Ordered so that runs repeat exactly.
type Scheduled = Reverse<(u64, u64, Event)>;

struct Member<M> {
    machine: M,
    ended_ns: Option<u64>,
    /// Time of the node's next scheduled wake-up; `None` if none is scheduled.
    wake_ns: Option<u64>,
    to_switch: Link,
    from_switch: Link,
}

impl<M> Member<M> {
    fn new(machine: M, config: &Config, node: Node) -> Self {
        let link = Link::new(config.faults_of(node), config.delay_ns).with_rate(config.rate);
        Self {
            machine,
            ended_ns: None,
            wake_ns: None,
            to_switch: link.clone(),
            from_switch: link,
        }
    }

    /// Records and returns the time of a wake-up at `at_ns`; `None` if none is needed, as an earlier one is scheduled.
    fn wants_wake(&mut self, at_ns: Option<u64>) -> Option<u64> {
        let at_ns = at_ns.filter(|at_ns| self.wake_ns.is_none_or(|wake_ns| *at_ns < wake_ns))?;
        self.wake_ns = Some(at_ns);
        Some(at_ns)
    }
}

struct TrainingRun<'a, S, A, I> {
    config: &'a Config,
    switch: &'a mut S,
    inputs: I,
    rng: ChaCha8Rng,
    now_ns: u64,
    events: BinaryHeap<Scheduled>,
    scheduled: u64,
    workers: Vec<Member<Worker>>,
    worker_ends: Vec<WorkerEnd>,
    rounds: Vec<Vec<Vec<u32>>>,
    server: Member<Server<A>>,
    server_end: ServerEnd,
    network: NetworkCounters,
    deaths: u64,
    /// Time at which the server learns the parts that the switches learned last.
    told_ns: u64,
    /// Index of the division into parts that each worker received last, in order of rank.
    plans: Vec<usize>,
    buffer: Vec<u8>,
    switched: Vec<(Node, Vec<u8>)>,
}

impl<'a, S: SwitchModel, A: Apply, I: Fn(u64, WorkerId) -> Vec<f32>> TrainingRun<'a, S, A, I> {
    fn new(
        config: &'a Config,
        job: Job,
        switch: &'a mut S,
        apply: A,
        inputs: I,
    ) -> Result<Self, ConfigError> {
        let retransmission = config.retransmission;
        let rounds = Some(config.rounds);
        let server = match config.parts.as_slice() {
            [] => Server::new(job, config.mode, retransmission, rounds, apply, 0),
            parts => Server::of_parts(job, parts.to_vec(), retransmission, rounds, apply, 0)?,
        };
        let workers: Vec<_> = (0..job.workers())
            .map(WorkerId)
            .map(|rank| {
                let mut machine = Worker::new(job, rank, retransmission);
                if let Some((number, child)) = config.part_of(rank) {
                    machine = machine.in_part(number, child);
                }
                if config.fixed_window {
                    machine.fix_window();
                }
                Member::new(machine, config, Node::Worker(rank))
            })
            .collect();
        let count = workers.len();
        Ok(Self {
            config,
            switch,
            inputs,
            rng: ChaCha8Rng::seed_from_u64(config.seed),
            now_ns: 0,
            events: BinaryHeap::new(),
            scheduled: 0,
            workers,
            worker_ends: vec![WorkerEnd::Hung; count],
            rounds: vec![Vec::new(); count],
            server: Member::new(server, config, Node::Server),
            server_end: ServerEnd::Hung,
            network: NetworkCounters::default(),
            deaths: 0,
            told_ns: 0,
            plans: vec![0; count],
            buffer: Vec::new(),
            switched: Vec::new(),
        })
    }

    fn finish(mut self) -> Report {
        for death in &self.config.deaths {
            self.schedule(death.at_ns, Event::Death(death.node));
        }
        for (index, replan) in self.config.replans.iter().enumerate() {
            self.schedule(replan.at_ns, Event::Replan(index));
        }
        for rank in 0..self.workers.len() {
            self.compute(WorkerId(rank as u16));
        }
        self.pump_server();
        let deadline_ns = self.config.deadline_ns();
        while !self.is_over()
            && let Some(Reverse((at_ns, _, event))) = self.events.pop()
            && at_ns <= deadline_ns
        {
            self.now_ns = at_ns;
            self.handle(event);
        }
        self.report()
    }

    fn is_over(&self) -> bool {
        self.server.ended_ns.is_some() && self.workers.iter().all(|w| w.ended_ns.is_some())
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.events.push(Reverse((at_ns, self.scheduled, event)));
        self.scheduled += 1;
    }

    /// Schedules the end of a worker's computation before its next round.
    fn compute(&mut self, rank: WorkerId) {
        let takes_ns = below(&mut self.rng, self.config.compute_ns);
        self.schedule(self.now_ns + takes_ns, Event::Computed(rank));
    }

    fn handle(&mut self, event: Event) {
        let now_ns = self.now_ns;
        match event {
            // Outgoing frames have the headers, and so the mark, of the frame that caused them.
            Event::AtSwitch { from, mark, frame } => {
                let mut switched = std::mem::take(&mut self.switched);
                self.switch.handle(now_ns, from, &frame, &mut switched);
                for (to, frame) in switched.drain(..) {
                    self.leave_switch(to, mark, frame);
                }
                self.switched = switched;
            }
            Event::AtNode {
                to: Node::Server, ..
            } if self.server_end == ServerEnd::Died => {
                self.network.at_the_dead += 1;
            }
            Event::AtNode {
                to: Node::Server,
                mark,
                frame,
            } => {
                self.server.machine.handle_packet(now_ns, mark, &frame);
                self.pump_server();
            }
            Event::AtNode {
                to: Node::Worker(rank),
                mark,
                frame,
            } => {
                let index = usize::from(rank.0);
                if self.worker_ends[index] == WorkerEnd::Died {
                    self.network.at_the_dead += 1;
                    return;
                }
                self.workers[index]
                    .machine
                    .handle_packet(now_ns, mark, &frame);
                self.pump_worker(rank);
            }
            // A wake-up that an earlier one has replaced comes too early, which is harmless.
            Event::Wake(Node::Server) => {
                self.server.wake_ns = None;
                if self.server_end != ServerEnd::Died {
                    self.server.machine.handle_timeout(now_ns);
                    self.pump_server();
                }
            }
            Event::Wake(Node::Worker(rank)) => {
                let worker = &mut self.workers[usize::from(rank.0)];
                worker.wake_ns = None;
                if worker.ended_ns.is_none() {
                    worker.machine.handle_timeout(now_ns);
                    self.pump_worker(rank);
                }
            }
            Event::Computed(rank) => self.begin_round(rank),
            Event::Death(node) => self.die(node),
            Event::Replan(index) => {
                let replan = &self.config.replans[index];
                self.switch.replan(&replan.parts);
                // The server receives plans in their order.
                self.told_ns = self.told_ns.max(now_ns + replan.server_after_ns);
                self.schedule(self.told_ns, Event::ReplanServer(index));
            }
            Event::ReplanServer(index) => self.replan_server(index),
            Event::Move(rank, index, from) => {
                let worker = &mut self.workers[usize::from(rank.0)];
                // A worker with a later plan ignores earlier ones.
                if worker.ended_ns.is_none() && self.plans[usize::from(rank.0)] <= index {
                    self.plans[usize::from(rank.0)] = index;
                    let part = place(&self.config.replans[index].parts, rank);
                    worker.machine.move_to(part, ChunkId(from));
                    self.pump_worker(rank);
                }
            }
        }
    }

    fn replan_server(&mut self, index: usize) {
        let replan = &self.config.replans[index];
        if self.server.ended_ns.is_some() {
            return;
        }
        let told = self
            .server
            .machine
            .replan(self.now_ns, replan.parts.clone());
        let Ok(from) = told else {
            return;
        };
        for rank in 0..self.workers.len() {
            let at_ns = self.now_ns + below(&mut self.rng, replan.told_within_ns);
            self.schedule(at_ns, Event::Move(WorkerId(rank as u16), index, from.0));
        }
    }

    fn begin_round(&mut self, rank: WorkerId) {
        let index = usize::from(rank.0);
        if self.workers[index].ended_ns.is_some() {
            return;
        }
        let round = self.rounds[index].len() as u64;
        let worker = &mut self.workers[index].machine;
        let started = if round < self.config.rounds {
            worker.start_round(&(self.inputs)(round, rank))
        } else {
            worker.close()
        };
        debug_assert_eq!(started, Ok(()));
        self.pump_worker(rank);
    }

    fn die(&mut self, node: Node) {
        let now_ns = self.now_ns;
        match node {
            Node::Server if self.server.ended_ns.is_none() => {
                self.server.ended_ns = Some(now_ns);
                self.server_end = ServerEnd::Died;
                self.deaths += 1;
            }
            Node::Worker(rank) => {
                let index = usize::from(rank.0);
                if let Some(worker) = self.workers.get_mut(index)
                    && worker.ended_ns.is_none()
                {
                    worker.ended_ns = Some(now_ns);
                    self.worker_ends[index] = WorkerEnd::Died;
                    self.deaths += 1;
                }
            }
            Node::Server => {}
        }
    }

    fn pump_worker(&mut self, rank: WorkerId) {
        let index = usize::from(rank.0);
        let mut buffer = std::mem::take(&mut self.buffer);
        while self.workers[index]
            .machine
            .poll_transmit(self.now_ns, &mut buffer)
            .is_some()
        {
            self.enter_switch(Node::Worker(rank), Mark::None, &buffer);
        }
        self.buffer = buffer;
        if let Some(event) = self.workers[index].machine.poll_event() {
            let end = match event {
                worker::WorkerEvent::RoundDone { .. } => {
                    let results = self.workers[index].machine.results().to_vec();
                    self.rounds[index].push(results);
                    self.compute(rank);
                    None
                }
                worker::WorkerEvent::Closed => Some(WorkerEnd::Finished),
                worker::WorkerEvent::Failed(error) => Some(WorkerEnd::Failed(error)),
            };
            if let Some(end) = end {
                self.worker_ends[index] = end;
                self.workers[index].ended_ns = Some(self.now_ns);
            }
        }
        let worker = &mut self.workers[index];
        if let Some(at_ns) = worker.wants_wake(worker.machine.poll_timeout()) {
            self.schedule(at_ns, Event::Wake(Node::Worker(rank)));
        }
    }

    fn pump_server(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(to) = self.server.machine.poll_transmit(self.now_ns, &mut buffer) {
            debug_assert_ne!(to, Destination::Server);
            let mark = self.server.machine.mark();
            self.enter_switch(Node::Server, mark, &buffer);
        }
        self.buffer = buffer;
        if let Some(event) = self.server.machine.poll_event() {
            self.server.ended_ns = Some(self.now_ns);
            self.server_end = match event {
                server::ServerEvent::Finished => ServerEnd::Finished,
                server::ServerEvent::Failed(error) => ServerEnd::Failed(error),
            };
        }
        if let Some(at_ns) = self.server.wants_wake(self.server.machine.poll_timeout()) {
            self.schedule(at_ns, Event::Wake(Node::Server));
        }
    }

    fn enter_switch(&mut self, from: Node, mark: Mark, frame: &[u8]) {
        let link = match from {
            Node::Server => &mut self.server.to_switch,
            Node::Worker(rank) => &mut self.workers[usize::from(rank.0)].to_switch,
        };
        let (arrivals, queue) =
            link.send(self.now_ns, frame.len(), &mut self.rng, &mut self.network);
        for at_ns in arrivals.into_iter().flatten() {
            self.schedule(
                at_ns,
                Event::AtSwitch {
                    from,
                    mark: mark.max(queue),
                    frame: frame.to_vec(),
                },
            );
        }
    }

    fn leave_switch(&mut self, to: Node, mark: Mark, frame: Vec<u8>) {
        let link = match to {
            Node::Server => &mut self.server.from_switch,
            Node::Worker(rank) => match self.workers.get_mut(usize::from(rank.0)) {
                Some(worker) => &mut worker.from_switch,
                None => return,
            },
        };
        let ([first, copy], queue) =
            link.send(self.now_ns, frame.len(), &mut self.rng, &mut self.network);
        let mark = mark.max(queue);
        if let Some(at_ns) = copy {
            self.schedule(
                at_ns,
                Event::AtNode {
                    to,
                    mark,
                    frame: frame.clone(),
                },
            );
        }
        if let Some(at_ns) = first {
            self.schedule(at_ns, Event::AtNode { to, mark, frame });
        }
    }

    fn report(self) -> Report {
        let now_ns = self.now_ns;
        let workers = (self
            .workers
            .into_iter()
            .zip(self.worker_ends)
            .zip(self.rounds))
        .map(|((worker, end), rounds)| WorkerReport {
            rank: worker.machine.rank(),
            rounds,
            end,
            ended_ns: worker.ended_ns.unwrap_or(now_ns),
            counters: worker.machine.counters(),
        })
        .collect();
        Report {
            workers,
            server: ServerReport {
                end: self.server_end,
                ended_ns: self.server.ended_ns.unwrap_or(now_ns),
                counters: self.server.machine.counters(),
            },
            network: self.network,
            deaths: self.deaths,
            ended_ns: now_ns,
        }
    }
}
