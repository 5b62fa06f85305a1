//! Simulation of data transfers that start, share resources at fair rates, and end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Demand, max_min};
use planner::gradient::Resource;

/// Share of a transfer's bits: if a smaller share remains, the transfer has ended.
const ROUNDING: f64 = 1e-12;

/// Number of a transfer, in the order in which transfers were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferId(usize);

impl TransferId {
    /// Number of the transfer that was added `later` transfers after this transfer.
    pub(super) fn offset(self, later: usize) -> TransferId {
        TransferId(self.0.saturating_add(later))
    }
}

impl fmt::Display for TransferId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transfer {}", self.0)
    }
}

/// Use of a resource by a transfer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    pub resource: Resource,
    /// Capacity of the resource in bits a second; infinite if it never limits. The smallest value given for a resource counts.
    pub capacity_bps: f64,
    /// Bits that load the resource for each bit of the transfer.
    pub load: f64,
}

/// Data transfer: bits that go through several resources at one rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    pub bits: f64,
    /// Time at which the bits are ready, in seconds.
    pub start_s: f64,
    /// Transfers that have to end before this transfer starts; it does not start before `start_s` either.
    pub after: Vec<TransferId>,
    /// Weight of the transfer's fair share of a full resource.
    pub weight: f64,
    /// Maximum rate of the transfer, in bits a second.
    pub cap_bps: f64,
    /// Loads of the transfer on resources. A resource that is listed twice is loaded twice.
    pub uses: Vec<Use>,
}

impl Transfer {
    /// Creates a transfer of weight 1 that starts at 0, without a cap and without dependencies.
    #[must_use]
    pub fn new(bits: f64, uses: Vec<Use>) -> Transfer {
        Transfer {
            bits,
            start_s: 0.0,
            after: Vec::new(),
            weight: 1.0,
            cap_bps: f64::INFINITY,
            uses,
        }
    }
}

/// Error of adding or running transfers.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FluidError {
    /// A number (its name and value) of this transfer is not finite or negative, or a weight or load is 0.
    #[error("{0}: its {1} cannot be {2}")]
    Number(TransferId, &'static str, f64),
    /// The first transfer depends on the second transfer, which was added later.
    #[error("{0} waits for {1}, which comes later")]
    Order(TransferId, TransferId),
    /// A message of a collective operation names a rank (first number) that does not exist; the second number is that of ranks.
    #[error("a message of rank {0}, of {1} workers")]
    NoRank(usize, usize),
    /// No path leads from the first node, a server, to the second node, a worker.
    #[error("no way leads from `{0}` to `{1}` that has room left")]
    NoWay(String, String),
    /// A transfer has a rate of 0, and no other transfer will end and free capacity.
    #[error("from {now_s} s on, {transfer} has nothing left of {resource:?}")]
    Stalled {
        /// The first transfer that stalls.
        transfer: TransferId,
        /// The full resource that stalls the transfer; `None` if no resource is full.
        resource: Option<Resource>,
        /// Time at which the transfer stalls, in seconds.
        now_s: f64,
    },
}

/// Start and end of a transfer, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub start_s: f64,
    pub end_s: f64,
}

/// Result of a simulation: times of all transfers and loads of all resources.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    spans: Vec<Span>,
    /// End of the last transfer, in seconds.
    pub end_s: f64,
    /// Number of bits that went through each resource, in the order of resources.
    pub carried: Vec<(Resource, f64)>,
    /// Peak load of each resource as a share of its capacity, without resources that never bind.
    pub peaks: Vec<(Resource, f64)>,
}

impl Outcome {
    /// Start and end of a transfer, in seconds.
    #[must_use]
    pub fn span(&self, transfer: TransferId) -> Span {
        self.spans[transfer.0]
    }
}

/// Simulation: transfers to run, and the capacities of the resources that they share.
#[derive(Debug, Clone, Default)]
pub struct Simulation {
    numbers: BTreeMap<Resource, usize>,
    capacities: Vec<f64>,
    transfers: Vec<AddedTransfer>,
}

#[derive(Debug, Clone)]
struct AddedTransfer {
    transfer: Transfer,
    /// (Resource number, load), each resource once.
    loads: Vec<(usize, f64)>,
    /// Indices of the transfers that depend on this transfer.
    before: Vec<usize>,
}

impl Simulation {
    /// Creates a simulation without transfers.
    #[must_use]
    pub fn new() -> Simulation {
        Simulation::default()
    }

