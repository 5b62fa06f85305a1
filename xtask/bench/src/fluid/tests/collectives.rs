//! Collectives take the time that their formula gives.

use planner::{Network, NodeId, Switch};

use super::{assert_near, hosts};
use crate::fluid::{Schedule, Simulation, halving_doubling, ring};

fn time_s(network: &Network, workers: &[NodeId], schedule: &Schedule, bytes: u64) -> f64 {
    let mut simulation = Simulation::new();
    simulation
        .add_schedule(network, workers, schedule, bytes, 0.0)
        .unwrap();
    simulation.run().unwrap().end_s
}

/// `count` hosts on one switch, with links of 8 bit/s: a link carries one byte a second.
fn star(count: usize) -> (Network, Vec<NodeId>) {
    let mut network = Network::new();
    let switch = network.add_switch("S", Switch::default()).unwrap();
    let workers = hosts(&mut network, "W", &vec![switch; count], 8);
    (network, workers)
}

/// 2 (n − 1) steps, each with an n-th of the gradient.
#[test]
fn a_ring_takes_two_times_all_but_an_nth() {
    for count in [2, 3, 4, 7] {
        let (network, workers) = star(count);
        let n = count as f64;
        let found = time_s(&network, &workers, &ring::schedule(count), 1000);
        assert_near(found, 1000.0 * 2.0 * (n - 1.0) / n);
    }
    assert_eq!(ring::schedule(1).messages, []);
}

/// 4 workers: ½ and ¼, and back: 1.5 gradients. 3 workers: the third sends its gradient first and receives the sum
/// last, the other two exchange ½ twice: 3 gradients.
#[test]
fn halves_are_exchanged() {
    for (count, gradients) in [(2, 1.0), (3, 3.0), (4, 1.5), (8, 1.75)] {
        let (network, workers) = star(count);
        let found = time_s(&network, &workers, &halving_doubling::schedule(count), 1000);
        assert_near(found, 1000.0 * gradients);
    }
}

/// In an all-reduce of optimal bandwidth, each worker sends 2 (n − 1) / n of a gradient.
#[test]
fn no_worker_sends_more_than_it_must() {
    for schedule in [ring::schedule(16), halving_doubling::schedule(16)] {
        let mut sent = [0.0; 16];
        for message in &schedule.messages {
            sent[message.from] += message.share;
        }
        for share in sent {
            assert_near(share, 2.0 * 15.0 / 16.0);
        }
    }
}
