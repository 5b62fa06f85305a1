//! Simulation of a schedule in virtual time, with messages as flows.
//!
//! A put begins when its predecessors have finished, and at least [`Model::post_ns`] after the rank's last put. Puts to one
//! peer leave one after another, as from one queue pair; puts to several peers leave in parallel, at the current max-min fair
//! rates on all edges of their routes. A put finishes at the sender when its last byte has left. It finishes at the receiver
//! after the sum of its edges' delays α. The return path of acknowledgements is not modeled. Copies and reductions of a rank's
//! processor run one after another, over its memory edge, by the bytes that they write.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::Model;
use super::fair::max_min;
use crate::graph::{FormError, Graph};
use crate::schedule::{Action, Schedule};

/// Relative difference below which two events count as simultaneous.
const ROUNDING: f64 = 1e-9;

/// Reason why the time of a schedule cannot be predicted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// The schedule is not well-formed, or deadlocks.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The model has no route between two ranks of the schedule.
    #[error("the model has no route from rank {from} to rank {to}")]
    NoRoute {
        /// Sending rank of the missing route.
        from: usize,
        /// Receiving rank of the missing route.
        to: usize,
    },
    /// The model has another number of ranks than the schedule.
    #[error("the schedule has {schedule} ranks, the model {model}")]
    Ranks {
        /// Number of ranks of the schedule.
        schedule: usize,
        /// Number of ranks of the model.
        model: usize,
    },
}

/// Predicted execution of a schedule: times of the ranks, and loads of the edges.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Time at which the last rank finishes, in seconds from the start.
    pub time_s: f64,
    /// Time at which each rank finishes, in seconds from the start, in rank order.
    pub by_rank_s: Vec<f64>,
    /// Load of each edge, in the order of [`Model::edges`].
    pub loads: Vec<Load>,
}

/// Load of an edge during a predicted execution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Number of bytes that pass the edge.
    pub bytes: u64,
    /// Share of the edge's capacity that is used until the last rank finishes, 0 to 1.
    pub utilisation: f64,
}

/// Begin and end of a step in a predicted execution.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Period {
    /// Time at which all predecessors have finished, in seconds.
    pub begin_s: f64,
    /// Time in seconds at which the last byte of a put has left, the put of a wait has arrived, or other work is done.
    pub end_s: f64,
}

/// Predicts the execution of a schedule on a model.
pub fn simulate(schedule: &Schedule, model: &Model) -> Result<Prediction, CostError> {
    trace(schedule, model).map(|(prediction, _)| prediction)
}

/// Predicts the execution of a schedule, and also returns the period of each step: by rank, then by step.
pub fn trace(
    schedule: &Schedule,
    model: &Model,
) -> Result<(Prediction, Vec<Vec<Period>>), CostError> {
    let mut simulation = Simulation::new(schedule, model)?;
    simulation.run();
    let mut periods = std::mem::take(&mut simulation.periods).into_iter();
    let programs = schedule.programs.iter();
    let by_rank = programs.map(|program| periods.by_ref().take(program.steps.len()).collect());
    let by_rank = by_rank.collect();
    Ok((simulation.prediction(), by_rank))
}

/// A scheduled event of the simulation; of two simultaneous events, the one scheduled first comes first.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Due {
    time_s: f64,
    number: u64,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    /// The step with this node number begins.
    Begin(usize),
    /// The put with this node number arrives at its receiver.
    Arrive(usize),
}

impl Eq for Due {}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        let time = self.time_s.total_cmp(&other.time_s);
        time.then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A sequence of transfers that run one after another: the puts of one rank to another, or the work of a rank's processor.
#[derive(Debug, Default)]
struct Queue {
    edges: Vec<usize>,
    delay_s: f64,
    rate: f64,
    /// Bytes of the first transfer that were not transferred yet.
    left: f64,
    /// Node and number of bytes of each transfer's step.
    steps: VecDeque<(usize, u64)>,
    bytes: u64,
}

impl Queue {
    /// Seconds until the first transfer finishes, at the current rate.
    fn seconds(&self) -> f64 {
        self.left / self.rate
    }

    fn pass(&mut self, seconds: f64) {
        let whole = self.steps.front().map_or(0.0, |step| step.1 as f64);
        if self.rate.is_infinite() {
            self.left = 0.0;
            return;
        }
        self.left -= self.rate * seconds;
        if self.left <= whole * ROUNDING {
            self.left = 0.0;
        }
    }
}

