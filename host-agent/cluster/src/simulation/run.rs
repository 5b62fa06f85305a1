//! The event loop of a simulation of round times: hosts, switches and the frames between them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use aggregation::job::{Job, WorkerId};
use aggregation::rank::{Rank, Setup as RankSetup};
use aggregation::server::Server;
use aggregation::worker::Worker;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::cable::Cable;
use super::host::{Answering, Book, Frame, Host, Identity, Machine, Next, Outbox};
use super::outcome::{Direction, Member, Outcome, Role};
use super::setup::{Address, NodeSpec, PortId, Setup, SetupError, Work};
use super::switch::Switch;

/// Simulates a network and its work until all members have ended.
///
/// # Errors
///
/// [`SetupError`], if the setup is invalid.
pub fn run(setup: &Setup) -> Result<Outcome, SetupError> {
    Ok(SimulationRun::new(setup)?.finish())
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A frame arrives at the port of a node, given by its index.
    Arrives((usize, PortId), Frame),
    Host(usize, Next),
    /// The switch at this node polls for frames.
    Switch(usize),
}

enum Node {
    /// A host: index in [`SimulationRun::hosts`], or `None` if no server, worker or rank runs there.
    Host(Option<usize>),
    Switch(Switch),
}

struct SimulationRun<'a> {
    setup: &'a Setup,
    rng: ChaCha8Rng,
    now_ns: u64,
    /// Scheduled events: time, sequence number of scheduling, event. Ordered so that runs repeat exactly.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    nodes: Vec<Node>,
    hosts: Vec<Host>,
    /// Time at which each shared processor becomes free, in nanoseconds; empty if every host has its own processor.
    processors: Vec<u64>,
    /// Outgoing cables of switches, by node and port.
    cables: Vec<Vec<Cable>>,
    arrivals: Vec<(u64, (usize, PortId), Frame)>,
    switched: Vec<(PortId, Frame)>,
}

impl<'a> SimulationRun<'a> {
    fn new(setup: &'a Setup) -> Result<Self, SetupError> {
        let nodes = setup.nodes.iter().map(|node| {
            Ok(match node {
                NodeSpec::Host { .. } => Node::Host(None),
                NodeSpec::Switch(spec) => Node::Switch(Switch::new(spec, setup.job)?),
            })
        });
        let mut run = Self {
            setup,
            rng: ChaCha8Rng::seed_from_u64(setup.seed),
            now_ns: 0,
            events: BinaryHeap::new(),
            scheduled: 0,
            nodes: nodes.collect::<Result<_, SetupError>>()?,
            hosts: Vec::new(),
            processors: vec![0; setup.costs.processors.unwrap_or(0)],
            cables: cables(setup)?,
            arrivals: Vec::new(),
            switched: Vec::new(),
        };
        run.place_members()?;
        Ok(run)
    }

    fn place_members(&mut self) -> Result<(), SetupError> {
        let setup = self.setup;
        let rounds = setup.rounds;
        let retransmission = setup.retransmission;
        match &setup.work {
            Work::Training {
                server,
                workers,
                mode,
                parts,
                everybody,
            } => {
                let job = Job::under_one_switch(setup.job)?;
                let ranks = workers.iter().map(|worker| address(setup, worker.host));
                let ranks: Rc<[Address]> = ranks.collect::<Result<Vec<_>, _>>()?.into();
                let book = |up| Book {
                    up,
                    everybody: *everybody,
                    ranks: Rc::clone(&ranks),
                    question: up,
                };
                let all = Some(rounds);
                let machine = match parts.as_slice() {
                    [] => Server::new(job, *mode, retransmission, all, Answering, 0),
                    parts => {
                        Server::of_parts(job, parts.to_vec(), retransmission, all, Answering, 0)?
                    }
                };
                let at = address(setup, *server)?;
                let machine = Machine::Server(Box::new(machine));
                self.place(machine, job, *server, Role::Server, book(at))?;
                for (rank, worker) in (0..).zip(workers) {
                    let mut machine = Worker::new(job, WorkerId(rank), retransmission);
                    if let Some((number, child)) = worker.part {
                        machine = machine.in_part(number, child);
                    }
                    let machine = Machine::Worker(Box::new(machine));
                    let role = Role::Rank(rank);
                    self.place(machine, job, worker.host, role, book(worker.to))?;
                }
            }
            Work::AllReduce {
                ranks,
                sum,
                question,
            } => {
                let job = Job::new(setup.job)?;
                let addresses = ranks.iter().map(|rank| address(setup, rank.host));
                let addresses: Rc<[Address]> = addresses.collect::<Result<Vec<_>, _>>()?.into();
                for (number, rank) in (0..).zip(ranks) {
                    let machine = Rank::new(RankSetup {
                        place: rank.place,
                        ..RankSetup::under_one_switch(job, WorkerId(number), retransmission)
                    });
                    let book = Book {
                        up: *sum,
                        everybody: *sum,
                        ranks: Rc::clone(&addresses),
                        question: *question,
                    };
                    let machine = Machine::Rank(Box::new(machine));
                    self.place(machine, job, rank.host, Role::Rank(number), book)?;
                }
            }
        }
        Ok(())
    }

