//! Judges a fault of a program or a switch: whether its effect was observed, and whether a switch forwarded while down.

use proof::Proof;
use scenario::model::disruption::{Disruption, Subject};
use scenario::outcome::vacuous;
use serde::Serialize;

use super::count;
use super::evidence::Evidence;
use crate::experiment::Planned;
use crate::experiment::carry_out::disruption::DisruptionExecution;

/// The result of a fault that acts on a program or a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DisruptionResult {
    /// Name of the fault in the scenario.
    pub id: String,
    /// Kind of the fault: `pause`, `kill` …
    pub kind: &'static str,
    /// Name of the command or switch that the fault acts on.
    pub on: String,
    /// Host of the command; `None` for a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// How often the controller carried out the fault.
    pub fired: u64,
    /// How often the controller carried out the fault and also observed its effect and its end.
    pub observed: u64,
    /// How often the controller carried out the fault but observed something else.
    pub missed: u64,
    /// Number of frames that left the switch while it was down, without those that had arrived before. `None` for a command,
    /// and if the judge could not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collateral: Option<u64>,
    /// Whether every execution was observed, and no frame left the switch while it was down.
    pub proved: bool,
    /// Why the fault is not proved, or remarks on a proved fault; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Times of each execution of the fault.
    pub times: Vec<DisruptionExecution>,
}

impl DisruptionResult {
    /// Judges a fault of a program or a switch by the evidence of the run.
    pub fn judge(
        planned: &Planned,
        disruption: &Disruption,
        evidence: &Evidence,
        proof: &Proof,
    ) -> DisruptionResult {
        let Disruption { id, does, .. } = disruption;
        let times = evidence.carried.iter();
        let times: Vec<DisruptionExecution> =
            times.filter(|time| time.fault == *id).cloned().collect();
        let holding = |holds: &dyn Fn(&DisruptionExecution) -> bool| {
            times.iter().filter(|time| holds(time)).count() as u64
        };
        let fired = holding(&|time| time.skipped.is_none());
        let observed = holding(&DisruptionExecution::is_seen);
        let collateral = match does.subject() {
            Subject::Command(_) => None,
            Subject::Switch(_) => {
                let outages = times.iter().filter_map(|time| time.outage(does));
                outages.map(|outage| proof.let_through(&outage)).sum()
            }
        };
        let mut result = DisruptionResult {
            id: id.clone(),
            kind: does.word(),
            on: does.subject().name().to_owned(),
            host: disruption.host(&planned.scenario).map(str::to_owned),
            fired,
            observed,
            missed: fired - observed,
            collateral,
            proved: true,
            reason: None,
            times,
        };
        let mut against = result.against(planned, disruption, evidence);
        if let Subject::Switch(switch) = does.subject() {
            // A frame that left meanwhile may be among the missing frames.
            let ends = result.times.iter().map(|time| time.undone_ns);
            let end_ns = ends.map(|end_ns| end_ns.unwrap_or(u64::MAX)).max();
            let is_before_end = |since_ns: u64| end_ns.is_some_and(|end_ns| since_ns <= end_ns);
            let losses = proof.losses.iter().filter(|loss| loss.switch == switch);
            let losses = losses.filter(|loss| loss.since_ns.is_none_or(is_before_end));
            against.extend(losses.map(ToString::to_string));
        }
        result.proved = against.is_empty();
        against.extend(result.remarks());
        result.reason = (!against.is_empty()).then(|| against.join("; "));
        result
    }

    fn against(
        &self,
        planned: &Planned,
        disruption: &Disruption,
        evidence: &Evidence,
    ) -> Vec<String> {
        let mut against: Vec<String> = Vec::new();
        let unseen = self.times.iter();
        against.extend(unseen.filter_map(|time| time.unseen.clone()));
        match (disruption.does.subject(), self.collateral) {
            (Subject::Command(_), _) | (_, Some(0)) => {}
            (_, Some(passed)) => {
                let frames = count(passed, "frame");
                against.push(format!("{frames} left the switch while it was down"));
            }
            (_, None) => against.push(
                "frames that left the switch while it was down were not counted: the judge learned of its outage too late"
                    .to_owned(),
            ),
        }
        let scenario = &planned.scenario;
        if self.fired == 0 && !scenario.expects_nothing_of(&self.id) {
            let is_armed = |epoch: u16| evidence.writes.iter().any(|write| write.epoch == epoch);
            let was_due = disruption.epochs.iter().cloned().flatten().any(is_armed);
            let skipped = self.times.iter().find_map(|time| time.skipped.clone());
            let why = skipped.unwrap_or_else(|| match was_due {
                true => "the run ended when its step began".to_owned(),
                false => vacuous::too_late(scenario, &disruption.epochs),
            });
            against.push(format!(
                "it was not carried out: {why} (write `expect: [fault.{}.fired == 0]` if this is intended)",
                self.id
            ));
        }
        against
    }

