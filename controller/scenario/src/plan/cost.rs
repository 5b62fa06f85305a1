//! Resources that a plan uses on a switch, and the bound on the lateness of held packets.

use std::fmt;

use serde::Serialize;

use super::place::Placement;
use super::switch::SwitchPlan;
use super::target::TargetModel;
use crate::model::{Direction, Scenario};
use crate::names;

/// Resources that a plan uses on a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Resources {
    /// Units in ingress.
    pub ingress_units: usize,
    /// Units in egress.
    pub egress_units: usize,
    /// Sets of flows that packets can belong to, at most 65,535.
    pub classes: usize,
    /// State cells: one per fault and flow.
    pub state_cells: usize,
    /// Entries in `select` tables.
    pub select_entries: usize,
    /// Entries in the forwarding table.
    pub forward_entries: usize,
    /// Copies that the multicast groups make.
    pub replicas: usize,
    /// Bits that delays hold at once, at the flows' full rates.
    pub held_bits: u64,
    /// Load of the held packets on the recirculation port, in bits per second.
    pub recirculation_bps: u64,
}

/// Fills in the resources of the switch's plan.
pub(super) fn measure(
    scenario: &Scenario,
    placement: &Placement,
    target: &TargetModel,
    switch: &mut SwitchPlan,
) {
    let at = |direction| {
        switch
            .units
            .iter()
            .filter(|unit| unit.direction == direction)
            .count()
    };
    let select_tables: Vec<String> = switch
        .units
        .iter()
        .map(|unit| names::fault::select_table(unit.direction, unit.unit))
        .collect();
    let entries_in = |tables: &dyn Fn(&str) -> bool| {
        let entries = switch.entries.iter();
        entries.filter(|entry| tables(&entry.table)).count()
    };
    let held_bits = held_bits(scenario, placement, &switch.name);
    switch.resources = Resources {
        ingress_units: at(Direction::Ingress),
        egress_units: at(Direction::Egress),
        classes: switch.classes.len().saturating_sub(1),
        state_cells: placement
            .points
            .iter()
            .filter(|point| point.switch == switch.name)
            .count(),
        select_entries: entries_in(&|table| select_tables.iter().any(|select| select == table)),
        forward_entries: entries_in(&|table| names::forward::TABLES.contains(&table)),
        replicas: switch.groups.iter().map(|group| group.replicas.len()).sum(),
        held_bits,
        recirculation_bps: target.looping_bps(held_bits).min(target.loop_rate_bps),
    };
}

/// The fullest switch and its scarcest resource. The planner minimizes its occupancy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fullest {
    /// The switch's name; the first one of several.
    pub switch: String,
    /// The resource: `units in ingress`.
    pub resource: String,
    /// Amount that faults use.
    pub taken: u64,
    /// Capacity.
    pub of: u64,
    /// Lower bound on the occupancy of the fullest switch in any plan, as a fraction.
    pub at_least: f64,
    /// Whether the plan's occupancy is proven to be minimal.
    pub is_least: bool,
}

impl Fullest {
    /// The share of a switch that faults should not exceed; above it, the text of a plan reports the occupancy.
    const SHARE: f64 = 0.1;

    /// Occupancy, as a fraction.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        self.taken as f64 / self.of as f64
    }

    /// Whether the text reports the occupancy. It does not if a single fault already exceeds the share, as with a chip's
    /// stages.
    pub(super) fn is_told(&self) -> bool {
        self.fraction() > Self::SHARE && 1.0 <= Self::SHARE * self.of as f64
    }
}

impl fmt::Display for Fullest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            switch,
            resource,
            taken,
            of,
            ..
        } = self;
        let percent = 100.0 * self.fraction();
        write!(
            f,
            "{percent:.1} % of switch {switch}: {taken} of {of} {resource}, "
        )?;
        match self.is_least {
            true => f.write_str("the least there is"),
            false => write!(f, "at least {:.1} % in any plan", 100.0 * self.at_least),
        }
    }
}

/// Bits held in a switch if every delayed flow runs at the rate of its path and every packet is selected.
pub(super) fn held_bits(scenario: &Scenario, placement: &Placement, switch: &str) -> u64 {
    let held = placement
        .points
        .iter()
        .filter(|point| point.switch == switch)
        .map(|point| held_by(scenario, point.fault, point.flow));
    held.fold(0, u64::saturating_add)
}

/// Bits held by one fault for one flow, under the same assumption.
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

/// Maximum lateness, in nanoseconds: a packet that just misses its deadline takes one more loop, and a loop lasts until
/// all held packets have passed the recirculation port.
pub(super) fn lateness_bound_ns(held_bits: u64, target: &TargetModel) -> u64 {
    let drain = u128::from(held_bits) * 1_000_000_000 / u128::from(target.loop_rate_bps.max(1));
    target
        .loop_ns
        .max(u64::try_from(drain).unwrap_or(u64::MAX))
        .saturating_add(target.wakeup_ns)
}
