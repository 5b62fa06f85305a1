//! Judges each packet fault of a run: compares the switches' counts with the captures.

use std::time::Duration;

use scenario::model::expect::metric::{FaultMetric, Metric};
use scenario::model::selection::Selection;
use scenario::model::{Fault, Keys};
use scenario::outcome::vacuous;
use scenario::plan::Injection;
use serde::Serialize;

use super::count;
use super::evidence::Evidence;
use crate::experiment::Planned;
use proof::{Loss, Observation, Proof, Strays};

/// The result of a packet fault: its hits as the switches counted them, and as captures show them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FaultResult {
    /// Name of the fault in the scenario.
    pub id: String,
    /// Word for the effect: `drop`, `delay` …
    pub kind: &'static str,
    /// Number of frames of the fault's flows that reached its switches while it was armed.
    pub met: u64,
    /// Number of frames that the fault hit, as the switches counted them, without those in `unforwarded`.
    pub fired: u64,
    /// Number of frames that the fault had to hit and did hit, from captures on both sides of the switches.
    pub observed: u64,
    /// Number of frames in `observed` that another fault dropped, so that the effect of this fault is not visible.
    pub overridden: u64,
    /// For a fault that acts by key (such as a connection): number of frames spared because their key had no register cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<u64>,
    /// Number of frames that the fault had to hit, but that no entry of the switch forwards. They cannot leave, so the fault's
    /// effect on them is unknown: they count neither as hit nor as missed.
    #[serde(skip_serializing_if = "is_zero")]
    pub unforwarded: u64,
    /// Number of frames that the fault had to hit and did not hit.
    pub missed: u64,
    /// Number of frames that the fault had to spare and hit.
    pub collateral: u64,
    /// Number of frames in `met` that arrived while the next step was being written: judged by the old or new step, as fits.
    pub boundary: u64,
    /// For a delay: number of frames that the fault had to spare, but that took as long as the frames that it hit.
    pub slow: u64,
    /// For a delay or a rate: the largest lateness of a frame, beyond the time that the scenario requests, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_ns: Option<u64>,
    /// For a delay: the largest lateness that the plan allows, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_bound_ns: Option<u64>,
    /// For a delay: number of frames whose lateness exceeded `lateness_bound_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<u64>,
    /// For a fault that takes away RDMA data packets: number of these packets that their sender sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<u64>,
    /// For a fault that takes away RDMA data packets: longest time from such a packet to its retransmission, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_ns: Option<u64>,
    /// Time since the workload began from which on captures lack frames; all counts from captures are of the time before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unproved_from_ns: Option<u64>,
    /// Whether the fault missed frames or hit wrong ones before `unproved_from_ns`.
    #[serde(skip)]
    pub erred_before: bool,
    /// Whether the run proves that the fault hit all frames that it had to hit, and no other.
    pub proved: bool,
    /// Why the fault is not proved, or remarks on a proved fault; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl FaultResult {
    /// Judges a packet fault by the evidence of the run.
    pub fn judge(
        planned: &Planned,
        fault: &Fault,
        proof: &Proof,
        evidence: &Evidence,
    ) -> FaultResult {
        let injections = planned.plan.injections.iter().enumerate();
        let injections: Vec<_> = injections
            .filter(|(_, injection)| injection.fault == fault.id)
            .collect();
        let seen = injections
            .iter()
            .map(|(index, _)| proof.observations[*index])
            .fold(Observation::default(), Observation::and);
        let taken = proof.recoveries.iter().filter(|of| of.fault == fault.id);
        let came_again = || taken.clone().filter_map(|of| of.retransmission_ns);
        let is_rdma = fault.takes_rdma_data();
        let is_timed = fault.effect.is_timed();
        let is_held = fault.effect.longest_hold_ns() > 0;
        let bounds = injections.iter().filter_map(|(_, i)| i.lateness_bound_ns);
        let mut result = FaultResult {
            id: fault.id.clone(),
            kind: fault.effect.word(),
            met: seen.met,
            fired: injections
                .iter()
                .map(|(index, _)| fired(evidence, proof, *index))
                .sum(),
            unforwarded: seen.unforwarded,
            observed: seen.observed,
            overridden: seen.overridden,
            keyless: fault.keys.as_ref().map(|_| seen.keyless),
            missed: seen.missed,
            collateral: seen.collateral,
            boundary: seen.boundary,
            slow: seen.slow,
            latest_ns: is_timed.then_some(seen.latest_ns),
            lateness_bound_ns: bounds.max().filter(|_| is_held),
            beyond: is_held.then_some(seen.beyond),
            recovered: is_rdma.then(|| came_again().count() as u64),
            recovery_ns: came_again().max().filter(|_| is_rdma),
            proved: true,
            ..FaultResult::default()
        };
        let at = |switch: &str| injections.iter().any(|(_, i)| i.switch == switch);
        let given_up = proof.unproved_from.iter();
        let given_up = given_up.filter(|(switch, _)| at(switch));
        if let Some(from_ns) = given_up.map(|(_, from_ns)| *from_ns).min() {
            let begin_ns = evidence.start_ns().unwrap_or(from_ns);
            let losses = proof.losses.iter().filter(|loss| at(&loss.switch));
            let strays = proof.strays.iter().filter(|(switch, _)| at(switch));
            let mut errors: Vec<String> = strays
                .flat_map(|(switch, strays)| describe_strays(switch, *strays))
                .collect();
            if seen.is_crowded {
                errors.push(result.crowded());
            }
            result.give_up(from_ns.saturating_sub(begin_ns), losses, errors);
            return result;
        }
        let mut against = match seen.is_crowded {
            // The counts belong to one of many readings that fit: they would accuse the switch without certainty.
            true => vec![result.crowded()],
            false => result.differences(),
        };
        if result.fired == result.observed {
            let cells = injections.iter();
            against.extend(cells.filter_map(|(index, injection)| {
                let seen = proof.observations[*index].observed;
                differing_cell(injection, fired(evidence, proof, *index), seen)
            }));
        }
        if let Some(keys) = &fault.keys {
            let counted = injections.iter();
            let counted = counted.map(|(index, _)| evidence.keyless[*index]).sum();
            against.extend(unkeyed(planned, fault, keys, seen, counted));
        }
        against.extend(result.indistinct(fault, seen));
        let losses = proof.losses.iter().filter(|loss| at(&loss.switch));
        against.extend(losses.map(Loss::to_string));
        for (switch, strays) in proof.strays.iter().filter(|(switch, _)| at(switch)) {
            against.extend(describe_strays(switch, *strays));
        }
        if against.is_empty() && result.observed == 0 && result.fired == 0 {
            against.extend(idle(planned, fault, &result, evidence));
        }
        result.proved = against.is_empty();
        if result.proved && seen.is_ambiguous {
            against.push(
                "frames that arrived while an epoch was written can be interpreted in two ways; the faults are correct in both"
                    .to_owned(),
            );
        }
        if seen.in_doubt > 0 {
            against.push(format!(
                "{} arrived while their connection was being announced to the switch, which may have started its numbers at another packet",
                count(seen.in_doubt, "packet")
            ));
        }
        if seen.unforwarded > 0 && result.proved {
            against.push(result.nowhere());
        }
        result.reason = (!against.is_empty()).then(|| against.join("; "));
        result
    }

    /// Marks the fault as not proved from `from_ns` on, as captured frames are missing from then on; `errors` came before.
    fn give_up<'l>(
        &mut self,
        from_ns: u64,
        losses: impl Iterator<Item = &'l Loss>,
        mut errors: Vec<String>,
    ) {
        let from_s = Duration::from_nanos(from_ns).as_secs_f64();
        let losses: Vec<String> = losses.map(Loss::to_string).collect();
        if (self.missed, self.collateral) != (0, 0) {
            let (missed, collateral) = (self.missed, self.collateral);
            errors.insert(
                0,
                format!("it missed {missed} and hit {collateral} that it had to spare"),
            );
        }
        self.erred_before = !errors.is_empty();
        let until_then = match self.erred_before {
            false => "until then it hit what it had to".to_owned(),
            true => format!("until then {}", errors.join("; ")),
        };
        self.unproved_from_ns = Some(from_ns);
        self.proved = false;
        self.reason = Some(format!(
            "unproved from {from_s:.1} s on: {}; {until_then}",
            losses.join("; ")
        ));
    }

    fn nowhere(&self) -> String {
        format!(
            "{} that it would have hit had no route out of the switch: no entry forwards their destination",
            count(self.unforwarded, "frame")
        )
    }

    fn crowded(&self) -> String {
        let Self {
            missed, collateral, ..
        } = self;
        format!(
            "not judged: more frames arrived while an epoch was written or a trigger changed its state than the judge can follow (its best interpretation has {missed} missed and {collateral} collateral)"
        )
    }

    fn differences(&self) -> Vec<String> {
        let (missed, collateral) = (count(self.missed, "frame"), count(self.collateral, "frame"));
        let (fired, observed) = (self.fired, self.observed);
        let mut differences = Vec::new();
        if self.missed > 0 {
            differences.push(format!("it spared {missed} that it had to hit"));
        }
        if self.collateral > 0 {
            differences.push(format!("it hit {collateral} that it had to spare"));
        }
        if fired != observed {
            differences.push(format!(
                "the switch counted {fired}, captures saw {observed}"
            ));
        }
        differences
    }

    /// Reasons why the fault is not proved although all counts agree: a faulty switch could have caused the same captures.
    fn indistinct(&self, fault: &Fault, seen: Observation) -> Vec<String> {
        let mut reasons = Vec::new();
        let spared = self.met.saturating_sub(self.observed + self.missed);
        if seen.slow_alone.saturating_mul(2) > spared {
            reasons.push(format!(
                "of {} that it had to spare, {} took as long as if it had hit them: either the machine stalled, or the \
                 switch holds them",
                count(spared, "frame"),
                seen.slow_alone
            ));
        }
        // A machine is slow now and then; a switch that holds frames for too long never releases one in time.
        let patience = self
            .lateness_bound_ns
            .map(|bound| bound + fault.effect.longest_hold_ns() / 2);
        if let (Some(soonest), Some(patience)) = (seen.soonest_ns, patience)
            && soonest > patience
        {
            reasons.push(format!(
                "every frame that it held left at least {:.1} ms later than the fault requests",
                soonest as f64 / 1e6
            ));
        }
        reasons
    }

    /// For a delay with a bound: whether every frame left within the bound; `None` for other faults.
    pub fn is_in_time(&self) -> Option<bool> {
        Some(self.latest_ns? <= self.lateness_bound_ns?)
    }
}

