//! Checks the results of the demo's runs, and explains failures that a busy machine may have caused.

use crate::experiment::RunResult;
use crate::experiment::carry_out::TrainingResult;
use crate::reference::Reference;
use crate::report::{Check, Verdict, faults, grouped, machine_load, percent};

/// Maximum share of retransmitted bytes in a run without faults: more shows that answers are missing or late.
const RETRANSMITTED_LIMIT: f64 = 0.01;
/// Largest plausible share of bytes that aggregation removes: (n − 1)/n for eight workers, and a margin; more is an error.
const REMOVED_LIMIT: f64 = 0.8751;
/// Minimum share of the bytes on the server's link that aggregation has to remove.
const REMOVED_GOAL: f64 = 0.865;
pub(super) const ACCURACY_GOAL: f64 = 0.90;
const FIRED_GOAL: u64 = 20;

/// Share of the bytes on the server's link that the run `aggregated` saves, compared with `server_only`. Retransmitted bytes do
/// not count, as their number depends on the machine.
pub(super) fn removed(runs: &[RunResult; 3]) -> f64 {
    let once = |run: &RunResult| {
        let of = run.carried_out.training.as_ref();
        of.map_or(0, |of| {
            of.server_link_bytes
                .saturating_sub(of.server_link_repeated_bytes)
        })
    };
    1.0 - once(&runs[0]) as f64 / once(&runs[1]).max(1) as f64
}

/// Checks all conditions on the demo's runs; the texts contain the values found, and remarks on what a busy machine distorted.
pub(super) fn verdict(runs: &[RunResult; 3], reference: &Reference, removed: f64) -> Verdict {
    let mut checks = Vec::new();
    let trained = || {
        runs.iter()
            .filter_map(|run| Some((run.scenario.as_str(), run.carried_out.training.as_ref()?)))
    };
    let equal = trained().count() == runs.len()
        && trained().all(|(_, of)| of.weights_sha256 == reference.weights_sha256);
    checks.push(Check::new(
        equal,
        "the final weights of all runs are the same bits",
    ));
    for (name, of) in trained() {
        let holds = of.disagreeing_workers.is_empty();
        let text = format!("{name}: every worker holds the server's weights");
        checks.push(Check::new(holds, text));
    }
    let accuracies = trained().map(|(_, of)| of.accuracy);
    let worst = accuracies.fold(reference.accuracy, f64::min);
    checks.push(Check::new(
        worst >= ACCURACY_GOAL,
        format!("held-out accuracy is {}, at least 90 %", percent(worst)),
    ));
    let mut degraded = Vec::new();
    for run in &runs[..2] {
        let Some(again) = run
            .carried_out
            .training
            .as_ref()
            .map(|of| sent_again(&run.scenario, of))
        else {
            continue;
        };
        // A process that others kept from running answers late; without other load, the process itself is at fault.
        if !again.holds && run.machine_load.is_of_others() {
            degraded.extend(machine_load::with_machine(
                vec![again.text],
                &run.scenario,
                &run.machine_load,
            ));
        } else {
            checks.push(again);
        }
    }
    let text = format!(
        "{:.2} % of the server's bytes are saved; at least 86.5 %, at most 87.5 %",
        removed * 100.0
    );
    checks.push(Check::new(
        (REMOVED_GOAL..=REMOVED_LIMIT).contains(&removed),
        text,
    ));
    let faulted = &runs[2];
    for fault in &faulted.conclusion.faults {
        checks.push(faults::check(fault));
        let text = format!(
            "{}: fired {} times, at least {FIRED_GOAL}",
            fault.id,
            grouped(fault.fired)
        );
        checks.push(Check::new(fault.fired >= FIRED_GOAL, text));
    }
    let late = faults::late(&faulted.conclusion.faults);
    degraded.extend(machine_load::with_machine(
        late,
        &faulted.scenario,
        &faulted.machine_load,
    ));
    Verdict {
        checks,
        degraded,
        remarks: Vec::new(),
    }
}

