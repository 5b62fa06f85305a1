//! Simulates all-reduces in virtual time: ranks, any implementation of the switch, and a network with seeded faults.

mod config;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aggregation::job::{Job, TreePosition, WorkerId};
use aggregation::rank::{
    NonFinite, Rank, RankCounters, RankError, RankEvent, Reduction, Setup, Sums, Values,
};
use aggregation::{Destination, Mark};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::NetworkCounters;
use crate::network::{Buckets, HEADERS, Link, below, chance};

pub use crate::recovery::Recovery;
pub use crate::tree::{Racks, RankSlotSwitch, RankSwitch};
pub use config::{AllReduceConfig, AllReduceConfigError, Deadline, Steps};

/// How a rank of a simulated all-reduce ended.
#[derive(Debug, Clone, PartialEq)]
pub enum RankEnd {
    /// All operations of the rank have finished.
    Done,
    /// The rank gave up with this error.
    Failed(RankError),
    /// The rank died, as its configuration said.
    Died,
    /// The rank was still waiting at the end of the run.
    Hung,
}

/// Results of a simulated all-reduce.
#[derive(Debug, Clone)]
pub struct AllReduceReport {
    /// How each rank ended, in order of rank.
    pub ends: Vec<RankEnd>,
    /// For each rank, in order, the outcome of each operation: sums, or the error that a value was not finite.
    pub sums: Vec<Vec<Result<Sums, NonFinite>>>,
    /// For each rank, in order, values that came too late for a sum and were not added later: key of the tensor, values.
    pub residuals: Vec<Vec<(u64, Values)>>,
    /// Counters of each rank, in order of rank.
    pub counters: Vec<RankCounters>,
    /// Counters of the simulated network.
    pub network: NetworkCounters,
    /// Virtual time at which the last rank ended, in nanoseconds.
    pub ended_ns: u64,
    /// Virtual time at which the first rank gave up, in nanoseconds; `None` if no rank did.
    pub named_ns: Option<u64>,
    /// How the ranks recovered after each time in the configuration's `watched_ns`.
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
    /// A frame on a link between two switches arrives.
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

struct AllReduceRun<'a, S> {
    config: &'a AllReduceConfig,
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
    /// Virtual time of the next scheduled poll of the links between switches; `None` if no poll is scheduled.
    switches_ns: Option<u64>,
}

/// Simulates all ranks until the last has ended. `inputs` returns the values of a rank for an operation (index from 0).
pub fn run<S: RankSwitch>(
    config: &AllReduceConfig,
    switch: &mut S,
    operations: usize,
    inputs: &dyn Fn(usize, WorkerId) -> Values,
) -> Result<AllReduceReport, AllReduceConfigError> {
    let job = Job::new(config.job)?;
    let members = (0..job.workers()).map(WorkerId).map(|rank| {
        let place = match config.racks {
            Some(racks) => racks.place(&job, rank),
            None => TreePosition::under_one_switch(&job, rank),
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
    let members = members.collect::<Result<Vec<_>, AllReduceConfigError>>()?;
    let run = AllReduceRun {
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

impl<S: RankSwitch> AllReduceRun<'_, S> {
    fn finish(mut self) -> AllReduceReport {
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
        AllReduceReport {
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
                // A failed rank accepts nothing.
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

    /// Processes a rank's frame at the switch. Frames that the switch sends for it get the frame's congestion mark.
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

    /// Sends the switches' frames to the ranks, and schedules a poll of the links between switches, which mark no frames.
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

    /// Sends a rank's pending frames, and processes the rank's events.
    fn pump(&mut self, rank: WorkerId) {
        let now_ns = self.now_ns;
        let operations = self.operations;
        let mut buffer = Vec::new();
        while let Some(to) = self.member(rank).machine.poll_packet(now_ns, &mut buffer) {
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
                RankEvent::Done { outcome, .. } => member.sums.push(outcome),
                RankEvent::Failed(error) => {
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
