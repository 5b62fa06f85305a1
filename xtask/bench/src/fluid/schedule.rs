//! Schedules of collective operations: the messages among workers, and which messages must arrive before each of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::round::link;
use super::{FluidError, Simulation, Transfer, TransferId};
use planner::gradient::Route;
use planner::network::{Network, NetworkError, NodeId};
use planner::routing::{Costs, Routing};

/// Maximum number of shortest paths of equal length that share streams.
const WAYS: usize = 64;

/// Schedule of a collective operation: messages among workers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schedule {
    /// Messages in an order that respects their dependencies.
    pub messages: Vec<Message>,
}

/// Message in a collective operation: a part of the gradient that one worker sends to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Rank of the worker that sends the message.
    pub from: usize,
    /// Rank of the worker that receives the message.
    pub to: usize,
    /// Size of the message as a share of the gradient, 0 to 1.
    pub share: f64,
    /// Indices of the messages that have to arrive before this message is sent.
    pub after: Vec<usize>,
}

impl Schedule {
    /// Adds a message that is sent after the messages `after` have arrived; returns its index.
    pub fn send(&mut self, from: usize, to: usize, share: f64, after: Vec<usize>) -> usize {
        self.messages.push(Message {
            from,
            to,
            share,
            after,
        });
        self.messages.len() - 1
    }
}

impl Simulation {
    /// Adds a collective operation of these workers, by rank, to the simulation. Messages take
    /// shortest paths; different ranks spread over paths of one length.
    ///
    /// # Errors
    ///
    /// The errors of [`Simulation::add`], [`FluidError::NoWay`], and [`FluidError::NoRank`] if a
    /// message names a rank that does not exist.
    pub fn add_schedule(
        &mut self,
        network: &Network,
        workers: &[NodeId],
        schedule: &Schedule,
        gradient_bytes: u64,
        start_s: f64,
    ) -> Result<Vec<TransferId>, FluidError> {
        let routing = Routing::new(network, Costs::hops(network));
        let mut routes: BTreeMap<(usize, usize), Route> = BTreeMap::new();
        let mut ids = Vec::with_capacity(schedule.messages.len());
        for message in &schedule.messages {
            let pair = (message.from, message.to);
            if let Some(rank) = [pair.0, pair.1]
                .into_iter()
                .find(|rank| *rank >= workers.len())
            {
                return Err(FluidError::NoRank(rank, workers.len()));
            }
            let own = self.next_id();
            let after = message.after.iter().map(|place| {
                let known = ids.get(*place).copied();
                // A later message has no transfer yet: the error names the number that it would get.
                known.ok_or_else(|| FluidError::Order(own, own.offset(place - ids.len())))
            });
            let after = after.collect::<Result<Vec<TransferId>, FluidError>>()?;
            let route = match routes.entry(pair) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(route(&routing, workers, pair)?),
            };
            let uses = route.iter().map(|arc| link(network, *arc));
            let transfer = Transfer {
                start_s,
                after,
                ..Transfer::new(message.share * gradient_bytes as f64 * 8.0, uses.collect())
            };
            ids.push(self.add(transfer)?);
        }
        Ok(ids)
    }
}

fn route(
    routing: &Routing<'_>,
    workers: &[NodeId],
    (from, to): (usize, usize),
) -> Result<Route, FluidError> {
    let mut ways = match routing.paths(workers[from], workers[to], WAYS) {
        Ok(ways) => ways,
        Err(NetworkError::Disconnected(from, to)) => return Err(FluidError::NoWay(from, to)),
        Err(_) => Vec::new(),
    };
    if ways.is_empty() {
        let [from, to] = [from, to].map(|rank| routing.network().name(workers[rank]).to_owned());
        return Err(FluidError::NoWay(from, to));
    }
    Ok(ways.swap_remove(from % ways.len()))
}
