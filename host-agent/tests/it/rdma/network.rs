//! Ranks that use RoCEv2 with a switch, over a network with seeded losses, duplicates and reordering, in virtual time. The
//! provider's own clock is the machine's, but an unreliable connection has no timers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use aggregation::job::{Job, TreePosition, WorkerId};
use aggregation::rank::{Fallback, Rank, RankEvent, Setup, Sums, Values};
use aggregation::{Mark, Retransmission};
use cluster::Faults;
use cluster::ranks::{Racks, RankSlotSwitch};
use cluster::rdma::{LinkFrame, RdmaSwitch};
use frames::{Received, Sink};
use host_agent::collective::{Carrier, CollectiveError, Config, Rdma, Takes};
use host_agent::frames::{Endpoint, Frames, build, open};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rdma::Provider;
use rdma::software::{Software, SoftwareOptions};
use roce::packet::Mtu;

use crate::support::roce::address;
use crate::support::{addressed, endpoint};

const MS: u64 = 1_000_000;
const DELAY_NS: u64 = 10_000;
/// Maximum time between the arrival of a frame and the rank's poll, so that several arrive in a batch.
const LOOKS_NS: u64 = 30_000;
const BURST: usize = 64;
/// Maximum duration of a run.
const END_NS: u64 = 60_000 * MS;

/// Timeouts that fit the delays.
pub fn retransmission() -> Retransmission {
    Retransmission {
        floor_ns: MS / 5,
        granularity_ns: 0,
        initial_ns: MS / 2,
        ceiling_ns: 3 * MS,
        max_timeouts: 100,
        max_closing_timeouts: 8,
        fast_threshold: 4,
        ask_after: 2,
    }
}

type Queue = Arc<Mutex<VecDeque<Vec<u8>>>>;

/// One end of a link, in memory.
#[derive(Clone, Default)]
pub struct Wire {
    out: Queue,
    came: Queue,
}

