//! Results of a run's triggers, from captures and counters.

use std::time::Duration;

use scenario::expect::metric::{Metric, TriggerMetric};
use scenario::plan::{PlannedTrigger, SwitchPlan};
use serde::Serialize;

use super::count;
use super::evidence::Evidence;
use crate::experiment::Planned;
use proof::{Loss, Proof};

/// The result of a trigger: the switch's count and the captures' count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriggerResult {
    /// Name of the trigger.
    pub name: String,
    /// The switch that has the trigger.
    pub switch: String,
    /// Description of the trigger's condition, for readers.
    pub what: String,
    /// How often the trigger fired, for all keys together, as the switch counted it; `None` if the switch does not count it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<u64>,
    /// The same number from captures: the captured frames are replayed through the model.
    pub observed: u64,
    /// For a trigger with a state per key: frames that it would have counted, and whose key had no cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<u64>,
    /// Time from which on frames are missing, since the workload began; `observed` covers only frames before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unproved_from_ns: Option<u64>,
    /// Whether the counts agree.
    pub proved: bool,
    /// Why the counts do not agree, or other remarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl TriggerResult {
    /// Results of all triggers, in declared order.
    pub fn all(planned: &Planned, proof: &Proof, evidence: &Evidence) -> Vec<TriggerResult> {
        let switches = planned.plan.switches.iter();
        let placed = switches.flat_map(|switch| switch.triggers.iter().map(move |t| (switch, t)));
        let mut placed: Vec<(&SwitchPlan, &PlannedTrigger)> = placed.collect();
        placed.sort_by_key(|(_, trigger)| trigger.index);
        let results = placed.into_iter();
        results
            .map(|(switch, named)| TriggerResult::of(planned, switch, named, (proof, evidence)))
            .collect()
    }

    fn of(
        planned: &Planned,
        switch: &SwitchPlan,
        named: &PlannedTrigger,
        (proof, evidence): (&Proof, &Evidence),
    ) -> TriggerResult {
        let seen = proof.triggers[named.index];
        let counted = evidence
            .triggers
            .get(named.index)
            .copied()
            .unwrap_or_default();
        let on = named.counter.is_some().then_some(counted.on);
        let mut against = Vec::new();
        let keys = planned.scenario.triggers[named.index].keys.as_ref();
        if let Some(from_ns) = proof.unproved_from.get(&switch.name) {
            let begin_ns = evidence.start_ns().unwrap_or(*from_ns);
            let from_ns = from_ns.saturating_sub(begin_ns);
            let from_s = Duration::from_nanos(from_ns).as_secs_f64();
            let losses = proof
                .losses
                .iter()
                .filter(|loss| loss.switch == switch.name);
            let losses: Vec<String> = losses.map(Loss::to_string).collect();
            let losses = losses.join("; ");
            return TriggerResult {
                name: named.name.clone(),
                switch: switch.name.clone(),
                what: named.what.clone(),
                on,
                observed: seen.came_on,
                keyless: keys.map(|_| seen.keyless),
                unproved_from_ns: Some(from_ns),
                // A trigger without a count proves nothing, and needs no proof.
                proved: on.is_none(),
                reason: Some(format!("unproved from {from_s:.1} s on: {losses}")),
            };
        }
        if seen.is_crowded {
            against.push(
                "it cannot be told: too many frames came while it turned to follow all that they may have met".to_owned(),
            );
        } else if let Some(on) = on.filter(|on| *on != seen.came_on) {
            against.push(format!(
                "the switch counted that it came on {}, captures saw {}",
                count(on, "time"),
                seen.came_on
            ));
        }
        let keyless = Metric::trigger(&named.name, TriggerMetric::Keyless);
        if let Some(keys) = keys.filter(|_| seen.keyless > 0)
            && !planned.scenario.expects_of(&keyless)
        {
            against.push(format!(
                "it did not count {} of {} for which the switch had no cell: write a greater `keys` than {}, or expect `{keyless}`",
                count(seen.keyless, "frame"),
                keys.of,
                keys.most
            ));
        }
        if seen.keyless != counted.keyless {
            against.push(format!(
                "the switch counted {} without a cell for their key, captures saw {}",
                counted.keyless, seen.keyless
            ));
        }
        if let Some(keys) = keys.filter(|_| seen.conflated > 0) {
            against.push(format!(
                "the switch took {} of some {} for those of others: the fields in another order, `per: [tcp.sport, …]`, tell them apart",
                count(seen.conflated, "frame"),
                keys.of
            ));
        }
        let losses = proof
            .losses
            .iter()
            .filter(|loss| loss.switch == switch.name);
        // A trigger without a count needs no proof.
        against.extend(losses.filter(|_| on.is_some()).map(Loss::to_string));
        let proved = against.is_empty();
        if proved && seen.is_ambiguous {
            against.push(
                "frames that came while it turned fit two readings; the one that agrees with its count is taken"
                    .to_owned(),
            );
        }
        TriggerResult {
            name: named.name.clone(),
            switch: switch.name.clone(),
            what: named.what.clone(),
            on,
            observed: seen.came_on,
            keyless: keys.map(|_| seen.keyless),
            unproved_from_ns: None,
            proved,
            reason: (!against.is_empty()).then(|| against.join("; ")),
        }
    }
}
