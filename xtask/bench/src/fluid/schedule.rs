//! A collective operation among workers: what each sends to whom, and what it needs to have for that.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::round::link;
use super::{FluidError, Simulation, Transfer, TransferId};
use planner::gradient::Route;
use planner::network::{Network, NetworkError, NodeId};
use planner::routing::{Costs, Routing};

/// Of all ways of one length, so many share streams.
const WAYS: usize = 64;

/// What workers send to each other, each after all that it needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Schedule {
    /// In an order in which they could go one by one.
    pub messages: Vec<Message>,
}

/// A part of the gradient from one worker to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// A rank.
    pub from: usize,
    /// A rank.
    pub to: usize,
    /// Of the gradient.
    pub share: f64,
    /// Places of messages that have to be there first.
    pub after: Vec<usize>,
}

impl Schedule {
    /// Adds a message, and says its place.
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
    /// Adds a collective of these workers, by rank. Messages take shortest ways, and those of different ranks share ways of
    /// one length.
    ///
    /// # Errors
    ///
    /// As [`Simulation::add`], [`FluidError::NoWay`], and [`FluidError::NoRank`] of a message from or to nobody.
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
                // What comes later has no number yet: it gets one that is as much later.
                known.ok_or_else(|| FluidError::Order(own, own.plus(place - ids.len())))
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