    fn place(
        &mut self,
        machine: Machine,
        job: Job,
        node: usize,
        role: Role,
        book: Book,
    ) -> Result<(), SetupError> {
        let missing = || SetupError::Missing(format!("free host {node} with a link"));
        let address = address(self.setup, node)?;
        let cable = self.cables.get_mut(node).and_then(Vec::pop);
        let cable = cable.ok_or_else(missing)?;
        let Some(Node::Host(place @ None)) = self.nodes.get_mut(node) else {
            return Err(missing());
        };
        *place = Some(self.hosts.len());
        let who = Identity {
            host: node,
            role,
            address,
            book,
        };
        let rounds = self.setup.rounds;
        let host = Host::new(machine, (job, rounds), who, cable, self.setup.costs);
        self.hosts.push(host);
        Ok(())
    }

    fn finish(mut self) -> Outcome {
        for host in 0..self.hosts.len() {
            let next = self.hosts[host].start();
            self.plan(host, Some(next));
        }
        while !self.hosts.iter().all(Host::has_ended)
            && let Some(Reverse((at_ns, _, event))) = self.events.pop()
            && at_ns <= self.setup.limit_ns
        {
            self.now_ns = at_ns;
            match event {
                Event::Arrives((node, port), frame) => self.arrives(node, port, frame),
                Event::Host(host, next) => self.next(host, next),
                Event::Switch(node) => self.switch(node),
            }
        }
        self.outcome()
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.events.push(Reverse((at_ns, self.scheduled, event)));
        self.scheduled += 1;
    }

    fn plan(&mut self, host: usize, next: Option<Next>) {
        if let Some(next) = next {
            self.schedule(next.at_ns(), Event::Host(host, next));
        }
    }

    /// Index of a free processor; `None` if every host has its own. If none is free: error with the time when one will be.
    fn processor(&self) -> Result<Option<usize>, u64> {
        let first = self.processors.iter().enumerate();
        match first.min_by_key(|(_, free_ns)| **free_ns) {
            Some((_, free_ns)) if *free_ns > self.now_ns => Err(*free_ns),
            Some((place, _)) => Ok(Some(place)),
            None => Ok(None),
        }
    }

    fn next(&mut self, host: usize, next: Next) {
        let processor = match (next, self.processor()) {
            // A timer that is merely scheduled needs no processor.
            (Next::Due(_), _) => None,
            (next, Err(free_ns)) => return self.plan(host, Some(next.later(free_ns))),
            (_, Ok(processor)) => processor,
        };
        let now_ns = self.now_ns;
        if let Next::Compute(at_ns) = next {
            let done_ns = at_ns + self.setup.costs.compute_ns;
            self.occupy(processor, done_ns);
            return self.plan(host, Some(Next::Computed(done_ns)));
        }
        let mut arrivals = std::mem::take(&mut self.arrivals);
        let mut outbox = Outbox {
            rng: &mut self.rng,
            arrivals: &mut arrivals,
        };
        let machine = &mut self.hosts[host];
        let then = match next {
            Next::Look(at_ns) => machine.look(at_ns, &mut outbox),
            Next::Computed(at_ns) => machine.computed(at_ns, &mut outbox),
            Next::Due(at_ns) => machine.woken(at_ns),
            Next::Compute(_) => None,
        };
        let busy_ns = machine.busy_ns;
        self.occupy(processor, now_ns + busy_ns);
        self.deliver(&mut arrivals);
        self.arrivals = arrivals;
        self.plan(host, then);
    }

