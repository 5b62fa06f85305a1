//! GOAT's example: three switches that hold one fragment each, and workers out of step.

use planner::Network;
use planner::evaluation::examples::{self, GOAT_FRAGMENT_BYTES as FRAGMENT, links_behind_workers};
use planner::gradient::fragments::{Collision, Send, by_slots, first_come, planned};
use planner::gradient::{Goal, Job, Plan, goat};
use planner::routing::{Costs, Routing};

fn example(is_chain: bool) -> (Network, Job) {
    examples::goat(is_chain).unwrap()
}

fn plan(network: &Network, job: &Job) -> Plan {
    let costs = links_behind_workers(network);
    let gradient = goat::Gradient {
        sub_models: &[FRAGMENT; 3],
        costs: &costs,
    };
    goat::plan(network, job, &gradient, 7).unwrap()
}

/// All fragments of one worker after all of another: as far out of step as possible.
fn one_after_another() -> Vec<Send> {
    let sends = (0..4).flat_map(|worker| (0..3).map(move |piece| Send { worker, piece }));
    sends.collect()
}

/// All orders in which each worker sends A, B, C, with the first of two at one switch fixed: a fourth of 12! / (3!)⁴ = 369,600.
fn all_orders() -> Vec<Vec<Send>> {
    fn extend(next: &mut [usize; 4], order: &mut Vec<Send>, all: &mut Vec<Vec<Send>>) {
        if order.len() == 12 {
            all.push(order.clone());
            return;
        }
        for worker in 0..4 {
            let piece = next[worker];
            let may_begin = worker % 2 == 0 || piece > 0 || next[worker - 1] > 0;
            if piece < 3 && may_begin {
                next[worker] += 1;
                order.push(Send { worker, piece });
                extend(next, order, all);
                order.pop();
                next[worker] -= 1;
            }
        }
    }
    let mut all = Vec::new();
    extend(&mut [0; 4], &mut Vec::new(), &mut all);
    all
}

/// ATP, one worker after the other. S1 holds A1; B1 and C1 find it taken and pass. A2 completes A; B2 takes the slot and waits
/// for B1, which has passed; C2 passes. With B2, sent at the end, S1 sends 5. So does S2. S3 holds B1 until B2, B3, B4 have
/// arrived: of the 10 fragments that reach it, the four Bs become one, and 7 leave. 5 + 5 + 7 = 17.
#[test]
fn first_come_lets_seven_fragments_reach_the_server() {
    let (network, job) = example(false);
    let routing = Routing::new(&network, Costs::hops(&network));
    let passed = first_come(&network, &job, &routing, 1, &one_after_another()).unwrap();
    assert_eq!(passed.at_server, 7);
    assert_eq!(passed.between_switches(&network), 17);
}

/// A at S1, B at S2, C at S3, in some order: A2 … cross one link to S1 each, and its sum two links to the server, 4; so does B;
/// C crosses a link for each worker and one for the sum, 5. 4 + 4 + 5 = 13.
#[test]
fn goat_lets_three_fragments_reach_the_server() {
    let (network, job) = example(false);
    let plan = plan(&network, &job);
    let passed = planned(&plan, &one_after_another());
    assert_eq!(passed.at_server, 3);
    assert_eq!(passed.between_switches(&network), 13);
    let optimum = 13.0 * FRAGMENT as f64;
    let Goal::Traffic { byte_cost, bound } = plan.goal else {
        panic!("{:?}", plan.goal);
    };
    assert_eq!(byte_cost, optimum);
    assert!((bound - optimum).abs() <= 1e-6 * optimum, "{bound}");
    assert!(plan.is_optimal);
}

/// The paper's 7 and 17 are the maximum of all orders, reached by 33,264 of 369,600. The minimum, of workers in step, is 3
/// fragments over 9 links: better than the plan, which does not depend on the order and sums each fragment once.
#[test]
fn what_the_order_of_arrival_does() {
    let (network, job) = example(false);
    let plan = plan(&network, &job);
    let routing = Routing::new(&network, Costs::hops(&network));
    let (mut least, mut most) = ((u64::MAX, u64::MAX), (0, 0));
    let mut as_printed = 0;
    let orders = all_orders();
    assert_eq!(orders.len() * 4, 369_600);
    for order in orders {
        let passed = first_come(&network, &job, &routing, 1, &order).unwrap();
        let counts = (passed.at_server, passed.between_switches(&network));
        least = (least.0.min(counts.0), least.1.min(counts.1));
        most = (most.0.max(counts.0), most.1.max(counts.1));
        as_printed += usize::from(counts == (7, 17));
        let passed = planned(&plan, &order);
        assert_eq!(
            (passed.at_server, passed.between_switches(&network)),
            (3, 13)
        );
    }
    assert_eq!((least, most, as_printed * 4), ((3, 9), (7, 17), 33_264));
}

/// In a chain, where S1 reaches S3 over S2 only, no plan with a position for each fragment reaches 13: A at S1 is 2 + 3, B at
/// S2 2 + 2, C at S3 4 + 2 + 1.
#[test]
fn in_a_chain_it_is_sixteen() {
    let (network, job) = example(true);
    let plan = plan(&network, &job);
    assert!(plan.is_optimal);
    let passed = planned(&plan, &one_after_another());
    assert_eq!(
        (passed.at_server, passed.between_switches(&network)),
        (3, 16)
    );
}

/// Two workers at one switch of one slot send A1, B1, A2, B2. With ATP, B1 passes A1, A2 completes A, and B2 waits in vain.
/// With ESA each takes the slot of the previous one, so no piece is summed. In step, both sum both.
#[test]
fn what_finds_no_slot_passes_or_evicts() {
    let (mut network, job) = example(false);
    let s3 = network.node("S3").unwrap();
    network.switch_mut(s3).unwrap().programmable = false;
    let two = Job {
        workers: job.workers[..2].to_vec(),
        ..job
    };
    let routing = Routing::new(&network, Costs::hops(&network));
    let passed = |collision, order: [(usize, usize); 4]| {
        let sends = order.map(|(worker, piece)| Send { worker, piece });
        by_slots(&network, &two, &routing, (&|_| 1, collision), &sends).unwrap()
    };
    let out_of_step = [(0, 0), (0, 1), (1, 0), (1, 1)];
    let atp = passed(Collision::Passes, out_of_step);
    assert_eq!(atp.at_server, 3);
    assert_eq!(atp.brought_by, [1, 2, 4]);
    assert_eq!(passed(Collision::Evicts, out_of_step).at_server, 4);
    let in_step = [(0, 0), (1, 0), (0, 1), (1, 1)];
    for collision in [Collision::Passes, Collision::Evicts] {
        let passed = passed(collision, in_step);
        assert_eq!(passed.brought_by, [1, 3], "{collision:?}");
    }
}
