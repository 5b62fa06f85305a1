//! The papers' examples, worked out there by hand.

use planner::Network;
use planner::evaluation::examples;
use planner::gradient::{Job, grid};

/// GRID, figure 1.
pub(crate) fn grid_example() -> (Network, Job) {
    examples::grid().unwrap()
}

#[test]
fn grid_routes_a_worker_past_its_own_switch() {
    let (network, job) = grid_example();
    let plan = grid::plan(&network, &job).unwrap();
    assert_eq!(plan.rate_bps, 3e9);
    assert!(plan.is_optimal);
    // One of the four at S1 is summed at another switch.
    let s1 = network.node("S1").unwrap();
    let at_s1 = plan.parts.iter().find(|part| part.at == s1).unwrap();
    assert_eq!(at_s1.members.len(), 3);
}