    /// Adds a transfer to the simulation; returns its number.
    ///
    /// # Errors
    ///
    /// [`FluidError::Number`] and [`FluidError::Order`].
    pub fn add(&mut self, transfer: Transfer) -> Result<TransferId, FluidError> {
        let id = TransferId(self.transfers.len());
        let check = |what, number: f64, is_right: bool| {
            is_right
                .then_some(())
                .ok_or(FluidError::Number(id, what, number))
        };
        let (bits, start_s, weight) = (transfer.bits, transfer.start_s, transfer.weight);
        check("size", bits, bits.is_finite() && bits >= 0.0)?;
        check("start", start_s, start_s.is_finite() && start_s >= 0.0)?;
        check("weight", weight, weight.is_finite() && weight > 0.0)?;
        check("limit", transfer.cap_bps, transfer.cap_bps >= 0.0)?;
        for used in &transfer.uses {
            let (capacity_bps, load) = (used.capacity_bps, used.load);
            check("capacity", capacity_bps, capacity_bps >= 0.0)?;
            check("load", load, load.is_finite() && load > 0.0)?;
        }
        if let Some(later) = transfer.after.iter().find(|after| after.0 >= id.0) {
            return Err(FluidError::Order(id, *later));
        }
        let mut loads: BTreeMap<usize, f64> = BTreeMap::new();
        for used in &transfer.uses {
            let next = self.capacities.len();
            let number = *self.numbers.entry(used.resource).or_insert(next);
            if number == next {
                self.capacities.push(used.capacity_bps);
            }
            let capacity = &mut self.capacities[number];
            *capacity = capacity.min(used.capacity_bps);
            *loads.entry(number).or_default() += used.load;
        }
        for after in &transfer.after {
            self.transfers[after.0].before.push(id.0);
        }
        self.transfers.push(AddedTransfer {
            transfer,
            loads: loads.into_iter().collect(),
            before: Vec::new(),
        });
        Ok(id)
    }

    /// The number that the next added transfer will get.
    pub(super) fn next_id(&self) -> TransferId {
        TransferId(self.transfers.len())
    }

    /// Runs all transfers to their ends.
    ///
    /// # Errors
    ///
    /// [`FluidError::Stalled`].
    pub fn run(&self) -> Result<Outcome, FluidError> {
        let mut run = RunState::new(self);
        loop {
            run.start();
            let step_s = run.step_s()?;
            let Some(step_s) = step_s else {
                return Ok(run.outcome());
            };
            run.advance(step_s);
        }
    }
}

struct RunState<'s> {
    simulation: &'s Simulation,
    now_s: f64,
    /// Transfers that wait for no other transfer: (start time, index). Times are not negative, so
    /// their bit patterns sort like the numbers.
    due: BTreeSet<(u64, usize)>,
    /// For each transfer, the number of transfers that must end before it starts.
    waits: Vec<usize>,
    running: Vec<usize>,
    rates: Vec<f64>,
    left: Vec<f64>,
    spans: Vec<Span>,
    carried: Vec<f64>,
    peaks: Vec<f64>,
}

impl<'s> RunState<'s> {
    fn new(simulation: &'s Simulation) -> RunState<'s> {
        let transfers = &simulation.transfers;
        let waits = transfers.iter().map(|added| added.transfer.after.len());
        let unknown = Span {
            start_s: 0.0,
            end_s: 0.0,
        };
        let mut run = RunState {
            simulation,
            now_s: 0.0,
            due: BTreeSet::new(),
            waits: waits.collect(),
            running: Vec::new(),
            rates: Vec::new(),
            left: transfers.iter().map(|added| added.transfer.bits).collect(),
            spans: vec![unknown; transfers.len()],
            carried: vec![0.0; simulation.capacities.len()],
            peaks: vec![0.0; simulation.capacities.len()],
        };
        for number in 0..transfers.len() {
            if run.waits[number] == 0 {
                run.schedule_start(number);
            }
        }
        run
    }

    fn schedule_start(&mut self, number: usize) {
        let start_s = self.simulation.transfers[number].transfer.start_s;
        // Adding 0 turns −0 into 0.
        let start_s = start_s.max(self.now_s) + 0.0;
        self.due.insert((start_s.to_bits(), number));
    }

    /// Starts the transfers that are due, and computes the rates of all running transfers.
    fn start(&mut self) {
        // A transfer without bits ends as it starts: time then advances to the next start.
        while self.running.is_empty()
            && let Some((bits, _)) = self.due.first()
        {
            self.now_s = f64::from_bits(*bits);
            self.start_due();
        }
        self.start_due();
        // Sums are added in the order of numbers, whichever transfer came first.
        self.running.sort_unstable();
        let demands: Vec<Demand<'_>> = self.running.iter().map(|n| self.demand(*n)).collect();
        self.rates = max_min(&self.simulation.capacities, &demands);
    }

    fn start_due(&mut self) {
        while let Some((bits, number)) = self.due.first().copied() {
            if f64::from_bits(bits) > self.now_s {
                break;
            }
            self.due.pop_first();
            self.spans[number].start_s = self.now_s;
            if self.left[number] > 0.0 {
                self.running.push(number);
            } else {
                self.end(number);
            }
        }
    }

    fn demand(&self, number: usize) -> Demand<'s> {
        let added = &self.simulation.transfers[number];
        Demand {
            weight: added.transfer.weight,
            cap: added.transfer.cap_bps,
            loads: &added.loads,
        }
    }

