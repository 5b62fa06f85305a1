//! Builds the table entries of a switch's fault units, under the names of its P4 program (docs/fault-engine.md).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry};
use parser_gen::engine::{Action, Hold};
use parser_gen::psn::MODULUS;

use super::forwarding::forwarding;
use super::place::{Placement, Point};
use super::runtime::call;
use super::{PlannedFlow, TargetModel, Unit};
use crate::model::decision::{self, Draws, Words};
use crate::model::selection::{Psn, Selection, Share};
use crate::model::{Direction, Scenario};
use crate::plan::names::fault::{self, channel, key, param};
use crate::plan::names::{lease, timeline};

/// A pipeline's table, and the default action of the table, which together put an epoch in force.
pub(super) fn set_epoch(direction: Direction, epoch: u16) -> (String, ActionCall) {
    let call = ActionCall {
        name: timeline::set_epoch(direction),
        params: vec![(timeline::EPOCH.to_owned(), u128::from(epoch).into())],
    };
    (timeline::table(direction), call)
}

/// A pipeline's table, and the default action of the table, which together set the end of the lease on the switch's clock.
pub(super) fn until(direction: Direction, deadline: u64) -> (String, ActionCall) {
    let call = ActionCall {
        name: lease::until(direction),
        params: vec![(lease::DEADLINE.to_owned(), u128::from(deadline).into())],
    };
    (lease::table(direction), call)
}

pub(super) fn for_switch(
    scenario: &Scenario,
    placement: &Placement,
    switch: &str,
    units: &[Unit],
    flows: &[PlannedFlow],
    classes: &[Vec<usize>],
    target: &TargetModel,
) -> Vec<TableEntry> {
    let mut entries: Vec<TableEntry> = Vec::new();
    for unit in units {
        entries.extend(for_unit(
            scenario, placement, switch, unit, flows, classes, target,
        ));
    }
    entries.extend(forwarding(scenario, switch));
    entries
}

/// Table entries of a fault unit: those that find its flows, those that select packets, and those that draw random words.
fn for_unit(
    scenario: &Scenario,
    placement: &Placement,
    switch: &str,
    unit: &Unit,
    flows: &[PlannedFlow],
    classes: &[Vec<usize>],
    target: &TargetModel,
) -> Vec<TableEntry> {
    let mut faults = scenario.faults.iter();
    let Some(declared) = faults.find(|fault| fault.id == unit.fault) else {
        return Vec::new();
    };
    // A selection that the target cannot represent has been refused.
    let Ok(selection) = declared.selection.rounded(target.draw_bits) else {
        return Vec::new();
    };
    if selection == Selection::Never {
        return Vec::new();
    }
    let mut entries = select(
        scenario, placement, switch, unit, flows, classes, &selection,
    );
    let part = |name: &str| fault::part(unit.direction, unit.unit, name);
    let writer = UnitWriter {
        part: &part,
        draw_bits: target.draw_bits,
    };
    entries.extend(writer.outcomes(&selection));
    entries.extend(writer.lots(declared.effect.lots()));
    if selection.is_by_chance() || declared.effect.draws() {
        let has_second = matches!(selection, Selection::GilbertElliott(_));
        let drawn = DrawnWords {
            u: selection.is_by_chance(),
            v: has_second,
            w: declared.effect.draws(),
        };
        entries.extend(writer.words(&Draws::of_seed(scenario.seed), drawn));
    }
    entries
}

