//! Switches between ranks: one, or racks of them under a spine, with the reference slots.

use aggregation::Destination;
use aggregation::job::{CellIndex, Job, Place, WorkerId};
use aggregation::slot::{CellView, SlotTable};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use wire::{Kind, Packet};

use crate::between::{Between, Hop};
use crate::network::chance;
use crate::{Faults, Rate};

/// A switch between ranks, or several.
pub trait RankSwitch {
    /// Takes a frame in, from the aggregation header on, and appends what it sends to which rank.
    fn handle(
        &mut self,
        now_ns: u64,
        from: WorkerId,
        to: Destination,
        payload: &[u8],
        out: &mut Vec<(WorkerId, Vec<u8>)>,
    );

    /// When the next frame arrives that is between switches.
    fn next_ns(&self) -> Option<u64> {
        None
    }

    /// Takes in what has arrived from other switches by now.
    fn arrive(&mut self, _now_ns: u64, _out: &mut Vec<(WorkerId, Vec<u8>)>) {}
}

/// Which ranks hang at which switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Racks {
    /// So many ranks share a switch, the last rack perhaps fewer.
    pub size: u16,
}

impl Racks {
    /// How many racks there are.
    pub fn count(self, job: &Job) -> u16 {
        job.workers().div_ceil(self.size)
    }

    /// How many ranks a rack has.
    fn ranks(self, job: &Job, rack: u16) -> u16 {
        self.size.min(job.workers() - rack * self.size)
    }

    /// Where a rank stands.
    pub fn place(self, job: &Job, rank: WorkerId) -> Place {
        Place {
            child: WorkerId(rank.0 % self.size),
            siblings: self.ranks(job, rank.0 / self.size) as u8,
            top: self.count(job) as u8,
        }
    }
}

/// Switches with the reference slots. Those that restart forget all.
#[derive(Debug, Clone)]
pub struct SlotSwitch {
    job: Job,
    racks: Option<Racks>,
    has_deadlines: bool,
    /// The topmost first; then those of the racks.
    slots: Vec<SlotTable>,
    /// When which switch restarts, the earliest first.
    restarts: Vec<(u64, usize)>,
    /// From when to when UPDATEs of which rank are lost, or of all.
    outages: Vec<(std::ops::Range<u64>, Option<WorkerId>)>,
    /// What happens between switches.
    faults: Faults,
    rng: ChaCha8Rng,
    /// Links between switches, if they take time.
    between: Option<Between>,
}

impl SlotSwitch {
    /// One switch that sums all.
    pub fn new(job: Job) -> Self {
        Self::with(job, None, vec![SlotTable::new(job)])
    }

    /// A switch for each rack, and one above.
    pub fn tree(job: Job, racks: Racks) -> Self {
        let count = racks.count(&job);
        let of_rack = |rack| SlotTable::of(job, racks.ranks(&job, rack) as u8);
        let slots = std::iter::once(SlotTable::of(job, count as u8)).chain((0..count).map(of_rack));
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

    /// Chunks may be closed; all cells are opened.
    #[must_use]
    pub fn with_deadlines(self) -> Self {
        let mut switch = self.with_deadlines_unopened();
        let slots = switch.slots.into_iter();
        switch.slots = slots.map(SlotTable::opened).collect();
        switch
    }

    /// Chunks may be closed, once their cells are opened.
    #[must_use]
    pub fn with_deadlines_unopened(mut self) -> Self {
        self.has_deadlines = true;
        let slots = self.slots.into_iter();
        self.slots = slots.map(SlotTable::with_deadlines).collect();
        self
    }

    /// What a cell of the topmost switch holds.
    pub fn cell(&self, cell: CellIndex) -> Option<CellView<'_>> {
        self.slots[0].cell(cell)
    }

    /// Frames between switches are lost and come twice, by seed.
    #[must_use]
    pub fn with_faults(mut self, seed: u64, faults: Faults) -> Self {
        self.faults = faults;
        self.rng = ChaCha8Rng::seed_from_u64(seed);
        self
    }

    /// Each rack's link to the topmost switch carries so much each way, and delays; without, no time passes there. After
    /// [`with_faults`](Self::with_faults).
    #[must_use]
    pub fn with_rate(mut self, rate: Rate, delay_ns: u64) -> Self {
        let racks = self.racks.map_or(0, |racks| racks.count(&self.job));
        self.between = Some(Between::new(racks, self.faults, delay_ns, rate));
        self
    }

    /// A switch restarts at this time: 0 is the topmost, then come those of the racks.
    #[must_use]
    pub fn restarting(mut self, at_ns: u64, switch: usize) -> Self {
        self.restarts.push((at_ns, switch));
        self.restarts.sort_unstable();
        self
    }

    /// For that time nothing is summed for a rank, or for nobody: its updates are lost. Other frames pass.
    #[must_use]
    pub fn silent(mut self, when_ns: std::ops::Range<u64>, rank: Option<WorkerId>) -> Self {
        self.outages.push((when_ns, rank));
        self
    }

    /// How many restarts are still to come.
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
            let forgotten = SlotTable::of(self.job, children as u8);
            self.slots[switch] = match self.has_deadlines {
                true => forgotten.with_deadlines(),
                false => forgotten,
            };
        }
    }

    /// How often a frame between two switches arrives.
    fn copies(&mut self) -> usize {
        match chance(&mut self.rng, self.faults.loss) {
            true => 0,
            false => 1 + usize::from(chance(&mut self.rng, self.faults.duplicate)),
        }
    }

    /// What the topmost switch sends goes to all, or by one rack to one.
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

    /// At the topmost switch.
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

impl RankSwitch for SlotSwitch {
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
        // Nobody speaks for another port's rank.
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
            // A probe of what is not complete here.
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