/// Number of hits that the switch counted for an injection (a fault on a flow), without frames that no table entry forwards.
fn fired(evidence: &Evidence, proof: &Proof, injection: usize) -> u64 {
    evidence.fired[injection].saturating_sub(proof.observations[injection].unforwarded)
}

/// Whether a count is 0: such a count is left out of a result's JSON.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Describes a difference between a switch's count and the captures for one flow; totals of the fault do not show it.
fn differing_cell(injection: &Injection, fired: u64, observed: u64) -> Option<String> {
    let Injection { flow, switch, .. } = injection;
    (fired != observed).then(|| {
        format!(
            "for flow {flow} at switch {switch} the switch counted {fired}, captures saw {observed}"
        )
    })
}

/// Describes frames that left a switch wrongly, or did not leave it, and that no fault explains.
fn describe_strays(switch: &str, strays: Strays) -> Vec<String> {
    let Strays {
        unexplained,
        foreign,
    } = strays;
    let mut reasons = Vec::new();
    if unexplained > 0 {
        reasons.push(format!(
            "{} did not leave switch {switch} as required, and no fault explains that",
            count(unexplained, "frame")
        ));
    }
    if foreign > 0 {
        reasons.push(format!(
            "{} left switch {switch} changed or by a wrong port, and no fault explains that",
            count(foreign, "frame")
        ));
    }
    reasons
}