/// The entries of the unit's `select` table: one for each set of flows (class) to which a packet can belong, and range of
/// epochs. Of several flows of the fault, the one declared first applies. Sets with a protected flow get no entry.
fn select(
    scenario: &Scenario,
    placement: &Placement,
    switch: &str,
    unit: &Unit,
    flows: &[PlannedFlow],
    classes: &[Vec<usize>],
    selection: &Selection,
) -> Vec<TableEntry> {
    let positions: BTreeMap<&str, usize> = flows
        .iter()
        .map(|flow| (flow.name.as_str(), flow.index))
        .collect();
    let points = placement.points.iter().filter(|point| {
        point.switch == switch
            && point.direction == unit.direction
            && scenario.faults[point.fault].id == unit.fault
    });
    let of_flow: BTreeMap<usize, (usize, &Point)> = points
        .enumerate()
        .filter_map(|(order, point)| {
            let name = scenario.flows[point.flow].name.as_str();
            Some((*positions.get(name)?, (order, point)))
        })
        .collect();
    let mut entries = Vec::new();
    for (class, members) in classes.iter().enumerate() {
        let met = members.iter().filter_map(|flow| of_flow.get(flow));
        let is_protected = members.iter().any(|flow| flows[*flow].protected);
        let Some((_, point)) = met.min_by_key(|(order, _)| order).filter(|_| !is_protected) else {
            continue;
        };
        let (declared, flow) = (&scenario.faults[point.fault], &scenario.flows[point.flow]);
        let mut params: Vec<(&str, u128)> = vec![(param::CELL, point.cell as u128)];
        if let Selection::Counted(counted) = selection {
            params.push((param::LAST, counted.last().into()));
        }
        if selection.is_by_chance() || declared.effect.draws() || declared.keys.is_some() {
            params.push((param::KEY, decision::key(declared.key, flow.key).into()));
        }
        if let Action::Delay(Hold { drawn: false, .. }) = declared.effect.action() {
            let hold_ns = declared.effect.longest_hold_ns();
            params.push((param::DELAY_NS, hold_ns.into()));
        }
        for epochs in &declared.epochs {
            let (first, last) = (u128::from(*epochs.start()), u128::from(*epochs.end()));
            entries.push(TableEntry {
                table: fault::select_table(unit.direction, unit.unit),
                key: vec![
                    FieldMatch {
                        field: fault::KEY_CLASS.to_owned(),
                        value: Match::exact(class as u128),
                    },
                    FieldMatch {
                        field: fault::KEY_EPOCH.to_owned(),
                        value: Match::range(first, last),
                    },
                ],
                priority: 0,
                action: call(fault::part(unit.direction, unit.unit, fault::PICK), &params),
            });
        }
    }
    prioritized(entries)
}

/// Gives the table entries descending priorities, so that the first one that matches applies.
fn prioritized(mut entries: Vec<TableEntry>) -> Vec<TableEntry> {
    let count = entries.len() as i32;
    for (entry, priority) in entries.iter_mut().zip((1..=count).rev()) {
        entry.priority = priority;
    }
    entries
}

/// Which of the three random words u, v and w a fault unit draws for each packet.
#[derive(Clone, Copy)]
struct DrawnWords {
    u: bool,
    v: bool,
    w: bool,
}

struct UnitWriter<'a> {
    /// Maps a table or action of the unit to its full name in P4.
    part: &'a dyn Fn(&str) -> String,
    draw_bits: u32,
}

