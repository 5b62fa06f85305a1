//! An all-reduce in virtual time: ranks, any switch, and a network that misbehaves by seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aggregation::job::{Job, JobConfig, JobError, Place, WorkerId};
use aggregation::rank::{
    Carry, Event, Fallback, Lateness, LatenessError, NonFinite, Rank, RankCounters, RankError,
    Reduction, Setup, Share, Sums, Values,
};
use aggregation::rto::Retransmission;
use aggregation::{Destination, Mark};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::network::{Buckets, HEADERS, Link, Policer, Rate, below, chance};
use crate::{Faults, NetworkCounters};

pub use crate::recovery::Recovery;
pub use crate::tree::{Racks, RankSwitch, SlotSwitch};

/// A run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Everything random follows from it.
    pub seed: u64,
    /// The job.
    pub job: JobConfig,
    /// Timeouts.
    pub retransmission: Retransmission,
    /// A link's delay without faults, each way.
    pub delay_ns: u64,
    /// What each rank's link carries, each way; `None` for what is sent.
    pub rate: Option<Rate>,
    /// What the switch takes of all ranks together; `None` for what comes.
    pub policer: Option<Policer>,
    /// Whether ranks take no note of queues.
    pub fixed_window: bool,
    /// A rank submits each operation up to so much later than the one before.
    pub pause_ns: u64,
    /// What every link does.
    pub faults: Faults,
    /// Where ranks stand, if there is a tree of switches.
    pub racks: Option<Racks>,
    /// After how long a rank that does not answer others is gone; `None` if they do not ask.
    pub dead_after_ns: Option<u64>,
    /// What ranks do between operations, if they wait for each one's sums: [`pause_ns`](Self::pause_ns) does not count then.
    pub steps: Option<Steps>,
    /// When sums are made of fewer than all.
    pub deadline: Option<Deadline>,
    /// When they sum themselves.
    pub fallback: Option<Fallback>,
    /// Ranks that die, and when.
    pub deaths: Vec<(WorkerId, u64)>,
    /// When it is noted what is under way, ascending: [`Report::recoveries`] says how long that took.
    pub watched_ns: Vec<u64>,
    /// What ranks do with all their operations.
    pub reduction: Reduction,
    /// What a rank does in an operation; `reduction` does not say it.
    pub share: fn(usize, WorkerId) -> Share,
    /// One that asks for averages where the others do not, or the other way round.
    pub averages_at: Option<WorkerId>,
    /// No run lasts longer.
    pub deadline_ns: u64,
}

impl Config {
    /// Ranks that are given operations now and then, over a network with these faults, with timeouts that fit its delays.
    pub fn new(seed: u64, job: JobConfig, faults: Faults) -> Self {
        const MS: u64 = 1_000_000;
        Self {
            seed,
            job,
            retransmission: Retransmission {
                floor_ns: MS / 5,
                granularity_ns: 0,
                initial_ns: MS / 2,
                ceiling_ns: 3 * MS,
                max_timeouts: 100,
                max_closing_timeouts: 8,
                fast_threshold: 4,
                ask_after: 2,
            },
            delay_ns: 10_000,
            rate: None,
            policer: None,
            fixed_window: false,
            pause_ns: 60_000,
            faults,
            racks: None,
            dead_after_ns: Some(100 * MS),
            steps: None,
            deadline: None,
            fallback: None,
            deaths: Vec::new(),
            watched_ns: Vec::new(),
            reduction: Reduction::default(),
            share: |_, _| Share::default(),
            averages_at: None,
            deadline_ns: 60_000 * MS,
        }
    }
}

/// A rank computes, gives its values, waits for the sums, and so on.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    /// It computes for so long.
    pub compute_ns: u64,
    /// Now and then for longer, by up to so much.
    pub stall_ns: u64,
    /// How often that is.
    pub stalls: f64,
}

/// When sums are made of fewer than all.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    /// After so long.
    pub after_ns: u64,
    /// If so many are there.
    pub quorum: u16,
    /// What becomes of the rest.
    pub carry: Carry,
    /// So many sums of each slot are kept, if not as many as usual.
    pub keeps: Option<u32>,
}