impl Frames for Wire {
    /// Takes all frames that have arrived at once, as from a device.
    fn receive(&mut self, _budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let came: Vec<Vec<u8>> = self.came.lock().unwrap().drain(..).collect();
        sink.arrived();
        came.iter().for_each(|frame| sink.frame(frame, 0));
        Ok(Received {
            frames: came.len(),
            errors: 0,
        })
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.out.lock().unwrap().push_back(frame.to_vec());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<usize> {
        Ok(0)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn name(&self) -> &str {
        "wire"
    }
}

/// Configuration of the ranks and the network.
pub struct Options {
    pub seed: u64,
    pub job: Job,
    pub racks: Option<Racks>,
    pub faults: Faults,
    pub fallback: Option<Fallback>,
}

pub struct Node {
    pub rank: Rank,
    pub carrier: Rdma<Software<Wire>, Wire>,
    roce: Wire,
    udp: Wire,
    pub done: Vec<Sums>,
    pub failed: Option<CollectiveError>,
    looks_ns: Option<u64>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    AtSwitch(u16, LinkFrame),
    AtRank(u16, u16, LinkFrame),
    Looks(u16),
    /// The switch restarts.
    Restart,
}

pub struct Network {
    pub now_ns: u64,
    pub nodes: Vec<Node>,
    pub switch: RdmaSwitch<RankSlotSwitch>,
    faults: Faults,
    rng: ChaCha8Rng,
    happens: BinaryHeap<Reverse<(u64, u64, Happens)>>,
    order: u64,
    pub lost: u64,
}

impl Network {
    pub fn new(options: &Options, slots: RankSlotSwitch) -> Self {
        let job = options.job;
        let place = |rank| match options.racks {
            Some(racks) => racks.place(&job, rank),
            None => TreePosition::under_one_switch(&job, rank),
        };
        let ranks = (0..job.workers()).map(|rank| (address(rank), place(WorkerId(rank))));
        let peers: Vec<Endpoint> = (0..job.workers()).map(endpoint).collect();
        let nodes = (0..job.workers()).map(|rank| {
            let setup = Setup {
                place: place(WorkerId(rank)),
                dead_after_ns: Some(100 * MS),
                fallback: options.fallback,
                ..Setup::under_one_switch(job, WorkerId(rank), retransmission())
            };
            let config = Config {
                setup,
                me: endpoint(rank),
                peers: peers.clone(),
            };
            let (roce, udp) = (Wire::default(), Wire::default());
            let provider = provider(roce.clone(), rank, options.seed);
            Node {
                rank: Rank::new(setup),
                carrier: Rdma::new(provider, udp.clone(), &config).unwrap(),
                roce,
                udp,
                done: Vec::new(),
                failed: None,
                looks_ns: None,
            }
        });
        let mut network = Self {
            now_ns: 0,
            nodes: nodes.collect(),
            switch: RdmaSwitch::new(slots, job.id().0, job.window(), ranks.collect()),
            faults: options.faults,
            rng: ChaCha8Rng::seed_from_u64(options.seed),
            happens: BinaryHeap::new(),
            order: 0,
            lost: 0,
        };
        for rank in 0..job.workers() {
            let after_ns = network.below(50_000);
            network.look(rank, after_ns);
        }
        network
    }

    fn below(&mut self, options: u64) -> u64 {
        self.rng.next_u64() % options
    }

    fn happens_by(&mut self, share: f64) -> bool {
        (self.rng.next_u64() as f64) < share * u64::MAX as f64
    }

    fn schedule(&mut self, at_ns: u64, happens: Happens) {
        self.happens.push(Reverse((at_ns, self.order, happens)));
        self.order += 1;
    }

    /// Schedules a restart of the switch, which then has forgotten everything.
    pub fn restart_after(&mut self, after_ns: u64) {
        self.schedule(self.now_ns + after_ns, Happens::Restart);
    }

    /// Schedules a rank's poll after this time, if there is no earlier one.
    fn look(&mut self, rank: u16, after_ns: u64) {
        let at_ns = self.now_ns + after_ns;
        let planned = &mut self.nodes[usize::from(rank)].looks_ns;
        if planned.is_none_or(|planned_ns| at_ns < planned_ns) {
            *planned = Some(at_ns);
            self.schedule(at_ns, Happens::Looks(rank));
        }
    }

    /// Arrival times of a frame's copies: none, one or two.
    fn arrivals(&mut self) -> Vec<u64> {
        if self.happens_by(self.faults.loss) {
            self.lost += 1;
            return Vec::new();
        }
        let copies = 1 + usize::from(self.happens_by(self.faults.duplicate));
        (0..copies)
            .map(|_| {
                let late_ns = match self.happens_by(self.faults.reorder) {
                    true => self.below(self.faults.reorder_ns.max(1)),
                    false => 0,
                };
                self.now_ns + DELAY_NS + late_ns
            })
            .collect()
    }

    /// Submits values to a rank.
    pub fn submit(&mut self, rank: usize, values: Values) {
        self.nodes[rank].rank.submit(values).unwrap();
        self.look(rank as u16, 0);
    }

    /// Runs until the condition holds, or no event is left.
    pub fn run(&mut self, until: impl Fn(&Self) -> bool) {
        while !until(self)
            && let Some(Reverse((at_ns, _, happens))) = self.happens.pop()
            && at_ns <= END_NS
        {
            self.now_ns = at_ns;
            match happens {
                Happens::AtSwitch(from, frame) => self.at_switch(from, &frame),
                Happens::AtRank(from, to, frame) => self.at_rank(from, to, frame),
                Happens::Looks(rank) => {
                    let node = &mut self.nodes[usize::from(rank)];
                    if node.looks_ns == Some(at_ns) {
                        node.looks_ns = None;
                        self.looks(rank);
                    }
                }
                Happens::Restart => self.switch.forget(),
            }
        }
    }

    /// Runs until all ranks have this many sums, or have failed.
    pub fn run_to_end(&mut self, operations: usize) {
        self.run(|network| {
            let mut nodes = network.nodes.iter();
            nodes.all(|node| node.done.len() >= operations || node.failed.is_some())
        });
    }

    fn at_switch(&mut self, from: u16, frame: &LinkFrame) {
        let (worker, mut out) = (WorkerId(from), Vec::new());
        match frame {
            LinkFrame::Roce(frame) => {
                self.switch
                    .handle_roce(self.now_ns, worker, frame, &mut out);
            }
            LinkFrame::Udp(frame) => {
                let (to, addressee) = addressed(frame, from);
                if let Some(payload) = open(frame, addressee) {
                    self.switch
                        .handle_udp(self.now_ns, worker, to, payload, &mut out);
                }
            }
        }
        for (to, frame) in out {
            for at_ns in self.arrivals() {
                self.schedule(at_ns, Happens::AtRank(from, to.0, frame.clone()));
            }
        }
    }

    /// Delivers a frame to a rank: from the switch or, over UDP, caused by a frame of rank `from`.
    pub fn at_rank(&mut self, from: u16, to: u16, frame: LinkFrame) {
        let node = &self.nodes[usize::from(to)];
        match frame {
            LinkFrame::Roce(frame) => node.roce.came.lock().unwrap().push_back(frame),
            LinkFrame::Udp(payload) => {
                let mut frame = Vec::new();
                build(&mut frame, endpoint(from), endpoint(to), &payload);
                node.udp.came.lock().unwrap().push_back(frame);
            }
        }
        let after_ns = self.below(LOOKS_NS);
        self.look(to, after_ns);
    }

    /// Runs one iteration of a member's thread.
    fn looks(&mut self, rank: u16) {
        let now_ns = self.now_ns;
        let node = &mut self.nodes[usize::from(rank)];
        if node.failed.is_some() {
            return;
        }
        if let Err(error) = node.looks(now_ns) {
            node.failed = Some(error);
        }
        let due_ns = node.rank.poll_timeout().into_iter();
        let due_ns = due_ns.chain(node.carrier.poll_timeout(now_ns)).min();
        let mut out = Vec::new();
        out.extend(node.roce.out.lock().unwrap().drain(..).map(LinkFrame::Roce));
        out.extend(node.udp.out.lock().unwrap().drain(..).map(LinkFrame::Udp));
        for frame in out {
            for at_ns in self.arrivals() {
                self.schedule(at_ns, Happens::AtSwitch(rank, frame.clone()));
            }
        }
        if let Some(due_ns) = due_ns {
            self.look(rank, due_ns.saturating_sub(now_ns).max(1_000));
        }
    }
}

/// A RoCEv2 provider over a wire.
pub fn provider<F: Frames>(frames: F, rank: u16, seed: u64) -> Software<F> {
    let options = SoftwareOptions {
        name: format!("rank {rank}"),
        address: address(rank),
        max_mtu: Mtu::B1024,
        seed: seed << 16 | u64::from(rank),
        source_port: None,
        resolve: Box::new(|ip| {
            Err(rdma::neighbour::NeighbourError::Silent {
                ip,
                interface: "none: a switch has no ARP".to_owned(),
            })
        }),
    };
    Software::new(frames, options)
}

impl Node {
    /// Whether all RoCEv2 frames that have arrived were processed.
    pub fn has_looked(&self) -> bool {
        self.roce.came.lock().unwrap().is_empty()
    }

    /// Content of the memory region.
    pub fn results(&self) -> Vec<u8> {
        let region = self.carrier.results();
        let mut bytes = vec![0; region.len];
        self.carrier.provider().copy_out(&region, 0, &mut bytes);
        bytes
    }

    /// A counter of its provider.
    pub fn counted(&self, name: &str) -> u64 {
        let counters = self.carrier.provider().all_counters();
        let mut counters = counters.iter();
        counters.find(|(other, _)| *other == name).unwrap().1
    }

    fn looks(&mut self, now_ns: u64) -> Result<(), CollectiveError> {
        loop {
            self.carrier.handle_timeout(now_ns)?;
            self.transmit(now_ns)?;
            let mut taker = Taker(now_ns, &mut self.rank);
            let received = self.carrier.receive(now_ns, BURST, &mut taker)?;
            self.rank.handle_timeout(now_ns);
            while let Some(event) = self.rank.poll_event() {
                match event {
                    RankEvent::Done { outcome, .. } => self.done.push(outcome.unwrap()),
                    RankEvent::Failed(error) => return Err(error.into()),
                }
            }
            if received == 0 {
                return self.transmit(now_ns);
            }
        }
    }

    fn transmit(&mut self, now_ns: u64) -> Result<(), CollectiveError> {
        let mut frame = Vec::new();
        while self.carrier.is_ready()
            && let Some(to) = self.rank.poll_transmit(now_ns, &mut frame)
        {
            self.carrier.send(now_ns, to, &frame)?;
        }
        self.carrier.flush()
    }
}

struct Taker<'a>(u64, &'a mut Rank);

impl Takes for Taker<'_> {
    fn take(&mut self, mark: Mark, frame: &[u8]) {
        self.1.handle_packet(self.0, mark, frame);
    }

    fn unreachable(&mut self, _host: Ipv4Addr) {}

    fn near(&self, low: u16) -> (u32, u8) {
        let (chunk, scale) = self.1.near(low);
        (chunk.0, scale.bits())
    }
}