impl UnitWriter<'_> {
    /// Table entries of the unit's tables `channel` and `outcome`, which decide whether the unit applies its effect to a
    /// packet.
    fn outcomes(&self, selection: &Selection) -> Vec<TableEntry> {
        let fires = |key: Vec<FieldMatch>| self.entry("outcome", key, fault::FIRES, &[]);
        let mut entries = Vec::new();
        match selection {
            Selection::Never | Selection::Always => {}
            Selection::Counted(counted) => {
                entries.extend(counted.keys().into_iter().map(|(value, mask)| {
                    let any = FieldMatch {
                        field: key::INDEX.to_owned(),
                        value: Match::ternary(u128::from(value), u128::from(mask)),
                    };
                    // A field that matches every value is left out (P4Runtime 9.1.1).
                    fires(Some(any).filter(|_| mask != 0).into_iter().collect())
                }));
            }
            Selection::Probability { limit } | Selection::Share(Share { limit, .. }) => {
                entries.push(fires(self.draws(key::U, 0, *limit)));
            }
            Selection::Psn(psn) => entries.extend(places(psn).map(fires)),
            Selection::GilbertElliott(chain) => {
                let mut turns = Vec::new();
                let (both, one) = (
                    chain.to_bad.min(chain.to_good),
                    chain.to_bad.max(chain.to_good),
                );
                turns.push((0, both, channel::TURN_OVER));
                let turn = if chain.to_bad > chain.to_good {
                    channel::TURN_BAD
                } else {
                    channel::TURN_GOOD
                };
                if both < one {
                    turns.push((both + 1, one, turn));
                }
                if one < u32::MAX {
                    turns.push((one + 1, u32::MAX, channel::STAY));
                }
                let turns = turns.into_iter().map(|(low, high, action)| {
                    self.entry("channel", self.draws(key::U, low, high), action, &[])
                });
                entries.extend(prioritized(turns.collect()));
                let losses = [(0, chain.loss_good), (1, Some(chain.loss_bad))];
                let losses = losses.into_iter().filter_map(|(bad, limit)| {
                    let state = FieldMatch {
                        field: key::BAD.to_owned(),
                        value: Match::exact(bad),
                    };
                    let mut key = vec![state];
                    key.extend(self.draws(key::V, 0, limit?));
                    Some(fires(key))
                });
                entries.extend(prioritized(losses.collect()));
                return entries;
            }
        }
        prioritized(entries)
    }

    /// Table entries of the unit's table `lots`: for each random draw, the effect's value, such as a delay.
    fn lots(&self, lots: Vec<u128>) -> impl Iterator<Item = TableEntry> {
        let lots = (0_u128..).zip(lots);
        lots.map(|(number, value)| {
            let word = FieldMatch {
                field: key::W.to_owned(),
                value: Match::exact(number),
            };
            let params = [(fault::LOT_VALUE, value)];
            self.entry(fault::LOTS, vec![word], fault::LOT, &params)
        })
    }

    /// Table entries of the unit's tables `t0` to `t5`, by which it draws random words. Their contents follow from the seed.
    fn words(&self, draws: &Draws, drawn: DrawnWords) -> Vec<TableEntry> {
        let mut entries = Vec::new();
        for number in 0..decision::TABLES {
            let (table, action) = fault::words(number);
            for byte in 0..=u8::MAX {
                let row = draws.row(number, byte);
                let mut params: Vec<(&str, u128)> = Vec::new();
                let Words { u, v, w } = row.words;
                for (is_drawn, name, word) in
                    [(drawn.u, "u_", u), (drawn.v, "v_", v), (drawn.w, "w_", w)]
                {
                    if is_drawn {
                        params.push((name, u128::from(word >> (32 - self.draw_bits))));
                    }
                }
                if number < decision::INPUT_TABLES {
                    params.push(("d_", row.derived.into()));
                }
                let byte = FieldMatch {
                    field: key::BYTE.to_owned(),
                    value: Match::exact(u128::from(byte)),
                };
                entries.push(self.entry(&table, vec![byte], &action, &params));
            }
        }
        entries
    }

    fn entry(
        &self,
        table: &str,
        key: Vec<FieldMatch>,
        action: &str,
        params: &[(&str, u128)],
    ) -> TableEntry {
        TableEntry {
            table: (self.part)(table),
            key,
            priority: 0,
            action: call((self.part)(action), params),
        }
    }

    /// The match of a key field on draws from `low` to `high`; empty if all draws are in this range.
    fn draws(&self, field: &str, low: u32, high: u32) -> Vec<FieldMatch> {
        if (low, high) == (0, u32::MAX) {
            return Vec::new();
        }
        let shift = 32 - self.draw_bits;
        vec![FieldMatch {
            field: field.to_owned(),
            value: Match::range(u128::from(low >> shift), u128::from(high >> shift)),
        }]
    }
}

/// For a selection by sequence number, the key of each table entry. It lacks a field if every value of the field matches.
fn places(psn: &Psn) -> impl Iterator<Item = Vec<FieldMatch>> {
    let field = |field: &str, range: &RangeInclusive<u32>, most: u32| {
        let (low, high) = (*range.start(), most.min(*range.end()));
        let value = Match::range(u128::from(low), u128::from(high));
        let field = field.to_owned();
        Some(FieldMatch { field, value }).filter(|_| (low, high) != (0, most))
    };
    let rounds = psn.rounds.as_slice();
    psn.at.as_slice().iter().flat_map(move |at| {
        let relative = field(key::RELATIVE, at, MODULUS - 1);
        rounds.iter().map(move |round| {
            let round = field(key::ROUND, round, u32::MAX);
            relative.clone().into_iter().chain(round).collect()
        })
    })
}
