//! Greedy placement of workers: takes one host after the other, each the host with which the most workers fit.

use std::collections::BTreeSet;

use super::PlacedWorkers;
use super::crossing::Crossing;
use super::problem::{HostId, RackId, WorkerProblem};

/// Runs the submodular greedy method twice: for the fewest idle hosts, then, among the found and
/// all busy hosts, for the fewest hosts. `None` if not all workers are placed.
pub(super) fn place(problem: &WorkerProblem) -> Option<PlacedWorkers> {
    let (pinned, busy) = first(problem);
    let is_other = |host: &HostId| !busy.contains(host);
    let others: Vec<HostId> = (0..problem.machines.len()).filter(is_other).collect();
    let (mut hosts, _) = grow(problem, busy.clone(), &others);
    if !fits(problem, &hosts) {
        return None;
    }
    let chosen: Vec<HostId> = hosts[busy.len()..].to_vec();
    drop_needless(problem, &mut hosts, &chosen);
    let (mut few, _) = grow(problem, pinned.clone(), &hosts);
    match fits(problem, &few) {
        true => {
            let chosen: Vec<HostId> = few[pinned.len()..].to_vec();
            drop_needless(problem, &mut few, &chosen);
        }
        // Without the guarantee, the second run may fail although the first succeeded.
        false => few = hosts,
    }
    let at: Option<Vec<HostId>> = fill(problem, &few).into_iter().collect();
    Some(PlacedWorkers::new(problem, at?, false))
}

/// Number of workers that fit on the hosts taken so far, after each host that the first run takes.
pub(super) fn room(problem: &WorkerProblem) -> Vec<usize> {
    let (_, busy) = first(problem);
    let is_other = |host: &HostId| !busy.contains(host);
    let others: Vec<HostId> = (0..problem.machines.len()).filter(is_other).collect();
    grow(problem, busy, &others).1
}

/// Hosts to which workers are pinned; and these together with the busy hosts.
fn first(problem: &WorkerProblem) -> (Vec<HostId>, Vec<HostId>) {
    let mut pinned: Vec<HostId> = problem.pins.iter().map(|(_, host)| *host).collect();
    pinned.sort_unstable();
    pinned.dedup();
    let runs = |host: &HostId| problem.machines[*host].busy && !pinned.contains(host);
    let busy = (0..problem.machines.len()).filter(runs);
    let busy = pinned.iter().copied().chain(busy).collect();
    (pinned, busy)
}

/// Adds hosts until all workers fit, or no host helps. Returns all hosts, and the number of workers that fit after each.
fn grow(
    problem: &WorkerProblem,
    begun: Vec<HostId>,
    among: &[HostId],
) -> (Vec<HostId>, Vec<usize>) {
    let mut hosts = begun;
    let mut racks: BTreeSet<RackId> = hosts
        .iter()
        .map(|host| problem.machines[*host].rack)
        .collect();
    let mut room = vec![count(problem, &hosts)];
    let mut left: Vec<HostId> = among
        .iter()
        .copied()
        .filter(|host| !hosts.contains(host))
        .collect();
    while room.last().is_some_and(|room| *room < problem.workers) {
        let here = room.last().copied().unwrap_or(0);
        let merit = |host: HostId| {
            let machine = &problem.machines[host];
            let gain = match problem.limits.is_empty() {
                true => problem.workers.min(here.saturating_add(machine.slots)),
                false => {
                    let with: Vec<HostId> = hosts.iter().copied().chain([host]).collect();
                    count(problem, &with)
                }
            };
            // Among equals, prefer the most slots, since that leaves the most hosts to others; then a rack in use; then a busy
            // host.
            (
                gain,
                machine.slots,
                racks.contains(&machine.rack),
                machine.busy,
            )
        };
        let best = left
            .iter()
            .enumerate()
            .map(|(place, host)| (merit(*host), place))
            .max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        match best {
            Some(((gain, ..), place)) if gain > here => {
                let host = left.remove(place);
                racks.insert(problem.machines[host].rack);
                hosts.push(host);
                room.push(gain);
            }
            _ => break,
        }
    }
    (hosts, room)
}

/// Removes hosts without which all workers still fit, the host with the fewest slots first.
fn drop_needless(problem: &WorkerProblem, hosts: &mut Vec<HostId>, candidates: &[HostId]) {
    let mut candidates = candidates.to_vec();
    candidates.sort_by_key(|host| problem.machines[*host].slots);
    for candidate in candidates {
        let mut without = hosts.clone();
        without.retain(|host| *host != candidate);
        if fits(problem, &without) {
            *hosts = without;
        }
    }
}

fn fits(problem: &WorkerProblem, hosts: &[HostId]) -> bool {
    count(problem, hosts) == problem.workers
}

fn count(problem: &WorkerProblem, hosts: &[HostId]) -> usize {
    if problem.limits.is_empty() {
        let slots = hosts.iter().map(|host| problem.machines[*host].slots);
        return problem.workers.min(slots.fold(0, usize::saturating_add));
    }
    fill(problem, hosts).iter().flatten().count()
}

/// Places workers by rank, each at the first host that has a free slot and exceeds no limit. Returns the host of each worker.
fn fill(problem: &WorkerProblem, hosts: &[HostId]) -> Vec<Option<HostId>> {
    let mut crossing = Crossing::new(problem);
    let mut slots: Vec<usize> = problem
        .machines
        .iter()
        .map(|machine| machine.slots)
        .collect();
    let pinned = problem.pinned();
    for (worker, host) in &pinned {
        if !crossing.place(*worker, *host) {
            return vec![None; problem.workers];
        }
        slots[*host] -= 1;
    }
    let mut full = 0;
    for worker in (0..problem.workers).filter(|worker| !pinned.contains_key(worker)) {
        while full < hosts.len() && slots[hosts[full]] == 0 {
            full += 1;
        }
        let mut open = hosts[full..].iter().filter(|host| slots[**host] > 0);
        if let Some(host) = open.find(|host| crossing.place(worker, **host)) {
            slots[*host] -= 1;
        }
    }
    crossing.into_places()
}
