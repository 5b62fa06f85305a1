//! Compares a plan with the plan that it replaces on running switches: which faults continue, restart or end.
//!
//! A fault continues if it would still number and select packets in the same way: its counts are then kept. Its effect may
//! change.

use std::fmt;

use serde::Serialize;

use super::{Injection, Plan};
use crate::model::{Fault, Scenario};

/// The fate of each fault when one plan replaces another on running switches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Over {
    /// For each injection (fault, flow and switch) of the new plan, in its order: whether it continues, restarts or is new.
    pub fates: Vec<Continuation>,
    /// The injections of the old plan that the new plan does not have.
    pub ended: Vec<Ended>,
}

/// An injection (a fault that acts on one flow at one switch) of the new plan, and its relation to the old plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Continuation {
    /// The fault's name.
    pub fault: String,
    /// The flow's name.
    pub flow: String,
    /// Name of the switch that injects the fault.
    pub switch: String,
    /// Whether the injection continues, restarts or is new.
    #[serde(flatten)]
    pub becomes: Becomes,
}

/// How an injection of the new plan relates to the old plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "becomes", rename_all = "snake_case")]
pub enum Becomes {
    /// The fault continues on this flow, with its counts.
    GoesOn {
        /// Number of the fault's unit in the old plan, in the same pipeline.
        unit: usize,
        /// Index of the flow's register cell in the old plan's fault unit.
        cell: usize,
    },
    /// The old plan has this injection, but its counts restart.
    BeginsAnew {
        /// The difference between the plans that prevents the fault from continuing, for users.
        because: &'static str,
    },
    /// The old plan does not have this injection.
    IsNew,
}

/// An injection (a fault that acts on one flow at one switch) of the old plan that the new plan does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// The fault's name.
    pub fault: String,
    /// The flow's name.
    pub flow: String,
    /// Name of the switch that injected the fault.
    pub switch: String,
}

impl Over {
    /// Compares a plan with the plan `new` that replaces it. Each plan comes with its scenario.
    #[must_use]
    pub fn new(old: (&Scenario, &Plan), new: (&Scenario, &Plan)) -> Over {
        let is_same = |a: &Injection, b: &Injection| {
            (&a.fault, &a.flow, &a.switch) == (&b.fault, &b.flow, &b.switch)
        };
        let fates = new.1.injections.iter().map(|injection| {
            let before = old.1.injections.iter().find(|was| is_same(was, injection));
            Continuation {
                fault: injection.fault.clone(),
                flow: injection.flow.clone(),
                switch: injection.switch.clone(),
                becomes: match before {
                    None => Becomes::IsNew,
                    Some(was) => match difference((old, was), (new, injection)) {
                        Some(because) => Becomes::BeginsAnew { because },
                        None => Becomes::GoesOn {
                            unit: was.unit,
                            cell: was.cell,
                        },
                    },
                },
            }
        });
        let gone = old.1.injections.iter();
        let gone = gone.filter(|was| !new.1.injections.iter().any(|now| is_same(was, now)));
        Over {
            fates: fates.collect(),
            ended: gone
                .map(|was| Ended {
                    fault: was.fault.clone(),
                    flow: was.flow.clone(),
                    switch: was.switch.clone(),
                })
                .collect(),
        }
    }
}

type At<'a> = ((&'a Scenario, &'a Plan), &'a Injection);