/// Explains why a fault hit nothing, so that nothing is proved; `None` if the scenario expects that it hits nothing.
fn idle(
    planned: &Planned,
    fault: &Fault,
    result: &FaultResult,
    evidence: &Evidence,
) -> Option<String> {
    let scenario = &planned.scenario;
    if scenario.expects_nothing_of(&fault.id) {
        return None;
    }
    let armed = |epoch: u16| evidence.writes.iter().any(|write| write.epoch == epoch);
    let why = match result.unforwarded {
        0 => vacuous::reason(scenario, fault, result.met, armed),
        _ => result.nowhere(),
    };
    Some(format!(
        "it hit nothing: {why} (write `expect: [fault.{}.fired == 0]` if this is intended)",
        fault.id
    ))
}

/// Describes frames whose key (such as a connection) the switch confused with another key, or had no register cell for.
fn unkeyed(
    planned: &Planned,
    fault: &Fault,
    keys: &Keys,
    seen: Observation,
    counted: u64,
) -> Vec<String> {
    let id = &fault.id;
    let mut reasons = Vec::new();
    let keyless = Metric::fault(id, FaultMetric::Keyless);
    if seen.keyless > 0 && !planned.scenario.expects_of(&keyless) {
        reasons.push(format!(
            "it spared {} of {} because the switch had no cell for their key: set `keys` above {}, or expect `{keyless}`",
            count(seen.keyless, "frame"),
            keys.of,
            keys.most
        ));
    }
    if seen.keyless != counted {
        reasons.push(format!(
            "the switch counted {counted} without a cell for their key, captures saw {}",
            seen.keyless
        ));
    }
    if seen.conflated > 0 {
        let remedy = match fault.selection {
            Selection::Psn(_) => {
                "give the fault another `id`, or each queue pair its own flow (`roce.qp == …`)"
            }
            _ => "write the fields in another order, `per: [tcp.sport, …]`",
        };
        reasons.push(format!(
            "the switch confused {} of some {} with those of others: {remedy}",
            count(seen.conflated, "frame"),
            keys.of
        ));
    }
    reasons
}
