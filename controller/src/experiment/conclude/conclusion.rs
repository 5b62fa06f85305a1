//! The results of a run that its evidence proves.

use std::collections::BTreeMap;

use proof::{FlowCount, Loss, Proof, Recovery, Throughput};

use super::disruptions::DisruptionResult;
use super::evidence::Evidence;
use super::faults::FaultResult;
use super::triggers::TriggerResult;
use crate::experiment::Planned;

/// The results of a run, from captures and counters.
#[derive(Debug, Default)]
pub struct Conclusion {
    /// Results of the packet faults, in declared order.
    pub faults: Vec<FaultResult>,
    /// Results of the faults of programs and switches, in declared order.
    pub disruptions: Vec<DisruptionResult>,
    /// Results of the triggers, in declared order.
    pub triggers: Vec<TriggerResult>,
    /// Frame counts by flow name.
    pub flows: BTreeMap<String, FlowCount>,
    /// Throughput of each declared flow over time.
    pub throughput: Vec<(String, Throughput)>,
    /// Frames that are not in the evidence. Any of them makes the run unproved.
    pub losses: Vec<Loss>,
    /// How RDMA connections recovered from packets that faults took.
    pub recoveries: Vec<Recovery>,
    /// Number of frames that each injection of the plan examined.
    pub met: Vec<u64>,
}

impl Conclusion {
    /// Draws the conclusion from a proof.
    pub fn from_proof(planned: &Planned, evidence: &Evidence, proof: Proof) -> Conclusion {
        let scenario = &planned.scenario;
        let faults = scenario.faults.iter();
        Conclusion {
            faults: faults
                .map(|fault| FaultResult::judge(planned, fault, &proof, evidence))
                .collect(),
            disruptions: scenario
                .disruptions
                .iter()
                .map(|disruption| DisruptionResult::judge(planned, disruption, evidence, &proof))
                .collect(),
            triggers: TriggerResult::all(planned, &proof, evidence),
            met: proof.observations.iter().map(|seen| seen.met).collect(),
            flows: proof.flows,
            throughput: proof.throughput,
            losses: proof.losses,
            recoveries: proof.recoveries,
        }
    }
}
