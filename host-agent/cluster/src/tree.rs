//! Models of the switches of an all-reduce with the reference implementation: a single switch, or one per rack and one above.

use aggregation::Destination;
use aggregation::job::{CellIndex, Job, TreePosition, WorkerId};
use aggregation::slot::{CellView, SlotTable};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use wire::{Kind, Packet};

use crate::between::{Between, Hop};
use crate::network::chance;
use crate::{Faults, Rate};

/// Model of one or several switches between the ranks of an all-reduce.
pub trait RankSwitch {
    /// Processes a rank's frame (from the aggregation header on), and appends outgoing frames with their ranks to `out`.
    fn handle(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    );

    /// Time at which the next frame arrives on a link between switches; `None` if no frame is under way.
    fn next_ns(&self) -> Option<u64> {
        None
    }

    /// Processes all frames that have arrived on links between switches by `_now_ns`; appends outgoing frames to `_out`.
    fn arrive(&mut self, _now_ns: u64, _out: &mut Vec<(WorkerId, Vec<u8>)>) {}
}

/// Division of an all-reduce's ranks into racks of equal size; each rack has a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Racks {
    /// Number of ranks per rack; the last rack may have fewer.
    pub size: u16,
}

impl Racks {
    /// Number of racks for the job's ranks.
    pub fn count(self, job: &Job) -> u16 {
        job.workers().div_ceil(self.size)
    }

    /// Number of ranks in the rack with the index `rack`, from 0.
    fn ranks(self, job: &Job, rack: u16) -> u16 {
        self.size.min(job.workers() - rack * self.size)
    }

    /// Position of a rank in the tree of switches.
    pub fn place(self, job: &Job, rank: WorkerId) -> TreePosition {
        TreePosition {
            child: WorkerId(rank.0 % self.size),
            siblings: self.ranks(job, rank.0 / self.size) as u8,
            top: self.count(job) as u8,
        }
    }
}

/// Model of one or several switches that sum with the reference implementation. A restart of a switch clears its cells.
#[derive(Debug, Clone)]
pub struct RankSlotSwitch {
    job: Job,
    racks: Option<Racks>,
    has_deadlines: bool,
    /// Slots (where chunks are summed) of each switch: of the topmost switch, then of the racks' switches.
    slots: Vec<SlotTable>,
    /// Planned restarts, the earliest first: time in nanoseconds, and index of the switch in `slots`.
    restarts: Vec<(u64, usize)>,
    /// Periods in which UPDATEs are lost: time in nanoseconds, and the rank whose UPDATEs are lost (`None`: all ranks').
    outages: Vec<(std::ops::Range<u64>, Option<WorkerId>)>,
    /// Faults of the links between switches.
    faults: Faults,
    rng: ChaCha8Rng,
    /// Links between switches; `None` if frames cross them without delay.
    between: Option<Between>,
}

impl RankSlotSwitch {
    /// Creates a single switch that sums the values of all ranks.
    pub fn new(job: Job) -> Self {
        Self::with(job, None, vec![SlotTable::new(job)])
    }

    /// Creates a tree of switches: one per rack, and one topmost switch above them.
    pub fn tree(job: Job, racks: Racks) -> Self {
        let count = racks.count(&job);
        let of_rack = |rack| SlotTable::with_children(job, racks.ranks(&job, rack) as u8);
        let slots = std::iter::once(SlotTable::with_children(job, count as u8))
            .chain((0..count).map(of_rack));
        Self::with(job, Some(racks), slots.collect())
    }

    fn with(job: Job, racks: Option<Racks>, slots: Vec<SlotTable>) -> Self {
        Self {
            job,
            racks,
            has_deadlines: false,
            slots,
            restarts: Vec::new(),
            outages: Vec::new(),
            faults: Faults::NONE,
            rng: ChaCha8Rng::seed_from_u64(0),
            between: None,
        }
    }

    /// Lets switches close a chunk after a deadline without all contributions. All cells are already opened (prepared) for it.
    #[must_use]
    pub fn with_deadlines(self) -> Self {
        let mut switch = self.with_deadlines_unopened();
        let slots = switch.slots.into_iter();
        switch.slots = slots.map(SlotTable::opened).collect();
        switch
    }

    /// Lets switches close a chunk after a deadline without all contributions; ranks must open each cell first by a probe.
    #[must_use]
    pub fn with_deadlines_unopened(mut self) -> Self {
        self.has_deadlines = true;
        let slots = self.slots.into_iter();
        self.slots = slots.map(SlotTable::with_deadlines).collect();
        self
    }