    /// Remarks on skipped or incomplete executions that do not affect the proof, each once.
    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = Vec::new();
        if self.fired > 0 {
            let skipped = self.times.iter().filter_map(|time| time.skipped.as_deref());
            let skipped: Vec<&str> = skipped.collect();
            if let Some(first) = skipped.first() {
                let times = count(skipped.len() as u64, "time");
                remarks.push(format!("{times} it was not carried out: {first}"));
            }
        }
        for remark in self.times.iter().filter_map(|time| time.remark.as_ref()) {
            if !remarks.contains(remark) {
                remarks.push(remark.clone());
            }
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use scenario::model::Scenario;
    use testbeds::capture::{Direction, Frame};

    use super::*;
    use crate::experiment::conclude::evidence::tests::prove;
    use crate::target::Kind;

    fn planned(expect: &str) -> Planned {
        let text = format!(
            "weir: 1\nname: t\ntopology: {{star: {{hosts: [a, b], switch: sw}}}}\nworkload: {{idle: {{for: 9s}}}}\n\
             timeline: [{{name: down, at: 1s, for: 1s}}]\n\
             faults: [{{id: reboot, effect: {{restart: sw}}, during: down}}]\n{expect}\n"
        );
        let scenario: Scenario = scenario::load("t.yaml", &text).expect("a scenario");
        Planned::new(scenario, Kind::Embedded).expect("a plan")
    }

    fn frame(at_ns: u64, direction: Direction, byte: u8) -> Frame {
        Frame {
            at_ns,
            direction,
            wire_len: 60,
            bytes: vec![byte; 60].into(),
        }
    }

    fn evidence(carried: Vec<DisruptionExecution>) -> Evidence {
        Evidence {
            carried,
            ..Evidence::default()
        }
    }

    fn judged(
        planned: &Planned,
        carried: Vec<DisruptionExecution>,
        frames: Vec<Frame>,
    ) -> DisruptionResult {
        let evidence = evidence(carried);
        let (proof, _) = prove(planned, &evidence, &[(1, frames)]);
        DisruptionResult::judge(planned, &planned.scenario.disruptions[0], &evidence, &proof)
    }

    fn carried() -> DisruptionExecution {
        DisruptionExecution {
            done_ns: Some(1_000),
            processes: 1,
            undo_ns: Some(2_000),
            undone_ns: Some(2_500),
            ..DisruptionExecution::new("reboot", 2)
        }
    }

    #[test]
    fn what_leaves_a_switch_that_is_down_is_told_from_what_waited_for_its_link() {
        use Direction::{In, Out};
        let planned = planned("");
        let rest = vec![frame(900, In, 1), frame(1_100, Out, 1), frame(1_500, In, 2)];
        let result = judged(&planned, vec![carried()], rest.clone());
        assert_eq!(
            (result.fired, result.observed, result.collateral),
            (1, 1, Some(0))
        );
        assert!(result.proved, "{result:?}");
        // The frame arrived while the switch was down, and left.
        let through = [rest.clone(), vec![frame(1_600, Out, 2)]].concat();
        let result = judged(&planned, vec![carried()], through);
        assert_eq!((result.proved, result.collateral), (false, Some(1)));
        // The frame left, but never arrived.
        let made_up = [rest.clone(), vec![frame(1_600, Out, 3)]].concat();
        assert!(!judged(&planned, vec![carried()], made_up).proved);
        // The new process may forward frames.
        let after = [rest, vec![frame(2_600, In, 4), frame(2_700, Out, 4)]].concat();
        assert!(judged(&planned, vec![carried()], after).proved);
    }

    #[test]
    fn frames_that_were_not_counted_prove_nothing() {
        let planned = planned("");
        let evidence = evidence(vec![carried()]);
        let (mut proof, _) = prove(&planned, &evidence, &[(1, Vec::new())]);
        proof.outages[0].frames = None;
        let disruption = &planned.scenario.disruptions[0];
        let result = DisruptionResult::judge(&planned, disruption, &evidence, &proof);
        assert_eq!((result.proved, result.collateral), (false, None));
        let why = result.reason.unwrap_or_default();
        assert!(why.contains("were not counted"), "{why}");
    }

    #[test]
    fn what_was_not_seen_or_never_came_is_not_proved() {
        let planned_once = planned("");
        let unseen = DisruptionExecution {
            unseen: Some("of 3 entries it shows 2".to_owned()),
            ..carried()
        };
        let result = judged(&planned_once, vec![carried(), unseen], Vec::new());
        assert_eq!((result.fired, result.observed, result.missed), (2, 1, 1));
        assert_eq!(result.reason.as_deref(), Some("of 3 entries it shows 2"));
        let skipped = DisruptionExecution {
            skipped: Some("it had ended by itself".to_owned()),
            ..DisruptionExecution::new("reboot", 2)
        };
        let result = judged(&planned_once, vec![skipped.clone()], Vec::new());
        assert_eq!((result.fired, result.proved), (0, false));
        // An execution beyond the expected number is reported, but fails nothing.
        let result = judged(&planned_once, vec![carried(), skipped], Vec::new());
        assert!(result.proved && result.reason.is_some(), "{result:?}");
        let never = judged(&planned_once, Vec::new(), Vec::new());
        let why = never.reason.unwrap_or_default();
        assert!(
            why.contains("the run ended before its step started, 1s after the start"),
            "{why}"
        );
        let planned_never = planned("expect: [fault.reboot.fired == 0]");
        assert!(judged(&planned_never, Vec::new(), Vec::new()).proved);
    }
}