    fn occupy(&mut self, processor: Option<usize>, until_ns: u64) {
        if let Some(free_ns) = processor.and_then(|place| self.processors.get_mut(place)) {
            *free_ns = until_ns;
        }
    }

    fn deliver(&mut self, arrivals: &mut Vec<(u64, (usize, PortId), Frame)>) {
        for (at_ns, at, frame) in arrivals.drain(..) {
            self.schedule(at_ns, Event::Arrives(at, frame));
        }
    }

    fn arrives(&mut self, node: usize, port: PortId, frame: Frame) {
        let now_ns = self.now_ns;
        match &mut self.nodes[node] {
            Node::Host(None) => {}
            Node::Host(Some(host)) => {
                let host = *host;
                let next = self.hosts[host].arrived(now_ns, frame);
                self.plan(host, next);
            }
            Node::Switch(switch) => {
                if switch.arrived(port, frame) {
                    let wake_ns = self.setup.costs.wake_ns;
                    self.schedule(now_ns + wake_ns, Event::Switch(node));
                }
            }
        }
    }

    /// Lets the switch at `node` process its received frames, and sends the resulting frames.
    fn switch(&mut self, node: usize) {
        let now_ns = self.now_ns;
        let mut switched = std::mem::take(&mut self.switched);
        let Node::Switch(switch) = &mut self.nodes[node] else {
            return;
        };
        let frames = switch.turn(&mut self.rng, &mut switched);
        let busy_ns = frames * self.setup.costs.switch_ns;
        let leaves_ns = now_ns + busy_ns;
        // A switch does not wait for a processor, but takes time from a host.
        if let Some(free_ns) = self.processors.iter_mut().min() {
            *free_ns = now_ns.max(*free_ns) + busy_ns;
        }
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for (PortId(port), frame) in switched.drain(..) {
            let ports = &mut self.cables[node];
            if let Some(cable) = port.checked_sub(1).and_then(|port| ports.get_mut(port)) {
                let mut outbox = Outbox {
                    rng: &mut self.rng,
                    arrivals: &mut arrivals,
                };
                outbox.send(cable, leaves_ns, frame);
            }
        }
        self.switched = switched;
        self.deliver(&mut arrivals);
        self.arrivals = arrivals;
        if frames > 0 {
            self.schedule(leaves_ns, Event::Switch(node));
        }
    }

    fn outcome(mut self) -> Outcome {
        let now_ns = self.now_ns;
        let mut members: Vec<Member> = Vec::new();
        for host in self.hosts {
            let (member, cable) = host.report(now_ns);
            self.cables[member.host].push(cable);
            members.push(member);
        }
        let mut passed = vec![0; self.setup.nodes.len()];
        let links = self.setup.links.iter().map(|link| {
            link.ends.map(|end| {
                let cable = self.cables[end].get(passed[end]);
                passed[end] += 1;
                cable.map_or_else(Direction::default, Cable::counted)
            })
        });
        let links = links.collect();
        let dropped = self.nodes.iter().map(|node| match node {
            Node::Switch(switch) => switch.dropped,
            Node::Host(_) => 0,
        });
        let ended_ns = members.iter().map(|member| member.ended_ns).max();
        Outcome {
            ended_ns: ended_ns.unwrap_or(0),
            members,
            links,
            dropped: dropped.sum(),
        }
    }
}

fn address(setup: &Setup, node: usize) -> Result<Address, SetupError> {
    match setup.nodes.get(node) {
        Some(NodeSpec::Host { address }) => Ok(*address),
        _ => Err(SetupError::Missing(format!("host {node}"))),
    }
}

/// Creates the outgoing cables of all nodes, by node and port.
fn cables(setup: &Setup) -> Result<Vec<Vec<Cable>>, SetupError> {
    let mut cables: Vec<Vec<Cable>> = setup.nodes.iter().map(|_| Vec::new()).collect();
    for link in &setup.links {
        if link.ends[0] == link.ends[1] || link.ends.iter().any(|end| *end >= cables.len()) {
            return Err(SetupError::Missing(format!("ends {:?}", link.ends)));
        }
        let arrives_at = link.ends.map(|end| (end, PortId(cables[end].len() + 1)));
        for (end, to) in [(link.ends[0], arrives_at[1]), (link.ends[1], arrives_at[0])] {
            let marks = matches!(setup.nodes[end], NodeSpec::Switch(_));
            cables[end].push(Cable::new(link, to, marks));
        }
    }
    Ok(cables)
}
