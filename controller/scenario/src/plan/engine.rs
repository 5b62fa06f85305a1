//! Describes the fault units of a switch for parser-gen, which generates their P4, and rounds probabilities as the switch does.

use p4lang::runtime::TableEntry;
use parser_gen::engine::{Action, Copies, EngineSpec, Keys, Select, UnitSpec};

use super::place::Placement;
use super::{Drawn, PlannedTrigger, Rounded, TargetModel, Unit};
use crate::diagnostic::{Code, Sink};
use crate::model::decision::probability;
use crate::model::effect::Duplicate;
use crate::model::selection::{Selection, percent};
use crate::model::{Direction, Fault, Scenario};
use crate::plan::names::{fault, group};
use crate::units::show_duration;

/// Relative error of a rounded probability above which the plan reports the rounding.
const TOLERANCE: f64 = 0.01;

/// Describes the fault units of a switch, each with tables large enough for its table entries.
pub(super) fn spec(
    scenario: &Scenario,
    placement: &Placement,
    switch: &str,
    units: &[Unit],
    triggers: &[PlannedTrigger],
    entries: &[TableEntry],
) -> EngineSpec {
    let written = |table: String| entries.iter().filter(|e| e.table == table).count();
    let of = |direction: Direction| {
        let here = units.iter().filter(|unit| unit.direction == direction);
        let specs = here.filter_map(|unit| {
            let mut faults = scenario.faults.iter();
            let declared = faults.find(|fault| fault.id == unit.fault)?;
            let points = placement.points.iter().filter(|point| {
                point.switch == switch
                    && point.direction == direction
                    && scenario.faults[point.fault].id == unit.fault
            });
            Some(UnitSpec {
                about: about(declared),
                select: select(&declared.selection),
                key: match &declared.selection {
                    Selection::Share(share) => Some(share.key.clone()),
                    _ => declared.keys.as_ref().map(|keys| keys.key.clone()),
                },
                when: declared
                    .when
                    .and_then(|when| triggers.iter().position(|t| t.index == when)),
                keys: declared.keys.as_ref().map(|keys| Keys {
                    bits: keys.bits(),
                    restarts: keys.restarts,
                }),
                action: match declared.effect.duplicate() {
                    Some(duplicate) => Action::Duplicate(copies(scenario, duplicate)),
                    None => declared.effect.action(),
                },
                cells: points.map(|point| point.cell + 1).max().unwrap_or(1),
                entries: written(fault::select_table(direction, unit.unit)),
                outcomes: written(fault::part(direction, unit.unit, "outcome")),
            })
        });
        specs.collect()
    };
    EngineSpec {
        ingress: of(Direction::Ingress),
        egress: of(Direction::Egress),
        early: None,
        triggers: Vec::new(),
    }
}

/// The multicast group that makes the copies of a duplicate, with the delay of each copy. Every switch has a group for a single
/// copy without delay.
pub(super) fn copies(scenario: &Scenario, wanted: Duplicate) -> Copies {
    if wanted == Duplicate::ONCE {
        return Copies {
            group: group::DUPLICATE as u16,
            later_ns: vec![(1, 0), (2, 0)],
        };
    }
    let mut position = 0;
    for fault in &scenario.faults {
        match fault.effect.duplicate() {
            Some(other) if other == wanted => break,
            Some(_) => position += 1,
            None => {}
        }
    }
    let group = group::FIRST_COPIES as u16 + position;
    let instances = 0..=wanted.copies as u16;
    Copies {
        group,
        later_ns: instances
            .map(|copy| (group * 16 + copy, wanted.spaced_ns * u64::from(copy)))
            .collect(),
    }
}

fn about(declared: &Fault) -> String {
    format!(
        "Fault {}: {}, {}.",
        declared.id,
        declared.effect,
        declared.selected()
    )
}

fn select(selection: &Selection) -> Select {
    match selection {
        Selection::Never | Selection::Always => Select::Always,
        Selection::Counted(_) => Select::Counted,
        Selection::Probability { .. } => Select::Probability,
        Selection::GilbertElliott(_) => Select::GilbertElliott,
        Selection::Share(_) => Select::Share,
        Selection::Psn(_) => Select::Psn,
    }
}

/// Refuses delays and probabilities that the target's numbers cannot represent; returns inexact probabilities.
pub(super) fn round(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    target: &TargetModel,
) -> Vec<Rounded> {
    let mut rounded = Vec::new();
    for fault in &scenario.faults {
        if fault.effect.longest_stay_ns() >> (target.time_bits - 1) != 0 {
            let message = format!(
                "this target cannot hold packets for {}: it stores times in nanoseconds in {} bits",
                show_duration(fault.effect.longest_stay_ns()),
                target.time_bits
            );
            sink.error(Code::Effect, fault.span, message).hint(format!(
                "write a delay shorter than {}",
                show_duration(1 << (target.time_bits - 1))
            ));
        }
        match fault.selection.rounded(target.draw_bits) {
            Err(never) => {
                let message = format!(
                    "fault `{}` has a probability of {never:e}, which this target rounds to 0: its random numbers have {} bits",
                    fault.id, target.draw_bits
                );
                sink.error(Code::OutOfRange, fault.span, message)
                    .hint(format!(
                        "write {:e} or more",
                        probability(0) * 2_f64.powi(32 - target.draw_bits as i32)
                    ));
            }
            Ok(held) => {
                let pairs = fault.selection.limits().into_iter().zip(held.limits());
                let pairs = pairs.map(|(asked, held)| (probability(asked), probability(held)));
                let off = pairs.filter(|(asked, held)| (held / asked - 1.0).abs() > TOLERANCE);
                rounded.extend(off.map(|(asked, held)| Rounded {
                    fault: fault.id.clone(),
                    asked,
                    held,
                }));
            }
        }
    }
    rounded
}

/// For each fault with random delays: the number of values that its packets draw, and the least, median and largest one.
pub(super) fn drawn(scenario: &Scenario) -> Vec<Drawn> {
    let faults = scenario.faults.iter();
    let drawing = faults.filter_map(|fault| {
        let holds = fault.effect.longest_hold_ns() > 0;
        (holds && fault.effect.draws()).then(|| Drawn {
            fault: fault.id.clone(),
            steps: fault.effect.lots().len(),
            least_ns: fault.effect.hold_ns(0),
            median_ns: fault.effect.hold_ns(1 << 31),
            most_ns: fault.effect.longest_hold_ns(),
        })
    });
    drawing.collect()
}

/// Text on a rounded probability, for users: `fault x: 0.002 % is rounded to 0.003052 %`.
pub(super) fn show(rounded: &Rounded) -> String {
    let limit = |p: f64| crate::model::decision::limit(p).unwrap_or(0);
    format!(
        "fault {}: {} is rounded to {}",
        rounded.fault,
        percent(limit(rounded.asked)),
        percent(limit(rounded.held))
    )
}