impl Deadline {
    fn lateness(self, job: &Job, place: Place) -> Result<Lateness, LatenessError> {
        let lateness = Lateness::new(job, place, self.after_ns, self.quorum, self.carry)?;
        self.keeps
            .map_or(Ok(lateness), |keeps| lateness.keeping(keeps))
    }
}

/// Why nothing was run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigError {
    /// It is no job.
    Job(JobError),
    /// It cannot have such a deadline.
    Lateness(LatenessError),
}

impl From<JobError> for ConfigError {
    fn from(error: JobError) -> Self {
        Self::Job(error)
    }
}

impl From<LatenessError> for ConfigError {
    fn from(error: LatenessError) -> Self {
        Self::Lateness(error)
    }
}

/// What became of a rank.
#[derive(Debug, Clone, PartialEq)]
pub enum RankEnd {
    /// All its operations are done.
    Done,
    /// It gave up.
    Failed(RankError),
    /// It died.
    Died,
    /// It was still waiting when the run was over.
    Hung,
}

/// A run that is over.
#[derive(Debug, Clone)]
pub struct Report {
    /// By rank, how it ended.
    pub ends: Vec<RankEnd>,
    /// By rank and operation, what came of it.
    pub sums: Vec<Vec<Result<Sums, NonFinite>>>,
    /// By rank and key, what came too late and joined no operation.
    pub residuals: Vec<Vec<(u64, Values)>>,
    /// By rank.
    pub counters: Vec<RankCounters>,
    /// What the network did.
    pub network: NetworkCounters,
    /// When the last rank ended.
    pub ended_ns: u64,
    /// When the first rank gave up.
    pub named_ns: Option<u64>,
    /// Of each time that was watched, and came before the end.
    pub recoveries: Vec<Recovery>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Submit(WorkerId),
    AtSwitch {
        from: WorkerId,
        to: Destination,
        mark: Mark,
        frame: Vec<u8>,
    },
    AtRank(WorkerId, Mark, Vec<u8>),
    Wake(WorkerId),
    Death(WorkerId),
    /// A frame that is between switches arrives.
    BetweenSwitches,
    Watch,
}

struct Member {
    machine: Rank,
    given: usize,
    sums: Vec<Result<Sums, NonFinite>>,
    end: RankEnd,
    wake_ns: Option<u64>,
    to_switch: Link,
    from_switch: Link,
}

struct Run<'a, S> {
    config: &'a Config,
    switch: &'a mut S,
    inputs: &'a dyn Fn(usize, WorkerId) -> Values,
    operations: usize,
    rng: ChaCha8Rng,
    now_ns: u64,
    happens: BinaryHeap<Reverse<(u64, u64, Happens)>>,
    scheduled: u64,
    members: Vec<Member>,
    policer: Option<Buckets>,
    network: NetworkCounters,
    named_ns: Option<u64>,
    recoveries: Vec<Recovery>,
    /// When the switches are to be looked at, if that is planned.
    switches_ns: Option<u64>,
}

/// Runs ranks to their end. `inputs` gives a rank's values of an operation.
pub fn run<S: RankSwitch>(
    config: &Config,
    switch: &mut S,
    operations: usize,
    inputs: &dyn Fn(usize, WorkerId) -> Values,
) -> Result<Report, ConfigError> {
    let job = Job::new(config.job)?;
    let members = (0..job.workers()).map(WorkerId).map(|rank| {
        let place = match config.racks {
            Some(racks) => racks.place(&job, rank),
            None => Place::under_one_switch(&job, rank),
        };
        let deadline = config.deadline;
        let lateness = deadline.map(|deadline| deadline.lateness(&job, place));
        let mut machine = Rank::new(Setup {
            job,
            rank,
            place,
            retransmission: config.retransmission,
            dead_after_ns: config.dead_after_ns,
            fallback: config.fallback,
            lateness: lateness.transpose()?,
        });
        if config.fixed_window {
            machine.fix_window();
        }
        Ok(Member {
            machine,
            given: 0,
            sums: Vec::new(),
            end: RankEnd::Hung,
            wake_ns: None,
            to_switch: Link::new(config.faults, config.delay_ns).with_rate(config.rate),
            from_switch: Link::new(config.faults, config.delay_ns).with_rate(config.rate),
        })
    });
    let members = members.collect::<Result<Vec<_>, ConfigError>>()?;
    let run = Run {
        config,
        switch,
        inputs,
        operations,
        rng: ChaCha8Rng::seed_from_u64(config.seed),
        now_ns: 0,
        happens: BinaryHeap::new(),
        scheduled: 0,
        members,
        policer: config.policer.map(Buckets::full),
        network: NetworkCounters::default(),
        named_ns: None,
        recoveries: Vec::new(),
        switches_ns: None,
    };
    Ok(run.finish())
}

