//! What a run's captures and counters say.

use std::collections::BTreeMap;

use scenario::model::Effect;
use serde::Serialize;
use testbeds::bed::PortRecording;

use super::Planned;
use super::proof::{self, FlowCount, ProofError, Trace};

/// What a run's captures and counters say.
pub struct Conclusion {
    /// In declared order.
    pub faults: Vec<FaultResult>,
    /// By name of the flow.
    pub flows: BTreeMap<String, FlowCount>,
}

impl Conclusion {
    /// From what the switches counted for each injection, and what was captured.
    pub fn of(
        planned: &Planned,
        fired: &[u64],
        recordings: &[PortRecording],
    ) -> Result<Conclusion, ProofError> {
        let trace = Trace::new(&planned.plan, recordings)?;
        let aggregator = planned.aggregator();
        let observations = trace.observe(&planned.scenario, &planned.plan, aggregator)?;
        Ok(Conclusion {
            faults: fault_results(planned, fired, &observations),
            flows: trace.flows(&planned.scenario, aggregator),
        })
    }
}

/// What a fault did: what the switches counted, and what captures saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultResult {
    /// Its name.
    pub id: String,
    /// `drop`, `delay`, `duplicate`.
    pub kind: &'static str,
    /// Counted by the switches.
    pub fired: u64,
    /// Seen by captures on both sides of them.
    pub observed: u64,
    /// Frames of its flows that reached the switches.
    pub met: u64,
    /// For a delay: how much later than asked the latest frame left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_ns: Option<u64>,
    /// For a delay: the plan's bound of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_bound_ns: Option<u64>,
    /// For a delay with a bound: frames that left later than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<u64>,
}

impl FaultResult {
    /// Whether both counts agree.
    pub fn is_proved(&self) -> bool {
        self.fired == self.observed
    }

    /// For a delay with a bound: whether every frame left within it.
    pub fn is_in_time(&self) -> Option<bool> {
        Some(self.latest_ns? <= self.lateness_bound_ns?)
    }
}

fn fault_results(
    planned: &Planned,
    fired: &[u64],
    observations: &[proof::Observation],
) -> Vec<FaultResult> {
    let result = |fault: &scenario::model::Fault| {
        let mut result = FaultResult {
            id: fault.id.clone(),
            kind: match fault.effect {
                Effect::Drop => "drop",
                Effect::Delay { .. } => "delay",
                Effect::Duplicate => "duplicate",
            },
            fired: 0,
            observed: 0,
            met: 0,
            latest_ns: matches!(fault.effect, Effect::Delay { .. }).then_some(0),
            lateness_bound_ns: None,
            beyond: None,
        };
        for (index, injection) in planned.plan.injections.iter().enumerate() {
            if injection.fault == fault.id {
                result.fired += fired[index];
                if result.latest_ns.is_some() {
                    let bound = injection.lateness_bound_ns;
                    result.lateness_bound_ns = result.lateness_bound_ns.max(bound);
                }
                for seen in observations.iter().filter(|seen| seen.injection == index) {
                    result.observed += seen.observed;
                    result.met += seen.met;
                    result.latest_ns = result.latest_ns.map(|latest| latest.max(seen.latest_ns));
                    if result.lateness_bound_ns.is_some() {
                        *result.beyond.get_or_insert(0) += seen.beyond;
                    }
                }
            }
        }
        result
    };
    planned.scenario.faults.iter().map(result).collect()
}
