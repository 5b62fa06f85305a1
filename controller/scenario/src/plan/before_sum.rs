//! A fault unit in front of a chip's sum, in the same pass through the chip: it drops one packet by its ordinal
//! (docs/tofino.md).

use std::ops::RangeInclusive;

use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry};
use parser_gen::Generated;
use parser_gen::engine::Early;
use serde::Serialize;

use super::runtime::call;
use super::{TargetModel, Unit};
use crate::diagnostic::{Code, Sink};
use crate::model::selection::Selection;
use crate::model::{Direction, Scenario};
use crate::plan::names::fault::{self, KEY_CLASS, KEY_EPOCH, PASS};

/// A fault in front of the sum. It is armed in its epochs: the parser's value set [`fault::ARMED`] then has the listed ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BeforeSum {
    /// Numbers of the epochs (intervals of the timeline) in which the fault is armed.
    pub epochs: Vec<RangeInclusive<u16>>,
    /// Numbers of all ports of the switch.
    pub ports: Vec<u32>,
    /// The ordinals that the fault drops, as parser-gen needs them.
    #[serde(skip)]
    pub early: Early,
}

/// The switch's only fault, if its fault unit can be placed in front of the sum; otherwise `None`.
pub(super) fn for_switch(
    scenario: &Scenario,
    switch: &str,
    units: &[Unit],
    target: &TargetModel,
) -> Option<BeforeSum> {
    let [unit] = units else {
        return None;
    };
    let declared = scenario.faults.iter().find(|f| f.id == unit.fault)?;
    let Selection::Counted(counted) = &declared.selection else {
        return None;
    };
    let early = Early {
        fires_at: counted.only_index()?,
        last: counted.last(),
        ports: scenario.topology.ports(switch).count(),
    };
    let can = target.faults_before_sums
        && unit.direction == Direction::Ingress
        && declared.effect.ends_packet();
    can.then(|| BeforeSum {
        epochs: declared.epochs.clone(),
        ports: (scenario.topology.ports(switch))
            .map(|port| port.number)
            .collect(),
        early,
    })
}

/// Refuses faults on a chip that sums, if the sum leaves the chip no capacity for faults.
pub(super) fn check(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    switch: &str,
    units: &[Unit],
    target: &TargetModel,
) {
    if target.frame_values_beside_faults.is_some() {
        return;
    }
    let faults = units
        .iter()
        .filter_map(|unit| scenario.faults.iter().find(|f| f.id == unit.fault));
    for fault in faults {
        let message = format!(
            "switch `{switch}` sums a job; on this target, it then has no pipeline stage left for fault `{}`",
            fault.id
        );
        sink.error(Code::Capacity, fault.place_span, message).hint(
            "write `where: SWITCH` for another switch; on a switch that sums, only one fault fits: a `drop` in ingress with `nth` or `every`",
        );
    }
}

/// Table entries of the unit in front of the sum: each row of the classifier, with the `select` action for the row's flows.
pub(super) fn entries(planned: &[TableEntry], generated: &Generated) -> Vec<TableEntry> {
    let table = fault::select_table(Direction::Ingress, 0);
    let armed = FieldMatch {
        field: KEY_EPOCH.to_owned(),
        value: Match::exact(1),
    };
    generated.early_entries(&table, &armed, |class| {
        let class = FieldMatch {
            field: KEY_CLASS.to_owned(),
            value: Match::exact(u128::from(class)),
        };
        let mut selects = planned.iter().filter(|entry| entry.table == table);
        match selects.find(|entry| entry.key.contains(&class)) {
            Some(select) => ActionCall {
                name: select.action.name.clone(),
                params: select.action.params.iter().take(1).cloned().collect(),
            },
            None => call(fault::part(Direction::Ingress, 0, PASS), &[]),
        }
    })
}