    /// Content of a cell (where the topmost switch sums one chunk); `None` if the switch has no such cell.
    pub fn cell(&self, cell: CellIndex) -> Option<CellView<'_>> {
        self.slots[0].cell(cell)
    }

    /// Adds faults to the links between switches: frames are lost or duplicated at random, by `seed`.
    #[must_use]
    pub fn with_faults(mut self, seed: u64, faults: Faults) -> Self {
        self.faults = faults;
        self.rng = ChaCha8Rng::seed_from_u64(seed);
        self
    }

    /// Gives the links between switches a rate and a delay in each direction; without this, frames cross them at once. Call it
    /// after [`with_faults`](Self::with_faults).
    #[must_use]
    pub fn with_rate(mut self, rate: Rate, delay_ns: u64) -> Self {
        let racks = self.racks.map_or(0, |racks| racks.count(&self.job));
        self.between = Some(Between::new(racks, self.faults, delay_ns, rate));
        self
    }

    /// Adds a restart of a switch at this time. `switch` is 0 for the topmost switch; the racks' switches follow from 1 on.
    #[must_use]
    pub fn restarting(mut self, at_ns: u64, switch: usize) -> Self {
        self.restarts.push((at_ns, switch));
        self.restarts.sort_unstable();
        self
    }

    /// Adds a period in which UPDATEs of a rank are lost (`None`: of every rank). Other frames pass.
    #[must_use]
    pub fn silent(mut self, when_ns: std::ops::Range<u64>, rank: Option<WorkerId>) -> Self {
        self.outages.push((when_ns, rank));
        self
    }

    /// Number of planned restarts that have not happened yet.
    pub fn restarts_left(&self) -> usize {
        self.restarts.len()
    }

    fn restart(&mut self, now_ns: u64) {
        while let Some((at_ns, switch)) = self.restarts.first().copied()
            && at_ns <= now_ns
        {
            self.restarts.remove(0);
            let children = match (self.racks, switch) {
                (None, _) => self.job.workers(),
                (Some(racks), 0) => racks.count(&self.job),
                (Some(racks), rack) => racks.ranks(&self.job, rack as u16 - 1),
            };
            let forgotten = SlotTable::with_children(self.job, children as u8);
            self.slots[switch] = match self.has_deadlines {
                true => forgotten.with_deadlines(),
                false => forgotten,
            };
        }
    }

    /// Draws how many copies of a frame arrive over a link between two switches: 0, 1 or 2.
    fn copies(&mut self) -> usize {
        match chance(&mut self.rng, self.faults.loss) {
            true => 0,
            false => 1 + usize::from(chance(&mut self.rng, self.faults.duplicate)),
        }
    }

    /// Sends a frame of the topmost switch through the racks' switches, to all ranks or to one rank.
    fn send(
        &mut self,
        now_ns: u64,
        to: Destination,
        frame: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    ) {
        let racks = self.racks.unwrap_or(Racks {
            size: self.job.workers(),
        });
        let all = 0..self.job.workers();
        let to_ranks: Vec<u16> = match to {
            Destination::All => all.collect(),
            Destination::Worker(rank) => all.filter(|other| *other == rank.0).collect(),
            Destination::Server => Vec::new(),
        };
        for of_rack in to_ranks.chunk_by(|a, b| a / racks.size == b / racks.size) {
            if let Some(between) = &mut self.between {
                let ranks = of_rack.iter().copied().map(WorkerId).collect();
                let rack = of_rack[0] / racks.size;
                between.send(now_ns, rack, Hop::ToRanks(ranks), frame, &mut self.rng);
                continue;
            }
            let copies = if self.racks.is_some() {
                self.copies()
            } else {
                1
            };
            for _ in 0..copies {
                out.extend(of_rack.iter().map(|rank| (WorkerId(*rank), frame.to_vec())));
            }
        }
    }

    /// Processes a frame at the topmost switch: sums it, and sends the resulting SUM.
    fn at_top(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    ) {
        let mut sum = payload.to_vec();
        let mut packet = Packet::new_unchecked(&mut sum[..]);
        let outcome = self.slots[0].update(&packet);
        if self.slots[0].make_sum(outcome, &mut packet) {
            let to = match outcome.is_for_sender() {
                true => Destination::Worker(from),
                false => to,
            };
            self.send(now_ns, to, &sum, out);
        }
    }
}

impl RankSwitch for RankSlotSwitch {
    fn handle(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    ) {
        self.restart(now_ns);
        let Ok(packet) = Packet::new_checked(payload) else {
            return;
        };
        if packet.kind() != Kind::Update {
            self.send(now_ns, to, payload, out);
            return;
        }
        let mut outages = self.outages.iter();
        if outages.any(|(when_ns, rank)| {
            when_ns.contains(&now_ns) && rank.is_none_or(|rank| rank == from)
        }) {
            return;
        }
        let child = match self.racks {
            None => from,
            Some(racks) => racks.place(&self.job, from).child,
        };
        // A rank may only use its own port.
        if packet.worker() != child.0 {
            return;
        }
        let Some(racks) = self.racks else {
            self.at_top(now_ns, from, to, payload, out);
            return;
        };
        let rack = from.0 / racks.size;
        let slots = &mut self.slots[usize::from(rack) + 1];
        let outcome = slots.update(&packet);
        let mut frame = payload.to_vec();
        let mut packet = Packet::new_unchecked(&mut frame[..]);
        if slots.make_update(outcome, WorkerId(rack), &mut packet) {
            if let Some(between) = &mut self.between {
                between.send(now_ns, rack, Hop::ToTop { from, to }, &frame, &mut self.rng);
                return;
            }
            for _ in 0..self.copies() {
                self.at_top(now_ns, from, to, &frame, out);
            }
        } else if slots.make_sum(outcome, &mut packet) {
            // A probe of a chunk that is not complete at this switch.
            out.push((from, frame));
        }
    }

    fn next_ns(&self) -> Option<u64> {
        self.between.as_ref().and_then(Between::next_ns)
    }

    fn arrive(&mut self, now_ns: u64, out: &mut Vec<(WorkerId, Vec<u8>)>) {
        self.restart(now_ns);
        while let Some((hop, frame)) = self
            .between
            .as_mut()
            .and_then(|between| between.take(now_ns))
        {
            match hop {
                Hop::ToTop { from, to } => self.at_top(now_ns, from, to, &frame, out),
                Hop::ToRanks(ranks) => {
                    out.extend(ranks.into_iter().map(|rank| (rank, frame.clone())))
                }
            }
        }
    }
}