struct Simulation<'s> {
    schedule: &'s Schedule,
    model: &'s Model,
    graph: Graph,
    missing: Vec<usize>,
    behind: Vec<Vec<usize>>,
    now_s: f64,
    due: BinaryHeap<Reverse<Due>>,
    planned: u64,
    /// Capacity of each edge in bytes per second.
    capacities: Vec<f64>,
    queues: Vec<Queue>,
    /// For each node (step), index of the queue in which its transfer runs; `None` if the step takes no time.
    queue_of: Vec<Option<usize>>,
    /// Indices of the queues that are not empty.
    active: Vec<usize>,
    is_stale: bool,
    /// Earliest time at which each rank may post its next put, in seconds.
    free_s: Vec<f64>,
    done_s: Vec<f64>,
    /// Period of each node (step), by node number.
    periods: Vec<Period>,
}

impl<'s> Simulation<'s> {
    fn new(schedule: &'s Schedule, model: &'s Model) -> Result<Self, CostError> {
        if schedule.ranks() != model.ranks() {
            return Err(CostError::Ranks {
                schedule: schedule.ranks(),
                model: model.ranks(),
            });
        }
        let graph = Graph::new(schedule)?;
        graph.order(schedule)?;
        let bytes_s = |rate_bps: u64| rate_bps as f64 / 8.0;
        let mut simulation = Self {
            schedule,
            model,
            missing: vec![0; graph.len()],
            behind: vec![Vec::new(); graph.len()],
            now_s: 0.0,
            due: BinaryHeap::new(),
            planned: 0,
            capacities: model
                .edges()
                .iter()
                .map(|edge| bytes_s(edge.rate_bps))
                .collect(),
            queues: Vec::new(),
            queue_of: vec![None; graph.len()],
            active: Vec::new(),
            is_stale: false,
            free_s: vec![0.0; schedule.ranks()],
            done_s: vec![0.0; schedule.ranks()],
            periods: vec![Period::default(); graph.len()],
            graph,
        };
        simulation.find_queues()?;
        for node in 0..simulation.graph.len() {
            let before: Vec<usize> = simulation.graph.before(schedule, node).collect();
            simulation.missing[node] = before.len();
            for earlier in &before {
                simulation.behind[*earlier].push(node);
            }
            if before.is_empty() {
                simulation.plan(0.0, What::Begin(node));
            }
        }
        Ok(simulation)
    }

    fn find_queues(&mut self) -> Result<(), CostError> {
        let mut known: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for node in 0..self.graph.len() {
            let from = self.graph.at(node).rank;
            // A rank's own processor counts as a transfer to itself.
            let (to, edges) = match self.action(node) {
                Action::Put { to, .. } => {
                    let route = self.model.route(from, to);
                    (to, route.ok_or(CostError::NoRoute { from, to })?.to_vec())
                }
                Action::Copy { .. } | Action::Reduce { .. } => match self.model.memory(from) {
                    Some(edge) => (from, vec![edge]),
                    None => continue,
                },
                Action::Wait { .. } => continue,
            };
            let number = *known.entry((from, to)).or_insert_with(|| {
                let delays = edges.iter().map(|edge| self.model.edges()[edge.0].delay_ns);
                self.queues.push(Queue {
                    delay_s: delays.sum::<u64>() as f64 * 1e-9,
                    edges: edges.iter().map(|edge| edge.0).collect(),
                    ..Queue::default()
                });
                self.queues.len() - 1
            });
            self.queue_of[node] = Some(number);
        }
        Ok(())
    }

    fn run(&mut self) {
        loop {
            self.share();
            let flows = self.active.iter();
            let flows = flows.map(|queue| self.now_s + self.queues[*queue].seconds());
            let flow = flows.fold(f64::INFINITY, f64::min);
            let due = self.due.peek().map_or(f64::INFINITY, |due| due.0.time_s);
            let next = flow.min(due);
            if next.is_infinite() {
                return;
            }
            self.pass(next);
            self.end_flows();
            while let Some(Reverse(due)) = self.due.peek()
                && due.time_s <= self.now_s * (1.0 + ROUNDING * ROUNDING)
            {
                let what = due.what;
                self.due.pop();
                self.happen(what);
            }
        }
    }

    /// Recomputes the rates of all transfers, if a transfer has begun or ended.
    fn share(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let flows = self.active.iter();
        let flows: Vec<&[usize]> = flows.map(|queue| &self.queues[*queue].edges[..]).collect();
        let rates = max_min(&self.capacities, &flows);
        for (queue, rate) in self.active.iter().zip(rates) {
            self.queues[*queue].rate = rate;
        }
    }

