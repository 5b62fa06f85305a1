//! Shares are fair, no bits are lost, and times equal those worked out by hand.

mod collectives;
mod plans;

use planner::gradient::Resource;
use planner::network::Arc;
use planner::{Host, LinkId, Network, NodeId};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;

use super::{Demand, FluidError, Schedule, Simulation, Transfer, TransferId, Use, max_min};

fn assert_near(found: f64, expected: f64) {
    let off = (found - expected).abs() / expected;
    assert!(off <= 1e-9, "{found} instead of {expected}");
}

/// Adds a host to each switch of `at`, over a link of `rate_bps`.
fn hosts(network: &mut Network, prefix: &str, at: &[NodeId], rate_bps: u64) -> Vec<NodeId> {
    let hosts = at.iter().enumerate().map(|(number, switch)| {
        let name = format!("{prefix}{number}");
        let host = network.add_host(&name, Host::default()).unwrap();
        network.connect(host, *switch, rate_bps).unwrap();
        host
    });
    hosts.collect()
}

#[derive(Debug, Clone)]
struct Wants {
    weight: f64,
    cap: f64,
    loads: Vec<(usize, f64)>,
}

impl Wants {
    fn demand(&self) -> Demand<'_> {
        Demand {
            weight: self.weight,
            cap: self.cap,
            loads: &self.loads,
        }
    }
}

fn rates(capacities: &[f64], wants: &[Wants]) -> Vec<f64> {
    let demands: Vec<Demand<'_>> = wants.iter().map(Wants::demand).collect();
    max_min(capacities, &demands)
}

const RESOURCES: usize = 6;

fn wants() -> impl Strategy<Value = Wants> {
    let cap = prop_oneof![Just(f64::INFINITY), 0.0..50.0_f64];
    let loads = btree_map(0..RESOURCES, 0.1..4.0_f64, 1..RESOURCES);
    (0.1..5.0_f64, cap, loads).prop_map(|(weight, cap, loads)| Wants {
        weight,
        cap,
        loads: loads.into_iter().collect(),
    })
}

fn capacities() -> impl Strategy<Value = Vec<f64>> {
    vec(prop_oneof![9 => 0.5..100.0_f64, 1 => Just(0.0)], RESOURCES)
}

fn used(capacities: &[f64], wants: &[Wants], rates: &[f64]) -> Vec<f64> {
    let mut used = vec![0.0; capacities.len()];
    for (want, rate) in wants.iter().zip(rates) {
        for (resource, load) in &want.loads {
            used[*resource] += rate * load;
        }
    }
    used
}