/// The difference between two plans that prevents an injection from continuing; `None` if it can continue.
fn difference((old, was): At<'_>, (new, now): At<'_>) -> Option<&'static str> {
    let fault = |of: (&Scenario, &Plan), id: &str| -> Option<Fault> {
        of.0.faults.iter().find(|fault| fault.id == id).cloned()
    };
    let (Some(before), Some(after)) = (fault(old, &was.fault), fault(new, &now.fault)) else {
        return Some("its declaration differs");
    };
    let filter = |plan: &Plan, at: &Injection| {
        let flows = &plan.switch(&at.switch)?.flows;
        let flow = flows.iter().find(|flow| flow.name == at.flow)?;
        Some(flow.filter.text().to_owned())
    };
    if was.direction != now.direction {
        return Some("it acts in the other direction (ingress or egress)");
    }
    if filter(old.1, was) != filter(new.1, now) {
        return Some("its flow has another filter");
    }
    if before.selection != after.selection {
        return Some("its selection differs");
    }
    if old.1.seed != new.1.seed && after.selection.is_by_chance() {
        return Some("it has another seed");
    }
    if before.keys != after.keys {
        return Some("it has other keys");
    }
    let trigger = |(scenario, plan): (&Scenario, &Plan), fault: &Fault, at: &Injection| {
        let name = &scenario.triggers.get(fault.when?)?.name;
        let mut triggers = plan.switch(&at.switch)?.triggers.iter();
        let planned = triggers.find(|trigger| trigger.name == *name)?;
        Some((planned.name.clone(), planned.what.clone()))
    };
    if trigger(old, &before, was) != trigger(new, &after, now) {
        return Some("it waits for another trigger");
    }
    if after.keys.is_some() && (was.unit, was.cell) != (now.unit, now.cell) {
        return Some("it moves to another fault unit, which does not have its counters per key");
    }
    None
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fate in &self.fates {
            let Continuation {
                fault,
                flow,
                switch,
                becomes,
            } = fate;
            writeln!(f, "  {fault} on {flow}, {switch}: {becomes}")?;
        }
        for ended in &self.ended {
            writeln!(
                f,
                "  {} on {}, {}: ends",
                ended.fault, ended.flow, ended.switch
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Becomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Becomes::GoesOn { .. } => write!(f, "goes on"),
            Becomes::BeginsAnew { because } => write!(f, "counts from the beginning: {because}"),
            Becomes::IsNew => write!(f, "is new"),
        }
    }
}

impl Scenario {
    /// The longest time, in nanoseconds, for which any fault of the scenario holds a packet.
    #[must_use]
    pub fn longest_stay_ns(&self) -> u64 {
        let stays = self
            .faults
            .iter()
            .map(|fault| fault.effect.longest_stay_ns());
        stays.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TargetModel;

    const OLD: &str = "weir: 1
name: old
topology: {star: {hosts: [a, s], switch: sw}}
flows:
  f: {from: a, to: s, filter: udp.dport == 7}
faults:
  - {id: x, flows: f, effect: drop, select: {every: 5}}
";

    /// The fate of the only fault in this text, as shown to users.
    fn fate(text: &str) -> String {
        becomes(OLD, text)
    }

    fn becomes(old: &str, new: &str) -> String {
        let load = |text: &str| {
            let scenario = crate::load("s.yaml", text).unwrap();
            let plan = crate::plan(&scenario, &TargetModel::EMBEDDED).unwrap();
            (scenario, plan)
        };
        let (old, new) = (load(old), load(new));
        Over::new((&old.0, &old.1), (&new.0, &new.1)).to_string()
    }

    #[test]
    fn a_fault_goes_on_where_it_selects_the_same_packets_by_the_same_numbers() {
        let goes_on = "  x on f, sw: goes on\n";
        assert_eq!(fate(OLD), goes_on);
        assert_eq!(
            fate(&OLD.replace("effect: drop", "effect: {delay: 5ms}")),
            goes_on
        );
        let other = "  - {id: w, flows: f, effect: observe}\n  - {id: x,";
        let both = fate(&OLD.replace("  - {id: x,", other));
        assert_eq!(both, "  w on f, sw: is new\n  x on f, sw: goes on\n");
    }

    #[test]
    fn it_counts_from_the_beginning_where_anything_else_differs() {
        let cases = [
            ("every: 5}", "every: 6}", "its selection differs"),
            ("dport == 7", "dport == 9", "its flow has another filter"),
            ("every: 5}}", "every: 5}, per: source}", "it has other keys"),
            (
                "every: 5}}",
                "every: 5}, where: {egress: sw}}",
                "it acts in the other direction (ingress or egress)",
            ),
            (
                "faults:\n  - {id: x, flows: f,",
                "triggers: {t: {after: {flow: f}}}\nfaults:\n  - {id: x, when: t, flows: f,",
                "it waits for another trigger",
            ),
        ];
        for (was, now, because) in cases {
            let text = OLD.replace(was, now);
            assert_ne!(text, OLD);
            let told = format!("  x on f, sw: counts from the beginning: {because}\n");
            assert_eq!(fate(&text), told, "{text}");
        }
        let drawn = OLD.replace("every: 5", "probability: 0.5");
        let seeded = drawn.replace("name: old", "name: old\nseed: 9");
        assert_eq!(
            becomes(&drawn, &seeded),
            "  x on f, sw: counts from the beginning: it has another seed\n"
        );
        let counted = OLD.replace("name: old", "name: old\nseed: 9");
        assert_eq!(fate(&counted), "  x on f, sw: goes on\n");
        let renamed = fate(&OLD.replace("id: x", "id: y"));
        assert_eq!(renamed, "  y on f, sw: is new\n  x on f, sw: ends\n");
    }
}