    fn pass(&mut self, next_s: f64) {
        for queue in &self.active {
            let queue = &mut self.queues[*queue];
            // A flow shorter than the clock's resolution ends at once: otherwise the simulation would never advance.
            let is_over = self.now_s + queue.seconds() <= next_s;
            queue.pass(next_s - self.now_s);
            if is_over {
                queue.left = 0.0;
            }
        }
        self.now_s = next_s;
    }

    fn end_flows(&mut self) {
        let mut active = std::mem::take(&mut self.active);
        active.retain(|number| {
            let queue = &mut self.queues[*number];
            if queue.left > 0.0 {
                return true;
            }
            let ended = queue.steps.pop_front();
            queue.left = queue.steps.front().map_or(0.0, |step| step.1 as f64);
            let (delay_s, is_busy) = (queue.delay_s, !queue.steps.is_empty());
            self.is_stale |= !is_busy;
            if let Some((node, _)) = ended {
                self.end(node, delay_s);
            }
            is_busy
        });
        self.active = active;
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Begin(node) => self.begin(node),
            What::Arrive(put) => {
                if let Some(wait) = self.graph.partner(put) {
                    self.fulfil(wait);
                }
            }
        }
    }

    fn begin(&mut self, node: usize) {
        let rank = self.graph.at(node).rank;
        let len = match self.action(node) {
            Action::Put { source, .. } => {
                if self.free_s[rank] > self.now_s {
                    self.plan(self.free_s[rank], What::Begin(node));
                    return;
                }
                self.free_s[rank] = self.now_s + self.model.post_ns as f64 * 1e-9;
                source.len
            }
            Action::Copy { source, .. } | Action::Reduce { source, .. } => source.len,
            Action::Wait { .. } => 0,
        };
        self.periods[node].begin_s = self.now_s;
        let bytes = len * self.schedule.element_bytes;
        let Some(number) = self.queue_of[node].filter(|_| bytes > 0) else {
            let delay_s = self.queue_of[node].map_or(0.0, |queue| self.queues[queue].delay_s);
            self.end(node, delay_s);
            return;
        };
        let queue = &mut self.queues[number];
        queue.bytes += bytes as u64;
        queue.steps.push_back((node, bytes as u64));
        if queue.steps.len() == 1 {
            queue.left = bytes as f64;
            self.active.push(number);
            self.is_stale = true;
        }
    }

    /// Finishes a step at its rank, and schedules the arrival of a put `delay_s` seconds later.
    fn end(&mut self, node: usize, delay_s: f64) {
        let rank = self.graph.at(node).rank;
        self.done_s[rank] = self.done_s[rank].max(self.now_s);
        self.periods[node].end_s = self.now_s;
        let is_put = matches!(self.action(node), Action::Put { .. });
        if is_put {
            self.plan(self.now_s + delay_s, What::Arrive(node));
        }
        let wait = self.graph.partner(node).filter(|_| is_put);
        for next in std::mem::take(&mut self.behind[node]) {
            if Some(next) != wait {
                self.fulfil(next);
            }
        }
    }

    fn fulfil(&mut self, node: usize) {
        self.missing[node] -= 1;
        if self.missing[node] == 0 {
            self.plan(self.now_s, What::Begin(node));
        }
    }

    fn plan(&mut self, time_s: f64, what: What) {
        self.planned += 1;
        self.due.push(Reverse(Due {
            time_s,
            number: self.planned,
            what,
        }));
    }

    fn action(&self, node: usize) -> Action {
        let at = self.graph.at(node);
        self.schedule.programs[at.rank].steps[at.step].action
    }

    fn prediction(self) -> Prediction {
        let time_s = self.done_s.iter().copied().fold(0.0, f64::max);
        let mut bytes = vec![0; self.capacities.len()];
        for queue in &self.queues {
            for edge in &queue.edges {
                bytes[*edge] += queue.bytes;
            }
        }
        let load = |(bytes, capacity): (u64, &f64)| Load {
            bytes,
            utilisation: if bytes == 0 {
                0.0
            } else {
                bytes as f64 / (capacity * time_s)
            },
        };
        Prediction {
            time_s,
            by_rank_s: self.done_s,
            loads: bytes.into_iter().zip(&self.capacities).map(load).collect(),
        }
    }
}