proptest! {
    /// Shares are max-min fair if and only if each demand has a bottleneck: a full resource on which no demand has a
    /// greater rate over weight.
    #[test]
    fn each_has_a_bottleneck(capacities in capacities(), wants in vec(wants(), 1..20)) {
        let rates = rates(&capacities, &wants);
        let used = used(&capacities, &wants, &rates);
        for (used, capacity) in used.iter().zip(&capacities) {
            prop_assert!(*used <= capacity * (1.0 + 1e-9));
        }
        let level = |number: usize| rates[number] / wants[number].weight;
        for (number, want) in wants.iter().enumerate() {
            prop_assert!(rates[number] <= want.cap);
            let is_bottleneck = |resource: usize| {
                let is_full = used[resource] >= capacities[resource] * (1.0 - 1e-9);
                let users = (0..wants.len()).filter(|other| {
                    wants[*other].loads.iter().any(|(used, _)| *used == resource)
                });
                is_full && users.map(level).fold(0.0, f64::max) <= level(number) * (1.0 + 1e-9)
            };
            let is_held = rates[number] == want.cap
                || want.loads.iter().any(|(resource, _)| is_bottleneck(*resource));
            prop_assert!(is_held, "{number} of {rates:?}");
        }
    }

    /// Doubling all capacities doubles all rates, to the bit.
    #[test]
    fn rates_scale(capacities in capacities(), wants in vec(wants(), 1..20)) {
        let twice: Vec<f64> = capacities.iter().map(|capacity| capacity * 2.0).collect();
        let wants_twice: Vec<Wants> = wants.iter().map(|want| Wants {
            cap: want.cap * 2.0,
            ..want.clone()
        }).collect();
        let doubled: Vec<f64> = rates(&capacities, &wants).iter().map(|rate| rate * 2.0).collect();
        prop_assert_eq!(rates(&twice, &wants_twice), doubled);
    }

    /// The smallest share does not fall if a capacity grows; other shares may.
    #[test]
    fn the_least_share_grows_with_a_capacity(
        capacities in capacities(), wants in vec(wants(), 1..20), which in 0..RESOURCES, more in 0.0..50.0_f64,
    ) {
        let least = |capacities: &[f64]| {
            let rates = rates(capacities, &wants);
            let levels = rates.iter().zip(&wants).map(|(rate, want)| rate / want.weight);
            levels.fold(f64::INFINITY, f64::min)
        };
        let mut wider = capacities.clone();
        wider[which] += more;
        prop_assert!(least(&wider) >= least(&capacities) * (1.0 - 1e-9));
    }

    /// On one resource, rates are proportional to weights.
    #[test]
    fn one_resource_is_divided_by_weights(
        capacity in 1.0..100.0_f64, weights in vec(0.1..5.0_f64, 1..20),
    ) {
        let wants: Vec<Wants> = weights.iter().map(|weight| Wants {
            weight: *weight,
            cap: f64::INFINITY,
            loads: vec![(0, 1.0)],
        }).collect();
        let all: f64 = weights.iter().sum();
        for (rate, weight) in rates(&[capacity], &wants).iter().zip(&weights) {
            prop_assert!((rate - capacity * weight / all).abs() <= 1e-9 * capacity);
        }
    }

    /// All bits arrive, no faster than the fullest resource allows, and no resource is overloaded.
    #[test]
    fn all_bits_arrive(
        capacities in vec(0.5..100.0_f64, RESOURCES),
        transfers in vec((wants(), 0.0..100.0_f64, 0.0..5.0_f64, any::<bool>()), 1..20),
    ) {
        let mut simulation = Simulation::new();
        let mut needed: BTreeMap<usize, f64> = BTreeMap::new();
        let mut ids: Vec<TransferId> = Vec::new();
        for (want, bits, start_s, waits) in &transfers {
            let transfer = Transfer {
                start_s: *start_s,
                weight: want.weight,
                cap_bps: want.cap + 0.01,
                after: ids.last().filter(|_| *waits).copied().into_iter().collect(),
                ..Transfer::new(*bits, want.loads.iter().map(|(resource, load)| Use {
                    resource: link(*resource),
                    capacity_bps: capacities[*resource],
                    load: *load,
                }).collect())
            };
            ids.push(simulation.add(transfer).unwrap());
            for (resource, load) in &want.loads {
                *needed.entry(*resource).or_default() += load * bits;
            }
        }
        let outcome = simulation.run().unwrap();
        for ((resource, carried), (number, needed)) in outcome.carried.iter().zip(&needed) {
            prop_assert_eq!(*resource, link(*number));
            prop_assert!((carried - needed).abs() <= 1e-9 * needed.max(1.0));
            prop_assert!(outcome.end_s >= needed / capacities[*number] * (1.0 - 1e-9));
        }
        for (_, peak) in &outcome.peaks {
            prop_assert!(*peak <= 1.0 + 1e-9);
        }
        for (number, (_, _, start_s, waits)) in transfers.iter().enumerate() {
            let span = outcome.span(ids[number]);
            prop_assert!(span.start_s >= *start_s && span.end_s >= span.start_s);
            if *waits && number > 0 {
                prop_assert!(span.start_s >= outcome.span(ids[number - 1]).end_s);
            }
        }
        prop_assert_eq!(simulation.run().unwrap(), outcome);
    }
}

fn link(number: usize) -> Resource {
    Resource::Link(Arc {
        link: LinkId(number as u32),
        back: false,
    })
}

