//! Computes the resources that a plan uses on a switch, and the maximum time by which held packets leave too late.

use p4lang::runtime::{MulticastGroup, TableEntry};
use serde::Serialize;

use super::Unit;
use super::place::Placement;
use super::target::TargetModel;
use crate::model::{Direction, Scenario};
use crate::plan::names;

/// Resources that a plan uses on a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Resources {
    /// Fault units in ingress.
    pub ingress_units: usize,
    /// Fault units in egress.
    pub egress_units: usize,
    /// Number of sets of flows to which one packet can belong, at most 65,535.
    pub classes: usize,
    /// Register cells of the fault units: one for each fault and flow.
    pub state_cells: usize,
    /// Table entries in the `select` tables of the fault units.
    pub select_entries: usize,
    /// Table entries in the forwarding tables.
    pub forward_entries: usize,
    /// Replicas (copies of a packet) in all multicast groups of the switch together.
    pub replicas: usize,
    /// Bits of all packets that faults delay at the same time, if every delayed flow runs at its full rate.
    pub held_bits: u64,
    /// Load of the delayed packets on the recirculation port, in bits per second.
    pub recirculation_bps: u64,
}

/// Counts the resources of a switch that the plan uses: fault units, sets of flows, table entries, multicast groups.
pub(super) fn measure(
    scenario: &Scenario,
    placement: &Placement,
    target: &TargetModel,
    switch: &str,
    (units, classes): (&[Unit], &[Vec<usize>]),
    (entries, groups): (&[TableEntry], &[MulticastGroup]),
) -> Resources {
    let at = |direction| {
        units
            .iter()
            .filter(|unit| unit.direction == direction)
            .count()
    };
    let select_tables: Vec<String> = units
        .iter()
        .map(|unit| names::fault::select_table(unit.direction, unit.unit))
        .collect();
    let entries_in =
        |tables: &dyn Fn(&str) -> bool| entries.iter().filter(|entry| tables(&entry.table)).count();
    let held_bits = held_bits(scenario, placement, switch);
    Resources {
        ingress_units: at(Direction::Ingress),
        egress_units: at(Direction::Egress),
        classes: classes.len().saturating_sub(1),
        state_cells: placement
            .points
            .iter()
            .filter(|point| point.switch == switch)
            .count(),
        select_entries: entries_in(&|table| select_tables.iter().any(|select| select == table)),
        forward_entries: entries_in(&|table| names::forward::TABLES.contains(&table)),
        replicas: groups.iter().map(|group| group.replicas.len()).sum(),
        held_bits,
        recirculation_bps: target.looping_bps(held_bits).min(target.loop_rate_bps),
    }
}

/// Maximum size, in bits, of all packets held in a switch: all delayed flows run at their path's rate, all packets are
/// selected.
pub(super) fn held_bits(scenario: &Scenario, placement: &Placement, switch: &str) -> u64 {
    let held = placement
        .points
        .iter()
        .filter(|point| point.switch == switch)
        .map(|point| held_by(scenario, point.fault, point.flow));
    held.fold(0, u64::saturating_add)
}

/// Maximum size, in bits, of all packets that a fault holds of one flow: it runs at its path's rate, all packets are selected.
pub(super) fn held_by(scenario: &Scenario, fault: usize, flow: usize) -> u64 {
    let ns = scenario.faults[fault].effect.longest_stay_ns();
    if ns == 0 {
        return 0;
    }
    let rates = scenario.flows[flow].paths.iter();
    let rate = rates
        .filter_map(|path| scenario.topology.path_rate_bps(path))
        .max()
        .unwrap_or(0);
    u64::try_from(u128::from(rate) * u128::from(ns) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// Maximum time, in nanoseconds, by which a held packet leaves too late. A packet that just misses its deadline recirculates
/// once more, and this takes until all held packets have passed the recirculation port.
pub(super) fn lateness_bound_ns(held_bits: u64, target: &TargetModel) -> u64 {
    let drain = u128::from(held_bits) * 1_000_000_000 / u128::from(target.loop_rate_bps.max(1));
    target
        .loop_ns
        .max(u64::try_from(drain).unwrap_or(u64::MAX))
        .saturating_add(target.wakeup_ns)
}