fn sent_again(name: &str, of: &TrainingResult) -> Check {
    let share = of.retransmitted_bytes as f64 / of.sent_bytes.max(1) as f64;
    let text = format!(
        "{name}: {:.3} % of the bytes were retransmitted, at most 1 %",
        share * 100.0
    );
    Check::new(share <= RETRANSMITTED_LIMIT, text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::experiment::carry_out::CarriedOut;
    use crate::experiment::conclude::Conclusion;
    use crate::experiment::conclude::evidence::Evidence;
    use crate::experiment::observe::machine::MachineLoad;

    const MB: u64 = 1_000_000;

    fn run(scenario: &str, once: u64, repeated: u64, machine_load: MachineLoad) -> RunResult {
        let training = TrainingResult {
            accuracy: 0.94,
            weights_sha256: "00".to_owned(),
            disagreeing_workers: Vec::new(),
            server_link_bytes: once + repeated,
            server_link_repeated_bytes: repeated,
            sent_bytes: 104 * MB,
            retransmitted_bytes: repeated,
            iterations: 30,
            rounds: Vec::new(),
        };
        RunResult {
            carried_out: CarriedOut {
                training: Some(training),
                ..CarriedOut::default()
            },
            conclusion: Conclusion::default(),
            scenario: scenario.to_owned(),
            steps: Vec::new(),
            marks: Vec::new(),
            machine_load,
            evidence: Evidence::default(),
        }
    }

    /// `repeated`: bytes that the run without aggregation retransmits.
    fn judged(repeated: u64, machine_load: &MachineLoad) -> Verdict {
        let runs = [
            run("aggregated", 13 * MB, 0, MachineLoad::default()),
            run("server_only", 104 * MB, repeated, machine_load.clone()),
            run("faulted", 13 * MB, 3 * MB, MachineLoad::default()),
        ];
        let reference = Reference {
            weights_sha256: "00".to_owned(),
            accuracy: 0.94,
            wall: Duration::from_secs(1),
        };
        verdict(&runs, &reference, removed(&runs))
    }

    fn busy() -> MachineLoad {
        MachineLoad {
            busy_share: 1.0,
            others_share: 0.8,
            load_before: 16.0,
            ..MachineLoad::default()
        }
    }

    #[test]
    fn what_is_sent_again_does_not_count_as_saved() {
        let verdict = judged(4 * MB, &busy());
        assert!(verdict.is_ok(), "{verdict:?}");
        let mut texts = verdict.checks.iter().map(|check| check.text.as_str());
        assert!(texts.any(|text| text.starts_with("87.50 % of the server's bytes")));
    }

    #[test]
    fn a_quiet_machine_excuses_no_retransmission() {
        let quiet = MachineLoad {
            busy_share: 0.9,
            others_share: 0.02,
            ..MachineLoad::default()
        };
        let verdict = judged(4 * MB, &quiet);
        let failures: Vec<&str> = verdict
            .failures()
            .map(|check| check.text.as_str())
            .collect();
        assert_eq!(
            failures,
            ["server_only: 3.846 % of the bytes were retransmitted, at most 1 %"]
        );
        assert!(verdict.degraded.is_empty(), "{verdict:?}");
    }

    #[test]
    fn a_busy_machine_is_named_instead() {
        let verdict = judged(4 * MB, &busy());
        assert!(verdict.is_ok(), "{verdict:?}");
        assert_eq!(
            verdict.degraded,
            [
                "server_only: 3.846 % of the bytes were retransmitted, at most 1 %",
                "the machine: 100.0 % of its processor time was used during server_only, 80.0 % by other processes, 0.0 % \
                 was taken by the hypervisor; the load average before was 16.0",
            ]
        );
        // Only a failed check needs an excuse.
        assert!(judged(MB, &busy()).degraded.is_empty());
    }
}
