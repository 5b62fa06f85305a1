//! Judges the triggers of a run: compares the switches' counts with the captures.

use std::time::Duration;

use scenario::model::expect::metric::{Metric, TriggerMetric};
use scenario::plan::{PlannedTrigger, SwitchPlan};
use serde::Serialize;

use super::count;
use super::evidence::Evidence;
use crate::experiment::Planned;
use proof::{Loss, Proof};

/// The result of a trigger: how often it fired, as the switch counted it and as captures show it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TriggerResult {
    /// Name of the trigger in the scenario.
    pub name: String,
    /// Name of the switch that evaluates the trigger.
    pub switch: String,
    /// The trigger's condition in words, for readers.
    pub what: String,
    /// How often the trigger fired on the switch, for all keys together; `None` if the switch does not count it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<u64>,
    /// How often the trigger fired when the judge replayed the captured frames.
    pub observed: u64,
    /// For a trigger that counts by key (such as a connection): number of frames left out as their key had no register cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<u64>,
    /// Time since the workload began from which on captures lack frames; `observed` covers only the frames before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unproved_from_ns: Option<u64>,
    /// Whether the switch's count and that of the captures agree.
    pub proved: bool,
    /// Why the trigger is not proved, or remarks on a proved trigger; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl TriggerResult {
    /// Judges all triggers by the evidence of the run; results are in declared order.
    pub fn all(planned: &Planned, proof: &Proof, evidence: &Evidence) -> Vec<TriggerResult> {
        let switches = planned.plan.switches.iter();
        let placed = switches.flat_map(|switch| switch.triggers.iter().map(move |t| (switch, t)));
        let mut placed: Vec<(&SwitchPlan, &PlannedTrigger)> = placed.collect();
        placed.sort_by_key(|(_, trigger)| trigger.index);
        let judge =
            |(switch, trigger)| TriggerResult::judge(planned, switch, trigger, (proof, evidence));
        placed.into_iter().map(judge).collect()
    }

    /// Judges a trigger by the evidence of the run.
    fn judge(
        planned: &Planned,
        switch: &SwitchPlan,
        trigger: &PlannedTrigger,
        (proof, evidence): (&Proof, &Evidence),
    ) -> TriggerResult {
        let seen = proof.triggers[trigger.index];
        let counted = evidence.triggers.get(trigger.index);
        let counted = counted.copied().unwrap_or_default();
        let on = trigger.counter.is_some().then_some(counted.on);
        let keys = planned.scenario.triggers[trigger.index].keys.as_ref();
        let losses = proof.losses.iter();
        let losses = losses.filter(|loss| loss.switch == switch.name);
        let losses = losses.map(Loss::to_string);
        let mut result = TriggerResult {
            name: trigger.name.clone(),
            switch: switch.name.clone(),
            what: trigger.what.clone(),
            on,
            observed: seen.came_on,
            keyless: keys.map(|_| seen.keyless),
            // A trigger without a count proves nothing, and needs no proof.
            proved: on.is_none(),
            ..TriggerResult::default()
        };
        if let Some(from_ns) = proof.unproved_from.get(&switch.name) {
            let begin_ns = evidence.start_ns().unwrap_or(*from_ns);
            let from_ns = from_ns.saturating_sub(begin_ns);
            let from_s = Duration::from_nanos(from_ns).as_secs_f64();
            let losses = losses.collect::<Vec<_>>().join("; ");
            result.unproved_from_ns = Some(from_ns);
            result.reason = Some(format!("unproved from {from_s:.1} s on: {losses}"));
            return result;
        }
        let mut against = Vec::new();
        if seen.is_crowded {
            against.push(
                "not judged: more frames arrived while it changed its state than the judge can follow".to_owned(),
            );
        } else if let Some(on) = on.filter(|on| *on != seen.came_on) {
            against.push(format!(
                "the switch counted that it fired {}, captures saw {}",
                count(on, "time"),
                seen.came_on
            ));
        }
        let keyless = Metric::trigger(&trigger.name, TriggerMetric::Keyless);
        if let Some(keys) = keys.filter(|_| seen.keyless > 0)
            && !planned.scenario.expects_of(&keyless)
        {
            against.push(format!(
                "it did not count {} of {} because the switch had no cell for their key: set `keys` above {}, or expect `{keyless}`",
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
                "the switch confused {} of some {} with those of others: write the fields in another order, `per: [tcp.sport, …]`",
                count(seen.conflated, "frame"),
                keys.of
            ));
        }
        against.extend(losses.filter(|_| on.is_some()));
        result.proved = against.is_empty();
        if result.proved && seen.is_ambiguous {
            against.push(
                "frames that arrived while it changed its state can be interpreted in two ways; the judge took the one that agrees with its count"
                    .to_owned(),
            );
        }
        result.reason = (!against.is_empty()).then(|| against.join("; "));
        result
    }
}