impl<S: RankSwitch> Run<'_, S> {
    fn finish(mut self) -> Report {
        for rank in 0..self.members.len() {
            self.plan_submission(WorkerId(rank as u16));
        }
        for (rank, at_ns) in &self.config.deaths {
            self.schedule(*at_ns, Happens::Death(*rank));
        }
        for at_ns in &self.config.watched_ns {
            self.schedule(*at_ns, Happens::Watch);
        }
        while self
            .members
            .iter()
            .any(|member| member.end == RankEnd::Hung)
            && let Some(Reverse((at_ns, _, happens))) = self.happens.pop()
            && at_ns <= self.config.deadline_ns
        {
            self.now_ns = at_ns;
            self.handle(happens);
            let (now_ns, members) = (self.now_ns, &self.members);
            for recovery in self
                .recoveries
                .iter_mut()
                .filter(|recovery| recovery.took_ns.is_none())
            {
                recovery.look(now_ns, members.iter().map(|member| &member.machine));
            }
        }
        Report {
            ends: self
                .members
                .iter()
                .map(|member| member.end.clone())
                .collect(),
            counters: self
                .members
                .iter()
                .map(|member| member.machine.counters())
                .collect(),
            residuals: self
                .members
                .iter()
                .map(|member| {
                    let residuals = member.machine.residuals();
                    residuals
                        .map(|(key, values)| (key, values.clone()))
                        .collect()
                })
                .collect(),
            sums: self.members.into_iter().map(|member| member.sums).collect(),
            network: self.network,
            ended_ns: self.now_ns,
            named_ns: self.named_ns,
            recoveries: self.recoveries,
        }
    }

    fn schedule(&mut self, at_ns: u64, happens: Happens) {
        self.happens.push(Reverse((at_ns, self.scheduled, happens)));
        self.scheduled += 1;
    }

    fn plan_submission(&mut self, rank: WorkerId) {
        let pause_ns = match self.config.steps {
            None => below(&mut self.rng, self.config.pause_ns),
            Some(steps) if chance(&mut self.rng, steps.stalls) => {
                steps.compute_ns + below(&mut self.rng, steps.stall_ns)
            }
            Some(steps) => steps.compute_ns,
        };
        self.schedule(self.now_ns + pause_ns, Happens::Submit(rank));
    }

    fn member(&mut self, rank: WorkerId) -> &mut Member {
        &mut self.members[usize::from(rank.0)]
    }

    fn handle(&mut self, happens: Happens) {
        let now_ns = self.now_ns;
        if let Happens::Submit(rank) | Happens::AtRank(rank, ..) | Happens::Wake(rank) = &happens
            && self.member(*rank).end == RankEnd::Died
        {
            self.network.at_the_dead += u64::from(matches!(happens, Happens::AtRank(..)));
            return;
        }
        match happens {
            Happens::Death(rank) => self.member(rank).end = RankEnd::Died,
            Happens::Watch => {
                let ranks = self.members.iter().map(|member| &member.machine);
                self.recoveries.push(Recovery::begin(now_ns, ranks));
            }
            Happens::Submit(rank) => {
                let inputs = self.inputs;
                let config = self.config;
                let mut reduction = config.reduction;
                reduction.average ^= config.averages_at == Some(rank);
                let member = self.member(rank);
                let given = member.given;
                member.given += 1;
                let reduction = Reduction {
                    share: (config.share)(given, rank),
                    ..reduction
                };
                // One that has failed takes nothing.
                let _ = member.machine.submit_as(inputs(given, rank), reduction);
                if given + 1 < self.operations && self.config.steps.is_none() {
                    self.plan_submission(rank);
                }
                self.pump(rank);
            }
            Happens::AtSwitch {
                from,
                to,
                mark,
                frame,
            } => self.at_switch(from, to, mark, &frame),
            Happens::BetweenSwitches => {
                self.switches_ns = None;
                let mut out = Vec::new();
                self.switch.arrive(now_ns, &mut out);
                self.send_down(Mark::None, out);
            }
            Happens::AtRank(rank, mark, frame) => {
                self.member(rank)
                    .machine
                    .handle_packet(now_ns, mark, &frame);
                self.pump(rank);
            }
            Happens::Wake(rank) => {
                let member = self.member(rank);
                member.wake_ns = None;
                member.machine.handle_timeout(now_ns);
                self.pump(rank);
            }
        }
    }

    /// What the switch sends has the mark of the frame that it is made of, as it has its headers.
    fn at_switch(&mut self, from: WorkerId, to: Destination, mark: Mark, frame: &[u8]) {
        let now_ns = self.now_ns;
        let bytes = frame.len() as u64 + HEADERS;
        let passed = match &mut self.policer {
            Some(policer) => policer.take(now_ns, bytes),
            None => Some(Mark::None),
        };
        let Some(passed) = passed else {
            self.network.overflowed += 1;
            return;
        };
        self.network.marked += u64::from(passed == Mark::Congested);
        let mut out = Vec::new();
        self.switch.handle(now_ns, from, to, frame, &mut out);
        self.send_down(mark.max(passed), out);
    }

    /// Sends what switches have given to the ranks' links, and plans to look at those between switches, which do not mark.
    fn send_down(&mut self, mark: Mark, out: Vec<(WorkerId, Vec<u8>)>) {
        let now_ns = self.now_ns;
        for (to, frame) in out {
            let link = &mut self.members[usize::from(to.0)].from_switch;
            let (arrivals, queue) =
                link.send(now_ns, frame.len(), &mut self.rng, &mut self.network);
            let mark = mark.max(queue);
            for at_ns in arrivals.into_iter().flatten() {
                self.schedule(at_ns, Happens::AtRank(to, mark, frame.clone()));
            }
        }
        if let Some(at_ns) = self.switch.next_ns()
            && self.switches_ns.is_none_or(|planned_ns| at_ns < planned_ns)
        {
            self.switches_ns = Some(at_ns);
            self.schedule(at_ns.max(now_ns), Happens::BetweenSwitches);
        }
    }

    /// Sends what a rank has to send, and takes what it has to say.
    fn pump(&mut self, rank: WorkerId) {
        let now_ns = self.now_ns;
        let operations = self.operations;
        let mut buffer = Vec::new();
        while let Some(to) = self.member(rank).machine.poll_transmit(now_ns, &mut buffer) {
            let link = &mut self.members[usize::from(rank.0)].to_switch;
            let (arrivals, mark) =
                link.send(now_ns, buffer.len(), &mut self.rng, &mut self.network);
            for at_ns in arrivals.into_iter().flatten() {
                let frame = buffer.clone();
                self.schedule(
                    at_ns,
                    Happens::AtSwitch {
                        from: rank,
                        to,
                        mark,
                        frame,
                    },
                );
            }
        }
        let member = self.member(rank);
        let mut failed = false;
        let done_before = member.sums.len();
        while let Some(event) = member.machine.poll_event() {
            match event {
                Event::Done { outcome, .. } => member.sums.push(outcome),
                Event::Failed(error) => {
                    member.end = RankEnd::Failed(error);
                    failed = true;
                }
            }
        }
        if member.sums.len() == operations && member.end == RankEnd::Hung {
            member.end = RankEnd::Done;
        }
        let is_next = member.sums.len() > done_before && member.given < operations;
        let wake_ns = member.machine.poll_timeout();
        if let Some(at_ns) = wake_ns.filter(|at_ns| member.wake_ns.is_none_or(|wake| *at_ns < wake))
        {
            member.wake_ns = Some(at_ns);
            self.schedule(at_ns.max(now_ns), Happens::Wake(rank));
        }
        if is_next && self.config.steps.is_some() {
            self.plan_submission(rank);
        }
        if failed {
            self.named_ns.get_or_insert(now_ns);
        }
    }
}