fn on(number: usize, capacity_bps: f64) -> Use {
    Use {
        resource: link(number),
        capacity_bps,
        load: 1.0,
    }
}

/// 1 and 3 bits over 2 bit/s: both at 1 bit/s until the first ends at 1 s, then 2 bits at 2 bit/s.
#[test]
fn the_remaining_transfer_speeds_up() {
    let mut simulation = Simulation::new();
    let short = simulation
        .add(Transfer::new(1.0, vec![on(0, 2.0)]))
        .unwrap();
    let long = simulation
        .add(Transfer::new(3.0, vec![on(0, 2.0)]))
        .unwrap();
    let later = Transfer {
        start_s: 10.0,
        after: vec![long],
        ..Transfer::new(4.0, vec![on(0, 2.0)])
    };
    let later = simulation.add(later).unwrap();
    let outcome = simulation.run().unwrap();
    assert_eq!(outcome.span(short).end_s, 1.0);
    assert_eq!(outcome.span(long).end_s, 2.0);
    assert_eq!((outcome.span(later).start_s, outcome.end_s), (10.0, 12.0));
    assert_eq!(outcome.carried, [(link(0), 8.0)]);
    assert_eq!(outcome.peaks, [(link(0), 1.0)]);
}

/// An aggregate has the rate of its slowest member, and leaves the rest of its other links to other transfers.
#[test]
fn an_aggregate_is_as_slow_as_its_slowest_member() {
    let mut simulation = Simulation::new();
    let members = vec![on(0, 1.0), on(1, 10.0), on(2, 10.0)];
    let coupled = simulation.add(Transfer::new(5.0, members)).unwrap();
    let other = simulation
        .add(Transfer::new(45.0, vec![on(1, 10.0)]))
        .unwrap();
    let outcome = simulation.run().unwrap();
    assert_eq!(outcome.span(coupled).end_s, 5.0);
    assert_eq!(outcome.span(other).end_s, 5.0);
}

#[test]
fn a_stalled_transfer_is_named() {
    let mut simulation = Simulation::new();
    let stalled = simulation
        .add(Transfer::new(1.0, vec![on(0, 5.0), on(3, 0.0)]))
        .unwrap();
    let found = simulation.run().unwrap_err();
    let expected = FluidError::Stalled {
        transfer: stalled,
        resource: Some(link(3)),
        now_s: 0.0,
    };
    assert_eq!(found, expected);
    let negative = simulation.add(Transfer::new(-1.0, Vec::new())).unwrap_err();
    assert!(matches!(negative, FluidError::Number(_, "size", bits) if bits == -1.0));
}

/// The first transfer has no bits and ends at once; the other still starts five seconds later.
#[test]
fn a_transfer_without_bits_ends_alone() {
    let mut simulation = Simulation::new();
    let limited = |bits: f64, start_s: f64| Transfer {
        start_s,
        cap_bps: 1.0,
        ..Transfer::new(bits, Vec::new())
    };
    let nothing = simulation.add(limited(0.0, 0.0)).unwrap();
    let later = simulation.add(limited(2.0, 5.0)).unwrap();
    let outcome = simulation.run().unwrap();
    assert_eq!(outcome.span(nothing).end_s, 0.0);
    let span = outcome.span(later);
    assert_eq!((span.start_s, span.end_s, outcome.end_s), (5.0, 7.0, 7.0));
}

#[test]
fn unknown_ranks_are_refused() {
    let mut network = Network::new();
    let host = network.add_host("h", Host::default()).unwrap();
    let mut schedule = Schedule::default();
    schedule.send(0, 1, 1.0, Vec::new());
    let add =
        |schedule: &Schedule| Simulation::new().add_schedule(&network, &[host], schedule, 8, 0.0);
    assert_eq!(add(&schedule), Err(FluidError::NoRank(1, 1)));
    schedule.messages[0].to = 0;
    schedule.messages[0].after = vec![0];
    assert!(matches!(add(&schedule), Err(FluidError::Order(..))));
}
