//! Relaxation of InArt's program: a worker's gradient may be split among switches and server, and every stream among paths.
//!
//! Streams to one node are one flow through all links, so all paths are included and the bound holds for any paths. Two
//! corrections to the paper's rows: a switch's traffic to a server is balanced against its sum z, not against a worker's y; and
//! if the shares are free, f · x_s is one variable u_s.

use std::collections::BTreeMap;

use super::ways::Ways;
use crate::network::{Arc, NodeId};
use crate::solve::{Cmp, Model, Sense, Var, lp};

/// Maximum product of flows and links in a relaxation that is solved.
const MOST: usize = 3_000;

pub(super) struct Relaxed {
    /// By server and group of workers: the share of the gradients that each switch sums; the last element is the server's.
    pub shares: Vec<Vec<Vec<f64>>>,
    /// Upper bound of the rate of all workers, in bit/s.
    pub bound: f64,
}

/// Relaxation for given shares of the servers, or `None` for any shares. Returns `None` if it is too large or unsolved.
pub(super) fn relax(ways: &Ways<'_>, shares: Option<&[f64]>) -> Option<Relaxed> {
    let (network, servers) = (ways.network, ways.job.servers.len());
    let sites = ways.sites.len();
    if (sites + servers) * 2 * network.links().len() > MOST
        || servers * ways.starts.len() * (sites + 1) > MOST
    {
        return None;
    }
    let (sums, ingress) = ways.sums_and_ingress();
    // A greater capacity is never binding, and would harm numerical precision.
    let unit = ingress.iter().sum::<f64>();
    let mut model = Model::new(Sense::Maximize);
    let rates: Vec<Var> = (0..servers)
        .map(|_| model.variable(0.0, 1.0, 1.0))
        .collect();
    if let Some(shares) = shares {
        let rate = model.variable(0.0, f64::INFINITY, 0.0);
        for (of, share) in rates.iter().zip(shares) {
            model.constrain([(*of, 1.0), (rate, -share)], Cmp::Eq, 0.0);
        }
    }
    let mut count = vec![0.0; ways.starts.len()];
    for group in &ways.group {
        count[*group] += 1.0;
    }
    // A host's only link carries its whole gradient.
    for (arc, _) in ways.first.iter().flatten() {
        let spare = network.spare_bps(*arc) as f64 / unit;
        if spare < 1.0 {
            let terms = rates.iter().map(|rate| (*rate, 1.0));
            model.constrain(terms, Cmp::Le, spare);
        }
    }
    // Traffic that starts at nodes, by its end: sites, then servers.
    let mut supply: Vec<BTreeMap<NodeId, Vec<Var>>> = vec![BTreeMap::new(); sites + servers];
    let mut amounts = Vec::new();
    let mut summed: Vec<Vec<Var>> = vec![Vec::new(); sites];
    for (server, rate) in rates.iter().enumerate() {
        let sent: Vec<Var> = (0..sites).map(|_| model.variable(0.0, 1.0, 0.0)).collect();
        let mut taken: Vec<(Var, f64)> = sent.iter().map(|sent| (*sent, 1.0)).collect();
        for (site, sent) in sent.iter().enumerate() {
            let of = supply[sites + server].entry(ways.sites[site]);
            of.or_default().push(*sent);
        }
        let mut of_server = Vec::new();
        for (group, start) in ways.starts.iter().enumerate() {
            let amount: Vec<Var> = (0..=sites)
                .map(|_| model.variable(0.0, count[group], 0.0))
                .collect();
            let all = amount.iter().map(|amount| (*amount, 1.0));
            let all: Vec<_> = all.chain([(*rate, -count[group])]).collect();
            model.constrain(all, Cmp::Eq, 0.0);
            for (site, sent) in sent.iter().enumerate() {
                let terms = [(amount[site], 1.0), (*sent, -count[group])];
                model.constrain(terms, Cmp::Le, 0.0);
                supply[site].entry(*start).or_default().push(amount[site]);
                summed[site].push(amount[site]);
            }
            supply[sites + server]
                .entry(*start)
                .or_default()
                .push(amount[sites]);
            taken.push((amount[sites], 1.0));
            of_server.push(amount);
        }
        model.constrain(taken, Cmp::Le, ingress[server] / unit);
        amounts.push(of_server);
    }
    for (summed, spare) in summed.into_iter().zip(&sums) {
        let most = summed.len() as f64;
        if *spare / unit < most * ways.group.len() as f64 {
            let terms = summed.into_iter().map(|amount| (amount, 1.0));
            model.constrain(terms, Cmp::Le, spare / unit);
        }
    }
    flows(ways, &mut model, &supply, unit);
    let answer = lp(&model).ok()?;
    let shares = amounts.iter().map(|of_server| {
        let of_groups = of_server.iter().map(|amount| {
            let values: Vec<f64> = amount.iter().map(|var| answer.value(*var)).collect();
            let sum = values.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            values.into_iter().map(|value| value / sum).collect()
        });
        of_groups.collect()
    });
    Some(Relaxed {
        shares: shares.collect(),
        bound: answer.bound * unit,
    })
}

/// Adds the flows over links by which the traffic in `supply` (by destination, then by node of origin) gets to its destination.
fn flows(ways: &Ways<'_>, model: &mut Model, supply: &[BTreeMap<NodeId, Vec<Var>>], unit: f64) {
    let network = ways.network;
    let servers = ways.job.servers.iter().map(|server| server.host);
    let ends = ways.sites.iter().copied().chain(servers);
    let arcs = (0..network.links().len() as u32).map(crate::LinkId);
    let arcs = arcs.flat_map(|link| [false, true].map(|back| Arc { link, back }));
    let arcs: Vec<Arc> = arcs.filter(|arc| network.spare_bps(*arc) > 0).collect();
    let mut loads: Vec<Vec<(Var, f64)>> = vec![Vec::new(); arcs.len()];
    for (end, supply) in ends.zip(supply) {
        let mut balance: BTreeMap<NodeId, Vec<(Var, f64)>> = BTreeMap::new();
        for (place, arc) in arcs.iter().enumerate() {
            let (from, to) = network.ends(*arc);
            let is_end_of = |node| network.host(node).is_some();
            // Hosts do not forward.
            let begins = !is_end_of(from) || supply.contains_key(&from);
            if from == end || !begins || (is_end_of(to) && to != end) {
                continue;
            }
            let flow = model.variable(0.0, f64::INFINITY, 0.0);
            loads[place].push((flow, 1.0));
            balance.entry(from).or_default().push((flow, 1.0));
            if to != end {
                balance.entry(to).or_default().push((flow, -1.0));
            }
        }
        for (node, amounts) in supply.iter().filter(|(node, _)| **node != end) {
            let of = balance.entry(*node).or_default();
            of.extend(amounts.iter().map(|amount| (*amount, -1.0)));
        }
        for terms in balance.into_values() {
            model.constrain(terms, Cmp::Eq, 0.0);
        }
    }
    for (load, arc) in loads.into_iter().zip(&arcs) {
        if !load.is_empty() {
            model.constrain(load, Cmp::Le, network.spare_bps(*arc) as f64 / unit);
        }
    }
}
