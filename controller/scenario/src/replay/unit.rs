//! The model of one fault unit: one fault on one switch.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use parser_gen::key::PacketKey;

use super::{FlowSet, State};
use crate::model::Scenario;
use crate::model::decision;
use crate::model::effect::Effect;
use crate::model::selection::Selection;
use crate::plan::{Injection, Plan, SwitchPlan};

#[derive(Debug)]
pub(super) struct FaultUnit {
    pub effect: Effect,
    pub selection: Selection,
    /// The fault's flows in declared order. If a packet belongs to several of them, the one declared first applies.
    pub entries: Vec<Entry>,
    /// For a flow, by its position among the switch's flows: its index in `entries`.
    pub of_flow: BTreeMap<usize, usize>,
    /// The trigger that the unit waits for, by its number on the switch.
    pub when: Option<usize>,
    /// How packets are numbered per key, such as per connection; `None` if all packets of a flow are numbered together.
    pub keys: Option<KeyCells>,
}

/// How the fault unit finds the state cell of a packet's key, such as its connection.
#[derive(Debug)]
pub(super) struct KeyCells {
    pub key: PacketKey,
    pub bits: u32,
    pub restarts: bool,
    /// Index in [`State`] of the table with the cells of the unit's keys.
    pub slots: usize,
}

/// A flow on which the fault acts.
#[derive(Debug)]
pub(super) struct Entry {
    pub epochs: Vec<RangeInclusive<u16>>,
    pub injection: usize,
    /// The decision key of fault and flow, from which a packet's random words are computed.
    pub key: u32,
    /// Index of the flow's state cell in [`State`].
    pub cell: usize,
}

impl FaultUnit {
    pub fn new<'p>(
        scenario: &Scenario,
        plan: &Plan,
        planned: &SwitchPlan,
        fault: &str,
        injections: impl Iterator<Item = (usize, &'p Injection)>,
        start: &mut State,
    ) -> Option<FaultUnit> {
        let fault = scenario.faults.iter().find(|other| other.id == fault)?;
        let mut unit = FaultUnit {
            effect: fault.effect.clone(),
            // The selection as precisely as the switch represents it.
            selection: fault.selection.rounded(plan.draw_bits).ok()?,
            entries: Vec::new(),
            of_flow: BTreeMap::new(),
            when: fault.when.and_then(|when| {
                let mut triggers = planned.triggers.iter();
                triggers.position(|trigger| trigger.index == when)
            }),
            keys: fault.keys.as_ref().map(|keys| KeyCells {
                key: keys.key.clone(),
                bits: keys.bits(),
                restarts: keys.restarts,
                slots: start.add_slots(),
            }),
        };
        let positions = planned.positions();
        // A fault that never fires has no entries.
        let injections = injections.filter(|_| fault.selection != Selection::Never);
        for (index, injection) in injections {
            let flow = &scenario.flows[*fault.flows.get(injection.cell)?];
            let position = *positions.get(injection.flow.as_str())?;
            unit.of_flow.entry(position).or_insert(unit.entries.len());
            unit.entries.push(Entry {
                epochs: fault.epochs.clone(),
                injection: index,
                key: decision::key(fault.key, flow.key),
                cell: start.add_cell(),
            });
        }
        Some(unit)
    }

    /// The key, such as the connection, by which the unit selects or numbers packets; `None` if it uses none.
    #[inline]
    pub fn key(&self) -> Option<&PacketKey> {
        match &self.selection {
            Selection::Share(share) => Some(&share.key),
            _ => self.keys.as_ref().map(|keys| &keys.key),
        }
    }

    /// Whether the unit selects by sequence number, so that it examines only data packets of RDMA connections.
    #[inline]
    pub fn places(&self) -> bool {
        matches!(self.selection, Selection::Psn(_))
    }

    /// Whether the opening of a TCP connection restarts the numbering of the connection's key.
    #[inline]
    pub fn restarts(&self) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.restarts)
    }

    /// The fault's flow as part of which this unit counts a packet that belongs to `flows`; `None`: it ignores the packet.
    #[inline]
    pub fn entry(&self, flows: &FlowSet, epoch: u16) -> Option<&Entry> {
        let entries = flows.iter().filter_map(|flow| self.of_flow.get(flow));
        let entry = &self.entries[*entries.min()?];
        let is_armed = entry.epochs.iter().any(|range| range.contains(&epoch));
        is_armed.then_some(entry)
    }
}
