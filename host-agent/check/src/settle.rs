//! Tests whether a global state makes progress after the loss of all frames in flight, if no later frame is lost.

use std::collections::VecDeque;

use crate::machines::{Broken, Event, Machines};
use crate::model::{Act, Model, Status, Wrong};

/// Number of times that all timers fire before a global state counts as stuck.
const ROUNDS: u32 = 8;

/// Order in which pending events are processed. A state that makes progress in both orders counts as not stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    FirstFirst,
    LastFirst,
}

impl<M: Model> Machines<'_, M> {
    /// The error in these states of the nodes: they disagree; or no task in progress makes progress; or all tasks are done, and
    /// a further task does not complete. `None` if there is no error.
    pub fn stuck(&mut self, nodes: &[u32]) -> Result<Option<Wrong>, Broken> {
        let model = self.model;
        let all: Vec<&M::Node> = nodes.iter().map(|node| self.node(*node)).collect();
        if let Some(wrong) = model.disagree(&all) {
            return Ok(Some(wrong));
        }
        let statuses: Vec<Status> = nodes
            .iter()
            .map(|node| model.status(self.node(*node)))
            .collect();
        let has = |status| statuses.contains(&status);
        // A node will get a further task, which is progress; or no node is left that could wait.
        if has(Status::Wants) {
            return Ok(None);
        }
        let more = !has(Status::Works);
        if more {
            let all: Vec<&M::Node> = nodes.iter().map(|node| self.node(*node)).collect();
            if !has(Status::Broken) && !model.ends(&all) {
                return Ok(Some(Wrong::Leaked));
            }
            if !has(Status::Done) || !model.has_more() {
                return Ok(None);
            }
        }
        for order in [Order::FirstFirst, Order::LastFirst] {
            match self.goes_on(nodes, more, order)? {
                Some(periods) => self.periods = self.periods.max(periods),
                None => return Ok(Some(if more { Wrong::Leaked } else { Wrong::Stuck })),
            }
        }
        Ok(None)
    }

    /// Number of times that all timers must fire before a node makes progress or all are done; `None` if that never happens.
    fn goes_on(&mut self, start: &[u32], more: bool, order: Order) -> Result<Option<u32>, Broken> {
        let mut nodes = start.to_vec();
        let mut under_way = VecDeque::new();
        if more {
            self.all_do(&mut nodes, Act::More, order, &mut under_way)?;
            self.deliver_all(&mut nodes, &mut under_way, order)?;
        }
        for periods in 0..ROUNDS {
            if more && self.all_done(&nodes) {
                return Ok(Some(periods));
            }
            self.all_do(&mut nodes, Act::Timer, order, &mut under_way)?;
            self.deliver_all(&mut nodes, &mut under_way, order)?;
            if !more && self.is_further(start, &nodes) {
                return Ok(Some(periods + 1));
            }
        }
        Ok(None)
    }

    fn all_done(&self, nodes: &[u32]) -> bool {
        let works = |node: &u32| self.model.status(self.node(*node)) == Status::Works;
        !nodes.iter().any(works)
    }

    fn is_further(&self, start: &[u32], nodes: &[u32]) -> bool {
        let mut moved = start.iter().zip(nodes).filter(|(from, to)| from != to);
        moved.any(|(from, _)| self.model.status(self.node(*from)) == Status::Works)
    }

    fn all_do(
        &mut self,
        nodes: &mut [u32],
        act: Act,
        order: Order,
        under_way: &mut VecDeque<u16>,
    ) -> Result<(), Broken> {
        for at in 0..nodes.len() {
            let at = match order {
                Order::FirstFirst => at,
                Order::LastFirst => nodes.len() - 1 - at,
            };
            let status = self.model.status(self.node(nodes[at]));
            let can = match act {
                Act::More => status == Status::Done,
                act => self.acts(nodes[at]).contains(&act),
            };
            if can {
                self.happens(nodes, at, Event::act(act), under_way)?;
            }
        }
        Ok(())
    }

    fn deliver_all(
        &mut self,
        nodes: &mut [u32],
        under_way: &mut VecDeque<u16>,
        order: Order,
    ) -> Result<(), Broken> {
        loop {
            let frame = match order {
                Order::FirstFirst => under_way.pop_front(),
                Order::LastFirst => under_way.pop_back(),
            };
            let Some(frame) = frame else {
                return Ok(());
            };
            let to = usize::from(self.frame(frame).to);
            self.happens(nodes, to, Event(frame), under_way)?;
        }
    }

    fn happens(
        &mut self,
        nodes: &mut [u32],
        at: usize,
        event: Event,
        under_way: &mut VecDeque<u16>,
    ) -> Result<(), Broken> {
        let step = self.step(nodes[at], event)?;
        nodes[at] = step.to;
        under_way.extend(step.sent.iter().map(|(_, frame)| *frame));
        Ok(())
    }
}
