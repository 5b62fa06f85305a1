//! A run judged again, from what its folder has; and two runs of one scenario against each other.

use std::collections::BTreeSet;

use serde::Serialize;

use super::events;
use super::evidence::Kept;
use crate::experiment::Conclusion;
use proof::Outcome;

/// What the stored evidence says now.
pub struct Replayed {
    /// Of the faults.
    pub conclusion: Conclusion,
    /// How many events there are.
    pub events: usize,
    /// Where the log differs from the one in the folder.
    pub difference: Option<Difference>,
}

/// The first line in which two logs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// From 1.
    pub line: usize,
    /// As the folder has it; none if it ends before.
    pub stored: Option<String>,
    /// As the model has it.
    pub replayed: Option<String>,
}

/// Runs the model over the stored captures.
#[must_use]
pub fn replay(kept: &Kept) -> Replayed {
    let conclusion = Conclusion::of(&kept.planned, &kept.evidence);
    let text = events::log(&kept.planned, &kept.evidence, &conclusion.hits);
    Replayed {
        events: text.lines().count(),
        difference: difference(&kept.events, &text),
        conclusion,
    }
}

fn difference(stored: &str, replayed: &str) -> Option<Difference> {
    if stored == replayed {
        return None;
    }
    let (mut a, mut b) = (stored.split('\n'), replayed.split('\n'));
    let mut line = 0;
    loop {
        line += 1;
        let (stored, replayed) = (a.next(), b.next());
        if stored != replayed || stored.is_none() {
            let text = |line: Option<&str>| line.filter(|line| !line.is_empty()).map(str::to_owned);
            return Some(Difference {
                line,
                stored: text(stored),
                replayed: text(replayed),
            });
        }
    }
}

/// What one fault did to one flow in two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Which fault.
    pub fault: String,
    /// Which flow.
    pub flow: String,
    /// How many packets it looked at in each run.
    pub met: [u64; 2],
    /// Of how many that both runs have, which it hit in one run alone, by ordinal.
    pub differing: Vec<u64>,
    /// How many it hit in both.
    pub alike: u64,
    /// Why the runs cannot be compared here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
}

/// Which ordinals of each flow each fault had to hit, as far as both runs have them.
#[must_use]
pub fn compare(first: (&Kept, &Conclusion), second: (&Kept, &Conclusion)) -> Vec<Compared> {
    let plan = &first.0.planned.plan;
    let had_to = |conclusion: &Conclusion, injection: usize, most: u64| -> BTreeSet<u64> {
        let hits = conclusion.hits.iter();
        let hits =
            hits.filter(|hit| hit.injection == injection && hit.outcome != Outcome::Collateral);
        let ordinals = hits.map(|hit| hit.ordinal);
        ordinals
            .filter(|ordinal| (1..=most).contains(ordinal))
            .collect()
    };
    let compared = plan
        .injections
        .iter()
        .enumerate()
        .map(|(index, injection)| {
            let met = [first.1, second.1].map(|run| run.met.get(index).copied().unwrap_or(0));
            let both = met[0].min(met[1]);
            let mut faults = first.0.planned.scenario.faults.iter();
            let keyed = faults.any(|fault| fault.id == injection.fault && fault.keys.is_some());
            let (a, b) = match keyed {
                true => (BTreeSet::new(), BTreeSet::new()),
                false => (had_to(first.1, index, both), had_to(second.1, index, both)),
            };
            Compared {
                fault: injection.fault.clone(),
                flow: injection.flow.clone(),
                met,
                differing: a.symmetric_difference(&b).copied().collect(),
                alike: a.intersection(&b).count() as u64,
                not_compared: keyed.then(|| {
                    "its packets are numbered by keys, which are others in each run".to_owned()
                }),
            }
        });
    compared.collect()
}

/// What was done to a program or a switch in two runs, held against the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedDisruption {
    /// Which fault.
    pub fault: String,
    /// To which command or switch.
    pub on: String,
    /// How often its steps came in each run.
    pub due: [u64; 2],
    /// How often it was carried out in each run, and seen.
    pub carried: [u64; 2],
    /// Whether both did what was planned.
    pub as_planned: bool,
}

/// How often each run had to disrupt programs and switches, by the steps that came, and did. When a step comes is planned; how
/// long a program takes to end is not, so times are not compared.
#[must_use]
pub fn compare_disruptions(
    first: (&Kept, &Conclusion),
    second: (&Kept, &Conclusion),
) -> Vec<ComparedDisruption> {
    let declared = first.0.planned.scenario.disruptions.iter();
    let compared = declared.map(|disruption| {
        let due = [first.0, second.0].map(|run| {
            let came = |epoch: u16| run.evidence.writes.iter().any(|write| write.epoch == epoch);
            let stretches = disruption.epochs.iter().cloned();
            let due = stretches.filter(|stretch| stretch.clone().any(came));
            due.count() as u64
        });
        let carried = [first.1, second.1].map(|run| {
            let mut results = run.disruptions.iter();
            let own = results.find(|result| result.id == disruption.id);
            own.map_or(0, |result| result.observed)
        });
        ComparedDisruption {
            fault: disruption.id.clone(),
            on: disruption.does.subject().name().to_owned(),
            due,
            carried,
            as_planned: due == carried,
        }
    });
    compared.collect()
}