    /// Time in seconds until the next change of rates; `None` if all transfers have ended.
    fn step_s(&self) -> Result<Option<f64>, FluidError> {
        if self.running.is_empty() {
            return Ok(None);
        }
        let ends = self.running.iter().zip(&self.rates);
        let ends = ends.map(|(number, rate)| self.left[*number] / rate);
        let next = self.due.first();
        let next = next.map(|(bits, _)| f64::from_bits(*bits) - self.now_s);
        let step_s = ends.chain(next).fold(f64::INFINITY, f64::min);
        if step_s.is_finite() {
            return Ok(Some(step_s));
        }
        let first = self.running[0];
        let loads = self.simulation.transfers[first].loads.iter();
        let empty = loads.map(|(resource, _)| *resource);
        let empty = empty.min_by(|a, b| {
            let capacity = |number: &usize| self.simulation.capacities[*number];
            capacity(a).total_cmp(&capacity(b))
        });
        let numbers = &self.simulation.numbers;
        let resource = numbers.iter().find(|(_, number)| Some(**number) == empty);
        Err(FluidError::Stalled {
            transfer: TransferId(first),
            resource: resource.map(|(resource, _)| *resource),
            now_s: self.now_s,
        })
    }

    fn advance(&mut self, step_s: f64) {
        let running = std::mem::take(&mut self.running);
        let rates = std::mem::take(&mut self.rates);
        let mut now = vec![0.0; self.carried.len()];
        let mut ended = Vec::new();
        self.now_s += step_s;
        for (number, rate) in running.into_iter().zip(rates) {
            let added = &self.simulation.transfers[number];
            let is_last = self.left[number] / rate <= step_s * (1.0 + ROUNDING);
            let sent = if is_last {
                self.left[number]
            } else {
                (rate * step_s).min(self.left[number])
            };
            self.left[number] -= sent;
            for (resource, load) in &added.loads {
                self.carried[*resource] += sent * load;
                now[*resource] += rate * load;
            }
            if self.left[number] <= added.transfer.bits * ROUNDING {
                ended.push(number);
            } else {
                self.running.push(number);
            }
        }
        for (peak, now) in self.peaks.iter_mut().zip(now) {
            *peak = peak.max(now);
        }
        for number in ended {
            self.end(number);
        }
    }

    fn end(&mut self, number: usize) {
        self.spans[number].end_s = self.now_s;
        for later in &self.simulation.transfers[number].before {
            self.waits[*later] -= 1;
            if self.waits[*later] == 0 {
                self.schedule_start(*later);
            }
        }
    }

    fn outcome(self) -> Outcome {
        let ends = self.spans.iter().map(|span| span.end_s);
        let numbers = &self.simulation.numbers;
        let carried = numbers
            .iter()
            .map(|(r, number)| (*r, self.carried[*number]));
        let peaks = numbers.iter().filter_map(|(resource, number)| {
            let capacity = self.simulation.capacities[*number];
            let share = self.peaks[*number] / capacity;
            (capacity.is_finite() && capacity > 0.0).then_some((*resource, share))
        });
        Outcome {
            end_s: ends.fold(0.0, f64::max),
            carried: carried.collect(),
            peaks: peaks.collect(),
            spans: self.spans,
        }
    }
}
